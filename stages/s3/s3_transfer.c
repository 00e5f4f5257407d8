/* s3_transfer.c - requests. The client's thread. */
#include "s3_transfer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <nettle/base16.h>
#include <nettle/sha2.h>

#include "base/check.h"
#include "s3_answer.h"
#include "store/checksum.h"
#include "telemetry/counter.h"

#define HEADERS_MAX 8
#define HASH_SIZE (BASE16_ENCODE_LENGTH(SHA256_DIGEST_SIZE) + 1) /* with the zero */
#define HEADER_LINE_MAX 2560
#define RATE_MIN 4096 /* bytes/s; below it, for the time of store.s3_timeout, an attempt ends */
#define TIMEOUTS_MAX 12

static_assert(CURL_AT_LEAST_VERSION(7, 87, 0), "of CURLOPT_CA_CACHE_TIMEOUT");

/* ---- the request ---- */

int s3_transfer_init(struct s3_transfer *t, const struct s3_target *target)
{
	*t = (struct s3_transfer){ .easy = s3_curl.easy_init(),
		                   .sum = checksum_new(),
		                   .target = target };
	return t->easy && t->sum ? 0 : -ENOMEM;
}

void s3_transfer_fini(struct s3_transfer *t)
{
	s3_curl.slist_free_all(t->headers);
	checksum_free(t->sum);
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

/* The store refuses content that has another hash. With the SHA instructions of today's processors
 * that takes half the CPU time of an MD5, which the store would return as the entity tag. */
static void hash_content(const struct s3_op *op, char hex[HASH_SIZE])
{
	uint8_t digest[SHA256_DIGEST_SIZE];
	struct sha256_ctx hash;

	sha256_init(&hash);
	sha256_update(&hash, op->size, op->data);
	sha256_digest(&hash, sizeof digest, digest);
	base16_encode_update(hex, sizeof digest, digest);
	hex[HASH_SIZE - 1] = '\0';
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

const char *s3_method(const struct s3_op *op)
{
	return op->verb == S3_PUT ? "PUT" : op->verb == S3_DELETE ? "DELETE" : "GET";
}

/* Signs the request and lists its headers. */
static int add_headers(struct s3_transfer *t, const struct s3_secret *secret, const char *path,
                       const char *query)
{
	const struct s3_target *target = t->target;
	const struct s3_op *op = t->op;
	char date[S3_DATE_MAX], authorization[S3_AUTHORIZATION_MAX], hash[HASH_SIZE] = S3_UNSIGNED;
	struct s3_header header[HEADERS_MAX];
	unsigned n = 0;
	int err = 0;

	s3_date(time(NULL), date);
	if (op->verb == S3_PUT)
		hash_content(op, hash);
	header[n++] = (struct s3_header){ "host", target->host };
	if (op->match[0])
		header[n++] =
			(struct s3_header){ op->match[0] == '*' ? "if-none-match" : "if-match",
			                    op->match };
	header[n++] = (struct s3_header){ "x-amz-content-sha256", hash };
	header[n++] = (struct s3_header){ "x-amz-date", date };
	if (op->verb == S3_PUT && op->tag[0])
		header[n++] = (struct s3_header){ S3_TAG_HEADER, op->tag };
	if (secret->session[0])
		header[n++] = (struct s3_header){ "x-amz-security-token", secret->session };
	const struct s3_keys keys = { secret->id, secret->secret, secret->session, target->region };
	const struct s3_request request = { s3_method(op), path, query, target->host,
		                            header,        n,    hash };

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
	char range[48];
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
	bad |= s3_curl.easy_setopt(e, CURLOPT_WRITEFUNCTION, s3_answer_on_body) != CURLE_OK;
	bad |= s3_curl.easy_setopt(e, CURLOPT_WRITEDATA, t) != CURLE_OK;
	bad |= s3_curl.easy_setopt(e, CURLOPT_HEADERFUNCTION, s3_answer_on_header) != CURLE_OK;
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
	if (op->part_max) {
		snprintf(range, sizeof range, "%" PRIu64 "-%" PRIu64, op->at,
		         op->at + op->part_max - 1);
		bad |= s3_curl.easy_setopt(e, CURLOPT_RANGE, range) != CURLE_OK;
	}
	bad |= s3_curl.easy_setopt(e, CURLOPT_CUSTOMREQUEST, s3_method(op)) != CURLE_OK;
	return bad ? -ENOMEM : 0;
}

int s3_transfer_begin(struct s3_transfer *t, struct s3_op *op, const struct s3_secret *secret)
{
	char path_data[S3_URL_MAX], query_data[S3_URL_MAX], url_data[2 * S3_URL_MAX];
	struct text path, query, url;

	t->op = op;
	t->tag[0] = t->etag[0] = '\0';
	t->err = 0;
	t->status = 0;
	if (op->sum)
		checksum_copy(t->sum, op->sum);
	else
		checksum_reset(t->sum);
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

/* ---- the end ---- */

void s3_op_reset(struct s3_op *op)
{
	if (op->fd >= 0)
		close(op->fd);
	op->fd = -1;
	op->length = 0;
	text_fini(&op->body);
	text_init_growable(&op->body,
	                   (op->body_max > S3_ERROR_BODY_MAX ? op->body_max : S3_ERROR_BODY_MAX) +
	                           1);
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
		verdict = s3_answer_judge(t, counters);
	} else {
		op->err = S3_AWAY;
		counter_add_shared(result == CURLE_OPERATION_TIMEDOUT ? &counters->timeouts
		                   : result == CURLE_PARTIAL_FILE     ? &counters->damaged
		                                                      : &counters->broken);
		s3_answer_log(op, s3_curl.easy_strerror(result), "");
	}
	if (op->err)
		s3_op_reset(op);
	s3_curl.slist_free_all(t->headers);
	t->headers = NULL;
	t->op = NULL;
	return verdict;
}
