/* listeners.c - opens the sockets on which the daemon listens, or takes those of the service
 * manager. Main thread. */
#include "listeners.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/check.h"
#include "conf/conf_number.h"
#include "conf/conf_source.h"

/* ---- one socket ---- */

/* Returns 0, or -errno with the reason logged under the key. */
static int listener_resolve(const char *key, const char *listen, struct sockaddr_storage *address,
                            socklen_t *length)
{
	char host[CONF_TEXT_MAX], port[CONF_TEXT_MAX];
	const struct addrinfo hints = { .ai_family = AF_UNSPEC,
		                        .ai_socktype = SOCK_STREAM,
		                        .ai_flags = AI_PASSIVE | AI_NUMERICSERV };
	const char *colon = strrchr(listen, ':');
	bool is_bracketed = listen[0] == '[';
	struct addrinfo *found;

	snprintf(host, sizeof host, "%.*s", (int)(colon - listen) - 2 * is_bracketed,
	         listen + is_bracketed);
	snprintf(port, sizeof port, "%s", colon + 1);
	int failure = getaddrinfo(host[0] ? host : NULL, port, &hints, &found);

	if (failure) {
		log_error("%s%s = %s: %s", conf_place(key), key, listen, gai_strerror(failure));
		return -EADDRNOTAVAIL;
	}
	*address = (struct sockaddr_storage){ 0 };
	memcpy(address, found->ai_addr, found->ai_addrlen);
	*length = found->ai_addrlen;
	freeaddrinfo(found);
	return 0;
}

/* Returns the socket, or -errno. share_port: with SO_REUSEPORT. */
static int listener_open(const struct sockaddr_storage *address, socklen_t length, bool share_port)
{
	const int one = 1;
	int fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) ||
	    (share_port && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one)) ||
	    bind(fd, (const struct sockaddr *)address, length) || listen(fd, LISTEN_BACKLOG)) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

/* As listener_open(), and logs a failure. */
static int open_logged(const char *key, const char *listen, const struct sockaddr_storage *address,
                       socklen_t length, enum log_level level)
{
	int fd = listener_open(address, length, false);

	if (fd < 0)
		log_write(level, "%s%s = %s: %s", conf_place(key), key, listen, strerror(-fd));
	return fd;
}

int listener_open_at(const char *key, const char *listen, enum log_level level)
{
	struct sockaddr_storage address;
	socklen_t length;
	int err = listener_resolve(key, listen, &address, &length);

	return err ? err : open_logged(key, listen, &address, length, level);
}

static bool address_of(int fd, struct sockaddr_storage *address)
{
	socklen_t length = sizeof *address;

	*address = (struct sockaddr_storage){ 0 };
	return getsockname(fd, (struct sockaddr *)address, &length) == 0;
}

void listener_url(int fd, char *url, size_t size)
{
	char host[64], port[8]; /* numeric: INET6_ADDRSTRLEN and a scope; five digits */
	struct sockaddr_storage address;
	bool is_known = address_of(fd, &address), is_v6 = address.ss_family == AF_INET6;

	if (is_known && address.ss_family == AF_UNIX)
		snprintf(url, size, "unix:%.*s", (int)sizeof((struct sockaddr_un){ 0 }).sun_path,
		         ((const struct sockaddr_un *)&address)->sun_path);
	else if (!is_known ||
	         getnameinfo((const struct sockaddr *)&address, sizeof address, host, sizeof host,
	                     port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV))
		snprintf(url, size, "(unknown)");
	else
		snprintf(url, size, "http://%s%s%s:%s", is_v6 ? "[" : "", host, is_v6 ? "]" : "",
		         port);
}

