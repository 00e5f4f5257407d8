/* overload.c - the steps of the two controllers; accounts for admitted work, and divides time into
 * their intervals. */
#include "overload.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "conf/conf.h"

#define WINDOWS_PER_TARGET 4 /* shares.h: what is expected is done within one */
#define WINDOW_MAX_S 1.0
#define FLOOR_PER_CORE 2
#define MEASURE_IMAGES 8       /* at least, of a measurement: those in progress do not count */
#define WORK_PER_SPENT 2       /* of an image: a header that lies shows no speed, nor a failure */
#define IDLE_STEPS_MAX 1000    /* intervals without a request that are made up for */
#define QUANTA 16              /* of one client's work in flight, in the room */
#define BUSY_NS (5 * NS_PER_S) /* time constant of the share of busy time */
#define BUSY_BELOW 0.4         /* then the images could take twice as long */
#define BUCKET_S 0.1           /* what the bucket holds, at the current rate */

#define GAIN_FIRST 0.75 /* a policy may let small images overtake large ones */
#define GAIN_MIN 0.2
#define GAIN_MAX 1.5
#define GAIN_FALL_MAX 0.7   /* of one step */
#define GAIN_RISE 1.1       /* of one step */
#define GAIN_RISE_BELOW 0.8 /* of the target */
#define MEASURE_S 1.0       /* time constant of the capacity */
#define SHARE_OF_LOWER 0.5

#define STEPS_PER_TARGET 5 /* within the target, all of a few steps are in */
#define CALM_TARGETS 4
#define CALM_MIN_S 1
#define CALM_MAX_S 30
#define FAILURES_MAX 3 /* the wait doubles as often */
#define TRIAL_CALMS 16 /* times calm_ns: a trial that ends earlier has failed */

/* ---- the controllers ---- */

