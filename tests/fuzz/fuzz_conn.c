/*
 * fuzz_conn.c - bytes of a client through the whole daemon: the connection's states, the parser,
 * forms, images and the store.
 *
 * The daemon runs on one thread (one_thread.h), so that each run is the same. Each input is sent
 * whole and in pieces, which must get the same answers. Afterwards the client closes, or stays
 * silent until every deadline has passed. Some clients never read. Nothing may be left.
 */
#include "one_thread.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "load/response_reader.h"
#include "pattern_pool.h"
#include "pixel/decoder.h"
#include "pixel/encoder.h"
#include "support/jpeg_fixture.h"
#include "target.h"

#define ANSWERS_MAX 64
#define OUTPUT_MAX ((size_t)1 << 20)
#define TURNS_MAX 10000 /* a connection that waits longer never ends */

const unsigned target_mutants = 40;

struct client {
	int fd;
	char output[OUTPUT_MAX];
	size_t size;
	bool is_deaf;   /* reads nothing */
	bool has_ended; /* the daemon has closed */
};

struct outcome {
	int status[ANSWERS_MAX];
	unsigned count;
	bool is_whole; /* all answers could be read */
};

/* Reads what the daemon has sent. Returns whether there was anything. */
static bool receive(struct client *c)
{
	ssize_t n = recv(c->fd, c->output + c->size, OUTPUT_MAX - c->size, 0);

	assert(c->size < OUTPUT_MAX);
	if (n == 0 || (n < 0 && errno == ECONNRESET))
		c->has_ended = true;
	if (n <= 0)
		return false;
	c->size += (size_t)n;
	return true;
}

/* Lets both sides work until both wait. */
static void exchange(struct client *c)
{
	do
		one_thread_run();
	while (!c->is_deaf && !c->has_ended && receive(c));
}

static void send_piece(struct client *c, const uint8_t *data, size_t size)
{
	for (unsigned turn = 0; size > 0 && !c->has_ended; turn++) {
		ssize_t n = send(c->fd, data, size, MSG_NOSIGNAL);

		assert(turn < TURNS_MAX);
		if (n < 0 && (errno != EAGAIN || c->is_deaf))
			return; /* closed, or the daemon waits for its answer to be read */
		if (n > 0) {
			data += n;
			size -= (size_t)n;
		}
		exchange(c);
	}
}

/* Sends the input and ends the connection. Returns when the daemon has ended it too. */
static void talk(struct client *c, const uint8_t *data, size_t size, uint32_t *cuts, bool closes)
{
	c->size = 0;
	c->has_ended = false;
	c->fd = one_thread_connect();
	for (size_t at = 0; at < size && !c->has_ended;) {
		size_t end = cuts ? target_cut(cuts, at, size) : size;

		send_piece(c, data + at, end - at);
		at = end;
	}
	if (closes)
		shutdown(c->fd, SHUT_WR);
	exchange(c);
	for (unsigned turn = 0; one_thread_pass_time(); turn++) {
		assert(turn < TURNS_MAX);
		exchange(c);
	}
	c->is_deaf = false;
	exchange(c);
	assert(c->has_ended);
	close(c->fd);
}

/* Reads the statuses of all answers. */
static void read_answers(struct outcome *o, const struct client *c)
{
	size_t at = 0;

	*o = (struct outcome){ .is_whole = true };
	while (at < c->size && o->count < ANSWERS_MAX) {
		struct response_reader r;

		response_reader_init(&r);
		at += response_reader_read(&r, c->output + at, c->size - at, NULL);
		if (r.state == RESPONSE_HEAD)
			return; /* an interim answer, and the end */
		if (r.state != RESPONSE_DONE) {
			o->is_whole = false;
			return;
		}
		o->status[o->count++] = r.status;
	}
}

static bool contains(const uint8_t *data, size_t size, const char *text)
{
	return memmem(data, size, text, strlen(text)) != NULL;
}

/* Checks that both got the same answers. After an error the daemon may close the connection instead
 * of waiting for the rest of a body. */
static void compare(const struct outcome *a, const struct outcome *b)
{
	unsigned count = a->count < b->count ? a->count : b->count;

	assert(a->is_whole && b->is_whole);
	for (unsigned i = 0; i < count; i++) {
		if (a->status[i] != b->status[i])
			fprintf(stderr, "answer %u: %d whole, %d in pieces\n", i, a->status[i],
			        b->status[i]);
		assert(a->status[i] == b->status[i]);
		assert(a->status[i] != 500);
	}
	if (a->count != b->count)
		assert(count > 0 && a->status[count - 1] >= 400);
}

static uint64_t base_bytes; /* of the pool, while the daemon has nothing to do */

/* Frees the codecs that the thread keeps for the next image. */
static void forget_codecs(void)
{
	decoder_thread_fini();
}

