/*
 * store_tool.h - darkroomd store COMMAND: an operator's work on a store's directory, or on its
 * bucket, with or without a daemon that serves it.
 *
 * Each command sees an image as a whole or not at all: one rename publishes it, one removes it.
 * Main thread of a process of its own.
 */
#ifndef DARKROOM_STORE_TOOL_STORE_TOOL_H
#define DARKROOM_STORE_TOOL_STORE_TOOL_H

#include <stdbool.h>
#include <stddef.h>

struct conf;
struct text;

/* Prints the help of the command, or of all, if a word is --help or -h. Returns false if none is.
 * Needs no configuration. */
bool store_tool_help(char *const *words, size_t count);

/* Runs the command on the store of the configuration. ask: see store_query.h. Returns the exit
 * status: 0, 1 if it failed or found something wrong, 2 for wrong usage. */
int store_tool(const struct conf *conf,
               int (*ask)(const struct conf *conf, const char *line, struct text *answer),
               char *const *words, size_t count);

#endif
