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

/* Appends an image. One that was removed since it was listed, is damaged or has expired is left
 * out. */
static void append(struct stored_list *list, struct store *s, const char *id)
{
	char data[STORED_IMAGE_MAX + 1], tag[STORE_TAG_MAX];
	uint64_t size;
	int fd = store_open_file(s, id, STORED_IMAGE, &size);

	if (fd < 0)
		return;
	int length = stored_image_read(fd, data);
	uint64_t expires = store_tag(fd, tag);

	close(fd);
	if ((expires && expires <= (uint64_t)time(NULL)) || length < 0 ||
	    !json_reader_check(data, (size_t)length))
		return;
	size_t visible = stored_image_public(data, (size_t)length);

	text_puts(&list->images, list->images.length > 1 ? ",\n" : "");
	text_put(&list->images, data, visible);
	text_puts(&list->images, visible < (size_t)length ? "}" : "");
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
		append(list, s, list->id[i]);
	text_puts(&list->images, "]");
	list->has_more = list->page.count == list->page.max;
	if (list->has_more)
		memcpy(list->last, list->id[list->page.count - 1], sizeof list->last);
	return list->images.overflowed ? -ENOMEM : 0;
}
