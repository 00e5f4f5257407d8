/*
 * key_table.h - a hash table of structs that begin with a key of 16 bytes. The caller locks it.
 */
#ifndef DARKROOM_BASE_KEY_TABLE_H
#define DARKROOM_BASE_KEY_TABLE_H

#include <stdint.h>

#define KEY_SIZE 16
#define KEY_TABLE_BUCKETS 256

struct key_entry {
	uint8_t key[KEY_SIZE];
	struct key_entry *next;
};

/* Zeroed: empty. */
struct key_table {
	struct key_entry *bucket[KEY_TABLE_BUCKETS];
};

/* Returns the entry with this key, or NULL. */
struct key_entry *key_table_find(const struct key_table *t, const uint8_t key[KEY_SIZE]);

/* Adds an entry, whose key is set and is not in the table. The table borrows it. */
void key_table_add(struct key_table *t, struct key_entry *entry);

/* Removes an entry of the table. */
void key_table_remove(struct key_table *t, struct key_entry *entry);

#endif
