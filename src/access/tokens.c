/*
 * tokens.c - reads the file of tokens when it changes, looks tokens up, and signs permissions.
 *
 * Main thread, except the lookup and what concerns one token.
 */
#include "tokens.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nettle/base16.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <nettle/sha2.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/opener.h"
#include "base/text.h"
#include "conf/conf_source.h"
#include "log/log.h"

#define SPACE " \t\r"
#define DIGITS_MAX 18
#define NUMBER_MAX \
	UINT64_C(999999999999999999) /* has as many digits, so that it can be read again */
#define FILE_MAX (TOKENS_MAX * 240)
#define ERRORS_MAX ((size_t)16 << 10)
#define LOOK_MS 1000 /* between looks at the file */

/* ---- words of a line: name, hash, scopes and quotas ---- */

static_assert(TOKEN_HASH_SIZE == SHA256_DIGEST_SIZE, "the hash is SHA-256");
static_assert(TOKEN_NAME_MAX == 64, "a message names it");

static const struct {
	const char *name;
	enum token_scope scope;
} scopes[] = { { "upload", TOKEN_UPLOAD },     { "delete", TOKEN_DELETE }, { "list", TOKEN_LIST },
	       { "original", TOKEN_ORIGINAL }, { "sign", TOKEN_SIGN },     { "own", TOKEN_OWN } };

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

bool token_add_right(const char *word, size_t length, unsigned *set, struct token_quota *quota)
{
	for (size_t i = 0; i < COUNT_OF(scopes); i++)
		if (strlen(scopes[i].name) == length && memcmp(scopes[i].name, word, length) == 0) {
			*set |= scopes[i].scope;
			return true;
		}
	for (size_t i = 0; i < COUNT_OF(quotas); i++) {
		size_t name = strlen(quotas[i].name);

		if (length > name && memcmp(word, quotas[i].name, name) == 0) {
			*member(quota, quotas[i].offset) = token_number(word + name, length - name);
			return *member(quota, quotas[i].offset) > 0;
		}
	}
	return false;
}

void token_print_rights(unsigned set, const struct token_quota *quota, struct text *to)
{
	for (size_t i = 0; i < COUNT_OF(scopes); i++)
		if (set & scopes[i].scope)
			text_printf(to, " %s", scopes[i].name);
	for (size_t i = 0; i < COUNT_OF(quotas); i++)
		if (*member(quota, quotas[i].offset))
			text_printf(to, " %s%" PRIu64, quotas[i].name,
			            *member(quota, quotas[i].offset));
}

void permission_sign(const struct permission *p, const uint8_t hash[TOKEN_HASH_SIZE],
                     uint8_t signature[PERMISSION_SIGNATURE_SIZE])
{
	struct hmac_sha256_ctx context;
	struct text t = TEXT_LOCAL(TOKEN_NAME_MAX + 128);

	text_printf(&t, "POST\n/images\n%s\n%" PRIu64 "\n%" PRIu64 "\n%" PRIu64 "\n", p->name,
	            p->expires, p->images, p->bytes);
	hmac_sha256_set_key(&context, TOKEN_HASH_SIZE, hash);
	hmac_sha256_update(&context, t.length, (const uint8_t *)t.data);
	hmac_sha256_digest(&context, PERMISSION_SIGNATURE_SIZE, signature);
}

/* ---- lines ---- */

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

bool token_read_hash(const char *word, size_t length, uint8_t hash[TOKEN_HASH_SIZE])
{
	struct base16_decode_ctx context;
	size_t size = TOKEN_HASH_SIZE;

	base16_decode_init(&context);
	return length == BASE16_ENCODE_LENGTH(TOKEN_HASH_SIZE) &&
	       base16_decode_update(&context, &size, hash, length, word) &&
	       base16_decode_final(&context) && size == TOKEN_HASH_SIZE;
}

/* Reads a line that ends before `end`. Returns NULL, or the fault. The name is empty if the line
 * has no token. */
static const char *read_line(const char *at, const char *end, struct token *token)
{
	size_t length;
	const char *word = next_word(&at, end, &length);

	memset(token, 0, sizeof *token); /* also what lies between its members */
	if (length == 0 || *word == '#')
		return NULL;
	if (!token_name_is_valid(word, length))
		return "expected NAME HASH [upload] [delete] [list] [own] [original] [sign] [QUOTA=N], "
		       "NAME of at most 63 of a-z, A-Z, 0-9, '.', '_', '@' and '-'";
	memcpy(token->name, word, length);
	word = next_word(&at, end, &length);
	if (!token_read_hash(word, length, token->hash))
		return "expected a SHA-256 hash, 64 hexadecimal digits, after the name";
	for (word = next_word(&at, end, &length); length; word = next_word(&at, end, &length)) {
		if (!token_add_right(word, length, &token->scopes, &token->quota))
			return "expected " TOKEN_RIGHTS_FORM ", or nothing, after the hash";
	}
	if (!(token->scopes & ~(unsigned)TOKEN_OWN))
		token->scopes |= TOKEN_SCOPES_UNSAID;
	return NULL;
}

