/* store_verify.c - compares files with their checksums, and remembers which are sound. */
#include "store_verify.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cached.h"
#include "base/clock.h"
#include "directory.h"
#include "store.h"
#include "store_find.h"
#include "stored_image.h"

/* ---- files that were compared ---- */

/* A slot has the upper half of the identity, whose lower bits are the index, and the time. */
static _Atomic uint64_t *slot_of(struct store *s, const struct store_found *found)
{
	return &s->verified[found->identity % STORE_VERIFIED_FILES];
}

static uint64_t entry_of(const struct store_found *found)
{
	return (found->identity & ~(uint64_t)UINT32_MAX) | (uint32_t)(clock_ns() / NS_PER_S);
}

/* ---- comparing ---- */

static bool has_sum(const struct store_found *found)
{
	return strlen(found->tag) == CHECKSUM_LENGTH;
}

bool store_verify_cached(struct store *s, const struct store_found *found, void *copy, size_t max,
                         bool *is_copied)
{
	char sum[CHECKSUM_LENGTH + 1];

	uint64_t then = atomic_load_explicit(slot_of(s, found), memory_order_relaxed);

	*is_copied = false;
	if (!has_sum(found) || found->size > max)
		return then && entry_of(found) - then < STORE_VERIFY_S &&
		       (!found->size || cached_look(found->fd, 0, (size_t)found->size) != 0);
	if (!cached_read(found->fd, copy, (size_t)found->size, 0))
		return false;
	checksum_of(copy, (size_t)found->size, sum);
	*is_copied = strcmp(sum, found->tag) == 0;
	return *is_copied;
}

/* For a file without an attribute. */
static int compare_with_document(struct store *s, const char *id, const char *name, uint64_t size,
                                 const char *sum)
{
	char data[STORED_IMAGE_MAX + 1];
	struct stored_info info;
	int err = stored_info_load(&info, s, id, data);

	if (err == -ENOENT) {
		int fd = store_open_directory(s, id);

		if (fd < 0)
			return fd == -ENOENT ? -ESTALE : fd;
		close(fd);
	}
	if (err == -ENOENT || err == -EINVAL || (!err && !stored_info_is_sound(&info, data, id)))
		return strcmp(name, STORED_IMAGE) == 0 ? -EBADMSG : -EUCLEAN;
	const struct stored_file *file = err ? NULL : stored_info_find(&info, name);

	return file && stored_file_fault(file, size, sum) ? -EBADMSG : err;
}

int store_verify(struct store *s, const char *id, const char *name, const struct store_found *found)
{
	char sum[CHECKSUM_LENGTH + 1];
	uint64_t size;
	int err = checksum_of_file(found->fd, sum, &size);

	if (!err && has_sum(found))
		err = strcmp(sum, found->tag) == 0 ? 0 : -EBADMSG;
	else if (!err)
		err = compare_with_document(s, id, name, size, sum);
	if (!err)
		atomic_store_explicit(slot_of(s, found), entry_of(found), memory_order_relaxed);
	return err;
}

/* ---- damaged files ---- */

int store_quarantine(struct store *s, const char *id, const char *name, int fd)
{
	int from_fd = store_open_directory(s, id);

	if (from_fd < 0)
		return from_fd;
	int to_fd = fd < 0 || directory_check_same(from_fd, name, fd) == 0
	                    ? directory_open(s->quarantine_fd, id, PRIVATE_DIRECTORY)
	                    : -ESTALE;
	int err = to_fd < 0 ? to_fd : directory_rename(from_fd, name, to_fd, name, 0);

	if (to_fd >= 0)
		close(to_fd);
	close(from_fd);
	return err;
}
