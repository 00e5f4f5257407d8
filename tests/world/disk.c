/* disk.c - inodes in two states, now and safe, and the steps from one to the other. */
#include "disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "descriptors.h"

#define FILES_MAX 256
#define NAME_SIZE 80
#define SECTOR ((size_t)512)
#define CALL_NS 1000
#define FULL_CALLS 12
#define BEGIN_NS (UINT64_C(1790000000) * 1000000000)
#define LINKS_OF_DIRECTORY 2

struct entry {
	char name[NAME_SIZE];
	struct inode *inode;
};

struct content {
	struct entry *entry; /* of a directory, in no order */
	unsigned entries;
	uint8_t *data; /* of a file */
	size_t size;
	char tag[96];
	size_t tag_size;
};

struct inode {
	struct inode *next; /* of all */
	uint64_t number, changed_ns;
	bool is_directory;
	unsigned mode, links;
	struct content now, safe;
};

enum step_kind {
	STEP_NAME,
	STEP_UNNAME,
	STEP_RENAME,
	STEP_EXCHANGE,
	STEP_WRITE,
	STEP_CUT,
	STEP_TAG
};

struct step {
	struct step *next;
	enum step_kind kind;
	struct inode *in, *to_in; /* of names: the directories */
	struct inode *of, *other; /* what changes; with EXCHANGE, what `to` names */
	char name[NAME_SIZE], to[NAME_SIZE];
	size_t at, size;
	uint8_t *data;
};

struct disk disk;

const char *const disk_fault_words[] = {
#define X(kind, word) [kind] = word,
	DISK_FAULTS(X)
#undef X
};

static struct {
	struct inode *inodes, *root;
	struct step *first, **last;
	struct disk_file file[FILES_MAX];
	uint64_t numbers;
} own;

static void *get(size_t size)
{
	void *p = calloc(1, size ? size : 1);

	if (!p)
		abort();
	return p;
}

static struct inode *new_inode(bool is_directory, unsigned mode)
{
	struct inode *n = get(sizeof *n);

	n->next = own.inodes;
	own.inodes = n;
	n->number = ++own.numbers;
	n->is_directory = is_directory;
	n->mode = mode;
	n->changed_ns = disk.now_ns;
	n->links = is_directory ? LINKS_OF_DIRECTORY : 0;
	return n;
}

void disk_begin(uint64_t seed)
{
	memset(&disk, 0, sizeof disk);
	memset(&own, 0, sizeof own);
	own.last = &own.first;
	disk.now_ns = BEGIN_NS + seed % 1000000000;
	disk.chance.state = seed;
	own.root = new_inode(true, 0755);
}

static void forget_steps(void)
{
	while (own.first) {
		struct step *s = own.first;

		own.first = s->next;
		free(s->data);
		free(s);
	}
	own.last = &own.first;
}

static void free_content(struct content *c)
{
	free(c->entry);
	free(c->data);
}

/* ---- steps ---- */

static struct content *content_of(struct inode *n, bool is_safe)
{
	return is_safe ? &n->safe : &n->now;
}

static struct entry *find(struct content *c, const char *name)
{
	for (unsigned i = 0; i < c->entries; i++)
		if (strcmp(c->entry[i].name, name) == 0)
			return &c->entry[i];
	return NULL;
}

static void set_name(struct content *c, const char *name, struct inode *of)
{
	struct entry *e = find(c, name);

	if (!e) {
		c->entry = realloc(c->entry, (c->entries + 1) * sizeof *e);
		if (!c->entry)
			abort();
		e = &c->entry[c->entries++];
		snprintf(e->name, sizeof e->name, "%s", name);
	}
	e->inode = of;
}

/* Another step may have given the name to something else. */
static void drop_name(struct content *c, const char *name, const struct inode *of)
{
	struct entry *e = find(c, name);

	if (e && e->inode == of)
		*e = c->entry[--c->entries];
}

static void set_size(struct content *c, size_t size)
{
	if (size > c->size) {
		c->data = realloc(c->data, size);
		if (!c->data)
			abort();
		memset(c->data + c->size, 0, size - c->size);
	}
	c->size = size;
}

/* torn: NULL, or decides which sectors are written. */
static void write_at(struct content *c, const struct step *s, struct random *torn)
{
	if (c->size < s->at + s->size)
		set_size(c, s->at + s->size);
	for (size_t done = 0, n; done < s->size; done += n) {
		n = SECTOR - (s->at + done) % SECTOR;
		n = n < s->size - done ? n : s->size - done;
		if (!torn || random_next(torn) % 4)
			memcpy(c->data + s->at + done, s->data + done, n);
	}
}

