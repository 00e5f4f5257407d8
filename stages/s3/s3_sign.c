/* s3_sign.c - the canonical request, the string to sign, and its signature. Any thread. */
#include "s3_sign.h"

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
#define SIGNED_MAX 192 /* bytes of the names of headers */
#define DAY_LENGTH 8
#define ALGORITHM "AWS4-HMAC-SHA256"

void s3_escape(struct text *to, const char *text, bool keeps_slashes)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
				    "-._~";

	while (*text) {
		size_t n = strspn(text, plain);

		text_put(to, text, n);
		text += n;
		if (*text == '/' && keeps_slashes)
			text_puts(to, "/");
		else if (*text)
			text_printf(to, "%%%02X", (unsigned)(unsigned char)*text);
		text += *text != '\0';
	}
}

void s3_date(time_t when, char date[S3_DATE_MAX])
{
	struct tm tm;

	gmtime_r(&when, &tm);
	if (strftime(date, S3_DATE_MAX, "%Y%m%dT%H%M%SZ", &tm) == 0)
		date[0] = '\0';
}

/* ---- hashing ---- */

static void hash_puts(struct sha256_ctx *hash, const char *text)
{
	sha256_update(hash, strlen(text), (const uint8_t *)text);
}

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

static void hmac(uint8_t key[SHA256_DIGEST_SIZE], const char *text)
{
	struct hmac_sha256_ctx context;

	hmac_sha256_set_key(&context, SHA256_DIGEST_SIZE, key);
	hmac_sha256_update(&context, strlen(text), (const uint8_t *)text);
	hmac_sha256_digest(&context, SHA256_DIGEST_SIZE, key);
}

/* Writes the key that signs requests of one day. */
static void signing_key(const struct s3_keys *keys, const char *region, const char *day,
                        uint8_t key[SHA256_DIGEST_SIZE])
{
	struct hmac_sha256_ctx context;
	char secret[256];
	int n = snprintf(secret, sizeof secret, "AWS4%s", keys->secret);
	size_t length = n > 0 && (size_t)n < sizeof secret ? (size_t)n : 0;

	hmac_sha256_set_key(&context, length, (const uint8_t *)secret);
	hmac_sha256_update(&context, DAY_LENGTH, (const uint8_t *)day);
	hmac_sha256_digest(&context, SHA256_DIGEST_SIZE, key);
	hmac(key, region);
	hmac(key, "s3");
	hmac(key, "aws4_request");
	explicit_bzero(secret, sizeof secret);
	explicit_bzero(&context, sizeof context);
}

/* ---- what is signed ---- */

/* Hashes the canonical request. */
static void hash_request(const struct s3_request *r, const char *signed_names,
                         char hex[S3_HASH_MAX])
{
	uint8_t digest[SHA256_DIGEST_SIZE];
	struct sha256_ctx hash;

	sha256_init(&hash);
	const char *const head[] = { r->method, "\n", r->path, "\n", r->query, "\n" };

	for (size_t i = 0; i < sizeof head / sizeof *head; i++)
		hash_puts(&hash, head[i]);
	for (unsigned i = 0; i < r->header_count; i++) {
		hash_puts(&hash, r->header[i].name);
		hash_puts(&hash, ":");
		hash_puts(&hash, r->header[i].value);
		hash_puts(&hash, "\n");
	}
	hash_puts(&hash, "\n");
	hash_puts(&hash, signed_names);
	hash_puts(&hash, "\n");
	hash_puts(&hash, r->body_hash);
	sha256_digest(&hash, sizeof digest, digest);
	print_hex(digest, hex);
}

static void sign_request(const struct s3_keys *keys, const struct s3_request *r,
                         const char *signed_names, const char *date, const char *scope,
                         char signature[S3_HASH_MAX])
{
	uint8_t key[SHA256_DIGEST_SIZE];
	char hash[S3_HASH_MAX],
		to_sign[sizeof ALGORITHM + S3_DATE_MAX + SCOPE_MAX + S3_HASH_MAX + 4];

	hash_request(r, signed_names, hash);
	snprintf(to_sign, sizeof to_sign, ALGORITHM "\n%s\n%s\n%s", date, scope, hash);
	signing_key(keys, r->region, date, key);
	hmac(key, to_sign);
	print_hex(key, signature);
}

static bool write_scope(const struct s3_request *r, const char *date, char scope[SCOPE_MAX])
{
	int n = snprintf(scope, SCOPE_MAX, "%.*s/%s/s3/aws4_request", DAY_LENGTH, date, r->region);

	return n > 0 && n < SCOPE_MAX;
}

bool s3_sign(const struct s3_keys *keys, const struct s3_request *r, const char *date,
             char authorization[S3_AUTHORIZATION_MAX])
{
	char scope[SCOPE_MAX], names[SIGNED_MAX], signature[S3_HASH_MAX];
	struct text list;

	text_init(&list, names, sizeof names);
	for (unsigned i = 0; i < r->header_count; i++) {
		text_puts(&list, i ? ";" : "");
		text_puts(&list, r->header[i].name);
	}
	if (!write_scope(r, date, scope) || list.overflowed)
		return false;
	sign_request(keys, r, names, date, scope, signature);
	int n = snprintf(authorization, S3_AUTHORIZATION_MAX,
	                 ALGORITHM " Credential=%s/%s,SignedHeaders=%s,Signature=%s", keys->id,
	                 scope, names, signature);

	return n > 0 && n < S3_AUTHORIZATION_MAX;
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
