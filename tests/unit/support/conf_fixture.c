/*
 * conf_fixture.c - loads configurations from one temporary file.
 */
#include "conf_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "file_fixture.h"

char conf_path[] = "/tmp/darkroom-test-conf-XXXXXX";
struct text conf_errors;

static struct conf_source source;

int conf_fixture_begin(void **state)
{
	(void)state;
	text_init_growable(&conf_errors, 1 << 20);
	return file_make(conf_path);
}

int conf_fixture_end(void **state)
{
	(void)state;
	text_fini(&conf_errors);
	conf_source_fini(&source);
	return unlink(conf_path);
}

void conf_write_file(const char *data, size_t size)
{
	FILE *f = fopen(conf_path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
}

void conf_clear_errors(void)
{
	text_fini(&conf_errors);
	text_init_growable(&conf_errors, 1 << 20);
}

int load_bytes(struct conf *conf, const char *data, size_t size, const char *const *overrides,
               size_t count)
{
	conf_clear_errors();
	conf_source_fini(&source);
	conf_write_file(data, size);
	return conf_load(conf, &source, conf_path, overrides, count, &conf_errors);
}

int load(struct conf *conf, const char *ini)
{
	return load_bytes(conf, ini, strlen(ini), NULL, 0);
}

int load_with(struct conf *conf, const char *override)
{
	conf_clear_errors();
	conf_source_fini(&source);
	return conf_load(conf, &source, NULL, &override, 1, &conf_errors);
}

const struct conf_source *conf_last_source(void)
{
	return &source;
}

void assert_errors(const char *expected)
{
	char *full = calloc(1, 1 << 16), *to = full;

	assert_non_null(full);
	for (; *expected; expected++) {
		if (*expected == '@')
			to = stpcpy(to, conf_path);
		else
			*to++ = *expected;
	}
	assert_string_equal(conf_errors.data, full);
	free(full);
}

void refuse(const char *ini, const char *expected)
{
	static struct conf conf;

	assert_int_equal(load(&conf, ini), -22);
	assert_errors(expected);
}

void refuse_override(const char *override, const char *expected)
{
	static struct conf conf;

	assert_int_equal(load_with(&conf, override), -22);
	assert_errors(expected);
}
