/* handle_page.h - the web pages. The I/O thread. */
#ifndef DARKROOM_HTTP_HANDLE_PAGE_H
#define DARKROOM_HTTP_HANDLE_PAGE_H

#include "conn.h"

/* Returns whether the connection may have the page: without server.page, only administrative ones
 * have the files of page.html. Any thread, in a visit. */
bool handle_page_is_on(const struct conf *conf, const struct conn *c);

/* Responds with the file of the route: 200 or 304. */
enum conn_step handle_page(struct conn *c);

#endif
