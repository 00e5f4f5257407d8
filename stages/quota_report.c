/* quota_report.c - joins the quotas of tokens with what they use. Any thread. */
#include "quota_report.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "daemon/tokens.h"
#include "store/usage.h"

#define TOKENS_SHOWN 400 /* lines of at most 160 bytes, in an answer of 64 KB */

struct report {
	struct usage *usage;
	struct text *to;
	unsigned count;
};

struct search {
	const char *name;
	struct usage_token found;
};

static void find(const struct usage_token *token, void *arg)
{
	struct search *search = arg;

	if (strcmp(token->name, search->name) == 0)
		search->found = *token;
}

static void put_figure(struct text *to, const char *what, uint64_t used, uint64_t limit)
{
	text_printf(to, "%s %" PRIu64, what, used);
	if (limit)
		text_printf(to, " of %" PRIu64, limit);
}

static void put_token(const char *name, const struct token_quota *quota, void *arg)
{
	struct report *r = arg;
	struct search search = { .name = name };

	if (r->count++ >= TOKENS_SHOWN)
		return;
	usage_each(r->usage, find, &search);
	text_printf(r->to, "%s:", name);
	put_figure(r->to, " images", search.found.stored.images, quota->images);
	put_figure(r->to, ", bytes", search.found.stored.bytes, quota->bytes);
	put_figure(r->to, ", uploads today", search.found.uploads, quota->uploads);
	text_puts(r->to, "\n");
}

void quota_report(struct tokens *tokens, struct usage *usage, struct text *to)
{
	struct report r = { .usage = usage, .to = to };
	struct usage_total total = usage_total(usage);

	if (!total.is_on) {
		text_puts(to, "no token has a quota, so nothing is counted\n");
		return;
	}
	tokens_each(tokens, put_token, &r);
	if (r.count > TOKENS_SHOWN)
		text_printf(to, "and %u other tokens\n", r.count - TOKENS_SHOWN);
	if (!total.is_complete)
		text_puts(to, "the stored images are still being counted\n");
}
