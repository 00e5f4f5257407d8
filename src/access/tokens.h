/*
 * tokens.h - bearer tokens for uploads, DELETE, lists and originals, known by their SHA-256 hashes,
 * from a file that may change at any time.
 *
 * A line of the file is NAME HASH [SCOPE...] [QUOTA...], with HASH in hexadecimal. A token is 32
 * random bytes, so one plain hash protects it as well as possible: slow and salted hashes are for
 * secrets that can be guessed. SHA-256 is that of nettle. It is the smallest library of Debian that
 * has it, needs no initialisation, and is installed on every Debian because apt needs it.
 */
#ifndef DARKROOM_ACCESS_TOKENS_H
#define DARKROOM_ACCESS_TOKENS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "conf/conf.h"

struct text;

#define TOKEN_NAME_MAX 64 /* bytes of a name, with the zero */
#define TOKEN_HASH_SIZE 32
#define TOKENS_MAX 4096

enum token_scope {
	TOKEN_UPLOAD = 1,
	TOKEN_DELETE = 2,
	TOKEN_LIST = 4,
	TOKEN_ORIGINAL = 8,
	TOKEN_SIGN = 16,
	TOKEN_OWN = 32, /* lists and deletes only images that the token has uploaded */
	/* Those of a line without one; new lines have TOKEN_OWN as well. Originals have the place
	 * where a picture was taken, and a token that may sign makes its hash a secret, so these
	 * scopes must be named. */
	TOKEN_SCOPES_UNSAID = TOKEN_UPLOAD | TOKEN_DELETE | TOKEN_LIST
};

/* The most that a token may use; 0: no limit. */
struct token_quota {
	uint64_t images, bytes; /* stored */
	uint64_t uploads;       /* images on one day (UTC) */
};

struct token {
	char name[TOKEN_NAME_MAX];
	uint8_t hash[TOKEN_HASH_SIZE];
	unsigned scopes; /* enum token_scope */
	struct token_quota quota;
};

struct tokens {
	char path[CONF_TEXT_MAX]; /* "": requests need no token */
	/* of the main thread: the file when it was read last, successfully or not; the file at the
	 * last look, all zero if there was none; and when the next look is due */
	struct stat seen, found;
	uint64_t look_ns;
	pthread_rwlock_t lock;
	struct token *token;      /* under the lock */
	unsigned count;           /* under the lock */
	_Atomic bool has_quotas;  /* a token has one */
	_Atomic bool is_outdated; /* the last reload failed: the tokens are those of before */
};

/* Reads the file; path "": does nothing. Returns 0 or -errno, logged. Main thread, before the
 * sandbox. */
int tokens_open(struct tokens *t, const char *path);
void tokens_close(struct tokens *t);

/* Reloads the file. Returns 0, or -errno with one line per problem in errors and the tokens
 * unchanged. Main thread. */
int tokens_reload(struct tokens *t, struct text *errors);

/* Looks at the file once a second. Reloads it if it has changed, and has stayed the same for a
 * second: somebody may still write it. Logs the result. Returns the ms until the next call, or -1.
 * Main thread. */
int tokens_tick(struct tokens *t);

/* Checks the file as tokens_reload() would, without any effect. Main thread. */
int tokens_check_file(const char *path, struct text *errors);

/* Whether requests need a token. Any thread. */
static inline bool tokens_are_needed(const struct tokens *t)
{
	return *t->path;
}

/* Finds a token. It is compared with every known one, in a time that does not depend on it. Returns
 * false, with zeros in *found, if it is unknown. Any thread. */
bool tokens_find(struct tokens *t, const char *token, size_t length, struct token *found);

/* The same for the token with that name, if it may sign permissions. Any thread. */
bool tokens_find_signer(struct tokens *t, const char *name, struct token *found);

/* Calls `each` with every token, under the lock. Any thread. */
void tokens_each(struct tokens *t,
                 void (*each)(const char *name, const struct token_quota *quota, void *arg),
                 void *arg);

/* ---- single tokens, any thread ---- */

/* Reads a scope or a quota, such as "upload", "images=1000", "bytes=20G" and "uploads=500", and
 * adds it to the rights. Returns false if it is neither. */
bool token_add_right(const char *word, size_t length, unsigned *scopes, struct token_quota *quota);
#define TOKEN_RIGHTS_FORM                                                                     \
	"upload, delete, list, own, original or sign, or images=, bytes= or uploads= with a " \
	"number above 0"

/* Appends the scopes and the quotas in the file's notation, each after a space. */
void token_print_rights(unsigned scopes, const struct token_quota *quota, struct text *to);

bool token_name_is_valid(const char *name, size_t length);

/* Reads a number above 0, with K, M, G or T for powers of 1024. Returns 0 if it is none. */
uint64_t token_number(const char *word, size_t length);

void token_hash(const char *token, size_t length, uint8_t hash[TOKEN_HASH_SIZE]);

/* Reads a hash, or a signature, in hexadecimal digits. Returns false if it is none. */
bool token_read_hash(const char *word, size_t length, uint8_t hash[TOKEN_HASH_SIZE]);

/* ---- permissions, any thread ---- */

#define PERMISSION_SIGNATURE_SIZE 32
#define PERMISSION_SECONDS_MAX 86400 /* that it may be valid for */

/* A signed permission to upload: an application that has a token gives it to a page, so that the
 * page needs no token. */
struct permission {
	char name[TOKEN_NAME_MAX];
	uint64_t expires;       /* seconds since 1970 */
	uint64_t images, bytes; /* of all requests together; bytes of the files */
};

/* Writes HMAC-SHA-256 (RFC 2104) of the lines "POST", "/images", the token's name, expires, images
 * and bytes, each with a line feed. Its key is the token's hash, which the daemon knows. So the
 * file of tokens is a secret if a token may sign. */
void permission_sign(const struct permission *p, const uint8_t hash[TOKEN_HASH_SIZE],
                     uint8_t signature[PERMISSION_SIGNATURE_SIZE]);

#endif
