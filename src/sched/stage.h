/*
 * stage.h - the only header of the scheduler that a stage file needs.
 *
 * A stage is a handler with one function and one type of event, a queue in front of it, and
 * counters. The handler uses no clock, counter, lock or thread: the visit that calls it measures
 * for it. To add a stage, write a file with its struct stage_class and add a row to graph_rows
 * (graph_table.h).
 */
#ifndef DARKROOM_SCHED_STAGE_H
#define DARKROOM_SCHED_STAGE_H

#include "event.h"       /* the unit of work */
#include "push.h"        /* events from outside of a handler */
#include "stage_class.h" /* what a stage file defines */
#include "visit.h"       /* what a handler may do */

#endif
