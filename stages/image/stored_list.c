/* stored_list.c - joins the visible parts of image.json. */
#include "stored_list.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "base/json_reader.h"
#include "store/store.h"
#include "store/store_find.h"
#include "store/stored_image.h"

#define TEXT_MAX ((size_t)STORED_LIST_MAX * (STORED_IMAGE_MAX + 2))

bool stored_list_append(struct text *images, struct store *s, const char *id)
{
	char data[STORED_IMAGE_MAX + 1], tag[STORE_TAG_MAX];
	uint64_t size;
	int fd = store_open_file(s, id, STORED_IMAGE, &size);

	if (fd < 0)
		return false;
	int length = stored_image_read(fd, data);
	uint64_t expires = store_tag(fd, tag);

	close(fd);
	if ((expires && expires <= (uint64_t)time(NULL)) || length < 0 ||
	    !json_reader_check(data, (size_t)length))
		return false;
	size_t visible = stored_image_public(data, (size_t)length);

	text_puts(images, images->length > 1 ? ",\n" : "");
	text_put(images, data, visible);
	text_puts(images, visible < (size_t)length ? "}" : "");
	return true;
}

int stored_list_make(struct stored_list *list, struct store *s)
{
	list->page.id = list->id;
	text_init_growable(&list->images, TEXT_MAX);
	text_puts(&list->images, "[");
	int err = store_page_read(s->root_fd, &list->page);

	if (err)
		return err;
	for (unsigned i = 0; i < list->page.count; i++)
		stored_list_append(&list->images, s, list->id[i]);
	text_puts(&list->images, "]");
	list->has_more = list->page.count == list->page.max;
	if (list->has_more)
		memcpy(list->last, list->id[list->page.count - 1], sizeof list->last);
	return list->images.overflowed ? -ENOMEM : 0;
}
