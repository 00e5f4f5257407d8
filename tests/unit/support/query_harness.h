/* query_harness.h - store_query.c with a store, a clock of the test, and standard error in a text.
 */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_QUERY_HARNESS_H
#define DARKROOM_TESTS_UNIT_SUPPORT_QUERY_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct timespec fake_time;

static int gettime_fake(clockid_t clock, struct timespec *to)
{
	assert_int_equal(clock, CLOCK_REALTIME);
	*to = fake_time;
	return 0;
}

static bool fails_malloc;
static unsigned page_reads;

static inline void *fault_malloc(size_t size)
{
	errno = ENOMEM;
	return fails_malloc ? NULL : malloc(size);
}

#include "store/store_page.h"

/* Pages have three images. */
static inline int read_small_page(int root_fd, struct store_page *p)
{
	page_reads++;
	p->max = p->max < 3 ? p->max : 3;
	return store_page_read(root_fd, p);
}

#define malloc fault_malloc
#define store_page_read read_small_page
#define clock_gettime gettime_fake
#include "store/store_query.c"
#undef malloc
#undef store_page_read

#include "store/store_path.h"

#define COUNT 7
#define NOW_MS (UINT64_C(1763800000) * MS_PER_S)

static struct conf conf;
static struct store_query query;
static char root[64], ids[COUNT][ULID_LENGTH + 1], out[16384];
static int saved_stderr;

static inline int ask_nobody(const struct conf *of, const char *line, struct text *answer)
{
	(void)of;
	(void)line;
	(void)answer;
	return -1;
}

static inline unsigned open_descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static inline void shell(const char *command)
{
	char line[1024];

	snprintf(line, sizeof line, "cd %s && %s", root, command);
	assert_int_equal(system(line), 0);
}

/* Images at 0, 1, ... s after NOW_MS, one of them as earlier versions made them. */
static inline int setup_all(void **state)
{
	struct store store;
	unsigned cleared;

	(void)state;
	snprintf(root, sizeof root, "/tmp/darkroom-query-XXXXXX");
	if (!mkdtemp(root) || store_open(&store, root, false, &cleared))
		return -1;
	store_close(&store);
	strcpy(conf.server.root, root);
	for (unsigned i = 0; i < COUNT; i++) {
		char command[128], path[STORE_PATH_MAX];

		ulid_bound(NOW_MS + i * MS_PER_S, 'A', ids[i]);
		store_image_path(path, i == 3 ? STORE_BY_TAIL : STORE_BY_TIME, ids[i], NULL);
		snprintf(command, sizeof command, "mkdir -p %s", path);
		shell(command);
	}
	return 0;
}

static inline int teardown_all(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof command, "rm -rf %s", root);
	return system(command);
}

/* Standard error goes to a file until catch_end(). */
static inline void catch_begin(void)
{
	char path[128];

	fflush(stderr);
	saved_stderr = dup(STDERR_FILENO);
	snprintf(path, sizeof path, "%s/stderr", root);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
	close(fd);
}

static inline void catch_end(void)
{
	fflush(stderr);
	ssize_t n = pread(STDERR_FILENO, out, sizeof out - 1, 0);

	out[n > 0 ? n : 0] = '\0';
	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
}

/* Opens a query of these words, separated by spaces. Returns the status. */
static inline int open_words(const char *text)
{
	static char words[2048];
	char *word[QUERY_WORDS_MAX + 9];
	size_t count = 0;

	snprintf(words, sizeof words, "%s", text);
	for (char *p = strtok(words, " "); p; p = strtok(NULL, " "))
		word[count++] = p;
	memset(&query, 0xff, sizeof query);
	catch_begin();
	int status = store_query_open(&query, &conf, ask_nobody, word, count);

	catch_end();
	assert_int_equal(status != 0, strlen(out) > 0);
	return status;
}

#endif
