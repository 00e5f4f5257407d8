/* degrade.c - a level with hysteresis, and trials that wait longer each time they fail. */
#include "degrade.h"

#include "base/clock.h"

#define STEPS_PER_TARGET 5 /* within the target, all of a few steps are in */
#define CALM_TARGETS 4
#define CALM_MIN_S 1
#define CALM_MAX_S 30
#define FAILURES_MAX 3 /* the wait doubles as often */
#define TRIAL_CALMS 16 /* times calm_ns: a trial that ends earlier has failed */

void degrade_params_from(struct degrade_params *p, unsigned level_max, double target_s)
{
	double calm_s = target_s * CALM_TARGETS;

	if (calm_s < CALM_MIN_S)
		calm_s = CALM_MIN_S;
	if (calm_s > CALM_MAX_S)
		calm_s = CALM_MAX_S;
	*p = (struct degrade_params){
		.level_max = level_max,
		.step_ns = (uint64_t)(target_s / STEPS_PER_TARGET * (double)NS_PER_S),
		.calm_ns = (uint64_t)(calm_s * (double)NS_PER_S),
	};
}

static uint64_t calm_needed_ns(const struct degrade *d, const struct degrade_params *p,
                               bool has_spare)
{
	return has_spare ? p->calm_ns : p->calm_ns << d->failures;
}

static void add_step(struct degrade *d, const struct degrade_params *p, uint64_t now_ns)
{
	uint64_t lasted_ns = now_ns - d->changed_ns;

	if (d->is_trial && lasted_ns < TRIAL_CALMS * p->calm_ns) {
		if (d->failures < FAILURES_MAX)
			d->failures++;
	} else if (d->level == 0) {
		d->failures = 0;
	}
	d->level++;
	d->changed_ns = now_ns;
	d->is_trial = false;
	d->calm_since_ns = 0;
}

static void remove_steps(struct degrade *d, const struct degrade_params *p, bool has_spare,
                         uint64_t now_ns)
{
	uint64_t needed_ns = calm_needed_ns(d, p, has_spare);

	if (d->calm_since_ns == 0)
		d->calm_since_ns = now_ns;
	while (d->level > 0 && now_ns - d->calm_since_ns >= needed_ns) {
		d->calm_since_ns += needed_ns;
		d->changed_ns = d->calm_since_ns;
		d->is_trial = true;
		d->level--;
	}
}

void degrade_look(struct degrade *d, const struct degrade_params *p, double pressure,
                  bool has_spare, uint64_t now_ns)
{
	if (pressure < DEGRADE_LEAVE) {
		remove_steps(d, p, has_spare, now_ns);
		return;
	}
	d->calm_since_ns = 0;
	if (pressure >= DEGRADE_ENTER && d->level < p->level_max &&
	    now_ns - d->changed_ns >= p->step_ns)
		add_step(d, p, now_ns);
}

bool degrade_press(struct degrade *d, const struct degrade_params *p, uint64_t now_ns)
{
	if (d->level >= p->level_max)
		return false;
	add_step(d, p, now_ns);
	return true;
}

bool degrade_is_over(const struct degrade *d, const struct degrade_params *p, uint64_t now_ns)
{
	return d->level == 0 && (d->changed_ns == 0 || now_ns >= d->changed_ns + p->calm_ns);
}
