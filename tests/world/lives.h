/* lives.h - the life of a process that has the store. One thread. */
#ifndef DARKROOM_TESTS_WORLD_LIVES_H
#define DARKROOM_TESTS_WORLD_LIVES_H

/* Begins a process: opens the store, and checks what the one before left. */
void begin_life(void);
void end_life(void);

/* Does one thing that clients, the daemon or an operator may do. */
void take_step(void);

/* Lets all images end that do so. */
void expire_all(void);

#endif
