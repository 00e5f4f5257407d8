/*
 * activation.h - listening sockets that the service manager opened: the protocol of
 * sd_listen_fds(3), without its library.
 *
 * These sockets outlive the process: clients that connect during a restart wait in their queue.
 * Main thread.
 */
#ifndef DARKROOM_HTTP_ACTIVATION_H
#define DARKROOM_HTTP_ACTIVATION_H

/*
 * Takes the sockets that LISTEN_FDS, LISTEN_PID and LISTEN_FDNAMES describe. Accepts listening
 * stream sockets of IPv4 or IPv6 without a name, with the name http, or with the name of a socket
 * unit. Writes their descriptors into fd and returns their count, at most max. One socket, of IPv4,
 * IPv6 or a path, may have the name admin: its descriptor goes to *admin_fd, otherwise -1. Returns
 * 0 if there are none for this process, or -errno, logged, if one of them is something else.
 */
int activation_take(int *fd, unsigned max, int *admin_fd);

#endif
