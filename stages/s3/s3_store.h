/*
 * s3_store.h - finished images as objects of an S3 store: the counterpart of store/store.h.
 *
 * Keys below store.s3_prefix:
 *   image/<id>          image.json, which makes the image visible
 *   file/<id>/<name>    its other files, such as medium.jpg
 *   spool/<id>...       an upload that is not stored yet (s3_spool.h)
 *   expiry/<second>.<id>  an empty note of an image that ends by itself, sorted by time
 * An image is put in that order: note and files, then image.json; and removed in the opposite one,
 * so that an interrupted removal is repeated by the next one. An object has the checksum and the
 * end of its image as metadata, in the form of store_tag(). Several daemons may use one bucket.
 *
 * If the answer to a request is lost, its effect may still come. So a failed image may appear
 * later, but then it is whole; and objects of one may stay that are never visible.
 */
#ifndef DARKROOM_S3_STORE_H
#define DARKROOM_S3_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "s3_client.h"
#include "store/expiry.h"
#include "store/store.h"
#include "store/store_find.h"
#include "store/store_page.h"

struct s3_store;

/* Makes the client, and reads the keys of the account. Originals that are read go to files without
 * names in directory_fd, which is borrowed. Returns 0, or -errno with the reason logged. Main
 * thread, before the sandbox is entered. */
int s3_store_open(struct s3_store **out, const struct conf *conf, int directory_fd);
void s3_store_close(struct s3_store *s); /* NULL is ignored */

/* Start and stop the client's thread. Main thread. */
int s3_store_start(struct s3_store *s);
void s3_store_stop(struct s3_store *s); /* NULL is ignored */

/* Reads the keys of the account again if their file has changed. Main thread. */
void s3_store_check_secret(struct s3_store *s);

/* Returns whether requests would fail now. Any thread. */
bool s3_store_is_away(struct s3_store *s);

const struct s3_counters *s3_store_counters(const struct s3_store *s);

/* ---- block; any thread. Errors are those of struct s3_op ---- */

#define S3_STORE_ITEMS_MAX 16

/* Stores up to S3_STORE_ITEMS_MAX items, as store_put(). Sets the error of each. */
void s3_store_put(struct s3_store *s, struct store_item *items, unsigned count);

/* Removes an image. Returns 0, -ENOENT or -errno; then it may be removed in part. */
int s3_store_remove(struct s3_store *s, const char *id);

/* The image.json of an image that is stored. */
struct s3_image {
	const char *id;
	struct text json; /* the caller calls text_fini() */
	uint64_t expires; /* seconds since 1970; 0: never */
	int err;
};

/* Reads them at once, by their ids. Returns 0, or -ENOMEM with nothing to release. */
int s3_store_read(struct s3_store *s, struct s3_image *images, unsigned count);

/* Lists images, the oldest first, as store_page_read(). Returns 0 or -errno. */
int s3_store_list(struct s3_store *s, struct store_page *page);

/* As expiry_list() and expiry_forget(). */
int s3_store_list_expired(struct s3_store *s, uint64_t now, struct expiry_due *due, unsigned max);
void s3_store_forget_expired(struct s3_store *s, const char *id, uint64_t expires);

/* ---- does not block; any thread ---- */

#define S3_STORE_URL_SECONDS 300

/* Appends a URL of the file, which is valid for S3_STORE_URL_SECONDS. The file may not exist. */
void s3_store_url(struct s3_store *s, const char *id, const char *name, struct text *url);

#endif
