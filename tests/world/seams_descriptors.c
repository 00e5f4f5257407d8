/* seams_descriptors.c - calls that virtual and real descriptors have in common. */
#include "descriptors.h"

#include <errno.h>
#include <unistd.h>

#include "seam.h"

static struct descriptors *kinds;

void descriptors_add(struct descriptors *kind)
{
	kind->next = kinds;
	kinds = kind;
}

const struct descriptors *descriptors_of(int fd)
{
	const struct descriptors *d = kinds;

	while (d && (fd < d->first || fd >= d->first + DESCRIPTORS_MAX))
		d = d->next;
	return d;
}

SEAM(int, close, int fd)
{
	const struct descriptors *d = descriptors_of(fd);

	CALLED(close);
	return d ? d->close(fd) : __real_close(fd);
}

SEAM(ssize_t, write, int fd, const void *data, size_t size)
{
	const struct descriptors *d = descriptors_of(fd);

	CALLED(write);
	return d ? d->write(fd, data, size) : __real_write(fd, data, size);
}
