/*
 * conf_ini.c - reads an INI file: a scan that judges every line, then iniparser for the values.
 *
 * iniparser 4.1 reports neither line numbers nor duplicates, stops at the first long line and cuts
 * values at ';' and '#'. So the scan finds the place of every line and reports its problems. It
 * copies the good lines to a file in memory, which iniparser loads: both see the same bytes even if
 * the path is a pipe or the file changes. Main thread.
 */
#include "conf_ini.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <iniparser/iniparser.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "base/opener.h"
#include "base/text.h"
#include "conf_source.h"

#define FILE_BYTES_MAX ((size_t)1 << 20)
#define LINE_BYTES_MAX 1000 /* iniparser reads lines of up to 1022 */

struct scan {
	struct conf_source *source;
	struct text *errors;
	FILE *good;          /* the lines without a problem, for iniparser */
	const char *section; /* the current one, borrowed from its head; NULL before the first */
	bool is_lost; /* the last section line was wrong: the keys below it belong to no section */
	unsigned line;
	int err; /* 0, -EINVAL once a problem was reported, or -ENOMEM */
};

/* ---- messages ---- */

static void problem(struct scan *scan, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Reports a problem of the current line. */
static void problem(struct scan *scan, const char *format, ...)
{
	char message[512];
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof message, format, args);
	va_end(args);
	text_printf(scan->errors, "%s:%u: %s\n", scan->source->path, scan->line, message);
	if (scan->err == 0)
		scan->err = -EINVAL;
}

static void problem_at(struct scan *scan, const char *found, const char *expected)
{
	char quoted[128];
	struct text t;

	text_init(&t, quoted, sizeof quoted);
	conf_quote(&t, found);
	problem(scan, "%s: %s", quoted, expected);
}

/* ---- lines ---- */

static bool is_end_or_comment(const char *s)
{
	s = conf_skip_space(s);
	return *s == '\0' || *s == ';' || *s == '#';
}

/* Returns the fault of a section line, or NULL with the name in *name and *length. */
static const char *section_fault(const char *line, const char **name, size_t *length)
{
	const char *close = strchr(line, ']'), *end = close;

	*name = conf_skip_space(line + 1);
	if (!close || !is_end_or_comment(close + 1))
		return "expected [SECTION]";
	while (end > *name && isspace((unsigned char)end[-1]))
		end--;
	*length = end > *name ? (size_t)(end - *name) : 0;
	if (!conf_name_is_valid(*name, *length))
		return "expected a section's name of letters, digits, '_', '-' and '.'";
	if (conf_section_has_capitals(*name, *length))
		return "expected a name in lower case: it becomes part of URLs";
	return NULL;
}

static void scan_section(struct scan *scan, const char *line)
{
	const char *name;
	size_t length;
	const char *fault = section_fault(line, &name, &length);

	scan->is_lost = true;
	if (fault) {
		problem_at(scan, line, fault);
		return;
	}
	struct conf_setting *head = conf_source_append(scan->source, name, length, NULL, 0);

	if (!head) {
		scan->err = -ENOMEM;
		return;
	}
	head->line = scan->line;
	scan->section = head->section;
	scan->is_lost = false;
	const struct conf_setting *earlier = conf_source_earlier(scan->source, head);

	if (earlier)
		problem(scan, "duplicate section [%s], first on line %u", head->section,
		        earlier->line);
	fprintf(scan->good, "[%s]\n", head->section);
}

/* Returns the fault of a value that iniparser would misread without a message, or NULL. */
static const char *value_fault(const char *value)
{
	if (*value == '"' || *value == '\'') {
		const char *close = strchr(value + 1, *value);

		if (!close)
			return "the quotation mark is not closed";
		return is_end_or_comment(close + 1)
		               ? NULL
		               : "expected nothing but a comment after the closing quotation mark";
	}
	for (const char *c = value; *c; c++) {
		if (*c != ';' && *c != '#')
			continue;
		if (c == value || isspace((unsigned char)c[-1]))
			return NULL;
		return "expected double quotation marks around a value with ';' or '#', or a space "
		       "before a comment";
	}
	return NULL;
}

/* Returns the fault of a key's line, or NULL with the length of the key in *length. */
static const char *key_fault(const char *line, size_t *length)
{
	const char *equals = strchr(line, '='), *end = equals;

	if (!equals)
		return "expected KEY = VALUE, [SECTION] or a comment";
	while (end > line && isspace((unsigned char)end[-1]))
		end--;
	*length = (size_t)(end - line);
	if (!conf_name_is_valid(line, *length) || memchr(line, '.', *length))
		return "expected a key of letters, digits, '_' and '-' before the '='";
	return NULL;
}

static void scan_key(struct scan *scan, const char *line)
{
	size_t length;
	const char *fault = key_fault(line, &length);

	if (!fault && scan->is_lost)
		return;
	if (!fault && !scan->section)
		fault = "expected a [SECTION] before the first key";
	if (!fault)
		fault = value_fault(conf_skip_space(strchr(line, '=') + 1));
	if (fault) {
		problem_at(scan, line, fault);
		return;
	}
	struct conf_setting *at = conf_source_append(scan->source, scan->section,
	                                             strlen(scan->section), line, length);

	if (!at) {
		scan->err = -ENOMEM;
		return;
	}
	at->line = scan->line;
	const struct conf_setting *earlier = conf_source_earlier(scan->source, at);

	if (earlier) {
		problem(scan, "duplicate key %s.%s, first on line %u", at->section, at->key,
		        earlier->line);
		conf_source_drop_newest(scan->source);
		return;
	}
	fprintf(scan->good, "%s\n", line);
}

