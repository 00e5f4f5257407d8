/*
 * stage_groups.h - the stage groups of a schedule: which stages share a policy and threads.
 *
 * The sections [group.NAME] divide the stages of the main group of threads. Stages that none of
 * them names are in the stage group "main" (Gordon 2010, 4.1.1). Private to sched/, and to the
 * checks of a configuration. Pure.
 */
#ifndef DARKROOM_SCHED_STAGE_GROUPS_H
#define DARKROOM_SCHED_STAGE_GROUPS_H

struct conf;
struct schedule;
struct text;

/* The place of a contradiction: a section of struct conf, and its key; NULL: the section itself. */
struct stage_groups_place {
	unsigned group;
	const char *key;
};

/* Returns 0, or -EINVAL with a contradiction between groups, stages and layout in error, and its
 * place. */
int stage_groups_check(const struct conf *conf, struct stage_groups_place *place,
                       struct text *error);

/* Sets the groups of an empty schedule, and the group of each stage. Returns 0, or -EINVAL with
 * the contradiction in error, which may be NULL. */
int stage_groups_build(struct schedule *s, const struct conf *conf, struct text *error);

#endif
