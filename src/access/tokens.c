/*
 * tokens.c - reads and watches the file of tokens, and looks tokens up.
 *
 * Main thread, except the lookup.
 */
#include "tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <nettle/memops.h>

#include "base/check.h"
#include "base/opener.h"
#include "base/text.h"
#include "conf/conf_places.h"
#include "log/log.h"
#include "token_line.h"

#define FILE_MAX (TOKENS_MAX * 240)
#define ERRORS_MAX ((size_t)16 << 10)
#define WATCHED (IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CREATE | IN_ATTRIB)

/* ---- lines ---- */

/* The state of reading a file. */
struct reading {
	const char *path;
	struct text *errors;
	unsigned line;
	struct token *token; /* room for TOKENS_MAX */
	unsigned count;
	bool has_failed;
};

/* Reports a problem without any word of the line: it may be a token in the place of its hash. */
static void report(struct reading *r, const char *fault)
{
	text_printf(r->errors, "%s:%u: %s\n", r->path, r->line, fault);
	r->has_failed = true;
}

static bool is_duplicate(const struct reading *r, const struct token *token)
{
	for (unsigned i = 0; i < r->count; i++)
		if (strcmp(r->token[i].name, token->name) == 0 ||
		    memcmp(r->token[i].hash, token->hash, TOKEN_HASH_SIZE) == 0)
			return true;
	return false;
}