static void start(void)
{
	static const char *const settings[] = {
		"server.durability=none",   "server.respond_after=store",
		"limits.header_bytes=1K",   "limits.body_bytes=64K",
		"limits.parts=4",           "limits.pixels=20000",
		"limits.memory_budget=16M", "limits.images_in_flight=8",
		"limits.connections=8",
	};
	static bool is_started;

	if (is_started)
		return;
	is_started = true;
	one_thread_start(settings, COUNT_OF(settings));
	base_bytes = pattern_pool_used();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct client client;
	struct outcome whole, pieces;
	uint32_t cuts = target_hash(data, size);
	bool closes = cuts & 2, is_deaf = (cuts & 12) == 12;

	start();
	pattern_pool_begin(0xa5);
	client.is_deaf = is_deaf;
	talk(&client, data, size, NULL, closes);
	read_answers(&whole, &client);
	one_thread_check_idle();
	client.is_deaf = is_deaf;
	talk(&client, data, size, &cuts, closes);
	read_answers(&pieces, &client);
	one_thread_check_idle();
	/* The reader does not know which answers are to HEAD, and have no body. */
	if (!is_deaf && !contains(data, size, "HEAD"))
		compare(&whole, &pieces);
	forget_codecs();
	assert(pattern_pool_used() == base_bytes);
	return 0;
}

/* ---- seeds ---- */

#define REQUEST_MAX 4096

/* Appends text and bytes to a request. */
static size_t append(char *request, size_t at, const void *data, size_t size)
{
	assert(size <= REQUEST_MAX - at);
	memcpy(request + at, data, size);
	return at + size;
}

static size_t append_text(char *request, size_t at, const char *text)
{
	return append(request, at, text, strlen(text));
}

/* Emits an upload of body[0..size) with a Content-Length, or in one chunk, and another request. */
static void emit_upload(void (*emit)(const void *data, size_t size), const char *fields,
                        const void *body, size_t size, bool is_chunked)
{
	char request[REQUEST_MAX], line[64];
	size_t at = append_text(request, 0, "POST /images HTTP/1.1\r\nHost: a\r\n");

	at = append_text(request, at, fields);
	snprintf(line, sizeof line,
	         is_chunked ? "Transfer-Encoding: chunked\r\n\r\n%zx\r\n"
	                    : "Content-Length: %zu\r\n\r\n",
	         size);
	at = append_text(request, at, line);
	at = append(request, at, body, size);
	at = append_text(request, at, is_chunked ? "\r\n0\r\n\r\n" : "");
	at = append_text(request, at, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
	emit(request, at);
}

static void emit_uploads(void (*emit)(const void *data, size_t size))
{
	const struct fixture f = { .width = 10,
		                   .height = 7,
		                   .from = JCS_GRAYSCALE,
		                   .in = JCS_GRAYSCALE,
		                   .components = 1 };
	char form[REQUEST_MAX];
	size_t size;
	uint8_t *jpeg = fixture_make(&f, &size);

	emit_upload(emit, "Content-Type: image/jpeg\r\n", jpeg, size, false);
	emit_upload(emit, "Content-Type: image/jpeg\r\nPrefer: respond-async\r\n", jpeg, size,
	            true);
	size_t at = append_text(form, 0,
	                        "--b\r\nContent-Disposition: form-data; name=f; "
	                        "filename=a.jpg\r\n\r\n");

	at = append(form, at, jpeg, size);
	at = append_text(form, at, "\r\n--b--\r\n");
	emit_upload(emit, "Content-Type: multipart/form-data; boundary=b\r\n", form, at, false);
	emit_upload(emit, "Content-Type: multipart/form-data; boundary=b\r\n", form, at, true);
	free(jpeg);
}

void target_seeds(void (*emit)(const void *data, size_t size))
{
	static const char *const text[] = {
		"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\nGET /images/01ARZ3NDEKTSV4RRFFQ69G5FAV "
		"HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
		"HEAD /healthz HTTP/1.1\r\nHost: a\r\n\r\nOPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
		"DELETE /images/01ARZ3NDEKTSV4RRFFQ69G5FAV HTTP/1.1\r\nHost: a\r\n\r\nGET /",
		"POST /images HTTP/1.1\r\nHost: a\r\nContent-Type: image/jpeg\r\n"
		"Content-Length: 70000\r\n\r\nabc",
		"POST /images HTTP/1.1\r\nHost: a\r\nContent-Type: image/jpeg\r\n"
		"Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n"
		"3\r\n\xff\xd8\xff\r\n2;a=b\r\nde\r\n0\r\nT: u\r\n\r\n"
		"GET /stats HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST /images HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\n"
		"Content-Length: 5\r\n\r\nhelloGET /metrics HTTP/1.0\r\n\r\n",
		"POST /images HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n\r\nPUT / HTTP/1.1\r\n"
		"Host: a\r\n\r\n",
		"GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 40\r\n\r\n"
		"0123456789012345678901234567890123456789GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST /images HTTP/1.1\r\nHost: a\r\nContent-Type: image/jpeg\r\n"
		"Transfer-Encoding: chunked\r\n\r\ndddddddddddddx\r\n",
		"nonsense\r\n\r\n",
	};

	target_emit_texts(emit, text, COUNT_OF(text));
	emit_uploads(emit);
}
