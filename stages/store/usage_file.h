/*
 * usage_file.h - the figures of usage.h between two runs of the daemon. Under the lock of struct
 * usage; calls block.
 */
#ifndef DARKROOM_STORE_USAGE_FILE_H
#define DARKROOM_STORE_USAGE_FILE_H

#include <stdbool.h>

struct usage;
struct usage_token;

/* Reads and removes the file. Returns false if there is none, or if it does not hold any more. */
bool usage_file_read(struct usage *u, int root_fd);

/* Writes the file by one rename. A failure is logged: the next start counts the images. */
void usage_file_write(const struct usage *u, int root_fd);
void usage_file_remove(int root_fd);

/* The file that demands a new count. Returns whether it was there, and removes it. */
bool usage_file_take_recount(int root_fd);
void usage_file_demand_recount(int root_fd);

/* Of usage.c: the token's figures, a new entry if need be. NULL: no name, or no room. */
struct usage_token *usage_token(struct usage *u, const char *name);

#endif
