/* stored_list.c - joins the visible parts of image.json. */
#include "stored_list.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "base/json_reader.h"
#include "storage.h"
#include "store/stored_image.h"

#define TEXT_MAX ((size_t)STORED_LIST_MAX * (STORED_IMAGE_MAX + 2))

static_assert(STORED_LIST_MAX <= STORAGE_READ_MAX, "a page is read at once");

/* Appends an image, unless it is damaged or its time is over. */
static void append(const char *data, size_t length, uint64_t expires, void *arg)
{
	struct text *images = arg;

	if ((expires && expires <= (uint64_t)time(NULL)) || !json_reader_check(data, length))
		return;
	size_t visible = stored_image_public(data, length);

	text_puts(images, images->length > 1 ? ",\n" : "");
	text_put(images, data, visible);
	text_puts(images, visible < length ? "}" : "");
}

int stored_list_append(struct text *images, struct image_service *s, const char *id)
{
	char ids[1][ULID_LENGTH + 1];
	size_t before = images->length;

	memcpy(ids[0], id, sizeof ids[0]);
	int err = storage_read(s, ids, 1, append, images);

	return err ? err : images->length > before;
}

int stored_list_make(struct stored_list *list, struct image_service *s)
{
	list->page.id = list->id;
	text_init_growable(&list->images, TEXT_MAX);
	text_puts(&list->images, "[");
	int err = storage_list(s, &list->page);

	if (!err)
		err = storage_read(s, list->id, list->page.count, append, &list->images);
	if (err)
		return err;
	text_puts(&list->images, "]");
	list->has_more = list->page.count == list->page.max;
	if (list->has_more)
		memcpy(list->last, list->id[list->page.count - 1], sizeof list->last);
	return list->images.overflowed ? -ENOMEM : 0;
}
