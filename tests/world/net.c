/* net.c - sockets and event loops. A change of a socket wakes who waits for it. */
#include "net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/check.h"
#include "base/reactor.h"
#include "descriptors.h"
#include "events.h"
#include "machine.h"
#include "seam.h"
#include "seeds.h"

#define SOCKETS_MAX 512
#define QUEUE_MAX 64  /* connections that wait to be accepted */
#define ROOM_MIN 2048 /* as much as a client may send before it reads */
#define ROOM_MAX (64 << 10)
#define TURN_MAX 512 /* watches that are ready at once */
#define FIRST_PORT 40000

/* ---- sockets ---- */

struct socket {
	bool listens; /* accepts connections */
	bool is_shut; /* its owner sends nothing more */
	bool has_end; /* the peer sends nothing more */
	bool is_reset;
	struct sockaddr_in address; /* its own; of a connection: that of the client */
	struct socket *peer;        /* NULL: it has closed */
	struct socket *queue[QUEUE_MAX];
	unsigned queued;
	uint8_t *data; /* that has come and is unread */
	size_t size, room;
	size_t window;         /* bytes that the system of a client takes before it reads them */
	struct thread *waiter; /* the client */
};

static struct socket *sockets[SOCKETS_MAX]; /* by descriptor */
static struct reactor *reactors;

static void changed(struct socket *s);

static int fail(int error)
{
	errno = error;
	return -1;
}

/* Returns whether a call is interrupted, or otherwise unlucky. */
static bool is_unlucky(void)
{
	machine_pay(syscall, 1);
	return draw(64) == 0;
}

static struct socket *find(int fd)
{
	int i = fd - DESCRIPTORS_OF_SOCKETS;

	return i >= 0 && i < SOCKETS_MAX ? sockets[i] : NULL;
}

static struct socket *socket_of(int fd)
{
	struct socket *s = find(fd);

	assert(s);
	return s;
}

static struct socket *new_socket(void)
{
	struct socket *s = calloc(1, sizeof *s);

	if (!s)
		abort();
	return s;
}

/* Gives it a descriptor: the lowest one that is free, as Linux does. */
static int add(struct socket *s)
{
	for (int i = 0; i < SOCKETS_MAX; i++)
		if (!sockets[i]) {
			sockets[i] = s;
			return DESCRIPTORS_OF_SOCKETS + i;
		}
	abort();
}

unsigned net_open_count(void)
{
	unsigned count = 0;

	for (int i = 0; i < SOCKETS_MAX; i++)
		count += sockets[i] != NULL;
	return count;
}

static bool is_readable(const struct socket *s)
{
	return s->listens ? s->queued > 0 : s->size > 0 || s->has_end || s->is_reset;
}

static bool is_writable(const struct socket *s)
{
	return !s->listens && (!s->peer || s->is_reset || s->peer->size < s->peer->room);
}

static void reset(struct socket *s)
{
	s->is_reset = true;
	s->size = 0;
	changed(s);
}

/* Its owner is done with it. */
static void drop(struct socket *s)
{
	struct socket *peer = s->peer;

	for (unsigned i = 0; i < s->queued; i++)
		drop(s->queue[i]);
	if (peer && s->size)
		reset(peer);
	if (peer) {
		peer->peer = NULL;
		peer->has_end = true;
		changed(peer);
	}
	free(s->data);
	free(s);
}

/* ---- clients ---- */

static struct socket *some_listener(unsigned port)
{
	struct socket *some = NULL;
	unsigned seen = 0;

	for (int i = 0; i < SOCKETS_MAX; i++) {
		struct socket *s = sockets[i];

		if (s && s->listens && ntohs(s->address.sin_port) == port &&
		    s->queued < QUEUE_MAX && draw(++seen) == 0)
			some = s;
	}
	return some;
}

static struct socket *new_end(uint32_t address)
{
	struct socket *s = new_socket();

	s->address = (struct sockaddr_in){ .sin_family = AF_INET,
		                           .sin_addr.s_addr = htonl(address),
		                           .sin_port = htons(1024) };
	s->room = ROOM_MIN + draw(draw(2) ? 1024 : ROOM_MAX);
	s->data = malloc(s->room);
	if (!s->data)
		abort();
	return s;
}

struct socket *net_connect(unsigned port, uint32_t address)
{
	struct socket *listener = some_listener(port);

	if (!listener)
		return NULL;
	struct socket *s = new_end(address), *other = new_end(address);

	s->peer = other;
	other->peer = s;
	s->window = draw(s->room + 1);
	listener->queue[listener->queued++] = other;
	changed(listener);
	return s;
}

/* Waits until something changes. Returns false if the time has come. */
static bool wait(struct socket *s, uint64_t until_ns)
{
	s->waiter = machine_self();
	bool in_time = machine_block(until_ns);

	s->waiter = NULL;
	return in_time;
}

