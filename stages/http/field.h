/*
 * field.h - the syntax that HTTP and MIME header fields share: tokens, quoted strings, lists,
 * parameters. The lines of a request's header, and hosts.
 *
 * All functions work on slices of the caller's bytes, allocate nothing and accept any input. Any
 * thread.
 */
#ifndef DARKROOM_HTTP_FIELD_H
#define DARKROOM_HTTP_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Borrowed bytes, not terminated. */
struct slice {
	const char *data;
	size_t length;
};

/* A slice of a buffer that may move: an offset into it. */
struct span {
	size_t at;
	size_t length;
};

static inline struct slice span_slice(struct span s, const char *base)
{
	return (struct slice){ base + s.at, s.length };
}

/* Removes the first n bytes. */
static inline void slice_drop(struct slice *s, size_t n)
{
	s->data += n;
	s->length -= n;
}

/* Compare without regard to ASCII case; lower must be in lower case. */
bool slice_is(struct slice s, const char *lower);
bool slice_begins(struct slice s, const char *lower);

/* Returns whether a character may be in a token, and whether s is one (RFC 9110 5.6.2). */
bool field_is_token_char(char c);
bool slice_is_token(struct slice s);

/* Returns the value of a hexadecimal digit, or -1. */
int field_hex_value(char c);

/* Returns the byte of the %XX with which s begins (RFC 3986 2.1), or -1. */
int field_escaped(struct slice s);

/* Reads digits. A number that does not fit becomes UINT64_MAX. Returns false if s is empty or has
 * other characters. */
bool field_number(struct slice s, uint64_t *number);

/* Returns s without spaces, tabs and line ends at both ends. */
struct slice slice_trim(struct slice s);

/* Removes the next element of a comma-separated list from *rest, and trims it. Returns false at the
 * end. Commas in quoted strings do not separate; empty elements are skipped. */
bool field_list_next(struct slice *rest, struct slice *element);

/* Returns the trimmed text before the first semicolon, such as "type/subtype" of a Content-Type;
 * *params gets the rest. */
struct slice field_word(struct slice value, struct slice *params);

/* Removes the next NAME=VALUE of a query from *rest. Without '=', the value is empty. Returns false
 * at the end. */
bool field_query_next(struct slice *rest, struct slice *name, struct slice *value);

struct field_param {
	struct slice name;
	struct slice value; /* without its quotes; escapes are still in it */
	bool is_quoted;
};

/* Removes the next "; name=value" from *rest. Returns 1, 0 at the end, or -1 if it is malformed.
 * is_lenient, for Content-Disposition of a part: quotation marks within a quoted string need no
 * backslash. The string ends at the first one that comes before the end or before "; name=". Old
 * browsers send file names like that. */
int field_param_next(struct slice *rest, struct field_param *param, bool is_lenient);

#define BOUNDARY_MAX 70 /* RFC 2046 5.1.1 */

/* Copies the boundary parameter of a multipart Content-Type to out. Returns its length, or 0 with
 * the reason in *error (static). */
size_t field_boundary(struct slice content_type, char out[BOUNDARY_MAX], const char **error);

/* Returns whether an element of a list is the word, with or without parameters: a preference (RFC
 * 7240), a media type. */
bool field_has_word(struct slice value, const char *lower);

/* Returns whether a list of entity tags, or "*", has this one, which is strong and given with its
 * quotes. Weak comparison also finds W/"..." (RFC 9110 8.8.3.2). */
bool field_etag_matches(struct slice value, const char *etag, bool is_weak);

/* ---- the lines of a header ---- */

/* Removes the next field line from *rest, which ends with the head's empty line. The value has no
 * SP and HTAB at its ends (OWS, RFC 9110 5.6.3). Returns 1, 0 behind the last line, or -1 if the
 * line has no name, a name that is not a token, a bare CR, or continues the line before it (RFC
 * 9112 5.1 and 5.2). */
int head_next(struct slice *rest, struct slice *name, struct slice *value);

/* Removes lines up to the next one with this name, which must be in lower case. Returns false if
 * there is none. *value as above. */
bool head_find(struct slice *rest, const char *lower, struct slice *value);

/* Returns how many lines have the name. *value: of that line; length 0 if there are none or
 * several. */
unsigned head_single(struct slice rest, const char *lower, struct slice *value);

/* ---- HOST[:PORT] (RFC 9110 7.2, RFC 3986 3.2.2 and 3.2.3) ---- */

/* Splits off the port and checks both. The port must be below 65536 or empty. An IPv6 address is in
 * brackets, which *host keeps. Returns false if the value is not of this form; an empty value is
 * not. */
bool host_parse(struct slice value, struct slice *host);

/* Returns whether both are the same host, without regard to case. */
bool host_equals(struct slice host, struct slice other);

/* Returns whether a host is localhost, [::1] or an address 127.x.x.x. No name server answers for
 * these (RFC 6761 6.3). */
bool host_is_loopback(struct slice host);

/* Returns whether a host is an IPv4 address, or an IPv6 address in brackets. */
bool host_is_address(struct slice host);

#endif
