/* policy.c - lookups in the table of policies, for --help, validation and /stats. Any thread. */
#include "policy.h"

#include <string.h>

#include "base/check.h"
#include "base/text.h"

/* These three have no visit order: their mechanism determines the next stage. */
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
