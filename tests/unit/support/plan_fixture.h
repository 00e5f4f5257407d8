/*
 * plan_fixture.h - one plan for a test, built from variants that the test adds.
 */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_PLAN_FIXTURE_H
#define DARKROOM_TESTS_UNIT_SUPPORT_PLAN_FIXTURE_H

#include "conf/conf.h"
#include "plan/plan.h"

extern struct conf conf;
extern struct plan plan;
extern char plan_error[256];   /* of the last plan_make() */
extern unsigned plan_at_fault; /* variant of the last error */

/* Removes all variants. A setup function for cmocka; state may be NULL. */
int plan_reset(void **state);

/* Adds a variant with quality 80. */
void plan_add_variant(const char *name, const char *operations);

/* Builds the plan of level 0, or of another one. Returns the result of plan_build(). */
int plan_make_level(unsigned level);
int plan_make(void);

/* Returns the index of the step that encodes a variant, or -1. */
int plan_file_of(unsigned variant);

/* Returns the parent of a step, which must not be the root. */
const struct plan_step *plan_parent_of(int index);

/* Sets *g to the picture of one step: see geometry_of_steps(). */
void geometry_of_step(struct geometry *g, const struct plan *of, unsigned index, int width,
                      int height, const struct focus *focus);

#endif
