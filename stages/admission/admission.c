/* admission.c - the lock, the clock and the line of uploads around overload.c. */
#include "admission.h"

#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"
#include "conf/conf.h"
#include "http/problem.h"
#include "layout/cores.h"
#include "log/log.h"
#include "sched/core/graph.h"
#include "sched/core/graph_table.h"
#include "sched/core/visit.h"
#include "stage_ids.h"

#define CLIENTS_TRIED_MAX 16 /* that wait, when an image ends */

/* ---- begin and end ---- */

#define EXPERIMENT(key) ((double)conf->experiment.key / 1000)

static struct overload_params params_of(const struct conf *conf, const struct conf_classes *classes,
                                        const struct conf_degrade *degrade)
{
	unsigned cores = cores_usable(), threads = (unsigned)conf->scheduler.threads;
	struct overload_params p = {
		.controller = conf->overload.controller,
		.samples = (unsigned)conf->experiment.overload_samples,
		.interval_ns = conf->experiment.overload_interval_ms * NS_PER_MS,
		.half_life_ns = conf->experiment.share_half_life_ms * NS_PER_MS,
		.reserve = EXPERIMENT(share_reserve),
		.control = {
			.smoothing = EXPERIMENT(welsh_smoothing),
			.increase_below = EXPERIMENT(welsh_increase_below),
			.decrease_above = EXPERIMENT(welsh_decrease_above),
			.increase = EXPERIMENT(welsh_increase),
			.increase_offset = EXPERIMENT(welsh_increase_offset),
			.decrease = EXPERIMENT(welsh_decrease),
			.rate_min = EXPERIMENT(welsh_rate_min),
			.rate_max = EXPERIMENT(welsh_rate_max),
			.decrease_lower = EXPERIMENT(welsh_decrease_lower),
			.decrease_patience = conf->experiment.welsh_decrease_patience,
			.rate_rise = EXPERIMENT(rate_rise),
			.gain = EXPERIMENT(backlog_gain),
			.aim = EXPERIMENT(backlog_aim),
			.gain_rise = EXPERIMENT(backlog_rise),
			.rise_below = EXPERIMENT(backlog_rise_below),
			.queue_target = EXPERIMENT(queue_target),
			.dagor_window_ns = conf->experiment.dagor_window_ms * NS_PER_MS,
			.dagor_fall = EXPERIMENT(dagor_fall),
			.dagor_rise = EXPERIMENT(dagor_rise),
		},
		.class_count = classes->count + 1,
		/* more threads than cores do not process more at once */
		.cores = threads < cores ? threads : cores,
		.images_max = conf->limits.images_in_flight,
		.degrade_steps = degrade->count,
	};

	for (unsigned i = 0; i < p.class_count; i++) {
		uint64_t ms = i < classes->count ? classes->class[i].target_ms : 0;

		p.target_s[i] = (double)(ms ? ms : conf->overload.target_p90_ms) / 1000;
	}
	return p;
}

void admission_init(struct admission *a, const struct conf *conf)
{
	memset(a, 0, sizeof *a);
	pthread_mutex_init(&a->lock, NULL);
	conf_classes_parse(conf->overload.classes, &a->classes);
	conf_degrade_parse(conf->overload.degrade, &a->degrade);
	struct overload_params params = params_of(conf, &a->classes, &a->degrade);

	clients_init(&a->clients);
	client_rates_init(&a->rates);
	cost_init(&a->cost);
	overload_init(&a->overload, &params, clock_ns());
}

void admission_fini(struct admission *a)
{
	assert(!a->first);
	client_rates_fini(&a->rates);
	clients_fini(&a->clients);
	pthread_mutex_destroy(&a->lock);
}

void admission_change(struct admission *a, const struct conf *conf)
{
	struct conf_degrade degrade;

	conf_degrade_parse(conf->overload.degrade, &degrade);
	pthread_mutex_lock(&a->lock);
	conf_classes_parse(conf->overload.classes, &a->classes);
	struct overload_params params = params_of(conf, &a->classes, &degrade);

	if (memcmp(&degrade, &a->degrade, sizeof degrade) != 0) {
		a->degrade = degrade;
		memset(a->degraded, 0, sizeof a->degraded);
	}
	overload_change(&a->overload, &params, clock_ns());
	for (unsigned i = 0; i < params.class_count; i++)
		a->level[i] = a->overload.class[i].degrade.level;
	pthread_mutex_unlock(&a->lock);
}

