/*
 * store_query.h - what the commands of darkroomd store share: their options, the images that these
 * select, the check of an image, and the line that shows how far a command has come. Main thread.
 */
#ifndef DARKROOM_STORE_TOOL_STORE_QUERY_H
#define DARKROOM_STORE_TOOL_STORE_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "conf/conf.h"
#include "store/store.h"
#include "store/store_page.h"
#include "store/stored_image.h"
#include "store/stray.h"

#define QUERY_EXIT_USAGE 2
#define QUERY_WORDS_MAX 64
#define QUERY_ATTEMPTS_MAX 100 /* at an image that is remade meanwhile */

struct text;

/* Sends a line to the daemon's control socket and appends its answer. Returns 0, or other than 0 if
 * no daemon serves the store. */
typedef int store_ask(const struct conf *conf, const char *line, struct text *answer);

struct store_query {
	struct conf conf; /* the command's */
	store_ask *ask;
	struct store store;
	int is_json, is_newest_first, is_dry, repairs, restarts, only_missing; /* 0 or 1 */
	char after[ULID_LENGTH + 1], before[ULID_LENGTH + 1]; /* bounds, left out; "": none */
	const char *follows;  /* the id behind which the list begins, or NULL */
	uint64_t limit;       /* images; UINT64_MAX: all */
	uint64_t rate;        /* bytes/s or images/s; 0: no limit */
	const char *token;    /* NULL: any */
	const char *ids_path; /* NULL: none */
	FILE *ids;            /* of it */
	char *argument[QUERY_WORDS_MAX];
	char **words; /* what is not an option */
	size_t word_count;
};

/* Parses the words behind the name of the command, opens the file of ids, and then the store, as
 * store_attach(). help: of the command, which has only the options that are in it; NULL: it has
 * all. Returns 0, or the exit status with the problem reported. */
int store_query_open(struct store_query *q, const struct conf *conf, store_ask *ask,
                     const char *help, char *const *words, size_t count);

/* Reports wrong usage. Returns the exit status. */
int store_query_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints a text that is not trusted: no byte of it controls a terminal. All but printable ASCII
 * becomes \xNN. */
void store_query_print(FILE *to, const char *text);

/* Writes a line to standard error, printed so. */
void store_query_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Reports a failure. Returns the exit status. */
int store_query_fail(const char *what, int err);

/* Calls `each` with each selected id within the bounds, up to the limit: the lines of ids_path and
 * the words, or else all images in order. Ends early if it returns other than 0, and returns that;
 * otherwise returns 0, or the exit status of a failure that was reported. */
int store_query_each(struct store_query *q,
                     int (*each)(struct store_query *q, const char *id, void *arg), void *arg);

/* Waits until `done` may have been done since the start, at that rate in a second. */
void store_query_pace(uint64_t start_ns, uint64_t done, uint64_t rate);

/* ---- progress: a line on a terminal ---- */

struct store_progress {
	uint64_t all, ended; /* images; all: 0 if it is not known */
	uint64_t start_ns, shown_ns;
};

/* Begins with `all` images. */
void store_progress_start(struct store_progress *p, uint64_t all);

/* Writes the line to standard error, at most once a second, if that is a terminal. */
void store_progress_show(struct store_progress *p, bool is_last);

/* ---- image_check.c: reads all files of an image, and compares them with their checksums ---- */

/* The checksums are those of image.json, which has one of its own. Without it (it is damaged), and
 * of files of earlier versions, the attributes of the files serve. A running daemon may remove and
 * remake images: what is found wrong with an image counts only if its directory is still the same
 * afterwards. */

#define IMAGE_PROBLEMS_MAX 64 /* of one image that are listed */

struct image_problem {
	char file[STRAY_PATH_MAX]; /* "": the image itself */
	const char *kind;          /* static */
};

struct image_check {
	bool keeps_files; /* set by the caller: only for files that image.json names */
	/* of the last image */
	char id[ULID_LENGTH + 1];
	char data[STORED_IMAGE_MAX + 1]; /* image.json */
	struct stored_info info;
	bool knows_files; /* image.json is good, so info lists all files */
	struct image_problem problem[IMAGE_PROBLEMS_MAX];
	unsigned problem_count;
	uint64_t files, bytes, unverified; /* that were read; files that have no checksum */
	/* with keeps_files: they are open; image.json is the first */
	struct {
		char name[STORED_NAME_MAX];
		char sum[CHECKSUM_LENGTH + 1];
		uint64_t size;
		int fd;
	} file[STORED_FILES_MAX];
	unsigned file_count;
};

/* Checks an image, and lists its problems. Returns 0; -ENOENT if there is no such image, which is a
 * problem, too; or -errno. With keeps_files, image_check_close() must follow a success. */
int image_check(struct image_check *c, struct store *s, const char *id);
void image_check_close(struct image_check *c);

/* ---- the commands; each returns the exit status ---- */

/* Prints the selected images, one per line. */
int store_list(struct store_query *q);

/* The same, of images that are named by id or token. */
int store_find_images(struct store_query *q);

/* Prints images and bytes by day, and bytes by variant. */
int store_count(struct store_query *q);

/* Removes the selected images. */
int store_delete(struct store_query *q);

/* check: compares all files with their checksums. */
int store_audit(struct store_query *q);

/* Prints what store_remake() would do, and an estimate of its cost. */
int store_plan(struct store_query *q);

/* Has the running daemon make variants that images lack. */
int store_remake(struct store_query *q);

/* Writes the selected images to standard output, as a tar archive. */
int store_export(struct store_query *q);

/* Stores the images of such an archive from standard input. */
int store_import(struct store_query *q);

/* Copies the images of an S3 store that have several objects to one object each. */
int store_migrate(struct store_query *q);

#endif