static void apply(const struct step *s, bool is_safe, struct random *torn)
{
	struct content *in = s->in ? content_of(s->in, is_safe) : NULL,
		       *to_in = s->to_in ? content_of(s->to_in, is_safe) : NULL,
		       *of = content_of(s->of, is_safe);

	if (s->kind == STEP_NAME) {
		set_name(in, s->name, s->of);
	} else if (s->kind == STEP_UNNAME) {
		drop_name(in, s->name, s->of);
	} else if (s->kind == STEP_RENAME) {
		drop_name(in, s->name, s->of);
		set_name(to_in, s->to, s->of);
	} else if (s->kind == STEP_EXCHANGE) {
		set_name(in, s->name, s->other);
		set_name(to_in, s->to, s->of);
	} else if (s->kind == STEP_WRITE) {
		write_at(of, s, torn);
	} else if (s->kind == STEP_CUT) {
		set_size(of, s->size);
	} else {
		memcpy(of->tag, s->data, s->size);
		of->tag_size = s->size;
	}
}

/* Takes what it points to, and applies it to what can be read. */
static void add_step(struct step step)
{
	struct step *s = get(sizeof *s);

	*s = step;
	s->of->changed_ns = disk.now_ns;
	if (s->in)
		s->in->changed_ns = disk.now_ns;
	apply(s, false, NULL);
	*own.last = s;
	own.last = &s->next;
}

static uint8_t *copy(const void *data, size_t size)
{
	return memcpy(get(size), data, size);
}

static struct step name_step(enum step_kind kind, struct inode *in, const char *name,
                             struct inode *of)
{
	struct step s = { .kind = kind, .in = in, .of = of };

	snprintf(s.name, sizeof s.name, "%s", name);
	return s;
}

/* Removes steps from the list: those of one file or directory, or all. keep: applies them to the
 * safe state; otherwise every second write is lost. */
static void settle(const struct inode *file, bool keep, struct random *random)
{
	struct step **at = &own.first;

	while (*at) {
		struct step *s = *at;
		bool is_content = s->kind >= STEP_WRITE,
		     is_meant = !file ||
		                (is_content ? s->of == file : s->in == file || s->to_in == file),
		     is_lost = !keep && is_meant && is_content && random_next(random) % 2;

		if (keep && is_meant)
			apply(s, true, NULL);
		if ((keep && is_meant) || is_lost) {
			*at = s->next;
			free(s->data);
			free(s);
		} else {
			at = &s->next;
		}
	}
	own.last = at;
}

/* ---- faults ---- */

static void copy_content(struct content *to, const struct content *from)
{
	free_content(to);
	*to = *from;
	to->entry = from->entries ? memcpy(get(from->entries * sizeof *from->entry), from->entry,
	                                   from->entries * sizeof *from->entry)
	                          : NULL;
	to->data = from->size ? copy(from->data, from->size) : NULL;
}

static void count_links(void)
{
	for (struct inode *n = own.inodes; n; n = n->next)
		n->links = n == own.root;
	for (struct inode *n = own.inodes; n; n = n->next)
		for (unsigned i = 0; i < n->now.entries; i++)
			n->now.entry[i].inode->links +=
				n->now.entry[i].inode->is_directory ? LINKS_OF_DIRECTORY : 1;
}

/* Of the steps that are not flushed, none, all, each second or most are on the disk. */
static void lose_power(uint64_t seed)
{
	struct random random = { seed };
	unsigned kept = (unsigned)(random_next(&random) % 5), torn = random_next(&random) % 2;

	for (struct step *s = own.first; s; s = s->next)
		if (random_next(&random) % 4 < kept)
			apply(s, true, torn ? &random : NULL);
	forget_steps();
	for (struct inode *n = own.inodes; n; n = n->next)
		copy_content(&n->now, &n->safe);
	count_links();
}

static void end_process(const struct seed_fault *f)
{
	if (f->kind == DISK_POWER) {
		lose_power(f->seed);
		disk.has_lost_power = true;
	}
	memset(own.file, 0, sizeof own.file);
	longjmp(disk.life, 1);
}

enum call { CALL_LOOKS, CALL_READS, CALL_REMOVES, CALL_NEEDS_SPACE, CALL_FLUSHES };

/* Counts a call. Returns 0, or -errno if it fails. *fault: what it is to do in part; NULL: nothing.
 */
