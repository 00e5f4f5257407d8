/*
 * storage.h - where finished images are, by store.kind: one struct store_class for files
 * (store_files.c), and one for objects of an S3 store (store_objects.c).
 *
 * What only files have is not here: usage, remaking, and the commands of darkroomd store.
 * daemon/check_all.c refuses their keys with store.kind = s3. Knows no image in memory.
 */
#ifndef DARKROOM_STORAGE_STORAGE_H
#define DARKROOM_STORAGE_STORAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "conf/conf.h"
#include "s3/s3_objects.h"
#include "store/expiry.h"
#include "store/key_record.h"
#include "store/store.h"
#include "store/store_find.h"
#include "store/store_page.h"

struct s3_client;

/*
 * Uploads that were acknowledged before they were stored wait in files (store/spool.h). With an S3
 * store they may wait while the store is away, so their bytes are counted and limited. Otherwise
 * the disk is the limit.
 */
struct spooling {
	/* Uploads may be answered 202, also while an S3 store is away. Then there may be spooled
	 * images, so that recovery has to run. Fixed, as the next two. */
	bool is_on;
	bool has_limit;
	uint64_t max_bytes;
	_Atomic uint64_t bytes; /* in use, if there is a limit */
};

struct storage {
	const struct store_class *class;
	struct store *files;       /* borrowed; with an S3 store, they are its spool */
	struct s3_client *objects; /* NULL: there is no S3 store */
	struct s3_heads *heads;    /* of its images */
	bool is_doubtful;          /* of storage_examine(), which alone uses it */
	struct spooling spooling;
};

#define SPOOLING_FULL (-EXFULL) /* an error: store.s3_spool_bytes are used */

#define STORAGE_READ_MAX 100

/* Gets the text of an image.json, and when the image ends by itself, as store_tag(). */
typedef void storage_reader(const char *data, size_t length, uint64_t expires, void *arg);

/* Why an image has no such variant. */
struct storage_explanation {
	const char *id, *label;        /* of a file; these and max_age_ms are the request */
	uint64_t max_age_ms;           /* store.max_age */
	const struct storage *storage; /* private */
	/* the result */
	bool exists;
	bool has_original; /* which it could be made from */
	bool is_skipped;   /* under load */
	bool is_lost;      /* the image had it: the file was damaged */
	char variants[CONF_FILE_MAX * (CONF_FILE_NAME_MAX + 2)]; /* it has these; "": none */
};

/* A kind of store. The functions block, on any thread, unless marked. They return 0 or -errno; the
 * errors of an S3 store are those of struct s3_op. */
struct store_class {
	/* By nodes: it may be away, and a put waits for a network. Otherwise it has files, whose
	 * usage is counted, and lists may begin with the newest image. Fixed. */
	bool is_shared;

	/* Images that are stored: not those in the spool. put() is as store_put(), and remove()
	 * returns -ENOENT if there is no such image. */
	void (*put)(struct storage *st, struct store_item *items, unsigned count);
	int (*remove)(struct storage *st, const char *id);

	/* Calls `reader` with the image.json of up to STORAGE_READ_MAX images that exist and can be
	 * read, in order. Returns -errno if others might exist. */
	int (*read)(struct storage *st, char (*id)[ULID_LENGTH + 1], unsigned count,
	            storage_reader *reader, void *arg);
	int (*list)(struct storage *st, struct store_page *page); /* as store_page_read() */

	/* Removals of the sweep, as functions of expiry.h and store.h. due: of the list; an image
	 * of an S3 store that ends later is kept, and one that has not come is kept out; 0:
	 * whenever it ends. *bytes: what is removed, 0 if that cannot be read or has not come.
	 * batch_end() is NULL if there is nothing to flush. */
	int (*list_expired)(struct storage *st, uint64_t now, struct expiry_due *due, unsigned max);
	void (*forget_expired)(struct storage *st, const char *id, uint64_t expires);
	int (*batch_add)(struct storage *st, struct store_batch *b, const char *id, uint64_t due,
	                 uint64_t *bytes);
	int (*batch_end)(struct storage *st, const struct store_batch *b);

	/* A GET: fills in *found. If is_shared, it does not block, and done() is called by another
	 * thread; otherwise not at all. */
	void (*find)(struct storage *st, const char *id, const char *name,
	             struct store_found *found, void (*done)(void *arg), void *arg);

	/* Records of Idempotency-Keys, by r->name. r->version tells whether another node has
	 * changed a record since it was read: then key_write() and key_remove() return -EEXIST. If
	 * key_read() returns 0, the caller calls pool_put(r->id); -ENOENT: there is none. A settled
	 * record of which parts have failed is durable, and so is its removal. If is_shared, a
	 * removed record is one without ids, and none is settled: the images tell. key_sweep()
	 * removes what one of KEY_RECORD_SHARDS shards has from before a time. */
	int (*key_read)(struct storage *st, struct key_record *r);
	int (*key_write)(struct storage *st, struct key_record *r);
	int (*key_remove)(struct storage *st, const struct key_record *r);
	/* Tells what has become of an image of a record, as s3_image_fate(). Files know only
	 * S3_THERE and S3_ABSENT. */
	int (*fate)(struct storage *st, const char *id, bool ends);
	void (*key_sweep)(struct storage *st, unsigned shard, uint64_t before);
};

