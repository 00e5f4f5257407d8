/*
 * conf_value.c - the notation of sizes, durations, addresses and origins.
 *
 * Knows no key. Any thread.
 */
#include "conf_value.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/check.h"
#include "base/limits.h"
#include "base/network.h"
#include "base/text.h"
#include "conf_number.h"
#include "policy/policy.h"

#define FIELDS_MAX 8
#define FIELD_NAME_MAX 32 /* bytes */

/* Of numbers. */
static const struct {
	const char *what, *units_help;
	const struct conf_unit *units;
	uint64_t in_units; /* the kept value's unit */
} types[] = {
	[CONF_TYPE_NUMBER] = { "a whole number", "", conf_units_none, 1 },
	[CONF_TYPE_BYTES] = { "bytes", " (K, M, G: powers of 1024)", conf_units_bytes, 1 },
	[CONF_TYPE_PIXELS] = { "pixels", " (K, M, G: powers of 1000)", conf_units_pixels, 1 },
	[CONF_TYPE_MS] = { "a duration", " (ms, s, m, h, d)", conf_units_duration, 1000 },
	[CONF_TYPE_US] = { "a duration", " (us, ms, s)", conf_units_duration, 1 },
	[CONF_TYPE_AUTO] = { "auto or a whole number", "", conf_units_none, 1 },
	[CONF_TYPE_DECIMAL] = { "a number", " (at most three digits behind the point)",
	                        conf_units_none, 1 },
};

/* ---- back to text ---- */

void conf_value_format(const struct conf_key *key, uint64_t value, struct text *to)
{
	const struct conf_unit *unit = types[key->type].units;
	uint64_t in_units = value * types[key->type].in_units;

	if (key->type == CONF_TYPE_AUTO && value == CONF_AUTO) {
		text_puts(to, "auto");
		return;
	}
	if (key->type == CONF_TYPE_DECIMAL) {
		text_printf(to, "%.15g", (double)value / 1000);
		return;
	}
	while (value && in_units % unit->factor != 0)
		unit++;
	text_printf(to, "%" PRIu64 "%s", in_units / unit->factor, value ? unit->name : "");
}

void conf_value_print(const struct conf_key *key, const void *base, struct text *to)
{
	const char *field = (const char *)base + key->offset;
	const struct conf_choice *choice = key->choices;
	uint64_t value;

	if (key->type == CONF_TYPE_TEXT) {
		text_puts(to, field);
		return;
	}
	memcpy(&value, field, sizeof value);
	if (key->type != CONF_TYPE_CHOICE) {
		conf_value_format(key, value, to);
		return;
	}
	while (choice->name && choice->value != value)
		choice++;
	assert(choice->name);
	text_puts(to, choice->name);
}

static void describe_text(const struct conf_key *key, struct text *to)
{
	char policies[256];

	if (key->form) {
		text_printf(to, "%s%s", key->form, key->min ? "" : ", or nothing");
	} else if (key->is_valid) {
		policy_list(policies, sizeof policies);
		text_printf(to, "one of %s", policies);
	} else {
		text_printf(to, "text of %sat most %zu bytes", key->min ? "at least one and " : "",
		            key->size - 1);
	}
}

void conf_value_describe(const struct conf_key *key, struct text *to)
{
	if (key->type == CONF_TYPE_TEXT) {
		describe_text(key, to);
		return;
	}
	for (const struct conf_choice *c = key->choices; c && c->name; c++)
		text_printf(to, "%s%s",
		            c == key->choices ? ""
		            : c[1].name       ? ", "
		                              : " or ",
		            c->name);
	if (key->choices)
		return;
	text_printf(to, "%s from ", types[key->type].what);
	conf_value_format(key, key->min, to);
	text_puts(to, " to ");
	conf_value_format(key, key->max, to);
	text_puts(to, types[key->type].units_help);
}

/* ---- from text ---- */

static bool parse_scaled(const struct conf_key *key, const char *value, uint64_t *out)
{
	uint64_t n, unit = types[key->type].in_units;

	if (key->type == CONF_TYPE_AUTO && strcasecmp(value, "auto") == 0) {
		*out = CONF_AUTO;
		return true;
	}
	if (key->type == CONF_TYPE_DECIMAL ? !conf_decimal_parse(value, &n)
	                                   : !conf_units_parse(value, types[key->type].units, &n))
		return false;
	*out = n / unit;
	return n % unit == 0 && *out >= key->min && *out <= key->max;
}

static bool parse_choice(const struct conf_key *key, const char *value, uint64_t *out)
{
	for (const struct conf_choice *c = key->choices; c->name; c++)
		if (strcasecmp(value, c->name) == 0) {
			*out = c->value;
			return true;
		}
	return false;
}

static bool is_port(const char *s)
{
	uint64_t port;

	return isdigit((unsigned char)*s) && strlen(s) <= 5 &&
	       conf_units_parse(s, conf_units_none, &port) && port <= 65535;
}

/* Accepts a host name of letters, digits, '-' and '.', or an IPv4 address. Digits and dots alone
 * must be an address. */
static bool is_host(const char *s)
{
	struct in_addr ignored;

	if (*s == '\0' || *s == '-' ||
	    s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-")] !=
	            '\0')
		return false;
	return s[strspn(s, "0123456789.")] != '\0' || inet_pton(AF_INET, s, &ignored) == 1;
}

