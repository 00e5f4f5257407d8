/* overload_sim.c - the events of the simulation, in order of time. */
#include "overload_sim.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"

struct sim sim;

const struct control_params sim_control_params = { .smoothing = 0.7,
	                                           .increase_below = 0.5,
	                                           .decrease_above = 0,
	                                           .increase = 2,
	                                           .increase_offset = 0.1,
	                                           .decrease = 1.2,
	                                           .rate_min = 0.05,
	                                           .rate_max = 5000,
	                                           .decrease_lower = 10,
	                                           .decrease_patience = 20,
	                                           .rate_rise = 1.05,
	                                           .gain_rise = 1.1,
	                                           .rise_below = 0.8,
	                                           .gain = 0.75,
	                                           .aim = 0.85,
	                                           .queue_target = 0.1,
	                                           .dagor_window_ns = NS_PER_S,
	                                           .dagor_fall = 0.05,
	                                           .dagor_rise = 0.01 };

struct overload_params sim_params(uint64_t controller, unsigned classes)
{
	return (struct overload_params){
		.controller = controller,
		.samples = 100,
		.interval_ns = NS_PER_S,
		.half_life_ns = 10 * NS_PER_S,
		.reserve = 0.25,
		.control = sim_control_params,
		.target_s = { 1, 1, 1, 1 },
		.class_count = classes,
		.cores = SIM_CORES,
		.images_max = SIM_IN_FLIGHT_MAX,
	};
}

void sim_begin(uint64_t controller, unsigned classes)
{
	sim_begin_degrading(controller, classes, 0);
}

void sim_begin_degrading(uint64_t controller, unsigned classes, unsigned steps)
{
	struct overload_params p = sim_params(controller, classes);

	p.degrade_steps = steps;
	memset(&sim, 0, sizeof sim);
	sim.random = 88172645463325252;
	sim.service_s = 0.01;
	sim.ends_s[0] = sim.ends_s[1] = SIM_NEVER;
	client_turns_init(&sim.turns, SIM_QUEUE_MAX);
	overload_init(&sim.overload, &p, 0);
}

uint64_t sim_now_ns(void)
{
	return (uint64_t)(sim.now_s * 1e9);
}

/* xorshift64; exponential with mean 1 */
static double draw(void)
{
	sim.random ^= sim.random << 13;
	sim.random ^= sim.random >> 7;
	sim.random ^= sim.random << 17;
	return -log(((double)(sim.random >> 11) + 1) / 9007199254740994.0);
}

/* Puts the job in front that goes first under discipline srpt. */
static void choose_smallest(void)
{
	struct sim_job *first = &sim.queue[sim.first % SIM_QUEUE_MAX], *best = first, other;

	for (unsigned i = sim.first + 1; i < sim.last; i++) {
		struct sim_job *job = &sim.queue[i % SIM_QUEUE_MAX];

		if ((sim.now_s - job->arrived_s + SIM_AGE_S) / job->service_s >
		    (sim.now_s - best->arrived_s + SIM_AGE_S) / best->service_s)
			best = job;
	}
	other = *first;
	*first = *best;
	*best = other;
}

/* ---- clients' turns, at a queue like that of jpeg_decode ---- */

static void push(struct turn *list)
{
	for (; list; list = list->next)
		sim.stage[sim.stage_last++ % SIM_QUEUE_MAX] = list;
}

static void add_turn(struct sim_job *job)
{
	if (client_turns_add(&sim.turns, &job->turn, job->client, job->work))
		sim.urgent[sim.urgent_last++ % SIM_QUEUE_MAX] = &job->turn;
	else
		push(&job->turn);
}

static const struct sim_job *take_turn(void)
{
	struct turn *turn = NULL, *resumed;

	while (!turn) {
		bool is_urgent = sim.urgent_first < sim.urgent_last;

		assert_true(is_urgent || sim.stage_first < sim.stage_last);
		turn = is_urgent ? sim.urgent[sim.urgent_first++ % SIM_QUEUE_MAX]
		                 : sim.stage[sim.stage_first++ % SIM_QUEUE_MAX];
		turn = client_turns_take(&sim.turns, turn, false, &resumed);
		push(resumed);
	}
	return CONTAINER_OF(turn, struct sim_job, turn);
}

/* ---- service ---- */

static void serve(unsigned core)
{
	sim.ends_s[core] = SIM_NEVER;
	if (sim.first == sim.last)
		return;
	if (sim.is_srpt)
		choose_smallest();
	sim.serving[core] = sim.has_turns ? *take_turn() : sim.queue[sim.first % SIM_QUEUE_MAX];
	sim.first++;
	sim.ends_s[core] = sim.now_s + sim.serving[core].service_s;
}

static void note_size(const struct sim_job *job, bool is_admitted)
{
	struct sim_size *size = &sim.size[job->is_large];

	size->offered += job->service_s;
	size->admitted += is_admitted ? job->service_s : 0;
	sim.served[job->client] += is_admitted ? job->service_s : 0;
	if (job->client != SIM_RARE)
		return;
	sim.rare_refused = is_admitted ? 0 : sim.rare_refused + 1;
	if (sim.rare_refused > sim.rare_refused_most)
		sim.rare_refused_most = sim.rare_refused;
	sim.rare_returns += sim.is_rare_returning;
	sim.rare_returns_refused += sim.is_rare_returning && !is_admitted;
	sim.is_rare_returning = !is_admitted;
}

/* Service takes half a fixed time and half one that is in proportion to the file. */
static struct sim_job draw_job(unsigned class)
{
	bool is_rare = sim.rare_s > 0 && sim.now_s >= sim.rare_next_s;
	struct sim_job job = { .arrived_s = sim.now_s, .class = class };
	double size = draw();