static const char *class_name(const struct admission *a, unsigned class)
{
	return class < a->classes.count ? a->classes.class[class].name : "other";
}

/* ---- degradation ---- */

/* Logs the levels that have changed. Under the lock: the log never waits. */
static void log_levels(struct admission *a)
{
	for (unsigned i = 0; i < a->overload.params.class_count; i++) {
		unsigned level = a->overload.class[i].degrade.level, before = a->level[i];

		if (level == before)
			continue;
		a->level[i] = level;
		struct text steps = TEXT_LOCAL(CONF_DEGRADE_MAX * (CONF_DEGRADE_TEXT_MAX + 2));

		for (unsigned k = 0; k < level && k < a->degrade.count; k++)
			text_printf(&steps, "%s%s", k ? ", " : "", a->degrade.step[k].text);
		log_notice("overload: class %s: %s load; making images %s%s", class_name(a, i),
		           level > before ? "more" : "less", level ? "with " : "as configured",
		           steps.data);
	}
}

/* Counts a stored image. A reload may have changed the steps since it was admitted. */
static void count_degraded(struct admission *a, const struct admission_end *end)
{
	for (unsigned i = 0; !end->has_failed && i < end->level && i < a->degrade.count; i++)
		a->degraded[i] += strcmp(end->degrade->step[i].text, a->degrade.step[i].text) == 0;
}

bool admission_is_calm(struct admission *a)
{
	pthread_mutex_lock(&a->lock);
	bool is_calm = overload_is_over(&a->overload, clock_ns());

	log_levels(a);
	pthread_mutex_unlock(&a->lock);
	return is_calm;
}

/* ---- limits of one client ---- */

#define SLUG "too-many-requests"

/* Returns how many images the client may have in flight; 0: they are not counted. */
static uint64_t images_max(const struct conf *conf, const struct client *client)
{
	uint64_t max = conf->limits.images_per_client, parts = conf->limits.parts;

	if (client->is_local)
		return max == CONF_AUTO ? 0 : max;
	if (max != CONF_AUTO)
		return max ? max : UINT64_MAX;
	max = conf->limits.images_in_flight / 4;
	return max > parts ? max : parts;
}

static void set_count_problem(struct problem *problem, uint64_t max, uint64_t count)
{
	problem_set_limit(problem, 429, SLUG, "limits.images_per_client", max, count);
}

static bool take_rate(struct admission *a, const struct conf *conf, const struct client *client,
                      struct problem *problem)
{
	const struct client_rate rate = { conf->limits.client_rate, conf->limits.client_burst };
	uint64_t used;

	if (!rate.rate)
		return true;
	uint64_t wait_ns = client_rates_take(&a->rates, client, rate, clock_ns(), &used);

	if (!wait_ns)
		return true;
	problem_set_limit(problem, 429, SLUG, "limits.client_burst", rate.burst, used + 1);
	problem_append(problem, "; limits.client_rate = %g images per second",
	               (double)rate.rate / 1000);
	problem->retry_after_s = (unsigned)((wait_ns + NS_PER_S - 1) / NS_PER_S);
	return false;
}

bool admission_ask(struct admission *a, const struct conf *conf, const struct client *client,
                   struct problem *problem)
{
	uint64_t max = images_max(conf, client);
	uint64_t count = max ? clients_count(&a->clients, client, CLIENT_IMAGES) : 0;

	if (max && count >= max) {
		set_count_problem(problem, max, count + 1);
		return false;
	}
	return take_rate(a, conf, client, problem);
}

/* Counts n images of the client, and the rate of all but the first. Returns false with the problem
 * set if they are too many. */