extern const struct store_class store_of_files, store_of_objects;

/* ---- life; main thread ---- */

/* Opens the store of the configuration, and its files in *files. Sets *cleared to the unfinished
 * and removed images that were cleared. Returns 0, or -errno with the reason logged. */
int storage_open(struct storage *st, struct store *files, const struct conf *conf,
                 unsigned *cleared);
void storage_close(struct storage *st);

#define STORAGE_TICK_MS 1000

/* What the main thread does regularly. Returns the ms until the next call, or -1. */
int storage_tick(struct storage *st);

/* ---- any thread; do not block ---- */

/* Returns whether requests to the store, or some of them, would fail now. */
bool storage_is_away(const struct storage *st);

/* Returns whether images may be uploaded now: 0; S3_AWAY; SPOOLING_FULL; or -ENOSPC if the file
 * system has less than floor bytes: *free_bytes of them. is_spooled: the images are answered 202,
 * so that they may wait in files for the store. */
int storage_check_room(struct storage *st, uint64_t floor, bool is_spooled, uint64_t *free_bytes);

/* Returns when the image ends, as stored_image_end(), by this node's clock. With an S3 store the
 * age of its id is by the store's clock, so that all nodes agree. */
uint64_t storage_image_end(const struct storage *st, const char *id, uint64_t expires,
                           uint64_t max_age_ms);

/* Looks for a file, as store_find_cached(). The I/O thread. */
bool storage_find_cached(struct storage *st, const char *id, const char *name,
                         struct store_found *found);

/* Returns whether an acknowledged image must be spooled. */
bool spooling_is_needed(const struct storage *st, const struct conf *conf);

/* ---- block; any thread ---- */

/* Returns the bytes that images may take, in the spool if they are spooled; UINT64_MAX: any number.
 */
uint64_t storage_look(struct storage *st, bool is_spooled);

/* Looks whether an S3 store has what images need, unless that is known; nothing is put before. Also
 * tries a store that is away, whose answer ends that. Returns 0; -EOPNOTSUPP if it has not; or
 * S3_AWAY if it does not tell, and the next call asks again. The first failure of each kind is
 * logged. One thread at a time. */
int storage_examine(struct storage *st);

/* Puts items as store_put(). If the class is_shared, all are for the same place. */
void storage_put(struct storage *st, struct store_item *items, unsigned count);

/* Copies an image that an S3 store has as several objects. Returns 0 if it is worth another look,
 * -ENOENT if there is none, or -errno. */
int storage_adopt(struct storage *st, const char *id);

/* Returns whether the image is stored: 1, 0 or -errno. */
int storage_has(struct storage *st, const char *id);

/* Removes an image from the store and from the spool. Returns 0, -ENOENT or -errno. */
int storage_remove(struct storage *st, const char *id);

/* ---- of one image in the spool; block; any thread ---- */

/* Takes a stored image out of the spool. If a client has removed it meanwhile, removes it from the
 * store. Returns 0 or -errno: it stays in the spool. */
int spooling_end(struct storage *st, const char *id);

/* Removes it from the spool. Returns 0, -ENOENT or -errno. */
int spooling_remove(struct storage *st, const char *id);

/* Returns whether it is spooled. Ask before the store is asked for it: an image leaves the spool
 * after it is stored. */
bool spooling_has(struct storage *st, const char *id);

/* As spool_quarantine(). */
int spooling_quarantine(struct storage *st, const char *id, const char *why);

/* Fills in what is known of an image without the variant. Returns 0, -ENOENT if there is no such
 * image, or -errno. */
int storage_explain(struct storage *st, struct storage_explanation *e);

/* ---- one page of the list of stored images; blocks ---- */

#define STORED_LIST_MAX 100 /* images */

struct stored_list {
	struct store_page page; /* its order, bounds and `max` are the request */
	const char *owner; /* the token whose images it has, as far as they are in the page; NULL:
	                      all */
	char id[STORED_LIST_MAX][ULID_LENGTH + 1];
	/* the result: a JSON array of what GET /images/{id} responds */
	struct text images; /* growable; the owner calls text_fini() */
	bool has_more;
	char last[ULID_LENGTH + 1]; /* behind which the next page begins */
};

/* Appends what GET /images/{id} responds to an open JSON array. Returns 1; or 0 if the image is
 * removed, damaged or expired, and nothing is appended; or -errno if the store cannot tell. */
int stored_list_append(struct text *images, struct storage *st, const char *id);

/* Fills in the result. Such images are left out. Returns 0 or -errno. */
int stored_list_make(struct stored_list *list, struct storage *st);

#endif
