/*
 * import_pictures.h - makes images of the JPEGs in a directory, by the running daemon.
 *
 * Each file goes into the spool, as an upload that was acknowledged and not yet processed, and the
 * daemon's recovery makes the image. Main thread.
 */
#ifndef DARKROOM_STORE_IMPORT_PICTURES_H
#define DARKROOM_STORE_IMPORT_PICTURES_H

struct store_query;

/* Imports the directory that is the only word, with the map of --map. Returns the exit status. */
int import_pictures(struct store_query *q);

#endif
