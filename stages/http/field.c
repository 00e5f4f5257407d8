/* field.c - header field syntax (RFC 9110 5.6, RFC 2045 5.1). Any thread. */
#include "field.h"

#include <string.h>

static char to_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* A line end counts as space: it can only be part of a folded MIME header. */
static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

bool slice_begins(struct slice s, const char *lower)
{
	size_t i;

	for (i = 0; i < s.length && lower[i]; i++) {
		if (to_lower(s.data[i]) != lower[i])
			return false;
	}
	return lower[i] == '\0';
}

bool slice_is(struct slice s, const char *lower)
{
	return s.length == strlen(lower) && slice_begins(s, lower);
}

bool field_is_token_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c != '\0' && strchr("-_!#$%&'*+.^`|~", c));
}

bool slice_is_token(struct slice s)
{
	size_t i = 0;

	while (i < s.length && field_is_token_char(s.data[i]))
		i++;
	return i > 0 && i == s.length;
}

int field_hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = to_lower(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool field_number(struct slice s, uint64_t *number)
{
	*number = 0;
	for (size_t i = 0; i < s.length; i++) {
		if (s.data[i] < '0' || s.data[i] > '9')
			return false;
		if (__builtin_mul_overflow(*number, 10, number) ||
		    __builtin_add_overflow(*number, (uint64_t)(s.data[i] - '0'), number))
			*number = UINT64_MAX;
	}
	return s.length > 0;
}

struct slice slice_trim(struct slice s)
{
	while (s.length > 0 && is_space(s.data[0])) {
		s.data++;
		s.length--;
	}
	while (s.length > 0 && is_space(s.data[s.length - 1]))
		s.length--;
	return s;
}

/* Returns the number of bytes before the first separator outside quoted strings, or all. */
static size_t find_outside_quotes(struct slice s, char separator)
{
	bool in_quotes = false;

	for (size_t i = 0; i < s.length; i++) {
		if (in_quotes && s.data[i] == '\\')
			i++;
		else if (s.data[i] == '"')
			in_quotes = !in_quotes;
		else if (s.data[i] == separator && !in_quotes)
			return i;
	}
	return s.length;
}

bool field_list_next(struct slice *rest, struct slice *element)
{
	while (rest->length > 0) {
		size_t n = find_outside_quotes(*rest, ',');

		*element = slice_trim((struct slice){ rest->data, n });
		slice_drop(rest, n < rest->length ? n + 1 : n);
		if (element->length > 0)
			return true;
	}
	return false;
}

bool field_query_next(struct slice *rest, struct slice *name, struct slice *value)
{
	if (rest->length == 0)
		return false;
	const char *end = memchr(rest->data, '&', rest->length);
	size_t length = end ? (size_t)(end - rest->data) : rest->length;
	const char *equals = memchr(rest->data, '=', length);
	size_t name_length = equals ? (size_t)(equals - rest->data) : length;

	*name = (struct slice){ rest->data, name_length };
	*value = (struct slice){ rest->data + name_length + (equals != NULL),
		                 length - name_length - (equals != NULL) };
	slice_drop(rest, length + (end != NULL));
	return true;
}

struct slice field_word(struct slice value, struct slice *params)
{
	size_t n = find_outside_quotes(value, ';');

	*params = value;
	slice_drop(params, n);
	return slice_trim((struct slice){ value.data, n });
}

/* Returns whether a parameter may end before these bytes. */
static bool is_param_end(struct slice rest)
{
	size_t n = 0;

	rest = slice_trim(rest);
	if (rest.length == 0 || rest.data[0] != ';')
		return rest.length == 0;
	slice_drop(&rest, 1);
	rest = slice_trim(rest);
	while (n < rest.length && field_is_token_char(rest.data[n]))
		n++;
	if (n == 0)
		return rest.length == 0 || rest.data[0] == ';';
	while (n < rest.length && is_space(rest.data[n]))
		n++;
	return n < rest.length && rest.data[n] == '=';
}

/* Removes the quoted string at the head of *rest. Returns false if it has no end. */
static bool parse_quoted(struct slice *rest, struct slice *value, bool is_lenient)
{
	for (size_t i = 1; i < rest->length; i++) {
		if (rest->data[i] == '\\') {
			i++;
		} else if (rest->data[i] == '"' &&
		           (!is_lenient || is_param_end((struct slice){ rest->data + i + 1,
		                                                        rest->length - i - 1 }))) {
			*value = (struct slice){ rest->data + 1, i - 1 };
			slice_drop(rest, i + 1);
			return true;
		}
	}
	return false;
}

int field_param_next(struct slice *rest, struct field_param *param, bool is_lenient)
{
	/* A trailing semicolon is common and harmless. */
	for (;;) {
		*rest = slice_trim(*rest);
		if (rest->length == 0)
			return 0;
		if (rest->data[0] != ';')
			return -1;
		slice_drop(rest, 1);
		*rest = slice_trim(*rest);
		if (rest->length > 0 && rest->data[0] != ';')
			break;
	}
	size_t n = 0;

	while (n < rest->length && rest->data[n] != '=' && rest->data[n] != ';')
		n++;
	if (n == 0 || n == rest->length || rest->data[n] != '=')
		return -1;
	param->name = slice_trim((struct slice){ rest->data, n });
	slice_drop(rest, n + 1);
	*rest = slice_trim(*rest);
	param->is_quoted = rest->length > 0 && rest->data[0] == '"';
	if (param->is_quoted)
		return parse_quoted(rest, &param->value, is_lenient) ? 1 : -1;
	n = 0;
	while (n < rest->length && rest->data[n] != ';')
		n++;
	param->value = slice_trim((struct slice){ rest->data, n });
	slice_drop(rest, n);
	return 1;
}

static bool is_boundary_char(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       (c != '\0' && strchr("'()+_,-./:=? ", c));
}

size_t field_boundary(struct slice content_type, char out[BOUNDARY_MAX], const char **error)
{
	struct field_param param;
	struct slice rest;
	size_t length = 0;
	int found;

	field_word(content_type, &rest);
	while ((found = field_param_next(&rest, &param, false)) > 0 &&
	       !slice_is(param.name, "boundary"))
		continue;
	*error = found < 0 ? "the parameters of Content-Type are malformed"
	                   : "Content-Type has no boundary parameter";
	if (found <= 0)
		return 0;
	*error = "the boundary is empty, has more than 70 characters, or has one that RFC 2046 "
		 "does not allow, such as \\ or $";
	for (size_t i = 0; i < param.value.length; i++) {
		if (param.is_quoted && param.value.data[i] == '\\' && i + 1 < param.value.length)
			i++;
		if (length == BOUNDARY_MAX || !is_boundary_char(param.value.data[i]))
			return 0;
		out[length++] = param.value.data[i];
	}
	if (length == 0 || out[length - 1] == ' ')
		return 0;
	return length;
}

bool field_prefers(struct slice value, const char *lower)
{
	struct slice element, params;

	while (field_list_next(&value, &element)) {
		if (slice_is(field_word(element, &params), lower))
			return true;
	}
	return false;
}

bool field_etag_matches(struct slice value, const char *etag, bool is_weak)
{
	struct slice element;

	while (field_list_next(&value, &element)) {
		if (element.length == 1 && element.data[0] == '*')
			return true;
		if (is_weak && element.length > 2 && element.data[0] == 'W' &&
		    element.data[1] == '/')
			slice_drop(&element, 2);
		if (element.length == strlen(etag) &&
		    memcmp(element.data, etag, element.length) == 0)
			return true;
	}
	return false;
}
