/* key_table.c - lists in buckets. The caller locks. */
#include "key_table.h"

#include <stddef.h>
#include <string.h>

#include "check.h"
#include "hash.h"

/* It need not resist attacks by collisions: a table has few entries for a client that can choose
 * keys, since each key is an address from which it has a connection, or a token. */
static size_t bucket_of(const uint8_t key[KEY_SIZE])
{
	return hash_bytes(key, KEY_SIZE) % KEY_TABLE_BUCKETS;
}

struct key_entry *key_table_find(const struct key_table *t, const uint8_t key[KEY_SIZE])
{
	struct key_entry *entry = t->bucket[bucket_of(key)];

	while (entry && memcmp(entry->key, key, KEY_SIZE) != 0)
		entry = entry->next;
	return entry;
}

void key_table_add(struct key_table *t, struct key_entry *entry)
{
	struct key_entry **bucket = &t->bucket[bucket_of(entry->key)];

	entry->next = *bucket;
	*bucket = entry;
}

void key_table_remove(struct key_table *t, struct key_entry *entry)
{
	struct key_entry **at = &t->bucket[bucket_of(entry->key)];

	for (; *at != entry; at = &(*at)->next)
		assert(*at);
	*at = entry->next;
}
