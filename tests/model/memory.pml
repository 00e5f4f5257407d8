/*
 * memory.pml - what idle.pml and steal.pml share: memory with store buffers, and waking (idle.c).
 *
 * Memory. Spin is sequentially consistent, so each processor has a store buffer (`pending`). Its
 * writes go there and it sees them. The others see them when `memory` has flushed them, which may
 * be at any later time. A fence waits until the processor's own buffer is empty. Two machines:
 *
 *   default  what the language promises for the orders in the source, and what ARM does. A
 *            read-modify-write whose result is not used goes to the buffer like a store. Entries
 *            leave it in any order, except that those of one word stay in order, and a release
 *            waits for all entries before it.
 *   -DX86    x86-TSO: first in, first out, and every read-modify-write has a lock prefix, which is
 *            a fence. There only P2, which follows a plain store, needs a fence of its own.
 *
 * The including model defines WORKERS, PRODUCERS and HAS_WOKEN, and has `active proctype memory()`
 * after its workers and producers, which have the first process numbers.
 */
#define CPUS (WORKERS + PRODUCERS)
#define me _pid  /* workers first, then producers */
#define BIT(w) (1 << (w))
/* struct group, struct stage, struct worker */
byte searchers, sleepers;
byte queued[2];          /* events that can be popped */
bool is_taken[2];        /* exclusive: a worker is in it */
byte stacked[CPUS];        /* struct worker: events that can be popped or stolen */
byte wake_fd;            /* bit of each worker: its eventfd is readable */
byte asleep;             /* not in the program: workers in S7 */

/* ---- memory ---- */

#define DEPTH 3
byte pending[CPUS * DEPTH]; /* oldest first; 0: none */
#define SET_SEARCHER 1
#define CLEAR_SEARCHER 2
#define SET_SLEEPER 3
#define PUSH 4    /* + stage. Release order, in queue_try_push() */
#define RELEASE 6 /* + stage. Release order, in serve_exclusive() */
#define PUSH_STACK 8 /* the processor's own. Release order, in deque_try_push() */

#define AT(p, k) pending[(p) * DEPTH + (k)]
#define HAS(p, e) (AT(p, 0) == (e) || AT(p, 1) == (e) || AT(p, 2) == (e))
#define IS_DRAINED(p) (AT(p, 0) == 0)
#define IS_SEARCHER(e) ((e) == SET_SEARCHER || (e) == CLEAR_SEARCHER)
#define IS_OF_ONE_WORD(e, f) ((e) == (f) || (IS_SEARCHER(e) && IS_SEARCHER(f)))

#ifdef X86
#define MAY_PASS(p, k) ((k) == 0)
#define MAY_MODIFY(p, e) IS_DRAINED(p)
#else
#define MAY_PASS(p, k) ((k) == 0 || (AT(p, k) < PUSH && !IS_OF_ONE_WORD(AT(p, 0), AT(p, k)) && \
                                     ((k) == 1 || !IS_OF_ONE_WORD(AT(p, 1), AT(p, k)))))
#define MAY_MODIFY(p, e) (!HAS(p, e))
#endif

inline apply(p, e)
{
	if
	:: (e) == SET_SEARCHER -> searchers = searchers | BIT(p)
	:: (e) == CLEAR_SEARCHER -> searchers = searchers & ~BIT(p)
	:: (e) == SET_SLEEPER -> sleepers = sleepers | BIT(p)
	:: (e) == PUSH + FIRST || (e) == PUSH + LAST -> queued[(e) - PUSH]++
	:: (e) == RELEASE + FIRST || (e) == RELEASE + LAST -> is_taken[(e) - RELEASE] = false
	:: (e) == PUSH_STACK -> stacked[p]++
	fi
}

#define FLUSH(p, k) \
	:: d_step { \
		AT(p, k) && MAY_PASS(p, k) -> \
		apply(p, AT(p, k)); \
		if \
		:: (k) < 1 -> AT(p, 0) = AT(p, 1) \
		:: else \
		fi; \
		if \
		:: (k) < 2 -> AT(p, 1) = AT(p, 2) \
		:: else \
		fi; \
		AT(p, 2) = 0 \
	}
#define FLUSH_ALL(p) FLUSH(p, 0) FLUSH(p, 1) FLUSH(p, 2)

/* A store, or a read-modify-write whose result is not used. A full buffer waits. */
inline store(e)
{
	d_step {
		AT(me, 2) == 0 ->
		if
		:: AT(me, 0) == 0 -> AT(me, 0) = e
		:: AT(me, 0) && AT(me, 1) == 0 -> AT(me, 1) = e
		:: else -> AT(me, 2) = e
		fi
	}
}

inline modify(e)
{
#ifdef X86
	d_step { IS_DRAINED(me) -> apply(me, e) }
#else
	store(e)
#endif
}

#define FENCE IS_DRAINED(me)

/* A write followed by a fence. Nothing is read between them, so that waiting in the buffer would
 * be the same as executing later. */
inline write_and_fence(e)
{
	d_step { IS_DRAINED(me) -> apply(me, e) }
}

/* The value that processor p reads: its own pending writes come first. Bits of others are never
 * in its buffer. */
#define SEARCHER_FORWARDED(p) \
	(IS_SEARCHER(AT(p, 2)) -> AT(p, 2) : (IS_SEARCHER(AT(p, 1)) -> AT(p, 1) : AT(p, 0)))
#define SEES_SEARCHERS(p) \
	(SEARCHER_FORWARDED(p) == SET_SEARCHER -> searchers | BIT(p) : \
	 (SEARCHER_FORWARDED(p) == CLEAR_SEARCHER -> searchers & ~BIT(p) : searchers))
#define SEES_SLEEPERS(p) (HAS(p, SET_SLEEPER) -> sleepers | BIT(p) : sleepers)
#define SEES_EVENT(p, s) (queued[s] > 0 || HAS(p, PUSH + (s)))
#define SEES_STACK(p, w) (stacked[w] > 0 || ((w) == (p) && HAS(p, PUSH_STACK)))
#define SEES_TAKEN(p, s) (is_taken[s] && !HAS(p, RELEASE + (s)))

/* ---- waking: idle.c ---- */

/* wake_any(): P4. The including model says what to do when one was woken. */
inline wake_any(workers)
{
	candidates = SEES_SLEEPERS(me) & (workers);
	do
	:: candidates == 0 -> break
	:: else ->
		d_step { /* P4, atomic_fetch_and */
			MAY_MODIFY(me, SET_SLEEPER) ->
			woken = candidates & -candidates;
			candidates = candidates & ~woken;
			woken = woken & sleepers;
			sleepers = sleepers & ~woken
		};
		if
		:: woken ->
#ifdef WAKER_SETS_SEARCHER
			searchers = searchers | woken;
#endif
			/* write_wake() */
			d_step { wake_fd = wake_fd | woken; woken = 0; candidates = 0; HAS_WOKEN }
		:: else
		fi
	od
}

/* idle_retract(): found temporarily is w->was_woken */
inline retract()
{
	d_step {
		MAY_MODIFY(me, SET_SLEEPER) ->
		found = !(sleepers & BIT(me));
		sleepers = sleepers & ~BIT(me)
	}
}
