/* s3_spool.c - puts, lists, takes and ends spooled images. */
#include "s3_spool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/pool.h"
#include "s3_holder.h"
#include "store/checksum.h"

#define READ_MAX 16 /* leases at once */
#define KEYS_MAX 64 /* of one list: an image has two */

struct s3_spool {
	struct s3_store *store;
	struct s3_holder holder;
};

/* ---- objects ---- */

/* Removes the original, and then the lease if is_whole. Returns 0 or -errno. */
static int delete_objects(struct s3_spool *sp, const char *id, bool is_whole)
{
	char key[S3_KEY_MAX];

	s3_original_key(key, id);
	int err = s3_remove(sp->store, key);

	if (err || !is_whole)
		return err;
	s3_lease_key(key, id);
	return s3_remove(sp->store, key);
}

int s3_spool_end(struct s3_spool *sp, const char *id)
{
	struct s3_lease lease;
	char ids[1][ULID_LENGTH + 1];
	int read_err = 0;

	snprintf(ids[0], sizeof ids[0], "%s", id);
	int err = s3_lease_read(sp->store, (const char(*)[ULID_LENGTH + 1]) ids, &lease, &read_err,
	                        1);

	if (!err)
		err = read_err == -ENOENT ? -ESTALE : read_err; /* another node has ended it */
	if (!err && lease.state == S3_LEASE_REMOVED)
		err = -ENOENT;
	if (!err && strcmp(lease.node, sp->holder.node) != 0)
		err = -ESTALE;
	return err ? err : delete_objects(sp, id, true);
}

int s3_spool_forget(struct s3_spool *sp, const char *id)
{
	return delete_objects(sp, id, true);
}

int s3_spool_clear(struct s3_spool *sp, const char *id)
{
	struct s3_lease lease;
	int err = s3_holder_change(&sp->holder, id, S3_TAKE, 0, &lease);

	if (!err)
		err = delete_objects(sp, id, true);
	s3_holder_release(&sp->holder, id);
	return err;
}

int s3_spool_remove(struct s3_spool *sp, const char *id)
{
	struct s3_lease lease;
	int err = s3_holder_change(&sp->holder, id, S3_REMOVE, 0, &lease);

	return err ? err : delete_objects(sp, id, false);
}

/* ---- putting ---- */

struct put {
	struct s3_op lease, original;
	char data[S3_LEASE_MAX];
};

static void prepare_put(const struct s3_spool *sp, struct put *put, const struct store_item *item,
                        uint64_t expires_ms)
{
	struct s3_lease lease = { .state = S3_LEASE_HELD,
		                  .expires_ms = expires_ms,
		                  .note_length = item->file[1].size };

	memcpy(lease.node, sp->holder.node, sizeof lease.node);
	memcpy(lease.note, item->file[1].data, lease.note_length);
	put->lease = (struct s3_op){ .verb = S3_PUT,
		                     .data = put->data,
		                     .size = s3_lease_write(put->data, &lease),
		                     .type = "text/plain",
		                     .match = "*" };
	put->original = (struct s3_op){ .verb = S3_PUT,
		                        .data = item->file[0].data,
		                        .size = item->file[0].size,
		                        .type = "image/jpeg" };
	s3_lease_key(put->lease.key, item->id);
	s3_original_key(put->original.key, item->id);
	checksum_of(put->lease.data, put->lease.size, put->lease.tag);
	checksum_of(put->original.data, put->original.size, put->original.tag);
}

