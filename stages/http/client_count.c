/* client_count.c - one entry for each address with connections. Any thread. */
#include "client_count.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

struct counted_client {
	struct key_entry entry; /* first */
	uint64_t connections;
};

void client_counts_init(struct client_counts *counts)
{
	*counts = (struct client_counts){ .table = { .bucket = { NULL } } };
	pthread_mutex_init(&counts->lock, NULL);
}

void client_counts_fini(struct client_counts *counts)
{
	for (unsigned i = 0; i < KEY_TABLE_BUCKETS; i++)
		assert(!counts->table.bucket[i]);
	pthread_mutex_destroy(&counts->lock);
}

static struct counted_client *find(const struct client_counts *counts,
                                   const struct client_key *client)
{
	return (struct counted_client *)key_table_find(&counts->table, client->address);
}

uint64_t client_counts_add(struct client_counts *counts, const struct client_key *client,
                           uint64_t max)
{
	pthread_mutex_lock(&counts->lock);
	struct counted_client *counted = find(counts, client);

	if (!counted && (counted = calloc(1, sizeof *counted))) {
		memcpy(counted->entry.key, client->address, KEY_SIZE);
		key_table_add(&counts->table, &counted->entry);
	}
	uint64_t n = counted ? counted->connections + 1 : 0;

	if (counted && n <= max)
		counted->connections = n;
	pthread_mutex_unlock(&counts->lock);
	return n;
}

void client_counts_drop(struct client_counts *counts, const struct client_key *client)
{
	pthread_mutex_lock(&counts->lock);
	struct counted_client *counted = find(counts, client);

	assert(counted && counted->connections > 0);
	if (--counted->connections == 0) {
		key_table_remove(&counts->table, &counted->entry);
		free(counted);
	}
	pthread_mutex_unlock(&counts->lock);
}

bool client_is_local(const struct client_key *client)
{
	static const uint8_t mapped[13] = { [10] = 0xff, [11] = 0xff, [12] = 127 };
	static const uint8_t zeros[15];

	return memcmp(client->address, mapped, sizeof mapped) == 0 ||
	       (memcmp(client->address, zeros, sizeof zeros) == 0 && client->address[15] <= 1);
}