/* Moves bytes into the peer's buffer. Returns how many. */
static size_t put(struct socket *s, const void *data, size_t size)
{
	struct socket *to = s->peer;
	size_t room = to->room - to->size;

	size = size < room ? size : room;
	memcpy(to->data + to->size, data, size);
	to->size += size;
	changed(to);
	return size;
}

/* Takes bytes out of the buffer, to `to` if it is not NULL. */
static void take(struct socket *s, void *to, size_t size)
{
	if (to)
		memcpy(to, s->data, size);
	s->size -= size;
	memmove(s->data, s->data + size, s->size);
	if (s->peer)
		changed(s->peer);
}

bool net_send(struct socket *s, const void *data, size_t size, uint64_t until_ns)
{
	const char *at = data;

	while (size) {
		if (!s->peer || s->is_reset)
			return false;
		size_t n = put(s, at, size);

		at += n;
		size -= n;
		if (!n && !wait(s, until_ns))
			return false;
	}
	return true;
}

enum net_result net_receive(struct socket *s, void *to, size_t *size, uint64_t until_ns)
{
	while (!is_readable(s))
		if (!wait(s, until_ns))
			return NET_LATE;
	if (s->is_reset)
		return NET_RESET;
	if (!s->size)
		return NET_END;
	*size = *size < s->size ? *size : s->size;
	take(s, to, *size);
	return NET_DATA;
}

void net_shut(struct socket *s)
{
	s->is_shut = true;
	if (s->peer) {
		s->peer->has_end = true;
		changed(s->peer);
	}
}

void net_close(struct socket *s)
{
	drop(s);
}

/* ---- event loops ---- */

struct reactor {
	struct reactor *next;
	struct thread *waiter;
	struct watch *watches;
	struct watch *turn[TURN_MAX]; /* that are ready, or NULL */
	unsigned count;
};

struct watch {
	struct reactor *reactor;
	struct reactor_watch *of;
	struct watch *next;
	bool for_writing;
	int fd;          /* -1: a timer */
	uint64_t due_ns; /* of a timer; MACHINE_FOREVER: it is not set */
};

unsigned net_watch_count(void)
{
	unsigned count = 0;

	for (const struct reactor *r = reactors; r; r = r->next)
		for (const struct watch *w = r->watches; w; w = w->next)
			count++;
	return count;
}

static bool is_ready(const struct watch *w)
{
	if (w->fd < 0)
		return w->due_ns <= machine_now();
	if (!w->of->is_on)
		return false;
	const struct socket *s = find(w->fd);

	if (!s)
		return event_is_set(w->fd);
	return w->for_writing ? is_writable(s) : is_readable(s);
}

static void wake(struct thread **waiter)
{
	struct thread *t = *waiter;

	*waiter = NULL;
	if (t)
		machine_wake(t);
}

static void changed(struct socket *s)
{
	wake(&s->waiter);
	for (struct reactor *r = reactors; r; r = r->next)
		for (const struct watch *w = r->watches; w && r->waiter; w = w->next)
			if (w->fd >= 0 && find(w->fd) == s && is_ready(w))
				wake(&r->waiter);
}

SEAM(struct reactor *, reactor_new, void)
{
	struct reactor *r = calloc(1, sizeof *r);

	CALLED(reactor_new);
	if (!r)
		abort();
	r->next = reactors;
	reactors = r;
	return r;
}

SEAM(void, reactor_free, struct reactor *r)
{
	struct reactor **at = &reactors;

	CALLED(reactor_free);
	if (!r)
		return;
	if (r->watches)
		FAIL("an event loop ends with watches");
	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	free(r);
}

/* Collects what is ready, in random order. Returns when the next timer is due. */
static uint64_t collect(struct reactor *r)
{
	uint64_t next_ns = MACHINE_FOREVER;

	r->count = 0;
	for (struct watch *w = r->watches; w; w = w->next) {
		if (w->fd < 0 && w->due_ns < next_ns)
			next_ns = w->due_ns;
		if (!is_ready(w))
			continue;
		assert(r->count < TURN_MAX);
		unsigned at = (unsigned)draw(r->count + 1);

		r->turn[r->count++] = r->turn[at];
		r->turn[at] = w;
	}
	return next_ns;
}

static void wait_for_ready(struct reactor *r)
{
	uint64_t next_ns;

	while (next_ns = collect(r), !r->count) {
		for (const struct watch *w = r->watches; w; w = w->next)
			if (w->fd >= 0 && !find(w->fd))
				event_tell(w->fd, &r->waiter);
		r->waiter = machine_self();
		machine_block(next_ns);
		r->waiter = NULL;
	}
}

