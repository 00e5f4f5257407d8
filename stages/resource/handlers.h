/*
 * handlers.h - what each resource does. The I/O thread, unless marked.
 *
 * A function that returns enum conn_step is a step (conn/conn.h): it responds, or waits for an
 * answer.
 */
#ifndef DARKROOM_RESOURCE_HANDLERS_H
#define DARKROOM_RESOURCE_HANDLERS_H

#include "conn/conn.h"

/* The request is complete, and no upload: does what it asks for. */
enum conn_step handle_request(struct visit *v, struct conn *c);

/* Returns whether the connection may have the page: without server.page, only administrative ones
 * have the files of page.html. Any thread, in a visit. */
bool handle_page_is_on(const struct conf *conf, const struct conn *c);

/* ---- GET and POST /control: settings of the scheduler, from the operator's page ---- */

/* Returns whether the connection may change settings: it is on server.admin_listen, and
 * server.admin_control is on. Otherwise the problem is set. Any thread, in a visit. */
bool handle_control_is_on(const struct conf *conf, struct conn *c);

/* GET responds with the keys, their values and choices. POST waits for the main thread, which
 * applies the setting in the query. */
enum conn_step handle_control(struct visit *v, struct conn *c);

/* ---- GET /images: the stored images by time ---- */

/* Reads the query, has disk_read make the list, and responds with it. */
enum conn_step handle_list(struct visit *v, struct conn *c);

/* ---- GET of stored images and of their variants, and DELETE ---- */

/* Responds with the image's metadata or the variant's file. A variant of an image in flight is
 * waited for. One that a stored image lacks is made (store.make_missing), or the answer names the
 * variants that the image has. */
enum conn_step get_file(struct visit *v, struct conn *c);

/* Removes the image if the request's conditions are true (RFC 9110 13). An image in flight is
 * waited for. */
enum conn_step delete_image(struct visit *v, struct conn *c);

/* Responds with the file of c->job.found, which is open: metadata or a variant, as the route says;
 * by entity tag, conditions and range (RFC 9110, 13 and 14). Closes it, or gives it to the
 * response. */
enum conn_step found_respond(struct visit *v, struct conn *c);

/* Has disk_read compare it with its checksum first (store.verify). */
enum conn_step found_verify(struct visit *v, struct conn *c);

/* Evaluates the conditions of a DELETE on what was looked for, and closes it. They count only if
 * the request would succeed without them (13.2.1). Otherwise sets the problem. */
bool found_may_be_removed(struct conn *c);

/* The store cannot tell whether the image exists. Responds 500, or 503. */
enum conn_step respond_unreadable(struct conn *c, int err);

/* Responds 404. */
enum conn_step respond_no_image(struct conn *c);

/* ---- POST /images ---- */

/* Between header and body: reads its header fields. The upload is admitted, waits, or is refused
 * before its body is read: by the quotas of its token (store/usage.h), and for its class
 * (overload.classes). */
enum conn_step admit_upload(struct visit *v, struct conn *c);

/* Returns the bytes of an upload's files. */
uint64_t upload_bytes(const struct upload *u);

/* Takes what the upload needs of the token's quotas until its images end. Otherwise sets the
 * problem. The owner of the connection's event. */
bool quota_take(struct conn *c, struct upload *u);

/* Gives all of it back: the upload was not started. The owner of the connection's event. */
void quota_drop(struct upload *u);

/* Asks the disk about the Idempotency-Key before the images start, and tells it what they have
 * become before the response. */
enum conn_step handle_key(struct visit *v, struct conn *c);

/* All images of the upload are stored (201) or decoded (202), or none of them succeeded. Drops the
 * connection's reference to the upload. */
enum conn_step handle_uploaded(struct visit *v, struct conn *c);

#endif
