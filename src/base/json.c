/*
 * json.c - values, escapes and commas of JSON (RFC 8259). Knows nothing of what they are for.
 */
#include "json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "text.h"

static const char replacement_character[] = "\xEF\xBF\xBD"; /* U+FFFD */

size_t json_utf8_length(const unsigned char *s, size_t n)
{
	unsigned char low = 0x80, high = 0xBF; /* range of the second byte */
	size_t length;

	if (s[0] < 0x80)
		return 1;
	if (s[0] < 0xC2 || s[0] > 0xF4)
		return 0;
	length = s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4;
	if (length > n)
		return 0;
	if (s[0] == 0xE0)
		low = 0xA0;
	else if (s[0] == 0xED)
		high = 0x9F;
	else if (s[0] == 0xF0)
		low = 0x90;
	else if (s[0] == 0xF4)
		high = 0x8F;
	if (s[1] < low || s[1] > high)
		return 0;
	for (size_t i = 2; i < length; i++)
		if ((s[i] & 0xC0) != 0x80)
			return 0;
	return length;
}

static void json_escape(struct text *t, unsigned char c)
{
	static const char shorts[] = "\b\f\n\r\t\"\\", letters[] = "bfnrt\"\\";
	const char *found = c ? strchr(shorts, c) : NULL;
	char out[8];

	if (found) {
		out[0] = '\\';
		out[1] = letters[found - shorts];
		text_put(t, out, 2);
	} else {
		snprintf(out, sizeof out, "\\u%04x", (unsigned)c);
		text_put(t, out, 6);
	}
}

static void json_quote(struct text *t, const char *value, size_t length)
{
	const unsigned char *s = (const unsigned char *)value;
	size_t i = 0, plain = 0; /* s[plain..i) is unchanged and not yet written */

	text_put(t, "\"", 1);
	while (i < length) {
		if (s[i] >= 0x20 && s[i] < 0x7F && s[i] != '"' && s[i] != '\\') {
			i++; /* nearly all bytes */
			continue;
		}
		size_t step = json_utf8_length(s + i, length - i);

		if (step > 1) {
			i += step;
			continue;
		}
		text_put(t, value + plain, i - plain);
		if (step == 0)
			text_puts(t, replacement_character);
		else
			json_escape(t, s[i]);
		plain = ++i;
	}
	text_put(t, value + plain, i - plain);
	text_put(t, "\"", 1);
}

/* Writes what precedes a value: a comma unless it is the first, and the name. */
static void json_begin(struct json *j, const char *name)
{
	if (j->need_comma)
		text_put(j->text, ",\"", name ? 2 : 1);
	else if (name)
		text_put(j->text, "\"", 1);
	if (name) {
		debug_assert(!strpbrk(name, "\"\\"));
		text_puts(j->text, name);
		text_put(j->text, "\":", 2);
	}
	j->need_comma = true;
}

void json_raw(struct json *j, const char *name, const char *data, size_t length)
{
	json_begin(j, name);
	text_put(j->text, data, length);
}

void json_object(struct json *j, const char *name)
{
	json_begin(j, name);
	text_put(j->text, "{", 1);
	j->need_comma = false;
}

void json_object_end(struct json *j)
{
	text_put(j->text, "}", 1);
	j->need_comma = true;
}

void json_array(struct json *j, const char *name)
{
	json_begin(j, name);
	text_put(j->text, "[", 1);
	j->need_comma = false;
}

void json_array_end(struct json *j)
{
	text_put(j->text, "]", 1);
	j->need_comma = true;
}

void json_string(struct json *j, const char *name, const char *value)
{
	json_string_n(j, name, value, strlen(value));
}

void json_string_n(struct json *j, const char *name, const char *value, size_t length)
{
	json_begin(j, name);
	json_quote(j->text, value, length);
}

void json_uint(struct json *j, const char *name, uint64_t value)
{
	json_begin(j, name);
	text_uint(j->text, value);
}

void json_ms(struct json *j, const char *name, uint64_t ns)
{
	json_begin(j, name);
	text_ms(j->text, ns);
}

/* Writes nine significant digits or a whole number, with at most 15 decimals and no exponent. No
 * locale is set: the point is a '.'. */
static void put_number(struct text *text, double value)
{
	char digits[340];
	double size = fabs(value);

	if (size > 0 && (size < 1e-4 || size >= 1e8)) {
		int end = snprintf(digits, sizeof digits, "%.*f", size < 1 ? 15 : 0, value);

		while (size < 1 && digits[end - 1] == '0')
			end--;
		digits[digits[end - 1] == '.' ? end - 1 : end] = '\0';
	} else {
		snprintf(digits, sizeof digits, "%.9g", value);
	}
	text_puts(text, digits);
}

void json_double(struct json *j, const char *name, double value)
{
	json_begin(j, name);
	if (isfinite(value))
		put_number(j->text, value);
	else
		text_puts(j->text, "null");
}

void json_bool(struct json *j, const char *name, bool value)
{
	json_begin(j, name);
	text_puts(j->text, value ? "true" : "false");
}
