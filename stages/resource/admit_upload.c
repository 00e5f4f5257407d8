/* admit_upload.c - reads what the header asks of an upload, and asks for admission. */
#include "handlers.h"

#include <ctype.h>
#include <string.h>

#include <nettle/sha2.h>

#include "base/clock.h"
#include "conf/conf.h"
#include "conf/conf_classes.h"
#include "conf/conf_number.h"
#include "image/image.h"
#include "image/image_service.h"
#include "image/upload_key.h"

#define DEADLINE_DIGITS 9
#define EXPIRES_TEXT_MAX 16
#define EXPIRES_MAX_S (UINT64_C(3650) * 86400)
#define IDEMPOTENCY_KEY_MAX 255 /* characters */

/* ---- the class ---- */

static bool has_field(const struct conn *c, const struct conf_class_term *term)
{
	struct slice rest = conn_fields(c), value;

	while (head_find(&rest, term->word, &value))
		if (value.length == strlen(term->value) &&
		    memcmp(value.data, term->value, value.length) == 0)
			return true;
	return false;
}

static bool matches(const struct conn *c, const struct conf_class_term *term)
{
	switch (term->kind) {
	case CONF_CLASS_TOKEN:
		return strcmp(c->token_name, term->word) == 0;
	case CONF_CLASS_NET:
		return network_contains(&term->net, c->client.address);
	case CONF_CLASS_HEADER:
		return has_field(c, term);
	}
	return false;
}

/* Returns the index of the highest class of which a term matches (overload.classes); otherwise that
 * of the lowest. */
static unsigned class_of(const struct conn *c)
{
	const struct conf_classes *classes = &conf_epochs_now(&conn_images(c)->epochs)->classes;

	/* Terms are in the order of their classes. */
	for (unsigned i = 0; i < classes->term_count; i++)
		if (matches(c, &classes->term[i]))
			return classes->term[i].class;
	return classes->count;
}

/* ---- the quotas of the token ---- */

static bool reserve(struct conn *c, uint64_t images, uint64_t bytes)
{
	static const char *const limit[] = { [USAGE_IMAGES] = "quota.images",
		                             [USAGE_BYTES] = "quota.bytes",
		                             [USAGE_UPLOADS] = "quota.uploads" };
	const uint64_t max[] = { [USAGE_IMAGES] = c->quota.images,
		                 [USAGE_BYTES] = c->quota.bytes,
		                 [USAGE_UPLOADS] = c->quota.uploads };
	struct usage *usage = &conn_images(c)->store.usage;
	uint64_t used = 0;

	if (conn_images(c)->storage.class->is_shared) /* images are not counted */
		return problem_set(&c->problem, 501, "not-implemented",
		                   "store.kind = s3 does not provide quotas");
	enum usage_verdict verdict =
		usage_reserve(usage, c->token_name, &c->quota, images, bytes, &used);
	bool is_rate = verdict == USAGE_UPLOADS;

	if (verdict == USAGE_GRANTED)
		return true;
	problem_set_limit(&c->problem, is_rate ? 429 : 507, "quota-exceeded", limit[verdict],
	                  max[verdict], used + (verdict == USAGE_BYTES ? bytes : images));
	if (is_rate)
		c->problem.retry_after_s = usage_day_left();
	return false;
}

static bool has_quota(const struct conn *c)
{
	return c->quota.images || c->quota.bytes || c->quota.uploads;
}

/* Returns whether the token has room for one more image, before the body is read. Otherwise sets
 * the problem. */
static bool quota_has_room(struct conn *c)
{
	if (!has_quota(c))
		return true;
	if (!reserve(c, 1, 1))
		return false;
	usage_release(&conn_images(c)->store.usage, c->token_name, 1, 1, 1);
	return true;
}

uint64_t upload_bytes(const struct upload *u)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < u->image_count; i++)
		bytes += u->image[i]->source_size;
	return bytes;
}