static void scan_line(struct scan *scan, const char *bytes, size_t length)
{
	char line[LINE_BYTES_MAX + 1];

	if (memchr(bytes, '\0', length)) {
		problem(scan, "a zero byte: expected text");
		return;
	}
	while (length > 0 && isspace((unsigned char)bytes[length - 1]))
		length--;
	if (length > LINE_BYTES_MAX) {
		problem(scan, "the line has %zu bytes: expected at most %d", length,
		        LINE_BYTES_MAX);
		return;
	}
	memcpy(line, bytes, length);
	line[length] = '\0';
	const char *start = conf_skip_space(line);

	if (is_end_or_comment(start))
		return;
	assert(length > 0);
	if (line[length - 1] == '\\')
		problem_at(scan, start,
		           "ends in a backslash: expected the whole value on one line");
	else if (*start == '[')
		scan_section(scan, start);
	else
		scan_key(scan, start);
}

static void scan_file(struct scan *scan, const char *data, size_t size)
{
	static const char mark[] = "\xEF\xBB\xBF"; /* some editors begin UTF-8 files with it */
	const char *end = data + size;

	if (size >= 3 && memcmp(data, mark, 3) == 0)
		data += 3;
	while (data < end && scan->err != -ENOMEM) {
		const char *newline = memchr(data, '\n', (size_t)(end - data));
		const char *stop = newline ? newline : end;

		scan->line++;
		scan_line(scan, data, (size_t)(stop - data));
		data = newline ? newline + 1 : end;
	}
}

/* ---- values ---- */

/* Suppresses the messages of iniparser: the scan has reported every problem. */
__attribute__((format(printf, 1, 2))) static int keep_quiet(const char *format, ...)
{
	(void)format;
	return 0;
}

/* Loads a file in memory with iniparser, which takes paths only. NULL: errno has the reason. */
static dictionary *load_dictionary(FILE *good)
{
	char path[32];

	if (fflush(good) || ferror(good))
		return NULL;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fileno(good));
	iniparser_set_error_callback(keep_quiet);
	errno = ENOMEM; /* unless the call has another reason */
	return iniparser_load(path);
}

/* Gives every key of the scan its value. 0 or -errno. */
static int take_values(struct conf_source *s, FILE *good)
{
	dictionary *values = load_dictionary(good);
	int err = values ? 0 : -errno;

	for (size_t i = 0; i < s->count && !err; i++) {
		struct conf_setting *at = &s->setting[i];
		char name[2 * LINE_BYTES_MAX + 2];

		if (!at->key)
			continue;
		snprintf(name, sizeof name, "%s:%s", at->section, at->key);
		at->value = strdup(iniparser_getstring(values, name, ""));
		if (!at->value)
			err = -ENOMEM;
	}
	if (values)
		iniparser_freedict(values);
	return err;
}

/* ---- the file ---- */

/* Reads the whole file into *data, which the caller frees; *size is 0 before. 0 or -errno; -EFBIG
 * above FILE_BYTES_MAX. */
static int read_file(const char *path, char **data, size_t *size)
{
	int fd = opener_open(path, OPENER_READ), err = 0;
	ssize_t n = 1;

	if (fd < 0)
		return fd;
	*data = malloc(FILE_BYTES_MAX + 1);
	if (!*data)
		err = -ENOMEM;
	while (!err && n > 0) {
		n = read(fd, *data + *size, FILE_BYTES_MAX + 1 - *size);
		if (n > 0)
			*size += (size_t)n;
		else if (n < 0 && errno == EINTR)
			n = 1;
		else if (n < 0)
			err = -errno;
	}
	if (!err && *size > FILE_BYTES_MAX)
		err = -EFBIG;
	close(fd);
	return err;
}

/* A file in memory, or NULL with the reason in errno. The first call makes it and later calls use
 * it again: the sandbox forbids another. */
static FILE *open_memory(void)
{
	static int memory = -1;

	if (memory < 0)
		memory = memfd_create("darkroom-conf", MFD_CLOEXEC);
	if (memory < 0 || ftruncate(memory, 0) || lseek(memory, 0, SEEK_SET))
		return NULL;
	int fd = fcntl(memory, F_DUPFD_CLOEXEC, 0);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w+");

	if (fd >= 0 && !f)
		close(fd);
	return f;
}

int conf_ini_read(struct conf_source *s, struct text *errors)
{
	struct scan scan = { .source = s, .errors = errors };
	char *data = NULL;
	size_t size = 0;
	int err = read_file(s->path, &data, &size);

	if (!err && !(scan.good = open_memory()))
		err = -errno;
	if (!err) {
		scan_file(&scan, data, size);
		err = scan.err == -ENOMEM ? -ENOMEM : take_values(s, scan.good);
	}
	if (err == -EFBIG)
		text_printf(errors, "%s: more than %zu bytes: not a configuration file\n", s->path,
		            FILE_BYTES_MAX);
	else if (err)
		text_printf(errors, "%s: cannot be read: %s\n", s->path, strerror(-err));
	if (scan.good)
		fclose(scan.good);
	free(data);
	return err ? err : scan.err;
}
