/* route.c - the table of resources. Any thread. */
#include "route.h"

#include <string.h>

#include "base/check.h"
#include "conf/conf.h"
#include "page_files.h"

#define READING (ROUTE_GET | ROUTE_HEAD | ROUTE_OPTIONS)
#define READING_TEXT "GET, HEAD, OPTIONS"
#define IMAGES_TEXT "GET, HEAD, POST, OPTIONS"

static const struct {
	unsigned methods; /* enum route_method */
	const char *allow;
	unsigned audience; /* enum route_audience */
	const char *path;  /* NULL: the resource has more than one path */
} routes[ROUTE_COUNT] = {
	[ROUTE_NONE] = { 0, "", 0, NULL },
	[ROUTE_SERVER] = { ROUTE_OPTIONS, "GET, HEAD, POST, DELETE, OPTIONS",
	                   ROUTE_PUBLIC | ROUTE_ADMIN, NULL },
	[ROUTE_IMAGES] = { ROUTE_POST | ROUTE_OPTIONS, IMAGES_TEXT, ROUTE_PUBLIC, "/images" },
	[ROUTE_LIST] = { ROUTE_GET | ROUTE_HEAD, IMAGES_TEXT, ROUTE_PUBLIC | ROUTE_ADMIN, NULL },
	[ROUTE_IMAGE] = { READING | ROUTE_DELETE, "GET, HEAD, DELETE, OPTIONS", ROUTE_PUBLIC,
	                  NULL },
	[ROUTE_VARIANT] = { READING, READING_TEXT, ROUTE_PUBLIC, NULL },
	[ROUTE_ORIGINAL] = { READING, READING_TEXT, ROUTE_PUBLIC, NULL },
	[ROUTE_HEALTHZ] = { READING, READING_TEXT, ROUTE_PUBLIC | ROUTE_ADMIN, "/healthz" },
	[ROUTE_READYZ] = { READING, READING_TEXT, ROUTE_PUBLIC | ROUTE_ADMIN, "/readyz" },
	[ROUTE_STATS] = { READING, READING_TEXT, ROUTE_ADMIN, "/stats" },
	[ROUTE_STREAM] = { READING, READING_TEXT, ROUTE_ADMIN, "/stats/stream" },
	[ROUTE_METRICS] = { READING, READING_TEXT, ROUTE_ADMIN, "/metrics" },
	[ROUTE_PAGE] = { READING, READING_TEXT, ROUTE_PUBLIC | ROUTE_ADMIN, NULL },
	[ROUTE_OPERATOR] = { READING, READING_TEXT, ROUTE_ADMIN, NULL },
	[ROUTE_OPENAPI] = { READING, READING_TEXT, ROUTE_PUBLIC | ROUTE_ADMIN, NULL },
	[ROUTE_GRAPH] = { READING, READING_TEXT, ROUTE_ADMIN, "/graph" },
	[ROUTE_GRAPH_SVG] = { READING, READING_TEXT, ROUTE_ADMIN, "/graph.svg" },
	[ROUTE_CONTROL] = { READING | ROUTE_POST, "GET, HEAD, POST, OPTIONS", ROUTE_ADMIN,
	                    "/control" },
	[ROUTE_TRACE] = { ROUTE_POST | ROUTE_OPTIONS, "POST, OPTIONS", ROUTE_ADMIN, "/trace" },
};

/* Returns the path of a target: "http://host:port/path" means the same as "/path" (RFC 9112
 * 3.2.2). A query ends the path. A fragment cannot occur: request.c refuses it. */
static struct slice path_of(struct slice target)
{
	struct slice authority;

	route_split(&target, &authority);
	for (size_t i = 0; i < target.length; i++) {
		if (target.data[i] == '?')
			target.length = i;
	}
	return target;
}

bool route_split(struct slice *target, struct slice *authority)
{
	size_t scheme = slice_begins(*target, "http://")    ? 7
	                : slice_begins(*target, "https://") ? 8
	                                                    : 0;
	size_t at = scheme;

	*authority = (struct slice){ target->data, 0 };
	if (!scheme)
		return false;
	while (at < target->length && target->data[at] != '/' && target->data[at] != '?')
		at++;
	*authority = (struct slice){ target->data + scheme, at - scheme };
	*target = (struct slice){ target->data + at, target->length - at };
	return true;
}

static bool slice_equals(struct slice s, const char *text)
{
	return s.length == strlen(text) && memcmp(s.data, text, s.length) == 0;
}

/* Takes the name of a variant off a file name like "medium.jpg". What an image has is decided by
 * its files, so the name need not be in the configuration. Returns false if no variant can have it.
 */
static bool find_variant(struct slice file, char found[CONF_NAME_MAX])
{
	char name[CONF_NAME_MAX] = "";

	if (file.length <= 4 || file.length - 4 >= CONF_NAME_MAX ||
	    memcmp(file.data + file.length - 4, ".jpg", 4) != 0 ||
	    slice_equals(file, STORE_ORIGINAL))
		return false;
	memcpy(name, file.data, file.length - 4);
	if (strlen(name) != file.length - 4 || !conf_is_variant_name(name))
		return false;
	memcpy(found, name, CONF_NAME_MAX);
	return true;
}

