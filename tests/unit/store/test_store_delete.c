/* test_store_delete.c - which images darkroomd store remove removes, in which steps, and how fast.
 */
#include "base/check.h"
#include "support/store_faults.h"

#include <time.h>

static FILE *list, *messages;
static uint64_t waits_ns[64];
static unsigned wait_count;

/* Time passes while it waits. */
static int fake_nanosleep(const struct timespec *wait, struct timespec *left)
{
	assert_null(left);
	assert_true(wait_count < COUNT_OF(waits_ns));
	assert_in_range(wait->tv_nsec, 0, NS_PER_S - 1);
	waits_ns[wait_count] = (uint64_t)wait->tv_sec * NS_PER_S + (uint64_t)wait->tv_nsec;
	fake_now += waits_ns[wait_count++];
	return 0;
}

/* Images in the store whenever a recount is demanded. */
static unsigned demands[8], demand_count;

struct store;
static void note_demand(struct store *s);

#define puts(line) fprintf(list, "%s\n", line)
#define nanosleep fake_nanosleep
#undef stderr
#define stderr messages
#include "store/store.c"
#include "store/store_batch.c"
#include "store/store_find.c"
#define usage_demand_recount note_demand
#include "store/store_delete.c"
#undef usage_demand_recount
#undef puts
#undef nanosleep

static struct store store; /* as the daemon has it open */
static struct conf conf;
static struct store_query q;
static char *listed, *said;
static size_t listed_size, said_size;
static unsigned descriptors;

static void note_demand(struct store *s)
{
	assert_ptr_equal(s, &q.store);
	assert_true(demand_count < COUNT_OF(demands));
	demands[demand_count++] = exists("01K0/00") ? entries("01K0/00") : 0;
}

static int setup(void **state)
{
	unsigned cleared;
	static char word[] = "remove";
	char *const words[] = { word };

	(void)state;
	no_fault();
	fake_now = 77 * NS_PER_S;
	wait_count = demand_count = 0;
	snprintf(test_root, sizeof test_root, "/tmp/darkroom-delete-XXXXXX");
	descriptors = open_descriptors();
	if (!mkdtemp(test_root) || store_open(&store, test_root, false, &cleared))
		return -1;
	snprintf(conf.server.root, sizeof conf.server.root, "%s", test_root);
	list = open_memstream(&listed, &listed_size);
	messages = open_memstream(&said, &said_size);
	int status = store_query_open(&q, &conf, NULL, words, 1);

	q.words++, q.word_count = 0; /* behind the command */
	return status || !list || !messages;
}

static int teardown(void **state)
{
	(void)state;
	no_fault();
	store_query_close(&q);
	store_close(&store);
	fclose(list);
	fclose(messages);
	free(listed);
	free(said);
	assert_int_equal(open_descriptors(), descriptors);
	remove_test_root();
	return 0;
}

/* Stores or spools an image of the token. */
static void put(enum store_place place, const char *id, const char *token)
{
	char json[512];
	int length = snprintf(json, sizeof json,
	                      "{\"width\":1,\"height\":1,\"variants\":{},\"record\":{\"upload\":{"
	                      "\"bytes\":9,\"token\":\"%s\"},\"variants\":{},\"xxh128\":"
	                      "\"%032d\"}}\n",
	                      token, 0);
	const struct store_file file = { "image.json", json, (size_t)length, NULL };
	struct store_item item = { .place = place, .id = id, .file = &file, .file_count = 1 };

	store_put(&store, &item, 1);
	assert_int_equal(item.err, 0);
}

static const char *id_of(unsigned n)
{
	static char id[4][ULID_LENGTH + 1];
	static unsigned turn;
	char *to = id[turn++ % COUNT_OF(id)];

	snprintf(to, ULID_LENGTH + 1, "01K0000000000000000000%04u", n);
	return to;
}

/* Runs the command on these words. Returns its exit status. */
static int delete_words(char **words, size_t count)
{
	q.words = words;
	q.word_count = count;
	int status = store_delete(&q);

	fflush(list);
	fflush(messages);
	return status;
}

static bool is_stored(const char *id)
{
	return store_has_image(&store, id);
}

static void images_leave_the_store_and_the_spool(void **state)
{
	char stored[] = "01K00000000000000000000001", spooled[] = "01K00000000000000000000002",
	     absent[] = "01K00000000000000000000003", both[] = "01K00000000000000000000004";
	char *words[] = { stored, spooled, absent, both };

	(void)state;
	put(STORE_IMAGES, stored, "");
	put(STORE_SPOOL, spooled, "");
	put(STORE_IMAGES, both, "");
	put(STORE_SPOOL, both, "");
	put(STORE_IMAGES, id_of(5), "");
	assert_int_equal(delete_words(words, 4), 0);
	assert_false(is_stored(stored) || is_stored(both));
	assert_false(store_is_spooled(&store, spooled) || store_is_spooled(&store, both));
	assert_true(is_stored(id_of(5)));
	assert_string_equal(listed, "01K00000000000000000000001\n01K00000000000000000000002\n"
	                            "01K00000000000000000000004\n01K00000000000000000000004\n");
	assert_string_equal(said, "darkroomd store: 01K00000000000000000000003: does not exist\n"
	                          "darkroomd store: 4 images removed, 1 did not exist\n");
	assert_int_equal(entries(".trash"), 0);
	assert_int_equal(demand_count, 2);
}

