/* overload.c - accounts for admitted work, and divides time into the controllers' intervals. */
#include "overload.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "conf/conf.h"
#include "conf/conf_classes.h"
#include "conf/conf_degrade.h"

#define SLOT_NS (250 * NS_PER_MS)
#define PENDING_WORK_MAX (UINT64_C(1) << 20) /* of one upload; a client may announce any length */
#define FLOOR_PER_CORE 2
#define COLD_IMAGES 256        /* admitted before the capacity is known */
#define FIRST_MEASURE_IMAGES 8 /* that the first estimate of it needs */
#define IDLE_STEPS_MAX 1000    /* intervals without a request that are made up for */
#define HEAVY_SHARE 0.75       /* of the room, for a client that has most of the images */
#define BUSY_NS (5 * NS_PER_S) /* time constant of the share of busy time */
#define BUSY_BELOW 0.4         /* then the images could take twice as long */
#define BUCKET_S 0.1           /* what the bucket holds, at the current rate */

static void set_classes(struct overload_params *p, const struct conf *conf)
{
	struct conf_classes classes;

	if (!conf_classes_parse(conf->overload.classes, &classes))
		classes.count = 0; /* it was checked with the configuration */
	p->class_count = classes.count + 1;
	for (unsigned i = 0; i < p->class_count; i++) {
		uint64_t ms = i < classes.count ? classes.class[i].target_ms : 0;

		p->target_s[i] = (double)(ms ? ms : conf->overload.target_p90_ms) / 1000;
	}
}

void overload_params_from(struct overload_params *p, const struct conf *conf, unsigned cores)
{
	struct conf_degrade degrade;

	*p = (struct overload_params){
		.controller = conf->overload.controller,
		.samples = (unsigned)conf->overload.samples,
		.interval_ns = conf->overload.interval_ms * NS_PER_MS,
		.control = {
			.smoothing = (double)conf->overload.smoothing / 1000,
			.increase_below = (double)conf->overload.increase_below / 1000,
			.decrease_above = (double)conf->overload.decrease_above / 1000,
			.increase = (double)conf->overload.increase / 1000,
			.increase_offset = (double)conf->overload.increase_offset / 1000,
			.decrease = (double)conf->overload.decrease / 1000,
			.rate_min = (double)conf->overload.rate_min / 1000,
			.rate_max = (double)conf->overload.rate_max / 1000,
			.decrease_lower = (double)conf->overload.decrease_lower / 1000,
			.decrease_patience = (unsigned)conf->overload.decrease_patience,
		},
		.cores = cores,
		.images_max = conf->limits.images_in_flight,
	};
	if (conf_degrade_parse(conf->overload.degrade, &degrade))
		p->degrade_steps = degrade.count;
	set_classes(p, conf);
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
	start_classes(o, now_ns);
}

