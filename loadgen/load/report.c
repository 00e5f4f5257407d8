/* report.c - writes the report. Every number of the text has a name and a unit. */
#include "report.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "base/json.h"
#include "base/text.h"
#include "figure.h"

#define JSON_MAX (64U * 1024 * 1024)
#define BOTTLENECK 0.95 /* of a core: a busier thread may be what limits the run */

static const struct {
	const char *name, *key;
	double quantile;
} quantiles[] = {
	{ "p50", "p50", 0.5 },
	{ "p90", "p90", 0.9 },
	{ "p99", "p99", 0.99 },
	{ "p99.9", "p99_9", 0.999 },
};

double report_fairness(const uint64_t *shares, unsigned count)
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

static uint64_t max_ns(const struct latency *h)
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

/* Prints milliseconds with at least three significant digits. */
static void print_ms(double ns)
{
	double ms = ns / 1e6;

	printf(" %9.*f", ms < 10 ? 3 : ms < 100 ? 2 : 1, ms);
}

static void print_times(const char *name, const struct latency *h)
{
	printf("%-18s", name);
	print_ms(latency_mean(h));
	for (size_t i = 0; i < COUNT_OF(quantiles); i++)
		print_ms((double)latency_quantile(h, quantiles[i].quantile));
	print_ms((double)max_ns(h));
	putchar('\n');
}

static void print_loop(const struct request_schedule_conf *s)
{
	char from[FIGURE_SIZE], to[FIGURE_SIZE], length[FIGURE_SIZE];

	if (!s->is_open) {
		printf("closed loop");
		return;
	}
	printf("open loop, %s", s->is_poisson ? "Poisson, " : "");
	if (s->ramp_s > 0)
		printf("%s to %s requests/s in %s s", figure_exact(s->rate_from, from),
		       figure_exact(s->rate_to, to), figure_exact(s->ramp_s, length));
	else
		printf("%s requests/s", figure_exact(s->rate_to, to));
}

static void print_head(const struct report *r)
{
	const struct command_line *a = r->args;
	char figure[FIGURE_SIZE];

	printf("URL                http://%s%s\n", a->url.authority, a->url.path);
	printf("input              %zu file%s, %s\n", r->files->count, plural(r->files->count),
	       figure_bytes((double)r->files->total_bytes, figure));
	printf("load               ");
	print_loop(&a->schedule);
	printf(", %s%u connection%s, %u thread%s\n", a->schedule.is_open ? "up to " : "",
	       a->connections, plural(a->connections), a->threads, plural(a->threads));
}

static void print_statuses(const struct request_stats *s)
{
	uint64_t unexpected = counter_read(&s->unexpected);

	printf("statuses          ");
	for (unsigned i = 0; i < STATUS_COUNT; i++)
		if (counter_read(&s->statuses[i]) > 0)
			printf(" %u: %" PRIu64, i, counter_read(&s->statuses[i]));
	if (unexpected > 0)
		printf("   (%" PRIu64 " unexpected)", unexpected);
	printf("%s\n", request_stats_answered(s) > 0 ? "" : " none");
}

static void print_errors(const struct report *r)
{
	const struct request_stats *s = r->stats;

	printf("errors            ");
	for (unsigned i = EXCHANGE_OK + 1; i < EXCHANGE_RESULT_COUNT; i++)
		if (counter_read(&s->results[i]) > 0)
			printf(" %s: %" PRIu64, exchange_result_name((enum exchange_result)i),
			       counter_read(&s->results[i]));
	printf("%s\n", request_stats_failed(s) > 0 ? "" : " none");
	if (r->args->verify)
		printf("variants           %" PRIu64 " right, %" PRIu64 " wrong\n",
		       counter_read(&s->variants), counter_read(&s->variants_wrong));
	if (r->args->retry_ns)
		printf("retries            %" PRIu64 " repetitions, %" PRIu64
		       " uploads answered late, %" PRIu64 " doubled, %" PRIu64 " lost\n",
		       counter_read(&s->repeated), counter_read(&s->late),
		       counter_read(&s->doubled), counter_read(&s->lost));
	if (s->problem[0])
		printf("first problem      %s\n", s->problem);
	if (r->args->schedule.is_open)
		printf("unsent             %" PRIu64
		       " requests were due but found no free connection before the end%s\n",
		       r->unsent, r->unsent > 0 ? "; the times lack them" : "");
	if (r->is_interrupted)
		printf("interrupted        %" PRIu64 " requests were in flight\n",
		       counter_read(&s->aborted));
}

static void print_cpu(const struct report *r)
{
	const struct request_stats *s = r->stats;
	double cpu_s = (double)r->server->cpu_ns / 1e9;
	char figure[FIGURE_SIZE];

	if (r->server->root_count > 0)
		printf("server             %.2f s CPU, %.0f %% of a core, %s peak memory, "
		       "process %d%s\n",
		       cpu_s, 100 * per_second(cpu_s, r->makespan_s),
		       figure_bytes((double)r->server->peak_rss_bytes, figure),
		       (int)r->server->roots[0], r->server->root_count > 1 ? ", ..." : "");
	printf("generator          %.2f s CPU, busiest thread %.0f %% of a core\n",
	       (double)s->cpu_ns / 1e9, 100 * s->busiest);
	if (s->busiest > BOTTLENECK)
		printf("                   The generator may have limited the run; "
		       "use more threads (-t).\n");
}