static void release_image(struct visit *v, struct image *image)
{
	const struct upload *u = image->upload;

	(void)v;
	usage_release(&u->service->store.usage, u->token_name, 1, image->source_size, 0);
}

bool quota_take(struct conn *c, struct upload *u)
{
	u->has_quota = has_quota(c) && reserve(c, u->image_count, upload_bytes(u));
	for (unsigned i = 0; u->has_quota && i < u->image_count; i++)
		image_hold(u->image[i], release_image);
	return u->has_quota || !has_quota(c);
}

void quota_drop(struct upload *u)
{
	if (u->has_quota)
		usage_release(&u->service->store.usage, u->token_name, u->image_count,
		              upload_bytes(u), u->image_count);
	u->has_quota = false;
}

/* ---- Idempotency-Key (draft-ietf-httpapi-idempotency-key-header-07) ---- */

/* Of a key: whose it is. */
enum owner { OWNER_CLIENT = 1, OWNER_TOKEN, OWNER_PERMISSION };

/* Reads a quoted string (RFC 8941 3.3.3) into `key`, without its quotes and escapes. Returns its
 * length, or 0 if it is empty, too long or not such a string. */
static size_t parse_key(struct slice value, char key[IDEMPOTENCY_KEY_MAX])
{
	const char *at = value.data, *end = at + value.length;
	size_t length = 0;

	if (value.length < 2 || *at++ != '"' || *--end != '"')
		return 0;
	for (; at < end; at++) {
		bool is_escaped = *at == '\\';

		at += is_escaped;
		if (at == end || length == IDEMPOTENCY_KEY_MAX || *at < ' ' || *at > '~')
			return 0;
		if (is_escaped != (*at == '"' || *at == '\\'))
			return 0;
		key[length++] = *at;
	}
	return length;
}

/* Hashes a key with its permission, its token or its client's address. These parts of fixed length
 * come first, so no two clients have the same bytes. */
static void hash_key(const struct conn *c, const char *key, size_t length, uint8_t *name)
{
	struct sha256_ctx context;
	uint8_t owner = c->permission.images ? OWNER_PERMISSION
	                : c->token_name[0]   ? OWNER_TOKEN
	                                     : OWNER_CLIENT;
	char token[UPLOAD_TOKEN_MAX] = "";

	memcpy(token, c->token_name, strnlen(c->token_name, sizeof token));
	sha256_init(&context);
	sha256_update(&context, 1, &owner);
	sha256_update(&context, sizeof token, (const uint8_t *)token);
	if (owner == OWNER_CLIENT)
		sha256_update(&context, sizeof c->payer.address, c->payer.address);
	if (owner == OWNER_PERMISSION)
		sha256_update(&context, sizeof c->permission.key, c->permission.key);
	sha256_update(&context, length, (const uint8_t *)key);
	sha256_digest(&context, KEY_RECORD_HASH_SIZE, name);
}

/* Reads Idempotency-Key, unless store.idempotency_age is 0. Returns false with the problem set. */
static bool read_key(struct conn *c)
{
	struct slice value;
	char key[IDEMPOTENCY_KEY_MAX];

	if (!conn_conf(c)->store.idempotency_age_ms || !conn_field(c, "idempotency-key", &value))
		return true;
	size_t length = parse_key(value, key);

	if (length == 0)
		return problem_set(
			&c->problem, 400, "malformed-request",
			"Idempotency-Key: expected one string in quotation marks of 1 to %d "
			"ASCII characters, such as \"8e03978e-40d5-43dd-bc93-6894a57f9324\"",
			IDEMPOTENCY_KEY_MAX);
	assert(!c->key);
	c->key = upload_key_new();
	if (!c->key)
		return problem_set(&c->problem, 503, "overloaded", "no memory");
	c->key->has_share = c->has_share;
	hash_key(c, key, length, c->key->record.name);
	return true;
}

/* ---- admission ---- */

static void shed(struct conn *c)
{
	c->is_shed = true;
	admission_refuse(&conn_images(c)->admission, conn_conf(c), &c->admission, &c->problem);
}

