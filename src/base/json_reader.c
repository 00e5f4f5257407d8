/*
 * json_reader.c - checks JSON and finds values in it.
 *
 * Not a library, because darkroom-load judges servers with it. json-c 0.16 accepts {'a':NaN} and
 * line feeds in strings even with JSON_TOKENER_STRICT. jansson is strict, but its functions have
 * the names of those in text.h. A tree would also take up to 20 times the memory of a hostile text.
 */
#include "json_reader.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

#define DEPTH_MAX 32
#define INTEGER_DIGITS_MAX 16 /* of 2^53 */

static const char digits[] = "0123456789";

/* ---- skipping: each returns the end of what begins at p, or NULL if that is malformed ---- */

static const char *skip_value(const char *p, unsigned depth);

static const char *skip_space(const char *p)
{
	return p + strspn(p, " \t\n\r");
}

static const char *skip_string(const char *p)
{
	for (p++; *p != '"'; p++) {
		if ((unsigned char)*p < 0x20)
			return NULL;
		if (*p != '\\')
			continue;
		p++;
		if (*p == '\0' || !strchr("\"\\/bfnrtu", *p))
			return NULL;
		if (*p == 'u' && strspn(p + 1, "0123456789abcdefABCDEF") < 4)
			return NULL;
	}
	return p + 1;
}

static const char *skip_digits(const char *p)
{
	size_t n = strspn(p, digits);

	return n > 0 ? p + n : NULL;
}

static const char *skip_number(const char *p)
{
	p += *p == '-';
	p = *p == '0' ? p + 1 : skip_digits(p);
	if (p && *p == '.')
		p = skip_digits(p + 1);
	if (p && (*p == 'e' || *p == 'E'))
		p = skip_digits(p + (p[1] == '+' || p[1] == '-' ? 2 : 1));
	return p;
}

static const char *skip_word(const char *p, const char *word)
{
	return strncmp(p, word, strlen(word)) == 0 ? p + strlen(word) : NULL;
}

/* An object's name, its colon and the space after it. */
static const char *skip_name(const char *p)
{
	p = *p == '"' ? skip_string(p) : NULL;
	p = p ? skip_space(p) : NULL;
	return p && *p == ':' ? skip_space(p + 1) : NULL;
}

static const char *skip_container(const char *p, unsigned depth)
{
	char close = *p == '{' ? '}' : ']';

	p = skip_space(p + 1);
	if (*p == close)
		return p + 1;
	for (;; p = skip_space(p + 1)) {
		if (close == '}')
			p = skip_name(p);
		if (p)
			p = skip_value(p, depth + 1);
		if (!p)
			return NULL;
		p = skip_space(p);
		if (*p == close)
			return p + 1;
		if (*p != ',')
			return NULL;
	}
}

static const char *skip_value(const char *p, unsigned depth)
{
	switch (*p) {
	case '{':
	case '[':
		return depth < DEPTH_MAX ? skip_container(p, depth) : NULL;
	case '"':
		return skip_string(p);
	case 't':
		return skip_word(p, "true");
	case 'f':
		return skip_word(p, "false");
	case 'n':
		return skip_word(p, "null");
	default:
		return skip_number(p);
	}
}

/* ---- look-ups in a checked text ---- */

const char *json_reader_check(const char *text, size_t length)
{
	const char *value = skip_space(text), *end = skip_value(value, 0);

	assert(text[length] == '\0');
	/* a zero byte within the text ends it too early */
	return end && skip_space(end) == text + length ? value : NULL;
}

/* Like json_reader_next(), but at the name of an object's member. */
static const char *next_item(const char *container, const char *value)
{
	const char *p = container + 1;

	if (*container != '{' && *container != '[')
		return NULL;
	if (value)
		p = skip_value(value, 0);
	assert(p); /* the text was checked */
	p = skip_space(p);
	if (*p == ',')
		p = skip_space(p + 1);
	return *p == '}' || *p == ']' ? NULL : p;
}

const char *json_reader_next(const char *container, const char *value)
{
	const char *item = next_item(container, value);

	return item && *container == '{' ? skip_name(item) : item;
}

const char *json_reader_next_named(const char *object, const char *value, char *name, size_t size)
{
	const char *item = *object == '{' ? next_item(object, value) : NULL;

	return item && json_reader_ascii(item, name, size) ? skip_name(item) : NULL;
}

const char *json_reader_member(const char *object, const char *name)
{
	size_t length = strlen(name);
	const char *item = *object == '{' ? next_item(object, NULL) : NULL;

	while (item) {
		const char *value = skip_name(item);

		if (strncmp(item + 1, name, length) == 0 && item[1 + length] == '"')
			return value;
		item = next_item(object, value);
	}
	return NULL;
}

const char *json_reader_end(const char *value)
{
	return skip_value(value, 0);
}

bool json_reader_uint(const char *value, uint64_t *n)
{
	size_t length = value ? strspn(value, digits) : 0;

	*n = 0;
	for (size_t i = 0; i < length && i < INTEGER_DIGITS_MAX; i++)
		*n = *n * 10 + (uint64_t)(value[i] - '0');
	return length > 0 && length <= INTEGER_DIGITS_MAX && *n <= UINT64_C(1) << 53 &&
	       value[length] != '.' && value[length] != 'e' && value[length] != 'E';
}

bool json_reader_double(const char *value, double *x)
{
	bool is_number = value && (*value == '-' || (*value >= '0' && *value <= '9'));

	*x = is_number ? strtod(value, NULL) : 0;
	return is_number && isfinite(*x);
}

/* Reads a character, or an escape that stands for one of printable ASCII, and moves *p on. Returns
 * 0 for anything else. */
static char read_character(const char **p)
{
	unsigned code = (unsigned char)*(*p)++;

	if (code == '\\') {
		code = (unsigned char)*(*p)++;
		if (code == 'u' && sscanf(*p, "%4x", &code) == 1)
			*p += 4;
		else if (!strchr("\"\\/", (int)code))
			return 0;
	}
	return code >= 0x20 && code < 0x7F ? (char)code : 0;
}

bool json_reader_ascii(const char *value, char *buffer, size_t size)
{
	size_t n = 0;

	if (!value || *value++ != '"')
		return false;
	while (*value != '"') {
		char c = read_character(&value);

		if (c == 0 || n + 1 >= size)
			return false;
		buffer[n++] = c;
	}
	if (n >= size)
		return false;
	buffer[n] = '\0';
	return true;
}
