/*
 * conf_value.h - the types of configuration keys: text to value, value to text, and the
 * description of what a key accepts.
 *
 * A key is a row of the table in conf_rows.h; parsing, messages and documentation come from that
 * row. Any thread.
 */
#ifndef DARKROOM_CONF_CONF_VALUE_H
#define DARKROOM_CONF_CONF_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text;

enum conf_type {
	CONF_TYPE_TEXT = 1, /* kept in a char array */
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
	const char *section; /* conf_section.name */
	const char *name;
	enum conf_type type;
	size_t offset;     /* in the struct of its section */
	size_t size;       /* of the field */
	uint64_t min, max; /* of numbers, in the unit they are kept in; min of texts: 0 or 1 byte */
	const struct conf_choice *choices;
	bool (*is_valid)(const char *value); /* of texts that are not empty; NULL: any text */
	const char *form;          /* what is_valid() accepts; NULL: any text, or a policy's name */
	const char *default_value; /* in the file's notation; NULL: the key is required */
	bool is_live;              /* takes effect while the daemon runs */
	const char *help;
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

/* ---- notations of texts that are not empty ---- */

bool conf_is_listen(const char *value);           /* HOST:PORT or [HOST]:PORT */
bool conf_is_admin_address(const char *value);    /* the same, "auto", "no" or an absolute path */
bool conf_is_origin(const char *value);           /* "*" or SCHEME://HOST[:PORT] */
bool conf_are_networks(const char *value);        /* addresses or networks, separated by spaces */
bool conf_are_hosts(const char *value);           /* "*" or hosts without ports */
bool conf_is_user_name(const char *value);        /* whether the user exists is not checked */
bool conf_is_socket(const char *value);           /* "auto" or an absolute path */
bool conf_is_path(const char *value);             /* an absolute path */
bool conf_is_log_file(const char *value);         /* "stderr" or an absolute path of a file */
bool conf_is_color(const char *value);            /* RRGGBB, hexadecimal */
bool conf_are_formats(const char *value);         /* png, webp, avif */
bool conf_are_variant_formats(const char *value); /* jpeg, and perhaps avif, webp */
bool conf_are_fields(const char *value);          /* names of form fields, for store.metadata */

/* Returns the colour of a text that conf_is_color() accepts, as 0xRRGGBB. */
uint32_t conf_color(const char *value);

/* Returns whether a valid list of fields or formats has the name. */
bool conf_fields_have(const char *value, const char *name, size_t length);

#endif
