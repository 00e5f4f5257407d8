/* handlers.h - between the files that make answers. Port's thread. */
#ifndef DARKROOM_HTTP_HANDLERS_H
#define DARKROOM_HTTP_HANDLERS_H

#include <stddef.h>

#include "conn.h"

/* Begins the response with what all have in common. */
void answer_start(struct conn *c, unsigned status, size_t body_max);

/* Ends it, decides whether the connection stays, and begins to write. */
enum conn_step answer_finish(struct conn *c);

/* A request, image or part is refused for it. */
void answer_count_rejection(struct conn *c, const struct problem *problem);

/* Appends the fields that the status of a problem wants. */
void answer_problem_fields(struct conn *c, const struct problem *problem);

/* Answers with a problem document that has no other members. */
enum conn_step answer_with_problem(struct conn *c);

#endif
