/* test_remake_plan.c - the variants that a plan is for, what each image lacks, and the sums. */
#include "support/store_faults.h"

#include "support/command_harness.h"

#include <sys/mman.h>

#include "base/text.h"
#include "store/remake_plan.h"
#include "store/store_commands.h"
#include "store/store_find.h"

/* ---- the daemon ---- */

static struct conf file_conf, daemon_conf;
static int dump_status, remake_status, load_status;
static const char *remake_answer;
static unsigned asks;
static bool fails_memfd;

static int fake_ask(const struct conf *of, const char *line, struct text *answer)
{
	assert_ptr_equal(of, &file_conf);
	assert_int_equal(answer->length, 0);
	if (asks++ == 0) {
		assert_string_equal(line, "dump");
		text_puts(answer, "[server]\n");
		return dump_status;
	}
	assert_int_equal(asks, 2);
	assert_string_equal(line, "remake");
	text_puts(answer, remake_answer);
	return remake_status;
}

static int fake_memfd(const char *name, unsigned flags)
{
	assert_true(*name);
	assert_int_equal(flags, MFD_CLOEXEC);
	errno = EMFILE;
	return fails_memfd ? -1 : memfd_create(name, flags);
}

static int fake_load(struct conf *to, struct conf_source *source, const char *path,
                     const char *const *overrides, size_t count, struct text *errors)
{
	char data[32] = "";
	FILE *in = fopen(path, "r");

	assert_non_null(in);
	assert_true(!source && !overrides && count == 0 && errors->length == 0);
	assert_int_equal(fread(data, 1, sizeof data - 1, in), strlen("[server]\n"));
	assert_string_equal(data, "[server]\n");
	assert_int_equal(fclose(in), 0);
	text_puts(errors, "a line that is released");
	*to = daemon_conf;
	return load_status;
}

/* ---- images ---- */

static int root_fd;
static unsigned opens, looks, reads;
static int open_errors[4]; /* of each call; 0: it opens the image */
static bool is_replaced;   /* before the second call, for once */
static int lengths[WALK_MAX], lack_error;
static struct stored_lack lacks[WALK_MAX];

