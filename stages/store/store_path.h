/*
 * store_path.h - where an image is, below the root.
 *
 * <first 4 characters of id>/<next 2>/<id>: directories sort by time, so a listing by time reads a
 * few of them. One of 4 characters covers 12.4 days, and one of 2 in it 17.5 minutes. Earlier
 * versions wrote <last 2 characters of id>/<id>: these images stay there, and are read. Any thread.
 *
 * Images are not packed into larger files. With a million of them, start, upload, DELETE, expiry
 * and lists of the newest cost what they cost with ten, and so does a GET whose inodes are in
 * memory. A cold GET took 7.6 ms on a shared disk. Only reading all image.json grows: 10 minutes
 * for a million, cold (data/results/million). An image has 5 inodes for about 90 KB, and
 * ext4 has one for 16 KB. So inodes and bytes run out together.
 */
#ifndef DARKROOM_STORE_STORE_PATH_H
#define DARKROOM_STORE_STORE_PATH_H

#include "ulid.h"

#define STORE_PATH_MAX 96
#define STORE_SPAN_LENGTH 4  /* characters of the name of a directory of 12.4 days */
#define STORE_SHARD_LENGTH 2 /* of one of 17.5 minutes in it, and of one of an earlier version */

#define STORE_INCOMING_DIRECTORY ".incoming"
#define STORE_TRASH_DIRECTORY ".trash"
#define STORE_SPOOL_DIRECTORY ".spool"
#define STORE_QUARANTINE_DIRECTORY ".quarantine"
#define STORE_EXPIRY_DIRECTORY ".expiry"
#define STORE_KEYS_DIRECTORY ".keys"
#define STORE_IMPORT_DIRECTORY ".import"
#define REMAKE_QUEUE_DIRECTORY ".remake"
#define USAGE_FILE ".usage"
#define USAGE_RECOUNT_FILE ".recount"
#define STORE_CHECK_FILE ".check" /* how far darkroomd store check has come */
/* Of a file: its checksum, and of an image that expires, "." and the time in 10 digits. */
#define STORE_TAG_ATTRIBUTE "user.darkroom.xxh128"

/* Modes of what is created, less the umask. Originals have the place where a picture was taken,
 * which variants have not: only the daemon's user reads them. */
#define PRIVATE_DIRECTORY 0700
#define PRIVATE_FILE 0600
#define IMAGE_DIRECTORY 0755
#define IMAGE_FILE 0644

enum store_layout { STORE_BY_TIME = 0, STORE_BY_TAIL, STORE_LAYOUT_COUNT };

/* Writes the path of a file of the image; name NULL: of its directory. */
void store_image_path(char path[STORE_PATH_MAX], enum store_layout layout, const char *id,
                      const char *name);

/* Writes the path of the directory in which the image's directory is. */
void store_shard_path(char path[STORE_PATH_MAX], enum store_layout layout, const char *id);

#endif
