/*
 * listener.h - TCP sockets that listen, and what their addresses say. Main thread.
 */
#ifndef DARKROOM_HTTP_LISTENER_H
#define DARKROOM_HTTP_LISTENER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#define LISTEN_BACKLOG 4096 /* the kernel cuts it to net.core.somaxconn */

/* The address of HOST:PORT or [HOST]:PORT, whose syntax was checked with the configuration. 0 or
 * -errno, logged with the key. */
int listener_resolve(const char *key, const char *listen, struct sockaddr_storage *address,
                     socklen_t *length);

/* A bound and listening socket, or -errno. share_port: with SO_REUSEPORT. */
int listener_open(const struct sockaddr_storage *address, socklen_t length, bool share_port);

/* http://HOST:PORT, or unix:PATH. */
void listener_url(int fd, char *url, size_t size);

/* Whether only this machine can connect to it: a loopback address, or a path. */
bool listener_is_local(int fd);

#endif
