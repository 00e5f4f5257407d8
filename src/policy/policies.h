/*
 * policies.h - the table of policies: one row each.
 *
 * A row NAME stands for the struct policy_class policy_NAME, which policy/NAME.c defines. The order
 * is that of --help and /stats.
 */
#ifndef DARKROOM_POLICY_POLICIES_H
#define DARKROOM_POLICY_POLICIES_H

#define EACH_POLICY(X)           \
	X(drain)                 \
	X(cohort)                \
	X(mg1)                   \
	X(srpt)                  \
	X(dbr)                   \
	X(color)                 \
	X(seda)                  \
	X(thread_per_connection) \
	X(user_threads)

#define POLICY_ONE(name) +1
enum { POLICY_COUNT = EACH_POLICY(POLICY_ONE) };

#endif
