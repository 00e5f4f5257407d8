/*
 * handle_upload.h - the response to POST /images. The I/O thread.
 */
#ifndef DARKROOM_HTTP_HANDLE_UPLOAD_H
#define DARKROOM_HTTP_HANDLE_UPLOAD_H

#include "conn.h"

/* All images of the upload are stored (201) or decoded (202), or none of them succeeded. Drops the
 * connection's reference to the upload. */
enum conn_step handle_uploaded(struct visit *v, struct conn *c);

#endif
