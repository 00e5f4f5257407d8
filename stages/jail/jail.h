/*
 * jail.h - decodes a picture of another format than JPEG in a process that can do nothing else.
 *
 * The processes are those of darkroom-decode. Each decodes one picture, and has nothing but its
 * file, its planes and the memory that the picture has reserved. What it could do wrong:
 *
 *	crash, never answer, answer nonsense    its picture fails; JAIL_CRASHED
 *	write wrong pixels                      they are the picture of who sent the file
 *	use much CPU time                       the picture is charged; cpu_ms ends the process
 *	go on when the job has ended            it is killed
 *	keep something for the next picture     there is none: it ends, and its slot is wiped
 *
 * The pixels are read after the process has ended, when nobody can change them. Any thread; a job
 * belongs to one thread at a time.
 */
#ifndef DARKROOM_JAIL_JAIL_H
#define DARKROOM_JAIL_JAIL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "file_header.h"
#include "jail_protocol.h"

/*
 * Starts the program, which decodes up to `slots` pictures at a time, and encodes as many beside
 * them. `formats` has a bit for each enum file_format that is decoded, and JAIL_ENCODES() of each
 * that is encoded; 0 starts nothing. Call it before the sandbox and before any thread. Returns 0,
 * or -errno with the reason logged; then no format can be decoded.
 */
int jail_start(const char *program, uint32_t formats, unsigned slots);

/* Ends the processes. */
void jail_stop(void);

/* Return whether pictures of this format are decoded here, and whether its files are made. */
bool jail_can_decode(enum file_format format);
bool jail_can_encode(enum file_format format);

#define JAIL_OFF_S 60 /* after JAIL_OFF at most */

enum jail_result { JAIL_JOB_FAILED = -1, JAIL_JOB_DONE = 0, JAIL_JOB_MORE = 1 };

/* A picture that is being decoded. The first two members are the caller's; request.source_bytes is
 * the size of the source. */
struct jail_job {
	struct jail_request request;
	const uint8_t *source;

	/* public: the reason of a failure; and the CPU time of the process, which the caller may
	 * set to 0 after it has charged it */
	enum jail_status fault;
	uint64_t cpu_ns;
	uint64_t extra_bytes; /* after JAIL_JOB_DONE: of the profile, or of the file */
	unsigned turns;       /* that the process has had, of JAIL_TURN_PIXELS */

	/* private */
	struct jail_slot *slot; /* NULL: it waits for one */
	int socket;             /* of the process; after a slot was taken */
	int32_t pid;
	bool is_paused, has_reply;
	bool has_ended;      /* the process, so that the planes may be read */
	const char *failure; /* what it has done wrong; NULL: nothing */
	uint64_t charged_ns; /* of the CPU time, all in all */
	unsigned waited_ms;  /* in vain, since there was progress */
	struct jail_reply reply;
};

/* Begins a job: sets all but the members of the caller. It must end with jail_job_end(). */
void jail_job_begin(struct jail_job *job);

/* Waits for the process, for up to 2 ms. Call it while it returns JAIL_JOB_MORE; between two calls
 * the process stops at its next turn. */
enum jail_result jail_job_advance(struct jail_job *job);

/* After JAIL_JOB_DONE: copies a plane, or the profile or the file. Returns whether it could be
 * read. */
bool jail_job_read_plane(const struct jail_job *job, unsigned plane, uint8_t *to, ptrdiff_t stride);
bool jail_job_read_extra(const struct jail_job *job, void *to);

/* Ends the job in any state. Its process is killed, and what it has used is wiped. */
void jail_job_end(struct jail_job *job);

/* Of a format, since the start. */
struct jail_counters {
	_Atomic uint64_t cpu_ns; /* of the processes, as far as jobs were charged for it */
	_Atomic uint64_t faults[JAIL_STATUSES];
};
const struct jail_counters *jail_counters(enum file_format format);

#endif