static bool is_local_address(const struct sockaddr_storage *address)
{
	if (address->ss_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 ==
		       IN_LOOPBACKNET;
	if (address->ss_family != AF_INET6)
		return address->ss_family == AF_UNIX;
	const struct in6_addr *v6 = &((const struct sockaddr_in6 *)address)->sin6_addr;

	return IN6_IS_ADDR_LOOPBACK(v6) ||
	       (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == IN_LOOPBACKNET);
}

bool listener_is_local(int fd)
{
	struct sockaddr_storage address;

	return address_of(fd, &address) && is_local_address(&address);
}

static bool listeners_are_local(const int *fd, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (!listener_is_local(fd[i]))
			return false;
	return true;
}

/* ---- sockets of the service manager ---- */

#define FIRST_FD 3         /* SD_LISTEN_FDS_START */
#define NAME_MAX_BYTES 255 /* limit of FileDescriptorName= */

/* The variable as a number; 0: it is not set, or not a number up to 2^30. */
static int environment_number(const char *name)
{
	const char *text = getenv(name);
	uint64_t value;

	return text && conf_units_parse(text, conf_units_none, &value) && value <= 1U << 30
	               ? (int)value
	               : 0;
}

/* Copies the first name of a list separated by colons. Returns the rest of the list. */
static const char *next_name(const char *list, char name[NAME_MAX_BYTES + 1])
{
	size_t length = strcspn(list, ":");

	snprintf(name, NAME_MAX_BYTES + 1, "%.*s", (int)length, list);
	return list + length + (list[length] == ':');
}

/* A socket without a name of its own has the name of its unit, or "unknown". */
static bool is_for_http(const char *name)
{
	static const char unit[] = ".socket";
	size_t length = strlen(name);

	return length == 0 || strcmp(name, "http") == 0 || strcmp(name, "unknown") == 0 ||
	       (length >= sizeof unit && strcmp(name + length - (sizeof unit - 1), unit) == 0);
}

static bool is_for_admin(const char *name)
{
	return strcmp(name, "admin") == 0;
}

static int socket_option(int fd, int option)
{
	int value = 0;
	socklen_t length = sizeof value;

	return getsockopt(fd, SOL_SOCKET, option, &value, &length) ? -1 : value;
}

/* NULL if the socket can be served, otherwise what was expected. */
static const char *fault_of(int fd, const char *name)
{
	int domain = socket_option(fd, SO_DOMAIN);

	if (!is_for_http(name) && !is_for_admin(name))
		return "expected the name http or admin";
	if (domain < 0)
		return "expected a socket";
	if ((domain != AF_INET && domain != AF_INET6 &&
	     (domain != AF_UNIX || !is_for_admin(name))) ||
	    socket_option(fd, SO_TYPE) != SOCK_STREAM)
		return is_for_admin(name) ? "expected a stream socket" : "expected a TCP socket";
	return socket_option(fd, SO_ACCEPTCONN) == 1 ? NULL
	                                             : "expected a listening socket (Accept=no)";
}

static int prepare(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) || fcntl(fd, F_SETFD, FD_CLOEXEC))
		return -errno;
	return 0;
}

/*
 * Takes the sockets that LISTEN_FDS, LISTEN_PID and LISTEN_FDNAMES describe. Accepts listening
 * stream sockets of IPv4 or IPv6 without a name, with the name http, or with the name of a socket
 * unit. Writes their descriptors into fd and returns their count, at most max. One socket, of IPv4,
 * IPv6 or a path, may have the name admin: its descriptor goes to *admin_fd, otherwise -1. Returns
 * 0 if there are none for this process, or -errno, logged, if one of them is something else.
 */
static int activation_take(int *fd, unsigned max, int *admin_fd)
{
	const char *names = getenv("LISTEN_FDNAMES");
	int count = environment_number("LISTEN_FDS");
	int taken = 0;

	*admin_fd = -1;
	if (!names)
		names = "";
	if (count == 0 || environment_number("LISTEN_PID") != getpid())
		return 0;
	if (count > (int)max + 1) {
		log_error("socket activation: %d sockets were passed: expected at most %u", count,
		          max + 1);
		return -E2BIG;
	}
	for (int i = 0; i < count; i++) {
		char name[NAME_MAX_BYTES + 1];

		names = next_name(names, name);
		const char *fault = fault_of(FIRST_FD + i, name);

		if (!fault && is_for_admin(name) && *admin_fd >= 0)
			fault = "expected only one with this name";
		if (!fault && !is_for_admin(name) && taken == (int)max)
			fault = "expected fewer sockets";
		int err = fault ? -EINVAL : prepare(FIRST_FD + i);

		if (err) {
			log_error("socket activation: descriptor %d (\"%s\"): %s", FIRST_FD + i,
			          name, fault ? fault : strerror(-err));
			return err;
		}
		if (is_for_admin(name))
			*admin_fd = FIRST_FD + i;
		else
			fd[taken++] = FIRST_FD + i;
	}
	return taken;
}

/* ---- the administrative listener ---- */

#define AUTO_ADDRESS "127.0.0.1:8081"
#define SOCKET_MODE 0660 /* less the umask; the usual one leaves it to the owner */
#define SOCKET_BACKLOG 16

