/* conf_endpoint.c - splits a URL without a path. Any thread. */
#include "conf_endpoint.h"

#include <stdlib.h>
#include <string.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyz"
#define CAPITALS "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

#define PORT_DIGITS_MAX 5
#define PORT_MAX 65535

/* Reads ":PORT" or nothing. Returns false if it is neither. */
static bool read_port(const char *text, struct conf_endpoint *e)
{
	uint16_t usual = e->is_tls ? 443 : 80;

	e->port = usual;
	if (*text == ':') {
		size_t digits = strspn(text + 1, DIGITS);
		unsigned long port = digits <= PORT_DIGITS_MAX ? strtoul(text + 1, NULL, 10) : 0;

		if (port == 0 || port > PORT_MAX)
			return false;
		e->port = (uint16_t)port;
		text += 1 + digits;
	}
	e->has_usual_port = e->port == usual;
	return *text == '\0';
}

bool conf_endpoint_parse(const char *text, struct conf_endpoint *e)
{
	static const char http[] = "http://", https[] = "https://";

	*e = (struct conf_endpoint){ .is_tls = strncmp(text, https, strlen(https)) == 0 };
	if (!e->is_tls && strncmp(text, http, strlen(http)) != 0)
		return false;
	text += strlen(e->is_tls ? https : http);
	bool has_brackets = *text == '[';

	text += has_brackets;
	size_t n =
		strspn(text, has_brackets ? "abcdefABCDEF:." DIGITS : LETTERS CAPITALS DIGITS ".-");

	if (n == 0 || n >= sizeof e->host || (has_brackets && text[n] != ']'))
		return false;
	memcpy(e->host, text, n);
	return read_port(text + n + has_brackets, e);
}

bool conf_endpoint_is_valid(const char *text)
{
	struct conf_endpoint ignored;

	return !*text || conf_endpoint_parse(text, &ignored);
}

bool conf_bucket_is_valid(const char *text)
{
	size_t length = strlen(text);

	return length == 0 ||
	       (length >= 3 && length <= 63 && strspn(text, LETTERS DIGITS ".-") == length &&
	        text[0] != '.' && text[length - 1] != '.' && !strstr(text, ".."));
}

bool conf_prefix_is_valid(const char *text)
{
	size_t length = strlen(text);

	if (length == 0)
		return true;
	/* Parts of dots and empty ones are shortened on their way. */
	return strspn(text, LETTERS CAPITALS DIGITS "-_./") == length && text[0] != '/' &&
	       text[0] != '.' && !strstr(text, "/.") && !strstr(text, "//") &&
	       text[length - 1] == '/';
}
