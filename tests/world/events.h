/* events.h - descriptors of eventfd() in virtual time, for who waits for several descriptors. */
#ifndef DARKROOM_TESTS_WORLD_EVENTS_H
#define DARKROOM_TESTS_WORLD_EVENTS_H

#include <stdbool.h>

struct thread;

bool event_is_set(int fd);

/* When the event is set the next time, *reader is woken, if it is not NULL, and becomes NULL. */
void event_tell(int fd, struct thread **reader);

unsigned event_open_count(void);

#endif
