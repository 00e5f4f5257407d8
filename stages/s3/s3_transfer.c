/* s3_transfer.c - headers, bodies and verdicts. The client's thread. */
#include "s3_transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#include <nettle/base16.h>
#include <nettle/base64.h>
#include <nettle/md5.h>

#include "base/check.h"
#include "log/log.h"
#include "s3_list.h"
#include "store/checksum.h"

#define HEADERS_MAX 8
#define HEADER_LINE_MAX 2560
#define ERROR_BODY_MAX 4096
#define TAG_HEADER "x-amz-meta-darkroom-tag"
#define RATE_MIN 4096 /* bytes/s; below it, for the time of store.s3_timeout, an attempt ends */
#define TIMEOUTS_MAX 12
#define SMALL_CONTENT ((curl_off_t)256 << 10) /* of each connection, at most */

static_assert(CURL_AT_LEAST_VERSION(7, 87, 0), "of CURLOPT_CA_CACHE_TIMEOUT");

/* ---- content that comes ---- */

static size_t fail(struct s3_transfer *t, int err)
{
	t->err = err;
	return 0; /* libcurl ends the transfer */
}

/* Most variants are kept in memory, which a busy disk does not delay. */
static int open_content(const struct s3_transfer *t)
{
	curl_off_t size = -1;

	s3_curl.easy_getinfo(t->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &size);
	if (size >= 0 && size <= SMALL_CONTENT)
		return memfd_create("s3", MFD_CLOEXEC);
	return openat(t->target->directory_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

static size_t to_file(struct s3_transfer *t, const char *data, size_t size)
{
	struct s3_op *op = t->op;

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

static size_t on_body(char *data, size_t one, size_t size, void *arg)
{
	struct s3_transfer *t = arg;
	struct s3_op *op = t->op;

	(void)one;
	if (t->status == 200 && op->verb == S3_GET)
		op->length += size;
	if (t->status == 200 && op->to_file)
		return to_file(t, data, size);
	size_t room = (t->status == 200 ? op->body_max : ERROR_BODY_MAX) - op->body.length;

	if (size > room && t->status == 200)
		return fail(t, -EFBIG);
	/* Of the page of a proxy, the beginning will do. */
	text_put(&op->body, data, size < room ? size : room);
	return op->body.overflowed ? fail(t, -ENOMEM) : size;
}

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

static size_t on_header(char *line, size_t one, size_t size, void *arg)
{
	struct s3_transfer *t = arg;
	char value[64];

	(void)one;
	if (size > 5 && memcmp(line, "HTTP/", 5) == 0) { /* another answer, after one of 1xx */
		t->tag[0] = t->etag[0] = '\0';
		s3_curl.easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &t->status);
	} else if (!take_header(line, size, TAG_HEADER, t->tag, sizeof t->tag) &&
	           !take_header(line, size, "ETag", t->etag, sizeof t->etag) &&
	           take_header(line, size, "x-amz-server-side-encryption", value, sizeof value)) {
		t->is_encrypted = true;
	}
	return size;
}

/* ---- the request ---- */

int s3_transfer_init(struct s3_transfer *t, const struct s3_target *target)
{
	*t = (struct s3_transfer){ .easy = s3_curl.easy_init(), .target = target };
	return t->easy ? 0 : -ENOMEM;
}

void s3_transfer_fini(struct s3_transfer *t)
{
	s3_curl.slist_free_all(t->headers);
	if (t->easy)
		s3_curl.easy_cleanup(t->easy);
}

void s3_target_path(const struct s3_target *t, const char *key, struct text *path)
{
	text_puts(path, "/");
	s3_escape(path, t->bucket, false);
	if (!*key)
		return;
	text_puts(path, "/");
	s3_escape(path, t->prefix, true);
	s3_escape(path, key, true);
}

/* The names stand in order, as they must be signed. */
static void write_query(const struct s3_transfer *t, struct text *query)
{
	const struct s3_op *op = t->op;

	text_puts(query, "list-type=2&max-keys=");
	text_uint(query, op->max);
	text_puts(query, "&prefix=");
	s3_escape(query, t->target->prefix, false);
	s3_escape(query, op->key, false);
	if (!*op->after)
		return;
	text_puts(query, "&start-after=");
	s3_escape(query, t->target->prefix, false);
	s3_escape(query, op->after, false);
}

/* The store refuses content whose MD5 is another one, and a store that does not is found by its
 * entity tag. SHA-256 would do the same in the signature, and takes twice the CPU time. */
static void hash_content(struct s3_transfer *t,
                         char base64[BASE64_ENCODE_RAW_LENGTH(MD5_DIGEST_SIZE) + 1])
{
	const struct s3_op *op = t->op;
	uint8_t digest[MD5_DIGEST_SIZE];
	struct md5_ctx md5;

	md5_init(&md5);
	md5_update(&md5, op->size, op->data);
	md5_digest(&md5, sizeof digest, digest);
	base64_encode_raw(base64, sizeof digest, digest);
	base64[BASE64_ENCODE_RAW_LENGTH(MD5_DIGEST_SIZE)] = '\0';
	base16_encode_update(t->md5, sizeof digest, digest);
	t->md5[32] = '\0';
}

static int add_line(struct s3_transfer *t, const char *name, const char *value)
{
	char line[HEADER_LINE_MAX];
	int n = snprintf(line, sizeof line, "%s:%s%s", name, *value ? " " : "", value);
	struct curl_slist *list =
		n > 0 && (size_t)n < sizeof line ? s3_curl.slist_append(t->headers, line) : NULL;

	explicit_bzero(line, sizeof line);
	if (!list)
		return -ENOMEM;
	t->headers = list;
	return 0;
}

static const char *method_of(const struct s3_op *op)
{
	return op->verb == S3_PUT ? "PUT" : op->verb == S3_DELETE ? "DELETE" : "GET";
}

/* Signs the request and lists its headers. */
static int add_headers(struct s3_transfer *t, const struct s3_secret *secret, const char *path,
                       const char *query)
{
	const struct s3_target *target = t->target;
	const struct s3_op *op = t->op;
	char date[S3_DATE_MAX], authorization[S3_AUTHORIZATION_MAX], md5[25];
	struct s3_header header[HEADERS_MAX];
	unsigned n = 0;
	int err = 0;

	s3_date(time(NULL), date);
	if (op->verb == S3_PUT) {
		hash_content(t, md5);
		header[n++] = (struct s3_header){ "content-md5", md5 };
	}
	header[n++] = (struct s3_header){ "host", target->host };
	if (op->match[0])
		header[n++] =
			(struct s3_header){ op->match[0] == '*' ? "if-none-match" : "if-match",
			                    op->match };
	header[n++] = (struct s3_header){ "x-amz-content-sha256", S3_UNSIGNED };
	header[n++] = (struct s3_header){ "x-amz-date", date };
	if (op->verb == S3_PUT && op->tag[0])
		header[n++] = (struct s3_header){ TAG_HEADER, op->tag };
	if (secret->session[0])
		header[n++] = (struct s3_header){ "x-amz-security-token", secret->session };
	const struct s3_keys keys = { secret->id, secret->secret, secret->session, target->region };
	const struct s3_request request = { method_of(op), path, query,      target->host,
		                            header,        n,    S3_UNSIGNED };

	if (!s3_sign(&keys, &request, date, authorization))
		return -EINVAL;
	for (unsigned i = 0; i < n && !err; i++)
		if (strcmp(header[i].name, "host") != 0)
			err = add_line(t, header[i].name, header[i].value);
	if (!err)
		err = add_line(t, "authorization", authorization);
	if (!err && op->verb == S3_PUT)
		err = add_line(t, "content-type", op->type);
	/* libcurl would wait for a "100 Continue". */
	return err ? err : add_line(t, "expect", "");
}

/* Sets the options; a handle that libcurl cannot set up has no memory. */
static int set_options(struct s3_transfer *t, const char *url)
{
	const struct s3_target *target = t->target;
	const struct s3_op *op = t->op;
	long timeout_ms = (long)target->timeout_ms;
	CURL *e = t->easy;
	int bad = 0;

	s3_curl.easy_reset(e);
	bad |= s3_curl.easy_setopt(e, CURLOPT_URL, url) != CURLE_OK;
	bad |= s3_curl.easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https") != CURLE_OK;
	bad |= s3_curl.easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) !=
	       CURLE_OK;
	bad |= s3_curl.easy_setopt(e, CURLOPT_PATH_AS_IS, 1L) != CURLE_OK;
	bad |= s3_curl.easy_setopt(e, CURLOPT_NOSIGNAL, 1L) != CURLE_OK;
	bad |= s3_curl.easy_setopt(e, CURLOPT_PROXY, "") != CURLE_OK;
	bad |= s3_curl.easy_setopt(e, CURLOPT_RESOLVE, target->resolve) != CURLE_OK;
	bad |= s3_curl.easy_setopt(e, CURLOPT_HTTPHEADER, t->headers) != CURLE_OK;
	bad |= s3_curl.easy_setopt(e, CURLOPT_PRIVATE, (char *)t) != CURLE_OK;
	bad |= s3_curl.easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body) != CURLE_OK;
	bad |= s3_curl.easy_setopt(e, CURLOPT_WRITEDATA, t) != CURLE_OK;
	bad |= s3_curl.easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header) != CURLE_OK;
	bad |= s3_curl.easy_setopt(e, CURLOPT_HEADERDATA, t) != CURLE_OK;
	bad |= s3_curl.easy_setopt(e, CURLOPT_FILETIME, 1L) != CURLE_OK;
	bad |= s3_curl.easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, timeout_ms / 2) != CURLE_OK;
	bad |= s3_curl.easy_setopt(e, CURLOPT_LOW_SPEED_LIMIT, (long)RATE_MIN) != CURLE_OK;
	bad |= s3_curl.easy_setopt(e, CURLOPT_LOW_SPEED_TIME, (timeout_ms + 999) / 1000) !=
	       CURLE_OK;
	bad |= s3_curl.easy_setopt(e, CURLOPT_TIMEOUT_MS, timeout_ms * TIMEOUTS_MAX) != CURLE_OK;
	if (target->endpoint.is_tls) {
		bad |= s3_curl.easy_setopt(e, CURLOPT_CAINFO, target->ca_file) != CURLE_OK;
		bad |= s3_curl.easy_setopt(e, CURLOPT_CA_CACHE_TIMEOUT, -1L) != CURLE_OK;
	}
	if (op->verb == S3_PUT) { /* not UPLOAD: a repeated request needs no callback to rewind */
		bad |= s3_curl.easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)op->size) !=
		       CURLE_OK;
		bad |= s3_curl.easy_setopt(e, CURLOPT_POSTFIELDS, op->data) != CURLE_OK;
	}
	bad |= s3_curl.easy_setopt(e, CURLOPT_CUSTOMREQUEST, method_of(op)) != CURLE_OK;
	return bad ? -ENOMEM : 0;
}

