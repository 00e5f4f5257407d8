/* client_work.c - sums of admitted work by client. */
#include "client_work.h"

#include <string.h>

#include "base/check.h"

#define WORK_MAX (UINT64_C(1) << 50) /* of one upload */

void client_work_init(struct client_work *w)
{
	memset(w, 0, sizeof *w);
	client_key_seed(&w->seed);
}

unsigned client_work_slot(const struct client_work *w, const struct client_key *client)
{
	return (unsigned)(client_key_hash(client, &w->seed) % CLIENT_WORK_SLOTS);
}

void client_work_add(struct client_work *w, unsigned slot, uint64_t work)
{
	w->slot[slot] += work;
}

void client_work_end(struct client_work *w, unsigned slot, uint64_t work)
{
	assert(w->slot[slot] >= work);
	w->slot[slot] -= work;
}

uint64_t client_work_ahead(const struct client_work *w, unsigned slot, uint64_t work)
{
	/* A client announces any length; the sum must not overflow. */
	uint64_t own = w->slot[slot] + (work < WORK_MAX ? work : WORK_MAX), ahead = own;

	for (unsigned i = 0; i < CLIENT_WORK_SLOTS; i++)
		if (i != slot)
			ahead += w->slot[i] < own ? w->slot[i] : own;
	return ahead;
}
