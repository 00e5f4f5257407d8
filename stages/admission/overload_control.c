/* overload_control.c - one section for each controller, and the table of them. */
#include "overload_control.h"

#include <math.h>

#include "base/check.h"
#include "base/clock.h"
#include "conf/conf.h"

/* What experiments vary is in struct control_params. */
#define GAIN_MIN 0.2 /* the correction is small: beyond these, the percentile has another cause */
#define GAIN_MAX 1.5
#define FALL_MAX 0.5        /* of one step: a percentile of few samples says no more */
#define GAIN_RISE_TARGETS 2 /* between two of them: large pictures are known later */
#define SHARE_OF_LOWER 0.5  /* overload.classes promises it */
#define BUCKET_S 0.1        /* at the current rate: a burst that the queue hardly notices */

#define CODEL_RECENT 16 /* intervals; RFC 8289, 5.3 */

/* Zhou et al. 2018, 4.2.3 */
#define DAGOR_WINDOW_REQUESTS 2000
#define DAGOR_SHUFFLE_NS (3600 * NS_PER_S)

void control_init(struct control *c, const struct control_params *p, const double *target_s,
                  unsigned class_count, uint64_t now_ns)
{
	assert(class_count >= 1 && class_count <= CONTROL_CLASSES_MAX);
	*c = (struct control){ .class_count = class_count };
	c->priorities.threshold = class_count * CONTROL_PRIORITIES;
	for (unsigned i = 0; i < class_count; i++)
		c->class[i] = (struct control_class){ .target_s = target_s[i],
			                              .rate = p->rate_max,
			                              .tokens = 1,
			                              .filled_ns = now_ns,
			                              .gain = p->gain };
}

/* A changed limit shows in the percentile only after a response time. Returns whether that has
 * passed since the last change. */
static bool has_shown(struct control_class *own, const struct control_sample *sample)
{
	own->since_s += sample->seconds;
	return sample->p90_s > 0 && own->since_s >= fmax(own->target_s, sample->p90_s);
}

/* ---- backlog ---- */

void control_measure(struct control *c, double work, double busy_s, double constant_s)
{
	double weight = busy_s / (busy_s + constant_s), now = work / busy_s;

	c->capacity = weight * now + (1 - weight) * c->capacity;
}

static void backlog_step(struct control *c, const struct control_params *p, unsigned class,
                         const struct control_sample *sample)
{
	struct control_class *own = &c->class[class];
	double ratio = sample->p90_s / (p->aim * own->target_s);

	if (!has_shown(own, sample))
		return;
	if (ratio > 1)
		own->gain = fmax(own->gain * fmax(1 / ratio, FALL_MAX), GAIN_MIN);
	else if (ratio < p->rise_below && sample->has_refused &&
	         own->since_s >= GAIN_RISE_TARGETS * own->target_s)
		own->gain = fmin(own->gain * p->gain_rise, GAIN_MAX);
	else
		return;
	own->since_s = 0;
}

double control_backlog_limit(const struct control *c, unsigned class)
{
	double limit = c->capacity * c->class[0].target_s * c->class[0].gain;

	for (unsigned i = 1; i <= class; i++) {
		double own = c->capacity * c->class[i].target_s * c->class[i].gain;

		limit = fmin(own, limit * SHARE_OF_LOWER);
	}
	return limit;
}

static bool backlog_admit(struct control *c, const struct control_params *p,
                          const struct control_ask *ask)
{
	(void)p;
	return ask->work / control_backlog_limit(c, ask->class) < ask->room;
}

/* ---- welsh ---- */