/* The state of reading a file. */
struct reading {
	const char *path;
	struct text *errors;
	unsigned line;
	struct token *token; /* room for TOKENS_MAX */
	unsigned count;
	bool has_failed;
};

/* Adds the token of a line. Returns NULL, or the fault. */
static const char *parse_line(struct reading *r, const char *at, const char *end)
{
	struct token token;
	const char *fault = read_line(at, end, &token);

	if (fault || !token.name[0])
		return fault;
	if (r->count == TOKENS_MAX)
		return "expected at most 4096 tokens";
	for (unsigned i = 0; i < r->count; i++)
		if (strcmp(r->token[i].name, token.name) == 0 ||
		    memcmp(r->token[i].hash, token.hash, TOKEN_HASH_SIZE) == 0)
			return "expected a name and a hash that no earlier line has";
	r->token[r->count++] = token;
	return NULL;
}

static_assert(TOKENS_MAX == 4096, "a message names it");

static void parse(struct reading *r, const char *data, size_t size)
{
	for (const char *end = data + size; data < end;) {
		const char *newline = memchr(data, '\n', (size_t)(end - data));
		const char *line_end = newline ? newline : end;

		r->line++;
		const char *fault = parse_line(r, data, line_end);

		/* Without any word of the line: it may be a token in the place of its hash. */
		if (fault)
			text_printf(r->errors, "%s:%u: %s\n", r->path, r->line, fault);
		r->has_failed |= fault != NULL;
		data = newline ? newline + 1 : end;
	}
}

/* ---- the file ---- */

/* The path of the file's directory, which the caller frees; NULL: no memory. The path is absolute.
 */
static char *directory_of(const char *path)
{
	char *directory = strdup(path);
	char *slash = directory ? strrchr(directory, '/') : NULL;

	if (slash)
		slash[slash == directory] = '\0';
	return directory;
}

/* Whether others can put another file at the path. With the sticky bit they cannot. */
static bool is_replaceable(const char *path)
{
	char *directory = directory_of(path);
	struct stat st;
	bool result = directory && stat(directory, &st) == 0 &&
	              (st.st_mode & (S_IWGRP | S_IWOTH)) && !(st.st_mode & S_ISVTX);

	free(directory);
	return result;
}

/* NULL if the file can be trusted, otherwise its fault. */
static const char *fault_of(const char *path, const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return "expected a regular file";
	if (st->st_mode & (S_IWGRP | S_IWOTH))
		return "expected a file that neither its group nor other users can write to "
		       "(chmod go-w FILE)";
	if (is_replaceable(path))
		return "expected a directory that neither its group nor other users can write to "
		       "(chmod go-w DIRECTORY)";
	return st->st_size > FILE_MAX ? "the file is too long" : NULL;
}

/* Fills r->token, which the caller frees in any case. 0 or -errno, reported. */
static int read_tokens(struct reading *r, struct stat *st)
{
	char *data = malloc(FILE_MAX);
	const char *fault = NULL;
	ssize_t size = -ENOMEM;

	*st = (struct stat){ 0 };
	r->token = malloc(TOKENS_MAX * sizeof *r->token);
	if (data && r->token)
		size = opener_read(r->path, OPENER_READ_FILE, data, FILE_MAX, st);
	if (st->st_mode && (fault = fault_of(r->path, st)))
		size = -EINVAL;
	if (size < 0)
		text_printf(r->errors, "%saccess.tokens_file = %s: %s\n",
		            conf_place("access.tokens_file"), r->path,
		            fault ? fault : strerror((int)-size));
	else
		parse(r, data, (size_t)size);
	free(data);
	return size < 0 ? (int)size : r->has_failed ? -EINVAL : 0;
}

int tokens_check_file(const char *path, struct text *errors)
{
	struct reading r = { .path = path, .errors = errors };
	struct stat ignored;
	int err = *path ? read_tokens(&r, &ignored) : 0;

	free(r.token);
	return err;
}

static void publish(struct tokens *t, struct reading *r)
{
	struct token *smaller = realloc(r->token, (r->count ? r->count : 1) * sizeof *r->token);

	if (smaller)
		r->token = smaller;
	pthread_rwlock_wrlock(&t->lock);
	struct token *old = t->token;
	bool has_quotas = false;

	for (unsigned i = 0; i < r->count; i++)
		has_quotas |= r->token[i].quota.images || r->token[i].quota.bytes ||
		              r->token[i].quota.uploads;
	atomic_store(&t->has_quotas, has_quotas);
	t->token = r->token;
	t->count = r->count;
	pthread_rwlock_unlock(&t->lock);
	r->token = old;
}

