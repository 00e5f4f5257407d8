/*
 * disk.h - a file system in memory, and what becomes of it: lost power, killed processes, errors.
 *
 * Each change of a name or of a file's content is a step. A step is certain once it is flushed: a
 * write by a flush of its file, and every step by a flush of the file system. Power that is lost
 * takes any part of the other steps, in any order, and tears writes at sectors. That is weaker than
 * real file systems are. A flush that fails may lose writes for ever, although they can still be
 * read: so Linux does.
 *
 * A fault has the number of the call at which it happens, so a list of faults repeats a run, and
 * each fault can be left out. A call takes a little time, or what wait() takes, in which other
 * threads may run.
 */
#ifndef DARKROOM_TESTS_WORLD_DISK_H
#define DARKROOM_TESTS_WORLD_DISK_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/random.h"
#include "seeds.h"

#define DISK_ROOT "/disk" /* the only path that begins with "/" */

/* X(kind, word): the kinds of faults. */
#define DISK_FAULTS(X)                                                          \
	X(DISK_POWER, "power") /* it is lost, and the process with it */        \
	X(DISK_KILL, "kill")   /* the process ends; what it wrote stays */      \
	X(DISK_EIO, "eio")     /* the call fails */                             \
	X(DISK_FULL, "full")   /* no space for the next calls that need some */ \
	X(DISK_SHORT, "short") /* a write or read ends early */

enum disk_fault_kind {
#define X(kind, word) kind,
	DISK_FAULTS(X)
#undef X
};

extern struct disk {
	jmp_buf life;       /* where a process goes on that has ended: the next one */
	void (*wait)(void); /* before each call; NULL: nothing */
	bool is_quiet;      /* no call is counted, and no fault happens: for checks */
	uint64_t calls;
	uint64_t faults_seen; /* that have made a call fail */
	uint64_t now_ns;      /* since 1970; each call takes a little */
	bool has_lost_power;  /* the reader clears it */
	struct seed_fault fault[SEED_FAULTS_MAX];
	unsigned fault_count, fault_next;
	uint64_t full_until;
	struct random chance; /* behind getrandom() */
} disk;

/* Makes an empty disk without faults. */
void disk_begin(uint64_t seed);

unsigned disk_open_count(void);

/* For seeds.h: the words for the kinds of faults, and disk.calls. */
extern const char *const disk_fault_words[];
uint64_t disk_calls(void);

struct disk_file;

/* Changes a bit of the file, for ever. */
void disk_flip(struct disk_file *f, uint64_t bit);

/* ---- for disk_seams.c: as the system calls, with -errno instead of errno ---- */

struct inode;

/* A descriptor; NULL: it is of the real system. */
struct disk_file {
	struct inode *inode;
	size_t at;
	unsigned entry; /* of a directory: the next one */
};
struct disk_file *disk_file(int fd);

struct disk_stat {
	uint64_t number, size;
	unsigned links, mode;
	bool is_directory;
	uint64_t changed_ns;
};

int disk_open(int at, const char *name, int flags, unsigned mode);
int disk_close(int fd);
int64_t disk_write(struct disk_file *f, const void *data, size_t size, size_t at);
int64_t disk_read(struct disk_file *f, void *data, size_t size, size_t at);
int disk_make_directory(int at, const char *name, unsigned mode);
int disk_unlink(int at, const char *name, bool is_directory);
int disk_rename(int at, const char *name, int to_at, const char *to, bool exchanges);
int disk_link(int at, const char *name, int to_at, const char *to);
int disk_stat(int at, const char *name, struct disk_stat *st); /* name NULL: `at` itself */
int disk_flush(struct disk_file *f, bool all);
int disk_set_tag(struct disk_file *f, const void *tag, size_t size);
int64_t disk_get_tag(const struct disk_file *f, void *tag, size_t size);
const char *disk_next(struct disk_file *f); /* of a directory; NULL: the end */

#endif
