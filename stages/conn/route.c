/* route.c - the table of resources. Any thread. */
#include "route.h"

#include <ctype.h>
#include <string.h>

#include "base/check.h"
#include "page/page_files.h"
#include "store/stored_image.h"

#define READING (METHOD_GET | METHOD_HEAD | METHOD_OPTIONS)
#define READING_TEXTS READING, "GET, HEAD, OPTIONS"
#define IMAGES_TEXT "GET, HEAD, POST, OPTIONS"

const struct route_row routes[ROUTE_COUNT] = {
	[ROUTE_NONE] = { 0, "", 0, ROUTE_CLASS_OTHER, NULL },
	[ROUTE_SERVER] = { METHOD_OPTIONS, "GET, HEAD, POST, DELETE, OPTIONS",
	                   ROUTE_PUBLIC | ROUTE_ADMIN, ROUTE_CLASS_OTHER, NULL },
	[ROUTE_IMAGES] = { METHOD_POST | METHOD_OPTIONS, IMAGES_TEXT, ROUTE_PUBLIC,
	                   ROUTE_CLASS_OTHER, "/images" },
	[ROUTE_LIST] = { METHOD_GET | METHOD_HEAD, IMAGES_TEXT, ROUTE_PUBLIC | ROUTE_ADMIN,
	                 ROUTE_CLASS_LIST, NULL },
	[ROUTE_IMAGE] = { READING | METHOD_DELETE, "GET, HEAD, DELETE, OPTIONS", ROUTE_PUBLIC,
	                  ROUTE_CLASS_IMAGE, NULL },
	[ROUTE_VARIANT] = { READING_TEXTS, ROUTE_PUBLIC, ROUTE_CLASS_VARIANT, NULL },
	[ROUTE_ORIGINAL] = { READING_TEXTS, ROUTE_PUBLIC, ROUTE_CLASS_VARIANT, NULL },
	[ROUTE_HEALTHZ] = { READING_TEXTS, ROUTE_PUBLIC | ROUTE_ADMIN, ROUTE_CLASS_PROBE,
	                    "/healthz" },
	[ROUTE_READYZ] = { READING_TEXTS, ROUTE_PUBLIC | ROUTE_ADMIN, ROUTE_CLASS_PROBE,
	                   "/readyz" },
	[ROUTE_STATS] = { READING_TEXTS, ROUTE_ADMIN, ROUTE_CLASS_REPORT, "/stats" },
	[ROUTE_STREAM] = { READING_TEXTS, ROUTE_ADMIN, ROUTE_CLASS_REPORT, "/stats/stream" },
	[ROUTE_METRICS] = { READING_TEXTS, ROUTE_ADMIN, ROUTE_CLASS_REPORT, "/metrics" },
	[ROUTE_PAGE] = { READING_TEXTS, ROUTE_PUBLIC | ROUTE_ADMIN, ROUTE_CLASS_OTHER, NULL },
	[ROUTE_OPERATOR] = { READING_TEXTS, ROUTE_ADMIN, ROUTE_CLASS_OTHER, NULL },
	[ROUTE_OPENAPI] = { READING_TEXTS, ROUTE_PUBLIC | ROUTE_ADMIN, ROUTE_CLASS_OTHER, NULL },
	[ROUTE_GRAPH] = { READING_TEXTS, ROUTE_ADMIN, ROUTE_CLASS_REPORT, "/graph" },
	[ROUTE_GRAPH_SVG] = { READING_TEXTS, ROUTE_ADMIN, ROUTE_CLASS_REPORT, "/graph.svg" },
	[ROUTE_CONTROL] = { READING | METHOD_POST, "GET, HEAD, POST, OPTIONS", ROUTE_ADMIN,
	                    ROUTE_CLASS_OTHER, "/control" },
};

#define PATH_BYTES 128 /* all that name something are shorter */

/* Writes the path of a target: "http://host:port/path" means the same as "/path" (RFC 9112 3.2.2),
 * and so do percent-encoded characters that are unreserved (RFC 3986 6.2.2.2). A query ends it. A
 * fragment cannot occur: request.c refuses it. */
