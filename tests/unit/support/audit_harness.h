/*
 * audit_harness.h - store_audit.c with an image of two variants. The checksum of a file is its
 * first byte, 32 times; the document is one of the test.
 */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_AUDIT_HARNESS_H
#define DARKROOM_TESTS_UNIT_SUPPORT_AUDIT_HARNESS_H

#include "store_faults.h"

#include <signal.h>

#include "base/check.h"
#include "store/audit_report.h"
#include "store/store_commands.h"
#include "store/store_find.h"
#include "store/store_path.h"
#include "store/store_query.h"
#include "store/stored_image.h"
#include "store/stored_info.h"

#define ID "01K0000000000000000000000A"
#define EXIT_FAILED 7
#define EXIT_STARTED 3

static struct {
	char file[AUDIT_NAME_MAX];
	const char *kind;
} problems[32];
static unsigned problem_count, begins, ends, ended_problems, file_calls, advices, tags;
static uint64_t file_bytes;
static bool counted;
static int start_status, end_status, finished_with, failed_with;

static inline void fake_begin(struct audit_report *r, const char *id)
{
	assert_string_equal(id, ID);
	r->problem_count = 0;
	r->images++;
	begins++;
	problem_count = 0;
}

static inline void fake_problem(struct audit_report *r, const char *file, const char *kind)
{
	assert_true(problem_count < COUNT_OF(problems));
	snprintf(problems[problem_count].file, sizeof problems[0].file, "%s", file);
	problems[problem_count++].kind = kind;
	r->problem_count++;
}

static inline void fake_file(struct audit_report *r, uint64_t bytes)
{
	assert_non_null(r);
	file_calls++;
	file_bytes += bytes;
}

static inline int fake_end(struct audit_report *r, struct store_query *q, bool counts)
{
	assert_non_null(q);
	ended_problems = r->problem_count;
	counted = counts;
	ends++;
	return end_status;
}

static inline int fake_start(struct audit_report *r, struct store_query *q)
{
	assert_true(q && r->images == 0);
	return start_status;
}

static inline int fake_finish(struct audit_report *r, struct store_query *q, int status)
{
	assert_true(r && q);
	finished_with = status;
	return status ? EXIT_FAILURE : EXIT_SUCCESS;
}

static inline int fake_fail(const char *what, int err)
{
	assert_string_equal(what, ID);
	failed_with = err;
	return EXIT_FAILED;
}

/* ---- the image ---- */

static int root_fd;
static unsigned opens;
static int open_errors[4];        /* of each call; 0: it opens the image */
static const char *open_names[4]; /* of the directory; NULL: image */
static const char *file_tag;      /* of all files */
static struct stored_info document;
static int document_length, document_status;
static const char *document_sum; /* of the document without its own checksum */

