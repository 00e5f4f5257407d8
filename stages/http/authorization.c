/* authorization.c - parses the Authorization header field, and sets the challenge of a refusal. */
#include "authorization.h"

#include <string.h>

#include "conf/conf.h"
#include "conn.h"
#include "daemon/tokens.h"

#define BEARER "Bearer realm=\"darkroom\""

static bool refuse(struct conn *c, unsigned status, const char *slug, const char *challenge,
                   const char *detail)
{
	problem_set(&c->problem, status, slug, "%s", detail);
	c->challenge = challenge;
	return false;
}

/* Returns whether s is a b64token (RFC 6750 2.1). */
static bool is_token(struct slice s)
{
	size_t i = 0;

	while (i < s.length && s.data[i] && s.data[i] != '=' &&
	       strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~+/",
	              s.data[i]))
		i++;
	if (i == 0)
		return false;
	while (i < s.length && s.data[i] == '=')
		i++;
	return i == s.length;
}

/* Removes the scheme "Bearer". Returns false if it is another one. */
static bool skip_scheme(struct slice *value)
{
	static const char scheme[] = "bearer";
	size_t length = sizeof scheme - 1;

	if (value->length < length || !slice_is((struct slice){ value->data, length }, scheme) ||
	    (value->length > length && value->data[length] != ' '))
		return false;
	value->data += length;
	value->length -= length;
	*value = slice_trim(*value);
	return true;
}

static bool refuse_scope(struct conn *c, enum token_scope scope)
{
	static const char slug[] = "forbidden";

	if (scope == TOKEN_UPLOAD)
		return refuse(c, 403, slug,
		              BEARER ", error=\"insufficient_scope\", scope=\"upload\"",
		              "the token does not allow uploads");
	if (scope == TOKEN_LIST)
		return refuse(c, 403, slug, BEARER ", error=\"insufficient_scope\", scope=\"list\"",
		              "the token does not allow listing images");
	if (scope == TOKEN_ORIGINAL)
		return refuse(c, 403, slug,
		              BEARER ", error=\"insufficient_scope\", scope=\"original\"",
		              "the token does not allow reading originals");
	return refuse(c, 403, slug, BEARER ", error=\"insufficient_scope\", scope=\"delete\"",
	              "the token does not allow removing images");
}

static bool allows(struct tokens *tokens, struct conn *c, enum token_scope scope)
{
	struct slice value = request_value(&c->request, REQUEST_AUTHORIZATION, c->input + c->begin);

	if (c->request.field_count[REQUEST_AUTHORIZATION] > 1)
		return refuse(c, 400, "malformed-request", BEARER ", error=\"invalid_request\"",
		              "the request has several Authorization header fields");
	if (!skip_scheme(&value))
		return refuse(c, 401, "unauthorized", BEARER,
		              "the request needs a header field Authorization: Bearer TOKEN");
	uint8_t key[TOKEN_KEY_SIZE];
	enum token_verdict verdict =
		is_token(value) ? tokens_verdict(tokens, value.data, value.length, scope, key)
				: TOKEN_UNKNOWN;

	if (verdict == TOKEN_UNKNOWN)
		return refuse(c, 401, "unauthorized", BEARER ", error=\"invalid_token\"",
		              "the token is not valid");
	static_assert(sizeof c->token_name == TOKEN_NAME_MAX, "a name is copied whole");
	tokens_name(tokens, key, c->token_name, &c->quota); /* for the log and image.json */
	if (verdict == TOKEN_INSUFFICIENT)
		return refuse_scope(c, scope);
	static_assert(sizeof key == sizeof c->payer.address, "a token counts like an address");
	memcpy(c->payer.address, key, sizeof key);
	c->has_share = true;
	return true;
}

/* A list names every image, so it is not open to all by default. */
static bool may_list(struct tokens *tokens, struct conn *c)
{
	if (c->kind == CONN_ADMIN || conn_conf(c)->server.public_list == CONF_YES)
		return true;
	if (tokens_are_needed(tokens))
		return allows(tokens, c, TOKEN_LIST);
	return refuse(c, 403, "forbidden", NULL,
	              "the list is for the administrative address and for tokens; "
	              "server.public_list = yes opens it to all");
}

static bool may_read_original(struct tokens *tokens, struct conn *c)
{
	if (tokens_are_needed(tokens))
		return allows(tokens, c, TOKEN_ORIGINAL);
	return refuse(c, 403, "forbidden", NULL,
	              "originals are for tokens that may read them: access.tokens_file");
}

bool authorization_allows(struct tokens *tokens, struct conn *c)
{
	c->payer = client_key_of(&c->client, (unsigned)conn_conf(c)->limits.client_ipv6_prefix);
	c->has_share = !client_is_local(&c->client); /* a proxy stands for many */
	c->token_name[0] = '\0';
	c->quota = (struct token_quota){ 0 };
	c->permission = (struct signed_upload){ .images = 0 };
	if (c->route.kind == ROUTE_LIST)
		return may_list(tokens, c);
	if (c->route.kind == ROUTE_ORIGINAL && c->request.method & (ROUTE_GET | ROUTE_HEAD))
		return may_read_original(tokens, c);
	if (!tokens_are_needed(tokens) || c->route.kind == ROUTE_CONTROL ||
	    c->route.kind == ROUTE_TRACE)
		return true;
	if (c->request.method == ROUTE_POST && c->request.field_count[REQUEST_AUTHORIZATION] == 0 &&
	    signed_upload_is_given(c))
		return signed_upload_allows(tokens, c);
	if (c->request.method == ROUTE_POST)
		return allows(tokens, c, TOKEN_UPLOAD);
	return c->request.method != ROUTE_DELETE || allows(tokens, c, TOKEN_DELETE);
}
