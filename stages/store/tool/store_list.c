/* store_list.c - list, find and count: reads image.json of each image. Main thread. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/stored_image.h"
#include "store_query.h"

#define LINE "%-26s  %-24s  %11s  %10s  %10s  %s\n"
#define NAMES_MAX 64 /* variants that are counted by name */
#define DAY_LENGTH 10

struct sums {
	uint64_t images, upload_bytes, bytes;
};

struct listing {
	char data[STORED_IMAGE_MAX + 1];
	struct stored_info info;
	bool has_failed; /* an image is damaged, or was named and does not exist */
	/* count */
	char day[DAY_LENGTH + 1];
	struct sums of_day, all;
	struct {
		char name[STORED_NAME_MAX];
		struct sums sums;
	} variant[NAMES_MAX];
	unsigned variant_count;
};

/* Reads an image. Returns whether it is to be shown; sets *status if the command ends. */
static bool load(struct listing *l, struct store_query *q, const char *id, int *status)
{
	int err = stored_info_load(&l->info, &q->store, id, l->data);

	*status = 0;
	if (err == -ENOENT && !q->ids_path && !q->word_count)
		return false; /* removed since it was listed, or still a part of it */
	if (err == -ENOENT || err == -EINVAL) {
		store_query_say("%s: %s", id,
		                err == -ENOENT ? "does not exist" : "image.json is damaged");
		l->has_failed = true;
		return false;
	}
	if (err)
		*status = store_query_fail(id, err);
	return !err && (!q->token || strcmp(q->token, l->info.token) == 0);
}

/* Prints the document as one line, in which no control character is raw. */
static void print_document(const char *data)
{
	for (const unsigned char *p = (const unsigned char *)data; *p; p++) {
		bool is_c1 = p[0] == 0xC2 && p[1] >= 0x80 && p[1] < 0xA0; /* U+0080 to U+009F */

		if (is_c1 || *p == 0x7F)
			printf("\\u%04x", is_c1 ? *++p : *p);
		else if (*p >= ' ')
			putchar(*p);
	}
	putchar('\n');
}

static int show(struct store_query *q, const char *id, void *arg)
{
	char date[ULID_DATE_MAX], size[48], upload[32] = "-", bytes[32];
	struct listing *l = arg;
	int status;

	if (!load(l, q, id, &status))
		return status;
	if (q->is_json) {
		print_document(l->data);
		return 0;
	}
	ulid_date(id, date);
	snprintf(size, sizeof size, "%" PRIu64 "x%" PRIu64, l->info.width, l->info.height);
	if (l->info.has_record)
		snprintf(upload, sizeof upload, "%" PRIu64, l->info.upload_bytes);
	snprintf(bytes, sizeof bytes, "%" PRIu64, stored_info_bytes(&l->info));
	printf(LINE, id, date, size, upload, bytes, l->info.token[0] ? l->info.token : "-");
	return 0;
}

int store_list(struct store_query *q)
{
	static struct listing l;

	l.has_failed = false;
	if (!q->is_json)
		printf(LINE, "ID", "UPLOADED", "SIZE", "UPLOAD", "STORED", "TOKEN");
	int status = store_query_each(q, show, &l);

	return status ? status : l.has_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int store_find_images(struct store_query *q)
{
	if (q->word_count == 0 && !q->ids_path && !q->token)
		return store_query_usage("find: expected ids, --ids FILE or --token NAME");
	return store_list(q);
}

/* ---- count ---- */

static void print_sums(const struct store_query *q, const char *kind, const char *name,
                       const struct sums *s)
{
	/* Names of days and variants need no escapes. */
	if (q->is_json)
		printf("{\"%s\":\"%s\",\"images\":%" PRIu64 ",\"upload_bytes\":%" PRIu64
		       ",\"bytes\":%" PRIu64 "}\n",
		       kind, name, s->images, s->upload_bytes, s->bytes);
	else
		printf("%-24s  %10" PRIu64 "  %14" PRIu64 "  %14" PRIu64 "\n", name, s->images,
		       s->upload_bytes, s->bytes);
}

static void add(struct sums *to, uint64_t upload_bytes, uint64_t bytes)
{
	to->images++;
	to->upload_bytes += upload_bytes;
	to->bytes += bytes;
}

static void end_day(const struct store_query *q, struct listing *l)
{
	if (l->of_day.images)
		print_sums(q, "day", l->day, &l->of_day);
	l->of_day = (struct sums){ 0 };
}

static void add_variant(struct listing *l, const struct stored_file *file)
{
	unsigned i = 0;

	while (i < l->variant_count && strcmp(l->variant[i].name, file->name) != 0)
		i++;
	if (i == NAMES_MAX)
		return;
	if (i == l->variant_count)
		memcpy(l->variant[l->variant_count++].name, file->name, sizeof file->name);
	add(&l->variant[i].sums, 0, file->bytes);
}

static int count_one(struct store_query *q, const char *id, void *arg)
{
	char date[ULID_DATE_MAX];
	struct listing *l = arg;
	int status;

	if (!load(l, q, id, &status))
		return status;
	ulid_date(id, date);
	date[DAY_LENGTH] = '\0';
	if (strcmp(date, l->day) != 0) {
		end_day(q, l);
		memcpy(l->day, date, sizeof l->day);
	}
	uint64_t bytes = stored_info_bytes(&l->info);

	add(&l->of_day, l->info.upload_bytes, bytes);
	add(&l->all, l->info.upload_bytes, bytes);
	for (unsigned i = 0; i < l->info.file_count; i++)
		add_variant(l, &l->info.file[i]);
	return 0;
}

int store_count(struct store_query *q)
{
	char label[CONF_FILE_NAME_MAX];
	static struct listing l;

	l = (struct listing){ .has_failed = false };
	if (q->word_count)
		return store_query_usage("count: expected no word, but %s", q->words[0]);
	if (!q->is_json)
		printf("%-24s  %10s  %14s  %14s\n", "", "IMAGES", "UPLOADED BYTES", "STORED BYTES");
	int status = store_query_each(q, count_one, &l);

	end_day(q, &l);
	for (unsigned i = 0; i < l.variant_count; i++) {
		stored_file_label(label, l.variant[i].name);
		print_sums(q, "variant", label, &l.variant[i].sums);
	}
	print_sums(q, "total", "all", &l.all);
	return status ? status : l.has_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
