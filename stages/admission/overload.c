/* overload.c - accounts for admitted work, measures response times by class and size, and divides
 * time into intervals of the controller. */
#include "overload.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"

#define WINDOWS_PER_TARGET 4 /* shares.h: what is expected is done within one */
#define WINDOW_MAX_S 1.0
#define FLOOR_PER_CORE 2
#define MEASURE_IMAGES 8       /* at least, of a measurement: those in progress do not count */
#define WORK_PER_SPENT 2       /* of an image: a header that lies shows no speed, nor a failure */
#define IDLE_STEPS_MAX 1000    /* intervals without a request that are made up for */
#define QUANTA 16              /* of one client's work in flight, in the room */
#define BUSY_NS (5 * NS_PER_S) /* time constant of the share of busy time */
#define MEAN_IMAGES 64.0       /* that the mean work of an image remembers */
#define SIZE_SAMPLES_MIN 5     /* of a percentile */
#define SIZE_INTERVALS_MAX 10  /* that a size may wait for as many */
#define RETRY_MARGIN 0.02      /* of the room: the load varies */
#define BUSY_BELOW 0.4         /* then the images could take twice as long */

#define STEPS_PER_TARGET 5 /* within the target, all of a few steps are in */
#define CALM_TARGETS 4
#define CALM_MIN_S 1
#define CALM_MAX_S 30
#define FAILURES_MAX 3 /* the wait doubles as often */
#define TRIAL_CALMS 16 /* times calm_ns: a trial that ends earlier has failed */

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
	o->shares.half_life_ns = o->params.half_life_ns;
	o->shares.reserve = o->params.reserve;
	for (unsigned i = 0; i < o->params.class_count; i++)
		degrade_params_from(&o->class[i].degrade_params, o->params.degrade_steps,
		                    o->params.target_s[i]);
}

static void start_classes(struct overload *o, uint64_t now_ns)
{
	o->controller = control_find(o->params.controller);
	control_init(&o->control, &o->params.control, o->params.target_s, o->params.class_count,
	             now_ns);
	memset(o->class, 0, sizeof o->class);
	for (unsigned i = 0; i < o->params.class_count; i++)
		o->class[i].start_ns = now_ns;
}

void overload_init(struct overload *o, const struct overload_params *p, uint64_t now_ns)
{
	memset(o, 0, sizeof *o);
	o->params = *p;
	o->accounted_ns = now_ns;
	start_classes(o, now_ns);
	set_times(o);
	o->control.capacity = (double)p->cores * NS_PER_S;
}

void overload_change(struct overload *o, const struct overload_params *p, uint64_t now_ns)
{
	bool starts =
		p->class_count != o->params.class_count || p->controller != o->params.controller;
	double capacity = o->control.capacity;

	o->params = *p;
	if (starts) {
		start_classes(o, now_ns);
		o->control.capacity = capacity;
	}
	set_times(o);
	for (unsigned i = 0; i < p->class_count; i++) {
		o->control.class[i].target_s = p->target_s[i];
		if (o->class[i].degrade.level > p->degrade_steps)
			o->class[i].degrade.level = p->degrade_steps;
	}
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
	control_measure(&o->control, (double)o->busy_work, (double)o->busy_ns / (double)NS_PER_S,
	                (double)o->params.interval_ns / (double)NS_PER_S);
	o->busy_ns = o->busy_work = o->busy_images = 0;
}

/* ---- intervals ---- */

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Returns the 90th percentile of the samples in seconds. */
static double percentile(struct overload_size *size)
{
	qsort(size->sample_us, size->count, sizeof size->sample_us[0], compare);
	unsigned rank = (size->count * 9 + 9) / 10;

	return size->sample_us[rank - 1] / 1e6;
}

/* Returns whether the size has a new percentile. Few samples wait for others, but not for ever. */
static bool end_size(struct overload_size *size)
{
	bool is_late = ++size->intervals >= SIZE_INTERVALS_MAX;

	if (size->count < SIZE_SAMPLES_MIN && !is_late)
		return false;
	size->p90_s = size->count > 0 ? percentile(size) : 0;
	size->count = size->intervals = 0;
	return size->p90_s > 0;
}

/* Returns the percentile of the worst size. One that was told before does not exceed the target
 * again: the controller has acted on it. */
static double worst_p90_s(struct overload_class *class, double target_s)
{
	double worst = 0;

	for (unsigned i = 0; i < OVERLOAD_SIZES; i++) {
		bool is_new = end_size(&class->size[i]);
		double p90_s = class->size[i].p90_s;

		worst = fmax(worst, is_new ? p90_s : fmin(p90_s, target_s));
	}
	return worst;
}

