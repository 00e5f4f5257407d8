/*
 * notify.c - sends datagrams to the service manager. Knows nothing of their contents.
 *
 * It does not use libsystemd. The protocol is documented to be reimplemented (sd_notify(3)), and
 * the daemon needs only this part. A daemon that decodes untrusted files should load as few
 * libraries as possible. Main thread.
 */
#include "notify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "conf/conf_number.h"
#include "log/log.h"

#define MESSAGE_MAX 1024
#define WATCHDOG_US_MAX (UINT64_C(1000000) * 3600 * 24)

static struct {
	int fd; /* connected: the sandbox forbids to send to an address */
	uint64_t watchdog_ns;
	bool has_failed; /* already logged */
} notify = { .fd = -1 };

/* Connects a socket to the address. Returns it or -errno. */
static int connect_to(const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t length = strlen(name);

	if ((name[0] != '/' && name[0] != '@') || length < 2)
		return -EAFNOSUPPORT;
	if (length > sizeof address.sun_path - 1)
		return -ENAMETOOLONG;
	memcpy(address.sun_path, name, length);
	if (name[0] == '@')
		address.sun_path[0] = '\0'; /* abstract: the length delimits the name */
	length += offsetof(struct sockaddr_un, sun_path) + (name[0] == '/');
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&address, (socklen_t)length)) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

/* The variable as a number from 1 to max; 0: it is not set, or not such a number. */
static uint64_t environment_number(const char *name, uint64_t max)
{
	const char *text = getenv(name);
	uint64_t value;

	if (!text)
		return 0;
	if (conf_units_parse(text, conf_units_none, &value) && value > 0 && value <= max)
		return value;
	log_warning("%s = \"%.40s\": expected a number from 1 to %" PRIu64 "; ignored", name, text,
	            max);
	return 0;
}

/* The watchdog may belong to a parent process that passed its environment on. */
static uint64_t watchdog_ns(void)
{
	uint64_t us = environment_number("WATCHDOG_USEC", WATCHDOG_US_MAX);

	if (us && getenv("WATCHDOG_PID") &&
	    environment_number("WATCHDOG_PID", INT32_MAX) != (uint64_t)getpid())
		return 0;
	return us * 1000;
}

void notify_open(void)
{
	const char *name = getenv("NOTIFY_SOCKET");

	if (!name || !*name)
		return;
	int fd = connect_to(name);

	if (fd < 0) {
		log_warning("service manager: NOTIFY_SOCKET = \"%.120s\": %s; running without "
		            "reports",
		            name, strerror(-fd));
		return;
	}
	notify.fd = fd;
	notify.has_failed = false;
	notify.watchdog_ns = watchdog_ns();
}

void notify_close(void)
{
	if (notify.fd >= 0)
		close(notify.fd);
	notify.fd = -1;
	notify.watchdog_ns = 0;
}

bool notify_is_on(void)
{
	return notify.fd >= 0;
}

uint64_t notify_watchdog_ns(void)
{
	return notify.watchdog_ns;
}

void notify_send(const char *format, ...)
{
	char message[MESSAGE_MAX];
	va_list args;

	if (notify.fd < 0)
		return;
	va_start(args, format);
	int length = vsnprintf(message, sizeof message, format, args);
	va_end(args);
	if (length < 0)
		return;
	if ((size_t)length >= sizeof message)
		length = (int)sizeof message - 1;
	while (send(notify.fd, message, (size_t)length, MSG_NOSIGNAL) < 0) {
		if (errno == EINTR)
			continue;
		if (!notify.has_failed)
			log_warning("service manager: cannot send a report: %s", strerror(errno));
		notify.has_failed = true;
		return;
	}
	notify.has_failed = false;
}
