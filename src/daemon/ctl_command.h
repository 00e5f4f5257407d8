/*
 * ctl_command.h - the commands of darkroomd ctl, on the daemon's side.
 */
#ifndef DARKROOM_DAEMON_CTL_COMMAND_H
#define DARKROOM_DAEMON_CTL_COMMAND_H

#include "ctl.h"

struct reload;
struct text;

/* Runs a command line, which it takes apart, and appends the result. Main thread of the daemon. */
enum ctl_status ctl_command(struct reload *r, char *line, struct text *answer);

/* Appends the commands with their meaning, one line each. */
void ctl_print_commands(struct text *to);

#endif