static void end_interval(struct overload *o, unsigned index, double seconds)
{
	struct overload_class *class = &o->class[index];
	struct control_class *control = &o->control.class[index];
	double worst_s = worst_p90_s(class, control->target_s),
	       smoothing = o->params.control.smoothing;
	const struct control_sample sample = { .seconds = seconds,
		                               .p90_s = class->ended > 0 ? worst_s : 0,
		                               .ended = class->ended / fmax(seconds, 1e-6),
		                               .has_refused = class->has_refused };

	control->current_s = smoothing * control->current_s + (1 - smoothing) * sample.p90_s;
	if (o->controller->step)
		o->controller->step(&o->control, &o->params.control, index, &sample);
	o->admitted /= 2;
	o->refused /= 2;
	class->ended = 0;
	class->has_refused = false;
}

/* Ends the intervals that have passed. */
static void advance(struct overload *o, unsigned index, uint64_t now_ns)
{
	struct overload_class *class = &o->class[index];
	/* A thread reads the clock before it has the lock. */
	uint64_t passed = now_ns > class->start_ns ? now_ns - class->start_ns : 0;

	assert(o->params.interval_ns > 0);
	if (class->ended < o->params.samples && passed < o->params.interval_ns)
		return;
	end_interval(o, index, (double)passed / (double)NS_PER_S);
	for (uint64_t i = 1; i < passed / o->params.interval_ns && i < IDLE_STEPS_MAX; i++)
		end_interval(o, index, 0);
	class->start_ns = now_ns;
}

/* ---- the controller's decision ---- */

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

/* Returns whether a rule or the controller lets an upload pass. */
static bool may_pass(struct overload *o, unsigned class, const struct overload_ticket *ticket,
                     const struct shares_view *view)
{
	const struct control_ask ask = {
		.class = class,
		.client = ticket->client,
		.work = (double)view->work,
		.room = view->room,
		.is_let_in = o->can_grow ||
		             overload_load(o).images < (uint64_t)o->params.cores * FLOOR_PER_CORE,
		.now_ns = o->looked_ns, /* never goes back */
	};

	return o->controller->admit(&o->control, &o->params.control, &ask) || ask.is_let_in;
}

/* ---- degradation ---- */

/* Returns how much of the class's room is taken. */
static double pressure(const struct overload *o, unsigned class)
{
	const struct control_class *control = &o->control.class[class];
	struct load load = overload_load(o);

	if (load.images == 0)
		return 0;
	if (o->controller->is_by_time)
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
	      may_pass(o, class, ticket, &view)) &&
	    !(!view.is_heavy && degrade_press(&own->degrade, &own->degrade_params, o->looked_ns) &&
	      has_place)) {
		own->has_refused = true;
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

/* Returns the size of an image of that work, which the mean then knows. */
static unsigned size_of(struct overload *o, double work)
{
	o->mean_work = o->mean_work > 0 ? o->mean_work + (work - o->mean_work) / MEAN_IMAGES : work;
	return work > 8 * o->mean_work ? 2 : work > 2 * o->mean_work;
}

void overload_note(struct overload *o, unsigned class, const struct overload_response *r,
                   uint64_t now_ns)
{
	uint64_t us = r->response_ns / 1000;
	uint64_t queued_ns = r->response_ns > r->spent_ns ? r->response_ns - r->spent_ns : 0;
	struct overload_size *size = &o->class[class].size[size_of(o, (double)r->work)];

	advance(o, class, now_ns);
	o->class[class].ended++;
	if (o->controller->note)
		o->controller->note(&o->control, &o->params.control, class, queued_ns, now_ns);
	if ((double)r->work >= o->params.target_s[class] / 2 * (double)NS_PER_S)
		return;
	if (size->count < OVERLOAD_SAMPLES_MAX)
		size->sample_us[size->count++] = us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

/* ---- estimates ---- */

double overload_p90_s(const struct overload *o)
{
	double worst = 0;

	for (unsigned i = 0; i < o->params.class_count; i++)
		for (unsigned k = 0; k < OVERLOAD_SIZES; k++)
			worst = fmax(worst, o->class[i].size[k].p90_s);
	return worst;
}

double overload_backlog_s(const struct overload *o)
{
	return (double)overload_load(o).work / o->control.capacity;
}

/* A client that has had much must wait until what it has had counts less. Without that, the refused
 * come back together with new clients. They find room when as many have been served as were refused
 * for each admitted one. */
unsigned overload_refuse(struct overload *o, unsigned class, const struct overload_ticket *ticket,
                         uint64_t now_ns)
{
	struct shares_view view = view_of(o, class, ticket, now_ns);
	double turn = overload_backlog_s(o) / 2, wait = 0;

	o->refused++;
	if (o->admitted > 0)
		turn *= 1 + o->refused / o->admitted;
	if (!ticket->has_all_room)
		wait = shares_wait_s(&o->shares, ticket->client,
		                     share_of(o, class, view.work) + RETRY_MARGIN);
	if (wait <= 0)
		wait = turn;
	return wait < 1                      ? 1
	       : wait > OVERLOAD_RETRY_MAX_S ? OVERLOAD_RETRY_MAX_S
	                                     : (unsigned)ceil(wait);
}
