/* s3_keys.c - small objects whose names are hashes of keys. Any thread; calls block. */
#include "s3_keys.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/pool.h"
#include "s3_objects.h"

#define KEYS "keys/"

static void object_key(char object[S3_KEY_MAX], const uint8_t key[KEY_RECORD_HASH_SIZE])
{
	char name[KEY_RECORD_NAME_LENGTH];

	key_record_name(name, key);
	snprintf(object, S3_KEY_MAX, KEYS "%.*s", KEY_RECORD_NAME_LENGTH, name);
}

/* Copies the text of an object, with a zero behind it. Returns NULL if there is no memory. */
static char *copy_text(const struct text *body)
{
	char *text = pool_get(body->length + 1);

	if (text && body->length)
		memcpy(text, body->data, body->length);
	if (text)
		text[body->length] = '\0';
	return text;
}

int s3_key_read(struct s3_store *s, const uint8_t key[KEY_RECORD_HASH_SIZE], struct key_record *r,
                char version[S3_ETAG_MAX])
{
	struct s3_op op = { .verb = S3_GET, .body_max = KEY_RECORD_TEXT_MAX };

	*r = (struct key_record){ .count = 0 };
	version[0] = '\0';
	object_key(op.key, key);
	s3_client_run(s->client, &op, 1);
	int err = op.err;

	if (!err) {
		char *text = copy_text(&op.body);

		memcpy(version, op.etag, S3_ETAG_MAX); /* also of a damaged one, to replace it */
		err = text ? key_record_parse(text, op.body.length, r) : -ENOMEM;
	}
	text_fini(&op.body);
	return err;
}

int s3_key_write(struct s3_store *s, const uint8_t key[KEY_RECORD_HASH_SIZE],
                 const struct key_record *r, char version[S3_ETAG_MAX])
{
	char object[S3_KEY_MAX], match[S3_ETAG_MAX];
	size_t length;
	char *text = key_record_format(r, &length);

	if (!text)
		return -ENOMEM;
	object_key(object, key);
	snprintf(match, sizeof match, "%s", version[0] ? version : "*");
	int err = s3_put_if(s, object, text, length, match, version);

	pool_put(text);
	return err == -ENOENT ? -EEXIST : err; /* another node has removed it */
}

int s3_key_remove(struct s3_store *s, const uint8_t key[KEY_RECORD_HASH_SIZE])
{
	char object[S3_KEY_MAX];

	object_key(object, key);
	return s3_remove(s, object);
}

int s3_key_sweep(struct s3_store *s, unsigned shard, uint64_t before)
{
	char prefix[S3_KEY_MAX];

	snprintf(prefix, sizeof prefix, KEYS "%02x", shard & 0xff);
	return s3_remove_old(s, prefix, (time_t)before);
}
