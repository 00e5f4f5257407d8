/* field.c - header field syntax (RFC 9110 5.6, RFC 2045 5.1), and hosts. Any thread. */
#include "field.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

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

int field_escaped(struct slice s)
{
	if (s.length < 3 || s.data[0] != '%')
		return -1;
	int high = field_hex_value(s.data[1]), low = field_hex_value(s.data[2]);

	return high < 0 || low < 0 ? -1 : high * 16 + low;
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

bool field_has_word(struct slice value, const char *lower)
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

/* ---- the lines of a header ---- */

int head_next(struct slice *rest, struct slice *name, struct slice *value)
{
	const char *lf = rest->length ? memchr(rest->data, '\n', rest->length) : NULL;

	if (!lf)
		return rest->length ? -1 : 0;
	struct slice line = { rest->data, (size_t)(lf - rest->data) };

	slice_drop(rest, line.length + 1);
	if (line.length && line.data[line.length - 1] == '\r')
		line.length--;
	if (line.length == 0)
		return rest->length ? -1 : 0;
	const char *colon = memchr(line.data, ':', line.length);

	if (!colon || memchr(line.data, '\r', line.length))
		return -1;
	*name = (struct slice){ line.data, (size_t)(colon - line.data) };
	slice_drop(&line, name->length + 1);
	*value = slice_trim(line);
	return slice_is_token(*name) ? 1 : -1;
}

bool head_find(struct slice *rest, const char *lower, struct slice *value)
{
	size_t length = strlen(lower);
	struct slice name;

	while (rest->length > length) {
		if (rest->data[length] == ':' && slice_begins(*rest, lower))
			return head_next(rest, &name, value) > 0;
		const char *lf = memchr(rest->data, '\n', rest->length);

		slice_drop(rest, lf ? (size_t)(lf + 1 - rest->data) : rest->length);
	}
	return false;
}

unsigned head_single(struct slice rest, const char *lower, struct slice *value)
{
	struct slice next;
	unsigned n = 0;

	*value = (struct slice){ rest.data, 0 };
	while (head_find(&rest, lower, &next)) {
		*value = n ? (struct slice){ rest.data, 0 } : next;
		n++;
	}
	return n;
}

/* ---- hosts ---- */

#define PORT_MAX 65535

static bool is_port(struct slice s)
{
	uint64_t port;

	return s.length == 0 || (field_number(s, &port) && port <= PORT_MAX);
}

/* Returns whether s is a registered name or an IPv4 address: unreserved characters, sub-delims and
 * %XX. */
static bool is_name(struct slice s)
{
	for (size_t i = 0; i < s.length; i++) {
		unsigned char c = (unsigned char)s.data[i];

		if (c == '%' && field_escaped((struct slice){ s.data + i, s.length - i }) < 0)
			return false;
		if (!isalnum(c) && (c == '\0' || !strchr("-._~%!$&'()*+,;=", c)))
			return false;
	}
	return s.length > 0;
}

/* Copies an address to a terminated text and parses it. */
static bool is_address(int family, struct slice s, unsigned char address[16])
{
	char text[INET6_ADDRSTRLEN];

	if (s.length >= sizeof text)
		return false;
	memcpy(text, s.data, s.length);
	text[s.length] = '\0';
	return inet_pton(family, text, address) == 1;
}

/* Returns whether s is what may stand in brackets: an IPv6 address, or a form that is not defined
 * yet, such as v1.x (IPvFuture). */
static bool is_literal(struct slice s)
{
	unsigned char address[16];

	if (s.length > 2 && (s.data[0] | 0x20) == 'v') {
		for (size_t i = 1; i < s.length; i++)
			if (!strchr("-._~!$&'()*+,;=:", s.data[i]) &&
			    !isalnum((unsigned char)s.data[i]))
				return false;
		return memchr(s.data, '.', s.length) && !memchr(s.data, '\0', s.length);
	}
	return is_address(AF_INET6, s, address);
}

bool host_parse(struct slice value, struct slice *host)
{
	bool is_bracketed = value.length > 0 && value.data[0] == '[';
	const char *end =
		value.length ? memchr(value.data, is_bracketed ? ']' : ':', value.length) : NULL;
	size_t length = end ? (size_t)(end - value.data) + is_bracketed : value.length;
	struct slice port = { value.data + length, value.length - length };

	/* A dot at the end says that the name is complete. */
	*host = (struct slice){ value.data,
		                length - (length > 1 && value.data[length - 1] == '.') };
	if (is_bracketed && !end)
		return false;
	if (port.length > 0) {
		if (port.data[0] != ':')
			return false;
		port.data++;
		port.length--;
	}
	return is_port(port) &&
	       (is_bracketed ? is_literal((struct slice){ host->data + 1, length - 2 })
	                     : is_name(*host));
}

bool host_equals(struct slice host, struct slice other)
{
	return host.length == other.length && strncasecmp(host.data, other.data, host.length) == 0;
}

/* Returns the family of a host that is an address, in brackets if it is AF_INET6; otherwise 0. */
static int parse_host(struct slice host, unsigned char address[16])
{
	if (host.length > 2 && host.data[0] == '[')
		return is_address(AF_INET6, (struct slice){ host.data + 1, host.length - 2 },
		                  address)
		               ? AF_INET6
		               : 0;
	return is_address(AF_INET, host, address) ? AF_INET : 0;
}

bool host_is_loopback(struct slice host)
{
	static const unsigned char loopback[16] = { [15] = 1 };
	unsigned char address[16];
	int family = parse_host(host, address);

	if (family == AF_INET6)
		return memcmp(address, loopback, sizeof address) == 0;
	return family == AF_INET ? address[0] == 127 : slice_is(host, "localhost");
}

bool host_is_address(struct slice host)
{
	unsigned char address[16];

	return parse_host(host, address) != 0;
}
