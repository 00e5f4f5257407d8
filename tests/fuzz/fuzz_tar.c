/*
 * fuzz_tar.c - archives for import: whole and in pieces they give the same members, no more data
 * than there is, and names that are accepted are those of a store.
 */
#include "store/tool/store_import.c" /* NOLINT(bugprone-suspicious-include): its reader is static */
#include "target.h"

const unsigned target_mutants = 1000;

#define MEMBERS_MAX 64

struct source {
	const uint8_t *data;
	size_t at, size;
	uint32_t state; /* 0: whole */
};

struct seen {
	uint64_t hash[MEMBERS_MAX];
	unsigned count;
	int result;
};

static ssize_t read_source(void *arg, char *data, size_t size)
{
	struct source *s = arg;
	size_t end = s->size;

	if (s->at == s->size)
		return 0;
	if (s->state)
		end = target_cut(&s->state, s->at, s->size);
	size_t n = end - s->at < size ? end - s->at : size;

	memcpy(data, s->data + s->at, n);
	s->at += n;
	return (ssize_t)n;
}

static void check_name(const char *path)
{
	char id[ULID_LENGTH + 1], name[STORED_NAME_MAX], expected[STORE_PATH_MAX];

	if (!split_path(path, id, name))
		return;
	assert(ulid_is_valid(id, strlen(id)) && !strchr(name, '/') && name[0] != '.');
	store_image_path(expected, STORE_BY_TIME, id, name);
	assert(strcmp(path + (path[0] == '.' ? 2 : 0), expected) == 0);
}

/* Returns a hash of the member and of its data. Reads a part of it only, with skips. */
static uint64_t member_hash(struct tar_reader *r, bool skips)
{
	uint8_t data[1000];
	uint64_t hash = target_hash((const uint8_t *)r->head.name, strlen(r->head.name));
	long n = 1;

	assert(strlen(r->head.name) < TAR_NAME_MAX && strlen(r->pax.tag) < STORE_TAG_MAX);
	assert(r->head.type == TAR_FILE || r->head.size == 0);
	check_name(r->head.name);
	hash = hash * 31 + r->head.size + (uint64_t)r->head.type;
	hash = hash * 31 + target_hash((const uint8_t *)r->pax.tag, strlen(r->pax.tag));
	while (!skips && (n = tar_reader_data(r, data, sizeof data)) > 0)
		for (long i = 0; i < n; i++)
			hash = hash * 31 + data[i];
	return hash;
}

static void read_members(struct seen *seen, uint8_t *data, size_t size, uint32_t state, bool skips)
{
	struct source source = { .data = data, .size = size, .state = state };
	FILE *in = fopencookie(&source, "r", (cookie_io_functions_t){ .read = read_source });
	struct tar_reader r = { .in = in };

	assert(in);
	setvbuf(in, NULL, _IONBF, 0);

	*seen = (struct seen){ .count = 0 };
	while ((seen->result = tar_reader_next(&r)) == 0 && seen->count < MEMBERS_MAX)
		seen->hash[seen->count++] = member_hash(&r, skips);
	assert(seen->result == 0 || seen->result == TAR_END || seen->result == -EINVAL ||
	       seen->result == -ENODATA);
	fclose(in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = target_copy(data, size);
	struct seen whole, pieces, skipped;

	read_members(&whole, copy, size, 0, false);
	read_members(&pieces, copy, size, target_hash(data, size), false);
	read_members(&skipped, copy, size, 0, true);
	assert(memcmp(&whole, &pieces, sizeof whole) == 0);
	assert(whole.count == skipped.count && whole.result == skipped.result);
	free(copy);
	return 0;
}

/* Nine of ten mutants get right checksums of their headers, so that more than these is tested. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed)
{
	char sum[8];

	size = LLVMFuzzerMutate(data, size, size_max);
	for (uint8_t *block = data; seed % 10 && (size_t)(block - data) + TAR_BLOCK <= size;
	     block += TAR_BLOCK) {
		unsigned n = 0;

		if (memcmp(block + 257, "ustar", 5) != 0)
			continue;
		memset(block + 148, ' ', sizeof sum);
		for (size_t i = 0; i < TAR_BLOCK; i++)
			n += block[i];
		snprintf(sum, sizeof sum, "%06o", n);
		memcpy(block + 148, sum, sizeof sum - 1);
	}
	return size;
}

/* ---- seeds ---- */

static size_t put_header(uint8_t *to, const char *name, enum tar_type type, size_t size)
{
	struct tar_header h = { .type = type, .size = size };

	snprintf(h.name, sizeof h.name, "%s", name);
	tar_header_write(to, &h, 0644, 1);
	return TAR_BLOCK;
}

void target_seeds(void (*emit)(const void *data, size_t size))
{
	static uint8_t data[64 * TAR_BLOCK];
	size_t at = put_header(data, "a", TAR_PAX_GLOBAL, 0);

	size_t length = tar_pax_write((char *)data + at, TAR_BLOCK, "comment", "images=1");

	put_header(data, "a", TAR_PAX_GLOBAL, length);
	at += TAR_BLOCK;
	for (int i = 0; i < 2; i++) {
		size_t header = at;

		at += TAR_BLOCK;
		length = tar_pax_write((char *)data + at, TAR_BLOCK, TAR_TAG_KEY,
		                       "99aa06d3014798d86001c324468d497f");
		put_header(data + header, "x", TAR_PAX, length);
		at += TAR_BLOCK;
		at += put_header(data + at,
		                 i ? "01KA/X2/01KAX200000000000000000000/thumb.jpg"
		                   : "./01KA/X2/01KAX200000000000000000000/image.json",
		                 TAR_FILE, i ? 700 : 3);
		at += i ? 2 * TAR_BLOCK : TAR_BLOCK;
	}
	at += put_header(data + at, "01KA/", TAR_DIRECTORY, 0);
	at += put_header(data + at, "../../etc/passwd", TAR_OTHER, 0);
	at += 2 * TAR_BLOCK;
	emit(data, at);
	emit(data, at - 3 * TAR_BLOCK);
	emit(data, TAR_BLOCK + 17);
}
