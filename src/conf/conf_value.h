/*
 * conf_value.h - the types of configuration keys: text to value, value to text, and the
 * description of what a key accepts.
 *
 * A key is a row of the table in conf_keys.h; parsing, messages and documentation come from that
 * row. Any thread.
 */
#ifndef DARKROOM_CONF_CONF_VALUE_H
#define DARKROOM_CONF_CONF_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text;

enum conf_type {
	/* kept as text, in a char array; min 0: may be empty */
	CONF_TYPE_TEXT = 1,
	CONF_TYPE_LISTEN,   /* HOST:PORT or [HOST]:PORT */
	CONF_TYPE_ADMIN,    /* as LISTEN, "auto", "no" or an absolute path */
	CONF_TYPE_ORIGIN,   /* "*" or SCHEME://HOST[:PORT] */
	CONF_TYPE_NETWORKS, /* addresses or networks, separated by spaces */
	CONF_TYPE_HOSTS,    /* "*" or hosts without ports, separated by spaces */
	CONF_TYPE_POLICY,   /* a name in the registry of policies */
	CONF_TYPE_USER,     /* a user's name, or empty; whether the user exists is not checked */
	CONF_TYPE_SOCKET,   /* "auto", an absolute path, or empty */
	CONF_TYPE_PATH,     /* an absolute path, or empty */
	CONF_TYPE_NOTATION, /* as the key's is_valid() says */
	CONF_TYPE_LOG_FILE, /* "stderr" or an absolute path */
	/* kept as uint64_t */
	CONF_TYPE_NUMBER,
	CONF_TYPE_BYTES,   /* K M G are powers of 1024 */
	CONF_TYPE_PIXELS,  /* K M G are powers of 1000 */
	CONF_TYPE_MS,      /* a duration, kept in milliseconds */
	CONF_TYPE_US,      /* a duration, kept in microseconds */
	CONF_TYPE_AUTO,    /* a number, or "auto", which is CONF_AUTO */
	CONF_TYPE_DECIMAL, /* at most three digits behind the point; kept in thousandths */
	CONF_TYPE_CHOICE   /* one of a few words */
};

struct conf_choice {
	const char *name; /* NULL ends the list */
	uint64_t value;
};

struct conf_key {
	const char *section; /* "server", ...; "stage", "group" or "variant" for those that have
	                      * a name */
	const char *name;
	enum conf_type type;
	size_t offset;     /* in struct conf, conf_stage, conf_group or conf_variant */
	size_t size;       /* of the field */
	uint64_t min, max; /* of numbers, in the unit they are kept in */
	const struct conf_choice *choices;
	bool (*is_valid)(const char *value); /* notation */
	const char *form;                    /* notation: what is expected */
	const char *default_value;           /* in the file's notation; NULL: the key is required */
	bool is_live;                        /* takes effect while the daemon runs */
	const char *help; /* sentences on lines of at most 78 bytes; a line of a table begins with
	                   * two spaces */
};

/* Writes the value into the key's field of base. Returns 0, or -EINVAL with "expected ..." in
 * expected and base unchanged. */
int conf_value_parse(const struct conf_key *key, const char *value, void *base, char *expected,
                     size_t expected_size);

/* Compares and copies the key's field. */
bool conf_value_equals(const struct conf_key *key, const void *base, const void *other);
void conf_value_copy(const struct conf_key *key, void *base, const void *from);

/* Appends what the key accepts: "a duration from 10ms to 1h", "store or decode". */
void conf_value_describe(const struct conf_key *key, struct text *to);

/* Appends the value of the key's field in base, in the file's notation. */
void conf_value_print(const struct conf_key *key, const void *base, struct text *to);

/* Appends the number in the key's unit, in the file's notation. Keys with numbers only. */
void conf_value_format(const struct conf_key *key, uint64_t value, struct text *to);

#endif
