/*
 * conf_fixture.h - a configuration file for tests, and the messages about it.
 */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_CONF_FIXTURE_H
#define DARKROOM_TESTS_UNIT_SUPPORT_CONF_FIXTURE_H

#include <stddef.h>

#include "base/text.h"
#include "conf/conf.h"
#include "conf/conf_source.h"
#include "conf/stage_table.h"

/* The shortest valid file. */
#define VARIANT "[variant.a]\noperations = scale 10x10 inside\n"

/* The stages of the test program, which it defines by this once. */
enum { STAGE_SOURCE = 0, STAGE_PARSE, STAGE_BLUR, STAGE_DISK, STAGES };

#define CONF_FIXTURE_STAGES                             \
	unsigned stage_table_count(void)                \
	{                                               \
		return STAGES;                          \
	}                                               \
	const char *stage_table_name(unsigned index)    \
	{                                               \
		static const char *const name[] = {     \
			[STAGE_SOURCE] = "accept_read", \
			[STAGE_PARSE] = "http_parse",   \
			[STAGE_BLUR] = "blur",          \
			[STAGE_DISK] = "disk_write",    \
		};                                      \
                                                        \
		return name[index];                     \
	}                                               \
	bool stage_table_is_source(unsigned index)      \
	{                                               \
		return index == STAGE_SOURCE;           \
	}

extern char conf_path[];        /* of the file */
extern struct text conf_errors; /* of the last call */

/* For cmocka_run_group_tests(): creates and removes the file. */
int conf_fixture_begin(void **state);
int conf_fixture_end(void **state);

void conf_write_file(const char *data, size_t size);

/* Forgets the messages so far. */
void conf_clear_errors(void);

/* Write the file, load it and return what conf_load() returns. */
int load_bytes(struct conf *conf, const char *data, size_t size, const char *const *overrides,
               size_t count);
int load(struct conf *conf, const char *ini);

/* Loads the defaults with one override. */
int load_with(struct conf *conf, const char *override);

/* The places of the last call. */
const struct conf_source *conf_last_source(void);

/* The messages must be exactly these; "@" stands for the file's path. */
void assert_errors(const char *expected);

/* Loading must fail with exactly these messages. */
void refuse(const char *ini, const char *expected);
void refuse_override(const char *override, const char *expected);

#endif
