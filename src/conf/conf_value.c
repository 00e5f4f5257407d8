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
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/check.h"
#include "base/network.h"
#include "base/text.h"
#include "conf.h"
#include "conf_decimal.h"
#include "policy/policy.h"

struct unit {
	const char *name;
	uint64_t factor;
};

/* From large to small, for conf_value_format(). */
static const struct unit bytes_units[] = {
	{ "G", UINT64_C(1) << 30 }, { "M", 1 << 20 }, { "K", 1 << 10 }, { "", 1 }, { NULL, 0 }
};
static const struct unit pixels_units[] = {
	{ "G", 1000000000 }, { "M", 1000000 }, { "K", 1000 }, { "", 1 }, { NULL, 0 }
};
static const struct unit number_units[] = { { "", 1 }, { NULL, 0 } };
static const struct unit duration_units[] = { /* in microseconds */
	                                      { "h", UINT64_C(3600000000) },
	                                      { "m", 60000000 },
	                                      { "s", 1000000 },
	                                      { "ms", 1000 },
	                                      { "us", 1 },
	                                      { NULL, 0 }
};

static const struct unit *units_of(enum conf_type type)
{
	switch (type) {
	case CONF_TYPE_BYTES:
		return bytes_units;
	case CONF_TYPE_PIXELS:
		return pixels_units;
	case CONF_TYPE_MS:
	case CONF_TYPE_US:
		return duration_units;
	default:
		return number_units;
	}
}

/* The kept value's unit, in the base of units_of(). */
static uint64_t base_of(enum conf_type type)
{
	return type == CONF_TYPE_MS ? 1000 : 1;
}

static bool is_text(enum conf_type type)
{
	return type <= CONF_TYPE_LOG_FILE; /* the last of them */
}

/* ---- back to text ---- */

void conf_value_format(const struct conf_key *key, uint64_t value, struct text *to)
{
	const struct unit *unit = units_of(key->type);
	uint64_t in_base = value * base_of(key->type);

	assert(!is_text(key->type) && key->type != CONF_TYPE_CHOICE);
	if (key->type == CONF_TYPE_AUTO && value == CONF_AUTO) {
		text_puts(to, "auto");
		return;
	}
	if (key->type == CONF_TYPE_DECIMAL) {
		conf_decimal_format(value, to);
		return;
	}
	if (value == 0) {
		text_puts(to, "0");
		return;
	}
	while (in_base % unit->factor != 0)
		unit++;
	text_printf(to, "%" PRIu64 "%s", in_base / unit->factor, unit->name);
}

void conf_value_print(const struct conf_key *key, const void *base, struct text *to)
{
	const char *field = (const char *)base + key->offset;
	const struct conf_choice *choice = key->choices;
	uint64_t value;

	if (is_text(key->type)) {
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

static void describe_range(const struct conf_key *key, const char *what, const char *example,
                           struct text *to)
{
	text_printf(to, "%s from ", what);
	conf_value_format(key, key->min, to);
	text_puts(to, " to ");
	conf_value_format(key, key->max, to);
	text_puts(to, example);
}

static void describe_choices(const struct conf_choice *choices, struct text *to)
{
	for (const struct conf_choice *c = choices; c->name; c++)
		text_printf(to, "%s%s", c == choices ? "" : c[1].name ? ", " : " or ", c->name);
}

static void describe_policies(struct text *to)
{
	char policies[256];

	policy_list(policies, sizeof policies);
	text_printf(to, "one of %s", policies);
}

static void describe_text(const struct conf_key *key, struct text *to)
{
	size_t max = key->size - 1;

	switch (key->type) {
	case CONF_TYPE_LISTEN:
		text_printf(to, "HOST:PORT or [HOST]:PORT%s", key->min ? "" : ", or nothing");
		break;
	case CONF_TYPE_ADMIN:
		text_printf(to,
		            "auto, no, HOST:PORT, [HOST]:PORT or an absolute path of at most %d "
		            "bytes",
		            CONF_SOCKET_MAX - 1);
		break;
	case CONF_TYPE_ORIGIN:
		text_puts(to, "* or an origin such as https://example.org, or nothing");
		break;
	case CONF_TYPE_NETWORKS:
		text_printf(to,
		            "at most %d addresses or networks such as 10.0.0.0/8, separated by "
		            "spaces, or nothing",
		            NETWORKS_MAX);
		break;
	case CONF_TYPE_HOSTS:
		text_puts(to, "* or hosts such as images.example.org, without ports and separated "
		              "by spaces, or nothing");
		break;
	case CONF_TYPE_NOTATION:
		text_puts(to, key->form);
		break;
	case CONF_TYPE_USER:
		text_printf(to, "a user's name of at most %zu bytes, or nothing", max);
		break;
	case CONF_TYPE_SOCKET:
		text_printf(to, "auto, an absolute path of at most %zu bytes, or nothing", max);
		break;
	case CONF_TYPE_PATH:
		text_printf(to, "an absolute path of at most %zu bytes%s", max,
		            key->min ? "" : ", or nothing");
		break;
	case CONF_TYPE_LOG_FILE:
		text_printf(to, "stderr, or an absolute path of at most %zu bytes", max);
		break;
	default:
		text_printf(to, "text of %sat most %zu bytes", key->min ? "at least one and " : "",
		            max);
	}
}

void conf_value_describe(const struct conf_key *key, struct text *to)
{
	switch (key->type) {
	case CONF_TYPE_POLICY:
		describe_policies(to);
		break;
	case CONF_TYPE_NUMBER:
		describe_range(key, "a whole number", "", to);
		break;
	case CONF_TYPE_BYTES:
		describe_range(key, "bytes", " (K, M, G: powers of 1024)", to);
		break;
	case CONF_TYPE_PIXELS:
		describe_range(key, "pixels", " (K, M, G: powers of 1000)", to);
		break;
	case CONF_TYPE_MS:
		describe_range(key, "a duration", " (ms, s, m, h)", to);
		break;
	case CONF_TYPE_US:
		describe_range(key, "a duration", " (us, ms, s)", to);
		break;
	case CONF_TYPE_AUTO:
		describe_range(key, "auto or a whole number", "", to);
		break;
	case CONF_TYPE_DECIMAL:
		describe_range(key, "a number", " (at most three digits behind the point)", to);
		break;
	case CONF_TYPE_CHOICE:
		describe_choices(key->choices, to);
		break;
	default:
		describe_text(key, to);
	}
}

/* ---- from text ---- */

/* Parses digits and a unit; zero needs no unit. False: not of that form, or too large. */
static bool parse_number(const char *value, const struct unit *units, uint64_t *out)
{
	uint64_t n = 0;

	if (!isdigit((unsigned char)*value))
		return false;
	for (; isdigit((unsigned char)*value); value++)
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*value - '0'), &n))
			return false;
	while (isspace((unsigned char)*value))
		value++;
	*out = n;
	if (n == 0 && *value == '\0')
		return true;
	for (; units->name; units++)
		if (strcasecmp(value, units->name) == 0)
			return !__builtin_mul_overflow(n, units->factor, out);
	return false;
}

