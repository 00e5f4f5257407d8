/* exchange.c - what a client sends, and the answers that it reads. */
#include "exchange.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "client_acts.h"
#include "disk.h"
#include "machine.h"

#define LOOPBACK 0x7f000000u
#define ELSEWHERE 0x0a000000u

bool is_of_this_machine(const struct client *c)
{
	return c->number % 2;
}

void put_bytes(struct client *c, const void *data, size_t size)
{
	assert(c->size + size <= REQUEST_MAX);
	memcpy(c->request + c->size, data, size);
	c->size += size;
}

void put_text(struct client *c, const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	int length = vsnprintf(line, sizeof line, format, args);

	va_end(args);
	assert(length >= 0 && (size_t)length < sizeof line);
	put_bytes(c, line, (size_t)length);
}

void begin_request(struct client *c, const char *method, const char *path)
{
	c->size = 0;
	put_text(c, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\n", method, path);
}

void forget_socket(struct client *c)
{
	if (c->socket)
		net_close(c->socket);
	c->socket = NULL;
	c->come = c->answer_size = 0;
}

void need_socket(struct client *c, unsigned port)
{
	if (c->socket)
		return;
	c->is_used = false;
	while (!(c->socket = net_connect(port, (is_of_this_machine(c) ? LOOPBACK : ELSEWHERE) +
	                                               c->number)))
		machine_block(machine_now() + NS_PER_MS);
}

void pause_for(uint64_t max_ns)
{
	machine_block(machine_now() + 1 + draw(max_ns));
}

bool send_pieces(struct client *c, size_t size, uint64_t pause_ns, uint64_t until_ns)
{
	for (size_t at = 0, n; at < size; at += n) {
		n = draw(3) ? size - at : 1 + draw(size - at);
		if (at)
			pause_for(pause_ns);
		if (!net_send(c->socket, c->request + at, n, until_ns))
			return false;
	}
	return true;
}

bool clients_are_crowded;

const char *const outcomes[] = { "it is there", "there is none", "it ends early", "it is late" };

const char *answer_field(const struct client *c, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = c->in; at < c->in + c->head_size - 2;) {
		at = strstr(at, "\r\n") + 2;
		if (strncasecmp(at, name, length) == 0 && at[length] == ':')
			return at + length + 2;
	}
	return NULL;
}

enum outcome receive(struct client *c, uint64_t until_ns)
{
	size_t size = ANSWER_MAX - 1 - c->come;
	enum net_result result = net_receive(c->socket, c->in + c->come, &size, until_ns);

	if (result == NET_LATE)
		return LATE;
	if (result != NET_DATA)
		return c->come ? BROKEN : CLOSED;
	c->come += size;
	c->in[c->come] = '\0';
	assert(c->come < ANSWER_MAX - 1);
	return ANSWERED;
}

/* Forgets the last answer: what came behind it is the next one. */
static void next_answer(struct client *c)
{
	c->come -= c->answer_size;
	memmove(c->in, c->in + c->answer_size, c->come);
	c->answer_size = c->body_size = 0;
	c->status = 0;
}

static enum outcome read_head(struct client *c, uint64_t until_ns)
{
	const char *end;

	while (c->in[c->come] = '\0', !(end = strstr(c->in, "\r\n\r\n"))) {
		enum outcome outcome = receive(c, until_ns);

		if (outcome != ANSWERED)
			return outcome;
	}
	c->head_size = c->answer_size = (size_t)(end + 4 - c->in);
	if (sscanf(c->in, "HTTP/1.1 %3u ", &c->status) != 1 || c->status < 100)
		FAIL("an answer begins with: %.40s", c->in);
	return ANSWERED;
}

enum outcome read_answer(struct client *c, bool is_head, uint64_t until_ns)
{
	enum outcome outcome;

	do {
		next_answer(c);
		outcome = read_head(c, until_ns);
	} while (outcome == ANSWERED && c->status < 200);
	if (outcome != ANSWERED)
		return outcome;
	const char *length = answer_field(c, "Content-Length");

	if (!length && c->status != 204 && c->status != 304)
		FAIL("an answer without a length: %.200s", c->in);
	c->body_size = length && !is_head && c->status != 304 ? strtoul(length, NULL, 10) : 0;
	while (c->come < c->head_size + c->body_size) {
		outcome = receive(c, until_ns);
		if (outcome != ANSWERED)
			return outcome == LATE ? LATE : BROKEN;
	}
	c->body = c->in + c->head_size;
	c->answer_size = c->head_size + c->body_size;
	if (!answer_field(c, "X-Request-Id") || !answer_field(c, "Date"))
		FAIL("an answer lacks a field: %.200s", c->in);
	return ANSWERED;
}

void end_exchange(struct client *c)
{
	const char *connection = answer_field(c, "Connection");

	c->is_used = true;
	if ((connection && strncmp(connection, "close", 5) == 0) || draw(8) == 0)
		forget_socket(c);
}

/* Returns whether the daemon had no room for the connection. */
static bool was_refused(const struct client *c)
{
	return c->status == 503 && strstr(c->body, "limits.connections");
}

void exchange(struct client *c, bool is_head)
{
	uint64_t last_ns = machine_now() + ANSWER_NS;

	for (;;) {
		bool was_used = c->socket && c->is_used;
		uint64_t faults = disk.faults_seen, until_ns = machine_now() + ANSWER_NS;

		need_socket(c, PORT);
		bool is_sent = send_pieces(c, c->size, 20 * NS_PER_MS, until_ns);
		enum outcome outcome = read_answer(c, is_head, until_ns);

		tell("client %u: %.*s: %u%s", c->number, (int)strcspn(c->request, "\r"), c->request,
		     c->status, outcome == ANSWERED ? "" : ", no answer");
		if (outcome == ANSWERED && !was_refused(c)) {
			end_exchange(c);
			return;
		}
		if ((outcome != ANSWERED &&
		     !(outcome == CLOSED && (was_used || clients_are_crowded)) &&
		     !(outcome == BROKEN && disk.faults_seen != faults)) ||
		    machine_now() > last_ns)
			FAIL("client %u: %.*s: the answer: %s%s", c->number,
			     (int)strcspn(c->request, "\r"), c->request,
			     outcome == ANSWERED ? "503 for a minute" : outcomes[outcome],
			     is_sent ? "" : ", and the request could not be sent");
		forget_socket(c);
		pause_for(100 * NS_PER_MS);
	}
}
