/* form.c - the growing list of a form's files. */
#include "form.h"

#include <string.h>

#include "base/pool.h"

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
