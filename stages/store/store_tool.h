/*
 * store_tool.h - darkroomd store COMMAND: an operator's work on a store's directory, with or
 * without a daemon that serves it.
 *
 * Each command sees an image as a whole or not at all: one rename publishes it, one removes it.
 * Main thread of a process of its own.
 */
#ifndef DARKROOM_STORE_STORE_TOOL_H
#define DARKROOM_STORE_STORE_TOOL_H

#include <stddef.h>

/* Runs the command on the store at root. Returns the exit status: 0, 1 if it failed or found
 * something wrong, 2 for wrong usage. */
int store_tool(const char *root, char *const *words, size_t count);

#endif
