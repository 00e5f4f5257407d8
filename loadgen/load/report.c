/* report.c - the run in figures, as text and as JSON. */
#include "report.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "base/json.h"
#include "base/text.h"

#define JSON_MAX (64U * 1024 * 1024)
#define BOTTLENECK 0.95 /* of a core: beyond it a generator's thread may be what limits the run */

static const struct {
	const char *name, *key;
	double quantile;
} quantiles[] = {
	{ "p50", "p50", 0.5 },
	{ "p90", "p90", 0.9 },
	{ "p99", "p99", 0.99 },
	{ "p99.9", "p99_9", 0.999 },
};

double load_fairness(const uint64_t *shares, unsigned count)
{
	double sum = 0, squares = 0;

	for (unsigned i = 0; i < count; i++) {
		sum += (double)shares[i];
		squares += (double)shares[i] * (double)shares[i];
	}
	return squares > 0 ? sum * sum / ((double)count * squares) : 1;
}

static double per_second(double n, double seconds)
{
	return seconds > 0 ? n / seconds : 0;
}

static uint64_t max_ns(const struct load_hist *h)
{
	return counter_read(&h->max_ns);
}

static int finish_output(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	perror("darkroom-load: standard output");
	return -1;
}

/* ---- text ---- */

static void print_bytes(double n)
{
	static const char *const units[] = { "B", "KB", "MB", "GB", "TB" };
	unsigned i = 0;

	while (n >= 1000 && i + 1 < COUNT_OF(units)) {
		n /= 1000;
		i++;
	}
	printf(i > 0 ? "%.1f %s" : "%.0f %s", n, units[i]);
}

/* Milliseconds with three significant digits at least. */
static void print_ms(double ns)
{
	double ms = ns / 1e6;

	printf(" %9.*f", ms < 10 ? 3 : ms < 100 ? 2 : 1, ms);
}

static void print_times(const char *name, const struct load_hist *h)
{
	printf("%-18s", name);
	print_ms(load_hist_mean(h));
	for (size_t i = 0; i < COUNT_OF(quantiles); i++)
		print_ms((double)load_hist_quantile(h, quantiles[i].quantile));
	print_ms((double)max_ns(h));
	putchar('\n');
}

static void print_head(const struct load_report *r)
{
	const struct load_schedule_conf *s = &r->args->schedule;

	printf("URL                http://%s%s\n", r->args->url.authority, r->args->url.path);
	printf("files              %zu, ", r->files->count);
	print_bytes((double)r->files->total_bytes);
	printf("\nload               ");
	if (!s->is_open)
		printf("closed loop");
	else if (s->ramp_s > 0)
		printf("open loop, %s%g to %g/s in %g s", s->is_poisson ? "Poisson, " : "",
		       s->rate_from, s->rate_to, s->ramp_s);
	else
		printf("open loop, %s%g/s", s->is_poisson ? "Poisson, " : "", s->rate_to);
	printf(", %s%u connections, %u thread%s\n", s->is_open ? "up to " : "",
	       r->args->connections, r->args->threads, r->args->threads == 1 ? "" : "s");
}

static void print_errors(const struct load_report *r)
{
	const struct load_stats *s = r->stats;

	printf("statuses          ");
	for (unsigned i = 0; i < LOAD_STATUS_MAX; i++)
		if (counter_read(&s->statuses[i]) > 0)
			printf(" %u: %" PRIu64, i, counter_read(&s->statuses[i]));
	if (counter_read(&s->unexpected) > 0)
		printf("   (%" PRIu64 " unexpected)", counter_read(&s->unexpected));
	printf("%s\nerrors            ", load_stats_answered(s) > 0 ? "" : " none");
	for (unsigned i = LOAD_OK + 1; i < LOAD_RESULTS; i++)
		if (counter_read(&s->results[i]) > 0)
			printf(" %s: %" PRIu64, load_result_name((enum load_result)i),
			       counter_read(&s->results[i]));
	printf("%s\n", load_stats_failed(s) > 0 ? "" : " none");
	if (r->args->verify)
		printf("variants           %" PRIu64 " right, %" PRIu64 " wrong\n",
		       counter_read(&s->variants), counter_read(&s->variants_wrong));
	if (s->problem[0])
		printf("first problem      %s\n", s->problem);
	if (r->unsent > 0)
		printf("unsent             %" PRIu64
		       " requests were due, but found no free connection before the end\n",
		       r->unsent);
	if (r->is_interrupted)
		printf("interrupted        %" PRIu64 " requests were under way\n",
		       counter_read(&s->aborted));
}

