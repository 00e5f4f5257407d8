/* upload_form.c - the growing list of a form's files, and its fields. */
#include "upload_form.h"

#include <string.h>

#include "base/json.h"
#include "base/pool.h"
#include "conf/conf_value.h"
#include "http/problem.h"
#include "upload.h"

#define FIELD_FOCUS "focus"
#define METADATA_VALUE_MAX 1024 /* bytes of one value */

struct form *form_new(const char *boundary, size_t boundary_length, size_t header_max)
{
	struct form *form = pool_get(sizeof *form);

	if (!form)
		return NULL;
	*form = (struct form){ .file = NULL };
	multipart_init(&form->parser[0], boundary, boundary_length, header_max);
	return form;
}

void form_free(struct form *form)
{
	if (form)
		pool_put(form->file);
	pool_put(form);
}

bool form_add_file(struct form *form, const struct multipart_part *part)
{
	if (form->file_count == form->file_room) {
		size_t bytes = form->file_count * sizeof *part;
		struct multipart_part *more =
			pool_get_sized(bytes ? 2 * bytes : sizeof *part, &bytes);

		if (!more)
			return false;
		if (form->file_count)
			memcpy(more, form->file, form->file_count * sizeof *part);
		pool_put(form->file);
		form->file = more;
		form->file_room = (unsigned)(bytes / sizeof *part);
	}
	form->file[form->file_count++] = *part;
	return true;
}

static bool is_focus(const char *name, size_t length)
{
	return length == sizeof FIELD_FOCUS - 1 && memcmp(name, FIELD_FOCUS, length) == 0;
}

/* Returns NULL, or what is wrong with the value. */
static const char *keep_focus(struct form *form, struct slice value)
{
	struct focus focus;

	if (form->focus[0])
		return "occurs twice";
	if (!focus_parse(&focus, value.data, value.length))
		return "is not a point; expected " FOCUS_FORM;
	memcpy(form->focus, value.data, value.length);
	form->focus[value.length] = '\0';
	return NULL;
}

/* Control characters would take six bytes in JSON. A tab and line ends are text. */
static bool is_text(const char *value, size_t length)
{
	for (size_t i = 0; i < length;) {
		size_t step = json_utf8_length((const unsigned char *)value + i, length - i);
		unsigned char c = (unsigned char)value[i];

		if (!step || (c < ' ' && c != '\t' && c != '\n' && c != '\r') || c == 0x7f)
			return false;
		i += step;
	}
	return true;
}

static const char *next(const struct image_texts *m, const char *at)
{
	return at + strlen(at) + 1 < m->data + m->length ? at + strlen(at) + 1 : NULL;
}

static bool has(const struct image_texts *m, const char *name, size_t length)
{
	for (const char *at = m->length ? m->data : NULL; at; at = next(m, at)) {
		if (strlen(at) == length && memcmp(at, name, length) == 0)
			return true;
		at = next(m, at); /* the value */
		if (!at)
			break;
	}
	return false;
}

/* Keeps a text. Returns NULL, or what is wrong with it. */
static const char *keep_text(struct image_texts *m, const char *name, size_t name_length,
                             const char *value, size_t length)
{
	if (has(m, name, name_length))
		return "occurs twice";
	if (length > METADATA_VALUE_MAX)
		return "has more than 1024 bytes";
	if (!is_text(value, length))
		return "is not text in UTF-8, or has control characters";
	if (m->length + name_length + length + 2 > sizeof m->data)
		return "makes all fields of store.metadata more than 2048 bytes";
	char *to = m->data + m->length;

	memcpy(to, name, name_length);
	to[name_length] = '\0';
	if (length)
		memcpy(to + name_length + 1, value, length);
	to[name_length + 1 + length] = '\0';
	m->length += name_length + length + 2;
	return NULL;
}

bool form_keep_field(struct form *form, const struct multipart_part *part, const char *body,
                     const char *metadata, struct problem *problem)
{
	char name[UPLOAD_FIELD_MAX];
	size_t length = multipart_text(span_slice(part->name, body), false, name, sizeof name);
	struct slice value = span_slice(part->body, body);
	const char *fault = NULL;

	if (part->has_file_name || length == 0)
		return true;
	if (is_focus(name, length))
		fault = keep_focus(form, value);
	else if (conf_fields_have(metadata, name, length))
		fault = keep_text(&form->metadata, name, length, value.data, value.length);
	if (!fault)
		return true;
	problem_set(problem, 400, "malformed-form", "the field %s %s", name, fault);
	return false;
}
