/*
 * store_migrate.c - darkroomd store migrate: copies all images of several objects (s3/s3_former.h)
 * to one object each, and removes the former ones.
 *
 * What is copied is found by the files that are left, so an interrupted command is repeated. Main
 * thread, and AT_ONCE further ones.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/text.h"
#include "s3/s3_client.h"
#include "s3/s3_former.h"
#include "s3/s3_objects.h"
#include "store_query.h"

#define AT_ONCE 16 /* images */
#define BATCH_MAX 1024
#define UNFINISHED_AGE_S 86400 /* of files whose upload has surely ended */

struct migration {
	struct s3_client *client;
	struct store_progress progress;
	bool counts; /* nothing is done */
	bool prints;
	char last[ULID_LENGTH + 1]; /* id that was listed */
	struct {
		char id[ULID_LENGTH + 1];
		time_t age_s;
	} batch[BATCH_MAX];
	unsigned count;
	_Atomic unsigned next;   /* of the batch */
	_Atomic bool is_stopped; /* the store is away */
	_Atomic uint64_t copied, found, unfinished, recent, failed;
};

static void add(_Atomic uint64_t *to)
{
	atomic_fetch_add_explicit(to, 1, memory_order_relaxed); /* read after a join */
}

static void migrate_one(struct migration *m, const char *id, time_t age_s)
{
	int copied = s3_former_copy(m->client, id);
	bool is_recent = copied == -ENOENT && age_s < UNFINISHED_AGE_S;
	int err = copied < 0 && copied != -ENOENT ? copied
	          : is_recent                     ? 0
	                                          : s3_former_remove(m->client, id);

	if (err == S3_AWAY)
		atomic_store(&m->is_stopped, true);
	if (err)
		store_query_say("%s: not migrated: %s", id,
		                err == S3_DAMAGED ? "a file is missing or damaged"
		                                  : strerror(-err));
	add(err           ? &m->failed
	    : copied == 1 ? &m->copied
	    : copied == 0 ? &m->found
	    : is_recent   ? &m->recent
	                  : &m->unfinished);
}

static void *migrate_some(void *arg)
{
	struct migration *m = arg;
	unsigned i;

	while (!atomic_load(&m->is_stopped) && (i = atomic_fetch_add(&m->next, 1)) < m->count)
		migrate_one(m, m->batch[i].id, m->batch[i].age_s);
	return NULL;
}

static void *run_thread(void *arg)
{
	migrate_some(arg);
	pool_thread_fini();
	return NULL;
}

static void migrate_batch(struct migration *m)
{
	pthread_t thread[AT_ONCE];
	unsigned n = 0;

	atomic_store(&m->next, 0);
	while (n < AT_ONCE && pthread_create(&thread[n], NULL, run_thread, m) == 0)
		n++;
	if (n == 0)
		migrate_some(m);
	while (n > 0)
		pthread_join(thread[--n], NULL);
	m->progress.ended += m->count;
	m->count = 0;
	store_progress_show(&m->progress, false);
}

static int add_key(const struct s3_listed *listed, void *arg)
{
	const char *id = listed->key + sizeof S3_FORMER_FILES - 1;
	struct migration *m = arg;

	if (strcspn(id, "/") != ULID_LENGTH || !ulid_is_valid(id, ULID_LENGTH))
		return S3_LIST_FOREIGN;
	if (memcmp(id, m->last, ULID_LENGTH) != 0) {
		memcpy(m->last, id, ULID_LENGTH);
		m->progress.all += m->counts;
		if (m->prints)
			puts(m->last);
		if (!m->counts) {
			memcpy(m->batch[m->count].id, m->last, sizeof m->last);
			m->batch[m->count++].age_s = listed->age_s;
		}
		if (m->count == BATCH_MAX)
			migrate_batch(m);
	}
	return atomic_load(&m->is_stopped) ? S3_LIST_END : S3_LIST_NEXT;
}

/* Counts the images, and then copies them. Returns 0 or -errno. */
static int migrate(struct migration *m, bool is_dry)
{
	int err = s3_client_start(m->client);

	if (!err)
		err = s3_probe(m->client);
	if (!err)
		atomic_store(&m->client->is_fit, true);
	m->counts = true;
	m->prints = is_dry;
	if (!err)
		err = s3_list_keys(m->client, S3_FORMER_FILES, UINT32_MAX, add_key, m);
	if (err || is_dry)
		return err;
	store_progress_start(&m->progress, m->progress.all);
	m->counts = false;
	m->last[0] = '\0';
	err = s3_list_keys(m->client, S3_FORMER_FILES, UINT32_MAX, add_key, m);
	if (m->count)
		migrate_batch(m);
	store_progress_show(&m->progress, true);
	store_query_say(
		"%" PRIu64 " image%s copied, %" PRIu64 " there already, %" PRIu64
		" unfinished removed, %" PRIu64 " younger than a day left, %" PRIu64 " failed",
		m->copied, plural(m->copied), m->found, m->unfinished, m->recent, m->failed);
	return err ? err : atomic_load(&m->is_stopped) ? S3_AWAY : 0;
}

int store_migrate(struct store_query *q)
{
	static struct migration m;

	if (q->word_count)
		return store_query_usage("migrate: expected no word, but %s", q->words[0]);
	m = (struct migration){ .counts = true };
	int err = s3_client_open(&m.client, &q->conf);

	if (!err)
		err = migrate(&m, q->is_dry);
	s3_client_stop(m.client);
	s3_client_close(m.client);
	if (err)
		return store_query_fail("migrate", err);
	return m.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
