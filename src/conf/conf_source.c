/*
 * conf_source.c - the list of settings: those of an INI file, those of -o, and their places.
 *
 * iniparser 4.1 reports neither line numbers nor duplicates, stops at the first long line and cuts
 * values at ';' and '#'. So a scan finds the place of every line and reports its problems. It
 * copies the good lines to a file in memory, which iniparser loads: both see the same bytes even if
 * the path is a pipe or the file changes. Main thread.
 */
#include "conf_source.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <iniparser/iniparser.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "base/opener.h"
#include "base/text.h"

#define QUOTED_MAX 80 /* bytes of a value in a message; longer ones are cut */
#define FILE_BYTES_MAX ((size_t)1 << 20)
#define LINE_BYTES_MAX 1000 /* iniparser reads lines of up to 1022 */

/* ---- the list ---- */

const struct conf_setting *conf_source_find(const struct conf_source *s, const char *section,
                                            const char *key)
{
	for (size_t i = 0; i < s->count; i++) {
		const struct conf_setting *at = &s->setting[i];

		if (strcmp(at->section, section) == 0 &&
		    (key ? at->key && strcmp(at->key, key) == 0 : !at->key))
			return at;
	}
	return NULL;
}

/* The first setting with the name of the newest one; NULL if that is the newest itself. */
static const struct conf_setting *find_earlier(const struct conf_source *s,
                                               const struct conf_setting *newest)
{
	const struct conf_setting *found = conf_source_find(s, newest->section, newest->key);

	return found == newest ? NULL : found;
}

static char *lower_copy(const char *name, size_t length)
{
	char *copy = strndup(name, length);

	for (char *c = copy; c && *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return copy;
}

/* Appends a setting with lower-case copies of the names; key NULL: a section's head. The caller
 * fills in value and place. NULL: no memory. */
static struct conf_setting *append(struct conf_source *s, const char *section,
                                   size_t section_length, const char *key, size_t key_length)
{
	struct conf_setting *at;

	if (s->count == s->capacity) {
		size_t capacity = s->capacity ? s->capacity * 2 : 64;
		struct conf_setting *grown = reallocarray(s->setting, capacity, sizeof *grown);

		if (!grown)
			return NULL;
		s->setting = grown;
		s->capacity = capacity;
	}
	at = &s->setting[s->count];
	*at = (struct conf_setting){ .section = lower_copy(section, section_length) };
	if (key)
		at->key = lower_copy(key, key_length);
	if (!at->section || (key && !at->key)) {
		free(at->section);
		free(at->key);
		return NULL;
	}
	s->count++;
	return at;
}

static void drop_newest(struct conf_source *s)
{
	struct conf_setting *at = &s->setting[--s->count];

	free(at->section);
	free(at->key);
	free(at->value);
}

void conf_source_fini(struct conf_source *s)
{
	while (s->count > 0)
		drop_newest(s);
	free(s->setting);
	*s = (struct conf_source){ 0 };
}

/* ---- names ---- */

static const char *skip_space(const char *s)
{
	while (isspace((unsigned char)*s))
		s++;
	return s;
}

/* The length of a text without the white space at its end. */
static size_t trimmed(const char *from, const char *end)
{
	while (end > from && isspace((unsigned char)end[-1]))
		end--;
	return end > from ? (size_t)(end - from) : 0;
}

static bool is_name(const char *name, size_t length)
{
	return length > 0 &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") >=
	               length;
}

/* Whether the section is [variant.NAME] with an upper-case letter in NAME. Names in INI files
 * ignore case, but the name of a variant is part of its URL. */
static bool has_capitals(const char *section, size_t length)
{
	static const char prefix[] = "variant.";

	if (length < sizeof prefix || strncasecmp(section, prefix, sizeof prefix - 1) != 0)
		return false;
	for (size_t i = sizeof prefix - 1; i < length; i++)
		if (isupper((unsigned char)section[i]))
			return true;
	return false;
}

/* ---- messages ---- */

/* Appends the value: in double quotes, control bytes as '?', cut after QUOTED_MAX. */
static void quote(struct text *to, const char *value)
{
	size_t length = strlen(value);
	bool is_cut = length > QUOTED_MAX;

	text_put(to, "\"", 1);
	for (size_t i = 0; i < (is_cut ? QUOTED_MAX - 3 : length); i++)
		text_put(to, iscntrl((unsigned char)value[i]) ? "?" : &value[i], 1);
	text_puts(to, is_cut ? "...\"" : "\"");
}

void conf_source_where(const struct conf_source *s, const struct conf_setting *setting,
                       struct text *to)
{
	if (!setting)
		text_puts(to, "default");
	else if (setting->override)
		text_printf(to, "%s%.200s", s->override_lead, setting->override);
	else
		text_printf(to, "%s:%u", s->path, setting->line);
}

void conf_source_report(const struct conf_source *s, const struct conf_setting *setting,
                        const char *message, struct text *errors)
{
	conf_source_where(s, setting, errors);
	text_puts(errors, ": ");
	if (setting && !setting->override && setting->key) {
		text_printf(errors, "%s.%s = ", setting->section, setting->key);
		quote(errors, setting->value);
		text_puts(errors, ": ");
	} else if (setting && !setting->override) {
		text_printf(errors, "[%s]: ", setting->section);
	}
	text_printf(errors, "%s\n", message);
}

/* ---- the file ---- */

struct scan {
	struct conf_source *source;
	struct text *errors;
	FILE *good;          /* the lines without a problem, for iniparser */
	const char *section; /* the current one, borrowed from its head; NULL before the first */
	bool is_lost; /* the last section line was wrong: the keys below it belong to no section */
	unsigned line;
	int err; /* 0, -EINVAL once a problem was reported, or -ENOMEM */
};

/* Reports a problem of the current line. */
__attribute__((format(printf, 2, 3))) static void problem(struct scan *scan, const char *format,
                                                          ...)
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
	struct text t = TEXT_LOCAL(128);

	quote(&t, found);
	problem(scan, "%s: %s", t.data, expected);
}

