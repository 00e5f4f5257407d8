/*
 * fuzz_ini.c - configuration files: each is refused with a message, or accepted. An accepted one is
 * the same after it was written and read again.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/text.h"
#include "conf/conf.h"
#include "conf/conf_print.h"
#include "conf/conf_source.h"
#include "plan/plan.h"
#include "target.h"

#define ERRORS_MAX ((size_t)64 << 10)

const unsigned target_mutants = 100;

/* Loads the text from a file in memory. Returns what conf_load() returns. */
static int load(struct conf *conf, const void *data, size_t size, struct text *errors)
{
	int fd = memfd_create("ini", MFD_CLOEXEC);
	struct conf_source source = { .path = NULL };
	char path[32];

	assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	memset(conf, 0, sizeof *conf);
	int err = conf_load(conf, &source, path, NULL, 0, errors);

	conf_source_fini(&source);
	close(fd);
	return err;
}

/* `darkroomd -T` refuses a variant without operations, which other keys can make. */
static bool lacks_operations(const struct conf *conf)
{
	for (unsigned i = 0; i < conf->variant_count; i++)
		if (!conf->variant[i].operations[0])
			return true;
	return false;
}

/* Checks that the configuration survives `darkroomd -T`. */
static void check_dump(const struct conf *conf)
{
	static char first[1 << 18], second[1 << 18];
	static struct conf again;
	struct text dump, errors;

	text_init(&dump, first, sizeof first);
	if (conf_dump(conf, &dump) == -EILSEQ)
		return; /* a value with both kinds of quotation marks */
	assert(!dump.overflowed);
	text_init_growable(&errors, ERRORS_MAX);
	int err = load(&again, first, dump.length, &errors);

	if (err)
		fprintf(stderr, "%s", errors.data);
	assert(err == 0);
	text_fini(&errors);
	text_init(&dump, second, sizeof second);
	assert(conf_dump(&again, &dump) == 0);
	assert(strcmp(first, second) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct conf conf;
	static struct plan plan;
	struct text errors;

	text_init_growable(&errors, ERRORS_MAX);
	int err = load(&conf, data, size, &errors);

	assert((err == 0) == (errors.length == 0));
	assert(err == 0 || err == -EINVAL || size > 1 << 20);
	text_fini(&errors);
	if (!err) {
		char error[2 * CONF_TEXT_MAX];
		unsigned variant;

		if (!lacks_operations(&conf))
			check_dump(&conf);
		err = plan_build(&plan, &conf, 0, &variant, error, sizeof error);
		assert(!err || (variant < conf.variant_count && error[0]));
	}
	return 0;
}

void target_seeds(void (*emit)(const void *data, size_t size))
{
	static const char *const text[] = {
		"[variant.a]\noperations = scale 10x10 inside\n",
		"[server]\nlisten = [::1]:80\nroot = \"/a;b\" ; comment\nrespond_after = decode\n"
		"[limits]\nbody_bytes = 16 MiB\nheader_timeout = 5 s\nscans = 10\n"
		"[variant.x-1]\noperations = scale 100x80 cover, blur 2.5, rotate 90\n"
		"quality = 75\nchroma = 444\nprogressive = yes\noptimize = yes\n",
		"\xef\xbb\xbf# comment\n[SERVER]\nlisten=127.0.0.1:0\n[scheduler]\npolicy = srpt\n"
		"threads = auto\n[stage.blur]\nthreads = 2\n[experiment.blur]\nservice = n-gated\n"
		"[variant.a]\noperations = sharpen 1 0.5, scale 5x5 exact, grey\n",
		"[variant.a]\r\noperations = '\"'\r\n[variant.a]\nx = y\\\n",
		"key = value\n[nonsense\n[limits]\npixels = 1e9\npixels = -1\n",
		"[group.a]\nstages = scale  blur\npolicy = mg1\n[group.b]\nthreads = 3\n",
		"[layout]\nmode = replicate\n[log]\nlevel = debug\n[variant.b]\noperations =\n",
	};

	target_emit_texts(emit, text, COUNT_OF(text));
}
