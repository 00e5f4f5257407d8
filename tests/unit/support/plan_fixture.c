/* plan_fixture.c - builds plans for tests. */
#include "plan_fixture.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "stage_ids.h"

struct conf conf;
struct plan plan;
char plan_error[256];
unsigned plan_at_fault;

int plan_reset(void **state)
{
	(void)state;
	memset(&conf, 0, sizeof conf);
	conf.experiment.pixel_own = CONF_YES;
	plan_error[0] = '\0';
	return 0;
}

void plan_add_variant(const char *name, const char *operations)
{
	struct conf_variant *v = &conf.variant[conf.variant_count++];

	snprintf(v->name, sizeof v->name, "%s", name);
	snprintf(v->operations, sizeof v->operations, "%s", operations);
	v->quality = 80;
}

int plan_make_level(unsigned level)
{
	return plan_build(&plan, &conf, level, &plan_at_fault, plan_error, sizeof plan_error);
}

int plan_make(void)
{
	return plan_make_level(0);
}

int plan_file_of(unsigned variant)
{
	for (unsigned i = 0; i < plan.step_count; i++)
		if (plan.step[i].op.class->stage == STAGE_JPEG_ENCODE &&
		    plan.step[i].file == variant)
			return (int)i;
	return -1;
}

const struct plan_step *plan_parent_of(int index)
{
	assert(index >= 0 && plan.step[index].parent >= 0);
	return &plan.step[plan.step[index].parent];
}

void geometry_of_step(struct geometry *g, const struct plan *of, unsigned index, int width,
                      int height, const struct focus *focus)
{
	struct geometry all[PLAN_STEP_MAX];

	geometry_of_steps(all, of, width, height, focus);
	*g = all[index];
}
