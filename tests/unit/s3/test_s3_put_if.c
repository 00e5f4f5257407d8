/* test_s3_put_if.c - conditional requests to a server with prepared answers. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "s3/s3_objects.h"
#include "store/checksum.h"
#include "support/socket_fixture.h"

#define REQUEST_MAX 4096
#define ANSWERS_MAX 8
#define KEY "keys/x"
#define DATA "node 7\n"
#define DATA_HASH "dfb55d6e7109cfc13bb1451b03c640d806c081e9cf3f355992c9df4abc74038f"

/* An answer for each request; after the last one the thread ends. */
static struct server {
	int listener;
	pthread_t thread;
	const char *answer[ANSWERS_MAX]; /* "": the connection ends; NULL: no more */
	char request[ANSWERS_MAX][REQUEST_MAX];
	unsigned count;
} server;

static struct conf conf = {
	.store = { .s3_bucket = "photos", .s3_region = "r", .s3_timeout_ms = 5000 },
	.experiment = { .s3_connections = 1 }
};
static struct s3_client *client;
static char etag[S3_ETAG_MAX], got[S3_ETAG_MAX], stored[256], same[512], other[512];

/* Reads a request, whose body is DATA if it has one. Returns false at the connection's end. */
static bool read_request(int fd, char request[REQUEST_MAX])
{
	size_t length = 0;

	for (;;) {
		request[length] = '\0';
		const char *end = strstr(request, "\r\n\r\n");

		if (end && (strncmp(request, "PUT ", 4) != 0 ||
		            request + length - end == (ptrdiff_t)(4 + strlen(DATA))))
			return true;
		ssize_t n = read(fd, request + length, REQUEST_MAX - 1 - length);

		if (n <= 0)
			return false;
		length += (size_t)n;
	}
}

/* Answers the requests of a connection. */
static void serve_connection(int fd)
{
	while (server.answer[server.count] && read_request(fd, server.request[server.count])) {
		const char *answer = server.answer[server.count++];
		ssize_t length = (ssize_t)strlen(answer);

		if (!length || write(fd, answer, (size_t)length) != length)
			return;
	}
}

static void *serve(void *arg)
{
	(void)arg;
	while (server.answer[server.count]) {
		int fd = accept(server.listener, NULL, NULL);

		if (fd < 0)
			return NULL;
		serve_connection(fd);
		close(fd);
	}
	return NULL;
}

static int begin(void **state)
{
	struct sockaddr_in address = { 0 };
	socklen_t size = sizeof address;

	(void)state;
	memset(&server, 0, sizeof server);
	server.listener = socket_bound_to("127.0.0.1");
	assert_int_equal(getsockname(server.listener, (struct sockaddr *)&address, &size), 0);
	assert_int_equal(listen(server.listener, 4), 0);
	snprintf(conf.store.s3_endpoint, sizeof conf.store.s3_endpoint, "http://127.0.0.1:%u",
	         ntohs(address.sin_port));
	assert_int_equal(s3_client_open(&client, &conf), 0);
	assert_int_equal(s3_client_start(client), 0);
	atomic_store(&client->is_fit, true);
	return 0;
}

static int end(void **state)
{
	(void)state;
	s3_client_close(client);
	close(server.listener);
	return 0;
}

/* Starts the server, and puts DATA, or removes the object. */
static int run(const char *match, bool removes)
{
	assert_int_equal(pthread_create(&server.thread, NULL, serve, NULL), 0);
	int err = removes ? s3_remove(client, KEY, match)
	                  : s3_put_if(client, KEY, DATA, strlen(DATA), match, got);

	shutdown(server.listener, SHUT_RDWR);
	pthread_join(server.thread, NULL);
	return err;
}

static int put(const char *match)
{
	return run(match, false);
}

static const char *error(char text[256], const char *status, const char *code)
{
	char body[128];
	int n = snprintf(body, sizeof body, "<Error><Code>%s</Code></Error>", code);

	snprintf(text, 256, "HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s", status, n, body);
	return text;
}

