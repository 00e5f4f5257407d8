/*
 * json_reader.c - reads JSON in place.
 *
 * skip_value() checks and passes over one value; everything else is built on it.
 */
#include "json_reader.h"

#include <string.h>

#include "base/check.h"

#define DEPTH_MAX 32

static const char *skip_value(const char *p, const char *end, unsigned depth);

static const char *skip_space(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
		p++;
	return p;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* 0..15, or -1 */
static int hex_digit(char c)
{
	return is_digit(c)            ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
	                              : -1;
}

static const char *skip_string(const char *p, const char *end)
{
	for (p++; p < end && *p != '"'; p++) {
		if ((unsigned char)*p < 0x20)
			return NULL;
		if (*p != '\\')
			continue;
		if (++p == end || !strchr("\"\\/bfnrtu", *p) || *p == '\0')
			return NULL;
		if (*p != 'u')
			continue;
		if (end - p < 5)
			return NULL;
		for (int i = 1; i <= 4; i++)
			if (hex_digit(p[i]) < 0)
				return NULL;
		p += 4;
	}
	return p < end ? p + 1 : NULL;
}

static const char *skip_digits(const char *p, const char *end)
{
	const char *start = p;

	while (p < end && is_digit(*p))
		p++;
	return p > start ? p : NULL;
}

static const char *skip_number(const char *p, const char *end)
{
	if (*p == '-')
		p++;
	if (p < end && *p == '0')
		p++;
	else
		p = skip_digits(p, end);
	if (p && p < end && *p == '.')
		p = skip_digits(p + 1, end);
	if (p && p < end && (*p == 'e' || *p == 'E')) {
		p++;
		if (p < end && (*p == '+' || *p == '-'))
			p++;
		p = skip_digits(p, end);
	}
	return p;
}

static const char *skip_word(const char *p, const char *end, const char *word)
{
	size_t n = strlen(word);

	return (size_t)(end - p) >= n && memcmp(p, word, n) == 0 ? p + n : NULL;
}

/* An object's name with its colon. */
static const char *skip_name(const char *p, const char *end)
{
	if (p == end || *p != '"')
		return NULL;
	p = skip_string(p, end);
	if (!p)
		return NULL;
	p = skip_space(p, end);
	return p < end && *p == ':' ? skip_space(p + 1, end) : NULL;
}

static const char *skip_container(const char *p, const char *end, unsigned depth)
{
	bool is_object = *p == '{';
	char close = is_object ? '}' : ']';

	p = skip_space(p + 1, end);
	if (p < end && *p == close)
		return p + 1;
	for (;;) {
		if (is_object)
			p = skip_name(p, end);
		if (p)
			p = skip_value(p, end, depth + 1);
		if (!p)
			return NULL;
		p = skip_space(p, end);
		if (p == end)
			return NULL;
		if (*p == close)
			return p + 1;
		if (*p != ',')
			return NULL;
		p = skip_space(p + 1, end);
	}
}

/* Behind the value that begins at p, or NULL if there is none. */
static const char *skip_value(const char *p, const char *end, unsigned depth)
{
	if (p >= end || depth > DEPTH_MAX)
		return NULL;
	switch (*p) {
	case '{':
	case '[':
		return skip_container(p, end, depth);
	case '"':
		return skip_string(p, end);
	case 't':
		return skip_word(p, end, "true");
	case 'f':
		return skip_word(p, end, "false");
	case 'n':
		return skip_word(p, end, "null");
	default:
		return skip_number(p, end);
	}
}

bool load_json_parse(struct load_json *value, const char *data, size_t length)
{
	const char *end = data + length, *start = skip_space(data, end),
		   *stop = skip_value(start, end, 0);

	if (!stop || skip_space(stop, end) != end)
		return false;
	*value = (struct load_json){ start, stop };
	return true;
}

bool load_json_is_object(const struct load_json *value)
{
	return *value->at == '{';
}

bool load_json_is_array(const struct load_json *value)
{
	return *value->at == '[';
}

bool load_json_next(const struct load_json *container, struct load_json_item *item)
{
	const char *end = container->end, *p;
	bool is_object = load_json_is_object(container);

	if (!is_object && !load_json_is_array(container))
		return false;
	p = skip_space(item->value.at ? item->value.end : container->at + 1, end);
	assert(p < end);
	if (*p == ',')
		p = skip_space(p + 1, end);
	if (*p == '}' || *p == ']')
		return false;
	if (is_object) {
		const char *close = skip_string(p, end);

		assert(close);
		item->name = p + 1;
		item->name_length = (size_t)(close - p) - 2;
		p = skip_name(p, end);
		assert(p);
	}
	item->value = (struct load_json){ p, skip_value(p, end, 0) };
	assert(item->value.end);
	return true;
}

bool load_json_member(const struct load_json *object, const char *name, struct load_json *value)
{
	struct load_json_item item = { 0 };

	if (!load_json_is_object(object))
		return false;
	while (load_json_next(object, &item)) {
		if (item.name_length == strlen(name) &&
		    memcmp(item.name, name, item.name_length) == 0) {
			*value = item.value;
			return true;
		}
	}
	return false;
}

bool load_json_uint(const struct load_json *value, uint64_t *n)
{
	*n = 0;
	for (const char *p = value->at; p < value->end; p++) {
		if (!is_digit(*p) || *n > (UINT64_C(1) << 53) / 10)
			return false;
		*n = *n * 10 + (uint64_t)(*p - '0');
	}
	return true;
}

/* The character of the escape whose letter is at *p, which moves behind it; 0 if it is not in
 * ASCII. */
static char unescape(const char **p)
{
	static const char letters[] = "bfnrt\"\\/", meanings[] = "\b\f\n\r\t\"\\/";
	const char *digits = *p + 1;

	if (**p != 'u')
		return meanings[strchr(letters, *(*p)++) - letters];
	*p += 5;
	if (digits[0] != '0' || digits[1] != '0' || digits[2] > '7')
		return 0;
	return (char)(hex_digit(digits[2]) * 16 + hex_digit(digits[3]));
}

bool load_json_ascii(const struct load_json *value, char *buffer, size_t size)
{
	const char *p = value->at + 1, *end = value->end - 1;
	size_t n = 0;

	if (*value->at != '"')
		return false;
	while (p < end) {
		char c = *p++;

		if (c == '\\')
			c = unescape(&p);
		if (c == 0 || (unsigned char)c > 0x7F || n + 1 >= size)
			return false;
		buffer[n++] = c;
	}
	if (n >= size)
		return false;
	buffer[n] = '\0';
	return true;
}
