/*
 * authorization.c - parses, verifies and counts signed permissions; parses the Authorization header
 * field, and sets the challenge of a refusal. The owner of the connection.
 */
#include "authorization.h"

#include <nettle/memops.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "access/tokens.h"
#include "base/check.h"
#include "conf/conf.h"
#include "handlers.h"

/* ---- signed uploads ---- */

#define BEARER "Bearer realm=\"darkroom\""

static bool refuse(struct conn *c, unsigned status, const char *slug, const char *challenge,
                   const char *detail)
{
	problem_set(&c->problem, status, slug, "%s", detail);
	c->challenge = challenge;
	return false;
}

/* ---- the query ---- */

/* Returns whether the request has a permission, valid or not. */
static bool signed_upload_is_given(const struct conn *c)
{
	struct slice rest = conn_query(c), name, value;

	while (field_query_next(&rest, &name, &value))
		if (slice_is(name, "signature"))
			return true;
	return false;
}

enum { TOKEN = 1, EXPIRES = 2, IMAGES = 4, BYTES = 8, SIGNATURE = 16, ALL_ITEMS = 31 };

/* Takes one item. Returns its bit, or 0 if it is wrong. */
static unsigned take_item(struct permission *p, uint8_t signature[PERMISSION_SIGNATURE_SIZE],
                          struct slice name, struct slice value)
{
	if (slice_is(name, "token") && token_name_is_valid(value.data, value.length)) {
		memcpy(p->name, value.data, value.length);
		return TOKEN;
	}
	if (slice_is(name, "expires"))
		return (p->expires = token_number(value.data, value.length)) ? EXPIRES : 0;
	if (slice_is(name, "images"))
		return (p->images = token_number(value.data, value.length)) ? IMAGES : 0;
	if (slice_is(name, "bytes"))
		return (p->bytes = token_number(value.data, value.length)) ? BYTES : 0;
	static_assert(PERMISSION_SIGNATURE_SIZE == TOKEN_HASH_SIZE, "it is read as a hash");
	return slice_is(name, "signature") && token_read_hash(value.data, value.length, signature)
	               ? SIGNATURE
	               : 0;
}

/* Reads the query, in which each item stands once, in any order. */
static bool read_permission(const struct conn *c, struct permission *p,
                            uint8_t signature[PERMISSION_SIGNATURE_SIZE])
{
	struct slice rest = conn_query(c), name, value;
	unsigned seen = 0;

	*p = (struct permission){ .images = 0 };
	while (field_query_next(&rest, &name, &value)) {
		unsigned item = take_item(p, signature, name, value);

		if (!item || seen & item)
			return false;
		seen |= item;
	}
	return seen == ALL_ITEMS;
}

/* ---- what was used ---- */

struct use {
	uint64_t expires, images, bytes;
	uint8_t key[SIGNED_UPLOAD_KEY_SIZE];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct use uses[SIGNED_UPLOADS_MAX]; /* under the lock; expires 0: free */

/* Returns the permission's entry, or a free one, or NULL. Under the lock. */
static struct use *find_use(const struct signed_upload *s)
{
	uint64_t now = (uint64_t)time(NULL);
	struct use *free_one = NULL;

