/*
 * conf_source.c - reads settings from an INI file, with iniparser, and from -o overrides.
 *
 * iniparser gives neither line numbers nor a word about duplicates, stops at the first long line
 * and cuts values at
 * ';' and '#'. So a scan of our own finds every line's place and judges it, and iniparser reads a
 * copy of the lines that passed, from memory: both see the same bytes even if the path is a pipe or
 * the file changes. Main thread.
 */
#include "conf_source.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <iniparser/iniparser.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "base/text.h"

#define FILE_BYTES_MAX ((size_t)1 << 20)
#define LINE_BYTES_MAX 1000 /* iniparser reads lines of up to 1022 */

struct scan {
	struct conf_source *source;
	struct text *errors;
	struct text copy; /* the lines that passed, for iniparser */
	char *section;    /* the current one; NULL before the first; borrowed from its head */
	bool is_lost; /* the last section line was wrong: keys up to the next one have no section to
	                 judge */
	unsigned line;
	int err; /* 0, -EINVAL once a problem was reported, -ENOMEM */
};

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

/* The first one of the same name before the newest; NULL if it is the first itself. */
static const struct conf_setting *find_before(const struct conf_source *s,
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

/* Appends a setting made of copies of the names. NULL: no memory. */
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

/* ---- messages ---- */

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

void conf_quote(struct text *to, const char *value)
{
	size_t length = strlen(value);
	bool is_cut = length > 80;

	text_put(to, "\"", 1);
	for (size_t i = 0; i < (is_cut ? 77 : length); i++)
		text_put(to, iscntrl((unsigned char)value[i]) ? "?" : &value[i], 1);
	text_puts(to, is_cut ? "...\"" : "\"");
}

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

static bool is_name(const char *s, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)s[i]) && s[i] != '_' && s[i] != '-' && s[i] != '.')
			return false;
	return length > 0;
}

/* Names are not told apart by case, as usual in INI files; but a variant's name is part of its URL.
 */
static bool has_capitals_in_variant(const char *section, size_t length)
{
	static const char prefix[] = "variant.";

	if (length < sizeof prefix || strncasecmp(section, prefix, sizeof prefix - 1) != 0)
		return false;
	for (size_t i = sizeof prefix - 1; i < length; i++)
		if (isupper((unsigned char)section[i]))
			return true;
	return false;
}

static const char *skip_space(const char *s)
{
	while (isspace((unsigned char)*s))
		s++;
	return s;
}

static bool is_end_or_comment(const char *s)
{
	s = skip_space(s);
	return *s == '\0' || *s == ';' || *s == '#';
}

static void scan_section(struct scan *scan, const char *line)
{
	const char *name = skip_space(line + 1), *close = strchr(line, ']'), *end = close;
	const struct conf_setting *earlier;
	struct conf_setting *head;

	scan->is_lost = true;
	if (!close || !is_end_or_comment(close + 1)) {
		problem_at(scan, line, "expected [SECTION]");
		return;
	}
	while (end > name && isspace((unsigned char)end[-1]))
		end--;
	if (end < name || !is_name(name, (size_t)(end - name))) {
		problem_at(scan, line,
		           "expected a section's name of letters, digits, '_', '-' and '.'");
		return;
	}
	if (has_capitals_in_variant(name, (size_t)(end - name))) {
		problem_at(scan, line, "expected a name in lower case: it becomes part of URLs");
		return;
	}
	head = append(scan->source, name, (size_t)(end - name), NULL, 0);
	if (!head) {
		scan->err = -ENOMEM;
		return;
	}
	head->line = scan->line;
	scan->section = head->section;
	scan->is_lost = false;
	earlier = find_before(scan->source, head);
	if (earlier)
		problem(scan, "section [%s] was begun on line %u already", head->section,
		        earlier->line);
	text_printf(&scan->copy, "[%s]", head->section);
}

/* What iniparser would silently drop or misread. NULL: nothing. */
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
		return "a value with ';' or '#' in it must stand in double quotation marks, and a comment after a space";
	}
	return NULL;
}

