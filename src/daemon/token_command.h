/*
 * token_command.h - darkroomd token NAME [SCOPE...] [QUOTA...]: makes a token.
 */
#ifndef DARKROOM_DAEMON_TOKEN_COMMAND_H
#define DARKROOM_DAEMON_TOKEN_COMMAND_H

#include <stddef.h>

/* Prints a new token and its line for access.tokens_file. Returns the exit status. Main thread. */
int token_command(char *const *words, size_t count);

#endif
