/* handle_list.h - GET /images: the stored images by time. Steps of the table in conn.c; the I/O
 * thread. */
#ifndef DARKROOM_HTTP_HANDLE_LIST_H
#define DARKROOM_HTTP_HANDLE_LIST_H

#include "conn.h"

/* Reads the query, and sends the list to disk_write; handle_listed() responds. */
enum conn_step handle_list(struct visit *v, struct conn *c);
enum conn_step handle_listed(struct visit *v, struct conn *c);

#endif
