/* client_limits.c - applies limits.images_per_client, client_rate and client_burst. Any thread. */
#include "client_limits.h"

#include "base/clock.h"
#include "conf/conf.h"
#include "image_service.h"
#include "problem.h"

#define SLUG "too-many-requests"

/* Returns how many images the client may have in flight; 0: they are not counted. */
static uint64_t images_max(const struct conf *conf, const struct client_key *client)
{
	uint64_t max = conf->limits.images_per_client, parts = conf->limits.parts;

	if (client_is_local(client))
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

/* ---- before the body ---- */

static bool take_rate(struct image_service *s, const struct conf *conf,
                      const struct client_key *client, struct problem *problem)
{
	const struct client_rate rate = { conf->limits.client_rate, conf->limits.client_burst };
	uint64_t used;

	if (!rate.rate)
		return true;
	uint64_t wait_ns = client_rates_take(&s->rates, client, rate, clock_ns(), &used);

	if (!wait_ns)
		return true;
	problem_set_limit(problem, 429, SLUG, "limits.client_burst", rate.burst, used + 1);
	problem_append(problem, "; limits.client_rate = %g images per second",
	               (double)rate.rate / 1000);
	problem->retry_after_s = (unsigned)((wait_ns + NS_PER_S - 1) / NS_PER_S);
	return false;
}

bool client_limits_admit(struct image_service *s, const struct client_key *client,
                         struct problem *problem)
{
	const struct conf *conf = image_service_conf(s);
	uint64_t max = images_max(conf, client);
	uint64_t count = max ? client_counts_get(&s->clients, client) : 0;

	if (max && count >= max) {
		set_count_problem(problem, max, count + 1);
		return false;
	}
	return take_rate(s, conf, client, problem);
}

bool client_limits_is_heavy(struct image_service *s, const struct client_key *client)
{
	/* Relaxed: an estimate. */
	uint64_t all = atomic_load_explicit(&s->in_flight, memory_order_relaxed);

	return !client_is_local(client) && client_counts_get(&s->clients, client) * 4 > all * 3;
}

/* ---- its images ---- */

bool client_limits_begin(struct image_service *s, const struct conf *conf,
                         const struct client_key *client, unsigned n, bool *is_counted,
                         struct problem *problem)
{
	const struct client_rate rate = { conf->limits.client_rate, conf->limits.client_burst };
	uint64_t max = images_max(conf, client);
	uint64_t count = max ? client_counts_add(&s->clients, client, n, max) : 0;

	*is_counted = count > 0 && count <= max;
	if (max && !*is_counted) {
		if (count == 0)
			problem_set(problem, 503, "overloaded", "no memory");
		else
			set_count_problem(problem, max, count);
		return false;
	}
	if (rate.rate && n > 1)
		client_rates_charge(&s->rates, client, rate, n - 1, clock_ns());
	return true;
}
