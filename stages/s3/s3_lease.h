/*
 * s3_lease.h - the lease of a spooled image: an object that says which node makes the image, and
 * until when.
 *
 * Its content is a line, "held NODE MILLISECOND", and the note of spool.h behind it. A node makes a
 * lease only if there is none, and changes it only if it has the entity tag that was read
 * (s3_put_if()). So of several nodes one wins. Times are those of the nodes' clocks. All calls
 * block. Any thread.
 */
#ifndef DARKROOM_S3_LEASE_H
#define DARKROOM_S3_LEASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "s3_objects.h"
#include "store/spool.h"

#define S3_NODE_MAX 17 /* bytes of a node's name, with the zero: random hexadecimal digits */
#define S3_LEASE_MAX (64 + SPOOL_NOTE_MAX) /* bytes of the content */

enum s3_lease_state {
	S3_LEASE_HELD = 1,
	S3_LEASE_REMOVED,    /* a client has removed the image: nobody shall make it */
	S3_LEASE_QUARANTINED /* it cannot be made */
};

struct s3_lease {
	enum s3_lease_state state;
	char node[S3_NODE_MAX];
	uint64_t expires_ms; /* since 1970 */
	char etag[S3_ETAG_MAX];
	size_t note_length;
	char note[SPOOL_NOTE_MAX]; /* with a zero behind it */
};

void s3_original_key(char key[S3_KEY_MAX], const char *id);
void s3_lease_key(char key[S3_KEY_MAX], const char *id);

/* Writes the content. Returns its length. */
size_t s3_lease_write(char data[S3_LEASE_MAX], const struct s3_lease *lease);

/* Reads a content, but for the entity tag. Returns 0, or -EINVAL. Does not block. */
int s3_lease_parse(struct s3_lease *lease, const char *data, size_t length);

/* Reads leases at once. err[i]: 0, -ENOENT or -errno. Returns 0, or -ENOMEM. */
int s3_lease_read(struct s3_store *s, const char (*id)[ULID_LENGTH + 1], struct s3_lease *lease,
                  int *err, unsigned count);

/* Puts a changed lease in place of the one that was read, whose entity tag it has. Returns as
 * s3_put_if(). */
int s3_lease_replace(struct s3_store *s, const char *id, struct s3_lease *lease);

#endif
