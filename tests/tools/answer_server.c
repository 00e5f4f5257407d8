/*
 * answer_server.c - answers every request after a known delay, to check a load generator with.
 *
 * One thread with epoll. Requests have a Content-Length; a connection has one request at a time.
 * Bodies are discarded in the kernel. The first line of standard output is the port. A signal ends
 * the server.
 *
 * usage: answer_server [-d MS,MS,...] [-s START_MS:LENGTH_MS] [-a KIND]
 *
 *   -d  delays, dealt to the requests like shuffled cards. A multiple of as many requests gets each
 *       delay equally often. Default: answers at once
 *   -s  stall: the process does nothing for LENGTH from START after the first request on
 *   -a  what it answers, see answers[]
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"

#define FDS_MAX 20000
#define DELAYS_MAX 4096
#define HEAD_SIZE 8192
#define EVENTS_MAX 256

static const struct answer {
	const char *kind, *text;
	bool closes;
} answers[] = {
	{ "plain", "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}", false },
	{ "chunked",
	  "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	  "3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nX: y\r\n\r\n",
	  false },
	{ "until-close", "HTTP/1.0 200 OK\r\n\r\nuntil the end", true },
	{ "close", "HTTP/1.1 201 Created\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}",
	  true },
	{ "short", "HTTP/1.1 201 Created\r\nContent-Length: 20\r\n\r\n{}", true },
	{ "nothing", "", true },
	{ "garbage", "220 smtp.example.org ESMTP\r\n\r\n", true },
	{ "error", "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n", false },
	{ "silent", "", false },
	/* a variant that is not a JPEG, and one on another server */
	{ "no-picture",
	  "HTTP/1.1 201 Created\r\nContent-Type: image/jpeg\r\nContent-Length: 71\r\n\r\n"
	  "{\"images\":[{\"variants\":{\"a\":{\"url\":\"/a.jpg\",\"width\":10,\"height\":10}}}]}",
	  false },
	{ "elsewhere",
	  "HTTP/1.1 201 Created\r\nContent-Length: 85\r\n\r\n"
	  "{\"images\":[{\"variants\":{\"a\":{\"url\":\"http://example.org/a\","
	  "\"width\":10,\"height\":10}}}]}",
	  false },
	{ "no-json", "HTTP/1.1 201 Created\r\nContent-Length: 12\r\n\r\n{\"images\":[}", false },
};

struct client {
	char head[HEAD_SIZE];
	size_t length; /* bytes of the head */
	uint64_t left; /* of the body */
	bool has_head;
	bool is_waiting; /* for its answer, in the heap */
	bool is_gone;    /* sent something or closed meanwhile */
	uint64_t due_ns;
};

static struct client *clients[FDS_MAX];
static int heap[FDS_MAX]; /* descriptors, with the earliest due_ns at the root */
static unsigned heap_count;
static uint64_t delays_ns[DELAYS_MAX];
static unsigned delay_count, delays_dealt;
static uint64_t stall_start_ns, stall_length_ns, first_ns;
static const struct answer *answer = &answers[0];

/* Deals the next delay and shuffles after the last one. The order is the same in each run. */
static uint64_t deal_delay(void)
{
	static uint64_t state = 1;

	for (unsigned i = delays_dealt % delay_count == 0 ? delay_count : 0; i > 1; i--) {
		unsigned k;
		uint64_t delay = delays_ns[i - 1];

		state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		k = (unsigned)(state >> 33) % i;
		delays_ns[i - 1] = delays_ns[k];
		delays_ns[k] = delay;
	}
	return delays_ns[delays_dealt++ % delay_count];
}

/* ---- waiting clients in a binary heap ---- */

static bool is_before(unsigned a, unsigned b)
{
	return clients[heap[a]]->due_ns < clients[heap[b]]->due_ns;
}

static void swap(unsigned a, unsigned b)
{
	int fd = heap[a];

	heap[a] = heap[b];
	heap[b] = fd;
}

static void heap_push(int fd)
{
	unsigned i = heap_count++;

	heap[i] = fd;
	for (; i > 0 && is_before(i, (i - 1) / 2); i = (i - 1) / 2)
		swap(i, (i - 1) / 2);
}

static int heap_pop(void)
{
	int fd = heap[0];
	unsigned i = 0;

	heap[0] = heap[--heap_count];
	for (;;) {
		unsigned child = 2 * i + 1;

		if (child + 1 < heap_count && is_before(child + 1, child))
			child++;
		if (child >= heap_count || !is_before(child, i))
			return fd;
		swap(i, child);
		i = child;
	}
}

/* ---- clients ---- */

static void forget(int fd)
{
	close(fd);
	free(clients[fd]);
	clients[fd] = NULL;
}

static void send_answer(int fd)
{
	struct client *c = clients[fd];
	size_t length = strlen(answer->text);

	if (c->is_gone ||
	    (length > 0 && send(fd, answer->text, length, MSG_NOSIGNAL) != (ssize_t)length) ||
	    answer->closes) {
		forget(fd);
		return;
	}
	c->is_waiting = false;
	c->has_head = false;
	c->length = 0;
}

static void take_request(int fd)
{
	if (first_ns == 0)
		first_ns = clock_ns();
	if (delay_count == 0) {
		send_answer(fd);
		return;
	}
	clients[fd]->due_ns = clock_ns() + deal_delay();
	clients[fd]->is_waiting = true;
	heap_push(fd);
}

