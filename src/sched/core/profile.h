/*
 * profile.h - the file with the weights of a run: the time of each stage, and the events on each
 * edge.
 *
 * It is an INI file with a section per stage:
 *
 *   [stage.scale]
 *   service_ns = 8123456789  ; processing time of all threads together
 *   events = 12000
 *   to_jpeg_encode = 8000    ; events sent there
 *
 * Stages and edges that are not named have weight 0. Main thread.
 */
#ifndef DARKROOM_SCHED_CORE_PROFILE_H
#define DARKROOM_SCHED_CORE_PROFILE_H

struct graph;
struct partition_weights;
struct text;

/*
 * Reads a profile. w->stages, which is not in the file, becomes 0. Returns 0, or -EINVAL or -errno
 * with one line in errors per fault; each names file and line.
 */
int profile_read(struct partition_weights *w, const char *path, struct text *errors);

/* Appends the weights in this form. */
void profile_print(const struct partition_weights *w, struct text *to);

/* Collects the work since the start of the graph. For an interval, subtract an earlier result
 * with partition_weights_subtract(). w->stages are those of the current schedule. Main thread. */
void stage_costs_collect(struct partition_weights *w, const struct graph *g);

#endif