SEAM(bool, reactor_run, struct reactor *r, bool may_block)
{
	CALLED(reactor_run);
	machine_pay(syscall, 1);
	if (may_block)
		wait_for_ready(r);
	else
		collect(r);
	for (unsigned i = 0; i < r->count; i++) {
		struct watch *w = r->turn[i];

		if (!w)
			continue;
		if (w->fd < 0)
			w->due_ns = MACHINE_FOREVER;
		w->of->ready(w->of->arg);
	}
	r->count = 0;
	return true;
}

static int init(struct reactor_watch *of, struct reactor *r, int fd, bool for_writing,
                void (*ready)(void *arg), void *arg)
{
	struct watch *w = calloc(1, sizeof *w);

	if (!w)
		abort();
	*w = (struct watch){ .reactor = r,
		             .of = of,
		             .next = r->watches,
		             .for_writing = for_writing,
		             .fd = fd,
		             .due_ns = MACHINE_FOREVER };
	r->watches = w;
	*of = (struct reactor_watch){ .handle = w, .ready = ready, .arg = arg };
	return 0;
}

SEAM(int, reactor_watch_init, struct reactor_watch *w, struct reactor *r, int fd, bool for_writing,
     void (*ready)(void *arg), void *arg)
{
	CALLED(reactor_watch_init);
	return init(w, r, fd, for_writing, ready, arg);
}

SEAM(int, reactor_timer_init, struct reactor_watch *w, struct reactor *r, void (*fired)(void *arg),
     void *arg)
{
	CALLED(reactor_timer_init);
	return init(w, r, -1, false, fired, arg);
}

/* It is not called any more in this turn. */
static void forget(struct watch *w)
{
	for (unsigned i = 0; i < w->reactor->count; i++)
		if (w->reactor->turn[i] == w)
			w->reactor->turn[i] = NULL;
}

SEAM(void, reactor_watch_fini, struct reactor_watch *of)
{
	struct watch *w = of->handle;

	CALLED(reactor_watch_fini);
	if (!w)
		return;
	struct watch **at = &w->reactor->watches;

	forget(w);
	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	free(w);
	of->handle = NULL;
}

SEAM(int, reactor_watch_on, struct reactor_watch *of)
{
	CALLED(reactor_watch_on);
	of->is_on = true;
	return 0;
}

SEAM(void, reactor_watch_off, struct reactor_watch *of)
{
	CALLED(reactor_watch_off);
	if (of->is_on)
		forget(of->handle);
	of->is_on = false;
}

SEAM(int, reactor_timer_set, struct reactor_watch *of, uint64_t delay_ns)
{
	struct watch *w = of->handle;

	CALLED(reactor_timer_set);
	forget(w);
	w->due_ns = machine_now() + delay_ns;
	return 0;
}

/* ---- the daemon's calls ---- */

static int close_socket(int fd)
{
	struct socket *s = socket_of(fd);

	for (const struct reactor *r = reactors; r; r = r->next)
		for (const struct watch *w = r->watches; w; w = w->next)
			if (w->fd == fd)
				FAIL("a socket is closed before its watch ends");
	sockets[fd - DESCRIPTORS_OF_SOCKETS] = NULL;
	tell("socket %d is closed%s", fd - DESCRIPTORS_OF_SOCKETS,
	     s->size ? ", with unread bytes" : "");
	drop(s);
	return 0;
}

static int poll_socket(struct pollfd *p, int ms)
{
	const struct socket *s = socket_of(p->fd);
	bool has_gone = s->is_reset || (s->has_end && s->is_shut);

	assert(ms == 0);
	machine_pay(syscall, 1);
	p->revents = (short)((s->is_reset ? POLLERR : 0) | (has_gone ? POLLHUP : 0) |
	                     (s->has_end ? p->events & POLLRDHUP : 0));
	return p->revents != 0;
}

DESCRIPTORS(connections, .first = DESCRIPTORS_OF_SOCKETS, .close = close_socket,
            .poll = poll_socket)

SEAM(int, socket, int domain, int type, int protocol)
{
	CALLED(socket);
	(void)type, (void)protocol;
	assert(domain == AF_INET);
	return add(new_socket());
}

SEAM(int, bind, int fd, const struct sockaddr *address, socklen_t length)
{
	CALLED(bind);
	memcpy(&socket_of(fd)->address, address, length);
	if (!socket_of(fd)->address.sin_port)
		socket_of(fd)->address.sin_port = htons(FIRST_PORT);
	return 0;
}

SEAM(int, listen, int fd, int backlog)
{
	CALLED(listen);
	(void)backlog;
	socket_of(fd)->listens = true;
	return 0;
}

SEAM(int, getsockname, int fd, struct sockaddr *address, socklen_t *length)
{
	CALLED(getsockname);
	memcpy(address, &socket_of(fd)->address, sizeof socket_of(fd)->address);
	*length = sizeof socket_of(fd)->address;
	return 0;
}

