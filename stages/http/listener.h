/*
 * listener.h - listening sockets: opening one, and what its address tells. Main thread.
 */
#ifndef DARKROOM_HTTP_LISTENER_H
#define DARKROOM_HTTP_LISTENER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#define LISTEN_BACKLOG 4096 /* the kernel limits it to net.core.somaxconn */

/* Resolves HOST:PORT or [HOST]:PORT; the configuration has checked the syntax. Returns 0, or -errno
 * with the reason logged under the key. */
int listener_resolve(const char *key, const char *listen, struct sockaddr_storage *address,
                     socklen_t *length);

/* Returns a bound and listening TCP socket, or -errno. share_port: with SO_REUSEPORT. */
int listener_open(const struct sockaddr_storage *address, socklen_t length, bool share_port);

/* Writes http://HOST:PORT or unix:PATH. */
void listener_url(int fd, char *url, size_t size);

/* Returns whether only this machine can connect: to a loopback address, or a path. */
bool listener_is_local(int fd);
bool listeners_are_local(const int *fd, unsigned count);

#endif
