/* suggest.c - compares names by edit distance. Knows nothing of what they name. */
#include "suggest.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define NAME_MAX_BYTES 32

/* Edit distance (Levenshtein). UINT32_MAX for names longer than any known one. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[NAME_MAX_BYTES + 1];
	size_t n = strlen(a), m = strlen(b);

	if (n > NAME_MAX_BYTES || m > NAME_MAX_BYTES)
		return UINT32_MAX;
	for (unsigned i = 0; i <= m; i++)
		row[i] = i;
	for (unsigned i = 1; i <= n; i++) {
		unsigned diagonal = row[0];

		row[0] = i;
		for (unsigned k = 1; k <= m; k++) {
			unsigned replaced = diagonal + (a[i - 1] != b[k - 1]);

			diagonal = row[k];
			if (diagonal + 1 < replaced)
				replaced = diagonal + 1;
			row[k] = row[k - 1] + 1 < replaced ? row[k - 1] + 1 : replaced;
		}
	}
	return row[m];
}

void suggest_offer(struct suggest *s, const char *name)
{
	unsigned d = distance(s->wanted, name);

	if (d <= 1 + strlen(s->wanted) / 4 && (!s->best || d < s->distance)) {
		s->best = name;
		s->distance = d;
	}
}

const char *suggest_phrase(struct suggest *s)
{
	s->phrase[0] = '\0';
	if (s->best)
		snprintf(s->phrase, sizeof s->phrase, "; did you mean %s?", s->best);
	return s->phrase;
}
