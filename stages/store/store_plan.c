/* store_plan.c - darkroomd store plan: prints what a remake would do. Main thread. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/text.h"
#include "remake_plan.h"
#include "store_commands.h"
#include "store_query.h"

static void print_variant(const struct remake_plan *p, const struct store_query *q, unsigned i)
{
	char data[256];
	struct text t;
	struct json j;

	if (!q->is_json) {
		printf("%-24s  %10" PRIu64 "  %14" PRIu64 "  %16" PRIu64 "\n",
		       p->conf.variant[i].name, p->missing[i], p->differs[i], p->lost[i]);
		return;
	}
	text_init(&t, data, sizeof data);
	json_init(&j, &t);
	json_object(&j, NULL);
	json_string(&j, "variant", p->conf.variant[i].name);
	json_uint(&j, "missing", p->missing[i]);
	json_uint(&j, "other_settings", p->differs[i]);
	json_uint(&j, "without_original", p->lost[i]);
	json_object_end(&j);
	puts(data);
}

static void print_total(const struct remake_plan *p, const struct store_query *q)
{
	char data[384];
	struct text t;
	struct json j;

	if (!q->is_json) {
		printf("%" PRIu64 " of %" PRIu64 " images are to be remade: %" PRIu64
		       " MB and %" PRIu64 " megapixels of originals, about %.0f s of CPU time "
		       "(an estimate)\n",
		       p->remade, p->images, p->bytes / 1000000, p->pixels / 1000000,
		       remake_plan_seconds(p));
		if (p->without_original)
			printf("%" PRIu64 " images cannot be remade: they have no original\n",
			       p->without_original);
		return;
	}
	text_init(&t, data, sizeof data);
	json_init(&j, &t);
	json_object(&j, NULL);
	json_string(&j, "total", "all");
	json_uint(&j, "images", p->images);
	json_uint(&j, "remade", p->remade);
	json_uint(&j, "without_original", p->without_original);
	json_uint(&j, "original_bytes", p->bytes);
	json_uint(&j, "pixels", p->pixels);
	json_double(&j, "estimated_cpu_s", remake_plan_seconds(p));
	json_object_end(&j);
	puts(data);
}

int store_plan(struct store_query *q)
{
	static struct remake_plan p;
	int status = remake_plan_open(&p, q);

	if (!status)
		status = remake_plan_sum(&p, q);
	if (status)
		return status;
	if (!q->is_json)
		printf("%-24s  %10s  %14s  %16s\n", "VARIANT", "MISSING", "OTHER SETTINGS",
		       "WITHOUT ORIGINAL");
	for (unsigned i = 0; i < p.conf.variant_count; i++)
		if (p.wanted >> i & 1)
			print_variant(&p, q, i);
	print_total(&p, q);
	return p.damaged || p.absent ? EXIT_FAILURE : EXIT_SUCCESS;
}
