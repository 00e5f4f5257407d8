/*
 * route.h - the resources: which one a target names, which methods it has, and which listeners
 * serve it. Any thread.
 */
#ifndef DARKROOM_CONN_ROUTE_H
#define DARKROOM_CONN_ROUTE_H

#include "base/file_format.h"
#include "conf/conf.h"
#include "http/request.h"
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
	ROUTE_PAGE,     /* files of page_files.h, in the order of enum page_audience: for all */
	ROUTE_OPERATOR, /* for operators */
	ROUTE_OPENAPI,  /* the description of this interface, for all */
	ROUTE_GRAPH,
	ROUTE_GRAPH_SVG,
	ROUTE_CONTROL,
	ROUTE_COUNT
};

/* Which resources a listener serves. */
enum route_audience { ROUTE_PUBLIC = 1, ROUTE_ADMIN = 2 };

struct route {
	enum route_kind kind;
	char id[ULID_LENGTH + 1];    /* image, variant, original */
	char variant[CONF_NAME_MAX]; /* variant: its name, which the image may lack */
	enum file_format format;     /* variant: of its file */
	unsigned char file;          /* page, operator, openapi: index for page_file_at() */
};

/* Finds the resource of a request target, in origin, absolute or asterisk form. A query is ignored.
 */
void route_find(struct route *route, enum request_method method, struct slice target);

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

/* The labels of a class. */
struct route_labels {
	const char *route, *method;
};

extern const struct route_labels route_labels[ROUTE_CLASS_COUNT];

/* What a resource has. */
struct route_row {
	unsigned methods;       /* a set of enum request_method */
	const char *allow;      /* the value of the Allow header field */
	unsigned audience;      /* a set of enum route_audience */
	enum route_class class; /* of GET and HEAD */
	const char *path;       /* NULL: the resource has more than one path */
};

extern const struct route_row routes[ROUTE_COUNT];

/* kind: 0 before the route is known. */
enum route_class route_class(enum route_kind kind, enum request_method method);

#endif
