/* s3_curl.c - looks up the functions. Main thread. */
#include "s3_curl.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/check.h"
#include "log/log.h"

#define LIBRARY "libcurl.so.4"

struct s3_curl s3_curl;

static const struct {
	const char *name;
	size_t offset;
} functions[] = {
#define X(field, name, type, parameters) { name, offsetof(struct s3_curl, field) },
	S3_CURL_FUNCTIONS(X)
#undef X
};

int s3_curl_load(void)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	for (size_t i = 0; library && i < COUNT_OF(functions); i++) {
		void *function = dlsym(library, functions[i].name);

		/* POSIX: both kinds of pointers have the same size. */
		memcpy((char *)&s3_curl + functions[i].offset, &function, sizeof function);
		if (!function)
			library = NULL;
	}
	if (library && s3_curl.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
		return 0;
	log_error("store.kind = s3 needs libcurl 7.87 or later, which cannot be loaded: %s",
	          library ? "it has no memory" : dlerror());
	return -ENOENT;
}