static bool parse_scaled(const struct conf_key *key, const char *value, uint64_t *out)
{
	uint64_t n, base = base_of(key->type);

	if (key->type == CONF_TYPE_AUTO && strcasecmp(value, "auto") == 0) {
		*out = CONF_AUTO;
		return true;
	}
	if (key->type == CONF_TYPE_DECIMAL ? !conf_decimal_parse(value, &n)
	                                   : !parse_number(value, units_of(key->type), &n))
		return false;
	if (n % base != 0)
		return false;
	*out = n / base;
	return *out >= key->min && *out <= key->max;
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
	       parse_number(s, number_units, &port) && port <= 65535;
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

static bool is_listen(const char *value)
{
	const char *colon = strrchr(value, ':');

	return colon && is_port(colon + 1) && is_host_or_literal(value, (size_t)(colon - value));
}

static bool are_hosts(const char *value)
{
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
static bool is_origin(const char *value)
{
	const char *host = strstr(value, "://");

	if (*value == '\0' || strcmp(value, "*") == 0)
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

static bool is_user_name(const char *value)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

	return *value != '-' && !value[strspn(value, allowed)];
}

static bool is_admin_address(const char *value)
{
	if (*value == '/')
		return strlen(value) < CONF_SOCKET_MAX;
	return strcmp(value, "auto") == 0 || strcmp(value, "no") == 0 || is_listen(value);
}

static bool is_text_good(const struct conf_key *key, const char *value)
{
	struct networks ignored;

	if (strlen(value) < key->min || strlen(value) >= key->size)
		return false;
	for (const char *c = value; *c; c++)
		if (iscntrl((unsigned char)*c))
			return false;
	switch (key->type) {
	case CONF_TYPE_LISTEN:
		return !*value || is_listen(value);
	case CONF_TYPE_ADMIN:
		return is_admin_address(value);
	case CONF_TYPE_ORIGIN:
		return is_origin(value);
	case CONF_TYPE_NETWORKS:
		return networks_parse(value, &ignored) == 0;
	case CONF_TYPE_HOSTS:
		return strcmp(value, "*") == 0 || are_hosts(value);
	case CONF_TYPE_POLICY:
		return policy_is_known(value);
	case CONF_TYPE_NOTATION:
		return key->is_valid(value);
	case CONF_TYPE_USER:
		return is_user_name(value);
	case CONF_TYPE_SOCKET:
		return !*value || *value == '/' || strcmp(value, "auto") == 0;
	case CONF_TYPE_PATH:
		return !*value || *value == '/';
	case CONF_TYPE_LOG_FILE:
		return strcmp(value, "stderr") == 0 ||
		       (*value == '/' && value[strlen(value) - 1] != '/');
	default:
		return true;
	}
}

int conf_value_parse(const struct conf_key *key, const char *value, void *base, char *expected,
                     size_t expected_size)
{
	char *field = (char *)base + key->offset;
	uint64_t n = 0;
	struct text t;
	bool is_good;

	if (is_text(key->type))
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
	if (is_text(key->type)) {
		memcpy(field, value, strlen(value) + 1);
	} else {
		assert(key->size == sizeof n);
		memcpy(field, &n, sizeof n);
	}
	return 0;
}

/* ---- fields ---- */

bool conf_value_equals(const struct conf_key *key, const void *base, const void *other)
{
	const char *a = (const char *)base + key->offset, *b = (const char *)other + key->offset;

	return is_text(key->type) ? strcmp(a, b) == 0 : memcmp(a, b, key->size) == 0;
}

void conf_value_copy(const struct conf_key *key, void *base, const void *from)
{
	memcpy((char *)base + key->offset, (const char *)from + key->offset, key->size);
}
