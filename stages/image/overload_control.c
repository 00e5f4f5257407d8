/* overload_control.c - the steps of the two controllers. */
#include "overload_control.h"

#include "base/check.h"

#define GAIN_FIRST 0.75 /* a policy may let small images overtake large ones */
#define GAIN_MIN 0.2
#define GAIN_MAX 1.5
#define GAIN_FALL_MAX 0.7   /* of one step */
#define GAIN_RISE 1.1       /* of one step */
#define GAIN_RISE_BELOW 0.8 /* of the target */
#define MEASURE_S 1.0       /* time constant of the capacity */
#define SHARE_OF_LOWER 0.5

void control_init(struct control *c, const struct control_params *p, const double *target_s,
                  unsigned class_count)
{
	assert(class_count >= 1 && class_count <= CONTROL_CLASSES_MAX);
	*c = (struct control){ .class_count = class_count };
	for (unsigned i = 0; i < class_count; i++)
		c->class[i] = (struct control_class){ .target_s = target_s[i],
			                              .rate = p->rate_max,
			                              .gain = GAIN_FIRST };
}

/* ---- welsh ---- */

static double at_least(double value, double min)
{
	return value < min ? min : value;
}

static double at_most(double value, double max)
{
	return value > max ? max : value;
}

/* Lowers the rates of all classes below the class. Returns false if they are at their minimum. */
static bool lower_others(struct control *c, const struct control_params *p, unsigned class)
{
	bool has_lowered = false;

	for (unsigned i = class + 1; i < c->class_count; i++) {
		has_lowered |= c->class[i].rate > p->rate_min;
		c->class[i].rate = at_least(c->class[i].rate / p->decrease_lower, p->rate_min);
	}
	return has_lowered;
}

static void decrease(struct control *c, const struct control_params *p, unsigned class)
{
	struct control_class *own = &c->class[class];

	if (lower_others(c, p, class))
		return;
	if (class + 1 < c->class_count && ++own->patience_used < p->decrease_patience)
		return;
	own->rate = at_least(own->rate / p->decrease, p->rate_min);
}

/* Returns whether a class above the class exceeds its target. */
static bool is_higher_over(const struct control *c, unsigned class)
{
	for (unsigned i = 0; i < class; i++)
		if (c->class[i].is_over)
			return true;
	return false;
}

void control_welsh_step(struct control *c, const struct control_params *p, unsigned class,
                        const struct control_sample *sample)
{
	struct control_class *own = &c->class[class];

	own->current_s = p->smoothing * own->current_s + (1 - p->smoothing) * sample->p90_s;
	double error = (own->current_s - own->target_s) / own->target_s;

	own->is_over = error > p->decrease_above;
	if (own->is_over) {
		decrease(c, p, class);
		return;
	}
	own->patience_used = 0;
	if (error < -p->increase_below && !is_higher_over(c, class))
		own->rate = at_most(own->rate - p->increase * (error + p->increase_offset),
		                    p->rate_max);
}

/* ---- backlog ---- */

void control_backlog_measure(struct control *c, double work, double busy_s)
{
	double weight = busy_s / (busy_s + MEASURE_S), now = work / busy_s;

	c->capacity = c->capacity > 0 ? weight * now + (1 - weight) * c->capacity : now;
}

/* A changed limit shows in the percentile only after a response time, so the gain waits as long. */
void control_backlog_step(struct control *c, unsigned class, const struct control_sample *sample)
{
	struct control_class *own = &c->class[class];
	double ratio = sample->p90_s / own->target_s;

	own->since_s += sample->seconds;
	if (sample->p90_s <= 0 || own->since_s < at_least(own->target_s, sample->p90_s))
		return;
	if (ratio > 1)
		own->gain = at_least(own->gain * at_least(1 / ratio, GAIN_FALL_MAX), GAIN_MIN);
	else if (ratio < GAIN_RISE_BELOW && sample->has_refused)
		own->gain = at_most(own->gain * GAIN_RISE, GAIN_MAX);
	else
		return;
	own->since_s = 0;
}

double control_backlog_limit(const struct control *c, unsigned class)
{
	double limit = c->capacity * c->class[0].target_s * c->class[0].gain;

	for (unsigned i = 1; i <= class; i++) {
		double own = c->capacity * c->class[i].target_s * c->class[i].gain;

		limit = at_most(own, limit * SHARE_OF_LOWER);
	}
	return limit;
}
