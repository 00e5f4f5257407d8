/*
 * route.h - the resources: which one a target names, which methods it has, and which listeners
 * serve it. Any thread.
 */
#ifndef DARKROOM_HTTP_ROUTE_H
#define DARKROOM_HTTP_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "conf/conf.h"
#include "field.h"
#include "store/store.h"

enum route_kind {
	ROUTE_NONE = 1, /* 404 */
	ROUTE_SERVER,   /* OPTIONS * */
	ROUTE_IMAGES,
	ROUTE_LIST, /* the same path, with GET or HEAD */
	ROUTE_IMAGE,
	ROUTE_VARIANT,
	ROUTE_ORIGINAL, /* the uploaded file */
	ROUTE_HEALTHZ,
	ROUTE_READYZ,
	ROUTE_STATS,
	ROUTE_STREAM,
	ROUTE_METRICS,
	ROUTE_PAGE,     /* files of page_files.h for all */
	ROUTE_OPERATOR, /* for operators */
	ROUTE_OPENAPI,  /* the description of this interface, for all */
	ROUTE_GRAPH,
	ROUTE_GRAPH_SVG,
	ROUTE_CONTROL,
	ROUTE_TRACE,
	ROUTE_COUNT
};

enum route_method {
	ROUTE_GET = 1,
	ROUTE_HEAD = 2,
	ROUTE_POST = 4,
	ROUTE_DELETE = 8,
	ROUTE_OPTIONS = 16,
	ROUTE_OTHER = 32,  /* known, but no resource has it: 405 */
	ROUTE_UNKNOWN = 64 /* 501 */
};

/* Which resources a listener serves. */
enum route_audience { ROUTE_PUBLIC = 1, ROUTE_ADMIN = 2 };

struct route {
	enum route_kind kind;
	char id[ULID_LENGTH + 1];    /* image, variant, original */
	char variant[CONF_NAME_MAX]; /* variant: its name, which the image may lack */
	unsigned char file;          /* page, operator, openapi: index for page_file_at() */
};

/* Finds the resource of a request target, in origin, absolute or asterisk form. A query is ignored.
 */
void route_find(struct route *route, enum route_method method, struct slice target);

/* Splits a target in absolute form, of http or https: *authority gets HOST[:PORT], which ends
 * before the first '/' or '?' (RFC 3986 3.2), and *target keeps the rest. Returns false, with
 * *target unchanged, if it has another form. */
bool route_split(struct slice *target, struct slice *authority);

/* Returns whether the resource is served to the audience, a set of enum route_audience. */
bool route_is_for(enum route_kind kind, unsigned audience);

/* Returns whether the resource has the method. */
bool route_allows(enum route_kind kind, enum route_method method);

/* Requests that are measured together. */
enum route_class {
	ROUTE_CLASS_UPLOAD, /* POST /images */
	ROUTE_CLASS_LIST,   /* GET and HEAD /images */
	ROUTE_CLASS_IMAGE,  /* GET and HEAD of an image's description */
	ROUTE_CLASS_VARIANT,
	ROUTE_CLASS_DELETE,
	ROUTE_CLASS_PROBE,  /* /healthz, /readyz */
	ROUTE_CLASS_REPORT, /* /stats, /metrics */
	ROUTE_CLASS_OTHER,  /* also what was not understood */
	ROUTE_CLASS_COUNT
};

/* kind: 0 before the route is known. */
enum route_class route_class(enum route_kind kind, enum route_method method);

/* Returns the labels of a class; static. */
const char *route_class_route(enum route_class class);
const char *route_class_method(enum route_class class);

/* Returns the value of the Allow header field; static. */
const char *route_allow(enum route_kind kind);

#endif
