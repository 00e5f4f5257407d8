/*
 * limits.h - sizes and kinds that the configuration, the layouts and the scheduler share.
 *
 * They are here so that conf/ and layout/ need not include sched/.
 */
#ifndef DARKROOM_BASE_LIMITS_H
#define DARKROOM_BASE_LIMITS_H

#ifndef STAGE_COUNT_MAX
#define STAGE_COUNT_MAX 16 /* stages of a graph: one bit each in a set of stages */
#endif
#define POLICY_COUNT_MAX 8  /* policies in the registry */
#define CONF_THREADS_MAX 64 /* workers of one group: one bit each in a word */

/* The number of threads that may run a stage's handler at the same time. */
enum stage_kind {
	STAGE_SHARED = 1,  /* any number of workers: the handler is thread safe */
	STAGE_EXCLUSIVE,   /* one worker; the others skip the stage and never wait for it */
	STAGE_PARTITIONED, /* one instance with its own queue per worker: nothing is shared */
	STAGE_KIND_COUNT
};

#endif