static bool is_end_or_comment(const char *s)
{
	s = skip_space(s);
	return *s == '\0' || *s == ';' || *s == '#';
}

/* Returns the fault of a section line, or NULL with the name in *name and *length. */
static const char *section_fault(const char *line, const char **name, size_t *length)
{
	const char *close = strchr(line, ']');

	*name = skip_space(line + 1);
	if (!close || !is_end_or_comment(close + 1))
		return "expected [SECTION]";
	*length = trimmed(*name, close);
	if (!is_name(*name, *length))
		return "expected a section's name of letters, digits, '_', '-' and '.'";
	if (has_capitals(*name, *length))
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
	struct conf_setting *head = append(scan->source, name, length, NULL, 0);

	if (!head) {
		scan->err = -ENOMEM;
		return;
	}
	head->line = scan->line;
	scan->section = head->section;
	scan->is_lost = false;
	const struct conf_setting *earlier = find_earlier(scan->source, head);

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
	const char *equals = strchr(line, '=');

	if (!equals)
		return "expected KEY = VALUE, [SECTION] or a comment";
	*length = trimmed(line, equals);
	if (!is_name(line, *length) || memchr(line, '.', *length))
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
		fault = value_fault(skip_space(strchr(line, '=') + 1));
	if (fault) {
		problem_at(scan, line, fault);
		return;
	}
	struct conf_setting *at =
		append(scan->source, scan->section, strlen(scan->section), line, length);

	if (!at) {
		scan->err = -ENOMEM;
		return;
	}
	at->line = scan->line;
	const struct conf_setting *earlier = find_earlier(scan->source, at);

	if (earlier) {
		problem(scan, "duplicate key %s.%s, first on line %u", at->section, at->key,
		        earlier->line);
		drop_newest(scan->source);
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
	length = trimmed(bytes, bytes + length);
	if (length > LINE_BYTES_MAX) {
		problem(scan, "the line has %zu bytes: expected at most %d", length,
		        LINE_BYTES_MAX);
		return;
	}
	memcpy(line, bytes, length);
	line[length] = '\0';
	const char *start = skip_space(line);

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

/* Appends the settings of the file at s->path. Returns as conf_source_read(). */
static int read_file(struct conf_source *s, struct text *errors)
{
	struct scan scan = { .source = s, .errors = errors };
	char *data = malloc(FILE_BYTES_MAX + 1);
	ssize_t size =
		data ? opener_read(s->path, OPENER_READ, data, FILE_BYTES_MAX + 1, NULL) : -ENOMEM;
	int err = size < 0 ? (int)size : (size_t)size > FILE_BYTES_MAX ? -EFBIG : 0;

	if (!err && !(scan.good = open_memory()))
		err = -errno;
	if (!err) {
		scan_file(&scan, data, (size_t)size);
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

/* ---- overrides ---- */

/* Adds SECTION.KEY=VALUE; the section may contain dots. 0, -EINVAL (reported) or -ENOMEM. */
static int add_override(struct conf_source *s, const char *text, struct text *errors)
{
	const char *section = skip_space(text), *equals = strchr(section, '='),
		   *dot = equals ? memrchr(section, '.', (size_t)(equals - section)) : NULL;
	size_t section_length = dot ? (size_t)(dot - section) : 0,
	       key_length = dot ? trimmed(dot + 1, equals) : 0;

	if (!is_name(section, section_length) || !is_name(dot + 1, key_length)) {
		text_puts(errors, s->override_lead);
		quote(errors, text);
		return text_refuse(errors, ": expected SECTION.KEY=VALUE\n");
	}
	if (has_capitals(section, section_length))
		return text_refuse(
			errors,
			"%s%s: expected a variant's name in lower case: it becomes part of URLs\n",
			s->override_lead, text);
	struct conf_setting *at = append(s, section, section_length, dot + 1, key_length);
	const char *value = skip_space(equals + 1);

	if (!at)
		return -ENOMEM;
	at->override = text;
	at->value = strndup(value, trimmed(value, value + strlen(value)));
	if (!at->value) {
		drop_newest(s);
		return -ENOMEM;
	}
	/* It replaces an earlier one in its position, which orders the variants. */
	const struct conf_setting *earlier = find_earlier(s, at);

	if (earlier) {
		struct conf_setting *old = &s->setting[earlier - s->setting], replaced = *old;

		*old = *at;
		*at = replaced;
		drop_newest(s);
	}
	return 0;
}

int conf_source_read(struct conf_source *s, const char *path, const char *const *overrides,
                     size_t override_count, struct text *errors)
{
	int err = 0;

	*s = (struct conf_source){ .path = path, .override_lead = "-o " };
	if (path) {
		err = read_file(s, errors);
		if (err && err != -EINVAL)
			return err;
	}
	for (size_t i = 0; i < override_count; i++) {
		int override_err = add_override(s, overrides[i], errors);

		if (override_err == -ENOMEM) {
			text_printf(errors, "-o %s: %s\n", overrides[i], strerror(ENOMEM));
			return override_err;
		}
		if (override_err)
			err = override_err;
	}
	return err;
}

int conf_source_read_one(struct conf_source *s, const char *setting, struct text *errors)
{
	*s = (struct conf_source){ .override_lead = "" };
	return add_override(s, setting, errors);
}

/* ---- places for messages of the start ---- */

static struct conf_source kept;

const struct conf_source *conf_source_keep(struct conf_source *source)
{
	conf_source_fini(&kept);
	kept = *source;
	*source = (struct conf_source){ 0 };
	return &kept;
}

const char *conf_place(const char *key)
{
	static char place[4096 + 16]; /* PATH_MAX, and a line */
	const char *dot = strrchr(key, '.');
	struct text section = TEXT_LOCAL(64), text;

	text_put(&section, key, (size_t)(dot - key));
	const struct conf_setting *setting = conf_source_find(&kept, section.data, dot + 1);

	text_init(&text, place, sizeof place);
	if (setting && !setting->override) {
		conf_source_where(&kept, setting, &text);
		text_puts(&text, ": ");
	}
	return place;
}
