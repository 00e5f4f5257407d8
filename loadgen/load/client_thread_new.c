/* client_thread_new.c - makes and releases the clients of a thread. Main thread. */
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "client_thread.h"
#include "retry.h"
#include "verify.h"

static int init_clients(struct client_thread *t, unsigned first_index)
{
	bool verifies = t->run->args->verify;

	for (unsigned i = 0; i < t->client_count; i++) {
		struct client *c = &t->clients[i];

		*c = (struct client){ .connection = { .fd = -1,
			                              .epoll_fd = t->epoll_fd,
			                              .address = &t->run->address,
			                              .scratch = t->scratch },
			              .index = first_index + i };
		client_list_init(&c->link);
		c->verify = verifies ? verify_new(&t->run->args->url) : NULL;
		c->retry = t->run->args->retry_ns ? retry_new() : NULL;
		if ((verifies && !c->verify) || (t->run->args->retry_ns && !c->retry))
			return -1;
		t->free_clients[t->client_count - 1 - i] = c;
	}
	t->free_count = t->client_count;
	return 0;
}

struct client_thread *client_thread_new(struct client_run *run, unsigned client_count,
                                        unsigned first_index)
{
	struct client_thread *t = calloc(1, sizeof *t);
	struct epoll_event stop = { .events = EPOLLIN, .data.ptr = NULL };

	if (!t)
		return NULL;
	t->run = run;
	t->can_wait_exactly = true;
	client_list_init(&t->active);
	client_list_init(&t->thinking);
	client_list_init(&t->resting);
	t->clients = calloc(client_count, sizeof *t->clients);
	t->free_clients = calloc(client_count, sizeof(struct client *));
	t->scratch = malloc(CONNECTION_SCRATCH_SIZE);
	t->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (t->clients && t->free_clients && t->scratch && t->epoll_fd >= 0) {
		t->client_count = client_count;
		if (epoll_ctl(t->epoll_fd, EPOLL_CTL_ADD, run->stop_fd, &stop) == 0 &&
		    init_clients(t, first_index) == 0)
			return t;
	}
	client_thread_free(t);
	return NULL;
}

void client_thread_free(struct client_thread *t)
{
	if (!t)
		return;
	for (unsigned i = 0; i < t->client_count; i++) {
		connection_close(&t->clients[i].connection);
		verify_free(t->clients[i].verify);
		free(t->clients[i].retry);
	}
	if (t->epoll_fd >= 0)
		close(t->epoll_fd);
	free(t->scratch);
	free(t->free_clients);
	free(t->clients);
	request_records_fini(&t->records);
	free(t);
}
