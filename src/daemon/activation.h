/*
 * activation.h - listening sockets that the service manager has opened for us: sd_listen_fds(3)'s
 * protocol, without its library.
 *
 * They outlive us: who connects while we are restarted waits in their queue. Main thread.
 */
#ifndef DARKROOM_DAEMON_ACTIVATION_H
#define DARKROOM_DAEMON_ACTIVATION_H

/*
 * Takes over what LISTEN_FDS, LISTEN_PID and LISTEN_FDNAMES tell of: listening stream sockets of
 * IPv4 or IPv6, without a name, or with the name http or that of a socket unit. Writes their
 * descriptors into fd and returns how many, at most max; 0 if there are none for this process;
 * -errno if one is something else, the reason logged. One, of IPv4, IPv6 or a path, may have the
 * name admin: *admin_fd, else -1.
 */
int activation_take(int *fd, unsigned max, int *admin_fd);

#endif