int s3_transfer_begin(struct s3_transfer *t, struct s3_op *op, const struct s3_secret *secret)
{
	char path_data[S3_URL_MAX], query_data[S3_URL_MAX], url_data[2 * S3_URL_MAX];
	struct text path, query, url;

	t->op = op;
	t->tag[0] = t->etag[0] = '\0';
	t->is_encrypted = false;
	t->err = 0;
	t->status = 0;
	text_init(&path, path_data, sizeof path_data);
	text_init(&query, query_data, sizeof query_data);
	text_init(&url, url_data, sizeof url_data);
	s3_target_path(t->target, op->verb == S3_LIST ? "" : op->key, &path);
	if (op->verb == S3_LIST)
		write_query(t, &query);
	text_puts(&url, t->target->base);
	text_puts(&url, path_data);
	text_puts(&url, query.length ? "?" : "");
	text_puts(&url, query_data);
	int err = path.overflowed || query.overflowed || url.overflowed ? -EINVAL : 0;

	if (!err)
		err = add_headers(t, secret, path_data, query_data);
	return err ? err : set_options(t, url_data);
}

/* ---- verdicts ---- */

void s3_op_reset(struct s3_op *op)
{
	if (op->fd >= 0)
		close(op->fd);
	op->fd = -1;
	op->length = 0;
	text_fini(&op->body);
	text_init_growable(&op->body,
	                   (op->body_max > ERROR_BODY_MAX ? op->body_max : ERROR_BODY_MAX) + 1);
}

