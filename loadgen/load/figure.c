/* figure.c - writes numbers for people. Each function returns its buffer. Any thread. */
#include "figure.h"

#include <stddef.h>
#include <stdio.h>

#include "base/check.h"

/* Returns the number of decimals that make three significant digits. */
static int decimals(double x)
{
	return x < 0.9995 ? 3 : x < 9.995 ? 2 : x < 99.95 ? 1 : 0;
}

const char *figure_duration(double ns, char text[FIGURE_SIZE])
{
	double ms = ns / 1e6, s = ns / 1e9;

	if (ms < 999.5)
		snprintf(text, FIGURE_SIZE, "%.*f ms", decimals(ms), ms);
	else
		snprintf(text, FIGURE_SIZE, "%.*f s", decimals(s), s);
	return text;
}

const char *figure_bytes(double n, char text[FIGURE_SIZE])
{
	static const char *const units[] = { "B", "KB", "MB", "GB", "TB" };
	size_t i = 0;

	for (; n >= 1000 && i + 1 < COUNT_OF(units); i++)
		n /= 1000;
	snprintf(text, FIGURE_SIZE, "%.*f %s", i > 0, n, units[i]);
	return text;
}

const char *figure_rate(double per_s, char text[FIGURE_SIZE])
{
	snprintf(text, FIGURE_SIZE, "%.*f/s", decimals(per_s), per_s);
	return text;
}

const char *figure_exact(double x, char text[FIGURE_SIZE])
{
	int end = snprintf(text, FIGURE_SIZE, "%.6f", x);

	assert(end > 0 && end < FIGURE_SIZE);
	while (text[end - 1] == '0')
		end--;
	text[text[end - 1] == '.' ? end - 1 : end] = '\0';
	return text;
}