static void scan_key(struct scan *scan, const char *line)
{
	const char *equals = strchr(line, '='), *end = equals, *fault;
	const struct conf_setting *earlier;
	struct conf_setting *at;

	if (!equals) {
		problem_at(scan, line, "expected KEY = VALUE, [SECTION] or a comment");
		return;
	}
	while (end > line && isspace((unsigned char)end[-1]))
		end--;
	if (!is_name(line, (size_t)(end - line)) || memchr(line, '.', (size_t)(end - line))) {
		problem_at(scan, line,
		           "expected a key of letters, digits, '_' and '-' before the '='");
		return;
	}
	if (scan->is_lost)
		return;
	if (!scan->section) {
		problem_at(scan, line, "stands before the first [SECTION]");
		return;
	}
	fault = value_fault(skip_space(equals + 1));
	if (fault) {
		problem_at(scan, line, fault);
		return;
	}
	at = append(scan->source, scan->section, strlen(scan->section), line, (size_t)(end - line));
	if (!at) {
		scan->err = -ENOMEM;
		return;
	}
	at->line = scan->line;
	earlier = find_before(scan->source, at);
	if (earlier) {
		problem(scan, "%s.%s was given on line %u already", at->section, at->key,
		        earlier->line);
		drop_newest(scan->source);
		return;
	}
	text_puts(&scan->copy, line);
}

static void scan_line(struct scan *scan, const char *bytes, size_t length)
{
	char line[LINE_BYTES_MAX + 1];
	const char *start;

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
	start = skip_space(line);
	if (*start == '\0' || *start == ';' || *start == '#')
		return;
	if (line[length - 1] == '\\')
		problem_at(scan, start,
		           "ends in a backslash: expected the whole value on one line");
	else if (*start == '[')
		scan_section(scan, start);
	else
		scan_key(scan, start);
}

/* Every line of the file leaves one in the copy, if only an empty one. */
static void scan_file(struct scan *scan, const char *data, size_t size)
{
	static const char mark[] = "\xEF\xBB\xBF"; /* that some editors begin UTF-8 files with */
	const char *end = data + size;

	if (size >= 3 && memcmp(data, mark, 3) == 0)
		data += 3;
	while (data < end && scan->err != -ENOMEM) {
		const char *newline = memchr(data, '\n', (size_t)(end - data));
		const char *stop = newline ? newline : end;

		scan->line++;
		scan_line(scan, data, (size_t)(stop - data));
		text_put(&scan->copy, "\n", 1);
		data = newline ? newline + 1 : end;
	}
}

/* ---- the file ---- */

/* Reads all of it into *data, malloc'd here; *size is 0 before. 0 or -errno; -EFBIG above
 * FILE_BYTES_MAX. */
