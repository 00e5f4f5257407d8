/*
 * respond.h - how every response begins, ends and is written, and problem documents. The I/O
 * thread.
 */
#ifndef DARKROOM_CONN_RESPOND_H
#define DARKROOM_CONN_RESPOND_H

#include <stddef.h>

#include "base/json.h"
#include "conn.h"

#define PROBLEM_BODY_MAX 4096

/* Begins the response with the fields that all responses have. body_max bounds its text. */
void respond_start(struct conn *c, unsigned status, size_t body_max);

/* Appends Content-Type and Cache-Control: no-store. */
void respond_content(struct conn *c, const char *type);

/* Begins a response with a document of JSON, whose members follow. */
struct json respond_json(struct conn *c, unsigned status, size_t body_max);

/* Ends the document and the response. */
enum conn_step respond_json_end(struct conn *c, struct json *j);

/* Ends the response, decides whether the connection stays open, and begins to write. */
enum conn_step respond_finish(struct conn *c);

/* Returns the origin whose web pages may use the server: "" for none, and always for administrative
 * connections. */
const char *respond_origin(const struct conn *c);

/* ---- problems ---- */

/* As respond_json(), with the document of c->problem. */
struct json respond_problem_json(struct conn *c, size_t body_max);

/* Counts a request, image or part that was refused for the problem. */
void respond_count_rejection(struct conn *c, const struct problem *problem);

/* Responds with the document of c->problem. */
enum conn_step respond_problem(struct conn *c);

/* ---- steps ---- */

enum conn_step respond_refuse(struct visit *v, struct conn *c);
enum conn_step respond_write(struct visit *v, struct conn *c);

#endif