void s3_spool_put(struct s3_spool *sp, struct store_item *items, unsigned count)
{
	struct put *puts = pool_get(S3_STORE_ITEMS_MAX * sizeof *puts);
	struct s3_op *ops = pool_get(2 * S3_STORE_ITEMS_MAX * sizeof *ops);
	uint64_t expires_ms = s3_holder_now_ms() + sp->holder.lease_ms;

	assert(count <= S3_STORE_ITEMS_MAX);
	for (unsigned i = 0; i < count; i++)
		items[i].err = puts && ops ? 0 : -ENOMEM;
	for (unsigned i = 0; puts && ops && i < count; i++) {
		prepare_put(sp, &puts[i], &items[i], expires_ms);
		ops[2 * i] = puts[i].lease;
		ops[2 * i + 1] = puts[i].original;
	}
	if (puts && ops)
		s3_client_run(sp->store->client, ops, 2 * (size_t)count);
	for (unsigned i = 0; puts && ops && i < count; i++) {
		const struct s3_op *lease = &ops[2 * i];

		/* An id is that of one upload: a lease that is there is of a lost answer. */
		items[i].err = lease->err && lease->err != -EEXIST ? lease->err : lease[1].err;
		if (!items[i].err)
			s3_holder_note(&sp->holder, items[i].id, expires_ms);
		else if (!s3_store_is_away(sp->store))
			(void)delete_objects(sp, items[i].id, true); /* it ends by its age */
		text_fini(&ops[2 * i].body);
		text_fini(&ops[2 * i + 1].body);
	}
	pool_put(ops);
	pool_put(puts);
}

/* ---- what may be made ---- */

struct listing {
	char id[READ_MAX][ULID_LENGTH + 1];
	unsigned count;
	char last[ULID_LENGTH + 1];
	bool (*is_known)(void *arg, const char *id);
	void *arg;
};

static bool add_original(const char *key, time_t modified, void *arg)
{
	(void)modified;
	struct listing *l = arg;
	const char *id = key + sizeof S3_SPOOL - 1;

	(void)modified;
	if (!ulid_is_valid(id, strlen(id)))
		return true; /* a lease */
	memcpy(l->last, id, ULID_LENGTH + 1);
	if (!l->is_known(l->arg, id))
		memcpy(l->id[l->count++], id, ULID_LENGTH + 1);
	return l->count < READ_MAX;
}

/* Adds those of a listing that this node may make. Returns their number. */
static unsigned add_takeable(struct s3_spool *sp, const struct listing *l, struct spooled *list,
                             struct s3_lease *lease)
{
	int err[READ_MAX];
	unsigned n = 0;

	if (s3_lease_read(sp->store, l->id, lease, err, l->count))
		return 0;
	for (unsigned i = 0; i < l->count; i++) {
		if (err[i] || s3_holder_check(&sp->holder, &lease[i], S3_TAKE))
			continue;
		memcpy(list[n].id, l->id[i], ULID_LENGTH + 1);
		list[n++].attempts = (unsigned)(lease[i].note[0] - '0');
	}
	return n;
}

int s3_spool_list(struct s3_spool *sp, struct spooled *list, unsigned max,
                  char after[ULID_LENGTH + 1], bool (*is_known)(void *arg, const char *id),
                  void *arg)
{
	struct s3_lease *lease = pool_get(READ_MAX * sizeof *lease);
	struct listing l = { .is_known = is_known, .arg = arg };
	unsigned n = 0;
	int err = lease ? 0 : -ENOMEM;
	bool has_more = true;

	memcpy(l.last, after, ULID_LENGTH + 1);
	while (!err && has_more && max - n >= READ_MAX) {
		char key[S3_KEY_MAX] = "";

		l.count = 0;
		if (l.last[0])
			s3_lease_key(key, l.last);
		err = s3_list_keys(sp->store, S3_SPOOL, key, KEYS_MAX, add_original, &l);
		has_more = l.count == READ_MAX;
		if (!err)
			n += add_takeable(sp, &l, list + n, lease);
	}
	memcpy(after, has_more && !err ? l.last : "", has_more && !err ? ULID_LENGTH + 1 : 1);
	pool_put(lease);
	return err ? err : (int)n;
}

int s3_spool_take(struct s3_spool *sp, const char *id, uint64_t *size, struct spool_names *names)
{
	struct s3_lease lease;
	struct s3_op op = { .verb = S3_GET, .to_file = true };
	int err = s3_holder_change(&sp->holder, id, S3_TAKE, 0, &lease);

	if (err)
		return err;
	spool_read_names(lease.note, lease.note_length, names);
	s3_original_key(op.key, id);
	s3_client_run(sp->store->client, &op, 1);
	text_fini(&op.body);
	*size = op.length;
	if (!op.err && lseek(op.fd, 0, SEEK_SET) < 0) {
		op.err = -errno;
		close(op.fd);
	}
	if (op.err)
		s3_holder_release(&sp->holder, id);
	return op.err ? op.err : op.fd;
}