/* Adds the token of a line. Returns NULL, or the fault. */
static const char *parse_line(struct reading *r, const char *at, const char *end)
{
	struct token token;
	const char *fault = token_line_parse(at, end, &token);

	if (fault || !token.name[0])
		return fault;
	if (r->count == TOKENS_MAX)
		return "expected at most 4096 tokens";
	if (is_duplicate(r, &token))
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

		if (fault)
			report(r, fault);
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

/* Bytes read; -errno, reported. */
static ssize_t read_file(struct reading *r, char *data, size_t room, struct stat *st)
{
	int fd = opener_open(r->path, OPENER_READ_FILE), err = fd < 0 ? fd : 0;
	const char *fault = NULL;
	size_t size = 0;
	ssize_t n = 1;

	*st = (struct stat){ 0 };
	if (!err && fstat(fd, st))
		err = -errno;
	if (!err && (fault = fault_of(r->path, st)))
		err = -EINVAL;
	while (!err && n > 0 && size < room) {
		n = read(fd, data + size, room - size);
		if (n < 0 && errno != EINTR)
			err = -errno;
		size += n > 0 ? (size_t)n : 0;
		n = n < 0 ? 1 : n;
	}
	if (fd >= 0)
		close(fd);
	if (err)
		text_printf(r->errors, "%saccess.tokens_file = %s: %s\n",
		            conf_place("access.tokens_file"), r->path,
		            fault ? fault : strerror(-err));
	return err ? err : (ssize_t)size;
}

/* Fills r->token, which the caller frees in any case. 0 or -errno, reported. */
static int read_tokens(struct reading *r, struct stat *st)
{
	char *data = malloc(FILE_MAX);

	r->token = malloc(TOKENS_MAX * sizeof *r->token);
	if (!data || !r->token) {
		free(data);
		text_printf(r->errors, "%saccess.tokens_file = %s: %s\n",
		            conf_place("access.tokens_file"), r->path, strerror(ENOMEM));
		return -ENOMEM;
	}
	ssize_t size = read_file(r, data, FILE_MAX, st);

	if (size > 0)
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

	if (!tokens_are_needed(t))
		return 0;
	int err = read_tokens(&r, &t->seen);

	/* Relaxed: a flag for reports only. */
	atomic_store_explicit(&t->is_outdated, err != 0, memory_order_relaxed);
	if (!err) {
		publish(t, &r);
		log_notice("%s: %u tokens loaded", t->path, r.count);
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

/* ---- watching ---- */

/* Watches the directory, because editors replace the file. If that fails, only SIGHUP reloads it.
 */
static void watch(struct tokens *t)
{
	char *path = directory_of(t->path);

	t->watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (!path || t->watch_fd < 0 || inotify_add_watch(t->watch_fd, path, WATCHED) < 0) {
		log_warning("%s: cannot watch for changes: %s; only SIGHUP reloads it", t->path,
		            strerror(errno));
		if (t->watch_fd >= 0)
			close(t->watch_fd);
		t->watch_fd = -1;
	}
	free(path);
}

static bool has_changed(const struct tokens *t)
{
	struct stat now = { 0 };

	if (stat(t->path, &now))
		return t->seen.st_ino != 0;
	return now.st_dev != t->seen.st_dev || now.st_ino != t->seen.st_ino ||
	       now.st_size != t->seen.st_size || now.st_mode != t->seen.st_mode ||
	       now.st_mtim.tv_sec != t->seen.st_mtim.tv_sec ||
	       now.st_mtim.tv_nsec != t->seen.st_mtim.tv_nsec ||
	       now.st_ctim.tv_sec != t->seen.st_ctim.tv_sec ||
	       now.st_ctim.tv_nsec != t->seen.st_ctim.tv_nsec;
}

/* Logs every line as a message of its own. */
static void log_lines(const char *lines)
{
	for (size_t length; *lines; lines += length + (lines[length] == '\n')) {
		length = strcspn(lines, "\n");
		log_error("%.*s", (int)length, lines);
	}
}

void tokens_poll(struct tokens *t)
{
	char ignored[4096] __attribute__((aligned(8)));
	struct text errors;

	while (read(t->watch_fd, ignored, sizeof ignored) > 0)
		continue;
	if (!has_changed(t))
		return;
	text_init_growable(&errors, ERRORS_MAX);
	if (tokens_reload(t, &errors)) {
		log_lines(errors.data);
		log_error("%s: cannot reload; the tokens stay unchanged", t->path);
	}
	text_fini(&errors);
}

/* ---- open and close ---- */

int tokens_open(struct tokens *t, const char *path)
{
	pthread_rwlockattr_t attributes;
	struct text errors;

	*t = (struct tokens){ .watch_fd = -1 };
	snprintf(t->path, sizeof t->path, "%s", path);
	/* Prefers the writer: otherwise a stream of requests could delay a change indefinitely. */
	pthread_rwlockattr_init(&attributes);
	pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&t->lock, &attributes);
	pthread_rwlockattr_destroy(&attributes);
	if (!tokens_are_needed(t))
		return 0;
	text_init_growable(&errors, ERRORS_MAX);
	watch(t); /* before the first read, so that no change is missed */
	int err = tokens_reload(t, &errors);

	log_lines(errors.data);
	text_fini(&errors);
	if (err)
		tokens_close(t);
	return err;
}

void tokens_close(struct tokens *t)
{
	if (t->watch_fd >= 0)
		close(t->watch_fd);
	t->watch_fd = -1;
	free(t->token);
	t->token = NULL;
	t->count = 0;
	pthread_rwlock_destroy(&t->lock);
}

/* ---- lookup ---- */

enum token_verdict tokens_verdict(struct tokens *t, const char *token, size_t length,
                                  enum token_scope scope, uint8_t key[TOKEN_KEY_SIZE])
{
	uint8_t hash[TOKEN_HASH_SIZE];
	unsigned found = 0;

	token_hash(token, length, hash);
	pthread_rwlock_rdlock(&t->lock);
	for (unsigned i = 0; i < t->count; i++) {
		unsigned is_same = memeql_sec(t->token[i].hash, hash, TOKEN_HASH_SIZE) != 0;

		/* No branch: the time must not depend on the token. */
		found |= (0 - is_same) & t->token[i].scopes;
	}
	pthread_rwlock_unlock(&t->lock);
	if (key)
		memcpy(key, hash, TOKEN_KEY_SIZE);
	if (!found)
		return TOKEN_UNKNOWN;
	return found & scope ? TOKEN_GOOD : TOKEN_INSUFFICIENT;
}

void tokens_name(struct tokens *t, const uint8_t key[TOKEN_KEY_SIZE], char name[TOKEN_NAME_MAX],
                 struct token_quota *quota)
{
	name[0] = '\0';
	*quota = (struct token_quota){ 0 };
	pthread_rwlock_rdlock(&t->lock);
	for (unsigned i = 0; i < t->count; i++)
		if (memcmp(t->token[i].hash, key, TOKEN_KEY_SIZE) == 0) {
			memcpy(name, t->token[i].name, TOKEN_NAME_MAX);
			*quota = t->token[i].quota;
		}
	pthread_rwlock_unlock(&t->lock);
}

bool tokens_signer(struct tokens *t, const char *name, uint8_t hash[TOKEN_HASH_SIZE],
                   struct token_quota *quota)
{
	bool is_found = false;

	memset(hash, 0, TOKEN_HASH_SIZE);
	*quota = (struct token_quota){ 0 };
	pthread_rwlock_rdlock(&t->lock);
	for (unsigned i = 0; i < t->count && !is_found; i++) {
		if (!(t->token[i].scopes & TOKEN_SIGN) || strcmp(t->token[i].name, name) != 0)
			continue;
		is_found = true;
		memcpy(hash, t->token[i].hash, TOKEN_HASH_SIZE);
		*quota = t->token[i].quota;
	}
	pthread_rwlock_unlock(&t->lock);
	return is_found;
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
