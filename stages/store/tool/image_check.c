/* image_check.c - first image.json, then the files that it names, then those beside them. Main
 * thread. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "store/directory.h"
#include "store/store_find.h"
#include "store_query.h"

static void add_problem(struct image_check *c, const char *file, const char *kind)
{
	if (c->problem_count == IMAGE_PROBLEMS_MAX)
		return;
	struct image_problem *p = &c->problem[c->problem_count++];

	snprintf(p->file, sizeof p->file, "%s", file);
	p->kind = kind;
}

/* Opens the file. Returns a descriptor; -ENOENT; or another error, which is a problem. */
static int open_file(struct image_check *c, int dir_fd, const char *name)
{
	int fd = directory_open_file(dir_fd, name, O_RDONLY);

	if (fd < 0 && fd != -ENOENT)
		add_problem(c, name, "unreadable");
	return fd;
}

/* Reads the file: a check reads it from the disk, not from memory that may hold an older copy.
 * Returns 0 or -errno. */
static int sum_file(struct image_check *c, int fd, char sum[CHECKSUM_LENGTH + 1], uint64_t *size)
{
	if (!c->keeps_files)
		(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	int err = checksum_of_file(fd, sum, size);

	if (!c->keeps_files)
		(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	c->files++;
	c->bytes += *size;
	return err;
}

/* The file is read: keeps or closes it. */
static void end_file(struct image_check *c, const char *name, int fd, const char *sum,
                     uint64_t size)
{
	if (!c->keeps_files) {
		close(fd);
		return;
	}
	assert(c->file_count < STORED_FILES_MAX);
	snprintf(c->file[c->file_count].name, sizeof c->file[0].name, "%s", name);
	memcpy(c->file[c->file_count].sum, sum, sizeof c->file[0].sum);
	c->file[c->file_count].size = size;
	c->file[c->file_count++].fd = fd;
}

/* Compares a file. expected: what image.json says, or NULL. */
static void check_file(struct image_check *c, int dir_fd, const char *name,
                       const struct stored_file *expected)
{
	char sum[CHECKSUM_LENGTH + 1] = "", tag[STORE_TAG_MAX];
	int fd = open_file(c, dir_fd, name);
	uint64_t size;

	if (fd == -ENOENT && expected)
		add_problem(c, name, "missing");
	if (fd < 0)
		return;
	int err = sum_file(c, fd, sum, &size);
	const char *fault = err        ? "unreadable"
	                    : expected ? stored_file_fault(expected, size, sum)
	                               : NULL;

	store_tag(fd, tag);
	if (!fault && !(expected && expected->sum[0])) { /* the tag has the only checksum */
		if (strlen(tag) != CHECKSUM_LENGTH)
			c->unverified++;
		else if (strcmp(sum, tag) != 0)
			fault = "rotten";
	}
	if (fault)
		add_problem(c, name, fault);
	end_file(c, name, fd, sum, size);
}

/* Reads image.json into c->info. */
static void check_document(struct image_check *c, int dir_fd)
{
	char sum[CHECKSUM_LENGTH + 1] = "", tag[STORE_TAG_MAX];
	uint64_t size;
	int fd = open_file(c, dir_fd, STORED_IMAGE);

	c->knows_files = false;
	c->info.file_count = 0;
	if (fd == -ENOENT)
		add_problem(c, STORED_IMAGE, "missing");
	if (fd < 0)
		return;
	int err = sum_file(c, fd, sum, &size);
	int length = err ? err : stored_image_read(fd, c->data);
	bool is_read = length >= 0 || length == -EFBIG;

	store_tag(fd, tag);
	end_file(c, STORED_IMAGE, fd, sum, size);
	c->knows_files = length >= 0 && !stored_info_read(&c->info, c->data, (size_t)length) &&
	                 (strlen(tag) != CHECKSUM_LENGTH || strcmp(tag, sum) == 0) &&
	                 stored_info_is_sound(&c->info, c->data, c->id);
	if (!c->knows_files) {
		c->info.file_count = 0;
		add_problem(c, STORED_IMAGE, is_read ? "rotten" : "unreadable");
	} else if (!c->info.has_record) {
		c->unverified++;
	}
}

/* Earlier versions kept the original, and did not name it. */
static bool is_unnamed_original(const struct image_check *c, const char *name)
{
	return c->knows_files && !c->info.has_record && strcmp(name, STORE_ORIGINAL) == 0 &&
	       !stored_info_find(&c->info, STORE_ORIGINAL);
}

/* Without image.json, all files are compared. */
static void check_others(struct image_check *c, int dir_fd)
{
	DIR *dir = directory_list(dir_fd, ".");
	const char *name;

	if (!dir)
		add_problem(c, "", "unreadable");
	while (dir && (name = directory_next(dir)))
		if (strcmp(name, STORED_IMAGE) == 0 || stored_info_find(&c->info, name) ||
		    is_unnamed_original(c, name))
			continue;
		else if (c->knows_files)
			add_problem(c, name, "stray");
		else
			check_file(c, dir_fd, name, NULL);
	if (dir)
		closedir(dir);
}

int image_check(struct image_check *c, struct store *s, const char *id)
{
	bool is_there = true, has_moved = true;

	memcpy(c->id, id, sizeof c->id);
	for (unsigned i = 0; i < QUERY_ATTEMPTS_MAX && has_moved; i++) {
		int fd = is_there ? store_open_directory(s, id) : -ENOENT;

		c->problem_count = c->file_count = 0;
		c->files = c->bytes = c->unverified = 0;
		if (fd == -ENOENT)
			add_problem(c, "", "missing");
		if (fd < 0)
			return fd;
		check_document(c, fd);
		for (unsigned k = 0; k < c->info.file_count; k++)
			check_file(c, fd, c->info.file[k].name, &c->info.file[k]);
		if (is_unnamed_original(c, STORE_ORIGINAL))
			check_file(c, fd, STORE_ORIGINAL, NULL);
		if (!c->keeps_files)
			check_others(c, fd);
		has_moved = c->problem_count > 0 && store_has_moved(s, id, fd, &is_there);
		close(fd);
		if (has_moved)
			image_check_close(c);
	}
	return 0;
}

void image_check_close(struct image_check *c)
{
	while (c->file_count > 0)
		close(c->file[--c->file_count].fd);
}