/* Lowers the rates of all classes below the class. Returns false if they are at their minimum. */
static bool lower_others(struct control *c, const struct control_params *p, unsigned class)
{
	bool has_lowered = false;

	for (unsigned i = class + 1; i < c->class_count; i++) {
		has_lowered |= c->class[i].rate > p->rate_min;
		c->class[i].rate = fmax(c->class[i].rate / p->decrease_lower, p->rate_min);
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
	own->rate = fmax(own->rate / p->decrease, p->rate_min);
}

/* Returns whether a class above the class exceeds its target. */
static bool is_higher_over(const struct control *c, unsigned class)
{
	for (unsigned i = 0; i < class; i++)
		if (c->class[i].is_over)
			return true;
	return false;
}

static void welsh_step(struct control *c, const struct control_params *p, unsigned class,
                       const struct control_sample *sample)
{
	struct control_class *own = &c->class[class];
	double error = (own->current_s - own->target_s) / own->target_s;

	(void)sample;
	own->is_over = error > p->decrease_above;
	if (own->is_over) {
		decrease(c, p, class);
		return;
	}
	own->patience_used = 0;
	if (error < -p->increase_below && !is_higher_over(c, class))
		own->rate =
			fmin(own->rate - p->increase * (error + p->increase_offset), p->rate_max);
}

static bool welsh_admit(struct control *c, const struct control_params *p,
                        const struct control_ask *ask)
{
	struct control_class *own = &c->class[ask->class];
	double room = fmax(own->rate * BUCKET_S, 1);

	(void)p;
	own->tokens += own->rate * (double)(ask->now_ns - own->filled_ns) / (double)NS_PER_S;
	own->tokens = fmin(own->tokens, room);
	own->filled_ns = ask->now_ns;
	if (own->tokens < 1)
		return false;
	own->tokens--;
	return true;
}

/* ---- rate ---- */

/* What is too much in the queue leaves it within about one target. */
static void rate_step(struct control *c, const struct control_params *p, unsigned class,
                      const struct control_sample *sample)
{
	struct control_class *own = &c->class[class];
	double ratio = sample->p90_s / own->target_s;

	if (!has_shown(own, sample))
		return;
	if (ratio > 1)
		own->rate = fmin(own->rate, sample->ended) * fmax(2 - ratio, FALL_MAX);
	else if (ratio < p->rise_below && sample->has_refused)
		own->rate *= p->rate_rise;
	else
		return;
	own->rate = fmin(fmax(own->rate, p->rate_min), p->rate_max);
	own->since_s = 0;
}

/* ---- codel ---- */

/* Returns the time in the queue that is too long, and the interval for which it must last. */
static uint64_t queue_target_ns(const struct control_class *own, const struct control_params *p)
{
	return (uint64_t)(p->queue_target * own->target_s * (double)NS_PER_S);
}

static void codel_note(struct control *c, const struct control_params *p, unsigned class,
                       uint64_t queued_ns, uint64_t now_ns)
{
	struct control_class *own = &c->class[class];
	uint64_t target_ns = queue_target_ns(own, p);

	if (queued_ns < target_ns)
		own->first_above_ns = 0;
	else if (own->first_above_ns == 0)
		own->first_above_ns = now_ns + target_ns;
	own->is_long = own->first_above_ns > 0 && now_ns >= own->first_above_ns;
}

/* The control law: the time between refusals falls with the square root of their number. */
static bool codel_refuse(struct control_class *own, unsigned count, uint64_t from_ns,
                         uint64_t interval_ns)
{
	own->count = count;
	own->next_ns = from_ns + (uint64_t)((double)interval_ns / sqrt(count));
	return false;
}

static bool codel_admit(struct control *c, const struct control_params *p,
                        const struct control_ask *ask)
{
	struct control_class *own = &c->class[ask->class];
	uint64_t interval_ns = queue_target_ns(own, p);
	unsigned more = own->count - own->last_count;

	if (!own->is_long)
		own->is_dropping = false;
	if (!own->is_long || (own->is_dropping && ask->now_ns < own->next_ns))
		return true;
	if (own->is_dropping)
		return codel_refuse(own, own->count + 1, own->next_ns, interval_ns);
	bool is_recent = ask->now_ns < own->next_ns + CODEL_RECENT * interval_ns;

	own->is_dropping = true;
	own->last_count = more > 1 && is_recent ? more : 1;
	return codel_refuse(own, own->last_count, ask->now_ns, interval_ns);
}

/* ---- dagor ---- */

static unsigned priority_of(const struct control_ask *ask)
{
	uint64_t hour = ask->now_ns / DAGOR_SHUFFLE_NS;
	uint64_t hash = (ask->client + hour * CONTROL_PRIORITIES + 1) * 0x9e3779b97f4a7c15;

	return ask->class * CONTROL_PRIORITIES + (unsigned)(hash >> 32) % CONTROL_PRIORITIES;
}

/* Ends a window: moves the threshold to the priorities that make up the number expected. */
static void dagor_end_window(struct control *c, const struct control_params *p, uint64_t now_ns)
{
	struct control_priorities *w = &c->priorities;
	unsigned count = c->class_count * CONTROL_PRIORITIES, i = 0;
	double expected = w->admitted, sum = 0;

	if (w->queued_ns > w->ended * queue_target_ns(&c->class[0], p))
		expected *= 1 - p->dagor_fall;
	else
		expected += p->dagor_rise * w->asked;
	while (i < count && (sum += w->asked_at[i]) <= expected)
		i++;
	*w = (struct control_priorities){ .end_ns = now_ns + p->dagor_window_ns, .threshold = i };
}

static void dagor_note(struct control *c, const struct control_params *p, unsigned class,
                       uint64_t queued_ns, uint64_t now_ns)
{
	(void)p;
	(void)class;
	(void)now_ns;
	c->priorities.ended++;
	c->priorities.queued_ns += queued_ns;
}

static bool dagor_admit(struct control *c, const struct control_params *p,
                        const struct control_ask *ask)
{
	struct control_priorities *w = &c->priorities;
	unsigned priority = priority_of(ask);
	bool is_admitted;

	if (ask->now_ns >= w->end_ns || w->asked >= DAGOR_WINDOW_REQUESTS)
		dagor_end_window(c, p, ask->now_ns);
	is_admitted = priority < w->threshold;
	w->asked++;
	w->admitted += is_admitted || ask->is_let_in;
	w->asked_at[priority]++;
	return is_admitted;
}

/* ---- all ---- */

static bool off_admit(struct control *c, const struct control_params *p,
                      const struct control_ask *ask)
{
	(void)c;
	(void)p;
	(void)ask;
	return true;
}

const struct controller *control_find(uint64_t controller)
{
	static const struct controller rows[] = {
		[CONF_CONTROLLER_OFF] = { false, NULL, NULL, off_admit },
		[CONF_CONTROLLER_BACKLOG] = { false, backlog_step, NULL, backlog_admit },
		[CONF_CONTROLLER_WELSH] = { true, welsh_step, NULL, welsh_admit },
		[CONF_CONTROLLER_RATE] = { true, rate_step, NULL, welsh_admit },
		[CONF_CONTROLLER_CODEL] = { true, NULL, codel_note, codel_admit },
		[CONF_CONTROLLER_DAGOR] = { true, NULL, dagor_note, dagor_admit },
	};

	assert(controller > 0 && controller < COUNT_OF(rows) && rows[controller].admit);
	return &rows[controller];
}
