/*
 * fuzz_multipart.c - bodies of forms: parsing them at once and in turns gives the same parts, and
 * all parts are within the body.
 */
#include "http/multipart.h"
#include "target.h"

#define BOUNDARY "b"
#define HEADER_MAX 200
#define STEPS_MAX 64

const unsigned target_mutants = 2000;

struct step {
	enum multipart_result result;
	struct multipart_part part;
};

struct outcome {
	struct step step[STEPS_MAX];
	unsigned count;
	const char *error;
};

static void check_span(struct span s, size_t size)
{
	assert(s.at <= size && s.length <= size - s.at);
}

/* Decodes a name into a buffer that is often too small for it. */
static void check_text(struct slice raw, bool is_extended, size_t room)
{
	char *out = malloc(room);

	assert(out);
	size_t length = multipart_text(raw, is_extended, out, room);

	assert(length < room && out[length] == '\0' && strlen(out) == length);
	free(out);
}

static void check_part(const struct multipart_part *part, const char *data, size_t size)
{
	check_span(part->name, size);
	check_span(part->file_name, size);
	check_span(part->type, size);
	check_span(part->body, size);
	for (size_t room = 1; room < 20; room += 6) {
		check_text(span_slice(part->name, data), false, room);
		check_text(span_slice(part->file_name, data), part->is_file_name_extended, room);
	}
}

/* Parses a turn up to `end`. Returns whether it has ended before the form. */
static bool feed(struct multipart *m, struct outcome *o, struct slice body, size_t end)
{
	enum multipart_result result = MULTIPART_PART;

	while (result == MULTIPART_PART && o->count < STEPS_MAX) {
		struct step *step = &o->step[o->count];

		result = multipart_next(m, body, end, &step->part);
		assert(result != MULTIPART_MORE || end < body.length);
		if (result == MULTIPART_MORE)
			break;
		step->result = result;
		if (result == MULTIPART_PART)
			check_part(&step->part, body.data, body.length);
		if (result == MULTIPART_BAD) {
			assert(m->error && m->at <= body.length);
			o->error = m->error;
		}
		o->count++;
	}
	return result == MULTIPART_MORE;
}

static void parse(struct outcome *o, const uint8_t *data, size_t size, uint32_t *cuts)
{
	char *copy = target_copy(data, size);
	const struct slice body = { copy, size };
	struct multipart m;
	size_t end = 0;
	bool is_hungry = true;

	*o = (struct outcome){ .count = 0 };
	multipart_init(&m, BOUNDARY, strlen(BOUNDARY), HEADER_MAX);
	while (cuts && is_hungry && end < size) {
		end = target_cut(cuts, end, size);
		is_hungry = feed(&m, o, body, end);
	}
	if (is_hungry)
		feed(&m, o, body, size);
	free(copy);
}

static bool is_same_span(struct span a, struct span b)
{
	return a.length == b.length && (a.length == 0 || a.at == b.at);
}

static void compare(const struct outcome *a, const struct outcome *b)
{
	assert(a->count == b->count);
	for (unsigned i = 0; i < a->count; i++) {
		const struct multipart_part *p = &a->step[i].part, *q = &b->step[i].part;

		assert(a->step[i].result == b->step[i].result);
		if (a->step[i].result != MULTIPART_PART)
			continue;
		assert(is_same_span(p->name, q->name) && is_same_span(p->type, q->type));
		assert(is_same_span(p->file_name, q->file_name) && is_same_span(p->body, q->body));
		assert(p->has_file_name == q->has_file_name &&
		       p->is_file_name_extended == q->is_file_name_extended);
	}
	assert(a->error == b->error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct outcome whole, pieces;
	uint32_t cuts = target_hash(data, size);

	parse(&whole, data, size, NULL);
	parse(&pieces, data, size, &cuts);
	compare(&whole, &pieces);
	return 0;
}

void target_seeds(void (*emit)(const void *data, size_t size))
{
	static const char *const text[] = {
		"--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nvalue\r\n--b--\r\n",
		"--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a b.jpg\"\r\n"
		"Content-Type: image/jpeg\r\n\r\n\xff\xd8\xff\r\n--b\r\n"
		"Content-Disposition: form-data; name=g; filename*=UTF-8''%e2%82%ac.jpg\r\n\r\n"
		"\r\n--b-\r\n--bb\r\n--b--",
		"preamble\r\n--b  \t\r\ncontent-disposition:form-data;name=\"a\\\"%22%0D\\\\\"\r\n"
		"X-Other: y\r\n\r\n--b\n\r\r\n--b--epilogue",
		"--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\r\n--b\r\n"
		"Content-Disposition: attachment; name=\"a\"; name=\"b\"\r\n\r\n1\r\n--b--\r\n",
		"--b\r\nContent-Disposition: form-data; name=\"f\"\r\n"
		"Content-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\n"
		"Content-Disposition: file; filename=\"1.jpg\"\r\n\r\nx\r\n--c--\r\n--b--\r\n",
		"--b--",
		"\r\n--b\r\n\r\nwithout headers\r\n--b--",
		"--b\r\nContent-Disposition: form-data; name=\"\xc3\xa9\xf0\x9f\x98\x80\"\r\n\r\n"
		"\r\n-\r\n--\r\n--\r\n--b--\r\n",
	};

	target_emit_texts(emit, text, COUNT_OF(text));
}