static inline int fake_open_directory(struct store *s, const char *id)
{
	unsigned n = opens++;

	assert_non_null(s);
	assert_string_equal(id, ID);
	if (n < COUNT_OF(open_errors) && open_errors[n])
		return open_errors[n];
	return openat(root_fd, n < COUNT_OF(open_names) && open_names[n] ? open_names[n] : "image",
	              O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static inline int fake_sum(int fd, char sum[CHECKSUM_LENGTH + 1], uint64_t *size)
{
	char first = '\0';
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	assert_true(pread(fd, &first, 1, 0) >= 0);
	*size = (uint64_t)st.st_size;
	memset(sum, first, CHECKSUM_LENGTH);
	sum[CHECKSUM_LENGTH] = '\0';
	return first == '!' ? -EIO : 0;
}

static inline uint64_t fake_tag(int fd, char tag[STORE_TAG_MAX])
{
	assert_true(fd >= 0);
	snprintf(tag, STORE_TAG_MAX, "%s", file_tag);
	tags++;
	return 0;
}

static inline int fake_read_image(int fd, char data[STORED_IMAGE_MAX + 1])
{
	assert_true(fd >= 0);
	snprintf(data, STORED_IMAGE_MAX + 1, "text");
	return document_length;
}

static inline int fake_read_info(struct stored_info *info, const char *data, size_t length)
{
	assert_string_equal(data, "text");
	assert_int_equal(length, document_length);
	*info = document;
	return document_status;
}

static inline void fake_checksum(const void *data, size_t size, char sum[CHECKSUM_LENGTH + 1])
{
	assert_string_equal(data, "text");
	assert_int_equal(size, document.own_sum_at);
	snprintf(sum, CHECKSUM_LENGTH + 1, "%s", document_sum);
}

static inline int fake_advise(int fd, off_t at, off_t length, int advice)
{
	assert_true(fd >= 0);
	assert_int_equal(at, 0);
	assert_int_equal(length, 0);
	assert_int_equal(advice, POSIX_FADV_DONTNEED);
	advices++;
	return 0;
}

/* ---- the store ---- */

static unsigned each_calls, signals;
static void (*handler)(int);

static inline int fake_each(struct store_query *q,
                            int (*each)(struct store_query *q, const char *id, void *arg),
                            void *arg)
{
	each_calls++;
	return each(q, ID, arg);
}

static inline int fake_sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
	assert_null(old);
	handler = action->sa_handler;
	signals |= 1u << (unsigned)number;
	return 0;
}

#define audit_report_begin fake_begin
#define audit_report_problem fake_problem
#define audit_report_file fake_file
#define audit_report_end fake_end
#define audit_report_start fake_start
#define audit_report_finish fake_finish
#define store_query_fail fake_fail
#define store_query_each fake_each
#define store_open_directory fake_open_directory
#define checksum_of_file fake_sum
#define checksum_of fake_checksum
#define store_tag fake_tag
#define stored_image_read fake_read_image
#define stored_info_read fake_read_info
#define posix_fadvise fake_advise
#define sigaction(number, action, old) fake_sigaction(number, action, old)
#include "store/store_audit.c"
#undef sigaction

#define SUM_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define SUM_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define SUM_D "dddddddddddddddddddddddddddddddd" /* of image.json */

static struct audit audit;
static struct store_query query;
static unsigned descriptors;

/* An image of two variants. */
static inline int setup(void **state)
{
	(void)state;
	no_fault();
	snprintf(test_root, sizeof test_root, "/tmp/darkroom-audit-XXXXXX");
	if (!mkdtemp(test_root))
		return -1;
	shell("mkdir image other && printf aaaa >image/small.jpg && printf bb >image/large.jpg && "
	      "printf ddddd >image/image.json");
	root_fd = open(test_root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	memset(&audit, 0, sizeof audit);
	memset(open_errors, 0, sizeof open_errors);
	memset(open_names, 0, sizeof open_names);
	query = (struct store_query){ .limit = UINT64_MAX };
	problem_count = begins = ends = ended_problems = file_calls = advices = tags = opens = 0;
	each_calls = signals = 0;
	file_bytes = 0;
	start_status = end_status = finished_with = failed_with = 0;
	is_interrupted = 0;
	counted = false;
	file_tag = "1-2";
	document_length = 5;
	document_status = 0;
	document_sum = SUM_D;
	document = (struct stored_info){ .has_record = true, .file_count = 2, .own_sum_at = 3 };
	document.file[0] = (struct stored_file){ .name = "small", .bytes = 4, .sum = SUM_A };
	document.file[1] = (struct stored_file){ .name = "large", .bytes = 2, .sum = SUM_B };
	snprintf(document.own_sum, sizeof document.own_sum, "%s", SUM_D);
	descriptors = open_descriptors();
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	no_fault();
	assert_int_equal(open_descriptors(), descriptors);
	close(root_fd);
	remove_test_root();
	return 0;
}

/* Checks the image. Returns what check_image() does. */
static inline int check(void)
{
	opens = 0;
	return check_image(&query, ID, &audit);
}

/* Returns whether the image has exactly this problem. */
static inline bool has_only(const char *file, const char *kind)
{
	assert_int_equal(check(), 0);
	assert_int_equal(open_descriptors(), descriptors);
	return problem_count == 1 && strcmp(problems[0].file, file) == 0 &&
	       strcmp(problems[0].kind, kind) == 0 && ended_problems == 1 && counted;
}

static inline bool is_sound(void)
{
	assert_int_equal(check(), 0);
	assert_int_equal(open_descriptors(), descriptors);
	return problem_count == 0 && ended_problems == 0 && counted;
}

#endif