static int count_call(enum call call, const struct seed_fault **partial)
{
	*partial = NULL;
	if (disk.is_quiet)
		return 0;
	disk.now_ns += CALL_NS;
	disk.calls++;
	if (disk.fault_next < disk.fault_count && disk.calls >= disk.fault[disk.fault_next].at) {
		const struct seed_fault *f = &disk.fault[disk.fault_next++];

		if (f->kind == DISK_POWER || f->kind == DISK_KILL)
			end_process(f);
		if (f->kind == DISK_FULL)
			disk.full_until = disk.calls + FULL_CALLS;
		if (f->kind == DISK_SHORT || (f->kind == DISK_EIO && call == CALL_FLUSHES))
			*partial = f;
		if (f->kind == DISK_EIO) {
			disk.faults_seen++;
			return call == CALL_LOOKS ? 0 : -EIO;
		}
	}
	if (call != CALL_NEEDS_SPACE || disk.calls >= disk.full_until)
		return 0;
	disk.faults_seen++;
	return -ENOSPC;
}

#define COUNT_CALL(call)                               \
	do {                                           \
		const struct seed_fault *partial;      \
		int err_ = count_call(call, &partial); \
		if (err_)                              \
			return err_;                   \
	} while (0)

uint64_t disk_calls(void)
{
	return disk.calls;
}

/* ---- descriptors ---- */

struct disk_file *disk_file(int fd)
{
	if (fd < DESCRIPTORS_OF_DISK || fd >= DESCRIPTORS_OF_DISK + FILES_MAX ||
	    !own.file[fd - DESCRIPTORS_OF_DISK].inode)
		return NULL;
	return &own.file[fd - DESCRIPTORS_OF_DISK];
}

static int new_file(struct inode *n)
{
	for (int i = 0; i < FILES_MAX; i++)
		if (!own.file[i].inode) {
			own.file[i] = (struct disk_file){ .inode = n };
			return DESCRIPTORS_OF_DISK + i;
		}
	return -EMFILE;
}

int disk_close(int fd)
{
	struct disk_file *f = disk_file(fd);

	if (!f)
		return -EBADF;
	f->inode = NULL;
	return 0;
}

unsigned disk_open_count(void)
{
	unsigned count = 0;

	for (int i = 0; i < FILES_MAX; i++)
		count += own.file[i].inode != NULL;
	return count;
}

/* ---- names ---- */

/* Returns the directory, or NULL. */
static struct inode *directory_at(int at)
{
	struct disk_file *f = disk_file(at);

	if (at == AT_FDCWD)
		return own.root; /* its only entry is DISK_ROOT */
	return f && f->inode->is_directory ? f->inode : NULL;
}

/* The last part of the path of the root. */
static const char *plain(const char *name)
{
	assert(name[0] != '/' || strcmp(name, DISK_ROOT) == 0);
	return name[0] == '/' ? name + 1 : name;
}

static struct inode *look_up(int at, const char *name)
{
	struct inode *in = directory_at(at);
	struct entry *e = in ? find(&in->now, plain(name)) : NULL;

	if (in && strcmp(name, ".") == 0)
		return in;
	return e ? e->inode : NULL;
}

int disk_open(int at, const char *name, int flags, unsigned mode)
{
	struct inode *in = directory_at(at), *n = look_up(at, name);

	COUNT_CALL(flags & O_CREAT && !n ? CALL_NEEDS_SPACE : CALL_READS);
	assert(!strchr(plain(name), '/') && strlen(name) < NAME_SIZE);
	if (!in)
		return disk_file(at) ? -ENOTDIR : -EBADF;
	if (n && flags & O_CREAT && flags & O_EXCL)
		return -EEXIST;
	if (n && flags & O_DIRECTORY && !n->is_directory)
		return -ENOTDIR;
	if (!n && !(flags & O_CREAT))
		return -ENOENT;
	int fd = new_file(n ? n : in);

	if (fd < 0)
		return fd;
	if (!n) {
		n = own.file[fd - DESCRIPTORS_OF_DISK].inode = new_inode(false, mode);
		n->links = 1;
		add_step(name_step(STEP_NAME, in, name, n));
	} else if (flags & O_TRUNC) {
		add_step((struct step){ .kind = STEP_CUT, .of = n });
	}
	return fd;
}

int disk_make_directory(int at, const char *name, unsigned mode)
{
	struct inode *in = directory_at(at);

	COUNT_CALL(CALL_NEEDS_SPACE);
	if (!in)
		return -EBADF;
	if (look_up(at, name))
		return -EEXIST;
	add_step(name_step(STEP_NAME, in, plain(name), new_inode(true, mode)));
	return 0;
}

int disk_unlink(int at, const char *name, bool is_directory)
{
	struct inode *in = directory_at(at), *n = look_up(at, name);

	COUNT_CALL(CALL_REMOVES);
	if (!in || !n)
		return in ? -ENOENT : -EBADF;
	if (n->is_directory != is_directory)
		return is_directory ? -ENOTDIR : -EISDIR;
	if (n->now.entries)
		return -ENOTEMPTY;
	n->links = is_directory ? 0 : n->links - 1;
	add_step(name_step(STEP_UNNAME, in, name, n));
	return 0;
}

