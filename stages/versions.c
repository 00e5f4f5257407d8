/* versions.c - prints versions, each as its header reports it. Main thread. */
#include "app.h"

#include <curl/curl.h>
#include <event2/event.h>
#include <gnu/libc-version.h>
#include <hwloc.h>
#include <jpeglib.h>
#include <llhttp.h>
#include <nettle/version.h>
#include <seccomp.h>
#include <sys/utsname.h>
#include <xxhash.h>

#define TEXT_OF(x) #x
#define VALUE_OF(x) TEXT_OF(x)

#ifdef __clang__
#define COMPILER "" /* its version includes the name */
#else
#define COMPILER "gcc "
#endif

#ifdef DARKROOM_DEBUG
#define ASSERTIONS "all assertions"
#else
#define ASSERTIONS "no costly assertions"
#endif

#if defined __SANITIZE_ADDRESS__
#define SANITIZER ", address sanitizer"
#elif defined __SANITIZE_THREAD__
#define SANITIZER ", thread sanitizer"
#else
#define SANITIZER ""
#endif

void versions_print(FILE *to)
{
	unsigned running = hwloc_get_api_version();
	struct utsname system;

	fprintf(to, "compiler       %s%s\n", COMPILER, __VERSION__);
	fprintf(to, "build          " ASSERTIONS SANITIZER "\n");
	fprintf(to, "libjpeg-turbo  " VALUE_OF(LIBJPEG_TURBO_VERSION) " (API %d)\n",
	        JPEG_LIB_VERSION);
	fprintf(to, "libevent       " LIBEVENT_VERSION ", running %s\n", event_get_version());
	fprintf(to, "llhttp         %d.%d.%d\n", LLHTTP_VERSION_MAJOR, LLHTTP_VERSION_MINOR,
	        LLHTTP_VERSION_PATCH);
	fprintf(to, "hwloc          API %x.%x, running %x.%x\n", HWLOC_API_VERSION >> 16,
	        HWLOC_API_VERSION >> 8 & 0xFF, running >> 16, running >> 8 & 0xFF);
	const struct scmp_version *seccomp = seccomp_version();

	fprintf(to, "libseccomp     %d.%d.%d, running %u.%u.%u\n", SCMP_VER_MAJOR, SCMP_VER_MINOR,
	        SCMP_VER_MICRO, seccomp->major, seccomp->minor, seccomp->micro);
	fprintf(to, "nettle         %d.%d, running %d.%d\n", NETTLE_VERSION_MAJOR,
	        NETTLE_VERSION_MINOR, nettle_version_major(), nettle_version_minor());
	fprintf(to, "libcurl        " LIBCURL_VERSION ", loaded with store.kind = s3\n");
	unsigned xxhash = XXH_versionNumber();

	fprintf(to, "xxhash         %d.%d.%d, running %u.%u.%u\n", XXH_VERSION_MAJOR,
	        XXH_VERSION_MINOR, XXH_VERSION_RELEASE, xxhash / 10000, xxhash / 100 % 100,
	        xxhash % 100);
	fprintf(to,
	        "glibc          " VALUE_OF(__GLIBC__) "." VALUE_OF(
			__GLIBC_MINOR__) ", running %s\n",
	        gnu_get_libc_version());
	if (uname(&system) == 0)
		fprintf(to, "system         %s %s %s\n", system.sysname, system.release,
		        system.machine);
}
