/* form.c - the growing list of a form's files, and its fields. */
#include "form.h"

#include <string.h>

#include "base/pool.h"
#include "conf/conf_fields.h"
#include "image/problem.h"
#include "image/upload.h"

#define FIELD_FOCUS "focus"

struct form *form_new(const char *boundary, size_t boundary_length, size_t header_max)
{
	struct form *form = pool_get(sizeof *form);

	if (!form)
		return NULL;
	*form = (struct form){ .file = NULL };
	multipart_init(&form->multipart, boundary, boundary_length, header_max);
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
		fault = image_texts_add(&form->metadata, name, length, value.data, value.length);
	if (!fault)
		return true;
	problem_set(problem, 400, "malformed-form", "the field %s %s", name, fault);
	return false;
}
