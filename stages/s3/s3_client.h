/*
 * s3_client.h - requests to one bucket of an S3 store: one thread, which keeps connections, and
 * repeats what failed.
 *
 * Any thread starts an operation. It ends on the client's thread by a call of done(). An operation
 * has succeeded only if the store's answer is complete and says so, and content that was read has
 * the checksum that it was stored with. Otherwise it is tried again, after a random time that grows
 * (full jitter: M. Brooker, "Exponential Backoff and Jitter", 2015), until S3_ATTEMPTS_MAX or
 * the end of its time. While the store is away, operations fail at once but for those that probe
 * it. Nothing is put but S3_PROBE until it is known that conditions of PUTs hold. What is read
 * comes into memory.
 */
#ifndef DARKROOM_S3_CLIENT_H
#define DARKROOM_S3_CLIENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <sys/uio.h>

#include "base/text.h"
#include "conf/conf.h"
#include "s3_list.h"

#define S3_KEY_MAX 96
#define S3_ATTEMPTS_MAX 6

#define S3_AWAY (-EHOSTDOWN)  /* the store does not answer, or answers wrongly */
#define S3_DAMAGED (-EBADMSG) /* the content is not what was stored */

#define S3_PROBE_MS 500  /* between probes of a store that is away */
#define S3_PROBE "probe" /* the key of an object that tells nothing */
#define S3_PROBE_DATA "1\n"

/* GET and LIST, or PUT and DELETE. */
enum s3_side { S3_READS, S3_WRITES, S3_SIDES };

enum s3_verb { S3_GET = 1, S3_PUT, S3_DELETE, S3_LIST, S3_VERB_COUNT };

struct s3_op {
	/* of the caller, which keeps all of it until done() */
	enum s3_verb verb;
	char key[S3_KEY_MAX];      /* below store.s3_prefix; list: the prefix of keys */
	const char *after;         /* list: only keys behind this one; borrowed, "": all */
	unsigned max;              /* list: keys, at most 1000 */
	const struct iovec *piece; /* put: the content; borrowed */
	unsigned piece_count;
	/* put, delete: "*": only if there is no such object; an entity tag: only if the object has
	 * it (RFC 9110, 13.1); "": in any case */
	char match[S3_ETAG_MAX];
	size_t body_max; /* get, list: bytes of `body` */
	/* get: at most this many bytes from `at` on (RFC 9110, 14.2); 0: all */
	uint64_t at, part_max;
	/* get: returns what has come: 0, S3_DAMAGED, which is tried again, or another error. NULL:
	 * all of the object, which has the checksum of its metadata: it was put in one piece. The
	 * client's thread. */
	int (*judge)(const struct s3_op *op);
	bool is_probe; /* it is tried once, also while the store is away */
	void (*done)(struct s3_op *op);
	void *arg;
	/* results */
	/* 0, -ENOENT, S3_AWAY, S3_DAMAGED, -ENOSPC, -EFBIG, -EBUSY, -ECANCELED, -errno, or that of
	 * judge(); put with
	 * `match`: also -EEXIST (it does not hold), -EAGAIN (conflicts with another request),
	 * -EOPNOTSUPP */
	int err;
	char etag[S3_ETAG_MAX]; /* get, put: of the object, as the store wrote it */
	uint64_t total;         /* get: bytes of the object */
	time_t modified;        /* get */
	time_t date;            /* of the answer, by the store's clock */
	struct text body;       /* get, list without an error: the caller calls text_fini() */
	/* private */
	unsigned attempts;
	uint64_t began_ns, due_ns; /* of this attempt; of the next one */
	uint64_t end_ns;           /* no repetition starts later */
	struct s3_op *next;
};

/* Totals since startup; stages/reports.c says what each counts. */
struct s3_counters {
	_Atomic uint64_t gets, puts, deletes, lists;
	_Atomic uint64_t timeouts, broken, rejected, damaged; /* attempts that failed */
	_Atomic uint64_t retried, failed, refused, outages;
	_Atomic uint64_t tombstones, foreign;
	_Atomic uint64_t skew_s;    /* by which this node's clock is off, at least */
	_Atomic uint64_t in_flight; /* operations */
	_Atomic bool is_away[S3_SIDES];
};

/* What others see of a client. Any thread. */
struct s3_client {
	struct s3_counters counters;
	size_t prefix_length; /* of store.s3_prefix, with which listed keys begin; fixed */
	_Atomic bool is_fit;  /* the store has shown that conditions of PUTs hold (s3_probe()) */
	_Atomic bool has_conditional_removals; /* of s3_probe() as well */
	_Atomic int64_t skew_s;                /* see s3_client_skew() */
	_Atomic bool are_lists_over; /* s3_list_keys() ends after the answer that it waits for */
};

/* Makes the client, reads the keys of the account, and looks up the endpoint's addresses: also
 * while the store is away. Returns 0, or -errno with the reason logged;
 * s3_client_close() follows in any case. Main thread, before the sandbox is entered. */
int s3_client_open(struct s3_client **out, const struct conf *conf);
void s3_client_close(struct s3_client *c); /* NULL is ignored */

/* Starts and stops its thread; NULL is ignored. Operations that have not ended end
 * with -ECANCELED, on the thread. Return 0, or -errno with the reason logged. Main thread. */
int s3_client_start(struct s3_client *c);
void s3_client_stop(struct s3_client *c);

/* Reads the keys of the account again if their file has changed. Main thread. */
void s3_client_check_keys(struct s3_client *c);

/* Starts an operation. Any thread. */
void s3_client_submit(struct s3_client *c, struct s3_op *op);

/* Starts the operations that have a verb, and waits until all have ended; done() is the client's.
 * Any thread but its own. */
void s3_client_run(struct s3_client *c, struct s3_op *ops, size_t count);

/* Returns whether reads or writes do not get an answer. Any thread. */
bool s3_is_away(const struct s3_counters *counters);

/* Returns by how many seconds the store's clock is ahead of this node's, which its answers have; 0
 * if that is at most S3_SKEW_S, or more than S3_SKEW_MAX_S, or c is NULL. Any thread. */
#define S3_SKEW_S 2
#define S3_SKEW_MAX_S 86400
int64_t s3_client_skew(const struct s3_client *c);

/* Returns by how many seconds at least a store's clock is ahead whose answer came now, with its
 * date; 0 if that is at most S3_SKEW_S. The answer was written between its request and its end:
 * these are at most `took` seconds apart. Any thread. */
static inline int64_t s3_skew_of(time_t date, time_t now, time_t took)
{
	int64_t least = date - now, most = date + 1 - (now - took);

	return least > S3_SKEW_S ? least : most < -S3_SKEW_S ? most : 0;
}

#endif
