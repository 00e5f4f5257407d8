/*
 * s3_put.c - what libcurl alone needs for the bytes of images: PUTs without signatures, checksums
 * or results, on kept connections. scripts/experiments/s3_cost.py subtracts it.
 *
 * usage: s3_put URL IMAGES PARALLEL SIZE...   Each image is one PUT of each size. Prints the CPU
 * time in seconds.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <curl/curl.h>

#define PARALLEL_MAX 256
#define PUT_MAX ((size_t)64 << 20)

static char content[PUT_MAX];

static size_t ignore(char *data, size_t one, size_t size, void *arg)
{
	(void)data, (void)arg;
	return one * size;
}

static bool begin(CURLM *multi, CURL *e, const char *url, curl_off_t size)
{
	curl_easy_setopt(e, CURLOPT_URL, url);
	curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, size);
	curl_easy_setopt(e, CURLOPT_POSTFIELDS, content);
	curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, "PUT");
	curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, ignore);
	return curl_multi_add_handle(multi, e) == CURLM_OK;
}

/* Counts what has ended, and starts others. Returns false after a failure. */
static bool replace_ended(CURLM *multi, const char *url, char **sizes, long count, long total,
                          long *begun, long *ended)
{
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(multi, &left))) {
		CURL *e = message->easy_handle;
		long status = 0;

		curl_easy_getinfo(e, CURLINFO_RESPONSE_CODE, &status);
		if (message->data.result != CURLE_OK || status != 200)
			return false;
		curl_multi_remove_handle(multi, e);
		++*ended;
		if (*begun == total)
			continue;
		if (!begin(multi, e, url, strtol(sizes[*begun % count], NULL, 10)))
			return false;
		++*begun;
	}
	return true;
}

int main(int argc, char **argv)
{
	long images = argc > 4 ? strtol(argv[2], NULL, 10) : 0,
	     parallel = argc > 4 ? strtol(argv[3], NULL, 10) : 0, count = argc - 4,
	     total = images * count, begun = 0, ended = 0;

	if (images < 1 || parallel < 1 || parallel > PARALLEL_MAX) {
		fprintf(stderr, "usage: s3_put URL IMAGES PARALLEL SIZE...\n");
		return 2;
	}
	for (long i = 0; i < count; i++)
		if ((size_t)strtol(argv[4 + i], NULL, 10) > PUT_MAX)
			return 2;
	curl_global_init(CURL_GLOBAL_DEFAULT);
	CURLM *multi = curl_multi_init();
	bool is_good = multi != NULL;

	for (; is_good && begun < parallel && begun < total; begun++)
		is_good = begin(multi, curl_easy_init(), argv[1],
		                strtol(argv[4 + begun % count], NULL, 10));
	for (int running; is_good && ended < total;) {
		is_good = curl_multi_perform(multi, &running) == CURLM_OK &&
		          replace_ended(multi, argv[1], argv + 4, count, total, &begun, &ended) &&
		          curl_multi_poll(multi, NULL, 0, 1000, NULL) == CURLM_OK;
	}
	struct rusage usage;

	if (!is_good) {
		fprintf(stderr, "s3_put: a PUT to %s has failed\n", argv[1]);
		return 1;
	}
	getrusage(RUSAGE_SELF, &usage);
	printf("%.6f\n", (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	                         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
	return 0;
}
