/*
 * s3_client.h - requests to one bucket of an S3 store: one thread with an event loop, which keeps
 * connections, and repeats what failed.
 *
 * Any thread starts an operation. It ends on the loop's thread by a call of done(). An operation
 * has succeeded only if the store's answer is complete and says so, and content that was read has
 * the checksum that it was stored with. Otherwise it is tried again, after a random time that grows
 * (full jitter: M. Brooker, "Exponential Backoff and Jitter", 2015), until S3_ATTEMPTS_MAX or
 * the end of its time. While the store is away (s3_breaker.h), operations fail at once.
 */
#ifndef DARKROOM_S3_CLIENT_H
#define DARKROOM_S3_CLIENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/text.h"
#include "conf/conf.h"
#include "s3_secret.h"
#include "store/store_find.h"

#define S3_KEY_MAX 96
#define S3_ETAG_MAX 64 /* bytes of an entity tag, with the zero */
#define S3_ATTEMPTS_MAX 6
#define S3_QUEUE_MAX 4096 /* operations that wait for a connection; further ones get -EBUSY */

#define S3_AWAY (-EHOSTDOWN)  /* the store does not answer, or answers wrongly */
#define S3_DAMAGED (-EBADMSG) /* the content is not what was stored */

enum s3_verb { S3_GET = 1, S3_PUT, S3_DELETE, S3_LIST, S3_VERB_COUNT };

struct s3_op {
	/* of the caller, which keeps all of it until done() */
	enum s3_verb verb;
	char key[S3_KEY_MAX];   /* below store.s3_prefix; list: the prefix of keys */
	char after[S3_KEY_MAX]; /* list: only keys behind this one; "": all */
	unsigned max;           /* list: keys, at most 1000 */
	const void *data;       /* put: borrowed */
	size_t size;
	const char *type; /* put: Content-Type; static */
	/* put: "*": only if there is no such object; an entity tag: only if the object has it (RFC
	 * 9110, 13.1); "": in any case */
	char match[S3_ETAG_MAX];
	/* put: of the content; get: the result. Of a part it is the one that is expected; "" is
	 * none. See store_tag(). */
	char tag[STORE_TAG_MAX];
	bool to_file;    /* get: into a file without a name, not into `body` */
	size_t body_max; /* get, list: of `body` */
	/* get: at most this many bytes from `at` on (RFC 9110, 14.2), to memory; 0: all */
	uint64_t at, part_max;
	/* get of a part: of the content in front of it, and, if that succeeds, also of the part;
	 * NULL: the part is not verified, unless it is all. The caller's. */
	struct checksum *sum;
	bool is_once; /* it is not tried again */
	void (*done)(struct s3_op *op);
	void *arg;
	/* results */
	/* 0, -ENOENT, S3_AWAY, S3_DAMAGED, -EFBIG, -EBUSY, -ECANCELED or -errno; put with `match`:
	 * also -EEXIST (it does not hold), -EAGAIN (conflicts with another request), -EOPNOTSUPP */
	int err;
	char etag[S3_ETAG_MAX]; /* get, put: of the object, as the store wrote it */
	int fd;                 /* get, to_file: the caller's if err is 0, otherwise -1 */
	uint64_t length;        /* get: bytes that came */
	uint64_t total;         /* get: bytes of the object */
	time_t modified;        /* get */
	struct text body;       /* get, list; also of errors: the caller calls text_fini() */
	/* private */
	unsigned attempts;
	uint64_t began_ns, due_ns,
		end_ns; /* of this attempt; of the next one; no later one starts */
	struct s3_op *next;
};

/* X(field, member of /stats, metric, label, its value, help of the metric), as in server_counters.h
 */
/* clang-format off */
#define S3_COUNTERS(X) \
	X(gets, "gets", "darkroom_s3_operations_total", "operation", "get", \
	  "Operations of the S3 store, by kind.") \
	X(puts, "puts", "darkroom_s3_operations_total", "operation", "put", \
	  "Operations of the S3 store, by kind.") \
	X(deletes, "deletes", "darkroom_s3_operations_total", "operation", "delete", \
	  "Operations of the S3 store, by kind.") \
	X(lists, "lists", "darkroom_s3_operations_total", "operation", "list", \
	  "Operations of the S3 store, by kind.") \
	X(timeouts, "timeouts", "darkroom_s3_attempt_failures_total", "reason", "timeout", \
	  "Attempts of operations that failed, by reason.") \
	X(broken, "broken", "darkroom_s3_attempt_failures_total", "reason", "connection", \
	  "Attempts of operations that failed, by reason.") \
	X(rejected, "rejected", "darkroom_s3_attempt_failures_total", "reason", "status", \
	  "Attempts of operations that failed, by reason.") \
	X(damaged, "damaged", "darkroom_s3_attempt_failures_total", "reason", "damaged", \
	  "Attempts of operations that failed, by reason.") \
	X(retried, "retried", "darkroom_s3_retries_total", "", "", \
	  "Attempts after the first one of an operation.") \
	X(failed, "failed", "darkroom_s3_failures_total", "", "", \
	  "Operations that failed after all attempts.") \
	X(refused, "refused", "darkroom_s3_refused_total", "", "", \
	  "Operations refused while the S3 store was away.") \
	X(outages, "outages", "darkroom_s3_outages_total", "", "", \
	  "Times at which the S3 store went away.") \
	X(orphans, "orphans", "darkroom_s3_orphans_removed_total", "", "", \
	  "Objects removed of images that were never stored.")
/* clang-format on */

struct s3_counters {
#define X(field, member, metric, label, value, help) _Atomic uint64_t field;
	S3_COUNTERS(X)
#undef X
	_Atomic uint64_t in_flight; /* operations */
	_Atomic bool is_away;
};

struct s3_client;

/* Makes the client and looks up the endpoint's addresses, which stay as they are until the end.
 * directory_fd: where files without a name are made; borrowed. Returns 0, or -errno with the reason
 * logged. Main thread, before the sandbox is entered. */
int s3_client_new(struct s3_client **out, const struct conf *conf, int directory_fd);
void s3_client_free(struct s3_client *c); /* NULL is ignored */

/* Starts and stops its thread. Operations that have not ended end with -ECANCELED, on the thread.
 * Return 0, or -errno with the reason logged. Main thread. */
int s3_client_start(struct s3_client *c);
void s3_client_stop(struct s3_client *c);

/* Replaces the keys of the account. Any thread. */
void s3_client_set_secret(struct s3_client *c, const struct s3_secret *secret);

/* Starts an operation. Any thread. */
void s3_client_submit(struct s3_client *c, struct s3_op *op);

/* Starts operations, and waits until all have ended; done() is the client's. Any thread but its
 * own. */
void s3_client_run(struct s3_client *c, struct s3_op *ops, size_t count);

/* Returns whether operations are refused, because the store is away. Any thread. */
bool s3_client_is_away(struct s3_client *c);

const struct s3_counters *s3_client_counters(const struct s3_client *c);

/* Counts objects that were removed because their image was never stored. */
void s3_client_count_orphans(struct s3_client *c, unsigned count);

/* Returns the bytes of store.s3_prefix, with which listed keys begin. */
size_t s3_client_prefix_length(const struct s3_client *c);

/* Appends a URL at which anyone can GET the object for `seconds`. Any thread. */
void s3_client_presign(struct s3_client *c, const char *key, unsigned seconds, struct text *url);

#endif
