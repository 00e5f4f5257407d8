/*
 * conf_endpoint.h - the notation of store.s3_endpoint: http://HOST[:PORT] or https://HOST[:PORT].
 * Any thread.
 */
#ifndef DARKROOM_CONF_CONF_ENDPOINT_H
#define DARKROOM_CONF_CONF_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"

#define CONF_ENDPOINT_FORM "http:// or https://, a host, and perhaps a port"

struct conf_endpoint {
	bool is_tls;
	char host[CONF_TEXT_MAX]; /* a name or an address, without brackets */
	uint16_t port;
	bool has_usual_port; /* that of the scheme, which a Host field leaves out */
};

/* Returns whether the text is one. */
bool conf_endpoint_parse(const char *text, struct conf_endpoint *e);

/* The same for the table of keys; "" is valid. */
bool conf_endpoint_is_valid(const char *text);

/* Of store.s3_bucket and store.s3_prefix: names that mean the same to every store, in a URL and in
 * a signature. "" is valid. */
#define CONF_BUCKET_FORM "3 to 63 of a-z, 0-9, '.' and '-'"
#define CONF_PREFIX_FORM "letters, digits, '-', '_' and '.', in parts that '/' ends such as photos/"

bool conf_bucket_is_valid(const char *text);
bool conf_prefix_is_valid(const char *text);

#endif
