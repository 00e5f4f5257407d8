/*
 * store_commands.h - the commands of darkroomd store, each with the options in *q. They return the
 * exit status. Main thread.
 */
#ifndef DARKROOM_STORE_STORE_COMMANDS_H
#define DARKROOM_STORE_STORE_COMMANDS_H

struct store_query;

/* Prints the selected images, one per line. */
int store_list(struct store_query *q);

/* The same, of images that are named by id or token. */
int store_find_images(struct store_query *q);

/* Prints images and bytes by day, and bytes by variant. */
int store_count(struct store_query *q);

/* Removes the selected images. */
int store_delete(struct store_query *q);

/* check: compares all files with their checksums. */
int store_audit(struct store_query *q);

/* Prints what store_remake() would do, and an estimate of its cost. */
int store_plan(struct store_query *q);

/* Has the running daemon make variants that images lack. */
int store_remake(struct store_query *q);

/* Writes the selected images to standard output, as a tar archive. */
int store_export(struct store_query *q);

/* Stores the images of such an archive from standard input. */
int store_import(struct store_query *q);

#endif