void overload_change(struct overload *o, const struct overload_params *p, uint64_t now_ns)
{
	bool starts =
		p->class_count != o->params.class_count || p->controller != o->params.controller;
	double capacity = o->control.capacity;

	o->params = *p;
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

static uint64_t slot_of(uint64_t now_ns)
{
	return now_ns / SLOT_NS + 1; /* 0: none */
}

/* Adds up what was admitted in the last second, and has not come. */
static void sum_pending(const struct overload *o, uint64_t now_ns, uint64_t *uploads,
                        uint64_t *work)
{
	uint64_t now = slot_of(now_ns);

	*uploads = *work = 0;
	for (unsigned i = 0; i < OVERLOAD_SLOTS; i++) {
		if (o->pending[i].slot + OVERLOAD_SLOTS <= now)
			continue;
		*uploads += o->pending[i].uploads;
		*work += o->pending[i].work;
	}
}

static void hold_place(struct overload *o, struct overload_ticket *ticket, uint64_t work,
                       uint64_t now_ns)
{
	uint64_t slot = slot_of(now_ns);
	unsigned i = (unsigned)(slot % OVERLOAD_SLOTS);

	if (o->pending[i].slot != slot) {
		o->pending[i].slot = slot;
		o->pending[i].uploads = o->pending[i].work = 0;
	}
	ticket->slot = slot;
	ticket->work = work < PENDING_WORK_MAX ? work : PENDING_WORK_MAX;
	o->pending[i].uploads++;
	o->pending[i].work += ticket->work;
}

static void leave_place(struct overload *o, struct overload_ticket *ticket)
{
	unsigned i = (unsigned)(ticket->slot % OVERLOAD_SLOTS);

	if (ticket->slot && o->pending[i].slot == ticket->slot) {
		o->pending[i].uploads--;
		o->pending[i].work -= ticket->work;
	}
	ticket->slot = 0;
}

/* Counts the time in which all cores had an image. */
static void account(struct overload *o, uint64_t now_ns)
{
	uint64_t passed_ns = now_ns > o->accounted_ns ? now_ns - o->accounted_ns : 0;
	bool is_busy = o->images >= o->params.cores;

	if (is_busy)
		o->busy_ns += passed_ns;
	o->busy_share += ((is_busy ? 1 : 0) - o->busy_share) * (double)passed_ns /
	                 (double)(passed_ns + BUSY_NS);
	o->accounted_ns = now_ns;
}

/* Ends the measurement of the capacity if it is long enough. */
static void measure(struct overload *o)
{
	unsigned enough = o->control.capacity > 0 ? o->params.samples : FIRST_MEASURE_IMAGES;

	if (o->busy_images == 0 ||
	    (o->busy_images < enough && o->busy_ns < o->params.interval_ns) || o->busy_ns == 0)
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
	uint64_t passed = now_ns - class->start_ns;

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
	double rate = o->control.class[index].rate, room = rate * BUCKET_S;

	class->tokens += rate * (double)(now_ns - class->filled_ns) / (double)NS_PER_S;
	class->filled_ns = now_ns;
	if (room < 1)
		room = 1;
	if (class->tokens > room)
		class->tokens = room;
	if (class->tokens < 1)
		return false;
	class->tokens--;
	return true;
}

static bool has_room(const struct overload *o, unsigned class, double share, uint64_t images,
                     uint64_t work)
{
	if (o->control.capacity > 0)
		return (double)work < share * control_backlog_limit(&o->control, class);
	return (double)images < share * COLD_IMAGES;
}

/* Returns whether the client's turn comes soon enough, whatever other clients have in flight. */
static bool has_turn(const struct overload *o, unsigned class, const struct overload_ticket *ticket)
{
	return o->params.controller == CONF_CONTROLLER_BACKLOG && ticket->ahead > 0 &&
	       has_room(o, class, 1, ticket->ahead / WORK_PER_IMAGE, ticket->ahead);
}

/* Returns whether the controller lets an upload pass. share: of the room, that may be used. */
static bool may_pass(struct overload *o, unsigned class, double share, uint64_t now_ns)
{
	uint64_t uploads, work;
	bool has_token =
		o->params.controller != CONF_CONTROLLER_WELSH || take_token(o, class, now_ns);

	sum_pending(o, now_ns, &uploads, &work);
	if (o->can_grow || o->params.controller == CONF_CONTROLLER_OFF ||
	    o->images + uploads < (uint64_t)o->params.cores * FLOOR_PER_CORE)
		return true;
	if (o->params.controller == CONF_CONTROLLER_WELSH)
		return has_token;
	return has_room(o, class, share, o->images + uploads, o->work + work);
}

/* ---- degradation ---- */

/* Returns how much of the class's room is taken. */
static double pressure(const struct overload *o, unsigned class, uint64_t now_ns)
{
	const struct control_class *control = &o->control.class[class];
	uint64_t uploads, work;

	sum_pending(o, now_ns, &uploads, &work);
	if (o->images + uploads == 0)
		return 0;
	if (o->params.controller == CONF_CONTROLLER_WELSH)
		return control->current_s / control->target_s;
	if (o->control.capacity > 0)
		return (double)(o->work + work) / control_backlog_limit(&o->control, class);
	return (double)(o->images + uploads) / COLD_IMAGES;
}

void overload_look(struct overload *o, uint64_t now_ns)
{
	account(o, now_ns);
	/* A thread reads the clock before it has the lock. */
	if (now_ns < o->looked_ns)
		now_ns = o->looked_ns;
	o->looked_ns = now_ns;
	for (unsigned i = 0; i < o->params.class_count && o->params.degrade_steps; i++) {
		double now = pressure(o, i, now_ns);
		struct degrade_params p;

		if (o->can_grow && now >= DEGRADE_ENTER) /* a thread helps, and costs less */
			continue;
		degrade_params_from(&p, o->params.degrade_steps, o->control.class[i].target_s);
		degrade_look(&o->class[i].degrade, &p, now, o->busy_share < BUSY_BELOW, now_ns);
	}
}

bool overload_is_over(struct overload *o, uint64_t now_ns)
{
	overload_look(o, now_ns);
	for (unsigned i = 0; i < o->params.class_count; i++) {
		struct degrade_params p;

		degrade_params_from(&p, o->params.degrade_steps, o->control.class[i].target_s);
		if (!degrade_is_over(&o->class[i].degrade, &p, o->looked_ns))
			return false;
	}
	return true;
}

/* Adds a step instead of refusing an upload. Returns false if all are in. */
static bool press(struct overload *o, unsigned class)
{
	struct degrade_params p;

	degrade_params_from(&p, o->params.degrade_steps, o->control.class[class].target_s);
	return degrade_press(&o->class[class].degrade, &p, o->looked_ns);
}

/* ---- admission ---- */

/* Returns whether another image may be in flight. */
static bool places_left(const struct overload *o, double share, uint64_t now_ns)
{
	uint64_t uploads, work;

	sum_pending(o, now_ns, &uploads, &work);
	return (double)(o->images + uploads) < share * (double)o->params.images_max;
}

/* A client with a share of the room adds no step: its images alone would cheapen those of others.
 */
static bool admit(struct overload *o, unsigned class, uint64_t work, double share,
                  enum overload_stages stages, struct overload_ticket *ticket, uint64_t now_ns)
{
	account(o, now_ns);
	advance(o, class, now_ns);
	o->can_grow = stages == OVERLOAD_STAGES_CAN_GROW;
	overload_look(o, now_ns);
	bool has_place = places_left(o, share, now_ns);

	if (!(has_place && stages != OVERLOAD_STAGES_HAVE_ENOUGH &&
	      (may_pass(o, class, share, now_ns) || has_turn(o, class, ticket))) &&
	    !(share >= 1 && press(o, class) && has_place)) {
		o->refused++;
		o->class[class].refused++;
		return false;
	}
	o->admitted++;
	hold_place(o, ticket, work, now_ns);
	ticket->level = o->class[class].degrade.level;
	return true;
}

bool overload_admit(struct overload *o, unsigned class, uint64_t work, enum overload_stages stages,
                    struct overload_ticket *ticket, uint64_t now_ns)
{
	return admit(o, class, work, 1, stages, ticket, now_ns);
}

bool overload_admit_heavy(struct overload *o, unsigned class, uint64_t work,
                          enum overload_stages stages, struct overload_ticket *ticket,
                          uint64_t now_ns)
{
	return admit(o, class, work, HEAVY_SHARE, stages, ticket, now_ns);
}

void overload_cancel(struct overload *o, struct overload_ticket *ticket, uint64_t now_ns)
{
	account(o, now_ns);
	leave_place(o, ticket);
}

void overload_begin(struct overload *o, struct overload_ticket *ticket, unsigned images,
                    uint64_t work, uint64_t now_ns)
{
	account(o, now_ns);
	if (ticket)
		leave_place(o, ticket);
	o->images += images;
	o->work += work;
}

void overload_end(struct overload *o, uint64_t work, uint64_t now_ns)
{
	account(o, now_ns);
	assert(o->images > 0 && o->work >= work);
	if (o->images >= o->params.cores) {
		o->busy_images++;
		o->busy_work += work;
	}
	o->images--;
	o->work -= work;
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
	return o->control.capacity > 0 ? (double)o->work / o->control.capacity : 0;
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