static enum conn_step admitted(struct visit *v, struct conn *c)
{
	(void)v;
	c->phase.start_ns = clock_ns();
	return conn_go(c, c->after_admit);
}

static bool leave_line(struct conn *c)
{
	if (!admission_leave(&conn_images(c)->admission, &c->admission))
		return false;
	if (clock_ns() >= c->wait.end_ns) /* otherwise its client has gone */
		shed(c);
	return true;
}

/* The uploads before it may have ended without an image. */
static void look(struct visit *v, struct conn *c)
{
	admission_poll(v, &conn_images(c)->admission);
}

/* Waits in the line, unless there is room. */
static enum conn_step wait_for_room(struct visit *v, struct conn *c)
{
	conn_wait(v, c, admitted, conn_conf(c)->limits.body_timeout_ms, leave_line);
	c->wait.look = look;
	return admission_try(&conn_images(c)->admission, &c->admission, true) ? conn_unwait(v, c)
	                                                                      : CONN_STEP_GONE;
}

/* Reads X-Request-Deadline: milliseconds since the request began. Returns false with the problem
 * set if it is not a number. */
static bool read_deadline(struct conn *c)
{
	struct slice rest = conn_fields(c), value;
	uint64_t ms = 0;

	if (!head_find(&rest, "x-request-deadline", &value))
		return true;
	if (!field_number(value, &ms) || value.length > DEADLINE_DIGITS)
		return problem_set(
			&c->problem, 400, "malformed-request",
			"X-Request-Deadline: expected milliseconds, with at most %d digits",
			DEADLINE_DIGITS);
	c->request_deadline_ns = c->request_start_ns + ms * NS_PER_MS;
	return true;
}

/* Returns the seconds of a duration, which are the unit of a number without one, or 0 if it is
 * none, or out of bounds. */
static uint64_t parse_seconds(struct slice value)
{
	char text[EXPIRES_TEXT_MAX + 2] = "";
	uint64_t seconds;

	if (value.length == 0 || value.length > EXPIRES_TEXT_MAX ||
	    memchr(value.data, ' ', value.length))
		return 0;
	memcpy(text, value.data, value.length);
	if (isdigit((unsigned char)text[value.length - 1]))
		text[value.length] = 's';
	if (!conf_units_parse_duration(text, NS_PER_S / 1000, &seconds))
		return 0;
	return seconds <= EXPIRES_MAX_S ? seconds : 0;
}

/* Reads X-Expires-After. Returns false with the problem set if it is not a duration. */
static bool read_expires(struct conn *c)
{
	struct slice value;

	if (!conn_field(c, "x-expires-after", &value))
		return true;
	if ((c->expires_after_s = parse_seconds(value)))
		return true;
	return problem_set(
		&c->problem, 400, "malformed-request",
		"X-Expires-After: expected one duration of at most 3650 days: seconds, or a number "
		"with s, m, h or d");
}

enum conn_step admit_upload(struct visit *v, struct conn *c)
{
	struct admission *a = &conn_images(c)->admission;

	if (!read_deadline(c) || !read_expires(c) || !read_key(c) || !quota_has_room(c))
		return conn_go(c, CONN_REFUSE);
	c->admission.client = clients_find(&a->clients, &c->payer);
	if (!admission_ask(a, conn_conf(c), &c->admission.client, &c->problem)) {
		c->is_shed = true;
		return conn_go(c, CONN_REFUSE);
	}
	c->admission.class = class_of(c);
	c->admission.full_stage = 0;
	c->admission.event = &c->event;
	c->admission.instance = c->instance;
	c->admission.bytes = c->request.is_chunked ? 0 : c->request.content_length;
	if (conn_conf(c)->overload.when_full == CONF_WHEN_FULL_WAIT)
		return wait_for_room(v, c);
	if (!admission_try(a, &c->admission, false)) {
		shed(c);
		return conn_go(c, CONN_REFUSE);
	}
	return admitted(v, c);
}
