/* s3_sign.c - the canonical request, the string to sign, and its signature. Any thread. */
#include "s3_sign.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <nettle/base16.h>
#include <nettle/hmac.h>
#include <nettle/sha2.h>

#include "base/check.h"
#include "base/opener.h"

static_assert(S3_HASH_MAX == 2 * SHA256_DIGEST_SIZE + 1, "in hexadecimal");

#define SCOPE_MAX 128
#define SIGNED_MAX 192    /* bytes of the names of headers */
#define REQUEST_MAX 20480 /* bytes of a canonical request */
#define DAY_LENGTH 8
#define ALGORITHM "AWS4-HMAC-SHA256"

void s3_escape(struct text *to, const char *text, bool keeps_slashes)
{
	for (; *text; text++)
		if (isalnum((unsigned char)*text) || strchr("-._~", *text) ||
		    (*text == '/' && keeps_slashes))
			text_put(to, text, 1);
		else
			text_printf(to, "%%%02X", (unsigned)(unsigned char)*text);
}

void s3_date(time_t when, char date[S3_DATE_MAX])
{
	struct tm tm;

	gmtime_r(&when, &tm);
	if (strftime(date, S3_DATE_MAX, "%Y%m%dT%H%M%SZ", &tm) == 0)
		date[0] = '\0';
}

/* ---- hashing ---- */

static void print_hex(const uint8_t digest[SHA256_DIGEST_SIZE], char hex[S3_HASH_MAX])
{
	base16_encode_update(hex, SHA256_DIGEST_SIZE, digest);
	hex[S3_HASH_MAX - 1] = '\0';
}

void s3_hash(const struct iovec *piece, unsigned count, char hex[S3_HASH_MAX])
{
	uint8_t digest[SHA256_DIGEST_SIZE];
	struct sha256_ctx hash;

	sha256_init(&hash);
	for (unsigned i = 0; i < count; i++)
		sha256_update(&hash, piece[i].iov_len, piece[i].iov_base);
	sha256_digest(&hash, sizeof digest, digest);
	print_hex(digest, hex);
}

static void hmac(const void *key, size_t size, const char *text, uint8_t digest[SHA256_DIGEST_SIZE])
{
	struct hmac_sha256_ctx context;

	hmac_sha256_set_key(&context, size, key);
	hmac_sha256_update(&context, strlen(text), (const uint8_t *)text);
	hmac_sha256_digest(&context, SHA256_DIGEST_SIZE, digest);
	explicit_bzero(&context, sizeof context);
}

/* Signs the text by the key of requests of one day, "20130524". */
static void sign_text(const struct s3_keys *keys, const char *region, const char *day,
                      const char *text, char signature[S3_HASH_MAX])
{
	const char *const step[] = { day, region, "s3", "aws4_request", text };
	uint8_t key[SHA256_DIGEST_SIZE];
	char secret[sizeof keys->secret + 4];
	int size = snprintf(secret, sizeof secret, "AWS4%s", keys->secret);

	hmac(secret, (size_t)size, step[0], key);
	for (size_t i = 1; i < COUNT_OF(step); i++)
		hmac(key, sizeof key, step[i], key);
	print_hex(key, signature);
	explicit_bzero(secret, sizeof secret);
}

/* ---- what is signed ---- */

/* Hashes the canonical request. Returns false if it is too long. */
static bool hash_request(const struct s3_request *r, const char *signed_names,
                         char hex[S3_HASH_MAX])
{
	const char *query = strchr(r->target, '?');
	char data[REQUEST_MAX];
	struct text t;

	text_init(&t, data, sizeof data);
	text_printf(&t, "%s\n%.*s\n%s\n%s\n%s\n%s", r->method, (int)strcspn(r->target, "?"),
	            r->target, query ? query + 1 : "", r->headers, signed_names, r->body_hash);
	s3_hash(&(struct iovec){ data, t.length }, 1, hex);
	explicit_bzero(data, t.length); /* it may have the token of temporary keys */
	return !t.overflowed;
}

bool s3_sign(const struct s3_keys *keys, const struct s3_request *r, const char *date,
             char authorization[S3_AUTHORIZATION_MAX])
{
	char names_data[SIGNED_MAX], sign_data[SIGNED_MAX + S3_DATE_MAX + S3_HASH_MAX],
		scope_data[SCOPE_MAX], hash[S3_HASH_MAX], signature[S3_HASH_MAX],
		day[DAY_LENGTH + 1];
	struct text names, scope, to_sign, result;

	text_init(&names, names_data, sizeof names_data);
	text_init(&scope, scope_data, sizeof scope_data);
	text_init(&to_sign, sign_data, sizeof sign_data);
	text_init(&result, authorization, S3_AUTHORIZATION_MAX);
	for (const char *line = r->headers; *line; line = strchr(line, '\n') + 1)
		text_printf(&names, "%s%.*s", names.length ? ";" : "", (int)strcspn(line, ":"),
		            line);
	if (!hash_request(r, names_data, hash))
		return false;
	snprintf(day, sizeof day, "%s", date);
	text_printf(&scope, "%s/%s/s3/aws4_request", day, r->region);
	text_printf(&to_sign, ALGORITHM "\n%s\n%s\n%s", date, scope_data, hash);
	sign_text(keys, r->region, day, sign_data, signature);
	text_printf(&result, ALGORITHM " Credential=%s/%s,SignedHeaders=%s,Signature=%s", keys->id,
	            scope_data, names_data, signature);
	return !names.overflowed && !scope.overflowed && !to_sign.overflowed && !result.overflowed;
}

/* ---- the keys of an account ---- */

static int take_line(struct s3_keys *s, const char *line)
{
	const struct {
		const char *name;
		char *field;
		size_t size;
	} field[] = {
		{ "aws_access_key_id", s->id, sizeof s->id },
		{ "aws_secret_access_key", s->secret, sizeof s->secret },
		{ "aws_session_token", s->session, sizeof s->session },
	};
	char name[32], value[sizeof s->session], more;
	int err = -EINVAL;

	line += strspn(line, " \t\r");
	if (*line == '\0' || *line == '#' || *line == '[')
		return 0;
	bool is_good = sscanf(line, "%31[a-z_] = %2048[!-~] %c", name, value, &more) == 2;

	for (size_t i = 0; i < COUNT_OF(field) && is_good; i++)
		if (strcmp(field[i].name, name) == 0 && !field[i].field[0] &&
		    strlen(value) < field[i].size) {
			memcpy(field[i].field, value, strlen(value) + 1);
			err = 0;
		}
	explicit_bzero(value, sizeof value);
	return err;
}

int s3_keys_parse(char *text, size_t length, struct s3_keys *s)
{
	int err = memchr(text, '\0', length) ? -EINVAL : 0;
	char *rest = NULL;

	*s = (struct s3_keys){ .id = "" };
	for (char *line = strtok_r(text, "\n", &rest); line && !err;
	     line = strtok_r(NULL, "\n", &rest))
		err = take_line(s, line);
	return err || !*s->id || !*s->secret ? -EINVAL : 0;
}

int s3_keys_read(const char *path, struct s3_keys *keys)
{
	char text[S3_KEYS_FILE_MAX];
	ssize_t n = opener_read(path, OPENER_READ_FILE, text, sizeof text, NULL);
	int err = n < 0 ? (int)n : n == sizeof text ? -EINVAL : 0;

	if (!err) {
		text[n] = '\0';
		err = s3_keys_parse(text, (size_t)n, keys);
	}
	explicit_bzero(text, sizeof text);
	return err;
}
