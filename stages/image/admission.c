/* admission.c - the lock, the clock and the line of uploads around overload.c. */
#include "admission.h"

#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"
#include "conf/conf.h"
#include "conf_epoch.h"
#include "image.h"
#include "image_service.h"
#include "log/log.h"
#include "problem.h"
#include "sched/enqueue.h"
#include "sched/graph.h"
#include "sched/graph_table.h"
#include "sched/visit.h"
#include "stage_ids.h"
#include "upload.h"

#define CLIENTS_TRIED_MAX 16 /* that wait, when an image ends */

/* ---- begin and end ---- */

static void read_params(struct overload_params *p, const struct conf *conf)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	overload_params_from(p, conf, cores > 1 ? (unsigned)cores : 1);
	if (conf->scheduler.threads < p->cores) /* more threads do not process more at once */
		p->cores = (unsigned)conf->scheduler.threads;
}

void admission_init(struct admission *a, const struct conf *conf)
{
	struct overload_params params;

	memset(a, 0, sizeof *a);
	pthread_mutex_init(&a->lock, NULL);
	read_params(&params, conf);
	conf_classes_parse(conf->overload.classes, &a->classes);
	conf_degrade_parse(conf->overload.degrade, &a->degrade);
	client_work_init(&a->clients);
	overload_init(&a->overload, &params, clock_ns());
}

void admission_fini(struct admission *a)
{
	assert(!a->first);
	pthread_mutex_destroy(&a->lock);
}

void admission_change(struct admission *a, const struct conf *conf)
{
	struct overload_params params;
	struct conf_degrade degrade;

	read_params(&params, conf);
	conf_degrade_parse(conf->overload.degrade, &degrade);
	pthread_mutex_lock(&a->lock);
	conf_classes_parse(conf->overload.classes, &a->classes);
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
	char data[CONF_DEGRADE_MAX * (CONF_DEGRADE_TEXT_MAX + 2)];
	struct text steps;

	for (unsigned i = 0; i < a->overload.params.class_count; i++) {
		unsigned level = a->overload.class[i].degrade.level, before = a->level[i];

		if (level == before)
			continue;
		a->level[i] = level;
		text_init(&steps, data, sizeof data);
		for (unsigned k = 0; k < level && k < a->degrade.count; k++)
			text_printf(&steps, "%s%s", k ? ", " : "", a->degrade.step[k].text);
		log_notice("overload: class %s: %s load; making images %s%s", class_name(a, i),
		           level > before ? "more" : "less", level ? "with " : "as configured",
		           data);
	}
}

/* Counts a stored image. A reload may have changed the steps since it was admitted. */
static void count_degraded(struct admission *a, const struct image *image)
{
	const struct upload *u = image->upload;

	/* Relaxed: the image's event has come from the thread that set it. */
	if (atomic_load_explicit(&image->has_failed, memory_order_relaxed))
		return;
	for (unsigned i = 0; i < u->level && i < a->degrade.count; i++)
		a->degraded[i] +=
			strcmp(u->epoch->degrade.step[i].text, a->degrade.step[i].text) == 0;
}

bool admission_is_calm(struct admission *a)
{
	pthread_mutex_lock(&a->lock);
	bool is_calm = overload_is_over(&a->overload, clock_ns());

	log_levels(a);
	pthread_mutex_unlock(&a->lock);
	return is_calm;
}

/* ---- arriving ---- */

/* A reload may have removed classes since the request got its own. */
static unsigned class_now(const struct admission *a, unsigned class)
{
	unsigned last = a->overload.params.class_count - 1;

	return class < last ? class : last;
}

