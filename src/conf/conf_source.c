/*
 * conf_source.c - the list of settings: those of an INI file, those of -o, and their places.
 *
 * A fault of one line is reported with its place, and the lines behind it are read, too. Main
 * thread.
 */
#include "conf_source.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/check.h"
#include "base/opener.h"
#include "base/text.h"

#define QUOTED_MAX 80 /* bytes of a value in a message; longer ones are cut */
#define FILE_BYTES_MAX ((size_t)1 << 20)
#define LINE_BYTES_MAX 1000

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

static void setting_free(const struct conf_setting *at)
{
	free(at->section);
	free(at->key);
	free(at->value);
}

/* Appends a setting, and owns its names and value, of which none may be NULL for want of memory.
 * Returns NULL if there is none. */
static struct conf_setting *append(struct conf_source *s, const struct conf_setting *at,
                                   bool has_key)
{
	bool is_complete = at->section && (!has_key || (at->key && at->value));

	if (is_complete && s->count == s->capacity) {
		size_t capacity = s->capacity ? s->capacity * 2 : 64;
		struct conf_setting *grown = reallocarray(s->setting, capacity, sizeof *grown);

		is_complete = grown;
		s->setting = grown ? grown : s->setting;
		s->capacity = grown ? capacity : s->capacity;
	}
	if (!is_complete) {
		setting_free(at);
		return NULL;
	}
	s->setting[s->count] = *at;
	return &s->setting[s->count++];
}

static void drop_newest(struct conf_source *s)
{
	setting_free(&s->setting[--s->count]);
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
	const struct conf_setting named = { .section = lower_copy(name, length),
		                            .line = scan->line };
	const struct conf_setting *head = append(scan->source, &named, false);

	if (!head) {
		scan->err = -ENOMEM;
		return;
	}
	scan->section = head->section;
	scan->is_lost = false;
	const struct conf_setting *earlier = find_earlier(scan->source, head);

	if (earlier)
		problem(scan, "duplicate section [%s], first on line %u", head->section,
		        earlier->line);
}

/* Returns the fault of the text behind the '=', or NULL with the value in *value and *length: what
 * is between quotation marks, or what precedes a comment. */
static const char *value_fault(const char *text, const char **value, size_t *length)
{
	if (*text == '"' || *text == '\'') {
		const char *close = strchr(text + 1, *text);

		if (!close)
			return "the quotation mark is not closed";
		*value = text + 1;
		*length = (size_t)(close - *value);
		return is_end_or_comment(close + 1)
		               ? NULL
		               : "expected nothing but a comment after the closing quotation mark";
	}
	const char *end = text + strcspn(text, ";#");

	*value = text;
	*length = trimmed(text, end);
	if (!*end || end == text || isspace((unsigned char)end[-1]))
		return NULL;
	return "expected double quotation marks around a value with ';' or '#', or a space before a "
	       "comment";
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
	size_t length, value_length;
	const char *fault = key_fault(line, &length), *value;

	if (!fault && scan->is_lost)
		return;
	if (!fault && !scan->section)
		fault = "expected a [SECTION] before the first key";
	if (!fault)
		fault = value_fault(skip_space(strchr(line, '=') + 1), &value, &value_length);
	if (fault) {
		problem_at(scan, line, fault);
		return;
	}
	const struct conf_setting named = { .section = strdup(scan->section),
		                            .key = lower_copy(line, length),
		                            .value = strndup(value, value_length),
		                            .line = scan->line };
	const struct conf_setting *at = append(scan->source, &named, true);

	if (!at) {
		scan->err = -ENOMEM;
		return;
	}
	const struct conf_setting *earlier = find_earlier(scan->source, at);

	if (earlier) {
		problem(scan, "duplicate key %s.%s, first on line %u", at->section, at->key,
		        earlier->line);
		drop_newest(scan->source);
	}
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

/* Appends the settings of the file at s->path. Returns as conf_source_read(). */
static int read_file(struct conf_source *s, struct text *errors)
{
	struct scan scan = { .source = s, .errors = errors };
	char *data = malloc(FILE_BYTES_MAX + 1);
	ssize_t size =
		data ? opener_read(s->path, OPENER_READ, data, FILE_BYTES_MAX + 1, NULL) : -ENOMEM;
	int err = size < 0 ? (int)size : (size_t)size > FILE_BYTES_MAX ? -EFBIG : 0;

	if (!err)
		scan_file(&scan, data, (size_t)size);
	if (scan.err == -ENOMEM)
		err = -ENOMEM;
	if (err == -EFBIG)
		text_printf(errors, "%s: more than %zu bytes: not a configuration file\n", s->path,
		            FILE_BYTES_MAX);
	else if (err)
		text_printf(errors, "%s: cannot be read: %s\n", s->path, strerror(-err));
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
	const char *value = skip_space(equals + 1);
	const struct conf_setting named = { .section = lower_copy(section, section_length),
		                            .key = lower_copy(dot + 1, key_length),
		                            .value = strndup(value,
		                                             trimmed(value, value + strlen(value))),
		                            .override = text };
	struct conf_setting *at = append(s, &named, true);

	if (!at)
		return -ENOMEM;
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