static struct slice path_of(struct slice target, char path[PATH_BYTES])
{
	struct slice authority;
	size_t length = 0;

	request_split_target(&target, &authority);
	for (size_t i = 0; i < target.length && target.data[i] != '?' && length < PATH_BYTES; i++) {
		int c = field_escaped((struct slice){ target.data + i, target.length - i });
		bool is_unreserved = c > 0 && (isalnum(c) || strchr("-._~", c));

		path[length++] = is_unreserved ? (char)c : target.data[i];
		i += is_unreserved ? 2 : 0;
	}
	return (struct slice){ path, length };
}

static bool slice_equals(struct slice s, const char *text)
{
	return s.length == strlen(text) && memcmp(s.data, text, s.length) == 0;
}

/* Takes the name of a variant off a file name like "medium.jpg". What an image has is decided by
 * its files, so the name need not be in the configuration. Returns false if no variant can have it.
 */
static bool find_variant(struct route *route, struct slice file)
{
	char name[CONF_FILE_NAME_MAX] = "";

	if (file.length >= sizeof name || slice_equals(file, STORE_ORIGINAL))
		return false;
	memcpy(name, file.data, file.length);
	if (strlen(name) != file.length || !stored_file_is_named(name) ||
	    strcmp(name, STORED_IMAGE) == 0)
		return false;
	route->format = file_format_of_name(name);
	memcpy(route->variant, name, file.length - strlen(file_format_suffix(route->format)));
	return true;
}

static_assert(ROUTE_OPERATOR == ROUTE_PAGE + PAGE_FOR_OPERATORS &&
                      ROUTE_OPENAPI == ROUTE_PAGE + PAGE_FOR_ALL,
              "each audience has a kind");

/* Returns whether the path is that of a file of the pages. */
static bool find_page(struct route *route, struct slice path)
{
	const struct page_file *file;

	for (unsigned i = 0; (file = page_file_at(i)); i++) {
		if (!slice_equals(path, file->path))
			continue;
		route->kind = (enum route_kind)(ROUTE_PAGE + file->audience);
		route->file = (unsigned char)i;
		return true;
	}
	return false;
}

void route_find(struct route *route, enum request_method method, struct slice target)
{
	static const char prefix[] = "/images/";
	size_t prefix_length = sizeof prefix - 1;

	*route = (struct route){ .kind = ROUTE_NONE };
	if (slice_equals(target, "*")) {
		route->kind = ROUTE_SERVER;
		return;
	}
	char data[PATH_BYTES];
	struct slice path = path_of(target, data);

	for (unsigned kind = 1; kind < ROUTE_COUNT; kind++) {
		if (routes[kind].path && slice_equals(path, routes[kind].path)) {
			route->kind = (enum route_kind)kind;
			if (kind == ROUTE_IMAGES && method & (METHOD_GET | METHOD_HEAD))
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
	         find_variant(route, (struct slice){ rest.data + 1, rest.length - 1 }))
		route->kind = ROUTE_VARIANT;
}

/* ---- classes ---- */

enum route_class route_class(enum route_kind kind, enum request_method method)
{
	if (kind == ROUTE_IMAGES && method == METHOD_POST)
		return ROUTE_CLASS_UPLOAD;
	if (kind == ROUTE_IMAGE && method == METHOD_DELETE)
		return ROUTE_CLASS_DELETE;
	return kind && method & (METHOD_GET | METHOD_HEAD) ? routes[kind].class : ROUTE_CLASS_OTHER;
}

const struct route_labels route_labels[ROUTE_CLASS_COUNT] = {
	[ROUTE_CLASS_UPLOAD] = { "/images", "POST" },
	[ROUTE_CLASS_LIST] = { "/images", "GET" },
	[ROUTE_CLASS_IMAGE] = { "/images/ID", "GET" },
	[ROUTE_CLASS_VARIANT] = { "/images/ID/VARIANT", "GET" },
	[ROUTE_CLASS_DELETE] = { "/images/ID", "DELETE" },
	[ROUTE_CLASS_PROBE] = { "probe", "GET" },
	[ROUTE_CLASS_REPORT] = { "report", "GET" },
	[ROUTE_CLASS_OTHER] = { "other", "other" },
};
