/* token_line.c - words of a line: name, hash, scopes and quotas. Any thread. */
#include "token_line.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <nettle/base16.h>
#include <nettle/sha2.h>

#include "base/check.h"
#include "base/text.h"

#define SPACE " \t\r"
#define DIGITS_MAX 18
#define NUMBER_MAX \
	UINT64_C(999999999999999999) /* has as many digits, so that it can be read again */

static_assert(TOKEN_HASH_SIZE == SHA256_DIGEST_SIZE, "the hash is SHA-256");
static_assert(TOKEN_NAME_MAX == 64, "a message names it");

static const struct {
	const char *name;
	enum token_scope scope;
} scopes[] = { { "upload", TOKEN_UPLOAD },
	       { "delete", TOKEN_DELETE },
	       { "list", TOKEN_LIST },
	       { "original", TOKEN_ORIGINAL },
	       { "sign", TOKEN_SIGN } };

unsigned token_scope_of(const char *word, size_t length)
{
	for (size_t i = 0; i < COUNT_OF(scopes); i++)
		if (strlen(scopes[i].name) == length && memcmp(scopes[i].name, word, length) == 0)
			return scopes[i].scope;
	return 0;
}

void token_print_scopes(unsigned set, struct text *to)
{
	for (size_t i = 0; i < COUNT_OF(scopes); i++)
		if (set & scopes[i].scope)
			text_printf(to, " %s", scopes[i].name);
}

bool token_name_is_valid(const char *name, size_t length)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._@-";

	for (size_t i = 0; i < length; i++)
		if (!name[i] || !strchr(allowed, name[i]))
			return false;
	return length > 0 && length < TOKEN_NAME_MAX;
}

void token_hash(const char *token, size_t length, uint8_t hash[TOKEN_HASH_SIZE])
{
	struct sha256_ctx context;

	sha256_init(&context);
	sha256_update(&context, length, (const uint8_t *)token);
	sha256_digest(&context, TOKEN_HASH_SIZE, hash);
}

/* The next word of the line; length 0 after the last. */
static const char *next_word(const char **at, const char *end, size_t *length)
{
	while (*at < end && **at && strchr(SPACE, **at))
		++*at;
	const char *word = *at;

	while (*at < end && (!**at || !strchr(SPACE, **at)))
		++*at;
	*length = (size_t)(*at - word);
	return word;
}

static bool parse_hash(const char *word, size_t length, uint8_t hash[TOKEN_HASH_SIZE])
{
	struct base16_decode_ctx context;
	size_t size = TOKEN_HASH_SIZE;

	base16_decode_init(&context);
	return length == BASE16_ENCODE_LENGTH(TOKEN_HASH_SIZE) &&
	       base16_decode_update(&context, &size, hash, length, word) &&
	       base16_decode_final(&context) && size == TOKEN_HASH_SIZE;
}

/* ---- quotas ---- */

static const struct {
	const char *name;
	size_t offset;
} quotas[] = { { "images=", offsetof(struct token_quota, images) },
	       { "bytes=", offsetof(struct token_quota, bytes) },
	       { "uploads=", offsetof(struct token_quota, uploads) } };

static uint64_t *member(const struct token_quota *quota, size_t offset)
{
	return (uint64_t *)(void *)((char *)(uintptr_t)quota + offset);
}

uint64_t token_number(const char *word, size_t length)
{
	static const char units[] = "KMGT";
	const char *unit = length && word[length - 1] ? strchr(units, word[length - 1]) : NULL;
	uint64_t n = 0;

	length -= unit != NULL;
	if (length == 0 || length > DIGITS_MAX)
		return 0;
	for (size_t i = 0; i < length; i++) {
		if (word[i] < '0' || word[i] > '9')
			return 0;
		n = n * 10 + (uint64_t)(word[i] - '0');
	}
	unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;

	return n <= NUMBER_MAX >> shift ? n << shift : 0;
}

static bool parse_quota(const char *word, size_t length, struct token_quota *quota)
{
	for (size_t i = 0; i < COUNT_OF(quotas); i++) {
		size_t name = strlen(quotas[i].name);

		if (length > name && memcmp(word, quotas[i].name, name) == 0) {
			*member(quota, quotas[i].offset) = token_number(word + name, length - name);
			return *member(quota, quotas[i].offset) > 0;
		}
	}
	return false;
}

bool token_quota_parse(const char *word, struct token_quota *quota)
{
	return parse_quota(word, strlen(word), quota);
}

void token_print_quota(const struct token_quota *quota, struct text *to)
{
	for (size_t i = 0; i < COUNT_OF(quotas); i++)
		if (*member(quota, quotas[i].offset))
			text_printf(to, " %s%" PRIu64, quotas[i].name,
			            *member(quota, quotas[i].offset));
}

/* ---- lines ---- */

const char *token_line_parse(const char *at, const char *end, struct token *token)
{
	size_t length;
	const char *word = next_word(&at, end, &length);

	memset(token, 0, sizeof *token); /* also what lies between its members */
	if (length == 0 || *word == '#')
		return NULL;
	if (!token_name_is_valid(word, length))
		return "expected NAME HASH [upload] [delete] [list] [original] [sign] [QUOTA=N], NAME of at most "
		       "63 of a-z, A-Z, 0-9, '.', '_', '@' and '-'";
	memcpy(token->name, word, length);
	word = next_word(&at, end, &length);
	if (!parse_hash(word, length, token->hash))
		return "expected a SHA-256 hash, 64 hexadecimal digits, after the name";
	for (word = next_word(&at, end, &length); length; word = next_word(&at, end, &length)) {
		unsigned scope = token_scope_of(word, length);

		if (!scope && !parse_quota(word, length, &token->quota))
			return "expected upload, delete, list, original or sign, or images=, bytes= or "
			       "uploads= with a number above 0, or nothing, after the hash";
		token->scopes |= scope;
	}
	if (!token->scopes)
		token->scopes = TOKEN_SCOPES_UNSAID;
	return NULL;
}
