/* s3_answer.c - what the store answers, and whether that is right. The client's thread. */
#include "s3_answer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#include "log/log.h"
#include "s3_list.h"
#include "store/checksum.h"
#include "telemetry/counter.h"

/* ---- the body ---- */

static size_t fail(struct s3_transfer *t, int err)
{
	t->err = err;
	return 0; /* libcurl ends the transfer */
}

/* Returns whether the body is what was asked for. 206: a part of it (RFC 9110, 15.3.7). */
static bool is_content(const struct s3_transfer *t)
{
	return t->status == 200 || (t->status == 206 && t->op->part_max);
}

/* A part is kept in memory, which a busy disk does not delay. */
static int open_content(const struct s3_transfer *t)
{
	if (t->op->part_max)
		return memfd_create("s3", MFD_CLOEXEC);
	return openat(t->target->directory_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

static size_t to_file(struct s3_transfer *t, const char *data, size_t size)
{
	struct s3_op *op = t->op;

	if (op->part_max && op->length > op->part_max)
		return fail(t, -EFBIG);
	if (op->fd < 0 && (op->fd = open_content(t)) < 0)
		return fail(t, -errno);
	for (size_t done = 0; done < size;) {
		ssize_t n = write(op->fd, data + done, size - done);

		if (n <= 0 && errno != EINTR)
			return fail(t, n < 0 ? -errno : -EIO);
		done += n > 0 ? (size_t)n : 0;
	}
	return size;
}

size_t s3_answer_on_body(char *data, size_t one, size_t size, void *arg)
{
	struct s3_transfer *t = arg;
	struct s3_op *op = t->op;
	bool has_content = is_content(t);

	(void)one;
	if (has_content && op->verb == S3_GET) {
		op->length += size;
		checksum_add(t->sum, data, size);
	}
	if (has_content && op->to_file)
		return to_file(t, data, size);
	size_t room = (has_content ? op->body_max : S3_ERROR_BODY_MAX) - op->body.length;

	if (size > room && has_content)
		return fail(t, -EFBIG);
	/* Of the page of a proxy, the beginning will do. */
	text_put(&op->body, data, size < room ? size : room);
	return op->body.overflowed ? fail(t, -ENOMEM) : size;
}

/* ---- the header ---- */

/* Copies the value of a header if it has the name. Returns whether it has. */
static bool take_header(const char *line, size_t length, const char *name, char *value, size_t size)
{
	size_t name_length = strlen(name);

	if (length <= name_length || line[name_length] != ':' ||
	    strncasecmp(line, name, name_length) != 0)
		return false;
	line += name_length + 1;
	length -= name_length + 1;
	while (length && strchr(" \t", *line)) {
		line++;
		length--;
	}
	while (length && strchr(" \t\r\n", line[length - 1]))
		length--;
	if (length >= size)
		length = 0;
	memcpy(value, line, length);
	value[length] = '\0';
	return true;
}

/* Reads a number and the byte behind it. Returns where that ends, or NULL. */
static const char *take_number(const char *at, char end, uint64_t *number)
{
	char *rest;

	if (!at || *at < '0' || *at > '9')
		return NULL;
	errno = 0;
	*number = strtoull(at, &rest, 10);
	return errno || *rest != end ? NULL : rest + 1;
}

/* RFC 9110, 14.4. What cannot be read is no part that was asked for. */
static void take_part(struct s3_transfer *t, const char *value)
{
	const char *at = strncmp(value, "bytes ", 6) == 0 ? value + 6 : NULL;

	at = take_number(at, '-', &t->first);
	at = take_number(at, '/', &t->last);
	if (!take_number(at, '\0', &t->total))
		t->total = 0;
}

size_t s3_answer_on_header(char *line, size_t one, size_t size, void *arg)
{
	struct s3_transfer *t = arg;
	char value[96] = "";

	(void)one;
	if (size > 5 && memcmp(line, "HTTP/", 5) == 0) { /* another answer, after one of 1xx */
		t->tag[0] = t->etag[0] = '\0';
		t->total = 0;
		s3_curl.easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &t->status);
	} else if (take_header(line, size, "Content-Range", value, sizeof value)) {
		take_part(t, value);
	} else if (!take_header(line, size, S3_TAG_HEADER, t->tag, sizeof t->tag)) {
		take_header(line, size, "ETag", t->etag, sizeof t->etag);
	}
	return size;
}

/* ---- verdicts ---- */

/* Sets what the answer is of the object. Returns whether that is what was asked for. */
static bool is_part(struct s3_transfer *t)
{
	struct s3_op *op = t->op;

	if (op->length == 0 && op->to_file)
		return false; /* no image or variant is empty */
	if (t->status == 200) {
		op->total = op->length;
		return op->at == 0;
	}
	op->total = t->total;
	return t->first == op->at && t->last < t->total && t->last - t->first + 1 == op->length &&
	       (op->length == op->part_max || t->last + 1 == t->total);
}

/* Returns whether the content is what was asked for, and has the checksum of its tag if it is all,
 * or the last part of what was verified so far. */
static bool is_intact(struct s3_transfer *t)
{
	struct s3_op *op = t->op;
	char sum[CHECKSUM_LENGTH + 1];

	if (!is_part(t))
		return false;
	/* Another content has another tag. */
	if (op->tag[0] && strcmp(op->tag, t->tag) != 0)
		return false;
	bool is_last = op->at + op->length == op->total;

	checksum_write(t->sum, sum);
	if (is_last && (op->sum || op->at == 0) && strncmp(sum, t->tag, CHECKSUM_LENGTH) != 0)
		return false;
	if (!is_last && op->sum)
		checksum_copy(op->sum, t->sum);
	memcpy(op->tag, t->tag, sizeof op->tag);
	return true;
}

void s3_answer_log(const struct s3_op *op, const char *what, const char *detail)
{
	log_warning("store: %s %s: %s%s%s; attempt %u of %u", s3_method(op), op->key, what,
	            *detail ? ": " : "", detail, op->attempts, S3_ATTEMPTS_MAX);
}

/* Returns what a status tells of the object, or 0: it tells nothing of it. */
static int state_of(const struct s3_transfer *t, const char *code)
{
	if (t->status == 404 && strcmp(code, "NoSuchKey") == 0)
		return t->op->verb == S3_GET || t->op->match[0] ? -ENOENT : 0;
	if (!t->op->match[0])
		return 0;
	return t->status == 412 ? -EEXIST : t->status == 501 ? -EOPNOTSUPP : 0;
}

enum s3_verdict s3_answer_judge(struct s3_transfer *t, struct s3_counters *counters)
{
	struct s3_op *op = t->op;
	struct s3_list list;
	char code[64], what[32];
	bool is_good = op->verb == S3_DELETE ? t->status == 204 || t->status == 200 : is_content(t);

	op->err = 0;
	if (is_good &&
	    ((op->verb == S3_GET && !is_intact(t)) || (op->verb == S3_PUT && !t->etag[0]) ||
	     (op->verb == S3_LIST && !s3_list_begin(&list, op->body.data, op->body.length)))) {
		op->err = S3_DAMAGED;
		counter_add_shared(&counters->damaged);
		s3_answer_log(op, "the answer is not right",
		              op->verb == S3_PUT ? "entity tag" : "content");
		return S3_VERDICT_RETRY;
	}
	memcpy(op->etag, t->etag, sizeof op->etag);
	if (is_good)
		return S3_VERDICT_DONE;
	s3_get_code(op->body.data, op->body.length, code, sizeof code);
	if ((op->err = state_of(t, code)))
		return S3_VERDICT_DONE;
	op->err = t->status == 409 && op->match[0] ? -EAGAIN : S3_AWAY;
	counter_add_shared(&counters->rejected);
	snprintf(what, sizeof what, "status %ld", t->status);
	s3_answer_log(op, what, code);
	/* Ceph's gateway answers 408 while its disks are away, and 403 later. */
	return t->status >= 500 || t->status == 403 || t->status == 408 || t->status == 429
	               ? S3_VERDICT_GONE
	               : S3_VERDICT_RETRY;
}
