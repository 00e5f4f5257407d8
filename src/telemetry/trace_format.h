/*
 * trace_format.h - the format of a trace of visits.
 *
 *   struct trace_header, then a JSON text of header.names bytes with the names of stages, groups
 *   and policies (trace_header()), then records of header.record bytes each.
 *
 * All integers have the byte order of the machine, which header.order shows. The records of one
 * worker are in the order in which they ended. Records of different workers are mixed.
 * scripts/trace-draw reads it.
 */
#ifndef DARKROOM_TELEMETRY_TRACE_FORMAT_H
#define DARKROOM_TELEMETRY_TRACE_FORMAT_H

#include <stdint.h>

#include "base/limits.h"

#define TRACE_MAGIC "DRTRACE\n"
#define TRACE_VERSION 1u
#define TRACE_BYTE_ORDER UINT32_C(0x01020304)

struct trace_header {
	char magic[8];
	uint32_t order, version;
	uint32_t record, names;           /* sizes in bytes */
	uint64_t begin_ns, begin_unix_ns; /* the start, by the monotonic clock and since 1970 */
};

enum trace_type {
	TRACE_VISIT = 1, /* a visit of a worker to a stage */
	TRACE_CALL,      /* a direct call of a stage, within a visit */
	TRACE_SCHEDULE,  /* the worker's schedule from here on; struct trace_schedule follows */
	TRACE_ORDER,     /* a visit order that the policy has computed; see below */
	TRACE_LOST,      /* events: records of the worker that are missing here */
	TRACE_TICK,      /* the trace is on; about every second */
	TRACE_END        /* the last record of a trace that is complete */
};

/* How a visit came about, in trace_record.flags. */
#define TRACE_INTERRUPTING 1u /* a threshold started it within another visit */
#define TRACE_STOLEN 2u       /* the event was on another worker's stack */
#define TRACE_SOURCE 4u       /* work from outside: the network */
#define TRACE_ONE 8u          /* it may serve only one event */
#define TRACE_RESUMED 16u     /* a user-level thread went on, with the event that it had */

#define TRACE_NO_STAGE 255u
#define TRACE_STAGES_MAX 16 /* of a schedule; the format does not change with STAGE_COUNT_MAX */

/* Fields without a meaning for the type are 0. */
struct trace_record {
	uint64_t begin_ns;
	uint64_t wall_ns;  /* VISIT, CALL: how long it lasted, with the calls within */
	uint64_t cpu_ns;   /* VISIT that found events: CPU time of the thread */
	uint32_t schedule; /* number of the worker's schedule, from 1 */
	uint32_t events;   /* VISIT, CALL: handled. ORDER: length of the table */
	uint32_t queued;   /* VISIT: events that waited at the beginning. ORDER: number of stages */
	uint16_t core;     /* on which the thread ran */
	uint16_t cells;    /* records after this one that are its content */
	uint8_t type, group, worker, stage, queue, flags;
	uint16_t thread; /* VISIT: number of the user-level thread that made it; 0: none */
};

/* The content of TRACE_SCHEDULE. */
struct trace_schedule {
	uint8_t policy;                      /* index in the names */
	uint8_t polled;                      /* stages that the policy visits */
	uint8_t stages;                      /* with the stages that are called directly */
	uint8_t domain;                      /* the worker's replica or part */
	uint32_t pass_through;               /* bit i: stage i is called directly */
	uint8_t visit_set[TRACE_STAGES_MAX]; /* stages by position: first those that are polled */
	uint8_t unused[24];
};

/*
 * The content of TRACE_ORDER: `events` bytes, the positions in the order of their visits, filled up
 * to a multiple of 8; then the `queued` rates that it was made from, each a struct trace_rate.
 */
struct trace_rate {
	double arrival_per_s, service_per_s; /* 0: not measured */
};

#endif
