/*
 * trace_output.c - the way of a trace from the rings to a file or a client. Main thread.
 */
#include "trace_output.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "log/log.h"
#include "sched/core/trace.h"
#include "telemetry/trace_format.h"

#define READ_MS 50                /* between two readings of the rings */
#define TICK_NS NS_PER_S          /* between two records of type TRACE_TICK */
#define GIVE_UP_NS (5 * NS_PER_S) /* for a client to read the rest */

/* ---- writing ---- */

static void append(struct trace_output *t, const void *data, size_t size)
{
	memcpy(t->buffer + t->length, data, size);
	t->length += size;
}

static void append_record(struct trace_output *t, enum trace_type type, uint64_t now_ns)
{
	const struct trace_record record = { .type = (uint8_t)type,
		                             .begin_ns = now_ns,
		                             .stage = TRACE_NO_STAGE };

	append(t, &record, sizeof record);
}

/* Fills the empty buffer. Returns whether there is something in it. */
static bool refill(struct trace_output *t, struct graph *g)
{
	uint64_t now_ns = clock_ns();

	t->sent = t->length = 0;
	if (now_ns >= t->tick_ns && t->state == TRACE_OUTPUT_RECORDING) {
		append_record(t, TRACE_TICK, now_ns);
		t->tick_ns = now_ns + TICK_NS;
	}
	t->length += trace_read(g, t->buffer + t->length, sizeof t->buffer - t->length);
	return t->length > 0;
}

/* Writes the buffer. Returns 0, -EAGAIN if a client must read first, or another error. */
static int flush(struct trace_output *t)
{
	while (t->sent < t->length) {
		size_t left = t->length - t->sent;
		ssize_t n = t->is_client ? send(t->fd, t->buffer + t->sent, left,
		                                MSG_DONTWAIT | MSG_NOSIGNAL)
		                         : write(t->fd, t->buffer + t->sent, left);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		t->sent += (size_t)n;
		t->bytes += (uint64_t)n;
	}
	return 0;
}

/* ---- the trace ---- */

static void finish(struct trace_output *t, int err)
{
	if (err == -EPIPE || err == -ECONNRESET)
		log_info("trace: the client has gone; the trace ends");
	else if (err)
		log_error("trace: cannot write: %s; the trace ends", strerror(-err));
	else
		log_notice("trace: ended after %" PRIu64 " bytes", t->bytes);
	close(t->fd);
	t->fd = -1;
}

int trace_output_start(struct trace_output *t, struct graph *g, int fd, bool is_client)
{
	uint64_t now_ns = clock_ns();
	int err = trace_start(g);

	if (err) {
		log_error("trace: cannot start: %s", strerror(-err));
		close(fd);
		return err;
	}
	t->fd = fd;
	t->is_client = is_client;
	t->state = TRACE_OUTPUT_RECORDING;
	t->until_ns = is_client ? now_ns + t->seconds * NS_PER_S : UINT64_MAX;
	t->tick_ns = now_ns;
	t->bytes = t->sent = 0;
	t->length = trace_header(g, t->buffer);
	return 0;
}

static void stop_recording(struct trace_output *t, struct graph *g, uint64_t now_ns)
{
	trace_stop(g);
	t->state = TRACE_OUTPUT_ENDING;
	t->until_ns = now_ns + GIVE_UP_NS;
}

int trace_output_tick(struct trace_output *t, struct graph *g)
{
	uint64_t now_ns = clock_ns();

	if (!trace_output_is_on(t))
		return -1;
	if (t->state == TRACE_OUTPUT_RECORDING &&
	    (now_ns >= t->until_ns || t->bytes >= TRACE_BYTES_MAX))
		stop_recording(t, g, now_ns);
	int err;

	do
		err = flush(t);
	while (!err && t->state != TRACE_OUTPUT_LAST && refill(t, g));
	if (!err && t->state == TRACE_OUTPUT_ENDING) {
		append_record(t, TRACE_END, now_ns);
		t->state = TRACE_OUTPUT_LAST;
		err = flush(t);
	}
	if (t->state == TRACE_OUTPUT_RECORDING ? !err || err == -EAGAIN
	                                       : err == -EAGAIN && now_ns < t->until_ns)
		return READ_MS;
	trace_stop(g);
	finish(t, err);
	return -1;
}

void trace_output_end(struct trace_output *t, struct graph *g)
{
	if (!trace_output_is_on(t))
		return;
	if (t->state == TRACE_OUTPUT_RECORDING)
		stop_recording(t, g, clock_ns());
	if (trace_output_tick(t, g) >= 0)
		finish(t, -EAGAIN);
}