static int listen_at_path(struct admin *a, const char *path)
{
	int err = unix_socket_open(&a->socket, path, SOCKET_MODE, SOCKET_BACKLOG);

	if (err)
		log_error("%sserver.admin_listen = %s: %s", conf_place("server.admin_listen"), path,
		          unix_socket_reason(err));
	a->fd = err ? -1 : a->socket.fd;
	return err;
}

/* With `auto`, a failure is only logged. */
static int listen_at_address(struct admin *a, const char *listen, bool is_auto)
{
	int fd = listener_open_at("server.admin_listen", listen,
	                          is_auto ? LOG_LEVEL_WARNING : LOG_LEVEL_ERROR);

	a->fd = fd < 0 ? -1 : fd;
	return fd < 0 && !is_auto ? fd : 0;
}

static int open_admin_configured(struct admin *a, const struct conf *conf)
{
	const char *listen = conf->server.admin_listen;

	if (strcmp(listen, "no") == 0)
		return 0;
	if (strcmp(listen, "auto") == 0)
		return a->is_on_public ? 0 : listen_at_address(a, AUTO_ADDRESS, true);
	return *listen == '/' ? listen_at_path(a, listen) : listen_at_address(a, listen, false);
}

/* Opens the configured listener, or takes the passed one (-1: none). The public ones must be open.
 * Returns 0, or -errno with the reason logged. */
static int admin_open(struct admin *a, const struct conf *conf, const int *public_fd,
                      unsigned public_count, int passed_fd)
{
	int err = 0;

	*a = (struct admin){ .fd = passed_fd, .socket.fd = -1 };
	/* Through a proxy, requests of strangers come to a loopback address. */
	a->is_on_public = conf->server.admin_on_public == CONF_DEFAULT
	                          ? listeners_are_local(public_fd, public_count) &&
	                                    !*conf->server.trusted_proxies
	                          : conf->server.admin_on_public == CONF_YES;
	if (passed_fd < 0)
		err = open_admin_configured(a, conf);
	if (err || a->fd < 0) {
		if (!err && !a->is_on_public)
			log_notice("administration: /stats and /metrics are served nowhere");
		return err;
	}
	listener_url(a->fd, a->url, sizeof a->url);
	a->is_local = listener_is_local(a->fd);
	a->is_local_port = a->is_local && strncmp(a->url, "http", 4) == 0;
	log_notice("administration on %s", a->url);
	if (!a->is_local)
		log_warning("administration: other machines can connect to %s, which has no access "
		            "control; serving them",
		            a->url);
	return 0;
}

static void admin_close(struct admin *a)
{
	if (a->fd >= 0 && a->fd != a->socket.fd)
		close(a->fd);
	unix_socket_close(&a->socket);
	a->fd = -1;
}

/* ---- all of them ---- */

/* Bytes that the kernel keeps for a client which has no room for them, about. When it reads
 * nothing, they bound the memory of its connection, and its next requests wait. */
#define UNSENT_MAX (128 << 10)

/* Accepted sockets inherit the options. Responses are written as a whole, so waiting for more data
 * gains nothing. Unix sockets do not have the options; their buffers are small. */
static void set_options(int fd)
{
	const int one = 1, unsent = UNSENT_MAX;

	if ((setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) ||
	     setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent)) &&
	    errno != EOPNOTSUPP)
		log_warning("accept: cannot set the options of TCP: %s; serving without them",
		            strerror(errno));
}

/* Binds the address once without SO_REUSEPORT. This detects another program on the port, which
 * sockets that share it would not, and replaces port 0 by the port chosen. */
static int claim_port(struct sockaddr_storage *address, socklen_t *length)
{
	int err = 0, fd = listener_open(address, *length, false);

	if (fd < 0)
		return fd;
	*length = sizeof *address;
	if (getsockname(fd, (struct sockaddr *)address, length))
		err = -errno;
	close(fd);
	return err;
}

/* Logs that everybody may upload, if that is so. */
static void warn_if_open(const struct conf *conf, bool is_local, const char *where)
{
	if (!is_local && !*conf->access.tokens_file)
		log_warning("%sserver.listen: other machines can connect to %s, and everybody may "
		            "upload: expected access.tokens_file",
		            conf_place("server.listen"), where);
}

struct place {
	const char *key, *listen;
	struct sockaddr_storage address;
	socklen_t length;
};

/* Splits the address into its port and the rest, which is all zeros if it stands for every address.
 * Returns the port, 0 if the system chooses it. */