static int fake_open_directory(struct store *s, const char *id)
{
	unsigned n = opens++;

	assert_ptr_equal(s, &query.store);
	assert_int_equal(strlen(id), ULID_LENGTH);
	if (n < COUNT_OF(open_errors) && open_errors[n])
		return open_errors[n];
	return openat(root_fd, n == 1 && is_replaced ? "other" : "image",
	              O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int fake_read_image(int fd, char data[STORED_IMAGE_MAX + 1])
{
	assert_true(fd >= 0);
	snprintf(data, STORED_IMAGE_MAX + 1, "text");
	reads++;
	return lengths[walk_at];
}

static int fake_find(struct stored_lack *lack, const struct conf *of, int directory_fd,
                     const char *data, size_t length)
{
	assert_true(of->variant_count == 3 && directory_fd >= 0);
	assert_string_equal(data, "text");
	assert_int_equal(length, lengths[walk_at]);
	looks++;
	*lack = lacks[walk_at];
	return looks == 1 ? lack_error : 0;
}

#define memfd_create fake_memfd
#define conf_load fake_load
#define store_open_directory fake_open_directory
#define stored_image_read fake_read_image
#define stored_lack_find fake_find
#include "store/remake_plan.c"

static struct remake_plan plan;
static unsigned descriptors;

static void name_variants(struct conf *of, const char *first, const char *second, const char *third)
{
	const char *const names[] = { first, second, third };

	memset(of, 0, sizeof *of);
	of->variant_count = 3;
	for (unsigned i = 0; i < 3; i++)
		snprintf(of->variant[i].name, CONF_NAME_MAX, "%s", names[i]);
}

static int setup(void **state)
{
	(void)state;
	no_fault();
	begin_command(0);
	snprintf(test_root, sizeof test_root, "/tmp/darkroom-plan-XXXXXX");
	if (!mkdtemp(test_root))
		return -1;
	shell("mkdir image other && touch image/image.json other/image.json");
	root_fd = open(test_root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	name_variants(&file_conf, "small", "medium", "large");
	name_variants(&daemon_conf, "thumb", "medium", "large");
	query.conf = &file_conf;
	query.ask = fake_ask;
	dump_status = -1;
	remake_status = load_status = lack_error = 0;
	remake_answer = "{\"ns_per_kilopixel\":5000}";
	asks = opens = looks = reads = 0;
	fails_memfd = is_replaced = false;
	memset(open_errors, 0, sizeof open_errors);
	memset(lacks, 0, sizeof lacks);
	walk_at = 0;
	for (unsigned i = 0; i < WALK_MAX; i++)
		lengths[i] = 4;
	descriptors = open_descriptors();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	no_fault();
	assert_int_equal(open_descriptors(), descriptors);
	close(root_fd);
	remove_test_root();
	close_streams();
	return 0;
}

/* ---- the configuration ---- */

static void the_file_counts_without_a_daemon(void **state)
{
	(void)state;
	plan.images = 7;
	assert_int_equal(remake_plan_open(&plan, &query), 0);
	assert_int_equal(plan.images, 0);
	assert_false(plan.has_daemon);
	assert_string_equal(plan.conf.variant[0].name, "small");
	assert_int_equal(plan.ns_per_kilopixel, 10000);
	assert_int_equal(plan.wanted, 7);
	assert_int_equal(asks, 1);
}

static void the_daemon_has_its_own_configuration_and_costs(void **state)
{
	static const char *const no_costs[] = { "{\"ns_per_kilopixel\":0}", "{\"other\":1}", "{",
		                                "{\"ns_per_kilopixel\":\"x\"}" };

	(void)state;
	dump_status = 0;
	assert_int_equal(remake_plan_open(&plan, &query), 0);
	assert_true(plan.has_daemon);
	assert_string_equal(plan.conf.variant[0].name, "thumb");
	assert_int_equal(plan.ns_per_kilopixel, 5000);
	for (size_t i = 0; i < COUNT_OF(no_costs); i++) {
		asks = 0;
		remake_answer = no_costs[i];
		assert_int_equal(remake_plan_open(&plan, &query), 0);
		assert_int_equal(plan.ns_per_kilopixel, 10000);
	}
	asks = 0;
	remake_status = -1;
	remake_answer = "{\"ns_per_kilopixel\":5000}";
	assert_int_equal(remake_plan_open(&plan, &query), 0);
	assert_int_equal(plan.ns_per_kilopixel, 10000);
	check_written("", "");
}

static void a_configuration_that_is_not_read_ends_it(void **state)
{
	static const char error[] =
		"cannot read the configuration of the running daemon: error 22\n";

	(void)state;
	dump_status = 0;
	load_status = -EINVAL;
	assert_int_equal(remake_plan_open(&plan, &query), EXIT_FAILURE);
	check_written("", error);
	load_status = 0;
	asks = 0;
	fails_memfd = true;
	assert_int_equal(remake_plan_open(&plan, &query), EXIT_FAILURE);
	check_written("", error);
	fails_memfd = false;
	asks = 0;
	write_most = 3;
	assert_int_equal(remake_plan_open(&plan, &query), EXIT_FAILURE);
	check_written("", error);
}

static void words_are_variants(void **state)
{
	static char medium[] = "medium", large[] = "large", wrong[] = "wrong";
	static char *words[QUERY_WORDS_MAX] = { large, medium };

	(void)state;
	query.words = words;
	query.word_count = 2;
	query.only_missing = true;
	assert_int_equal(remake_plan_open(&plan, &query), 0);
	assert_string_equal(plan.entry.names, "large medium");
	assert_true(plan.entry.only_missing);
	assert_int_equal(plan.wanted, 6);
	assert_int_equal(query.word_count, 0);
	asks = 0;
	query.word_count = 2;
	words[1] = wrong;
	assert_int_equal(remake_plan_open(&plan, &query), QUERY_EXIT_USAGE);
	check_written("", "wrong: expected a variant of the configuration\n");
	asks = 0;
	query.word_count = COUNT_OF(words);
	for (size_t i = 0; i < COUNT_OF(words); i++)
		words[i] = medium;
	memset(file_conf.variant[1].name, 'm', CONF_NAME_MAX - 1);
	words[0] = file_conf.variant[1].name;
	for (size_t i = 0; i < COUNT_OF(words); i++)
		words[i] = file_conf.variant[1].name;
	assert_int_equal(remake_plan_open(&plan, &query), QUERY_EXIT_USAGE);
	check_written("", "too many variants\n");
}

static void tokens_select_nothing(void **state)
{
	(void)state;
	query.token = "camera";
	assert_int_equal(remake_plan_open(&plan, &query), QUERY_EXIT_USAGE);
	check_written("", "--token does not select images here\n");
	assert_int_equal(asks, 0);
}

/* ---- one image ---- */

/* Opens a plan for a walk over as many images. */
static void open_plan(unsigned images)
{
	close_streams();
	begin_command(images);
	query.conf = &file_conf;
	query.ask = fake_ask;
	assert_int_equal(remake_plan_open(&plan, &query), 0);
}

static enum remake_state look(void)
{
	struct stored_lack lack;

	opens = looks = reads = 0;
	enum remake_state state = remake_plan_look(&plan, &query, ID(0), &lack);

	assert_int_equal(open_descriptors(), descriptors);
	return state;
}

static void an_image_has_a_state(void **state)
{
	(void)state;
	open_plan(1);
	assert_int_equal(look(), REMAKE_COMPLETE);
	lacks[0].missing = 8; /* no variant of the configuration */
	assert_int_equal(look(), REMAKE_COMPLETE);
	lacks[0].missing = 1;
	assert_int_equal(look(), REMAKE_IMPOSSIBLE);
	lacks[0].has_original = true;
	assert_int_equal(look(), REMAKE_POSSIBLE);
	lacks[0].missing = 0;
	lacks[0].differs = 2;
	assert_int_equal(look(), REMAKE_POSSIBLE);
	plan.entry.only_missing = true;
	lacks[0].differs = 3;
	assert_int_equal(look(), REMAKE_COMPLETE);
	lacks[0].differs = 2;
	plan.entry.only_missing = false;
	plan.wanted = 5;
	assert_int_equal(look(), REMAKE_COMPLETE);
	assert_int_equal(opens, 1);
	assert_int_equal(reads, 1);
	lengths[0] = 0;
	assert_int_equal(look(), REMAKE_COMPLETE);
	assert_int_equal(looks, 1);
}

static void an_image_that_is_not_read_is_damaged(void **state)
{
	(void)state;
	open_plan(1);
	open_errors[0] = -ENOENT;
	assert_int_equal(look(), REMAKE_ABSENT);
	open_errors[0] = -EMFILE;
	assert_int_equal(look(), REMAKE_DAMAGED);
	open_errors[0] = 0;
	lengths[0] = -EIO;
	assert_int_equal(look(), REMAKE_DAMAGED);
	assert_int_equal(looks, 0);
	assert_int_equal(opens, 2);
	lengths[0] = 4;
	lack_error = -EINVAL;
	assert_int_equal(look(), REMAKE_DAMAGED);
	open_errors[1] = -EMFILE; /* nobody knows whether it has changed */
	assert_int_equal(look(), REMAKE_DAMAGED);
	open_errors[1] = 0;
	lack_error = 0;
	shell("rm image/image.json");
	assert_int_equal(look(), REMAKE_DAMAGED);
	assert_int_equal(reads, 0);
	shell("ln -s ../other/image.json image/image.json");
	assert_int_equal(look(), REMAKE_DAMAGED);
}

static void an_image_that_has_changed_is_looked_at_again(void **state)
{
	(void)state;
	open_plan(1);
	lack_error = -EINVAL;
	is_replaced = true;
	assert_int_equal(look(), REMAKE_COMPLETE);
	assert_int_equal(looks, 2);
	assert_int_equal(opens, 3);
	is_replaced = false;
	open_errors[1] = open_errors[2] = -ENOENT;
	assert_int_equal(look(), REMAKE_ABSENT);
	memset(open_errors, 0, sizeof open_errors);
	for (unsigned nth = 1; nth <= 2; nth++) { /* an inode that is unknown is another one */
		fail_call(CALL_FSTAT, nth, EIO);
		assert_int_equal(look(), REMAKE_COMPLETE);
		assert_int_equal(looks, 2);
	}
}

/* ---- the sums ---- */

static void images_are_added_up(void **state)
{
	(void)state;
	open_plan(5);
	lacks[1] = (struct stored_lack){ .missing = 1, .differs = 2, .has_original = true };
	lacks[1].original_bytes = 100;
	lacks[1].pixels = 3000;
	lacks[2] = (struct stored_lack){ .missing = 4, .differs = 2 };
	lacks[2].original_bytes = 1000;
	lengths[3] = -EIO;
	lacks[4] = (struct stored_lack){ .missing = 1, .has_original = true };
	lacks[4].original_bytes = 20;
	lacks[4].pixels = 1000;
	walk_status = WALK_FAILS;
	assert_int_equal(remake_plan_sum(&plan, &query), WALK_FAILS);
	assert_int_equal(plan.images, 5);
	assert_int_equal(plan.damaged, 1);
	assert_int_equal(plan.without_original, 1);
	assert_int_equal(plan.remade, 2);
	assert_int_equal(plan.bytes, 120);
	assert_int_equal(plan.pixels, 4000);
	assert_int_equal(plan.absent, 0);
	const uint64_t missing[] = { 2, 0, 1 }, differs[] = { 0, 2, 0 }, lost[] = { 0, 1, 1 };

	assert_memory_equal(plan.missing, missing, sizeof missing);
	assert_memory_equal(plan.differs, differs, sizeof differs);
	assert_memory_equal(plan.lost, lost, sizeof lost);
	assert_true(plan.missing[3] + plan.differs[3] + plan.lost[3] == 0);
	char line[128];

	snprintf(line, sizeof line, "darkroomd store: %s: image.json is damaged\n", ID(3));
	check_written("", line);
	assert_int_equal((int)(remake_plan_seconds(&plan) * 1e9 + 0.5), 40000);
	plan.ns_per_kilopixel = 5000;
	assert_int_equal((int)(remake_plan_seconds(&plan) * 1e9 + 0.5), 20000);
}

static void absent_images_count_if_they_were_asked_for(void **state)
{
	static char ids_path[] = "ids";
	char line[128];

	(void)state;
	open_plan(1);
	open_errors[0] = -ENOENT; /* removed since it was listed */
	assert_int_equal(remake_plan_sum(&plan, &query), 0);
	assert_int_equal(plan.images, 0);
	assert_int_equal(plan.absent, 0);
	check_written("", "");
	opens = 0;
	query.ids_path = ids_path;
	assert_int_equal(remake_plan_sum(&plan, &query), 0);
	assert_int_equal(plan.images, 0);
	assert_int_equal(plan.absent, 1);
	assert_int_equal(plan.remade, 0);
	snprintf(line, sizeof line, "darkroomd store: %s: does not exist\n", ID(0));
	check_written("", line);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_file_counts_without_a_daemon),
		TEST(the_daemon_has_its_own_configuration_and_costs),
		TEST(a_configuration_that_is_not_read_ends_it),
		TEST(words_are_variants),
		TEST(tokens_select_nothing),
		TEST(an_image_has_a_state),
		TEST(an_image_that_is_not_read_is_damaged),
		TEST(an_image_that_has_changed_is_looked_at_again),
		TEST(images_are_added_up),
		TEST(absent_images_count_if_they_were_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
