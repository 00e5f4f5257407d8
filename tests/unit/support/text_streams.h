/*
 * text_streams.h - what a command writes to standard output and standard error, as texts.
 *
 * For tests that include a .c file of a command after this header.
 */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_TEXT_STREAMS_H
#define DARKROOM_TESTS_UNIT_SUPPORT_TEXT_STREAMS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *out_stream, *err_stream;
static char *out_text, *err_text;
static size_t out_size, err_size;

static inline void open_streams(void)
{
	out_stream = open_memstream(&out_text, &out_size);
	err_stream = open_memstream(&err_text, &err_size);
	assert_true(out_stream && err_stream);
}

static inline void close_streams(void)
{
	assert_int_equal(fclose(out_stream) | fclose(err_stream), 0);
	free(out_text);
	free(err_text);
}

/* Compares what was written since the last call. */
static inline void check_written(const char *out, const char *err)
{
	assert_int_equal(fflush(out_stream) | fflush(err_stream), 0);
	assert_string_equal(out_text, out);
	assert_string_equal(err_text, err);
	close_streams();
	open_streams();
}

#undef stdout
#undef stderr
#define stdout out_stream
#define stderr err_stream
#define printf(...) fprintf(out_stream, __VA_ARGS__)
#define puts(line) fprintf(out_stream, "%s\n", line)
#define perror(what) fprintf(err_stream, "%s: error\n", what)

#endif