static bool count_client(struct admission *a, struct admitted *u, const struct conf *conf,
                         unsigned n, struct problem *problem)
{
	const struct client_rate rate = { conf->limits.client_rate, conf->limits.client_burst };
	uint64_t max = images_max(conf, &u->client);
	uint64_t count = max ? clients_add(&a->clients, &u->client, CLIENT_IMAGES, n, max) : 0;

	u->is_client_counted = count > 0 && count <= max;
	if (max && count == 0)
		problem_set(problem, 503, "overloaded", "no memory");
	else if (max && count > max)
		set_count_problem(problem, max, count);
	if (max && !u->is_client_counted)
		return false;
	if (rate.rate && n > 1)
		client_rates_charge(&a->rates, &u->client, rate, n - 1, clock_ns());
	return true;
}

/* ---- arriving ---- */

/* A reload may have removed classes since the request got its own. */
static unsigned class_now(const struct admission *a, unsigned class)
{
	unsigned last = a->overload.params.class_count - 1;

	return class < last ? class : last;
}

static bool admit(struct admission *a, struct admission_waiter *w)
{
	uint64_t now_ns = clock_ns();
	enum overload_stages stages = OVERLOAD_STAGES_FIXED;
	struct cost_facts facts = cost_facts_of_length(w->bytes);

	w->class = class_now(a, w->class);
	w->full_stage = (unsigned)(graph_full_stage(a->graph, now_ns) + 1);
	if (w->full_stage)
		stages = OVERLOAD_STAGES_HAVE_ENOUGH;
	else if (graph_is_growing(a->graph))
		stages = OVERLOAD_STAGES_CAN_GROW;
	bool is_admitted = overload_admit(&a->overload, w->class, cost_ns(&a->cost, &facts), stages,
	                                  &w->ticket, now_ns);

	log_levels(a);
	return is_admitted;
}

static void join_line(struct admission *a, struct admission_waiter *w)
{
	struct admission_waiter **at = &a->first;

	while (*at && (*at)->class <= w->class)
		at = &(*at)->next;
	w->next = *at;
	w->is_waiting = true;
	*at = w;
	a->waited++;
}

bool admission_try(struct admission *a, struct admission_waiter *w, bool may_wait)
{
	pthread_mutex_lock(&a->lock);
	w->ticket.client = w->client.slot;
	w->ticket.has_all_room = w->client.is_local;
	/* None overtakes the line of its class. */
	bool is_overtaking = may_wait && a->first && a->first->class <= w->class;
	bool is_admitted = !is_overtaking && admit(a, w);

	a->admitted[w->class] += is_admitted;
	if (!is_admitted && may_wait)
		join_line(a, w);
	pthread_mutex_unlock(&a->lock);
	return is_admitted;
}

bool admission_leave(struct admission *a, struct admission_waiter *w)
{
	struct admission_waiter **at = &a->first;

	pthread_mutex_lock(&a->lock);
	bool was_waiting = w->is_waiting;

	while (was_waiting && *at != w)
		at = &(*at)->next;
	if (was_waiting)
		*at = w->next;
	w->is_waiting = false;
	pthread_mutex_unlock(&a->lock);
	return was_waiting;
}

static void set_problem_of_stage(struct admission *a, unsigned index, struct problem *problem)
{
	const char *name = graph_rows[index].class->name;
	uint64_t waiting = graph_waiting(a->graph, index);

	problem_set(
		problem, 503, "overloaded",
		"stage %s has enough: %llu event%s in its queue; stage.%s.queue_max and rate_max limit it",
		name, (unsigned long long)waiting, plural(waiting), name);
}

static void set_problem_of_load(const struct load *in_flight, const struct load *claims,
                                double backlog_s, struct problem *problem)
{
	problem_set(problem, 503, "overloaded", "%llu image%s being processed",
	            (unsigned long long)in_flight->images,
	            in_flight->images == 1 ? " is" : "s are");
	if (claims->images > 0)
		problem_append(problem, " and %llu are about to come",
		               (unsigned long long)claims->images);
	problem_append(problem, ", which takes about %.1f s", backlog_s);
}

