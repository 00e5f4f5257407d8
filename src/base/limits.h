/*
 * limits.h - sizes and kinds that the configuration, the layouts, the scheduler and pictures share.
 *
 * They are here so that conf/ and layout/ need not include sched/ or stages/.
 */
#ifndef DARKROOM_BASE_LIMITS_H
#define DARKROOM_BASE_LIMITS_H

#ifndef STAGE_COUNT_MAX
#define STAGE_COUNT_MAX 16 /* stages of a graph: one bit each in a set of stages */
#endif
#define PICTURE_SIDE_MAX 65500 /* pixels; libjpeg's limit, JPEG_MAX_DIMENSION */
#ifndef CONF_THREADS_MAX
#define CONF_THREADS_MAX 256 /* workers of one group: a byte in traces */
#endif
#define CONF_VARIANT_MAX 16
#define CONF_FILE_MAX 32 /* of all variants and their formats */
#define CONF_GROUP_MAX 8
#define CONF_NAME_MAX 32 /* bytes of the name of a variant or a group, with the zero */
#define CONF_FILE_NAME_MAX (CONF_NAME_MAX + 5) /* of a variant's file, with the zero */
#define CONF_TEXT_MAX 256                      /* bytes of any other text value, with the zero */
#define CONF_SOCKET_MAX 108  /* bytes of a socket's path, with the zero: unix(7) */
#define CONF_AUTO UINT64_MAX /* "auto", for keys that offer it */

/* The number of threads that may run a stage's handler at the same time. */
enum stage_kind {
	STAGE_SHARED = 1,  /* any number of workers: the handler is thread safe */
	STAGE_EXCLUSIVE,   /* one worker; the others skip the stage and never wait for it */
	STAGE_PARTITIONED, /* one instance with its own queue per worker: nothing is shared */
	STAGE_KIND_COUNT
};

#endif