static bool admit(struct image_service *s, struct admission_waiter *w)
{
	struct client_work *clients = &s->admission.clients;
	uint64_t now_ns = clock_ns();
	enum overload_stages stages = OVERLOAD_STAGES_FIXED;

	w->class = class_now(&s->admission, w->class);
	w->ticket.client = client_work_slot(clients, &w->client);
	w->ticket.ahead = client_work_ahead(clients, w->ticket.client, w->work);
	w->full_stage = (unsigned)(enqueue_refusing_stage(s->graph, now_ns) + 1);
	if (w->full_stage)
		stages = OVERLOAD_STAGES_HAVE_ENOUGH;
	else if (graph_is_growing(s->graph))
		stages = OVERLOAD_STAGES_CAN_GROW;
	bool is_admitted = (w->is_heavy ? overload_admit_heavy : overload_admit)(
		&s->admission.overload, w->class, w->work, stages, &w->ticket, now_ns);

	if (is_admitted)
		client_work_add(clients, w->ticket.client, w->ticket.work);
	log_levels(&s->admission);
	return is_admitted;
}

bool admission_try(struct image_service *s, struct admission_waiter *w)
{
	struct admission *a = &s->admission;

	pthread_mutex_lock(&a->lock);
	bool is_admitted = admit(s, w);

	a->admitted[w->class] += is_admitted;
	a->refused[w->class] += !is_admitted;
	pthread_mutex_unlock(&a->lock);
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

bool admission_wait(struct image_service *s, struct admission_waiter *w)
{
	struct admission *a = &s->admission;

	pthread_mutex_lock(&a->lock);
	/* None overtakes the line of its class. */
	bool is_admitted = !(a->first && a->first->class <= w->class) && admit(s, w);

	a->admitted[w->class] += is_admitted;
	if (!is_admitted)
		join_line(a, w);
	pthread_mutex_unlock(&a->lock);
	return is_admitted;
}

bool admission_leave(struct image_service *s, struct admission_waiter *w)
{
	struct admission *a = &s->admission;
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

static void set_problem_of_stage(struct image_service *s, unsigned index, struct problem *problem)
{
	const char *name = graph_rows[index].class->name;

	problem_set(
		problem, 503, "overloaded",
		"stage %s has enough: %llu events wait; stage.%s.queue_max and rate_max limit it",
		name, (unsigned long long)enqueue_waiting(s->graph, index), name);
}

void admission_set_problem(struct image_service *s, const struct admission_waiter *w,
                           struct problem *problem)
{
	struct admission *a = &s->admission;

	pthread_mutex_lock(&a->lock);
	uint64_t images = a->overload.images;
	double backlog_s = overload_backlog_s(&a->overload);
	unsigned retry_s = overload_retry_s(&a->overload, class_now(a, w->class));

	pthread_mutex_unlock(&a->lock);
	if (w->full_stage)
		set_problem_of_stage(s, w->full_stage - 1, problem);
	else
		problem_set(problem, 503, "overloaded",
		            "%llu images are being processed, which takes about %.1f s",
		            (unsigned long long)images, backlog_s);
	problem->retry_after_s = retry_s;
}

void admission_cancel(struct image_service *s, struct overload_ticket *ticket)
{
	struct admission *a = &s->admission;

	if (ticket->slot == 0)
		return;
	pthread_mutex_lock(&a->lock);
	client_work_end(&a->clients, ticket->client, ticket->work);
	overload_cancel(&a->overload, ticket, clock_ns());
	pthread_mutex_unlock(&a->lock);
}

/* ---- images ---- */

static uint64_t image_work(const struct image *image)
{
	return image->source_size + WORK_PER_IMAGE;
}

void admission_begin(struct image_service *s, struct upload *u)
{
	struct admission *a = &s->admission;
	uint64_t now_ns = clock_ns(), work = 0;

	for (unsigned i = 0; i < u->image_count; i++)
		work += image_work(u->image[i]);
	u->begun_ns = now_ns;
	if (u->image[0]->remade) /* below all other work: it neither waits nor lets others wait */
		return;
	pthread_mutex_lock(&a->lock);
	if (u->ticket.slot)
		client_work_end(&a->clients, u->ticket.client, u->ticket.work);
	client_work_add(&a->clients, client_work_slot(&a->clients, &u->client), work);
	overload_begin(&a->overload, &u->ticket, u->image_count, work, now_ns);
	pthread_mutex_unlock(&a->lock);
}

/* Clients of which an upload was not admitted. */
struct kept_back {
	unsigned slot[CLIENTS_TRIED_MAX], count;
};

static bool is_kept_back(const struct kept_back *k, unsigned slot)
{
	unsigned i = 0;

	while (i < k->count && k->slot[i] != slot)
		i++;
	return i < k->count;
}

/* Takes what can be admitted out of the line. An upload that is not admitted keeps back those of
 * its client; some other clients are tried. Under the lock. */
static struct admission_waiter *admit_line(struct image_service *s)
{
	struct admission *a = &s->admission;
	struct admission_waiter *list = NULL, **end = &list, **at = &a->first;
	struct kept_back kept = { .count = 0 };

	while (*at && kept.count < CLIENTS_TRIED_MAX) {
		struct admission_waiter *w = *at;
		unsigned slot = client_work_slot(&a->clients, &w->client);

		if (is_kept_back(&kept, slot)) {
			at = &w->next;
		} else if (!admit(s, w)) {
			kept.slot[kept.count++] = slot;
			at = &w->next;
		} else {
			*at = w->next;
			w->next = NULL;
			w->is_waiting = false;
			a->admitted[w->class]++;
			*end = w;
			end = &w->next;
		}
	}
	return list;
}

static void send_admitted(struct visit *v, struct admission_waiter *list)
{
	while (list) {
		struct admission_waiter *w = list;

		list = w->next; /* w is its owner's once the event is sent */
		visit_resume(v, STAGE_ACCEPT_READ, w->instance, w->event);
	}
}

/* The first image of an upload shows what its client waits for; the others wait for it as well. */
static bool is_measured(struct upload *u, const struct image *image)
{
	/* Relaxed, both: only the values matter. */
	return u->begun_ns && !atomic_load_explicit(&image->has_failed, memory_order_relaxed) &&
	       !atomic_exchange_explicit(&u->is_measured, true, memory_order_relaxed);
}

void admission_end(struct visit *v, struct image *image)
{
	struct upload *u = image->upload;
	struct image_service *s = u->service;
	struct admission *a = &s->admission;
	bool is_sample = is_measured(u, image);
	uint64_t now_ns = clock_ns();

	pthread_mutex_lock(&a->lock);
	if (!image->remade) {
		uint64_t work = image_work(image);

		client_work_end(&a->clients, client_work_slot(&a->clients, &u->client), work);
		overload_end(&a->overload, work, now_ns);
	}
	if (is_sample)
		overload_note(&a->overload, class_now(a, u->class),
		              now_ns - u->begun_ns + u->waited_ns, now_ns);
	count_degraded(a, image);
	log_levels(a);
	struct admission_waiter *list = a->first ? admit_line(s) : NULL;

	pthread_mutex_unlock(&a->lock);
	send_admitted(v, list);
}

void admission_poll(struct visit *v, struct image_service *s)
{
	struct admission *a = &s->admission;

	pthread_mutex_lock(&a->lock);
	struct admission_waiter *list = a->first ? admit_line(s) : NULL;

	pthread_mutex_unlock(&a->lock);
	send_admitted(v, list);
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
	if (control->capacity > 0)
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
		.p90_s = a->overload.p90_s,
		.class_count = a->overload.params.class_count,
	};
	memcpy(report->degraded, a->degraded, sizeof report->degraded);
	for (unsigned i = 0; i < report->class_count; i++)
		report_class(a, report, i);
	for (const struct admission_waiter *w = a->first; w; w = w->next)
		report->waiting++;
	pthread_mutex_unlock(&a->lock);
}