/* ---- a GET ---- */

struct lookup {
	struct s3_op op;
	struct store_found *found;
	void (*done)(void *arg);
	void *arg;
};

static void lookup_done(struct s3_op *op)
{
	struct lookup *l = op->arg;
	struct s3_lease lease;

	if (!op->err && s3_lease_parse(&lease, op->body.data, op->body.length) == 0)
		l->found->is_spooled = lease.state != S3_LEASE_REMOVED;
	l->found->fd = op->err ? op->err : -ENOENT;
	text_fini(&op->body);
	void (*done)(void *arg) = l->done;
	void *arg = l->arg;

	pool_put(l);
	done(arg);
}

void s3_spool_find(struct s3_spool *sp, const char *id, struct store_found *found,
                   void (*done)(void *arg), void *arg)
{
	struct lookup *l = pool_get(sizeof *l);

	if (!l) {
		found->fd = -ENOMEM;
		done(arg);
		return;
	}
	*l = (struct lookup){
		.op = { .verb = S3_GET, .body_max = S3_LEASE_MAX, .done = lookup_done, .arg = l },
		.found = found,
		.done = done,
		.arg = arg
	};
	s3_lease_key(l->op.key, id);
	s3_client_submit(sp->store->client, &l->op);
}

int s3_spool_has(struct s3_spool *sp, const char *id)
{
	char ids[1][ULID_LENGTH + 1];
	struct s3_lease lease;
	int read_err;

	memcpy(ids[0], id, sizeof ids[0]);
	int err = s3_lease_read(sp->store, (const char(*)[ULID_LENGTH + 1]) ids, &lease, &read_err,
	                        1);

	if (!err)
		err = read_err;
	return err ? (err == -ENOENT ? 0 : err) : lease.state == S3_LEASE_HELD;
}

/* ---- leases ---- */

int s3_spool_set_attempts(struct s3_spool *sp, const char *id, unsigned attempts)
{
	struct s3_lease lease;

	return s3_holder_change(&sp->holder, id, S3_ATTEMPTS, attempts, &lease);
}

int s3_spool_quarantine(struct s3_spool *sp, const char *id)
{
	struct s3_lease lease;
	int err = s3_holder_change(&sp->holder, id, S3_QUARANTINE, 0, &lease);

	s3_holder_release(&sp->holder, id);
	return err;
}

int s3_spool_hold(struct s3_spool *sp, const char *id)
{
	return s3_holder_hold(&sp->holder, id);
}

void s3_spool_release(struct s3_spool *sp, const char *id)
{
	s3_holder_release(&sp->holder, id);
}

bool s3_spool_works(const struct s3_spool *sp)
{
	return atomic_load_explicit(&sp->holder.works, memory_order_relaxed);
}

uint64_t s3_spool_interval_ms(struct s3_spool *sp)
{
	struct s3_holder *h = &sp->holder;

	pthread_mutex_lock(&h->lock);
	uint64_t ms = h->lease_ms / 4 + random_next(&h->random) % (h->lease_ms / 4);

	pthread_mutex_unlock(&h->lock);
	return ms;
}

/* ---- life ---- */

int s3_spool_open(struct s3_spool **out, struct s3_store *s, const struct conf *conf)
{
	struct s3_spool *sp = calloc(1, sizeof *sp);
	int err = sp ? s3_holder_init(&sp->holder, s, conf) : -ENOMEM;

	if (err) {
		free(sp);
		sp = NULL;
	} else {
		sp->store = s;
	}
	*out = sp;
	return err;
}

int s3_spool_start(struct s3_spool *sp)
{
	return s3_holder_start(&sp->holder);
}

void s3_spool_stop(struct s3_spool *sp)
{
	if (sp)
		s3_holder_stop(&sp->holder);
}

void s3_spool_close(struct s3_spool *sp)
{
	if (!sp)
		return;
	s3_holder_fini(&sp->holder);
	free(sp);
}