static void print_parties(const struct load_report *r)
{
	const struct load_stats *s = r->stats;

	if (r->server->root_count > 0) {
		double cpu_s = (double)r->server->cpu_ns / 1e9;

		printf("server             %.2f s CPU (%.0f %%), ", cpu_s,
		       100 * per_second(cpu_s, r->makespan_s));
		print_bytes((double)r->server->peak_rss_bytes);
		printf(" peak memory, process %d%s\n", (int)r->server->roots[0],
		       r->server->root_count > 1 ? ", ..." : "");
	}
	printf("generator          %.2f s CPU, busiest thread %.0f %%\n", (double)s->cpu_ns / 1e9,
	       100 * s->busiest);
	if (s->busiest > BOTTLENECK)
		printf("                   It may be what limited the run: give it more threads (-t).\n");
}

int load_report_text(const struct load_report *r)
{
	const struct load_stats *s = r->stats;
	uint64_t answered = load_stats_answered(s), bytes = counter_read(&s->input_bytes);
	bool is_open = r->args->schedule.is_open;

	print_head(r);
	printf("makespan           %.3f s\n", r->makespan_s);
	printf("responses          %" PRIu64 ", %.2f/s\n", answered,
	       per_second((double)answered, r->makespan_s));
	printf("input              ");
	print_bytes((double)bytes);
	printf(", ");
	print_bytes(per_second((double)bytes, r->makespan_s));
	printf("/s\n\n%-18s %9s", "milliseconds", "mean");
	for (size_t i = 0; i < COUNT_OF(quantiles); i++)
		printf(" %9s", quantiles[i].name);
	printf(" %9s\n", "max");
	if (is_open)
		print_times("since due", &s->latency);
	print_times("response time", &s->response);
	print_times("  with sending", &s->exchange);
	if (is_open)
		puts("Only \"since due\" counts the time that requests waited because the server did not keep up.");
	putchar('\n');
	print_errors(r);
	if (!is_open)
		printf("fairness           %.4f (Jain's index over the connections)\n",
		       load_fairness(r->per_connection, r->args->connections));
	print_parties(r);
	return finish_output();
}

/* ---- JSON ---- */

static void put_times(struct json *j, const char *name, const struct load_hist *h)
{
	json_object(j, name);
	json_uint(j, "count", counter_read(&h->count));
	json_double(j, "mean", load_hist_mean(h) / 1e6);
	for (size_t i = 0; i < COUNT_OF(quantiles); i++)
		json_double(j, quantiles[i].key,
		            (double)load_hist_quantile(h, quantiles[i].quantile) / 1e6);
	json_double(j, "max", (double)max_ns(h) / 1e6);
	json_object_end(j);
}

static void put_head(struct json *j, const struct load_report *r)
{
	const struct load_schedule_conf *s = &r->args->schedule;
	char url[LOAD_URL_MAX + 300];

	snprintf(url, sizeof url, "http://%s%s", r->args->url.authority, r->args->url.path);
	json_string(j, "version", load_version);
	json_string(j, "url", url);
	json_uint(j, "files", r->files->count);
	json_uint(j, "file_bytes", r->files->total_bytes);
	json_string(j, "loop", s->is_open ? "open" : "closed");
	if (s->is_open) {
		json_double(j, "rate_per_s", s->rate_to);
		json_bool(j, "poisson", s->is_poisson);
	}
	json_uint(j, "connections", r->args->connections);
	json_uint(j, "threads", r->args->threads);
	json_uint(j, "seed", s->seed);
}

