/*
 * jail_protocol.h - what the daemon and darkroom-decode say to each other.
 *
 * Every process of darkroom-decode has one socket of whole messages (SOCK_SEQPACKET). A slot is a
 * sealed memfd: a file at its start, and the planes behind it at the next page.
 *
 *	darkroom-decode -> daemon  struct jail_notice, with the socket of the child that it names
 *	daemon -> darkroom-decode  struct jail_order: this child is not needed any more
 *	daemon -> child            struct jail_request, once
 *	child -> daemon            struct jail_reply; after JAIL_MORE it waits for one byte
 *	child -> daemon            end of file: no process can write the slot any more
 *
 * A child is not believed: the daemon knows everything but the status, and the size of the profile
 * or of the encoded file.
 */
#ifndef DARKROOM_JAIL_JAIL_PROTOCOL_H
#define DARKROOM_JAIL_JAIL_PROTOCOL_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>

#define JAIL_CONTROL_FD 3 /* of darkroom-decode; the memfds follow */
#define JAIL_SLOTS_MAX 128
#define JAIL_ENCODES(format) (UINT32_C(1) << (16 + (format)))
#define JAIL_PAGE ((uint64_t)4096)
#define JAIL_SLOT_BYTES (UINT64_C(1) << 36) /* of addresses: only what is written takes memory */
/* Pixels of the file after which a child asks for another turn, about 5 ms. */
#define JAIL_TURN_PIXELS 200000

enum jail_status {
	JAIL_DECODED = 1,
	JAIL_MORE,
	/* reasons of a failure that a child may give */
	JAIL_DAMAGED,     /* the library does not accept the file */
	JAIL_UNSUPPORTED, /* colours of a kind that is not known, or HDR */
	JAIL_NO_MEMORY,   /* the file needs more than its header says */
	JAIL_BUSY,        /* the kernel has refused memory, no child was ready for a long time, or
	                     somebody has killed it */
	/* those that the daemon finds */
	JAIL_CRASHED, /* or it has broken the rules */
	JAIL_OFF,     /* too many children of the format have crashed */
	JAIL_STATUSES
};

/* A child is ready, and that before it has ended. */
struct jail_notice {
	int32_t slot; /* -1: formats tells what can be decoded */
	int32_t pid;
	uint32_t formats;  /* a bit for each enum file_format; JAIL_ENCODES() of what is encoded */
	int32_t ended_pid; /* 0: none, or of a zygote that has ended */
	int32_t status;    /* of it: wait(2) */
};

/* Ends a child if it still is that of the slot, wipes the slot and starts another one. */
struct jail_order {
	int32_t slot, pid;
};

/* An encode has planes of YCbCr as its source, each without gaps, and its file is what follows the
 * planes of a decode: a stream of AV1 (OBUs) or VP8. */
enum jail_effort { JAIL_DECODE = 0, JAIL_ENCODE_FAST, JAIL_ENCODE_SMALL };

struct jail_request {
	uint32_t format;        /* enum file_format */
	uint32_t width, height; /* of the picture, as its header says */
	uint32_t plane_count;   /* 1: grey; 3: red, green, blue */
	uint32_t reduce;        /* samples of a side that become one */
	uint32_t background;    /* 0xRRGGBB, behind what is transparent */
	uint32_t cpu_ms;        /* CPU time after which the child ends */
	uint32_t effort;        /* JAIL_DECODE, or of an encode */
	uint32_t quality;       /* of an encode, on the scale of the library */
	uint32_t chroma_reduce; /* of an encode with 3 planes: as reduce, of chroma: 1 or 2 */
	uint64_t source_bytes, memory_bytes;
	uint64_t extra_max; /* a larger profile is dropped; a larger file is none */
};

struct jail_reply {
	uint32_t status;
	uint32_t width, height, plane_count;
	uint64_t extra_bytes; /* behind the planes: of the profile, 0: none; or of the file */
};

/* The planes of a request: each has the same size, and they follow each other. */
static inline uint32_t jail_plane_side(uint32_t side, uint32_t reduce)
{
	return (side + reduce - 1) / reduce;
}

/* Of a plane of an encode. */
static inline uint32_t jail_source_side(const struct jail_request *q, uint32_t side, unsigned plane)
{
	return jail_plane_side(side, plane ? q->chroma_reduce : 1);
}

static inline uint64_t jail_plane_bytes(const struct jail_request *q)
{
	return q->effort ? 0
	                 : (uint64_t)jail_plane_side(q->width, q->reduce) *
	                           jail_plane_side(q->height, q->reduce) * q->plane_count;
}

/* Where the planes begin in a slot, and how much of it the request uses. */
static inline uint64_t jail_planes_at(const struct jail_request *q)
{
	return (q->source_bytes + JAIL_PAGE - 1) & ~(JAIL_PAGE - 1);
}

static inline uint64_t jail_used_bytes(const struct jail_request *q)
{
	uint64_t bytes = jail_planes_at(q) + jail_plane_bytes(q) + q->extra_max;

	return (bytes + JAIL_PAGE - 1) & ~(JAIL_PAGE - 1);
}

/* Removes all that was read and written from a slot, which then takes no memory. Returns whether
 * that is done. */
static inline bool jail_wipe(int slot)
{
	return fallocate(slot, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
	                 (off_t)JAIL_SLOT_BYTES) == 0;
}

#endif