static void a_new_object_is_stored(void **state)
{
	(void)state;
	server.answer[0] = stored;
	assert_int_equal(put("*"), 0);
	assert_string_equal(got, etag);
	assert_non_null(strstr(server.request[0], "PUT /photos/" KEY " HTTP/1.1\r\n"));
	assert_non_null(strstr(server.request[0], "\r\nif-none-match:*\r\n"));
	assert_non_null(strstr(server.request[0], "=host;if-none-match;x-amz-content-sha256;"));
	assert_non_null(strstr(server.request[0], "\r\nx-amz-content-sha256:" DATA_HASH "\r\n"));
	assert_null(strstr(server.request[0], "if-match"));
}

static void an_object_with_an_entity_tag_is_replaced(void **state)
{
	(void)state;
	server.answer[0] = stored;
	assert_int_equal(put("\"abc\""), 0);
	assert_string_equal(got, etag);
	assert_non_null(strstr(server.request[0], "\r\nif-match:\"abc\"\r\n"));
	assert_null(strstr(server.request[0], "if-none-match"));
}

static void a_condition_that_does_not_hold_is_told(void **state)
{
	static const struct {
		const char *status, *code;
		int err;
	} known[] = { { "412 x", "PreconditionFailed", -EEXIST },
		      { "404 x", "NoSuchKey", -ENOENT },
		      { "501 x", "NotImplemented", -EOPNOTSUPP } };
	const unsigned *i = *state;
	char text[256];

	server.answer[0] = error(text, known[*i].status, known[*i].code);
	server.answer[1] = known[*i].err == -EEXIST ? other : NULL;
	assert_int_equal(put("*"), known[*i].err);
	assert_int_equal(server.count, known[*i].err == -EEXIST ? 2 : 1);
}

static void an_entity_tag_is_tried_without_its_quotes(void **state)
{
	char text[256];

	(void)state;
	server.answer[0] = error(text, "412 x", "PreconditionFailed");
	server.answer[1] = other;
	server.answer[2] = stored;
	assert_int_equal(put("\"abc\""), 0);
	assert_non_null(strstr(server.request[2], "\r\nif-match:abc\r\n"));
}

/* Otherwise all tags would be put without quotes from then on, and no condition would hold. */
static void an_object_that_is_there_tells_nothing_of_quotes(void **state)
{
	char text[256];

	server.answer[0] = server.answer[2] = error(text, "412 x", "PreconditionFailed");
	server.answer[1] = other;
	server.answer[3] = same;
	assert_int_equal(put("\"abc\""), 0);
	end(state);
	begin(state);
	server.answer[0] = stored;
	assert_int_equal(put("\"abc\""), 0);
	assert_non_null(strstr(server.request[0], "\r\nif-match:\"abc\"\r\n"));
}

static void a_conflict_is_repeated(void **state)
{
	char text[256];

	(void)state;
	server.answer[0] = error(text, "409 x", "ConditionalRequestConflict");
	server.answer[1] = stored;
	assert_int_equal(put("*"), 0);
	assert_int_equal(server.count, 2);
}

static void conflicts_end(void **state)
{
	char text[256];

	(void)state;
	for (unsigned i = 0; i < S3_ATTEMPTS_MAX; i++)
		server.answer[i] = error(text, "409 x", "ConditionalRequestConflict");
	assert_int_equal(put("*"), -EAGAIN);
	assert_int_equal(server.count, S3_ATTEMPTS_MAX);
}

static void an_object_of_a_lost_answer_is_known(void **state)
{
	char text[256];

	(void)state;
	server.answer[0] = "";
	server.answer[1] = error(text, "412 x", "PreconditionFailed");
	server.answer[2] = same;
	assert_int_equal(put("*"), 0);
	assert_string_equal(got, etag);
	assert_int_equal(server.count, 3);
}

static void an_object_of_another_writer_is_known(void **state)
{
	char text[256];

	(void)state;
	server.answer[0] = "";
	server.answer[1] = error(text, "412 x", "PreconditionFailed");
	server.answer[2] = other;
	assert_int_equal(put("*"), -EEXIST);
}

static void the_body_of_an_answer_to_a_put_is_nothing(void **state)
{
	(void)state;
	server.answer[0] = "HTTP/1.1 200 x\r\nETag: \"7\"\r\nContent-Length: 4\r\n\r\nfine";
	assert_int_equal(put("*"), 0);
	assert_string_equal(got, etag);
}

