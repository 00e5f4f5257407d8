/*
 * client_class.h - the class of an upload for admission (overload.classes). The I/O thread.
 */
#ifndef DARKROOM_HTTP_CLIENT_CLASS_H
#define DARKROOM_HTTP_CLIENT_CLASS_H

struct conn;

/* Returns the index of the highest class of which a term matches; otherwise that of the lowest. The
 * request's header is complete and authorized. */
unsigned client_class_of(const struct conn *c);

#endif
