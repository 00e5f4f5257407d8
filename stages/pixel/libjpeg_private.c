/* libjpeg_private.c - detects the version of the loaded libjpeg by its symbols: no function
 * returns it. */
#include "libjpeg_private.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

#include "base/check.h"

/* Functions of libraries with the same soname and other structures: libjpeg-turbo 3, mozjpeg. */
static const char *const foreign_symbols[] = { "jpeg_enable_lossless", "jpeg_c_set_bool_param" };

static bool is_version_2(void)
{
	for (size_t i = 0; i < COUNT_OF(foreign_symbols); i++)
		if (dlsym(RTLD_DEFAULT, foreign_symbols[i]))
			return false;
	return true;
}

bool libjpeg_private_is_usable(void)
{
	static _Atomic int result; /* 0: unknown, 1: usable, -1: not usable */
	int known = atomic_load_explicit(&result, memory_order_relaxed);

	if (known == 0) {
		known = LIBJPEG_HAS_PRIVATE && is_version_2() ? 1 : -1;
		atomic_store_explicit(&result, known, memory_order_relaxed);
	}
	return known > 0;
}
