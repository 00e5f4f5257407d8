/*
 * site_guard.c - compares Host with the server's names, and Origin with Host, to keep out requests
 * that a foreign web page makes a browser send.
 *
 * A browser on this machine connects to loopback addresses for any page. The Host must be a name of
 * this server, which a page that points its own name at 127.0.0.1 cannot send (DNS rebinding). And
 * a POST or DELETE must not come from a page of another origin, which a browser sends without
 * asking if it looks like a form (Fetch standard, simple requests).
 *
 * A page's origin is judged as in "Cross-Site Request Forgery Prevention" of OWASP, and in Go's
 * CrossOriginProtection: by Sec-Fetch-Site where the browser sends it, otherwise by Origin. A
 * request with neither does not come from a page. A proxy names the host that its client has asked
 * for in X-Forwarded-Host. A page of another origin cannot set that field unless a preflight
 * request allows it, and none does.
 */
#include "authorization.h"

#include <string.h>

#include "conf/conf.h"
#include "conn/http_server.h"

/* ---- hosts ---- */

/* Returns the host of a key like server.listen, which is HOST:PORT, or else has no host. */
static struct slice host_of_key(const char *listen)
{
	const char *colon = strrchr(listen, ':');

	return (struct slice){ listen, colon ? (size_t)(colon - listen) : 0 };
}

static bool is_listed(const char *hosts, struct slice host)
{
	while (*(hosts += strspn(hosts, " "))) {
		size_t length = strcspn(hosts, " ");

		if (host_equals(host, (struct slice){ hosts, length }))
			return true;
		hosts += length;
	}
	return false;
}

static bool is_own_host(const struct conf *conf, struct slice host)
{
	return host_is_loopback(host) || is_listed(conf->server.hosts, host) ||
	       host_equals(host, host_of_key(conf->server.listen)) ||
	       host_equals(host, host_of_key(conf->server.admin_listen));
}

static bool check_host(const struct conf *conf, struct conn *c, bool is_loopback)
{
	struct slice authority = span_slice(c->request.authority, c->input + c->begin), host;

	if ((!is_loopback && !*conf->server.hosts) || strcmp(conf->server.hosts, "*") == 0)
		return true;
	/* Browsers always name a host. HTTP/1.0, and an empty Host, need not. */
	if (authority.length == 0 || (host_parse(authority, &host) && is_own_host(conf, host)))
		return true;
	return problem_set(&c->problem, 421, "misdirected",
	                   "the request is for the host %.*s, which server.hosts does not have",
	                   (int)(authority.length < 80 ? authority.length : 80), authority.data);
}

/* ---- pages ---- */

/* Returns whether the origin is that of the host that the client has asked for. */
static bool is_own_origin(const struct conn *c, struct slice origin)
{
	struct slice host, own = conn_has_field(c, "x-forwarded-host")
	                                 ? conn_value(c, "x-forwarded-host")
	                                 : span_slice(c->request.authority, c->input + c->begin);

	return request_split_target(&origin, &host) && origin.length == 0 && host_equals(host, own);
}

static bool is_foreign_page(const struct conf *conf, const struct conn *c)
{
	const char *allowed = conf->server.allow_origin;
	struct slice site = conn_value(c, "sec-fetch-site"), origin = conn_value(c, "origin");

	if (strcmp(allowed, "*") == 0 ||
	    (origin.length > 0 && host_equals(origin, (struct slice){ allowed, strlen(allowed) })))
		return false;
	if (conn_has_field(c, "sec-fetch-site"))
		return !slice_is(site, "same-origin") && !slice_is(site, "none");
	return conn_has_field(c, "origin") && !is_own_origin(c, origin);
}

static bool check_page(const struct conf *conf, struct conn *c)
{
	enum request_method method = c->request.method;

	if ((method != METHOD_POST && method != METHOD_DELETE) || !is_foreign_page(conf, c))
		return true;
	return problem_set(&c->problem, 403, "foreign-page",
	                   "a web page of another origin sends this; server.allow_origin does not "
	                   "allow it");
}

bool site_guard_allows(const struct http_server *http, const struct conf *conf, struct conn *c)
{
	/* Whether only this machine can connect to the address that the client has used. A Unix
	 * socket does not count: no page can reach it. */
	bool is_loopback = c->kind == CONN_ADMIN ? http->listeners.admin.is_local_port
	                                         : http->listeners.is_local;

	return check_host(conf, c, is_loopback) && (!is_loopback || check_page(conf, c));
}

/* Returns whether a name of the attacker can stand for this address (DNS rebinding): the host is
 * neither an address nor a name of the configuration. */
static bool is_strange_host(const struct conf *conf, const struct conn *c)
{
	struct slice authority = span_slice(c->request.authority, c->input + c->begin), host;

	return authority.length > 0 && (!host_parse(authority, &host) ||
	                                !(is_own_host(conf, host) || host_is_address(host)));
}

bool site_guard_allows_control(const struct conf *conf, struct conn *c)
{
	struct slice site = conn_value(c, "sec-fetch-site"), origin = conn_value(c, "origin");
	bool is_foreign = (conn_has_field(c, "sec-fetch-site") && !slice_is(site, "same-origin")) ||
	                  (conn_has_field(c, "origin") && !is_own_origin(c, origin));

	/* A page can send this field to another origin only after a preflight request, which fails
	 * here. */
	if (conn_has_field(c, "x-darkroom-control") && !is_foreign && !is_strange_host(conf, c))
		return true;
	return problem_set(
		&c->problem, 403, "foreign-page",
		"expected the operator's page of this server, or a client that sends the "
		"header field X-Darkroom-Control");
}