void admission_refuse(struct admission *a, const struct conf *conf,
                      const struct admission_waiter *w, struct problem *problem)
{
	uint64_t max = conf->limits.images_in_flight, count = admission_in_flight(a);

	pthread_mutex_lock(&a->lock);
	unsigned class = class_now(a, w->class);
	struct load load = a->overload.in_flight, claims = a->overload.shares.claims;
	double backlog_s = overload_backlog_s(&a->overload);
	unsigned retry_s = overload_refuse(&a->overload, class, &w->ticket, clock_ns());

	a->refused[class]++;
	pthread_mutex_unlock(&a->lock);
	if (count >= max)
		problem_set_limit(problem, 503, "overloaded", "limits.images_in_flight", max,
		                  count + 1);
	else if (w->full_stage)
		set_problem_of_stage(a, w->full_stage - 1, problem);
	else
		set_problem_of_load(&load, &claims, backlog_s, problem);
	problem->retry_after_s = retry_s;
}

void admission_cancel(struct admission *a, struct admission_waiter *w)
{
	if (!w->ticket.is_held)
		return;
	pthread_mutex_lock(&a->lock);
	overload_cancel(&a->overload, &w->ticket, clock_ns());
	pthread_mutex_unlock(&a->lock);
}

/* ---- places ---- */

bool admission_take_place(struct admission *a, uint64_t max)
{
	if (atomic_fetch_add_explicit(&a->in_flight, 1, memory_order_relaxed) < max)
		return true;
	admission_give_place(a);
	return false;
}

void admission_give_place(struct admission *a)
{
	atomic_fetch_sub_explicit(&a->in_flight, 1, memory_order_relaxed);
}

/* Returns how many images may be in flight with an upload of n. Some places are left for uploads of
 * one image, which else would stand behind forms. */
static uint64_t places_for(const struct conf *conf, unsigned n)
{
	uint64_t max = conf->limits.images_in_flight, for_forms = max - max / 16;

	return n > 1 && for_forms >= conf->limits.parts ? for_forms : max;
}

/* Takes places for n images, or fills the problem. */
static bool take_places(struct admission *a, struct admitted *u, const struct conf *conf,
                        unsigned n, struct problem *problem)
{
	uint64_t max = places_for(conf, n), all = conf->limits.images_in_flight;
	uint64_t before = atomic_fetch_add_explicit(&a->in_flight, n, memory_order_relaxed);

	if (before + n <= max && count_client(a, u, conf, n, problem))
		return true;
	if (before + n > max)
		problem_set_limit(problem, 503, "overloaded", "limits.images_in_flight", all,
		                  before + n);
	if (before + n > max && max < all)
		problem_append(problem, " - %llu, which are for uploads of one image",
		               (unsigned long long)(all - max));
	atomic_fetch_sub_explicit(&a->in_flight, n, memory_order_relaxed);
	return false;
}

/* ---- images ---- */

uint64_t admission_work(struct admission *a, const struct cost_facts *facts)
{
	pthread_mutex_lock(&a->lock);
	uint64_t work = cost_ns(&a->cost, facts);

	pthread_mutex_unlock(&a->lock);
	return work;
}

/* The body of the ticket's upload has come. ticket: NULL for work of the daemon's own. */
static void begin_work(struct admission *a, struct admitted *u, struct overload_ticket *ticket,
                       unsigned images, uint64_t work)
{
	pthread_mutex_lock(&a->lock);
	overload_begin(&a->overload, u->client.slot, ticket, images, work, u->begun_ns);
	pthread_mutex_unlock(&a->lock);
}

bool admission_begin(struct admission *a, struct admitted *u, struct admission_waiter *w,
                     const struct conf *conf, unsigned images, uint64_t work,
                     struct problem *problem)
{
	if (!take_places(a, u, conf, images, problem))
		return false;
	u->begun_ns = clock_ns();
	begin_work(a, u, &w->ticket, images, work);
	return true;
}

void admission_begin_own(struct admission *a, struct admitted *u, uint64_t work)
{
	u->begun_ns = clock_ns();
	atomic_store_explicit(&u->is_measured, true, memory_order_relaxed);
	if (!u->is_background)
		begin_work(a, u, NULL, 1, work);
}

/* Takes what can be admitted out of the line. An upload that is not admitted keeps back those of
 * its client; some other clients are tried. Under the lock. */
