/*
 * usage_file.c - one line for all, and one for each token: images, bytes, uploads of the day, and
 * the name behind "=".
 */
#include "usage_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "log/log.h"
#include "store_path.h"
#include "usage.h"

#define FORMAT "darkroom-usage 1 %" PRIu64 "\n"
#define TEMPORARY USAGE_FILE ".new"

/* Reads a token's line. Returns false if it is none. */
static bool read_line(struct usage *u, const char *line, bool is_today)
{
	struct usage_token t = { .name = "" };
	char name[USAGE_NAME_MAX] = "";

	static_assert(USAGE_NAME_MAX == 64, "the format has its length");
	if (sscanf(line, "%" SCNu64 " %" SCNu64 " %" SCNu64 " =%63s", &t.stored.images,
	           &t.stored.bytes, &t.uploads, name) < 3)
		return false;
	struct usage_token *of = usage_token(u, name);

	if (!name[0])
		u->all = t.stored;
	if (!of)
		return !name[0];
	of->stored = t.stored;
	of->uploads = is_today ? t.uploads : 0;
	return true;
}

static bool read_all(struct usage *u, FILE *f)
{
	char line[USAGE_NAME_MAX + 80];
	uint64_t day, lines = 0;
	bool is_good = fgets(line, sizeof line, f) && sscanf(line, FORMAT, &day) == 1;

	for (; is_good && fgets(line, sizeof line, f); lines++)
		is_good = strchr(line, '\n') && read_line(u, line, day == u->day);
	return is_good && lines > 0;
}

bool usage_file_read(struct usage *u, int root_fd)
{
	bool must_count = usage_file_take_recount(root_fd);
	int fd = openat(root_fd, USAGE_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	bool is_good = f && !must_count && read_all(u, f);

	if (f)
		fclose(f);
	else if (fd >= 0)
		close(fd);
	/* Durable, so that it does not return after a crash. */
	if (fd >= 0 && (unlinkat(root_fd, USAGE_FILE, 0) || fsync(root_fd)))
		is_good = false;
	if (is_good)
		return true;
	u->all = (struct usage_sum){ 0 };
	u->count = 0;
	return false;
}

void usage_file_write(const struct usage *u, int root_fd)
{
	int fd = openat(root_fd, TEMPORARY, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
	                PRIVATE_FILE);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	bool is_good = f != NULL;

	if (f) {
		fprintf(f, FORMAT, u->day);
		fprintf(f, "%" PRIu64 " %" PRIu64 " 0 =\n", u->all.images, u->all.bytes);
		for (unsigned i = 0; i < u->count; i++)
			fprintf(f, "%" PRIu64 " %" PRIu64 " %" PRIu64 " =%s\n",
			        u->token[i].stored.images, u->token[i].stored.bytes,
			        u->token[i].uploads, u->token[i].name);
		is_good = fflush(f) == 0 && fsync(fd) == 0;
		is_good = fclose(f) == 0 && is_good;
	} else if (fd >= 0) {
		close(fd);
	}
	if (!is_good || renameat(root_fd, TEMPORARY, root_fd, USAGE_FILE)) {
		log_warning("store: cannot write " USAGE_FILE
		            ": %s; the next start counts the images",
		            strerror(errno));
		(void)unlinkat(root_fd, TEMPORARY, 0);
	}
}

void usage_file_remove(int root_fd)
{
	(void)unlinkat(root_fd, USAGE_FILE, 0); /* it is not there if figures were not kept */
}

bool usage_file_take_recount(int root_fd)
{
	return unlinkat(root_fd, USAGE_RECOUNT_FILE, 0) == 0;
}

void usage_file_demand_recount(int root_fd)
{
	int fd = openat(root_fd, USAGE_RECOUNT_FILE, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
	                PRIVATE_FILE);

	if (fd >= 0)
		close(fd);
	else
		fprintf(stderr, "darkroomd store: cannot write " USAGE_RECOUNT_FILE ": %s\n",
		        strerror(errno));
}
