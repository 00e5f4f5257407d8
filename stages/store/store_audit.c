/*
 * store_audit.c - darkroomd store check: reads every file, and compares it with its checksum.
 *
 * The checksums are those of image.json, which has one of its own. Without it (it is damaged), the
 * attributes of the files serve. A running daemon may add, remove and remake images: what is found
 * wrong with an image counts only if its directory is still the same afterwards. Main thread.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit_report.h"
#include "store_commands.h"
#include "store_find.h"
#include "store_path.h"
#include "store_query.h"
#include "stored_image.h"
#include "stored_info.h"

#define SUFFIX ".jpg"
#define FILE_NAME_MAX (CONF_NAME_MAX + sizeof SUFFIX)

struct audit {
	struct audit_report report;
	char data[STORED_IMAGE_MAX + 1];
	struct stored_info info;
	bool knows_files; /* image.json is good, so info lists all files */
	bool has_seen[CONF_VARIANT_MAX + 1];
};

static volatile sig_atomic_t is_interrupted;

static void interrupt(int signal)
{
	(void)signal;
	is_interrupted = true;
}

/* ---- one file ---- */

/* Reads the file from the disk, not from memory that may hold an older copy. Returns 0 or -errno.
 */
static int sum_file(struct audit *a, int fd, char sum[CHECKSUM_LENGTH + 1], uint64_t *size)
{
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	int err = checksum_of_file(fd, sum, size);

	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	audit_report_file(&a->report, *size);
	return err;
}

/* Compares an open file. expected: what image.json says, or NULL. */
static void compare(struct audit *a, const char *name, int fd, const struct stored_file *expected)
{
	char sum[CHECKSUM_LENGTH + 1], tag[STORE_TAG_MAX];
	const char *wanted = expected ? expected->sum : "";
	uint64_t size;
	int err = sum_file(a, fd, sum, &size);

	store_tag(fd, tag);
	if (!wanted[0] && strlen(tag) == CHECKSUM_LENGTH)
		wanted = tag;
	if (err)
		audit_report_problem(&a->report, name, "unreadable");
	else if (expected && size < expected->bytes)
		audit_report_problem(&a->report, name, "truncated");
	else if ((wanted[0] && strcmp(sum, wanted) != 0) || (expected && size != expected->bytes))
		audit_report_problem(&a->report, name, "rotten");
	else if (!wanted[0])
		a->report.unverified++;
}

/* Writes the name of a file of image.json. */
static void name_file(const struct stored_file *file, char name[FILE_NAME_MAX])
{
	snprintf(name, FILE_NAME_MAX, "%s" SUFFIX, file->name);
}

/* Finds the file in image.json, and notes that it exists. */
static const struct stored_file *find(struct audit *a, const char *name)
{
	char known[FILE_NAME_MAX];

	for (unsigned i = 0; i < a->info.file_count; i++) {
		name_file(&a->info.file[i], known);
		if (strcmp(name, known) == 0) {
			a->has_seen[i] = true;
			return &a->info.file[i];
		}
	}
	return NULL;
}

/* ---- one image ---- */

/* Reads image.json into a->info. */
static void check_document(struct audit *a, int dir_fd)
{
	char own[CHECKSUM_LENGTH + 1], sum[CHECKSUM_LENGTH + 1], tag[STORE_TAG_MAX];
	uint64_t size;
	int fd = openat(dir_fd, STORED_IMAGE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	a->knows_files = false;
	a->info.file_count = 0;
	if (fd < 0) {
		audit_report_problem(&a->report, STORED_IMAGE,
		                     errno == ENOENT ? "missing" : "unreadable");
		return;
	}
	int err = sum_file(a, fd, sum, &size);
	int length = err ? err : stored_image_read(fd, a->data);

	store_tag(fd, tag);
	close(fd);
	if (length < 0 && length != -EFBIG) {
		audit_report_problem(&a->report, STORED_IMAGE, "unreadable");
		return;
	}
	a->knows_files = length >= 0 && !stored_info_read(&a->info, a->data, (size_t)length) &&
	                 (strlen(tag) != CHECKSUM_LENGTH || strcmp(tag, sum) == 0);
	if (a->knows_files && a->info.has_record) {
		checksum_of(a->data, a->info.own_sum_at, own);
		a->knows_files = strcmp(own, a->info.own_sum) == 0;
	} else if (a->knows_files) {
		a->report.unverified++;
	}
	if (!a->knows_files) {
		a->info.file_count = 0;
		audit_report_problem(&a->report, STORED_IMAGE, "rotten");
	}
}

static void check_entry(struct audit *a, int dir_fd, const char *name)
{
	const struct stored_file *expected = find(a, name);
	struct stat st;
	int fd = -1;

	/* Earlier versions kept the original, and did not name it. */
	bool is_known = expected || (!a->info.has_record && strcmp(name, STORE_ORIGINAL) == 0);

	if (!is_known && a->knows_files) {
		audit_report_problem(&a->report, name, "stray");
		return;
	}
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
		fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		audit_report_problem(&a->report, name, "unreadable");
		return;
	}
	compare(a, name, fd, expected);
	close(fd);
}

/* Owns dir_fd. */
static void check_files(struct audit *a, int dir_fd)
{
	DIR *dir = fdopendir(dir_fd);
	const struct dirent *entry;
	char name[FILE_NAME_MAX];

	if (!dir) {
		close(dir_fd);
		audit_report_problem(&a->report, "", "unreadable");
		return;
	}
	memset(a->has_seen, 0, sizeof a->has_seen);
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
		    strcmp(entry->d_name, STORED_IMAGE) != 0)
			check_entry(a, dirfd(dir), entry->d_name);
	closedir(dir);
	for (unsigned i = 0; i < a->info.file_count; i++) {
		name_file(&a->info.file[i], name);
		if (!a->has_seen[i])
			audit_report_problem(&a->report, name, "missing");
	}
}

static ino_t inode_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : st.st_ino;
}

/* Returns whether the image was replaced or removed since its directory had that inode. Sets
 * *is_there. */
static bool has_changed(struct store *s, const char *id, ino_t inode, bool *is_there)
{
	int fd = store_open_directory(s, id);
	bool is_other = fd < 0 || inode_of(fd) != inode;

	*is_there = fd >= 0;
	if (fd >= 0)
		close(fd);
	return is_other;
}

static int check_image(struct store_query *q, const char *id, void *arg)
{
	struct audit *a = arg;
	int fd = store_open_directory(&q->store, id);
	bool is_there;

	if (fd == -ENOENT && !q->word_count && !q->ids_path)
		return 0; /* removed since it was listed */
	audit_report_begin(&a->report, id);
	if (fd == -ENOENT) {
		audit_report_problem(&a->report, "", "missing");
		return audit_report_end(&a->report, q, true);
	}
	if (fd < 0)
		return store_query_fail(id, fd);
	ino_t inode = inode_of(fd);

	check_document(a, fd);
	check_files(a, fd);
	if (has_changed(&q->store, id, inode, &is_there) && is_there &&
	    a->report.problem_count > 0) {
		a->report.images--; /* it was remade meanwhile */
		return check_image(q, id, arg);
	}
	int status = audit_report_end(&a->report, q, is_there);

	return status ? status : is_interrupted ? AUDIT_INTERRUPTED : 0;
}

int store_audit(struct store_query *q)
{
	static struct audit a;
	const struct sigaction action = { .sa_handler = interrupt };

	memset(&a, 0, sizeof a);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	int status = audit_report_start(&a.report, q);

	if (!status)
		status = store_query_each(q, check_image, &a);
	return audit_report_finish(&a.report, q, status);
}