static const enum route_kind kind_for[] = {
	[PAGE_FOR_CLIENTS] = ROUTE_PAGE,
	[PAGE_FOR_OPERATORS] = ROUTE_OPERATOR,
	[PAGE_FOR_ALL] = ROUTE_OPENAPI,
};

/* Returns whether the path is that of a file of the pages. */
static bool find_page(struct route *route, struct slice path)
{
	const struct page_file *file;

	for (unsigned i = 0; (file = page_file_at(i)); i++) {
		if (!slice_equals(path, file->path))
			continue;
		route->kind = kind_for[file->audience];
		route->file = (unsigned char)i;
		return true;
	}
	return false;
}

void route_find(struct route *route, enum route_method method, struct slice target)
{
	static const char prefix[] = "/images/";
	size_t prefix_length = sizeof prefix - 1;

	*route = (struct route){ .kind = ROUTE_NONE };
	if (slice_equals(target, "*")) {
		route->kind = ROUTE_SERVER;
		return;
	}
	struct slice path = path_of(target);

	for (unsigned kind = 1; kind < ROUTE_COUNT; kind++) {
		if (routes[kind].path && slice_equals(path, routes[kind].path)) {
			route->kind = (enum route_kind)kind;
			if (kind == ROUTE_IMAGES && method & (ROUTE_GET | ROUTE_HEAD))
				route->kind = ROUTE_LIST;
			return;
		}
	}
	if (find_page(route, path))
		return;
	if (path.length < prefix_length + ULID_LENGTH ||
	    memcmp(path.data, prefix, prefix_length) != 0)
		return;
	const char *id = path.data + prefix_length;
	struct slice rest = { id + ULID_LENGTH, path.length - prefix_length - ULID_LENGTH };

	if (!ulid_is_valid(id, ULID_LENGTH))
		return;
	memcpy(route->id, id, ULID_LENGTH);
	if (rest.length == 0)
		route->kind = ROUTE_IMAGE;
	else if (slice_equals(rest, "/" STORE_ORIGINAL))
		route->kind = ROUTE_ORIGINAL;
	else if (rest.data[0] == '/' &&
	         find_variant((struct slice){ rest.data + 1, rest.length - 1 }, route->variant))
		route->kind = ROUTE_VARIANT;
}

bool route_is_for(enum route_kind kind, unsigned audience)
{
	return routes[kind].audience & audience;
}

bool route_allows(enum route_kind kind, enum route_method method)
{
	return routes[kind].methods & method;
}

const char *route_allow(enum route_kind kind)
{
	return routes[kind].allow;
}

/* ---- classes ---- */

enum route_class route_class(enum route_kind kind, enum route_method method)
{
	bool is_get = method == ROUTE_GET || method == ROUTE_HEAD;

	if (kind == ROUTE_IMAGES && method == ROUTE_POST)
		return ROUTE_CLASS_UPLOAD;
	if (kind == ROUTE_LIST && is_get)
		return ROUTE_CLASS_LIST;
	if (kind == ROUTE_IMAGE && method == ROUTE_DELETE)
		return ROUTE_CLASS_DELETE;
	if (kind == ROUTE_IMAGE && is_get)
		return ROUTE_CLASS_IMAGE;
	if ((kind == ROUTE_VARIANT || kind == ROUTE_ORIGINAL) && is_get)
		return ROUTE_CLASS_VARIANT;
	if ((kind == ROUTE_HEALTHZ || kind == ROUTE_READYZ) && is_get)
		return ROUTE_CLASS_PROBE;
	if ((kind == ROUTE_STATS || kind == ROUTE_STREAM || kind == ROUTE_METRICS ||
	     kind == ROUTE_GRAPH || kind == ROUTE_GRAPH_SVG) &&
	    is_get)
		return ROUTE_CLASS_REPORT;
	return ROUTE_CLASS_OTHER;
}

static const struct {
	const char *route, *method;
} class_names[] = {
	[ROUTE_CLASS_UPLOAD] = { "/images", "POST" },
	[ROUTE_CLASS_LIST] = { "/images", "GET" },
	[ROUTE_CLASS_IMAGE] = { "/images/ID", "GET" },
	[ROUTE_CLASS_VARIANT] = { "/images/ID/VARIANT", "GET" },
	[ROUTE_CLASS_DELETE] = { "/images/ID", "DELETE" },
	[ROUTE_CLASS_PROBE] = { "probe", "GET" },
	[ROUTE_CLASS_REPORT] = { "report", "GET" },
	[ROUTE_CLASS_OTHER] = { "other", "other" },
};

const char *route_class_route(enum route_class class)
{
	return class_names[class].route;
}

const char *route_class_method(enum route_class class)
{
	return class_names[class].method;
}
