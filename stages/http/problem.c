/* problem.c - problem details (RFC 9457). Knows nothing of connections. Any thread. */
#include "problem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/json.h"

static const struct {
	const char *slug, *title;
} types[] = {
	{ "body-too-large", "The request body is too large" },
	{ "client-gone", "The client has gone" },
	{ "damaged-file", "The stored file is damaged" },
	{ "damaged-image", "The image is damaged" },
	{ "draining", "The server is shutting down" },
	{ "expectation-failed", "The expectation cannot be met" },
	{ "foreign-page", "Pages of another origin may not use this server" },
	{ "forbidden", "This request is not allowed" },
	{ "header-too-large", "The request header is too large" },
	{ "http-version", "The HTTP version is not supported" },
	{ "idempotency-key-in-use", "An upload with this Idempotency-Key is in progress" },
	{ "idempotency-key-reused", "The Idempotency-Key belongs to another upload" },
	{ "image-too-large", "The image is too wide or too high" },
	{ "internal", "Internal server error" },
	{ "length-required", "The request needs a Content-Length" },
	{ "malformed-form", "The form is malformed" },
	{ "malformed-request", "The request is malformed" },
	{ "misdirected", "This server does not serve this host" },
	{ "memory", "The image needs more memory than the server may use" },
	{ "method-not-allowed", "The resource does not support this method" },
	{ "no-image", "The request has no image" },
	{ "not-found", "The resource does not exist" },
	{ "not-implemented", "The server does not implement this feature" },
	{ "not-ready", "The image is not ready yet" },
	{ "overloaded", "The server is busy" },
	{ "precondition-failed", "A condition of the request is not fulfilled" },
	{ "quota-exceeded", "The quota of the token is used up" },
	{ "range-not-satisfiable", "The range is outside the file" },
	{ "refused-setting", "The setting cannot be applied" },
	{ "starting", "The server is starting" },
	{ "storage-failed", "The image could not be stored" },
	{ "storage-full", "The image could not be stored: the disk is full" },
	{ "storage-missing", "The store is missing" },
	{ "storage-read-only", "The store cannot be written" },
	{ "storage-unavailable", "The store does not answer" },
	{ "timeout", "The request was too slow" },
	{ "too-expensive", "The image takes too much time to decode" },
	{ "too-late", "The image could not be processed in time" },
	{ "too-many-parts", "The form has too many parts" },
	{ "too-many-pixels", "The image has too many pixels" },
	{ "too-many-requests", "This client sends too many images" },
	{ "too-many-scans", "The image has too many scans" },
	{ "unauthorized", "A token is required" },
	{ "unsupported-image", "This kind of picture is not supported" },
	{ "unsupported-media-type", "Pictures of this format are not accepted" },
	{ "uri-too-long", "The request target is too long" },
	{ "variant-skipped", "The variant was left out under load" },
};

static_assert(COUNT_OF(types) <= PROBLEM_TYPE_MAX, "counters are kept by type");

const char *problem_type_at(unsigned index)
{
	return index < COUNT_OF(types) ? types[index].slug : NULL;
}

bool problem_set(struct problem *p, unsigned status, const char *slug, const char *detail, ...)
{
	va_list args;

	assert(status >= 400 && status <= 599);
	unsigned i = 0;

	while (i < COUNT_OF(types) && strcmp(types[i].slug, slug) != 0)
		i++;
	assert(i < COUNT_OF(types));
	*p = (struct problem){
		.status = status, .type = i, .slug = types[i].slug, .title = types[i].title
	};
	va_start(args, detail);
	vsnprintf(p->detail, sizeof p->detail, detail, args);
	va_end(args);
	return false;
}

bool problem_set_limit(struct problem *p, unsigned status, const char *slug, const char *limit,
                       uint64_t configured, uint64_t actual)
{
	problem_set(p, status, slug, "%llu exceeds %s = %llu", (unsigned long long)actual, limit,
	            (unsigned long long)configured);
	p->limit = limit;
	p->configured = configured;
	p->actual = actual;
	return false;
}

void problem_append(struct problem *p, const char *detail, ...)
{
	size_t length = strlen(p->detail);
	va_list args;

	va_start(args, detail);
	vsnprintf(p->detail + length, sizeof p->detail - length, detail, args);
	va_end(args);
}

void problem_set_free_bytes(struct problem *p, uint64_t configured, uint64_t actual)
{
	problem_set(p, 507, "storage-full",
	            "the store's file system has %llu free bytes; limits.free_bytes = %llu of them "
	            "are not for images",
	            (unsigned long long)actual, (unsigned long long)configured);
	p->limit = "limits.free_bytes";
	p->configured = configured;
	p->actual = actual;
}

void problem_json_members(struct json *j, const struct problem *p)
{
	char type[64];

	snprintf(type, sizeof type, "urn:darkroom:problem:%s", p->slug);
	json_string(j, "type", type);
	json_string(j, "title", p->title);
	json_uint(j, "status", p->status);
	if (p->detail[0])
		json_string(j, "detail", p->detail);
	if (p->limit) {
		json_string(j, "limit", p->limit);
		json_uint(j, "configured", p->configured);
		json_uint(j, "actual", p->actual);
	}
}
