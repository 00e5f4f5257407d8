/*
 * idle.h - sleeping and waking without lost wake-ups, herds or spinning: "idle_note".
 *
 * Per group two bitmaps with a bit per worker, searchers and sleepers (bitmaps and not counts: a
 * worker that may not visit a queue must not suppress a wake for it); per queue a mask of the
 * workers that may visit it; per worker an eventfd. In program order:
 *
 *   a worker without work                                  whoever enqueues
 *   S1 searchers |= me                                     P1 push the event (release, in the
 * queue) S2 look at the visit set for up to spin_ns             P2 fence (seq_cst) found: S3
 * searchers &= ~me; fence (seq_cst);        P3 searchers & may_visit: done if more than one event
 * is there, for each own       P4 lowest bit b of sleepers & may_visit: queue that is not empty and
 * has no searcher            sleepers &= ~b; if b was still set, that may visit it: wake another
 * (P4)                   write that worker's eventfd: done; S4 sleepers |= me; searchers &= ~me
 * else the next bit S5 fence (seq_cst) S6 look at every source of work again found: sleepers &=
 * ~me, back to S1 S7 block; then sleepers &= ~me, read the eventfd, back to S1
 *
 * Why it holds: the fences are totally ordered. If P2 comes before S5, S6 sees the event. If S5
 * comes before P2, P3 and P4 see the sleeper's bit, or see it cleared: by another waker, who writes
 * the eventfd, or by its owner, who is awake and has an S3 or S5 to come. A searcher seen at P3 has
 * that fence to come too, and looks again after it. An eventfd stays readable until it is read, so
 * a write between S6 and S7 ends S7 at once. The fences order only the flags: the event's data is
 * published by the queue's own release and acquire, and a worker's eventfd by S4 to P4.
 *
 * Only the owner writes its searcher bit. A waker that set it would leave a stale bit behind if the
 * sleeper had cancelled at S6 and begun a long piece of work, and that bit would suppress wakes
 * while others sleep. The baton in S3 keeps a second worker from sleeping beside a second event;
 * for a single one, which the finder takes, it would wake two for each. A late eventfd write is a
 * spurious wake: harmless, and counted. A failed attempt on an exclusive stage counts as nothing
 * found: its holder wakes for it after letting go. A worker with a source has its queues to itself:
 * a wake-up that it spends on work from outside is passed on to nobody. Where the stage graph has
 * replicas, P4 tries the workers of the queue's own replica before the others that may visit it:
 * any order will do.
 *
 * tests/model/idle.pml is this as a model, with store buffers, and tests/model/check verifies it:
 * change both together.
 */
#ifndef DARKROOM_SCHED_IDLE_H
#define DARKROOM_SCHED_IDLE_H

#include <stdbool.h>
#include <stdint.h>

struct group;
struct worker;

void idle_search(struct worker *w);   /* S1 */
void idle_found(struct worker *w);    /* S3 */
void idle_announce(struct worker *w); /* S4, S5 */
void idle_retract(
	struct worker *w); /* S7, or S6 found: sleepers &= ~me; notes whether somebody woke us */

/* True if one of the worker's queues has an event that it may take (S2, S6). */
bool idle_sees_work(const struct worker *w);

/* P2..P4, after a push: wakes one of home, rather than another of may_visit. Any thread; waker is
 * the caller's worker, for its count, or NULL. */
void idle_wake(struct group *g, uint64_t home, uint64_t may_visit, struct worker *waker);

/* Wakes every worker of the group, sleeping or not: something other than an event has changed
 * (stop, drain, a live switch). Write what has changed before, relaxed is enough. Any thread. */
void idle_wake_all(struct group *g);

#endif
