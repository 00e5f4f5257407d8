/* import_place.c - makes the directory of an import, with the right owner. Main thread. */
#include "import_place.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "directory.h"
#include "store_path.h"
#include "store_query.h"
#include "usage.h"

static bool is_root; /* and has to change its user */

/* Returns 0 or -errno. */
static int become_owner(const struct store_query *q, bool is_forever)
{
	struct stat st;

	is_root = false;
	if (fstat(q->store.root_fd, &st))
		return -errno;
	if (geteuid() != 0 || st.st_uid == 0)
		return 0;
	is_root = !is_forever;
	if (setgroups(0, NULL) ||
	    setresgid(is_forever ? st.st_gid : (gid_t)-1, st.st_gid, is_forever ? st.st_gid : 0) ||
	    setresuid(is_forever ? st.st_uid : (uid_t)-1, st.st_uid, is_forever ? st.st_uid : 0))
		return -errno;
	return 0;
}

void import_place_enter(const struct store_query *q)
{
	if (is_root && become_owner(q, false))
		abort();
}

void import_place_leave(void)
{
	if (is_root && (seteuid(0) || setegid(0)))
		abort();
}

static int make(struct store_query *q)
{
	unsigned cleared = 0;
	int fd = directory_open(q->store.root_fd, IMPORT_DIRECTORY, PRIVATE_DIRECTORY);

	if (fd < 0)
		return fd;
	q->store.incoming_fd = fd;
	q->store.leftovers = (struct leftovers)LEFTOVERS_NONE;
	if (flock(fd, LOCK_EX | LOCK_NB))
		return -errno;
	return directory_clear(fd, &cleared);
}

int import_place_open(struct store_query *q, bool is_forever)
{
	int err = become_owner(q, is_forever);

	if (!err)
		err = make(q);
	import_place_leave();
	if (err == -EWOULDBLOCK) {
		fputs("darkroomd store: another import uses the store\n", stderr);
		return EXIT_FAILURE;
	}
	if (err)
		return store_query_fail(IMPORT_DIRECTORY, err);
	usage_demand_recount(&q->store);
	return 0;
}

void import_place_close(struct store_query *q)
{
	import_place_enter(q);
	(void)unlinkat(q->store.root_fd, IMPORT_DIRECTORY, AT_REMOVEDIR);
	usage_demand_recount(&q->store); /* a count in between has missed the rest */
	import_place_leave();
}
