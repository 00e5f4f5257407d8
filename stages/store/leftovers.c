/* leftovers.c - a short list under a lock. Any thread. */
#include "leftovers.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Removes the id, which is there once at most. */
static void drop(struct leftovers *l, const char *id)
{
	unsigned i = 0;

	while (i < l->count && strcmp(l->id[i], id) != 0)
		i++;
	if (i < l->count)
		memmove(l->id[i], l->id[--l->count], sizeof l->id[i]);
}

bool leftovers_add(struct leftovers *l, const char *id)
{
	pthread_mutex_lock(&l->lock);
	drop(l, id);
	bool has_room = l->count < LEFTOVERS_MAX;

	if (has_room)
		memcpy(l->id[l->count++], id, ULID_LENGTH + 1);
	pthread_mutex_unlock(&l->lock);
	return has_room;
}

void leftovers_add_all(struct leftovers *l, int at)
{
	int fd = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(dir)))
		if (ulid_is_valid(entry->d_name, strlen(entry->d_name)))
			leftovers_add(l, entry->d_name);
	closedir(dir);
}

unsigned leftovers_take(struct leftovers *l, char id[LEFTOVERS_MAX][ULID_LENGTH + 1])
{
	pthread_mutex_lock(&l->lock);
	unsigned count = l->count;

	memcpy(id, l->id, count * sizeof l->id[0]);
	l->count = 0;
	pthread_mutex_unlock(&l->lock);
	return count;
}

void leftovers_forget(struct leftovers *l, const char *id)
{
	pthread_mutex_lock(&l->lock);
	drop(l, id);
	pthread_mutex_unlock(&l->lock);
}