/* Accepts the first bytes of a text: a host as above, or an IPv6 address in brackets. */
static bool is_host_or_literal(const char *value, size_t length)
{
	char host[CONF_TEXT_MAX];
	struct in6_addr ignored;

	if (length == 0 || length >= sizeof host)
		return false;
	memcpy(host, value, length);
	host[length] = '\0';
	if (host[0] != '[')
		return is_host(host);
	if (host[length - 1] != ']')
		return false;
	host[length - 1] = '\0';
	return inet_pton(AF_INET6, host + 1, &ignored) == 1;
}

bool conf_is_listen(const char *value)
{
	const char *colon = strrchr(value, ':');

	return colon && is_port(colon + 1) && is_host_or_literal(value, (size_t)(colon - value));
}

bool conf_are_hosts(const char *value)
{
	if (strcmp(value, "*") == 0)
		return true;
	while (*(value += strspn(value, " "))) {
		size_t length = strcspn(value, " ");

		if (!is_host_or_literal(value, length))
			return false;
		value += length;
	}
	return true;
}

/* Accepts what browsers send as Origin. Anything else would never match; a path at the end is
 * a common mistake. */
bool conf_is_origin(const char *value)
{
	const char *host = strstr(value, "://");

	if (strcmp(value, "*") == 0)
		return true;
	if (!host || host == value || !isalpha((unsigned char)*value))
		return false;
	for (const char *c = value; c < host; c++)
		if (!isalnum((unsigned char)*c) && !strchr("+-.", *c))
			return false;
	host += 3;
	for (const char *c = host; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("-._:[]", *c))
			return false;
	return *host != '\0';
}

bool conf_is_color(const char *value)
{
	return strlen(value) == 6 && strspn(value, "0123456789abcdefABCDEF") == 6;
}

uint32_t conf_color(const char *value)
{
	return (uint32_t)strtoul(value, NULL, 16);
}

bool conf_is_user_name(const char *value)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

	return *value != '-' && !value[strspn(value, allowed)];
}

bool conf_is_admin_address(const char *value)
{
	if (*value == '/')
		return strlen(value) < CONF_SOCKET_MAX;
	return strcmp(value, "auto") == 0 || strcmp(value, "no") == 0 || conf_is_listen(value);
}

bool conf_are_networks(const char *value)
{
	struct networks ignored;

	return networks_parse(value, &ignored) == 0;
}

bool conf_is_path(const char *value)
{
	return *value == '/';
}

bool conf_is_socket(const char *value)
{
	return *value == '/' || strcmp(value, "auto") == 0;
}

bool conf_is_log_file(const char *value)
{
	return strcmp(value, "stderr") == 0 || (*value == '/' && value[strlen(value) - 1] != '/');
}

/* Removes the next name from *at. Returns its length, or 0 at the end. */
static size_t next_field(const char **at, const char **name)
{
	static const char between[] = ", \t";

	*name = *at + strspn(*at, between);
	size_t length = strcspn(*name, between);

	*at = *name + length;
	return length;
}

static bool are_among(const char *value, const char *names)
{
	const char *name;

	for (size_t n; (n = next_field(&value, &name));)
		if (!conf_fields_have(names, name, n))
			return false;
	return true;
}

bool conf_are_formats(const char *value)
{
	return are_among(value, "png webp avif");
}

bool conf_are_variant_formats(const char *value)
{
	return are_among(value, "jpeg avif webp") && conf_fields_have(value, "jpeg", 4);
}

bool conf_are_fields(const char *value)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
	const char *name;
	unsigned count = 0;

	for (size_t n; (n = next_field(&value, &name)); count++)
		if (n > FIELD_NAME_MAX || strspn(name, allowed) < n || *name == '-' ||
		    (n == 5 && memcmp(name, "focus", n) == 0)) /* which has a meaning of its own */
			return false;
	return count <= FIELDS_MAX;
}

bool conf_fields_have(const char *value, const char *name, size_t length)
{
	const char *one;

	for (size_t n; (n = next_field(&value, &one));)
		if (n == length && memcmp(one, name, n) == 0)
			return true;
	return false;
}

static bool is_text_good(const struct conf_key *key, const char *value)
{
	if (strlen(value) < key->min || strlen(value) >= key->size)
		return false;
	for (const char *c = value; *c; c++)
		if (iscntrl((unsigned char)*c))
			return false;
	return !*value || !key->is_valid || key->is_valid(value);
}

int conf_value_parse(const struct conf_key *key, const char *value, void *base, char *expected,
                     size_t expected_size)
{
	char *field = (char *)base + key->offset;
	uint64_t n = 0;
	struct text t;
	bool is_good;

	if (key->type == CONF_TYPE_TEXT)
		is_good = is_text_good(key, value);
	else if (key->type == CONF_TYPE_CHOICE)
		is_good = parse_choice(key, value, &n);
	else
		is_good = parse_scaled(key, value, &n);
	if (!is_good) {
		text_init(&t, expected, expected_size);
		text_puts(&t, "expected ");
		conf_value_describe(key, &t);
		return -EINVAL;
	}
	if (key->type == CONF_TYPE_TEXT) {
		memset(field, 0, key->size); /* memcmp() compares fields */
		memcpy(field, value, strlen(value));
	} else {
		assert(key->size == sizeof n);
		memcpy(field, &n, sizeof n);
	}
	return 0;
}

/* ---- fields ---- */

bool conf_value_equals(const struct conf_key *key, const void *base, const void *other)
{
	return memcmp((const char *)base + key->offset, (const char *)other + key->offset,
	              key->size) == 0;
}

void conf_value_copy(const struct conf_key *key, void *base, const void *from)
{
	memcpy((char *)base + key->offset, (const char *)from + key->offset, key->size);
}
