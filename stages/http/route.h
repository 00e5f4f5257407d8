/* route.h - which resource a request is for, and what may be done with it. Knows no connection. Any
 * thread. */
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
	ROUTE_IMAGE,
	ROUTE_VARIANT,
	ROUTE_HEALTHZ,
	ROUTE_READYZ,
	ROUTE_STATS,
	ROUTE_METRICS,
	ROUTE_COUNT
};

enum route_method {
	ROUTE_GET = 1,
	ROUTE_HEAD = 2,
	ROUTE_POST = 4,
	ROUTE_DELETE = 8,
	ROUTE_OPTIONS = 16,
	ROUTE_OTHER = 32
};

/* Whom a listener serves. */
enum route_audience { ROUTE_PUBLIC = 1, ROUTE_ADMIN = 2 };

struct route {
	enum route_kind kind;
	char id[ULID_LENGTH + 1];    /* image, variant */
	char variant[CONF_NAME_MAX]; /* variant: its name, which the configuration had a moment ago
	                              */
};

/* target is the request target as sent, in origin, absolute or asterisk form; a query is ignored.
 */
void route_find(struct route *route, const struct conf *conf, struct slice target);

/* Whether one of the audience (a set) gets to see it. */
bool route_is_for(enum route_kind kind, unsigned audience);

bool route_allows(enum route_kind kind, enum route_method method);

/* The value of the Allow header field; static. */
const char *route_allow(enum route_kind kind);

#endif