	if (sim.clients > 0)
		job.client = (unsigned)((1 - exp(-draw())) * sim.clients);
	if (is_rare) {
		job.client = SIM_RARE;
		sim.rare_next_s += sim.rare_s;
	}
	job.is_large = is_rare || (sim.large_share > 0 && draw() < -log(1 - sim.large_share));
	if (sim.large_share > 0)
		size = job.is_large ? 2 * sim.large - 1 : 1;
	job.service_s = sim.service_s * (0.5 + 0.5 * size);
	job.work = (uint64_t)(WORK_PER_IMAGE * (size + 1));
	return job;
}

static void arrive(unsigned class)
{
	struct sim_job job = draw_job(class);
	struct overload_ticket ticket = { .client = job.client, .has_all_room = sim.clients == 0 };
	bool is_admitted = overload_admit(&sim.overload, class, job.work, OVERLOAD_STAGES_FIXED,
	                                  &ticket, sim_now_ns());

	note_size(&job, is_admitted);
	if (!is_admitted) {
		unsigned retry_s = overload_refuse(&sim.overload, class, &ticket, sim_now_ns());

		if (job.client == SIM_RARE && sim.does_rare_heed)
			sim.rare_next_s = sim.now_s + retry_s;
		sim.refused[class]++;
		if (sim.overload.in_flight.images < SIM_IN_FLIGHT_MAX)
			sim.refused_early[class] += sim.overload.class[class].degrade.level <
			                            sim.overload.params.degrade_steps;
		return;
	}
	sim.by_level[ticket.level]++;
	if (sim.cost[ticket.level] > 0)
		job.service_s *= sim.cost[ticket.level];
	overload_begin(&sim.overload, job.client, &ticket, 1, job.work, sim_now_ns());
	struct sim_job *queued = &sim.queue[sim.last++ % SIM_QUEUE_MAX];

	assert_true(sim.last - sim.first < SIM_QUEUE_MAX);
	*queued = job;
	if (sim.has_turns)
		add_turn(queued);
	for (unsigned i = 0; i < SIM_CORES; i++)
		if (sim.ends_s[i] == SIM_NEVER) {
			serve(i);
			break;
		}
}

static void end(unsigned core)
{
	struct sim_job *job = &sim.serving[core];
	double response_s = sim.now_s - job->arrived_s;

	if (sim.has_turns)
		push(client_turns_ended(&sim.turns, &job->turn, job->work));
	overload_end(&sim.overload, job->client, job->work, job->work, sim_now_ns());
	overload_note(&sim.overload, job->class,
	              &(struct overload_response){ (uint64_t)(response_s * 1e9), job->work,
	                                           (uint64_t)(job->service_s * 1e9) },
	              sim_now_ns());
	sim.size[job->is_large].response_s[sim.size[job->is_large].responses++] = response_s;
	sim.response_s[job->class][sim.responses[job->class]++] = response_s;
	assert_true(sim.responses[job->class] < SIM_RESPONSES_MAX);
	serve(core);
}

static void count_changes(void)
{
	for (unsigned i = 0; i < sim.overload.params.class_count; i++) {
		unsigned level = sim.overload.class[i].degrade.level;

		sim.changes[i] += level != sim.level[i];
		sim.level[i] = level;
	}
}

void sim_run(double seconds, double rate, double rate_of_lower)
{
	double until_s = sim.now_s + seconds;
	double next_s[2] = { rate > 0 ? sim.now_s + draw() / rate : SIM_NEVER,
		             rate_of_lower > 0 ? sim.now_s + draw() / rate_of_lower : SIM_NEVER };

	memset(sim.responses, 0, sizeof sim.responses);
	memset(sim.refused, 0, sizeof sim.refused);
	memset(sim.size, 0, sizeof sim.size);
	memset(sim.served, 0, sizeof sim.served);
	sim.rare_refused_most = sim.rare_returns = sim.rare_returns_refused = 0;
	sim.rare_next_s = sim.now_s;
	memset(sim.changes, 0, sizeof sim.changes);
	memset(sim.by_level, 0, sizeof sim.by_level);
	for (;;) {
		unsigned core = sim.ends_s[1] < sim.ends_s[0];
		unsigned class = next_s[1] < next_s[0];
		double arrival_s = next_s[class], end_s = sim.ends_s[core];

		if (arrival_s > until_s && end_s > until_s)
			break;
		sim.now_s = arrival_s < end_s ? arrival_s : end_s;
		count_changes();
		if (end_s <= arrival_s) {
			end(core);
			continue;
		}
		arrive(class);
		next_s[class] += draw() / (class ? rate_of_lower : rate);
	}
	sim.now_s = until_s;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double sim_p90(unsigned class)
{
	unsigned n = sim.responses[class];

	assert_true(n > 0);
	qsort(sim.response_s[class], n, sizeof sim.response_s[class][0], compare);
	return sim.response_s[class][n * 9 / 10];
}

double sim_p90_of_size(bool is_large)
{
	struct sim_size *size = &sim.size[is_large];

	assert_true(size->responses > 0);
	qsort(size->response_s, size->responses, sizeof size->response_s[0], compare);
	return size->response_s[size->responses * 9 / 10];
}

double sim_capacity(void)
{
	return SIM_CORES / sim.service_s;
}

double sim_goodput(double seconds)
{
	return sim.responses[0] / seconds;
}

void sim_report(const char *what)
{
	if (getenv("VERBOSE"))
		printf("%-40s p90 %.3f s, %u served, %u refused, level %u, %u changes\n", what,
		       sim_p90(0), sim.responses[0], sim.refused[0], sim.level[0], sim.changes[0]);
}