/* A proxy that changes a body makes the entity tag weak, and no condition holds with a weak one. */
static void a_weak_entity_tag_is_taken_as_that_of_the_store(void **state)
{
	(void)state;
	server.answer[0] = "HTTP/1.1 200 x\r\nETag: W/\"7\"\r\nContent-Length: 0\r\n\r\n";
	assert_int_equal(put("*"), 0);
	assert_string_equal(got, etag);
}

static void an_object_that_is_gone_is_removed(void **state)
{
	char text[256];

	(void)state;
	server.answer[0] = error(text, "404 x", "NoSuchKey");
	assert_int_equal(run("", true), 0);
	assert_int_equal(server.count, 1);
	assert_int_equal(atomic_load(&client->counters.rejected), 0);
}

static void an_object_with_another_tag_is_not_removed(void **state)
{
	char text[256];

	(void)state;
	server.answer[0] = error(text, "412 x", "PreconditionFailed");
	assert_int_equal(run("\"abc\"", true), -EEXIST);
	assert_non_null(strstr(server.request[0], "\r\nif-match:\"abc\"\r\n"));
}

/* Writes what the server answers. */
static void make_answers(void)
{
	char sum[CHECKSUM_LENGTH + 1];

	snprintf(etag, sizeof etag, "\"7\"");
	snprintf(stored, sizeof stored, "HTTP/1.1 200 x\r\nETag: %s\r\nContent-Length: 0\r\n\r\n",
	         etag);
	checksum_of(DATA, strlen(DATA), sum);
	snprintf(same, sizeof same,
	         "HTTP/1.1 200 x\r\nETag: %s\r\nx-amz-meta-darkroom-tag: %s\r\n"
	         "Content-Length: %zu\r\n\r\n%s",
	         etag, sum, strlen(DATA), DATA);
	checksum_of("node 8\n", 7, sum);
	snprintf(other, sizeof other,
	         "HTTP/1.1 200 x\r\nETag: \"8\"\r\nx-amz-meta-darkroom-tag: %s\r\n"
	         "Content-Length: 7\r\n\r\nnode 8\n",
	         sum);
}

/* Writes the keys of the account. */
static void write_secret(void)
{
	static const char keys[] = "aws_access_key_id = i\naws_secret_access_key = s\n";
	int fd = memfd_create("keys", 0);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, keys, sizeof keys - 1), sizeof keys - 1);
	snprintf(conf.store.s3_credentials, sizeof conf.store.s3_credentials, "/proc/self/fd/%d",
	         fd);
}

int main(void)
{
	static unsigned first, second = 1, third = 2;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_new_object_is_stored, begin, end),
		cmocka_unit_test_setup_teardown(an_object_with_an_entity_tag_is_replaced, begin,
		                                end),
		cmocka_unit_test_prestate_setup_teardown(a_condition_that_does_not_hold_is_told,
		                                         begin, end, &first),
		cmocka_unit_test_prestate_setup_teardown(a_condition_that_does_not_hold_is_told,
		                                         begin, end, &second),
		cmocka_unit_test_prestate_setup_teardown(a_condition_that_does_not_hold_is_told,
		                                         begin, end, &third),
		cmocka_unit_test_setup_teardown(an_object_that_is_there_tells_nothing_of_quotes,
		                                begin, end),
		cmocka_unit_test_setup_teardown(an_entity_tag_is_tried_without_its_quotes, begin,
		                                end),
		cmocka_unit_test_setup_teardown(a_conflict_is_repeated, begin, end),
		cmocka_unit_test_setup_teardown(conflicts_end, begin, end),
		cmocka_unit_test_setup_teardown(an_object_of_a_lost_answer_is_known, begin, end),
		cmocka_unit_test_setup_teardown(an_object_of_another_writer_is_known, begin, end),
		cmocka_unit_test_setup_teardown(the_body_of_an_answer_to_a_put_is_nothing, begin,
		                                end),
		cmocka_unit_test_setup_teardown(a_weak_entity_tag_is_taken_as_that_of_the_store,
		                                begin, end),
		cmocka_unit_test_setup_teardown(an_object_that_is_gone_is_removed, begin, end),
		cmocka_unit_test_setup_teardown(an_object_with_another_tag_is_not_removed, begin,
		                                end),
	};

	make_answers();
	write_secret();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
