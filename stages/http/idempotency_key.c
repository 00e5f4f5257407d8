/* idempotency_key.c - parses the field, and hashes it together with its client. */
#include "idempotency_key.h"

#include <string.h>

#include <nettle/sha2.h>

#include "base/check.h"
#include "conf/conf.h"
#include "conn.h"
#include "head.h"
#include "image/upload_key.h"

/* Of a key: whose it is. */
enum owner { OWNER_CLIENT = 1, OWNER_TOKEN, OWNER_PERMISSION };

size_t idempotency_key_parse(struct slice value, char key[IDEMPOTENCY_KEY_MAX])
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

/* Parts of fixed length come before the key, so no two clients have the same bytes. */
static void hash(const struct conn *c, const char *key, size_t length, uint8_t *name)
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
	sha256_digest(&context, UPLOAD_KEY_HASH_SIZE, name);
}

/* Makes the key of a request; of its content, if length is 0. */
static bool make(struct conn *c, const char *key, size_t length)
{
	assert(!c->key);
	c->key = upload_key_new();
	if (!c->key) {
		problem_set(&c->problem, 503, "overloaded", "no memory");
		return false;
	}
	c->key->has_share = c->has_share;
	c->key->is_content = length == 0;
	hash(c, key, length, c->key->name);
	return true;
}

bool idempotency_key_read(struct conn *c)
{
	struct slice rest = request_fields(&c->request, c->input + c->begin), value, second;
	const struct conf *conf = conn_conf(c);
	char key[IDEMPOTENCY_KEY_MAX];

	if (!conf->store.idempotency_age_ms)
		return true;
	if (!head_find(&rest, "idempotency-key", &value))
		return conf->store.dedupe == CONF_NO || c->expires_after_s || make(c, key, 0);
	size_t length = idempotency_key_parse(value, key);

	if (length == 0 || head_find(&rest, "idempotency-key", &second)) {
		problem_set(&c->problem, 400, "malformed-request",
		            "Idempotency-Key: expected one string in quotation marks of 1 to %d "
		            "ASCII characters, such as \"8e03978e-40d5-43dd-bc93-6894a57f9324\"",
		            IDEMPOTENCY_KEY_MAX);
		return false;
	}
	return make(c, key, length);
}
