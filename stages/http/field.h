/*
 * field.h - the syntax that HTTP and MIME header fields share: tokens, quoted strings, lists,
 * parameters.
 *
 * Everything works on slices of the caller's bytes, allocates nothing and bears any input. Any
 * thread.
 */
#ifndef DARKROOM_HTTP_FIELD_H
#define DARKROOM_HTTP_FIELD_H

#include <stdbool.h>
#include <stddef.h>

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

/* ASCII case does not matter; lower is in lower case. */
bool slice_is(struct slice s, const char *lower);
bool slice_begins(struct slice s, const char *lower);

/* Without spaces, tabs and line ends at both ends. */
struct slice slice_trim(struct slice s);

/* Takes the next element of a comma-separated list off *rest: true and the trimmed element, false
 * at the end. Commas in quoted strings do not separate; empty elements are skipped. */
bool field_list_next(struct slice *rest, struct slice *element);

/* "type/subtype" of a Content-Type, or the word before the first semicolon of any such field;
 * *params gets the rest. */
struct slice field_word(struct slice value, struct slice *params);

struct field_param {
	struct slice name;
	struct slice value; /* without its quotes, escapes still in it */
	bool is_quoted;
};

/* Takes the next "; name=value" off *rest: 1, 0 at the end, -1 malformed. */
int field_param_next(struct slice *rest, struct field_param *param);

#define BOUNDARY_MAX 70 /* RFC 2046 5.1.1 */

/* The boundary parameter of a multipart Content-Type, into out. Its length, or 0: what is wrong is
 * in *error. */
size_t field_boundary(struct slice content_type, char out[BOUNDARY_MAX], const char **error);

/* RFC 7240: whether a Prefer field holds the preference. */
bool field_prefers(struct slice value, const char *lower);

/* RFC 9110 13.1.2, weak comparison: whether an If-None-Match list (or "*") holds the entity tag,
 * given with quotes. */
bool field_etag_matches(struct slice value, const char *etag);

#endif