/* Parses the length of the body. Returns false if the head is incomplete. */
static bool take_head(struct client *c)
{
	const char *end = memmem(c->head, c->length, "\r\n\r\n", 4), *field;
	size_t body;

	if (!end)
		return false;
	body = c->length - (size_t)(end + 4 - c->head);
	c->head[end - c->head] = '\0';
	field = strcasestr(c->head, "\r\nContent-Length:");
	c->left = field ? strtoull(field + 17, NULL, 10) : 0;
	c->left -= body < c->left ? body : c->left;
	c->has_head = true;
	return true;
}

/* Reads until the request is complete or no more data is available. */
static void receive(int fd)
{
	static char scratch[256 * 1024];
	struct client *c = clients[fd];

	for (;;) {
		ssize_t n = c->has_head
		                    ? recv(fd, scratch,
		                           c->left < sizeof scratch ? c->left : sizeof scratch,
		                           MSG_TRUNC)
		                    : recv(fd, c->head + c->length, HEAD_SIZE - 1 - c->length, 0);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			forget(fd);
			return;
		}
		if (c->has_head)
			c->left -= (uint64_t)n;
		else
			c->length += (size_t)n;
		if ((c->has_head || take_head(c)) && c->left == 0) {
			take_request(fd);
			return;
		}
	}
}

static void accept_all(int listener, int epoll)
{
	for (;;) {
		int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), on = 1;
		struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

		if (fd < 0)
			return;
		if (fd >= FDS_MAX || !(clients[fd] = calloc(1, sizeof(struct client)))) {
			close(fd);
			continue;
		}
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
		if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0)
			forget(fd);
	}
}

static void handle(int epoll, int fd)
{
	struct client *c = clients[fd];

	if (!c->is_waiting) {
		receive(fd);
		return;
	}
	c->is_gone = true; /* a client must not send anything before its answer */
	epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL);
}

/* ---- time ---- */

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / NS_PER_S),
		                  .tv_nsec = (long)(ns % NS_PER_S) };
}

/* Sleeps if it is time for the stall. Returns next_ns or the start of the stall, whichever is
 * earlier. */
static uint64_t stall(uint64_t next_ns)
{
	uint64_t start_ns = first_ns + stall_start_ns;
	struct timespec end = timespec_of(start_ns + stall_length_ns);

	if (stall_length_ns == 0 || first_ns == 0)
		return next_ns;
	if (clock_ns() < start_ns)
		return start_ns < next_ns ? start_ns : next_ns;
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL);
	stall_length_ns = 0;
	return next_ns;
}

_Noreturn static void serve(int listener, int epoll)
{
	struct epoll_event events[EVENTS_MAX];

	for (;;) {
		uint64_t next_ns = stall(heap_count > 0 ? clients[heap[0]]->due_ns : UINT64_MAX),
			 now_ns = clock_ns();
		struct timespec wait = timespec_of(next_ns > now_ns ? next_ns - now_ns : 0);
		int n = epoll_pwait2(epoll, events, EVENTS_MAX,
		                     next_ns == UINT64_MAX ? NULL : &wait, NULL);

		for (int i = 0; i < n; i++) {
			if (events[i].data.fd == listener)
				accept_all(listener, epoll);
			else
				handle(epoll, events[i].data.fd);
		}
		while (heap_count > 0 && clients[heap[0]]->due_ns <= clock_ns())
			send_answer(heap_pop());
	}
}

/* ---- start ---- */

static void parse_delays(char *text)
{
	for (char *part = strtok(text, ","); part && delay_count < DELAYS_MAX;
	     part = strtok(NULL, ","))
		delays_ns[delay_count++] = (uint64_t)(strtod(part, NULL) * 1e6);
}

static bool choose_answer(const char *kind)
{
	for (size_t i = 0; i < COUNT_OF(answers); i++) {
		if (strcmp(answers[i].kind, kind) == 0) {
			answer = &answers[i];
			return true;
		}
	}
	return false;
}

static bool parse_options(int argc, char **argv)
{
	int option;
	char *end;

	while ((option = getopt(argc, argv, "d:s:a:")) != -1) {
		switch (option) {
		case 'd':
			parse_delays(optarg);
			break;
		case 's':
			stall_start_ns = strtoull(optarg, &end, 10) * NS_PER_MS;
			if (*end != ':')
				return false;
			stall_length_ns = strtoull(end + 1, NULL, 10) * NS_PER_MS;
			break;
		case 'a':
			if (!choose_answer(optarg))
				return false;
			break;
		default:
			return false;
		}
	}
	return optind == argc;
}

/* Returns the listening socket, or -1 with errno. */
static int listen_anywhere(in_port_t *port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) < 0 || listen(fd, 4096) < 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &length) < 0)
		return -1;
	*port = ntohs(address.sin_port);
	return fd;
}

int main(int argc, char **argv)
{
	int listener, epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = { .events = EPOLLIN };
	in_port_t port;

	if (!parse_options(argc, argv)) {
		fputs("usage: answer_server [-d MS,MS,...] [-s START_MS:LENGTH_MS] [-a KIND]\n",
		      stderr);
		return 2;
	}
	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	listener = event.data.fd = listen_anywhere(&port);
	if (listener < 0 || epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) < 0) {
		perror("answer_server");
		return 1;
	}
	printf("%u\n", (unsigned)port);
	fflush(stdout);
	serve(listener, epoll);
}
