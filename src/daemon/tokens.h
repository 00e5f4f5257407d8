/*
 * tokens.h - who may upload and delete: bearer tokens, known by their SHA-256 hashes, from a file
 * that may change at any time.
 *
 * A line of the file: NAME HASH [upload] [delete], HASH in hexadecimal, without a scope all. A
 * token is 32 random bytes, so that one plain hash keeps it as well as it can be kept: slow and
 * salted ones are for secrets that can be guessed. SHA-256 is nettle's, the smallest of Debian's
 * libraries that have it, which nothing needs to initialise and which is on every Debian already
 * (apt comes with it).
 */
#ifndef DARKROOM_DAEMON_TOKENS_H
#define DARKROOM_DAEMON_TOKENS_H

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

enum token_scope { TOKEN_UPLOAD = 1, TOKEN_DELETE = 2 };

enum token_verdict {
	TOKEN_GOOD = 1,
	TOKEN_UNKNOWN,
	TOKEN_INSUFFICIENT /* known, but not for this */
};

struct token {
	char name[TOKEN_NAME_MAX];
	uint8_t hash[TOKEN_HASH_SIZE];
	unsigned scopes; /* enum token_scope */
};

struct tokens {
	char path[CONF_TEXT_MAX]; /* "": nobody needs a token */
	int watch_fd; /* readable when something has changed in the file's directory; -1: that is
	                 not known */
	struct stat seen; /* main thread: the file as it was read last, well or not */
	pthread_rwlock_t lock;
	struct token *token; /* under the lock */
	unsigned count;
	_Atomic bool is_outdated; /* the file was wrong when it was read last: these are those of
	                             before */
};

/* Reads the file, if path is not "", and watches it from then on. 0 or -errno, the reason logged.
 * Before the sandbox. Main thread. */
int tokens_open(struct tokens *t, const char *path);
void tokens_close(struct tokens *t);

/* Reads the file again. 0, or -errno with all that is wrong as lines of errors: then the old tokens
 * stay in force. Main thread. */
int tokens_reload(struct tokens *t, struct text *errors);

/* When watch_fd is readable: reads the file again if it is another one now, and logs what comes of
 * it. Main thread. */
void tokens_look(struct tokens *t);

/* Whether the file could be read; as tokens_reload(), without any effect. Main thread. */
int tokens_check_file(const char *path, struct text *errors);

bool tokens_are_needed(const struct tokens *t);

/* What the token allows. It is compared with every one that there is, in a time that does not
 * depend on any. Any thread. */
enum token_verdict tokens_verdict(struct tokens *t, const char *token, size_t length,
                                  enum token_scope scope);

/* darkroomd token NAME [upload] [delete]: makes one and prints it, and its line of the file. The
 * exit status. Main thread. */
int token_command(char *const *words, size_t count);

/* Appends the scopes as they stand in the file, each with a space before it. */
void token_print_scopes(unsigned scopes, struct text *to);

/* The scope of that name, or 0. */
unsigned token_scope_of(const char *word, size_t length);

bool token_name_is_valid(const char *name, size_t length);

void token_hash(const char *token, size_t length, uint8_t hash[TOKEN_HASH_SIZE]);

#endif
