/* stats_stream.c - the watchers of GET /stats/stream, and the documents that they share. */
#include "admin_service.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"
#include "log/log.h"

#define PERIOD_NS (500 * NS_PER_MS)
#define SLOW_NS (10 * NS_PER_S) /* a watcher that has not read a document for so long is closed */
#define DOCUMENT_MAX ((size_t)1 << 20)

/* ---- start and end ---- */

int stats_stream_open(struct stats_stream *s)
{
	s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->wake_fd < 0) {
		int err = -errno;

		log_error("statistics: cannot make an eventfd: %s; the daemon ends",
		          strerror(-err));
		return err;
	}
	pthread_mutex_init(&s->lock, NULL);
	return 0;
}

static void watcher_end(struct stats_stream *s, struct stats_watcher *w)
{
	close(w->fd);
	document_drop(w->document);
	*w = s->watcher[--s->watcher_count];
	atomic_fetch_sub_explicit(&s->count, 1, memory_order_relaxed);
}

/* Moves those that have arrived to the watchers. */
static void take_arrivals(struct stats_stream *s)
{
	uint64_t count;

	if (read(s->wake_fd, &count, sizeof count) < 0) {
		debug_assert(errno == EAGAIN); /* nobody has woken this thread */
		return;
	}
	pthread_mutex_lock(&s->lock);
	for (unsigned i = 0; i < s->arrived_count; i++) {
		assert(s->watcher_count < STATS_WATCHERS_MAX);
		s->watcher[s->watcher_count++] = (struct stats_watcher){ .fd = s->arrived[i] };
	}
	s->arrived_count = 0;
	pthread_mutex_unlock(&s->lock);
}

void stats_stream_close(struct stats_stream *s)
{
	if (s->wake_fd < 0)
		return;
	take_arrivals(s);
	while (s->watcher_count > 0)
		watcher_end(s, &s->watcher[0]);
}

/* ---- arriving ---- */

bool stats_stream_has_room(const struct stats_stream *s)
{
	/* Relaxed: only the number matters. */
	return atomic_load_explicit(&s->count, memory_order_relaxed) < STATS_WATCHERS_MAX;
}

void stats_stream_wake(struct stats_stream *s)
{
	const uint64_t one = 1;

	if (write(s->wake_fd, &one, sizeof one) < 0)
		debug_assert(errno == EAGAIN); /* it is readable already */
}

void stats_stream_add(struct stats_stream *s, int fd)
{
	if (atomic_fetch_add_explicit(&s->count, 1, memory_order_relaxed) >= STATS_WATCHERS_MAX ||
	    (fd = fcntl(fd, F_DUPFD_CLOEXEC, 0)) < 0) {
		atomic_fetch_sub_explicit(&s->count, 1, memory_order_relaxed);
		return;
	}
	pthread_mutex_lock(&s->lock);
	s->arrived[s->arrived_count++] = fd;
	pthread_mutex_unlock(&s->lock);
	stats_stream_wake(s);
}

/* ---- sending ---- */

/* Returns NULL if there is no memory. */
static struct document *event_new(void (*write)(const struct report_source *source,
                                                struct text *to),
                                  const struct report_source *source)
{
	struct text t;

	text_init_growable(&t, DOCUMENT_MAX);
	text_puts(&t, "data: ");
	write(source, &t);
	text_puts(&t, "\n\n");
	return document_new(&t);
}

static bool has_gone(const struct stats_watcher *w)
{
	char byte;
	ssize_t n = recv(w->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* Sends the rest of the watcher's document as far as the socket takes it. Returns false if the
 * watcher has gone. */
static bool send_rest(struct stats_watcher *w)
{
	const struct document *d = w->document;

	while (w->sent < d->length) {
		ssize_t n = send(w->fd, d->data + w->sent, d->length - w->sent,
		                 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN;
		w->sent += (size_t)n;
	}
	document_drop(w->document);
	w->document = NULL;
	return true;
}

/* Returns false if the watcher has gone, or is too slow. */
static bool serve(struct stats_watcher *w, struct document *d, uint64_t now_ns)
{
	if (has_gone(w) || (w->document && !send_rest(w)))
		return false;
	if (w->document) /* it misses this one */
		return now_ns - w->since_ns < SLOW_NS;
	assert(d->references > 0); /* the caller's */
	w->document = d;
	d->references++;
	w->sent = 0;
	w->since_ns = now_ns;
	return send_rest(w);
}

int stats_stream_tick(struct stats_stream *s, uint64_t now_ns,
                      void (*write)(const struct report_source *source, struct text *to),
                      const struct report_source *source)
{
	bool was_idle = s->watcher_count == 0;

	take_arrivals(s);
	if (s->watcher_count == 0)
		return -1;
	if (was_idle || now_ns >= s->next_ns) {
		struct document *d = event_new(write, source);

		s->next_ns = now_ns + PERIOD_NS;
		/* From the end, because the last watcher takes the place of one that ends. */
		for (unsigned i = s->watcher_count; d && i-- > 0;)
			if (!serve(&s->watcher[i], d, now_ns))
				watcher_end(s, &s->watcher[i]);
		document_drop(d);
	}
	return s->watcher_count ? (int)((s->next_ns - now_ns) / NS_PER_MS) + 1 : -1;
}
