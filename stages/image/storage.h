/*
 * storage.h - where finished images are: files (store/store.h), or objects of an S3 store
 * (s3/s3_store.h), by store.kind. What other folders do with images of either kind goes through
 * here.
 *
 * What only files have is not here: usage, remaking, and the commands of darkroomd store.
 * daemon/check_all.c refuses their keys with store.kind = s3. The spool is in spooling.h, records
 * of Idempotency-Keys are in key_store.h.
 */
#ifndef DARKROOM_IMAGE_STORAGE_H
#define DARKROOM_IMAGE_STORAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/expiry.h"
#include "store/store.h"
#include "store/store_batch.h"
#include "store/store_page.h"

struct conf;
struct disk_job;
struct image;
struct image_service;
struct problem;
struct s3_stream;
struct store_found;
struct text;

/* Opens the store of the configuration. Returns 0, or -errno with the reason logged. Main thread.
 */
int storage_open(struct image_service *s, const struct conf *conf);
void storage_close(struct image_service *s);

/* Start and stop its thread, if it has one. Main thread. */
int storage_start(struct image_service *s);
void storage_stop(struct image_service *s);

#define STORAGE_TICK_MS 1000

/* What the main thread does regularly. Returns the ms until the next call, or -1. */
int storage_tick(struct image_service *s);

/* Returns whether images may be uploaded now: the file system has room for floor bytes, the store
 * answers. is_spooled: they are answered 202, so that they may wait in files for the store.
 * Otherwise sets the problem. Any thread. */
bool storage_takes(struct image_service *s, uint64_t floor, bool is_spooled, struct problem *p);

/* Returns whether requests to the store would fail now. Any thread. */
bool storage_is_away(const struct image_service *s);

/* Fills in the problem of an error of the functions below. Returns false if it is one of files.
 * Any thread. */
bool storage_set_problem(int err, struct problem *p);

/* ---- block ---- */

/* Returns the bytes that images of the place may take; UINT64_MAX: any number. */
uint64_t storage_look(struct image_service *s, enum store_place place);

/* Returns whether this node may store the image, because no other one makes it. Otherwise sets the
 * problem. */
bool storage_holds(struct image_service *s, const struct image *image, struct problem *p);

/* Returns whether storage_put() should get items of one place only, because others would wait for
 * the store. */
bool storage_splits(const struct image_service *s);

/* As store_put(). */
void storage_put(struct image_service *s, struct store_item *items, unsigned count);

/* Removes an image, also from the spool. Returns 0, -ENOENT or -errno. */
int storage_remove(struct image_service *s, const char *id);

/* The same, but not from the spool. */
int storage_remove_stored(struct image_service *s, const char *id);

/* Returns whether the image is stored: 1, 0 or -errno. */
int storage_has(struct image_service *s, const char *id);

#define STORAGE_READ_MAX 100

/* Gets the text of an image.json, and when the image ends by itself, as store_tag(). */
typedef void storage_reader(const char *data, size_t length, uint64_t expires, void *arg);

/* Calls `reader` with the image.json of up to STORAGE_READ_MAX images that exist and can be read,
 * in order. Returns 0, or -errno if others might exist. */
int storage_read(struct image_service *s, char (*id)[ULID_LENGTH + 1], unsigned count,
                 storage_reader *reader, void *arg);

/* As store_page_read(); an S3 store cannot list the newest images first. */
int storage_list(struct image_service *s, struct store_page *page);

/* Fills in the 404 of an image without a variant, and job->result. */
void storage_explain(struct image_service *s, struct disk_job *job);

/* ---- removals of the sweep; block ---- */

int storage_list_expired(struct image_service *s, uint64_t now, struct expiry_due *due,
                         unsigned max);
void storage_forget_expired(struct image_service *s, const char *id, uint64_t expires);

/* As store_batch_add() and store_batch_end(), for stored images. */
int storage_batch_add(struct image_service *s, struct store_batch *b, const char *id);
int storage_batch_end(struct image_service *s, const struct store_batch *b);

struct s3_orphans;

/* Removes objects of images that were never stored, as s3_orphans_remove(). Returns how many, or
 * -errno. The sweep's thread. */
int storage_remove_orphans(struct image_service *s, struct s3_orphans *o);

/* ---- a GET ---- */

/* Looks for a file, as store_find_cached(). The I/O thread. */
bool storage_find_cached(struct image_service *s, const char *id, const char *name,
                         struct store_found *found);

#define STORAGE_URL_MAX 1400

/* Appends a URL of the S3 store at which anyone can GET a variant for some minutes. Any thread. */
void storage_url(struct image_service *s, const char *id, const char *variant, struct text *url);

/* Returns whether storage_find() is another thread's work, so that the caller does not wait. */
bool storage_finds_later(const struct image_service *s, const struct disk_job *job);

/* Looks for the file of a job, or fetches the next part of it. If it finds it later, the job comes
 * back to disk_write as DISK_FOUND; its event must be parked. */
void storage_find(struct image_service *s, struct disk_job *job);

/* What is not in the file that was found, as s3_stream_seek() and s3_stream_free(). Any thread. */
void storage_seek_rest(struct s3_stream *rest, uint64_t at, uint64_t end);
void storage_free_rest(void *rest);

#endif