	for (unsigned i = 0; i < SIGNED_UPLOADS_MAX; i++) {
		struct use *use = &uses[i];

		if (use->expires >= now && memcmp(use->key, s->key, sizeof use->key) == 0)
			return use;
		if (use->expires < now && !free_one)
			free_one = use;
	}
	if (free_one) {
		*free_one = (struct use){ .expires = 0 };
		memcpy(free_one->key, s->key, sizeof free_one->key);
	}
	return free_one;
}

bool signed_upload_take(struct conn *c, const struct upload *u)
{
	struct signed_upload *s = &c->permission;
	uint64_t images = u->image_count, bytes = upload_bytes(u), used_images = 0, used_bytes = 0;

	if (!s->images)
		return true;
	pthread_mutex_lock(&lock);
	struct use *use = find_use(s);

	if (use) {
		used_images = use->images;
		used_bytes = use->bytes;
	}
	bool fits = use && used_images + images <= s->images && used_bytes + bytes <= s->bytes;

	if (fits) {
		use->expires = s->expires;
		use->images += s->images_taken = images;
		use->bytes += s->bytes_taken = bytes;
	}
	pthread_mutex_unlock(&lock);
	if (!use)
		problem_set(&c->problem, 503, "overloaded", "%u permissions are in use",
		            SIGNED_UPLOADS_MAX);
	else if (!fits)
		problem_set(&c->problem, 403, "forbidden",
		            "the permission is for %llu images and %llu bytes in all, of which "
		            "%llu and %llu are used",
		            (unsigned long long)s->images, (unsigned long long)s->bytes,
		            (unsigned long long)used_images, (unsigned long long)used_bytes);
	return fits;
}

void signed_upload_drop(struct conn *c)
{
	struct signed_upload *s = &c->permission;

	if (!s->images_taken)
		return;
	pthread_mutex_lock(&lock);
	struct use *use = find_use(s);

	if (use && use->expires) { /* otherwise it has ended */
		use->images -= s->images_taken;
		use->bytes -= s->bytes_taken;
	}
	pthread_mutex_unlock(&lock);
	s->images_taken = s->bytes_taken = 0;
}

/* ---- verification ---- */

/* Returns whether the permission is valid. Otherwise sets the problem, 401 or 403. */
static bool signed_upload_allows(struct tokens *tokens, struct conn *c)
{
	uint8_t given[PERMISSION_SIGNATURE_SIZE], expected[PERMISSION_SIGNATURE_SIZE];
	uint64_t now = (uint64_t)time(NULL);
	struct token signer;
	struct permission p;

	if (!read_permission(c, &p, given))
		return refuse(c, 401, "unauthorized", BEARER,
		              "expected token=NAME&expires=UNIX&images=N&bytes=N&signature=HEX");
	bool is_known = tokens_find_signer(tokens, p.name, &signer);

	c->quota = signer.quota;
	permission_sign(&p, signer.hash, expected);
	if (!is_known || !memeql_sec(given, expected, sizeof given))
		return refuse(c, 401, "unauthorized", BEARER, "the signature is not valid");
	if (p.expires <= now)
		return refuse(c, 401, "unauthorized", BEARER, "the permission has ended");
	if (p.expires > now + PERMISSION_SECONDS_MAX)
		return refuse(c, 401, "unauthorized", BEARER,
		              "the permission is valid for more than a day");
	static_assert(sizeof c->token_name == TOKEN_NAME_MAX, "a name is copied whole");
	memcpy(c->token_name, p.name, sizeof c->token_name);
	c->permission = (struct signed_upload){ .images = p.images,
		                                .bytes = p.bytes,
		                                .expires = p.expires };
	memcpy(c->permission.key, given, sizeof c->permission.key);
	return conn_is_permitted(c, c->request.content_length);
}

/* ---- tokens ---- */

/* Removes the scheme "Bearer". Returns false if it is another one. */
static bool skip_scheme(struct slice *value)
{
	const size_t length = strlen("bearer");

	if (!slice_begins(*value, "bearer") ||
	    (value->length > length && value->data[length] != ' '))
		return false;
	*value = slice_trim((struct slice){ value->data + length, value->length - length });
	return true;
}

static bool refuse_scope(struct conn *c, enum token_scope scope)
{
#define SCOPE(name) BEARER ", error=\"insufficient_scope\", scope=\"" name "\""
	static const struct {
		enum token_scope scope;
		const char *challenge, *detail;
	} rows[] = {
		{ TOKEN_UPLOAD, SCOPE("upload"), "the token does not allow uploads" },
		{ TOKEN_LIST, SCOPE("list"), "the token does not allow listing images" },
		{ TOKEN_ORIGINAL, SCOPE("original"), "the token does not allow reading originals" },
		{ TOKEN_DELETE, SCOPE("delete"), "the token does not allow removing images" },
	};
	unsigned i = 0;

	for (; rows[i].scope != scope; i++)
		assert(i + 1 < COUNT_OF(rows));
	return refuse(c, 403, "forbidden", rows[i].challenge, rows[i].detail);
}

static bool allows(struct tokens *tokens, struct conn *c, enum token_scope scope)
{
	struct slice value;

	if (conn_field(c, "authorization", &value) > 1)
		return refuse(c, 400, "malformed-request", BEARER ", error=\"invalid_request\"",
		              "the request has several Authorization header fields");
	if (!skip_scheme(&value))
		return refuse(c, 401, "unauthorized", BEARER,
		              "the request needs a header field Authorization: Bearer TOKEN");
	struct token token;

	/* Nothing is no token, even if the file has the hash of nothing by mistake. */
	if (!value.length || !tokens_find(tokens, value.data, value.length, &token))
		return refuse(c, 401, "unauthorized", BEARER ", error=\"invalid_token\"",
		              "the token is not valid");
	static_assert(sizeof c->token_name == TOKEN_NAME_MAX, "a name is copied whole");
	memcpy(c->token_name, token.name, TOKEN_NAME_MAX); /* for the log and image.json */
	c->quota = token.quota;
	c->sees_own = token.scopes & TOKEN_OWN;
	if (!(token.scopes & scope))
		return refuse_scope(c, scope);
	static_assert(sizeof c->payer.address <= sizeof token.hash, "it stands for the token");
	memcpy(c->payer.address, token.hash, sizeof c->payer.address);
	c->has_share = true;
	return true;
}

/* A list names every image, so it is not open to all by default. With tokens, other machines need
 * one at the administrative address as well. */
static bool may_list(struct tokens *tokens, struct conn *c)
{
	bool has_tokens = tokens_are_needed(tokens);

	if (c->kind == CONN_ADMIN ? !has_tokens || c->io->http->listeners.admin.is_local
	                          : conn_conf(c)->server.public_list == CONF_YES)
		return true;
	if (has_tokens)
		return allows(tokens, c, TOKEN_LIST);
	return refuse(c, 403, "forbidden", NULL,
	              "the list is for the administrative address and for tokens; "
	              "server.public_list = yes opens it to all");
}

bool authorization_allows(struct tokens *tokens, struct conn *c)
{
	c->payer = client_key_of(&c->client, (unsigned)conn_conf(c)->experiment.client_ipv6_prefix);
	c->has_share = !client_is_local(&c->client); /* a proxy stands for many */
	c->token_name[0] = '\0';
	c->sees_own = false;
	c->quota = (struct token_quota){ 0 };
	c->permission = (struct signed_upload){ .images = 0 };
	if (c->route.kind == ROUTE_LIST)
		return may_list(tokens, c);
	if (c->route.kind == ROUTE_ORIGINAL && c->request.method & (METHOD_GET | METHOD_HEAD))
		return tokens_are_needed(tokens)
		               ? allows(tokens, c, TOKEN_ORIGINAL)
		               : refuse(c, 403, "forbidden", NULL,
		                        "originals are for tokens that may read them: "
		                        "access.tokens_file");
	if (!tokens_are_needed(tokens) || c->route.kind == ROUTE_CONTROL)
		return c->request.method != METHOD_DELETE || client_is_local(&c->client) ||
		       refuse(c, 403, "forbidden", NULL,
		              "without tokens, only this machine removes images: "
		              "access.tokens_file");
	if (c->request.method == METHOD_POST && !conn_has_field(c, "authorization") &&
	    signed_upload_is_given(c))
		return signed_upload_allows(tokens, c);
	if (c->request.method == METHOD_POST)
		return allows(tokens, c, TOKEN_UPLOAD);
	return c->request.method != METHOD_DELETE || allows(tokens, c, TOKEN_DELETE);
}