static void without_a_choice_nothing_is_removed(void **state)
{
	static const char *const options[] = { "before", "after", "token", "ids" };

	(void)state;
	put(STORE_IMAGES, id_of(1), "");
	assert_int_equal(delete_words(NULL, 0), QUERY_EXIT_USAGE);
	assert_true(is_stored(id_of(1)));
	assert_int_equal(demand_count, 0);
	for (size_t i = 0; i < COUNT_OF(options); i++) {
		q.before[0] = q.after[0] = '\0';
		q.token = i == 2 ? "nobody" : NULL;
		q.ids_path = i == 3 ? "/dev/null" : NULL;
		if (i < 2) /* no image lies within */
			memcpy(i ? q.after : q.before, i ? "1" : "0", 2);
		assert_int_equal(delete_words(NULL, 0), 0);
		assert_true(is_stored(id_of(1)));
	}
}

static void a_token_selects_its_images(void **state)
{
	(void)state;
	put(STORE_IMAGES, id_of(1), "site");
	put(STORE_IMAGES, id_of(2), "other");
	put(STORE_IMAGES, id_of(3), "site");
	shell("echo damaged >01K0/00/01K00000000000000000000003/image.json");
	q.token = "site";
	assert_int_equal(delete_words(NULL, 0), 0);
	assert_false(is_stored(id_of(1)));
	assert_true(is_stored(id_of(2)) && is_stored(id_of(3)));
	assert_string_equal(said, "darkroomd store: 1 images removed, 0 did not exist\n");
}

static void a_dry_run_removes_nothing(void **state)
{
	char id[] = "01K00000000000000000000001";
	char *words[] = { id };

	(void)state;
	put(STORE_IMAGES, id, "");
	q.is_dry = true;
	assert_int_equal(delete_words(words, 1), 0);
	assert_true(is_stored(id));
	assert_string_equal(listed, "01K00000000000000000000001\n");
	assert_int_equal(said_size, 0);
	assert_int_equal(demand_count, 0);
	assert_int_equal(wait_count, 0);
}

/* An image in both places takes two places of a batch. */
static void no_image_falls_between_two_batches(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 40; i++) {
		put(STORE_IMAGES, id_of(i), "");
		put(STORE_SPOOL, id_of(i), "");
	}
	q.after[0] = '0', q.after[1] = '\0';
	assert_int_equal(delete_words(NULL, 0), 0);
	for (unsigned i = 0; i < 40; i++)
		assert_false(is_stored(id_of(i)) || store_is_spooled(&store, id_of(i)));
	assert_string_equal(said, "darkroomd store: 80 images removed, 0 did not exist\n");
}

/* 150 images are three batches. */
static void a_batch_is_paid_with_time(void **state)
{
	static const struct {
		uint64_t rate, waits_ns[3];
	} cases[] = {
		{ 0, { 128000000, 128000000, 44000000 } }, /* 500/s */
		{ 40, { 1600000000, 1600000000, 550000000 } },
	};

	(void)state;
	for (size_t c = 0; c < COUNT_OF(cases); c++) {
		for (unsigned i = 0; i < 150; i++)
			put(STORE_IMAGES, id_of(i), "");
		q.after[0] = '0', q.after[1] = '\0';
		q.rate = cases[c].rate;
		wait_count = 0;
		assert_int_equal(delete_words(NULL, 0), 0);
		assert_int_equal(wait_count, 3);
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(waits_ns[i], cases[c].waits_ns[i]);
		for (unsigned i = 0; i < 150; i++)
			assert_false(is_stored(id_of(i)));
		assert_int_equal(entries(".trash"), 0);
	}
	assert_non_null(strstr(said, "darkroomd store: 150 images removed, 0 did not exist\n"));
}

/* A count that ran meanwhile has missed the rest. */
static void a_recount_is_demanded_before_and_after(void **state)
{
	char id[] = "01K00000000000000000000001";
	char *words[] = { id };

	(void)state;
	put(STORE_IMAGES, id, "");
	put(STORE_IMAGES, id_of(2), "");
	assert_int_equal(delete_words(words, 1), 0);
	assert_int_equal(demand_count, 2);
	assert_int_equal(demands[0], 2);
	assert_int_equal(demands[1], 1);
}

static void failures_end_the_removal(void **state)
{
	char id[] = "01K00000000000000000000001", other[] = "01K00000000000000000000002";
	char *words[] = { id, other };

	(void)state;
	for (unsigned nth = 1; nth <= 2; nth++) { /* of the spool, of the store */
		put(STORE_IMAGES, id, "");
		put(STORE_IMAGES, other, "");
		put(STORE_SPOOL, other, "");
		fail_call(CALL_RENAMEAT, nth, EACCES);
		assert_int_equal(delete_words(words, 2), EXIT_FAILURE);
		no_fault();
		assert_true(is_stored(id) && is_stored(other));
		assert_true(store_is_spooled(&store, other));
		assert_int_equal(store_remove(&store, STORE_IMAGES, id), 0);
		assert_int_equal(store_remove(&store, STORE_IMAGES, other), 0);
		assert_int_equal(store_remove(&store, STORE_SPOOL, other), 0);
	}
	put(STORE_IMAGES, id, "");
	put(STORE_IMAGES, other, "");
	fail_call(CALL_SYNCFS, 1, EIO);
	assert_int_equal(delete_words(words, 2), EXIT_FAILURE);
	assert_string_equal(listed, ""); /* they may return */
	assert_int_equal(entries(".trash"), 2);
}

int main(void)
{
#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH_STORE(images_leave_the_store_and_the_spool),
		WITH_STORE(without_a_choice_nothing_is_removed),
		WITH_STORE(a_token_selects_its_images),
		WITH_STORE(a_dry_run_removes_nothing),
		WITH_STORE(no_image_falls_between_two_batches),
		WITH_STORE(a_batch_is_paid_with_time),
		WITH_STORE(a_recount_is_demanded_before_and_after),
		WITH_STORE(failures_end_the_removal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
