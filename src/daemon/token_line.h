/*
 * token_line.h - one line of the file of tokens: NAME HASH [SCOPE...] [QUOTA...]. Any thread.
 */
#ifndef DARKROOM_DAEMON_TOKEN_LINE_H
#define DARKROOM_DAEMON_TOKEN_LINE_H

#include "tokens.h"

/* The scopes of a line without one. Originals have the place where a picture was taken, so their
 * scope must be named. */
#define TOKEN_SCOPES_UNSAID (TOKEN_UPLOAD | TOKEN_DELETE | TOKEN_LIST)

/* Reads a line that ends before `end`. Returns NULL, or the fault. The name is empty if the line
 * has no token. */
const char *token_line_parse(const char *at, const char *end, struct token *token);

/* Reads one quota: "images=1000", "bytes=20G", "uploads=500". Returns false if it is none. */
bool token_quota_parse(const char *word, struct token_quota *quota);

/* Appends the quotas in the file's notation, each after a space. */
void token_print_quota(const struct token_quota *quota, struct text *to);

#endif