static void put_statuses(struct json *j, const struct load_stats *s)
{
	char name[8];

	json_object(j, "statuses");
	for (unsigned i = 0; i < LOAD_STATUS_MAX; i++) {
		if (counter_read(&s->statuses[i]) == 0)
			continue;
		snprintf(name, sizeof name, "%u", i);
		json_uint(j, name, counter_read(&s->statuses[i]));
	}
	json_object_end(j);
	json_uint(j, "unexpected", counter_read(&s->unexpected));
	json_object(j, "errors");
	for (unsigned i = LOAD_OK + 1; i < LOAD_RESULTS; i++)
		json_uint(j, load_result_name((enum load_result)i), counter_read(&s->results[i]));
	json_object_end(j);
}

static void put_connections(struct json *j, const struct load_report *r)
{
	json_uint(j, "connections_opened", counter_read(&r->stats->opened));
	if (!r->args->schedule.is_open)
		json_double(j, "fairness", load_fairness(r->per_connection, r->args->connections));
	json_array(j, "responses_per_connection");
	for (unsigned i = 0; i < r->args->connections; i++)
		json_uint(j, NULL, r->per_connection[i]);
	json_array_end(j);
}

static void put_parties(struct json *j, const struct load_report *r)
{
	if (r->server->root_count > 0) {
		json_object(j, "server");
		json_uint(j, "pid", (uint64_t)r->server->roots[0]);
		json_double(j, "cpu_s", (double)r->server->cpu_ns / 1e9);
		json_uint(j, "peak_rss_bytes", r->server->peak_rss_bytes);
		json_object_end(j);
	}
	json_object(j, "generator");
	json_double(j, "cpu_s", (double)r->stats->cpu_ns / 1e9);
	json_double(j, "busiest_thread", r->stats->busiest);
	json_object_end(j);
}

static void put_results(struct json *j, const struct load_report *r)
{
	const struct load_stats *s = r->stats;
	uint64_t answered = load_stats_answered(s), bytes = counter_read(&s->input_bytes);

	json_double(j, "makespan_s", r->makespan_s);
	json_uint(j, "responses", answered);
	json_double(j, "responses_per_s", per_second((double)answered, r->makespan_s));
	json_uint(j, "input_bytes", bytes);
	json_double(j, "input_bytes_per_s", per_second((double)bytes, r->makespan_s));
	put_times(j, "response_time_ms", &s->response);
	put_times(j, "with_sending_ms", &s->exchange);
	if (r->args->schedule.is_open)
		put_times(j, "since_due_ms", &s->latency);
	put_statuses(j, s);
	json_uint(j, "unsent", r->unsent);
	json_uint(j, "aborted", counter_read(&s->aborted));
	if (r->args->verify) {
		json_uint(j, "variants_right", counter_read(&s->variants));
		json_uint(j, "variants_wrong", counter_read(&s->variants_wrong));
	}
	if (s->problem[0])
		json_string(j, "first_problem", s->problem);
}

int load_report_json(const struct load_report *r)
{
	struct text text;
	struct json j;
	int err;

	text_init_growable(&text, JSON_MAX);
	json_init(&j, &text);
	json_object(&j, NULL);
	put_head(&j, r);
	put_results(&j, r);
	put_connections(&j, r);
	put_parties(&j, r);
	json_bool(&j, "interrupted", r->is_interrupted);
	json_bool(&j, "ok", r->is_ok);
	json_object_end(&j);
	if (text.overflowed)
		fputs("darkroom-load: no memory for the report\n", stderr);
	else
		puts(text.data);
	err = text.overflowed ? -1 : finish_output();
	text_fini(&text);
	return err;
}
