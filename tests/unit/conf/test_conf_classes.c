/* test_conf_classes.c - the notation of classes of clients. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "conf/conf_classes.h"

static struct conf_classes classes;

static void no_text_has_no_classes(void **state)
{
	(void)state;
	assert_true(conf_classes_parse("", &classes));
	assert_int_equal(classes.count, 0);
	assert_true(conf_classes_parse("  ", &classes));
	assert_int_equal(classes.count, 0);
}

static void classes_have_terms_in_order(void **state)
{
	(void)state;
	assert_true(conf_classes_parse("gold target:500ms token:partner net:10.1.0.0/16, "
	                               "silver header:X-Tier=silver net:2001:db8::/33",
	                               &classes));
	assert_int_equal(classes.count, 2);
	assert_string_equal(classes.class[0].name, "gold");
	assert_string_equal(classes.class[1].name, "silver");
	assert_int_equal(classes.class[0].target_ms, 500);
	assert_int_equal(classes.class[1].target_ms, 0);
	assert_int_equal(classes.term_count, 4);
	assert_int_equal(classes.term[0].kind, CONF_CLASS_TOKEN);
	assert_string_equal(classes.term[0].word, "partner");
	assert_int_equal(classes.term[1].kind, CONF_CLASS_NET);
	assert_int_equal(classes.term[1].net.bits, 96 + 16);
	assert_memory_equal(classes.term[1].net.address, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\x01\0\0",
	                    16);
	assert_int_equal(classes.term[2].class, 1);
	assert_string_equal(classes.term[2].word, "x-tier");
	assert_string_equal(classes.term[2].value, "silver");
	assert_int_equal(classes.term[3].net.bits, 33);
}

static void an_address_alone_is_a_network_of_one(void **state)
{
	(void)state;
	assert_true(conf_classes_parse("a net:1.2.3.4 net:::1", &classes));
	assert_int_equal(classes.term[0].net.bits, 128);
	assert_int_equal(classes.term[1].net.bits, 128);
}

static void other_forms_are_refused(void **state)
{
	static const char *const bad[] = {
		"gold",
		"gold,",
		"gold net:1.2.3.4,",
		"gold target:1s",
		"gold net:1.2.3.4, gold net:1.2.3.5",
		"other net:1.2.3.4",
		"Gold net:1.2.3.4",
		"a-name-that-is-too-long net:1.2.3.4",
		"gold net:1.2.3.4/33",
		"gold net:1.2.3.4/",
		"gold net:1.2.3.4/1000",
		"gold net:1.2.3.4/-1",
		"gold net:example.org",
		"gold net:::1/129",
		"gold token:",
		"gold header:X-Tier",
		"gold header:=gold",
		"gold header:X Tier=gold",
		"gold header:X-Tier=",
		"gold target:1 net:::1",
		"gold target:9ms net:::1",
		"gold target:99999999s net:::1",
		"gold target:3601s net:::1",
		"gold color:red",
		"a net:::1, b net:::1, c net:::1, d net:::1",
		"a net:::1 net:::1 net:::1 net:::1 net:::1 net:::1 net:::1 net:::1 net:::1 "
		"net:::1 net:::1 net:::1 net:::1",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		if (conf_classes_are_valid(bad[i]))
			fail_msg("%s", bad[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_text_has_no_classes),
		cmocka_unit_test(classes_have_terms_in_order),
		cmocka_unit_test(an_address_alone_is_a_network_of_one),
		cmocka_unit_test(other_forms_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