static void print_table(const struct report *r)
{
	const struct request_stats *s = r->stats;
	bool is_open = r->args->schedule.is_open;

	printf("%-18s %9s", "milliseconds", "mean");
	for (size_t i = 0; i < COUNT_OF(quantiles); i++)
		printf(" %9s", quantiles[i].name);
	printf(" %9s\n", "max");
	if (is_open)
		print_times("since due", &s->latency);
	print_times("response time", &s->response);
	print_times("  with sending", &s->exchange);
	if (is_open)
		puts("Only \"since due\" counts the time that requests waited because the server\n"
		     "did not keep up.");
}

void report_failure(const struct report *r)
{
	const struct request_stats *s = r->stats;

	fprintf(stderr,
	        "darkroom-load: the run failed: %" PRIu64 " requests without an answer, %" PRIu64
	        " with an unexpected status%s%s%s\n",
	        request_stats_failed(s), counter_read(&s->unexpected),
	        s->problem[0] ? "; first problem: " : "", s->problem,
	        r->is_interrupted ? "; it was interrupted" : "");
}

int report_text(const struct report *r)
{
	const struct request_stats *s = r->stats;
	double answered = (double)request_stats_answered(s);
	double bytes = (double)counter_read(&s->input_bytes);
	char figure[FIGURE_SIZE], rate[FIGURE_SIZE];

	print_head(r);
	printf("makespan           %.3f s\n", r->makespan_s);
	printf("responses          %.0f responses, %s\n", answered,
	       figure_rate(per_second(answered, r->makespan_s), rate));
	printf("uploaded           %s, %s/s\n\n", figure_bytes(bytes, figure),
	       figure_bytes(per_second(bytes, r->makespan_s), rate));
	print_table(r);
	putchar('\n');
	print_statuses(s);
	print_errors(r);
	if (!r->args->schedule.is_open)
		printf("fairness           %.4f (Jain's index over the connections)\n",
		       report_fairness(r->per_connection, r->args->connections));
	print_cpu(r);
	return finish_output();
}

/* ---- JSON ---- */

static void put_times(struct json *j, const char *name, const struct latency *h)
{
	json_object(j, name);
	json_uint(j, "count", counter_read(&h->count));
	json_double(j, "mean", latency_mean(h) / 1e6);
	for (size_t i = 0; i < COUNT_OF(quantiles); i++)
		json_double(j, quantiles[i].key,
		            (double)latency_quantile(h, quantiles[i].quantile) / 1e6);
	json_double(j, "max", (double)max_ns(h) / 1e6);
	json_object_end(j);
}

static void put_head(struct json *j, const struct report *r)
{
	const struct request_schedule_conf *s = &r->args->schedule;
	char url[URL_SIZE + 300];

	snprintf(url, sizeof url, "http://%s%s", r->args->url.authority, r->args->url.path);
	json_string(j, "version", command_line_version);
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

static void put_statuses(struct json *j, const struct request_stats *s)
{
	char name[8];

	json_object(j, "statuses");
	for (unsigned i = 0; i < STATUS_COUNT; i++) {
		if (counter_read(&s->statuses[i]) == 0)
			continue;
		snprintf(name, sizeof name, "%u", i);
		json_uint(j, name, counter_read(&s->statuses[i]));
	}
	json_object_end(j);
	json_uint(j, "unexpected", counter_read(&s->unexpected));
	json_object(j, "errors");
	for (unsigned i = EXCHANGE_OK + 1; i < EXCHANGE_RESULT_COUNT; i++)
		json_uint(j, exchange_result_name((enum exchange_result)i),
		          counter_read(&s->results[i]));
	json_object_end(j);
}

static void put_connections(struct json *j, const struct report *r)
{
	json_uint(j, "connections_opened", counter_read(&r->stats->opened));
	if (!r->args->schedule.is_open)
		json_double(j, "fairness",
		            report_fairness(r->per_connection, r->args->connections));
	json_array(j, "responses_per_connection");
	for (unsigned i = 0; i < r->args->connections; i++)
		json_uint(j, NULL, r->per_connection[i]);
	json_array_end(j);
}

static void put_parties(struct json *j, const struct report *r)
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

static void put_results(struct json *j, const struct report *r)
{
	const struct request_stats *s = r->stats;
	uint64_t answered = request_stats_answered(s), bytes = counter_read(&s->input_bytes);

	json_uint(j, "start_monotonic_ns", s->first_ns);
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
	if (r->args->retry_ns) {
		json_object(j, "retries");
		json_uint(j, "repeated", counter_read(&s->repeated));
		json_uint(j, "late", counter_read(&s->late));
		json_uint(j, "doubled", counter_read(&s->doubled));
		json_uint(j, "lost", counter_read(&s->lost));
		json_object_end(j);
	}
	if (s->problem[0])
		json_string(j, "first_problem", s->problem);
}

int report_json(const struct report *r)
{
	struct text text;
	struct json j = { .text = &text };
	int err;

	text_init_growable(&text, JSON_MAX);
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