static int read_file(const char *path, char **data, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int err = 0;
	ssize_t n = 1;

	if (fd < 0)
		return -errno;
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

/* Swallows what iniparser would print by itself: the scan has reported every problem before. */
__attribute__((format(printf, 1, 2))) static int keep_quiet(const char *format, ...)
{
	(void)format;
	return 0;
}

/* Hands the text to iniparser as a file in memory. NULL: errno says why. */
static dictionary *parse_copy(const struct text *copy)
{
	int fd = memfd_create("darkroom-conf", MFD_CLOEXEC);
	dictionary *parsed = NULL;
	char path[32];
	size_t at = 0;

	if (fd < 0)
		return NULL;
	while (at < copy->length) {
		ssize_t n = write(fd, copy->data + at, copy->length - at);

		if (n > 0)
			at += (size_t)n;
		else if (errno != EINTR)
			goto out;
	}
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	iniparser_set_error_callback(keep_quiet);
	errno = 0;
	parsed = iniparser_load(path);
	if (!parsed && errno == 0)
		errno = ENOMEM;
out:
	close(fd);
	return parsed;
}

/* Gives every key found by the scan its value. 0 or -errno. */
static int take_values(struct conf_source *s, const struct text *copy)
{
	dictionary *parsed;
	int err = 0;

	if (copy->overflowed)
		return -ENOMEM;
	parsed = parse_copy(copy);
	if (!parsed)
		return -errno;
	for (size_t i = 0; i < s->count && !err; i++) {
		char name[2 * LINE_BYTES_MAX + 2];
		const char *value;

		if (!s->setting[i].key)
			continue;
		snprintf(name, sizeof name, "%s:%s", s->setting[i].section, s->setting[i].key);
		value = iniparser_getstring(parsed, name, "");
		s->setting[i].value = strdup(value ? value : "");
		if (!s->setting[i].value)
			err = -ENOMEM;
	}
	iniparser_freedict(parsed);
	return err;
}

static int read_ini(struct conf_source *s, struct text *errors)
{
	struct scan scan = { .source = s, .errors = errors };
	char *data = NULL;
	size_t size = 0;
	int err;

	text_init_growable(&scan.copy, 2 * FILE_BYTES_MAX);
	err = read_file(s->path, &data, &size);
	if (!err) {
		scan_file(&scan, data, size);
		err = scan.err == -ENOMEM ? -ENOMEM : take_values(s, &scan.copy);
	}
	if (err == -EFBIG)
		text_printf(errors, "%s: more than %zu bytes: not a configuration file\n", s->path,
		            FILE_BYTES_MAX);
	else if (err)
		text_printf(errors, "%s: cannot be read: %s\n", s->path, strerror(-err));
	text_fini(&scan.copy);
	free(data);
	return err ? err : scan.err;
}

/* ---- overrides ---- */

/* text is SECTION.KEY=VALUE; the section may have dots itself. 0, -EINVAL (reported) or -ENOMEM. */
static int add_override(struct conf_source *s, const char *text, struct text *errors)
{
	const char *equals = strchr(text, '='), *dot = NULL, *start = skip_space(text), *end,
		   *value;
	const struct conf_setting *earlier;
	struct conf_setting *at;
	size_t length;

	for (const char *c = start; equals && c < equals; c++)
		if (*c == '.')
			dot = c;
	for (end = equals; dot && end > dot && isspace((unsigned char)end[-1]);)
		end--;
	if (!dot || !is_name(start, (size_t)(dot - start)) ||
	    !is_name(dot + 1, (size_t)(end - dot - 1))) {
		text_puts(errors, s->override_lead);
		conf_quote(errors, text);
		text_puts(errors, ": expected SECTION.KEY=VALUE\n");
		return -EINVAL;
	}
	if (has_capitals_in_variant(start, (size_t)(dot - start))) {
		text_printf(
			errors,
			"%s%s: expected a variant's name in lower case: it becomes part of URLs\n",
			s->override_lead, text);
		return -EINVAL;
	}
	value = skip_space(equals + 1);
	length = strlen(value);
	while (length > 0 && isspace((unsigned char)value[length - 1]))
		length--;
	at = append(s, start, (size_t)(dot - start), dot + 1, (size_t)(end - dot - 1));
	if (!at)
		return -ENOMEM;
	at->override = text;
	at->value = strndup(value, length);
	if (!at->value) {
		drop_newest(s);
		return -ENOMEM;
	}
	earlier = find_before(s, at);
	if (earlier) { /* takes its place in the order, which is that of the variants */
		struct conf_setting *old = &s->setting[earlier - s->setting];
		struct conf_setting replaced = *old;

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
		err = read_ini(s, errors);
		if (err && err != -EINVAL)
			return err;
	}
	for (size_t i = 0; i < override_count; i++) {
		int e = add_override(s, overrides[i], errors);

		if (e == -ENOMEM) {
			text_printf(errors, "-o %s: %s\n", overrides[i], strerror(ENOMEM));
			return e;
		}
		if (e)
			err = e;
	}
	return err;
}

int conf_source_read_one(struct conf_source *s, const char *setting, struct text *errors)
{
	*s = (struct conf_source){ .override_lead = "" };
	return add_override(s, setting, errors);
}
