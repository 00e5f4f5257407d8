/* size_table.c - computes and judges the statistics of file sizes. */
#include "size_table.h"

#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "file_mix.h"

#define KIB 1024.0
#define MIB (1024.0 * 1024)
#define TOLERANCE_PERCENT 2.0

static int by_size(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Takes each size for the middle of its share and the distribution between sizes as linear. */
static double quantile(const uint32_t *sizes, uint32_t count, double q)
{
	double at = q * count - 0.5;
	uint32_t below;

	if (at <= 0)
		return sizes[0];
	if (at >= count - 1)
		return sizes[count - 1];
	below = (uint32_t)at;
	return sizes[below] + (at - below) * ((double)sizes[below + 1] - sizes[below]);
}

struct size_table size_table_make(uint32_t *sizes, uint32_t count)
{
	struct size_table s = { .count = count };
	uint32_t i;

	assert(count > 0);
	qsort(sizes, count, sizeof *sizes, by_size);
	for (i = 0; i < count; i++)
		s.total += sizes[i];
	s.minimum = sizes[0];
	s.median = quantile(sizes, count, 0.5);
	s.mean = (double)s.total / count;
	s.p90 = quantile(sizes, count, 0.9);
	s.maximum = sizes[count - 1];
	return s;
}

bool size_table_print(const struct size_table *s, FILE *out)
{
	const struct {
		const char *name, *unit;
		double value, paper, divisor;
		uint32_t from_count;
	} rows[] = {
		{ "minimum", "B", s->minimum, 398, 1, SIZE_TABLE_COUNT_MIN },
		{ "median", "KiB", s->median, 37.2 * KIB, KIB, SIZE_TABLE_COUNT_MIN },
		{ "mean", "KiB", s->mean, 204.4 * KIB, KIB, SIZE_TABLE_COUNT_MIN },
		{ "90th percentile", "KiB", s->p90, 623.2 * KIB, KIB, SIZE_TABLE_COUNT_MIN },
		{ "maximum", "MiB", s->maximum, 4.2 * MIB, MIB, FILE_MIX_MAXIMUM_FROM },
	};
	bool is_right = true;
	size_t i;

	fprintf(out, "%u pictures, %.1f MiB\n\n%-16s %13s %13s %9s\n", s->count,
	        (double)s->total / MIB, "file size", "here", "paper", "off");
	for (i = 0; i < COUNT_OF(rows); i++) {
		double off = (rows[i].value / rows[i].paper - 1) * 100;
		bool is_judged = s->count >= rows[i].from_count,
		     is_wrong = is_judged && fabs(off) > TOLERANCE_PERCENT;
		int digits = rows[i].divisor > KIB ? 3 : rows[i].divisor > 1 ? 1 : 0;

		fprintf(out, "%-16s %9.*f %-3s %9.*f %-3s %+7.2f %%%s\n", rows[i].name, digits,
		        rows[i].value / rows[i].divisor, rows[i].unit, digits,
		        rows[i].paper / rows[i].divisor, rows[i].unit, off,
		        is_wrong    ? "  WRONG"
		        : is_judged ? ""
		                    : "  (not judged in a small set)");
		is_right = is_right && !is_wrong;
	}
	return is_right;
}
