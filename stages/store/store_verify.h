/*
 * store_verify.h - whether a stored file still has the bytes that were stored (store.verify), and
 * what is done with one that has not.
 *
 * The bytes of a file of at most 64 KB are compared with its checksum at each GET, and these bytes
 * are sent. A larger one is compared as a whole before its first byte is sent: at its first GET
 * since the start, and again when its inode has changed, when the page cache lacks a part of it, or
 * after STORE_VERIFY_S. So a client that asks for many short ranges has the file read once. What
 * leaves the page cache between the comparison and the end of a response is not compared again.
 */
#ifndef DARKROOM_STORE_STORE_VERIFY_H
#define DARKROOM_STORE_STORE_VERIFY_H

#include <stdbool.h>
#include <stddef.h>

struct store;
struct store_found;

#define STORE_VERIFY_S 60

/* Returns whether the open file is sound, as far as that can be told without the disk: by its bytes
 * in `copy` if they fit and it has a checksum, which sets *is_copied; otherwise by an earlier
 * comparison. If not, store_verify() has to tell. Any thread. */
bool store_verify_cached(struct store *s, const struct store_found *found, void *copy, size_t max,
                         bool *is_copied);

/* Compares the file with its checksum: that of its attribute, or without one that of image.json. A
 * file of an earlier version may have neither, and is sound. Returns 0; -EBADMSG if it is damaged;
 * -EUCLEAN if image.json is, which has the only checksum; -ESTALE if the image has been removed; or
 * -errno. Any thread; blocks. */
int store_verify(struct store *s, const char *id, const char *name,
                 const struct store_found *found);

/* Moves a file of the image to <root>/.quarantine/<id>/, unless fd is not that file any more; -1:
 * any. Returns 0, -ESTALE, -ENOENT or -errno. Any thread; blocks. */
int store_quarantine(struct store *s, const char *id, const char *name, int fd);

#endif
