/* policy.c - the registry of policies: what --help, validation and /stats list. */
#include "policy.h"

#include <string.h>

#include "../check.h"
#include "../text.h"

/* No visit order of its own: a thread serves one connection at a time from its first byte to its last answer, and
 * calls every stage directly (Gordon 2010, 4.2.3). The few queues left are walked as cohort does. */
static const struct policy_class policy_thread_per_connection = {
	.name = "thread-per-connection",
	.help = "a pool of threads, each serving one connection at a time through all stages",
	.is_inline = true,
};

static const struct policy_class *const policies[] = {
	&policy_cohort,
	&policy_thread_per_connection,
};

const struct policy_class *policy_find(const char *name)
{
	for (size_t i = 0; i < COUNT_OF(policies); i++)
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
	for (size_t i = 0; i < COUNT_OF(policies); i++)
		text_printf(&t, "%s%s", i ? ", " : "", policies[i]->name);
}