static void count(_Atomic uint64_t *counter)
{
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* Returns whether the content has the checksum of its tag. */
static bool is_intact(struct s3_transfer *t)
{
	struct s3_op *op = t->op;
	char sum[CHECKSUM_LENGTH + 1];
	uint64_t size = op->body.length;
	int err = 0;

	if (op->to_file && op->fd < 0)
		return false; /* no image or variant is empty */
	if (op->to_file)
		err = checksum_of_file(op->fd, sum, &size);
	else
		checksum_of(op->body.data, op->body.length, sum);
	if (err || strncmp(sum, t->tag, CHECKSUM_LENGTH) != 0)
		return false;
	memcpy(op->tag, t->tag, sizeof op->tag);
	return true;
}

/* Returns whether the entity tag can be that of what was put. */
static bool is_stored(const struct s3_transfer *t)
{
	char etag[S3_ETAG_MAX];
	size_t length = strlen(t->etag);

	snprintf(etag, sizeof etag, "\"%s\"", t->md5);
	if (t->is_encrypted || memchr(t->etag, '-', length))
		return length > 0;
	return strcmp(t->etag, etag) == 0;
}

static void log_attempt(const struct s3_op *op, const char *what, const char *detail)
{
	log_warning("store: %s %s: %s%s%s; attempt %u of %u", method_of(op), op->key, what,
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

/* Judges an answer without an error of the connection. */
static enum s3_verdict judge_answer(struct s3_transfer *t, struct s3_counters *counters)
{
	struct s3_op *op = t->op;
	struct s3_list list;
	char code[64], what[32];
	bool is_good =
		op->verb == S3_DELETE ? t->status == 204 || t->status == 200 : t->status == 200;

	op->err = 0;
	if (is_good &&
	    ((op->verb == S3_GET && !is_intact(t)) || (op->verb == S3_PUT && !is_stored(t)) ||
	     (op->verb == S3_LIST && !s3_list_begin(&list, op->body.data, op->body.length)))) {
		op->err = S3_DAMAGED;
		count(&counters->damaged);
		log_attempt(op, "the answer is not right",
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
	count(&counters->rejected);
	snprintf(what, sizeof what, "status %ld", t->status);
	log_attempt(op, what, code);
	/* Ceph's gateway answers 408 while its disks are away, and 403 later. */
	return t->status >= 500 || t->status == 403 || t->status == 408 || t->status == 429
	               ? S3_VERDICT_GONE
	               : S3_VERDICT_RETRY;
}

enum s3_verdict s3_transfer_end(struct s3_transfer *t, CURLcode result,
                                struct s3_counters *counters)
{
	struct s3_op *op = t->op;
	enum s3_verdict verdict = S3_VERDICT_GONE;
	curl_off_t modified = -1;

	s3_curl.easy_getinfo(t->easy, CURLINFO_FILETIME_T, &modified);
	op->modified = modified > 0 ? (time_t)modified : 0;
	if (t->err) {
		op->err = t->err;
		verdict = S3_VERDICT_DONE;
	} else if (result == CURLE_OK) {
		verdict = judge_answer(t, counters);
	} else {
		op->err = S3_AWAY;
		count(result == CURLE_OPERATION_TIMEDOUT ? &counters->timeouts
		      : result == CURLE_PARTIAL_FILE     ? &counters->damaged
		                                         : &counters->broken);
		log_attempt(op, s3_curl.easy_strerror(result), "");
	}
	if (op->err)
		s3_op_reset(op);
	s3_curl.slist_free_all(t->headers);
	t->headers = NULL;
	t->op = NULL;
	return verdict;
}