int disk_rename(int at, const char *name, int to_at, const char *to, bool exchanges)
{
	struct inode *in = directory_at(at), *to_in = directory_at(to_at), *n = look_up(at, name),
		     *old = look_up(to_at, to);
	struct step s;

	COUNT_CALL(CALL_NEEDS_SPACE);
	if (!in || !to_in)
		return -EBADF;
	if (!n || (exchanges && !old))
		return -ENOENT;
	if (old && !exchanges && old->is_directory != n->is_directory)
		return n->is_directory ? -ENOTDIR : -EISDIR;
	if (old && !exchanges && old->now.entries)
		return -ENOTEMPTY;
	if (old && !exchanges)
		old->links = old->is_directory ? 0 : old->links - 1;
	s = name_step(exchanges ? STEP_EXCHANGE : STEP_RENAME, in, name, n);
	snprintf(s.to, sizeof s.to, "%s", to);
	s.to_in = to_in;
	s.other = old;
	add_step(s);
	return 0;
}

int disk_link(int at, const char *name, int to_at, const char *to)
{
	struct inode *to_in = directory_at(to_at), *n = look_up(at, name);

	COUNT_CALL(CALL_NEEDS_SPACE);
	if (!to_in || !n)
		return to_in ? -ENOENT : -EBADF;
	if (look_up(to_at, to))
		return -EEXIST;
	n->links++;
	add_step(name_step(STEP_NAME, to_in, to, n));
	return 0;
}

int disk_stat(int at, const char *name, struct disk_stat *st)
{
	struct disk_file *f = disk_file(at);
	struct inode *n = name ? look_up(at, name) : f ? f->inode : NULL;

	COUNT_CALL(CALL_LOOKS);
	if (!n)
		return name ? -ENOENT : -EBADF;
	*st = (struct disk_stat){ .number = n->number,
		                  .size = n->now.size,
		                  .links = n->links,
		                  .mode = n->mode,
		                  .is_directory = n->is_directory,
		                  .changed_ns = n->changed_ns };
	return 0;
}

const char *disk_next(struct disk_file *f)
{
	return f->entry < f->inode->now.entries ? f->inode->now.entry[f->entry++].name : NULL;
}

/* ---- contents ---- */

int64_t disk_write(struct disk_file *f, const void *data, size_t size, size_t at)
{
	const struct seed_fault *partial;
	int err = count_call(CALL_NEEDS_SPACE, &partial);

	if (err)
		return err;
	if (partial && size > 1)
		size /= 2;
	add_step((struct step){ .kind = STEP_WRITE,
	                        .of = f->inode,
	                        .at = at,
	                        .size = size,
	                        .data = copy(data, size) });
	return (int64_t)size;
}

int64_t disk_read(struct disk_file *f, void *data, size_t size, size_t at)
{
	const struct content *c = &f->inode->now;
	const struct seed_fault *partial;
	int err = count_call(CALL_READS, &partial);
	size_t left = at < c->size ? c->size - at : 0;

	if (err)
		return err;
	size = size < left ? size : left;
	if (partial && size > 1)
		size /= 2;
	if (size)
		memcpy(data, c->data + at, size);
	return (int64_t)size;
}

void disk_flip(struct disk_file *f, uint64_t bit)
{
	struct content *c[] = { &f->inode->now, &f->inode->safe };

	for (unsigned i = 0; i < COUNT_OF(c); i++)
		if (c[i]->size)
			c[i]->data[bit / 8 % c[i]->size] ^= (uint8_t)(1U << bit % 8);
}

int disk_flush(struct disk_file *f, bool all)
{
	const struct seed_fault *partial;
	int err = count_call(CALL_FLUSHES, &partial);
	struct random random = { partial ? partial->seed : 0 };

	settle(all ? NULL : f->inode, !err, &random);
	return err;
}

int disk_set_tag(struct disk_file *f, const void *tag, size_t size)
{
	COUNT_CALL(CALL_NEEDS_SPACE);
	assert(size <= sizeof f->inode->now.tag);
	add_step((struct step){
		.kind = STEP_TAG, .of = f->inode, .size = size, .data = copy(tag, size) });
	return 0;
}

int64_t disk_get_tag(const struct disk_file *f, void *tag, size_t size)
{
	const struct content *c = &f->inode->now;

	if (!c->tag_size)
		return -ENODATA;
	if (c->tag_size > size)
		return -ERANGE;
	memcpy(tag, c->tag, c->tag_size);
	return (int64_t)c->tag_size;
}