int tokens_reload(struct tokens *t, struct text *errors)
{
	struct reading r = { .path = t->path, .errors = errors };
	struct stat st;

	if (!tokens_are_needed(t))
		return 0;
	int err = read_tokens(&r, &st);

	if (st.st_mode) /* otherwise it could not be opened */
		t->seen = st;
	/* Relaxed: a flag for reports only. */
	atomic_store_explicit(&t->is_outdated, err != 0, memory_order_relaxed);
	if (!err) {
		publish(t, &r);
		log_notice("%s: %u token%s loaded", t->path, r.count, plural(r.count));
		if (r.count == 0)
			log_warning("%s: contains no tokens; all uploads and DELETE requests are "
			            "refused",
			            t->path);
		if (t->seen.st_mode & S_IROTH)
			log_warning("%s: all users can read it; it has only hashes, but chmod o-r "
			            "is safer",
			            t->path);
	}
	free(r.token);
	return err;
}

/* ---- changes ---- */

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mode == b->st_mode && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	       a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Logs every line as a message of its own. */
static void log_lines(const char *lines)
{
	for (size_t length; *lines; lines += length + (lines[length] == '\n')) {
		length = strcspn(lines, "\n");
		log_error("%.*s", (int)length, lines);
	}
}

static void reload_changed(struct tokens *t)
{
	struct text errors;

	text_init_growable(&errors, ERRORS_MAX);
	if (tokens_reload(t, &errors)) {
		log_lines(errors.data);
		log_error("%s: cannot reload; the tokens stay unchanged", t->path);
	}
	text_fini(&errors);
}

/* A watch of the kernel would miss changes behind a link, in a container into which the file is
 * mounted, and on a network file system. */
int tokens_tick(struct tokens *t)
{
	uint64_t now_ns = clock_ns();
	struct stat found;

	if (!tokens_are_needed(t))
		return -1;
	if (now_ns < t->look_ns)
		return (int)((t->look_ns - now_ns) / NS_PER_MS) + 1;
	t->look_ns = now_ns + LOOK_MS * NS_PER_MS;
	if (stat(t->path, &found))
		found = (struct stat){ 0 };
	bool is_settled = is_same_file(&found, &t->found);

	t->found = found;
	if (is_settled && !is_same_file(&found, &t->seen)) {
		t->seen = found;
		reload_changed(t);
	}
	return LOOK_MS;
}

/* ---- open and close ---- */

int tokens_open(struct tokens *t, const char *path)
{
	pthread_rwlockattr_t attributes;
	struct text errors;

	*t = (struct tokens){ .token = NULL };
	snprintf(t->path, sizeof t->path, "%s", path);
	/* Prefers the writer: otherwise a stream of requests could delay a change indefinitely. */
	pthread_rwlockattr_init(&attributes);
	pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&t->lock, &attributes);
	pthread_rwlockattr_destroy(&attributes);
	if (!tokens_are_needed(t))
		return 0;
	text_init_growable(&errors, ERRORS_MAX);
	int err = tokens_reload(t, &errors);

	log_lines(errors.data);
	text_fini(&errors);
	if (err)
		tokens_close(t);
	return err;
}

void tokens_close(struct tokens *t)
{
	free(t->token);
	t->token = NULL;
	t->count = 0;
	pthread_rwlock_destroy(&t->lock);
}

/* ---- lookup ---- */

bool tokens_find(struct tokens *t, const char *token, size_t length, struct token *found)
{
	uint8_t hash[TOKEN_HASH_SIZE];
	unsigned at = 0; /* behind the one that is found; hashes differ */

	token_hash(token, length, hash);
	*found = (struct token){ 0 };
	pthread_rwlock_rdlock(&t->lock);
	for (unsigned i = 0; i < t->count; i++) {
		unsigned is_same = memeql_sec(t->token[i].hash, hash, TOKEN_HASH_SIZE) != 0;

		at |= (0 - is_same) &
		      (i + 1); /* No branch: the time must not depend on the token. */
	}
	if (at)
		*found = t->token[at - 1];
	pthread_rwlock_unlock(&t->lock);
	return at > 0;
}

bool tokens_find_signer(struct tokens *t, const char *name, struct token *found)
{
	*found = (struct token){ 0 };
	pthread_rwlock_rdlock(&t->lock);
	for (unsigned i = 0; i < t->count; i++)
		if ((t->token[i].scopes & TOKEN_SIGN) && strcmp(t->token[i].name, name) == 0)
			*found = t->token[i];
	pthread_rwlock_unlock(&t->lock);
	return found->name[0];
}

void tokens_each(struct tokens *t,
                 void (*each)(const char *name, const struct token_quota *quota, void *arg),
                 void *arg)
{
	pthread_rwlock_rdlock(&t->lock);
	for (unsigned i = 0; i < t->count; i++)
		each(t->token[i].name, &t->token[i].quota, arg);
	pthread_rwlock_unlock(&t->lock);
}
