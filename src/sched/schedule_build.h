/*
 * schedule_build.h - the way from the configuration to a schedule.
 *
 * Private to sched/, and to the checks of a configuration.
 */
#ifndef DARKROOM_SCHED_SCHEDULE_BUILD_H
#define DARKROOM_SCHED_SCHEDULE_BUILD_H

struct conf;
struct partition_weights;
struct schedule;
struct text;

/*
 * Fills *s. cores: the number that the process may use (CPU quota). weights: of the stages, for
 * layout partition; NULL: all stages alike. Returns 0, or -EINVAL with the contradiction in error,
 * which may be NULL. Pure; any thread.
 */
int schedule_build(struct schedule *s, const struct conf *conf, unsigned cores,
                   const struct partition_weights *weights, struct text *error);

#endif
