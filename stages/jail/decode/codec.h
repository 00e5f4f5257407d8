/*
 * codec.h - decodes a file to planes of 8 bits, and the reverse: the libraries, and what they have
 * in common.
 *
 * A library gives rows of grey or RGB samples, perhaps with alpha. Rows are put on the background,
 * and reduced by whole factors, so that the planes stay small. Nothing is freed: the process ends
 * with its picture. One thread.
 */
#ifndef DARKROOM_JAIL_DECODE_CODEC_H
#define DARKROOM_JAIL_DECODE_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "jail/jail_protocol.h"

struct codec_job {
	const struct jail_request *request;
	const uint8_t *source;
	uint8_t *planes;       /* jail_plane_bytes(), then extra_max */
	void (*turn)(void);    /* called after JAIL_TURN_PIXELS; NULL: never */
	uint64_t extra_bytes;  /* result */
	uint32_t size_read[2]; /* result: as the library reads width and height */

	/* private: of codec_rows_begin() */
	uint32_t width, plane_width, reduce, channels, plane_count;
	uint32_t rows_summed, y;
	uint32_t *sum; /* of each sample of the row of planes */
	uint64_t turn_pixels;
	size_t head_left; /* of a file that is encoded: bytes that are dropped */
};

/* Loads the libraries of the formats that are wanted, and works on a small picture of each, so that
 * tables are made once. Returns those that work, as in jail_notice. */
uint32_t codec_load(uint32_t wanted);

/* Decodes the file, or encodes the planes. Returns how that ended; not JAIL_MORE. */
enum jail_status codec_run(struct codec_job *job);

/* ---- for the libraries' files ---- */

/* Loads the functions of a library. Returns whether all are there. */
struct codec_function {
	const char *name;
	void *field; /* of the pointer */
};
bool codec_load_functions(const char *library, const struct codec_function *functions,
                          size_t count);

/* Defines `lib`, with a pointer to each function of FUNCTIONS(X), and the function that loads them.
 * FULL_NAME() makes the library's names of them. */
#define CODEC_FIELD(name) __typeof__(FULL_NAME(name)) *name;
#define CODEC_TEXT_OF(x) #x
#define CODEC_TEXT(x) CODEC_TEXT_OF(x)
#define CODEC_FUNCTION(name) { CODEC_TEXT(FULL_NAME(name)), &lib.name },
#define CODEC_LIBRARY(load, library)                                                            \
	static struct {                                                                         \
		FUNCTIONS(CODEC_FIELD)                                                          \
	} lib;                                                                                  \
	bool load(void)                                                                         \
	{                                                                                       \
		static const struct codec_function functions[] = { FUNCTIONS(CODEC_FUNCTION) }; \
                                                                                                \
		return codec_load_functions(library, functions, COUNT_OF(functions));           \
	}

bool codec_png_load(void);
enum jail_status codec_png(struct codec_job *job);
bool codec_webp_load(void);
enum jail_status codec_webp(struct codec_job *job);
bool codec_dav1d_load(void);
enum jail_status codec_dav1d(struct codec_job *job);

/* Sets the result, and returns whether it is the size that was asked for. */
bool codec_is_size(struct codec_job *job, uint32_t width, uint32_t height);

/* Begins rows of `width` samples of 1 to 4 channels, each reduced by this factor. Returns whether
 * they are what the request asks for, and there is memory. */
bool codec_rows_begin(struct codec_job *job, uint32_t width, uint32_t channels, uint32_t reduce);
void codec_row(struct codec_job *job, const uint8_t *row);
/* Returns whether all rows have come. */
bool codec_rows_end(struct codec_job *job);

/* Counts pixels of the file, for turns. */
void codec_count(struct codec_job *job, uint64_t pixels);

bool codec_aom_load(void);
enum jail_status codec_aom_encode(struct codec_job *job);
enum jail_status codec_webp_encode(struct codec_job *job);

/* Returns a plane of an encode. */
const uint8_t *codec_plane(const struct codec_job *job, unsigned plane);

/* Appends to the file of an encode, or puts the profile of a decode. Without room there is none,
 * and false is returned. */
bool codec_put(struct codec_job *job, const void *data, size_t size);

#endif
