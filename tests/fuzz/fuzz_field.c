/*
 * fuzz_field.c - values of header fields: every result is a slice of the value, and each loop over
 * a list or parameters advances.
 */
#include "http/field.h"
#include "target.h"

const unsigned target_mutants = 3000;

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void check_within(struct slice part, struct slice whole)
{
	assert(part.length == 0 ||
	       (part.data >= whole.data && part.data + part.length <= whole.data + whole.length));
}

static void check_trimmed(struct slice s, struct slice whole)
{
	check_within(s, whole);
	assert(s.length == 0 || (!is_space(s.data[0]) && !is_space(s.data[s.length - 1])));
}

static void check_params(struct slice value)
{
	struct slice params, type = field_word(value, &params);
	struct field_param param;
	int result;

	check_trimmed(type, value);
	check_within(params, value);
	for (size_t left = params.length; (result = field_param_next(&params, &param, false)) > 0;
	     left = params.length) {
		assert(params.length < left);
		check_within(param.name, value);
		check_within(param.value, value);
		assert(param.name.length > 0);
	}
	assert(result == 0 || result == -1);
}

static void check_list(struct slice value)
{
	struct slice rest = value, element;

	for (size_t left = rest.length + 1; field_list_next(&rest, &element); left = rest.length) {
		assert(rest.length < left);
		assert(element.length > 0);
		check_trimmed(element, value);
		check_params(element);
	}
}

static void check_boundary(struct slice value)
{
	char *out = malloc(BOUNDARY_MAX);
	const char *error = NULL;

	assert(out);
	size_t length = field_boundary(value, out, &error);

	assert(length <= BOUNDARY_MAX && (length > 0 || error));
	free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = target_copy(data, size);
	struct slice value = { copy, size };

	check_trimmed(slice_trim(value), value);
	check_list(value);
	check_params(value);
	check_boundary(value);
	if (slice_is(value, "respond-async"))
		assert(slice_begins(value, "respond-async") &&
		       field_has_word(value, "respond-async"));
	field_has_word(value, "respond-async");
	if (slice_is(slice_trim(value), "*"))
		assert(field_etag_matches(value, "\"a\"", false));
	if (field_etag_matches(value, "\"a-1\"", false))
		assert(field_etag_matches(value, "\"a-1\"", true));
	free(copy);
	return 0;
}

void target_seeds(void (*emit)(const void *data, size_t size))
{
	static const char *const text[] = {
		"multipart/form-data; boundary=abc",
		"multipart/form-data;charset=utf-8 ; boundary=\"a b:c\\\"\"",
		"form-data; name=\"a\\\\b\\\"c\"; filename*=UTF-8''%e2%82%ac.jpg",
		"*",
		" \"a\", W/\"a-1\" ,, \"b,c\"\t",
		"respond-async",
		"Wait=10, respond-async ; x=\"y;z\"",
		"text/html; q=0.5, image/jpeg;;; a=b",
		"a;=b; c=; d=\"",
	};

	target_emit_texts(emit, text, COUNT_OF(text));
}