static struct admission_waiter *admit_line(struct admission *a)
{
	struct admission_waiter *list = NULL, **end = &list, **at = &a->first;
	unsigned kept[CLIENTS_TRIED_MAX], kept_count = 0; /* slots of clients */

	while (*at && kept_count < CLIENTS_TRIED_MAX) {
		struct admission_waiter *w = *at;
		unsigned i = 0;

		while (i < kept_count && kept[i] != w->client.slot)
			i++;
		if (i < kept_count || !admit(a, w)) {
			kept[i] = w->client.slot;
			kept_count += i == kept_count;
			at = &w->next;
			continue;
		}
		*at = w->next;
		w->next = NULL;
		w->is_waiting = false;
		a->admitted[w->class]++;
		*end = w;
		end = &w->next;
	}
	return list;
}

/* Gives back the lock, and sends what could be admitted. */
static void unlock_and_admit(struct visit *v, struct admission *a)
{
	struct admission_waiter *list = admit_line(a);

	pthread_mutex_unlock(&a->lock);
	while (list) {
		struct admission_waiter *w = list;

		list = w->next; /* w is its owner's once the event is sent */
		visit_resume(v, STAGE_ACCEPT_READ, w->instance, w->event);
	}
}

/* The first image of an upload shows what its client waits for; the others wait for it as well. */
static bool is_measured(struct admitted *u, const struct admission_end *end)
{
	/* Relaxed: only the value matters. */
	return !end->has_failed &&
	       !atomic_exchange_explicit(&u->is_measured, true, memory_order_relaxed);
}

void admission_end(struct visit *v, struct admission *a, struct admitted *u,
                   const struct admission_end *end)
{
	bool is_sample = is_measured(u, end);
	uint64_t now_ns = clock_ns();
	const struct overload_response response = { now_ns - u->begun_ns + u->waited_ns, end->work,
		                                    end->spent_ns };

	if (u->is_client_counted)
		clients_drop(&a->clients, &u->client, CLIENT_IMAGES);
	admission_give_place(a); /* the uploads that are admitted now find it free */
	pthread_mutex_lock(&a->lock);
	if (!u->is_background)
		overload_end(&a->overload, u->client.slot, end->work, end->spent_ns, now_ns);
	if (!end->has_failed)
		cost_learn(&a->cost, &end->facts, end->spent_ns);
	if (is_sample)
		overload_note(&a->overload, class_now(a, u->class), &response, now_ns);
	count_degraded(a, end);
	log_levels(a);
	unlock_and_admit(v, a);
}

void admission_poll(struct visit *v, struct admission *a)
{
	pthread_mutex_lock(&a->lock);
	unlock_and_admit(v, a);
}

/* ---- reports ---- */

static void report_class(const struct admission *a, struct admission_report *report, unsigned i)
{
	const struct control *control = &a->overload.control;
	const char *name = class_name(a, i);

	memcpy(report->class[i].name, name, strlen(name) + 1);
	report->class[i].admitted = a->admitted[i];
	report->class[i].refused = a->refused[i];
	report->class[i].target_s = control->class[i].target_s;
	report->class[i].rate = control->class[i].rate;
	report->class[i].level = a->overload.class[i].degrade.level;
	report->class[i].limit_s = control_backlog_limit(control, i) / control->capacity;
}

void admission_report(struct admission *a, struct admission_report *report)
{
	pthread_mutex_lock(&a->lock);
	overload_look(&a->overload, clock_ns()); /* without uploads, the time removes steps */
	log_levels(a);
	*report = (struct admission_report){
		.waited = a->waited,
		.degrade = a->degrade,
		.backlog_s = overload_backlog_s(&a->overload),
		.p90_s = overload_p90_s(&a->overload),
		.class_count = a->overload.params.class_count,
	};
	memcpy(report->degraded, a->degraded, sizeof report->degraded);
	for (unsigned i = 0; i < report->class_count; i++)
		report_class(a, report, i);
	for (const struct admission_waiter *w = a->first; w; w = w->next)
		report->waiting++;
	pthread_mutex_unlock(&a->lock);
}
