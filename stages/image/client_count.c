/* client_count.c - one entry for each client that has any. Any thread. */
#include "client_count.h"

#include <string.h>

#include "base/check.h"
#include "base/pool.h"

struct counted_client {
	struct key_entry entry; /* first */
	uint64_t count;
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

static struct counted_client *add_entry(struct client_counts *counts,
                                        const struct client_key *client)
{
	struct counted_client *counted = pool_get(sizeof *counted);

	if (!counted)
		return NULL;
	*counted = (struct counted_client){ .count = 0 };
	memcpy(counted->entry.key, client->address, KEY_SIZE);
	key_table_add(&counts->table, &counted->entry);
	return counted;
}

uint64_t client_counts_add(struct client_counts *counts, const struct client_key *client,
                           unsigned n, uint64_t max)
{
	pthread_mutex_lock(&counts->lock);
	struct counted_client *counted = find(counts, client);
	uint64_t sum = (counted ? counted->count : 0) + n;

	if (sum <= max && !counted && !(counted = add_entry(counts, client)))
		sum = 0;
	else if (sum <= max)
		counted->count = sum;
	pthread_mutex_unlock(&counts->lock);
	return sum;
}

uint64_t client_counts_get(struct client_counts *counts, const struct client_key *client)
{
	pthread_mutex_lock(&counts->lock);
	const struct counted_client *counted = find(counts, client);
	uint64_t count = counted ? counted->count : 0;

	pthread_mutex_unlock(&counts->lock);
	return count;
}

void client_counts_drop(struct client_counts *counts, const struct client_key *client)
{
	pthread_mutex_lock(&counts->lock);
	struct counted_client *counted = find(counts, client);

	assert(counted && counted->count > 0);
	if (--counted->count == 0) {
		key_table_remove(&counts->table, &counted->entry);
		pool_put(counted);
	}
	pthread_mutex_unlock(&counts->lock);
}
