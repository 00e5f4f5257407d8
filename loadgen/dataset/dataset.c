/* dataset.c - darkroom-dataset: parses the command line and generates the dataset. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "generate.h"

#define EXIT_USAGE 2
#define SCALE_MAX 100

#ifndef DARKROOM_VERSION
#define DARKROOM_VERSION "unknown"
#endif

static const char help_text[] =
	"usage: darkroom-dataset [OPTION]... DIRECTORY\n"
	"\n"
	"Makes JPEG files whose sizes are distributed like those that users uploaded to\n"
	"wie-ich.de (Gordon 2010, table 4.1): 4697 files, 938 MiB. Their content is\n"
	"computed and is to a codec like photographs. They are baseline and progressive,\n"
	"4:2:0, 4:2:2, 4:4:4 and grey, have qualities from 60 to 97, EXIF and all of its\n"
	"orientations. The same options make the same bytes. Existing files are kept, so\n"
	"the same command resumes after an interruption.\n"
	"\n"
	"  -s, --scale F        multiply the number of files by F (1)\n"
	"      --seed N         make another dataset of the same kind (1)\n"
	"  -j, --jobs N         threads (default: one per core)\n"
	"      --truncated P    add P percent of files that are cut off in the middle,\n"
	"                       named *.truncated.jpg (0)\n"
	"      --not-jpeg P     add P percent of files that are not JPEGs, named\n"
	"                       *.notjpeg.jpg (0)\n"
	"      --empty P        add P percent of empty files, named *.empty.jpg (0)\n"
	"  -h, --help           print this help\n"
	"  -V, --version        print the version\n"
	"\n"
	"Progress is shown if standard error is a terminal. At the end the statistics of\n"
	"the sizes are printed next to the paper's.\n"
	"\n"
	"Example:\n"
	"  darkroom-dataset --scale 0.05 photos\n"
	"\n"
	"Exit:  0  the dataset is complete and no statistic is off by more than 2 %\n"
	"       1  otherwise\n"
	"       2  wrong usage\n";

enum { OPTION_SEED = 256, OPTION_TRUNCATED, OPTION_NOT_JPEG, OPTION_EMPTY };

static const struct option long_options[] = {
	{ "scale", required_argument, NULL, 's' },
	{ "seed", required_argument, NULL, OPTION_SEED },
	{ "jobs", required_argument, NULL, 'j' },
	{ "truncated", required_argument, NULL, OPTION_TRUNCATED },
	{ "not-jpeg", required_argument, NULL, OPTION_NOT_JPEG },
	{ "empty", required_argument, NULL, OPTION_EMPTY },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

struct arguments {
	struct generate_conf run;
	double scale;
	double percent[FILE_KIND_COUNT];
};

static bool take_uint(const char *text, uint64_t min, uint64_t max, uint64_t *n)
{
	char *end;

	errno = 0;
	*n = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && *end == '\0' && errno == 0 && *n >= min && *n <= max;
}

static bool take_double(const char *text, double max, double *x)
{
	char *end;

	*x = strtod(text, &end);
	return ((*text >= '0' && *text <= '9') || *text == '.') && *end == '\0' && isfinite(*x) &&
	       *x >= 0 && *x <= max;
}

static bool take_value(struct arguments *a, int option, const char *value)
{
	uint64_t n = 0;

	switch (option) {
	case 's':
		return take_double(value, SCALE_MAX, &a->scale) && a->scale > 0;
	case 'j':
		if (!take_uint(value, 1, GENERATE_JOBS_MAX, &n))
			return false;
		a->run.jobs = (unsigned)n;
		return true;
	case OPTION_SEED:
		return take_uint(value, 0, UINT64_MAX, &a->run.mix.seed);
	case OPTION_TRUNCATED:
		return take_double(value, 100, &a->percent[FILE_TRUNCATED]);
	case OPTION_NOT_JPEG:
		return take_double(value, 100, &a->percent[FILE_NOT_JPEG]);
	default:
		return take_double(value, 100, &a->percent[FILE_EMPTY]);
	}
}

static int usage(void)
{
	fputs("Try 'darkroom-dataset --help'.\n", stderr);
	return EXIT_USAGE;
}

static int wrong_value(int option, int index, const char *value)
{
	const char *expected = option == 's'           ? "a factor above 0, at most 100"
	                       : option == 'j'         ? "a number from 1 to 256"
	                       : option == OPTION_SEED ? "a number"
	                                               : "a percentage from 0 to 100";

	fprintf(stderr, "darkroom-dataset: %s%s: expected %s, found '%s'\n",
	        index >= 0 ? "--" : "-",
	        index >= 0 ? long_options[index].name : (char[]){ (char)option, '\0' }, expected,
	        value);
	return usage();
}

/* Returns the exit status: failure if standard output could not be written. */
static int finish_output(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return EXIT_SUCCESS;
	perror("darkroom-dataset: standard output");
	return EXIT_FAILURE;
}

static unsigned core_count(void)
{
	cpu_set_t cores;
	int count = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;

	return count < 1 ? 1 : count > GENERATE_JOBS_MAX ? GENERATE_JOBS_MAX : (unsigned)count;
}

static uint32_t rounded(double x, bool is_needed)
{
	return is_needed && x < 1 ? 1 : (uint32_t)(x + 0.5);
}

/* Returns -1 to go on, otherwise the exit status. */
static int parse(struct arguments *a, int argc, char **argv)
{
	int option, index = -1;
	unsigned kind;

	*a = (struct arguments){ .scale = 1, .run = { .mix.seed = 1, .jobs = core_count() } };
	while ((option = getopt_long(argc, argv, "s:j:hV", long_options, &index)) != -1) {
		if (option == '?')
			return usage(); /* getopt has reported the error */
		if (option == 'h' || option == 'V') {
			fputs(option == 'h' ? help_text : "darkroom-dataset " DARKROOM_VERSION "\n",
			      stdout);
			return finish_output();
		}
		if (!take_value(a, option, optarg))
			return wrong_value(option, index, optarg);
		index = -1;
	}
	if (optind != argc - 1) {
		fprintf(stderr, "darkroom-dataset: %s\n",
		        optind == argc ? "DIRECTORY: missing argument" : "expected one DIRECTORY");
		return usage();
	}
	a->run.path = argv[optind];
	a->run.mix.count[FILE_GOOD] = rounded(FILE_MIX_FULL_COUNT * a->scale, true);
	for (kind = FILE_TRUNCATED; kind < FILE_KIND_COUNT; kind++)
		a->run.mix.count[kind] = rounded(
			a->run.mix.count[FILE_GOOD] * a->percent[kind] / 100, a->percent[kind] > 0);
	return -1;
}

static void on_signal(int number)
{
	(void)number;
	generate_stop();
}

int main(int argc, char **argv)
{
	/* a second signal ends the program at once */
	struct sigaction stop = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND };
	struct arguments a;
	int status = parse(&a, argc, argv);

	if (status >= 0)
		return status;
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	return generate(&a.run) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
