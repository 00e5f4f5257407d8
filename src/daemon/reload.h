/*
 * reload.h - applies another configuration while the daemon serves.
 *
 * The struct conf of startup is never written again, so that any thread may read it. The live keys
 * that apply now are here, with the main thread; it passes them to the program and to the graph,
 * which hands them to the workers. Main thread.
 */
#ifndef DARKROOM_DAEMON_RELOAD_H
#define DARKROOM_DAEMON_RELOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "conf/conf.h"

struct options;
struct text;
struct trace_output;

struct reload {
	const struct options *options; /* borrowed */
	struct trace_output *trace;    /* borrowed; for ctl trace */
	struct conf conf;              /* the active configuration */
	bool has_failed;               /* the last reload of the file failed */
	uint64_t answer_ns; /* when the last change is answered, even if a thread lacks it */
	bool is_published;  /* a change that may not be applied by every thread */
	bool is_late;       /* a change takes long, and the log has told that */
	bool is_notifying;  /* the service manager waits for the end of a reload */
};

/*
 * Reloads the file, with the overrides of the command line, and applies all live keys; settings of
 * reload_set() are lost. Reopens the access log in any case, and reloads the tokens. Logs the
 * result and appends it to report, one line per message. Returns 0, or -errno with the active
 * configuration unchanged. On return the change is published. Each thread applies it after its
 * present work, and a thread that hangs on the disk may take long. Whoever asked for the change is
 * answered once every thread has applied it, or at answer_ns.
 */
int reload_file(struct reload *r, struct text *report);

/* Changes one key: setting is SECTION.KEY=VALUE. As above; -ENOTSUP if the key needs a restart. */
int reload_set(struct reload *r, const char *setting, struct text *report);

/* Returns whether every thread has applied what was published, or that time has come. */
bool reload_can_answer(uint64_t answer_ns);

/* Appends which threads have not applied it yet, without the end of the line. Returns whether there
 * are some. */
bool reload_print_behind(struct text *to);

/* Reports the end of a reload to the service manager, and threads that are late to the log. Call it
 * after each graph_tick(). */
void reload_tick(struct reload *r);

/* Appends the active live keys as one line without an end. */
void reload_print(const struct reload *r, struct text *to);

/* Appends what differs from the file with the overrides of the command line, one key a line, or
 * that nothing does, or why the file cannot be loaded. */
void reload_print_differences(const struct reload *r, struct text *to);

/* Sets the level and the access style of the log by the configuration, or by -q. */
void reload_log(const struct options *options, const struct conf *conf);

#endif
