/* policy.c - lookups in the table of policies, for --help, validation and /stats. Any thread. */
#include "policy.h"

#include <string.h>

#include "base/check.h"
#include "base/text.h"

/* These have no visit order: their mechanism determines the next stage. */
const struct policy_class policy_color = {
	.name = "color",
	.help = "one thread per core, all waiting on one central queue of stages and events",
	.mechanism = POLICY_COLOR,
};

const struct policy_class policy_seda = {
	.name = "seda",
	.help = "a pool of threads for each stage, of fixed or controlled size",
	.mechanism = POLICY_POOL,
};

const struct policy_class policy_thread_per_connection = {
	.name = "thread-per-connection",
	.help = "a pool of threads, each serving one connection at a time through all stages",
	.mechanism = POLICY_THREAD_PER_CONNECTION,
};

/* Its mechanism computes the order, and writes it into the state. */
static void user_threads_reset(void *state, unsigned n, const struct stage_rates *rates)
{
	(void)n;
	(void)rates;
	memset(state, 0, sizeof(struct policy_order));
}

static void user_threads_order(const void *state, struct policy_order *out)
{
	memcpy(out, state, sizeof *out);
}

const struct policy_class policy_user_threads = {
	.name = "user-threads",
	.help = "one thread per core; a user-level thread takes each image through its stages",
	.mechanism = POLICY_USER_THREADS,
	.reset = user_threads_reset,
	.order = user_threads_order,
};

#define POLICY_ROW(name) &policy_##name,
static const struct policy_class *const policies[POLICY_COUNT] = { EACH_POLICY(POLICY_ROW) };

const struct policy_class *policy_at(size_t index)
{
	return index < POLICY_COUNT ? policies[index] : NULL;
}

unsigned policy_index(const struct policy_class *policy)
{
	unsigned i = 0;

	while (i < POLICY_COUNT && policies[i] != policy)
		i++;
	assert(i < POLICY_COUNT);
	return i;
}

const struct policy_class *policy_find(const char *name)
{
	for (size_t i = 0; i < POLICY_COUNT; i++)
		if (strcmp(policies[i]->name, name) == 0)
			return policies[i];
	return NULL;
}

bool policy_is_known(const char *name)
{
	return policy_find(name) != NULL;
}

void policy_list(char *out, size_t size)
{
	struct text t;

	text_init(&t, out, size);
	for (size_t i = 0; i < POLICY_COUNT; i++)
		text_printf(&t, "%s%s", i ? ", " : "", policies[i]->name);
}
