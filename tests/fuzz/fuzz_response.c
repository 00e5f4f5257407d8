/*
 * fuzz_response.c - answers that darkroom-load reads: whole and in pieces they give the same
 * result. A complete body is also read as JSON.
 */
#include "base/json_reader.h"
#include "load/response_reader.h"
#include "target.h"

const unsigned target_mutants = 2000;

struct outcome {
	struct response_reader reader;
	char data[8192];
	struct text body;
	size_t used;
	bool is_complete;
};

static void read_answer(struct outcome *o, const uint8_t *data, size_t size, uint32_t *cuts)
{
	struct response_reader *r = &o->reader;

	response_reader_init(r);
	text_init(&o->body, o->data, sizeof o->data);
	o->used = 0;
	for (size_t end = 0;
	     end < size && (r->state == RESPONSE_HEAD || r->state == RESPONSE_BODY);) {
		size_t begin = end;

		end = cuts ? target_cut(cuts, begin, size) : size;
		char *copy = target_copy(data + begin, end - begin);
		size_t n = response_reader_read(r, copy, end - begin, &o->body);

		assert(n <= end - begin);
		assert(n == end - begin || r->state == RESPONSE_DONE || r->state == RESPONSE_BAD);
		o->used += n;
		free(copy);
	}
	assert(r->state != RESPONSE_BAD || r->problem);
	o->is_complete = response_reader_eof(r);
}

static void compare(const struct outcome *a, const struct outcome *b)
{
	assert(a->reader.state == b->reader.state && a->is_complete == b->is_complete);
	if (a->reader.state == RESPONSE_BAD)
		return;
	assert(a->used == b->used && a->reader.remaining == b->reader.remaining);
	assert(a->reader.status == b->reader.status && a->reader.is_jpeg == b->reader.is_jpeg);
	if (a->reader.state == RESPONSE_DONE)
		assert(a->reader.keep_alive == b->reader.keep_alive);
	/* What is left of a body that did not fit depends on the pieces, and is not used. */
	assert(a->body.overflowed == b->body.overflowed);
	if (a->body.overflowed)
		return;
	assert(a->body.length == b->body.length);
	assert(memcmp(a->data, b->data, a->body.length) == 0);
}

/* Reads every member of every container. */
static void walk(const char *container)
{
	const char *value = NULL;
	char text[16];
	uint64_t n;

	while ((value = json_reader_next(container, value))) {
		json_reader_uint(value, &n);
		json_reader_ascii(value, text, sizeof text);
		walk(value);
	}
	json_reader_member(container, "id");
}

static void read_json(const char *data, size_t length)
{
	char *copy = malloc(length + 1);

	assert(copy);
	memcpy(copy, data, length);
	copy[length] = '\0';
	const char *value = json_reader_check(copy, length);

	if (value)
		walk(value);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct outcome whole, pieces;
	uint32_t cuts = target_hash(data, size);

	read_answer(&whole, data, size, NULL);
	read_answer(&pieces, data, size, &cuts);
	compare(&whole, &pieces);
	if (whole.is_complete && !whole.body.overflowed)
		read_json(whole.data, whole.body.length);
	return 0;
}

void target_seeds(void (*emit)(const void *data, size_t size))
{
	static const char *const text[] = {
		"HTTP/1.1 201 Created\r\nContent-Length: 38\r\nContent-Type: application/json\r\n\r\n"
		"{\"images\":[{\"id\":\"01K\",\"width\":9,\"a\":1}]}",
		"HTTP/1.1 200 OK\r\nContent-Type: image/jpeg; x\r\nTransfer-Encoding: chunked\r\n\r\n"
		"5\r\nhello\r\n0;a=b\r\nX: y\r\n\r\n",
		"HTTP/1.0 200 OK\r\n\r\n{\"a\":[true,false,null,-1.5e3,\"\\u00e9\\n\"],\"b\":{}}",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
		"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 503 Busy\r\nContent-Length: "
		"0\r\nRetry-After: 1\r\n\r\nHTTP/1.1 200 OK\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
		"1\r\na\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\nContent-Length: 3\n\nabc",
		"HTTP/1.1 200 OK\r\nContent-Length: 1152921504606846976\r\n\r\nabc",
	};

	target_emit_texts(emit, text, COUNT_OF(text));
}
