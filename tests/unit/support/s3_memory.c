/* s3_memory.c - a sorted array of objects. */
#include "s3_memory.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "s3/s3_former.h"
#include "s3/s3_objects.h"
#include "store/expiry.h"

#define OBJECTS_MAX 32
#define LIST_TEXT_MAX 16384

struct object {
	char key[S3_KEY_MAX];
	const char *data;
	time_t modified;
};

static struct {
	struct object object[OBJECTS_MAX];
	unsigned count, page_max;
	unsigned runs[S3_VERB_COUNT];
	int err[S3_VERB_COUNT];
} memory;

static struct object *find(const char *key)
{
	for (unsigned i = 0; i < memory.count; i++)
		if (strcmp(memory.object[i].key, key) == 0)
			return &memory.object[i];
	return NULL;
}

void s3_memory_clear(void)
{
	memset(&memory, 0, sizeof memory);
	memory.page_max = OBJECTS_MAX;
}

void s3_memory_add(const char *key, const char *data, time_t modified)
{
	assert_true(memory.count < OBJECTS_MAX);
	assert_true(!memory.count || strcmp(memory.object[memory.count - 1].key, key) < 0);
	struct object *o = &memory.object[memory.count++];

	snprintf(o->key, sizeof o->key, "%s", key);
	o->data = data;
	o->modified = modified;
}

bool s3_memory_has(const char *key)
{
	return find(key) != NULL;
}

void s3_memory_fail(enum s3_verb verb, int err)
{
	memory.err[verb] = err;
}

void s3_memory_set_page(unsigned max)
{
	memory.page_max = max;
}

unsigned s3_memory_count(enum s3_verb verb)
{
	return memory.runs[verb];
}

/* ---- operations ---- */

static void list_object(struct text *body, const struct object *o)
{
	struct tm tm;
	char date[32];

	assert_non_null(gmtime_r(&o->modified, &tm));
	assert_true(strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S.000Z", &tm) > 0);
	text_printf(body, "<Contents><Key>%s</Key><LastModified>%s</LastModified></Contents>",
	            o->key, date);
}

static void list(struct s3_op *op)
{
	unsigned max = op->max < memory.page_max ? op->max : memory.page_max, n = 0;
	bool has_more = false;

	text_puts(&op->body, "<ListBucketResult>");
	for (unsigned i = 0; i < memory.count; i++) {
		const struct object *o = &memory.object[i];

		if (strncmp(o->key, op->key, strlen(op->key)) != 0 ||
		    (op->after && strcmp(o->key, op->after) <= 0))
			continue;
		has_more = n == max;
		if (has_more)
			break;
		list_object(&op->body, o);
		n++;
	}
	text_printf(&op->body, "<IsTruncated>%s</IsTruncated></ListBucketResult>",
	            has_more ? "true" : "false");
}

static void get(struct s3_op *op)
{
	const struct object *o = find(op->key);

	op->err = o ? 0 : -ENOENT;
	if (o)
		text_puts(&op->body, o->data);
}

static void put(struct s3_op *op)
{
	if (find(op->key) && strcmp(op->match, "*") == 0)
		op->err = -EEXIST;
	else if (!find(op->key))
		s3_memory_add(op->key, op->piece[0].iov_base, 0);
}

static void remove_object(struct s3_op *op)
{
	struct object *o = find(op->key);

	op->err = o ? 0 : -ENOENT;
	if (o) {
		size_t left = (size_t)(memory.object + memory.count-- - (o + 1));

		memmove(o, o + 1, left * sizeof *o);
	}
}

void s3_client_run(struct s3_client *c, struct s3_op *ops, size_t count)
{
	static void (*const run[])(struct s3_op *) = {
		[S3_GET] = get, [S3_PUT] = put, [S3_DELETE] = remove_object, [S3_LIST] = list
	};

	(void)c;
	for (size_t i = 0; i < count; i++) {
		struct s3_op *op = &ops[i];

		if (++memory.runs[op->verb] > S3_MEMORY_REQUESTS_MAX)
			fail_msg("too many requests: %s", op->key);
		text_init_growable(&op->body, LIST_TEXT_MAX);
		op->err = memory.err[op->verb];
		if (!op->err)
			run[op->verb](op);
	}
}

int64_t s3_client_skew(const struct s3_client *c)
{
	(void)c;
	return 0;
}

bool s3_is_away(const struct s3_counters *counters)
{
	(void)counters;
	return false;
}

/* No note is put here, and the original would bring the whole store of files. */
void expiry_write_name(char name[EXPIRY_NAME_MAX], const char *id, uint64_t expires)
{
	(void)id, (void)expires;
	name[0] = '\0';
}

/* It has no former images. */
int s3_former_copy(struct s3_client *c, const char *id)
{
	(void)c, (void)id;
	return -ENOENT;
}

int s3_former_remove(struct s3_client *c, const char *id)
{
	(void)c, (void)id;
	return 0;
}
