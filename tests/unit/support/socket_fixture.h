/*
 * socket_fixture.h - sockets bound to addresses.
 */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_SOCKET_FIXTURE_H
#define DARKROOM_TESTS_UNIT_SUPPORT_SOCKET_FIXTURE_H

/* Returns a TCP socket bound to a free port of the IPv4 or IPv6 address; it does not listen.
 * Returns -1 if the machine has no such addresses. */
int socket_bound_to(const char *address);

#endif
