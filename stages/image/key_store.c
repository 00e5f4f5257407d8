/* key_store.c - passes calls on to the store of the configuration. */
#include "key_store.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "image_service.h"
#include "log/log.h"
#include "s3/s3_keys.h"
#include "store/store.h"
#include "store/store_trash.h"

static_assert(KEY_VERSION_MAX == S3_ETAG_MAX, "a version is an entity tag");

bool key_store_is_shared(const struct image_service *s)
{
	return s->s3 != NULL;
}

int key_store_read(struct image_service *s, const uint8_t name[KEY_RECORD_HASH_SIZE],
                   struct key_record *r, char version[KEY_VERSION_MAX])
{
	if (s->s3)
		return s3_key_read(s->s3, name, r, version);
	version[0] = '\0';
	return key_record_read(&s->store, name, r) ? -ENOENT : 0; /* as if it had been lost */
}

int key_store_write(struct image_service *s, const uint8_t name[KEY_RECORD_HASH_SIZE],
                    const struct key_record *r, char version[KEY_VERSION_MAX])
{
	return s->s3 ? s3_key_write(s->s3, name, r, version) : key_record_write(&s->store, name, r);
}

int key_store_settle(struct image_service *s, const uint8_t name[KEY_RECORD_HASH_SIZE],
                     struct key_record *r, char version[KEY_VERSION_MAX])
{
	r->is_settled = true;
	return s->s3 ? s3_key_write(s->s3, name, r, version) : key_record_settle(&s->store, name);
}

int key_store_flush(struct image_service *s)
{
	return s->s3 ? 0 : store_flush(&s->store);
}

int key_store_remove(struct image_service *s, const uint8_t name[KEY_RECORD_HASH_SIZE])
{
	return s->s3 ? s3_key_remove(s->s3, name) : key_record_remove(&s->store, name);
}

void key_store_sweep(struct image_service *s, unsigned shard, uint64_t before)
{
	if (!s->s3) {
		key_record_sweep(&s->store, shard, before);
		return;
	}
	int err = s3_key_sweep(s->s3, shard, before);

	if (err)
		log_warning(
			"expire: cannot remove old records of Idempotency-Keys: %s; trying again "
			"after a round of all of them",
			strerror(-err));
}