/* Makes the state of class_count classes, with rates at their maximum. target_s: one for each. */
static void control_init(struct control *c, const struct control_params *p, const double *target_s,
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

/* Ends an interval of a class. */
static void control_welsh_step(struct control *c, const struct control_params *p, unsigned class,
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
		own->rate =
			fmin(own->rate - p->increase * (error + p->increase_offset), p->rate_max);
}

/* ---- backlog ---- */

/* The machine was busy for some seconds, and ended some work meanwhile. */
static void control_backlog_measure(struct control *c, double work, double busy_s)
{
	double weight = busy_s / (busy_s + MEASURE_S), now = work / busy_s;

	c->capacity = weight * now + (1 - weight) * c->capacity;
}

/* Ends an interval of a class. A changed limit shows in the percentile only after a response time,
 * so the gain waits as long. */
static void control_backlog_step(struct control *c, unsigned class,
                                 const struct control_sample *sample)
{
	struct control_class *own = &c->class[class];
	double ratio = sample->p90_s / own->target_s;

	own->since_s += sample->seconds;
	if (sample->p90_s <= 0 || own->since_s < fmax(own->target_s, sample->p90_s))
		return;
	if (ratio > 1)
		own->gain = fmax(own->gain * fmax(1 / ratio, GAIN_FALL_MAX), GAIN_MIN);
	else if (ratio < GAIN_RISE_BELOW && sample->has_refused)
		own->gain = fmin(own->gain * GAIN_RISE, GAIN_MAX);
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

/* ---- steps of overload.degrade ---- */

/* Fills in the times for a target of the response time. */
static void degrade_params_from(struct degrade_params *p, unsigned level_max, double target_s)
{
	double calm_s = fmin(fmax(target_s * CALM_TARGETS, CALM_MIN_S), CALM_MAX_S);

	*p = (struct degrade_params){
		.level_max = level_max,
		.step_ns = (uint64_t)(target_s / STEPS_PER_TARGET * (double)NS_PER_S),
		.calm_ns = (uint64_t)(calm_s * (double)NS_PER_S),
	};
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
	uint64_t needed_ns = has_spare ? p->calm_ns : p->calm_ns << d->failures;

	if (d->calm_since_ns == 0)
		d->calm_since_ns = now_ns;
	while (d->level > 0 && now_ns - d->calm_since_ns >= needed_ns) {
		d->calm_since_ns += needed_ns;
		d->changed_ns = d->calm_since_ns;
		d->is_trial = true;
		d->level--;
	}
}

/* Some pressure was seen. Adds one step at most; removes one for each time of calm that has passed.
 * has_spare: the cores have been idle for much of the last seconds. The time never goes back. */
static void degrade_look(struct degrade *d, const struct degrade_params *p, double pressure,
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

/* An upload would be refused. Returns true if a step was left to add. */
static bool degrade_press(struct degrade *d, const struct degrade_params *p, uint64_t now_ns)
{
	if (d->level >= p->level_max)
		return false;
	add_step(d, p, now_ns);
	return true;
}

/* Returns whether no step is in, and the last one was removed long ago. */
static bool degrade_is_over(const struct degrade *d, const struct degrade_params *p,
                            uint64_t now_ns)
{
	return d->level == 0 && (d->changed_ns == 0 || now_ns >= d->changed_ns + p->calm_ns);
}

/* ---- parameters ---- */

/* Fills in what follows from the targets. */
static void set_times(struct overload *o)
{
	double window_s = fmin(o->params.target_s[0] / WINDOWS_PER_TARGET, WINDOW_MAX_S);

	o->shares.window_ns = (uint64_t)(window_s * (double)NS_PER_S);
	for (unsigned i = 0; i < o->params.class_count; i++)
		degrade_params_from(&o->class[i].degrade_params, o->params.degrade_steps,
		                    o->params.target_s[i]);
}

static void start_classes(struct overload *o, uint64_t now_ns)
{
	control_init(&o->control, &o->params.control, o->params.target_s, o->params.class_count);
	for (unsigned i = 0; i < o->params.class_count; i++) {
		o->class[i].start_ns = o->class[i].filled_ns = now_ns;
		o->class[i].tokens = 1;
		o->class[i].count = 0;
		o->class[i].refused = 0;
		o->class[i].degrade = (struct degrade){ 0 };
	}
}

void overload_init(struct overload *o, const struct overload_params *p, uint64_t now_ns)
{
	memset(o, 0, sizeof *o);
	o->params = *p;
	o->accounted_ns = now_ns;
	set_times(o);
	start_classes(o, now_ns);
	o->control.capacity = (double)p->cores * NS_PER_S;
}

void overload_change(struct overload *o, const struct overload_params *p, uint64_t now_ns)
{
	bool starts =
		p->class_count != o->params.class_count || p->controller != o->params.controller;
	double capacity = o->control.capacity;

	o->params = *p;
	set_times(o);
	for (unsigned i = 0; i < p->class_count; i++) {
		o->control.class[i].target_s = p->target_s[i];
		if (o->class[i].degrade.level > p->degrade_steps)
			o->class[i].degrade.level = p->degrade_steps;
	}
	if (!starts)
		return;
	start_classes(o, now_ns);
	o->control.capacity = capacity;
}

/* ---- work that was admitted ---- */

struct load overload_load(const struct overload *o)
{
	return (struct load){ o->in_flight.images + o->shares.claims.images,
		              o->in_flight.work + o->shares.claims.work };
}

static void forget(struct overload *o, struct overload_ticket *ticket, uint64_t now_ns)
{
	if (ticket->is_held)
		shares_forget(&o->shares, ticket->client, ticket->work, now_ns);
	ticket->is_held = false;
}

/* Counts the time in which all cores had an image. */
static void account(struct overload *o, uint64_t now_ns)
{
	uint64_t passed_ns = now_ns > o->accounted_ns ? now_ns - o->accounted_ns : 0;
	bool is_busy = o->in_flight.images >= o->params.cores;

	if (is_busy)
		o->busy_ns += passed_ns;
	o->busy_share += ((is_busy ? 1 : 0) - o->busy_share) * (double)passed_ns /
	                 (double)(passed_ns + BUSY_NS);
	o->accounted_ns = now_ns;
}

/* Ends the measurement of the capacity if it is long enough. */
static void measure(struct overload *o)
{
	bool is_long = o->busy_images >= o->params.samples || o->busy_ns >= o->params.interval_ns;

	if (!is_long || o->busy_images < MEASURE_IMAGES || o->busy_ns == 0)
		return;
	control_backlog_measure(&o->control, (double)o->busy_work,
	                        (double)o->busy_ns / (double)NS_PER_S);
	o->busy_ns = o->busy_work = o->busy_images = 0;
}

/* ---- intervals ---- */

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Returns the 90th percentile of the samples in seconds, or 0 if there are none. */
static double percentile(struct overload_class *class)
{
	if (class->count == 0)
		return 0;
	qsort(class->sample_us, class->count, sizeof class->sample_us[0], compare);
	unsigned rank = (class->count * 9 + 9) / 10;

	return class->sample_us[rank - 1] / 1e6;
}

static void end_interval(struct overload *o, unsigned index, double seconds)
{
	struct overload_class *class = &o->class[index];
	const struct control_sample sample = { .seconds = seconds,
		                               .p90_s = percentile(class),
		                               .has_refused = class->refused > 0 };

	if (o->params.controller == CONF_CONTROLLER_WELSH)
		control_welsh_step(&o->control, &o->params.control, index, &sample);
	else
		control_backlog_step(&o->control, index, &sample);
	o->p90_s = sample.p90_s;
	o->admitted /= 2;
	o->refused /= 2;
	class->count = 0;
	class->refused = 0;
}

/* Ends the intervals that have passed. */
static void advance(struct overload *o, unsigned index, uint64_t now_ns)
{
	struct overload_class *class = &o->class[index];
	/* A thread reads the clock before it has the lock. */
	uint64_t passed = now_ns > class->start_ns ? now_ns - class->start_ns : 0;

	if (class->count < o->params.samples && passed < o->params.interval_ns)
		return;
	end_interval(o, index, (double)passed / (double)NS_PER_S);
	for (uint64_t i = 1; i < passed / o->params.interval_ns && i < IDLE_STEPS_MAX; i++)
		end_interval(o, index, 0);
	class->start_ns = now_ns;
}

/* ---- the controllers' decision ---- */

static bool take_token(struct overload *o, unsigned index, uint64_t now_ns)
{
	struct overload_class *class = &o->class[index];
	double rate = o->control.class[index].rate, room = fmax(rate * BUCKET_S, 1);

	class->tokens += rate * (double)(now_ns - class->filled_ns) / (double)NS_PER_S;
	class->tokens = fmin(class->tokens, room);
	class->filled_ns = now_ns;
	if (class->tokens < 1)
		return false;
	class->tokens--;
	return true;
}

/* Returns how much of the class's room that work takes. */
static double share_of(const struct overload *o, unsigned class, uint64_t work)
{
	return (double)work / control_backlog_limit(&o->control, class);
}

/* Returns what the client finds. */
static struct shares_view view_of(struct overload *o, unsigned class,
                                  const struct overload_ticket *ticket, uint64_t now_ns)
{
	uint64_t quantum = (uint64_t)(control_backlog_limit(&o->control, class) / QUANTA);
	struct shares_view view = shares_look(&o->shares, ticket->client, quantum, now_ns);

	if (ticket->has_all_room)
		view = (struct shares_view){ .work = view.work, .room = 1 };
	return view;
}

/* Returns whether the controller lets an upload pass. */
static bool may_pass(struct overload *o, unsigned class, const struct shares_view *view,
                     uint64_t now_ns)
{
	uint64_t images = overload_load(o).images;
	bool has_token =
		o->params.controller != CONF_CONTROLLER_WELSH || take_token(o, class, now_ns);

	if (o->can_grow || o->params.controller == CONF_CONTROLLER_OFF ||
	    images < (uint64_t)o->params.cores * FLOOR_PER_CORE)
		return true;
	if (o->params.controller == CONF_CONTROLLER_WELSH)
		return has_token;
	return share_of(o, class, view->work) < view->room;
}

/* ---- degradation ---- */

/* Returns how much of the class's room is taken. */
static double pressure(const struct overload *o, unsigned class)
{
	const struct control_class *control = &o->control.class[class];
	struct load load = overload_load(o);

	if (load.images == 0)
		return 0;
	if (o->params.controller == CONF_CONTROLLER_WELSH)
		return control->current_s / control->target_s;
	return share_of(o, class, load.work);
}

void overload_look(struct overload *o, uint64_t now_ns)
{
	account(o, now_ns);
	o->looked_ns = now_ns = now_ns < o->looked_ns ? o->looked_ns : now_ns;
	for (unsigned i = 0; i < o->params.class_count && o->params.degrade_steps; i++) {
		double now = pressure(o, i);

		if (o->can_grow && now >= DEGRADE_ENTER) /* a thread helps, and costs less */
			continue;
		degrade_look(&o->class[i].degrade, &o->class[i].degrade_params, now,
		             o->busy_share < BUSY_BELOW, now_ns);
	}
}

bool overload_is_over(struct overload *o, uint64_t now_ns)
{
	overload_look(o, now_ns);
	for (unsigned i = 0; i < o->params.class_count; i++)
		if (!degrade_is_over(&o->class[i].degrade, &o->class[i].degrade_params,
		                     o->looked_ns))
			return false;
	return true;
}

/* ---- admission ---- */

/* A heavy client adds no step: its images alone would cheapen those of others. */
bool overload_admit(struct overload *o, unsigned class, uint64_t work, enum overload_stages stages,
                    struct overload_ticket *ticket, uint64_t now_ns)
{
	struct overload_class *own = &o->class[class];
	struct shares_view view = view_of(o, class, ticket, now_ns);

	account(o, now_ns);
	advance(o, class, now_ns);
	o->can_grow = stages == OVERLOAD_STAGES_CAN_GROW;
	overload_look(o, now_ns);
	bool has_place = (double)overload_load(o).images < view.room * (double)o->params.images_max;

	if (!(has_place && stages != OVERLOAD_STAGES_HAVE_ENOUGH &&
	      may_pass(o, class, &view, now_ns)) &&
	    !(!view.is_heavy && degrade_press(&own->degrade, &own->degrade_params, o->looked_ns) &&
	      has_place)) {
		o->refused++;
		own->refused++;
		return false;
	}
	o->admitted++;
	ticket->work = shares_announce(&o->shares, ticket->client, work, now_ns);
	ticket->is_held = true;
	ticket->level = own->degrade.level;
	return true;
}

void overload_cancel(struct overload *o, struct overload_ticket *ticket, uint64_t now_ns)
{
	account(o, now_ns);
	forget(o, ticket, now_ns);
}

void overload_begin(struct overload *o, unsigned client, struct overload_ticket *ticket,
                    unsigned images, uint64_t work, uint64_t now_ns)
{
	account(o, now_ns);
	if (ticket)
		forget(o, ticket, now_ns);
	shares_begin(&o->shares, client, images, work, now_ns);
	o->in_flight.images += images;
	o->in_flight.work += work;
}

void overload_end(struct overload *o, unsigned client, uint64_t work, uint64_t spent_ns,
                  uint64_t now_ns)
{
	uint64_t done = spent_ns < work / WORK_PER_SPENT ? spent_ns * WORK_PER_SPENT : work;

	account(o, now_ns);
	assert(o->in_flight.images > 0 && o->in_flight.work >= work);
	if (o->in_flight.images >= o->params.cores) {
		o->busy_images++;
		o->busy_work += done;
	}
	o->in_flight.images--;
	o->in_flight.work -= work;
	shares_end(&o->shares, client, work);
	measure(o);
	overload_look(o, now_ns);
}

void overload_note(struct overload *o, unsigned class, uint64_t response_ns, uint64_t now_ns)
{
	uint64_t us = response_ns / 1000;

	advance(o, class, now_ns);
	if (o->class[class].count < OVERLOAD_SAMPLES_MAX)
		o->class[class].sample_us[o->class[class].count++] =
			us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

/* ---- estimates ---- */

double overload_backlog_s(const struct overload *o)
{
	return (double)overload_load(o).work / o->control.capacity;
}

/* The refused come back together with new clients. They find room when as many have been served as
 * were refused for each admitted one. */
unsigned overload_retry_s(const struct overload *o, unsigned class)
{
	double wait = overload_backlog_s(o) / 2, share = 1;

	if (o->params.controller == CONF_CONTROLLER_WELSH)
		wait = 1 / o->control.class[class].rate;
	if (o->admitted > 0)
		share += o->refused / o->admitted;
	wait *= share;
	return wait < 1 ? 1 : wait > OVERLOAD_RETRY_MAX_S ? OVERLOAD_RETRY_MAX_S : (unsigned)wait;
}