static in_port_t take_port(struct sockaddr_storage *address)
{
	in_port_t *port = address->ss_family == AF_INET6
	                          ? &((struct sockaddr_in6 *)address)->sin6_port
	                          : &((struct sockaddr_in *)address)->sin_port;
	in_port_t taken = *port;

	*port = 0;
	return taken;
}

static bool is_any(const struct sockaddr_storage *address)
{
	const struct sockaddr_storage any = { .ss_family = address->ss_family };

	return memcmp(address, &any, sizeof any) == 0;
}

static bool is_same_place(const struct place *a, const struct place *b)
{
	struct sockaddr_storage one = a->address, other = b->address;
	in_port_t port = take_port(&one);

	return port == take_port(&other) && port && one.ss_family == other.ss_family &&
	       (is_any(&one) || is_any(&other) || memcmp(&one, &other, sizeof one) == 0);
}

/* Whether the machine has the address. Its port may be the running daemon's. */
static int check_place(struct place *p)
{
	int err = listener_resolve(p->key, p->listen, &p->address, &p->length);

	if (err)
		return err;
	struct sockaddr_storage address = p->address;

	take_port(&address);
	int fd = open_logged(p->key, p->listen, &address, p->length, LOG_LEVEL_ERROR);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

int listener_set_check(const struct conf *conf)
{
	struct place place[] = {
		{ .key = "server.listen", .listen = conf->server.listen },
		{ .key = "server.admin_listen", .listen = conf->server.admin_listen },
		{ .key = "server.agent_listen", .listen = conf->server.agent_listen },
	};
	int err = 0;

	for (size_t i = 0; i < COUNT_OF(place); i++) {
		struct place *p = &place[i];

		if (*p->listen == '/' || !strchr(p->listen, ':'))
			continue; /* a path, or none */
		int failed = check_place(p);

		err = failed ? failed : err;
		warn_if_open(conf, i > 0 || failed || is_local_address(&p->address), p->listen);
		for (size_t k = 0; k < i && !failed; k++) {
			if (!is_same_place(&place[k], p))
				continue;
			log_error("%s%s = %s: expected another address than %s", conf_place(p->key),
			          p->key, p->listen, place[k].key);
			err = -EADDRINUSE;
		}
	}
	return err;
}

static int open_configured(struct listener_set *l, const struct conf *conf, unsigned count)
{
	struct sockaddr_storage address;
	socklen_t length;
	int err = listener_resolve("server.listen", conf->server.listen, &address, &length);

	if (err)
		return err;
	err = claim_port(&address, &length);
	for (unsigned i = 0; i < count && !err; i++) {
		int fd = listener_open(&address, length, count > 1);

		if (fd < 0)
			err = fd;
		else
			l->fd[l->count++] = fd;
	}
	if (err)
		log_error("%sserver.listen = %s: %s%s", conf_place("server.listen"),
		          conf->server.listen, strerror(-err),
		          err == -EACCES ? "; a port below 1024 needs darkroomd.socket: "
		                           "EXAMPLES in darkroomd(8)"
		                         : "");
	return err;
}

int listener_set_open(struct listener_set *l, const struct conf *conf, unsigned count)
{
	*l = (struct listener_set){ .admin = { .fd = -1, .socket.fd = -1 } };
	int admin_fd, passed = activation_take(l->fd, COUNT_OF(l->fd), &admin_fd);
	int err = passed < 0 ? passed : 0;

	if (passed > 0) {
		log_notice("server.listen is not used; serving the service manager's sockets (%d)",
		           passed);
		l->count = (unsigned)passed;
		l->is_activated = true;
	} else if (!err) {
		err = open_configured(l, conf, count);
	}
	if (!err) {
		listener_url(l->fd[0], l->url, sizeof l->url);
		l->is_local = listeners_are_local(l->fd, l->count);
		warn_if_open(conf, l->is_local, l->url);
		err = admin_open(&l->admin, conf, l->fd, l->count, admin_fd);
		for (unsigned i = 0; i < l->count; i++)
			set_options(l->fd[i]);
		if (l->admin.fd >= 0)
			set_options(l->admin.fd);
	}
	if (err)
		listener_set_close(l);
	return err;
}

void listener_set_close(struct listener_set *l)
{
	for (unsigned i = 0; i < l->count; i++)
		close(l->fd[i]);
	l->count = 0;
	admin_close(&l->admin);
}