SEAM(int, setsockopt, int fd, int level, int option, const void *value, socklen_t length)
{
	CALLED(setsockopt);
	(void)level, (void)option, (void)value, (void)length;
	socket_of(fd);
	return 0;
}

SEAM(int, accept4, int fd, struct sockaddr *address, socklen_t *length, int flags)
{
	struct socket *s = socket_of(fd);

	CALLED(accept4);
	(void)flags;
	if (!s->listens)
		return fail(EINVAL);
	if (is_unlucky())
		return fail((int[]){ EINTR, ECONNABORTED, EMFILE, EPROTO }[draw(4)]);
	if (!s->queued)
		return fail(EAGAIN);
	struct socket *c = s->queue[0];

	s->queued--;
	for (unsigned i = 0; i < s->queued; i++)
		s->queue[i] = s->queue[i + 1];
	memcpy(address, &c->address, sizeof c->address);
	*length = sizeof c->address;
	fd = add(c);
	tell("socket %d is accepted, of %#x", fd - DESCRIPTORS_OF_SOCKETS,
	     ntohl(c->address.sin_addr.s_addr));
	return fd;
}

SEAM(int, shutdown, int fd, int how)
{
	struct socket *s = socket_of(fd);

	CALLED(shutdown);
	if (s->listens) {
		s->listens = false;
		for (unsigned i = 0; i < s->queued; i++)
			drop(s->queue[i]);
		s->queued = 0;
		return 0;
	}
	if (!s->data) /* another thread has shut this listener */
		return fail(ENOTCONN);
	assert(how == SHUT_WR);
	net_shut(s);
	return 0;
}

SEAM(ssize_t, recv, int fd, void *to, size_t size, int flags)
{
	struct socket *s = socket_of(fd);

	CALLED(recv);
	if (is_unlucky())
		return fail(EINTR);
	if (s->is_reset)
		return fail(ECONNRESET);
	if (!s->size)
		return s->has_end ? 0 : fail(EAGAIN);
	size = size < s->size ? size : s->size;
	if (flags & MSG_PEEK) {
		memcpy(to, s->data, size);
		return (ssize_t)size;
	}
	if (draw(4) == 0)
		size = 1 + draw(size);
	take(s, flags & MSG_TRUNC ? NULL : to, size);
	return (ssize_t)size;
}

/* No other thread runs before it returns. */
static ssize_t send_some(struct socket *s, const void *data, size_t size)
{
	if (s->is_reset)
		return fail(ECONNRESET);
	if (s->is_shut)
		return fail(EPIPE);
	if (!s->peer) { /* the first bytes after its end are answered by a reset */
		reset(s);
		return (ssize_t)size;
	}
	if (s->peer->size == s->peer->room)
		return fail(EAGAIN);
	return (ssize_t)put(s, data, size < 2 || draw(4) ? size : 1 + draw(size));
}

SEAM(ssize_t, send, int fd, const void *data, size_t size, int flags)
{
	CALLED(send);
	(void)flags;
	return is_unlucky() ? fail(EINTR) : send_some(socket_of(fd), data, size);
}

SEAM(ssize_t, writev, int fd, const struct iovec *iov, int count)
{
	static char all[1 << 20];
	size_t size = 0;

	CALLED(writev);
	if (is_unlucky())
		return fail(EINTR);
	for (int i = 0; i < count; i++) {
		assert(size + iov[i].iov_len <= sizeof all);
		if (iov[i].iov_len)
			memcpy(all + size, iov[i].iov_base, iov[i].iov_len);
		size += iov[i].iov_len;
	}
	return send_some(socket_of(fd), all, size);
}

SEAM(ssize_t, sendfile, int to, int from, off_t *at, size_t size)
{
	char *piece;

	CALLED(sendfile);
	if (is_unlucky())
		return fail(EINTR);
	size = size < ROOM_MAX ? size : ROOM_MAX;
	piece = malloc(size);
	if (!piece)
		abort();
	ssize_t n = pread(from, piece, size, *at);

	if (n > 0)
		n = send_some(socket_of(to), piece, (size_t)n);
	if (n > 0)
		*at += n;
	free(piece);
	return n;
}

SEAM(int, ioctl, int fd, unsigned long request, ...)
{
	const struct socket *s = find(fd);
	va_list args;

	CALLED(ioctl);
	va_start(args, request);
	int *value = va_arg(args, int *);

	va_end(args);
	if (!s)
		return fail(ENOTTY);
	if (request == FIONREAD)
		*value = (int)s->size;
	else if (request == SIOCOUTQ)
		*value = s->peer && s->peer->size > s->peer->window
		                 ? (int)(s->peer->size - s->peer->window)
		                 : 0;
	else
		return fail(EINVAL);
	return 0;
}
