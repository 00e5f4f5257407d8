/*
 * idle.h - sleeping and waking without lost wake-ups, herds or spinning: "idle_note".
 *
 * Each group has two sets of workers (worker_set.h), searchers and sleepers. They are sets and
 * not counts, because a worker that may not visit a queue must not suppress a wake-up for it. Each
 * queue has a set of the workers that may visit it. Each worker has an eventfd. In program order:
 *
 *   a worker without work                               a thread that enqueues an event
 *   S1 searchers |= me                                  P1 push the event (release, in the queue)
 *   S2 check the visit set for up to spin_ns            P2 fence (seq_cst)
 *      found: S3 searchers &= ~me; fence (seq_cst);     P3 searchers & may_visit: done
 *      if more than one event is there, for each own    P4 lowest bit b of sleepers & may_visit:
 *      queue that is not empty and has no searcher         sleepers &= ~b; if b was still set,
 *      that may visit it: wake another (P4)                write that worker's eventfd: done;
 *   S4 sleepers |= me; searchers &= ~me                    otherwise the next bit
 *   S5 fence (seq_cst)
 *   S6 check every source of work again
 *      found: sleepers &= ~me, back to S1
 *   S7 block; then sleepers &= ~me, read the eventfd,
 *      back to S1
 *
 * Why it holds. The fences are totally ordered. If P2 precedes S5, S6 sees the event. If S5
 * precedes P2, P3 and P4 see the sleeper's bit, or see it cleared. Either another waker has cleared
 * it and writes the eventfd, or its owner has cleared it, is awake, and has an S3 or S5 ahead. A
 * searcher seen at P3 also has that fence ahead, and checks again after it. An eventfd stays
 * readable until it is read, so that a write between S6 and S7 ends S7 at once. The fences order
 * only the flags. The queue's own release and acquire publish the data of the event, and S4 and P4
 * publish a worker's eventfd.
 *
 * Nothing above compares bits of two workers. So it does not matter that a group of many workers
 * has several words, which P3 and P4 read one after the other.
 *
 * Only the owner writes its searcher bit. A waker that set it would leave a stale bit behind if the
 * sleeper had cancelled at S6 and started a long piece of work. That bit would suppress wake-ups
 * while others sleep. The baton in S3 keeps a second worker from sleeping next to a second event.
 * For a single event, which the finder takes, it would wake two workers per event. A late write to
 * an eventfd is a spurious wake-up, which is harmless and counted.
 *
 * Beside these, W1 pushes an event on the worker's own stack, followed by P2 to P4. W2 pops it
 * there, W3 steals it, and W4 takes an event of another replica.
 *
 * W5: a worker that pushes the only event it could take wakes none (push_is_for_self). It is
 * awake, and has an S5 ahead itself if it does not take the event. But until the event is in its
 * cell, events that others push behind it cannot be seen, and those that are woken for them sleep
 * again. So the worker then looks for such events, after a fence, and wakes one for them.
 *
 * A failed attempt to enter an exclusive stage counts as nothing found: its holder wakes a worker
 * after it has released the stage. A worker with a source has its queues to itself: a wake-up that
 * it spends on work from outside is not passed on. With replicas, P4 tries the workers of the
 * queue's own replica before the others that may visit it; any order would be correct.
 *
 * tests/model/idle.pml is this protocol as a model, with store buffers. steal.pml is the same with
 * stacks, stealing and helping replicas. tests/model/check verifies them. Change both together.
 * tests/weak/check runs idle.c itself in weak memory.
 */
#ifndef DARKROOM_SCHED_CORE_IDLE_H
#define DARKROOM_SCHED_CORE_IDLE_H

struct group;
struct schedule;
struct stage;
struct worker;

/* The steps of a worker. Owner's thread. */
void idle_search(struct worker *w);   /* S1 */
void idle_found(struct worker *w);    /* S3 */
void idle_announce(struct worker *w); /* S4, S5 */

/* Clears the sleeper bit, if it was announced (S6 found, S7). Records whether a waker had cleared
 * it. */
void idle_retract(struct worker *w);

/* Wakes one worker after a push to the stage's queue of that index (P2 to P4): one that owns the
 * queue if possible, otherwise one that may visit it; never `except`, a worker of the group or
 * NULL. waker is the calling worker, for its counters, or NULL. Any thread. */
void idle_wake(const struct stage *s, const struct schedule *schedule, unsigned queue,
               const struct worker *except, struct worker *waker);

/* Wakes every worker of the group, asleep or not, because something other than a queue has changed
 * (stop, drain, live switch). The change must be stored before; relaxed is enough. Any thread. */
void idle_wake_all(struct group *g);

#endif
