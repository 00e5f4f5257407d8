/*
 * profile.h - the file in which a run's weights are kept: what each stage took, and how many events
 * passed along each edge.
 *
 * An INI file with a section for each stage:
 *
 *   [stage.scale]
 *   service_ns = 8123456789  ; processing time, all threads together
 *   events = 12000
 *   to_jpeg_encode = 8000    ; events sent there
 *
 * Stages and edges that are not named weigh nothing. Main thread.
 */
#ifndef DARKROOM_SCHED_PROFILE_H
#define DARKROOM_SCHED_PROFILE_H

struct partition_weights;
struct text;

/*
 * Reads a profile. w->stages, which the file does not say, is 0. Returns 0, or -EINVAL or -errno
 * with a line in errors for everything that is wrong: each names file and line.
 */
int profile_read(struct partition_weights *w, const char *path, struct text *errors);

/* Appends the weights as such a file. */
void profile_print(const struct partition_weights *w, struct text *to);

/* Writes such a file in place of what fd, a regular file, held. 0 or -errno. */
int profile_write(const struct partition_weights *w, int fd);

#endif
