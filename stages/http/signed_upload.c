/* signed_upload.c - parses, verifies and counts permissions. The owner of the connection's event.
 */
#include "signed_upload.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include <nettle/base16.h>
#include <nettle/memops.h>

#include "base/check.h"
#include "conn.h"
#include "daemon/permission.h"
#include "image/image.h"

#define FORM_BYTES (UINT64_C(1) << 20) /* of a body, beside the files */

/* ---- the query ---- */

static struct slice query_of(const struct conn *c)
{
	struct slice target = span_slice(c->request.target, c->input + c->begin);
	const char *mark = memchr(target.data, '?', target.length);
	size_t before = mark ? (size_t)(mark - target.data) + 1 : target.length;

	return (struct slice){ target.data + before, target.length - before };
}

/* Takes the next NAME=VALUE. Returns false at the end. */
static bool next_item(struct slice *rest, struct slice *name, struct slice *value)
{
	if (rest->length == 0)
		return false;
	const char *end = memchr(rest->data, '&', rest->length);
	size_t length = end ? (size_t)(end - rest->data) : rest->length;
	const char *equals = memchr(rest->data, '=', length);
	size_t name_length = equals ? (size_t)(equals - rest->data) : length;

	*name = (struct slice){ rest->data, name_length };
	*value = (struct slice){ rest->data + name_length + (equals != NULL),
		                 length - name_length - (equals != NULL) };
	rest->data += length + (end != NULL);
	rest->length -= length + (end != NULL);
	return true;
}

bool signed_upload_is_given(const struct conn *c)
{
	struct slice rest = query_of(c), name, value;

	while (next_item(&rest, &name, &value))
		if (slice_is(name, "signature"))
			return true;
	return false;
}

enum { TOKEN = 1, EXPIRES = 2, IMAGES = 4, BYTES = 8, SIGNATURE = 16, ALL_ITEMS = 31 };

static bool read_signature(struct slice value, uint8_t signature[PERMISSION_SIGNATURE_SIZE])
{
	size_t size = PERMISSION_SIGNATURE_SIZE;
	struct base16_decode_ctx context;

	base16_decode_init(&context);
	return value.length == BASE16_ENCODE_LENGTH(PERMISSION_SIGNATURE_SIZE) &&
	       base16_decode_update(&context, &size, signature, value.length, value.data) &&
	       base16_decode_final(&context) && size == PERMISSION_SIGNATURE_SIZE;
}

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
	return slice_is(name, "signature") && read_signature(value, signature) ? SIGNATURE : 0;
}

/* Reads the query, in which each item stands once, in any order. */
static bool read_query(const struct conn *c, struct permission *p,
                       uint8_t signature[PERMISSION_SIGNATURE_SIZE])
{
	struct slice rest = query_of(c), name, value;
	unsigned seen = 0;

	*p = (struct permission){ .images = 0 };
	while (next_item(&rest, &name, &value)) {
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
	uint64_t images = u->image_count, bytes = 0, used_images = 0, used_bytes = 0;

	if (!s->images)
		return true;
	for (unsigned i = 0; i < u->image_count; i++)
		bytes += u->image[i]->source_size;
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

static bool refuse(struct conn *c, const char *detail)
{
	problem_set(&c->problem, 401, "unauthorized", "%s", detail);
	c->challenge = "Bearer realm=\"darkroom\"";
	return false;
}

bool signed_upload_allows(struct tokens *tokens, struct conn *c)
{
	uint8_t given[PERMISSION_SIGNATURE_SIZE], expected[PERMISSION_SIGNATURE_SIZE];
	uint8_t hash[TOKEN_HASH_SIZE];
	uint64_t now = (uint64_t)time(NULL);
	struct permission p;

	if (!read_query(c, &p, given))
		return refuse(c, "expected token=NAME&expires=UNIX&images=N&bytes=N&signature=HEX");
	bool is_known = tokens_signer(tokens, p.name, hash, &c->quota);

	permission_sign(&p, hash, expected);
	if (!is_known || !memeql_sec(given, expected, sizeof given))
		return refuse(c, "the signature is not valid");
	if (p.expires <= now)
		return refuse(c, "the permission has ended");
	if (p.expires > now + PERMISSION_SECONDS_MAX)
		return refuse(c, "the permission is valid for more than a day");
	if (c->request.content_length > p.bytes + FORM_BYTES) {
		problem_set(&c->problem, 403, "forbidden",
		            "the permission is for %llu bytes in all", (unsigned long long)p.bytes);
		return false;
	}
	static_assert(sizeof c->token_name == TOKEN_NAME_MAX, "a name is copied whole");
	memcpy(c->token_name, p.name, sizeof c->token_name);
	c->permission = (struct signed_upload){ .images = p.images,
		                                .bytes = p.bytes,
		                                .expires = p.expires };
	memcpy(c->permission.key, given, sizeof c->permission.key);
	return true;
}
