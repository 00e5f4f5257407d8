/*
 * fuzz_tokens.c - files of tokens: each line is a token or is reported, and the tokens are the same
 * after they were written and read again.
 */
#include "access/tokens.c" /* NOLINT(bugprone-suspicious-include): for parse() */

#include "target.h"

const unsigned target_mutants = 1000;

static void read_text(struct reading *r, const void *data, size_t size, struct text *errors)
{
	char *copy = target_copy(data, size);

	*r = (struct reading){ .path = "tokens", .errors = errors };
	r->token = malloc(TOKENS_MAX * sizeof *r->token);
	assert(r->token);
	parse(r, copy, size);
	free(copy);
	assert(r->has_failed == (errors->length > 0));
	assert(r->count <= TOKENS_MAX);
}

static void print(const struct reading *r, struct text *to)
{
	for (unsigned i = 0; i < r->count; i++) {
		const struct token *t = &r->token[i];

		assert(token_name_is_valid(t->name, strlen(t->name)));
		assert(t->scopes && t->scopes <= (TOKEN_SCOPES_UNSAID | TOKEN_ORIGINAL |
		                                  TOKEN_SIGN | TOKEN_OWN));
		text_printf(to, "%s ", t->name);
		for (size_t k = 0; k < TOKEN_HASH_SIZE; k++)
			text_printf(to, "%02x", t->hash[k]);
		token_print_rights(t->scopes, &t->quota, to);
		text_puts(to, "\n");
	}
}

static bool is_same(const struct token *a, const struct token *b)
{
	return strcmp(a->name, b->name) == 0 && memcmp(a->hash, b->hash, sizeof a->hash) == 0 &&
	       a->scopes == b->scopes && a->quota.images == b->quota.images &&
	       a->quota.bytes == b->quota.bytes && a->quota.uploads == b->quota.uploads;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct text errors, text;
	struct reading first, second;

	if (size > FILE_MAX)
		return 0;
	text_init_growable(&errors, ERRORS_MAX);
	read_text(&first, data, size, &errors);
	text_fini(&errors);
	text_init_growable(&text, 2 * FILE_MAX);
	print(&first, &text);

	text_init_growable(&errors, ERRORS_MAX);
	read_text(&second, text.length ? text.data : "", text.length, &errors);
	assert(!second.has_failed && first.count == second.count);
	for (unsigned i = 0; i < first.count; i++)
		assert(is_same(&first.token[i], &second.token[i]));
	text_fini(&errors);
	text_fini(&text);
	free(first.token);
	free(second.token);
	return 0;
}

#define HASH "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define OTHER "CA978112CA1BBDCAFAC231B39A23DC4DA786EFF8147C4E72B9807785AFEE48BB"

void target_seeds(void (*emit)(const void *data, size_t size))
{
	static const char *const text[] = {
		"first " HASH "\nsecond " OTHER " upload\n",
		"first " HASH " original images=10 bytes=20G uploads=3\nsecond " OTHER
		" bytes=9T\n",
		"# comment\n\n\ta.b_c@d-1 \t" HASH " delete upload\r\nx " OTHER " upload upload",
		"a " HASH "\na " OTHER "\nb " HASH "\n",
		"a " HASH " nothing\nb abc\n" HASH "\n",
	};

	target_emit_texts(emit, text, COUNT_OF(text));
}
