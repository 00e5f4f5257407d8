/* http_date.h - dates of header fields (RFC 9110 5.6.7). Any thread. */
#ifndef DARKROOM_HTTP_HTTP_DATE_H
#define DARKROOM_HTTP_HTTP_DATE_H

#include <stdbool.h>
#include <time.h>

#include "field.h"

#define HTTP_DATE_MAX 40

/* Writes "Sun, 06 Nov 1994 08:49:37 GMT". */
void http_date_format(char text[HTTP_DATE_MAX], time_t seconds);

/* Reads a date in one of its three forms. Returns false if it is in none of them. */
bool http_date_parse(struct slice value, time_t *seconds);

#endif
