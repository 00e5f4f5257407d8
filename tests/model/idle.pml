/*
 * idle.pml - a model for spin of the protocol by which workers sleep and are woken (idle_note in
 * src/sched/idle.h), and of the release of an exclusive stage (src/sched/serve.c).
 *
 * tests/model/check runs it. Change the model and the program together.
 *
 * Claim: once nothing moves any more, no worker is asleep beside an event that it may handle. A
 * handler may take forever here ("a long decode"), so that it is not enough if another worker would
 * take the event later.
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
 * Not modelled: stacks, stealing and helping replicas, for which tests/weak/weak_idle.c runs the
 * program itself; loads that are overtaken by later loads. The argument in idle_note does not need
 * their order.
 *
 * -DEXCLUSIVE=n  the last n of the two stages are exclusive; all workers visit both stages
 * -DFORWARD      handling an event of FIRST sends one to LAST, so that workers are also producers
 * -DOUTSIDE=n    the workers have a source: n pieces of work from outside end a worker's sleep
 *
 * Mutants, each of which must be rejected: NO_P2, NO_S3, NO_S5 (that fence is missing), NO_S6 (no
 * second check), NO_BATON, WAKER_SETS_SEARCHER, NO_RELEASE_FENCE, NO_RELEASE_CHECK, BATON_OVER=2 (a
 * second event does not count).
 */
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef PRODUCERS
#define PRODUCERS 2
#endif
#ifndef EVENTS
#define EVENTS 1 /* per producer */
#endif
#ifndef EXCLUSIVE
#define EXCLUSIVE 1
#endif
#ifndef BATON_OVER
#define BATON_OVER 1
#endif
#define CPUS (WORKERS + PRODUCERS)
#define me _pid  /* workers first, then producers */
#define BIT(w) (1 << (w))
#define FIRST 0  /* stages */
#define LAST 1
#define IS_EXCLUSIVE(s) ((s) + EXCLUSIVE > 1)
#define ALL ((1 << WORKERS) - 1) /* stage_may_visit() of both stages */

/* struct group, struct stage, struct worker */
byte searchers, sleepers;
byte queued[2];          /* events that can be popped */
bool is_taken[2];        /* exclusive: a worker is in it */
byte wake_fd;            /* bit of each worker: its eventfd is readable */
byte asleep;             /* not in the program: workers in S7 */
#ifdef OUTSIDE
byte outside = OUTSIDE;  /* pieces of work that have not come yet */
#endif

/* ---- memory ---- */

#define DEPTH 3
byte pending[CPUS * DEPTH]; /* oldest first; 0: none */
#define SET_SEARCHER 1
#define CLEAR_SEARCHER 2
#define SET_SLEEPER 3
#define PUSH 4    /* + stage. Release order, in queue_try_push() */
#define RELEASE 6 /* + stage. Release order, in serve_exclusive() */

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
#define SEES_TAKEN(p, s) (is_taken[s] && !HAS(p, RELEASE + (s)))

/* ---- waking: idle.c ---- */

/* wake_one(): P3, P4 */
inline wake_one(may_visit)
{
	if
	:: SEES_SEARCHERS(me) & (may_visit) /* P3 */
	:: else ->
		candidates = SEES_SLEEPERS(me) & (may_visit);
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
				d_step { wake_fd = wake_fd | woken; woken = 0; candidates = 0 }
			:: else
			fi
		od
	fi
}

/* stage_queue_push() and idle_wake(), as in push_to_queue(): P1, P2 */
inline push(s)
{
#ifdef NO_P2
	store(PUSH + s);
#else
	write_and_fence(PUSH + s);
#endif
	wake_one(ALL)
}

/* ---- working: serve.c ---- */

/* serve_batch(), of one event. Its handler returns, or takes forever. */
inline serve_one(s)
{
	atomic {
		queued[s] > 0 && MAY_MODIFY(me, PUSH + (s)) ->
		queued[s]--;
		if
		:: skip
		:: goto end_long
		fi
	};
#ifdef FORWARD
	if
	:: s == FIRST -> push(LAST)
	:: else
	fi
#endif
}

/* serve_exclusive(). The regime may end the visit after any event. A worker that finds the stage
 * taken goes on; no worker waits. */
inline serve_exclusive(s)
{
	d_step { !is_taken[s] && MAY_MODIFY(me, RELEASE + (s)) -> is_taken[s] = true };
	do
	:: serve_one(s)
	:: break
	od;
#ifdef NO_RELEASE_FENCE
	modify(RELEASE + s);
#else
	write_and_fence(RELEASE + s);
#endif
#ifndef NO_RELEASE_CHECK
	if
	:: SEES_EVENT(me, s) -> wake_one(ALL) /* idle_wake() */
	:: else
	fi
#endif
}

/* ---- sleeping: worker_loop.c, idle.c and waiting.c ---- */

/* worker_sees_work(), for one queue */
inline check(s)
{
	if
	:: !found && SEES_EVENT(me, s) ->
		if
		:: IS_EXCLUSIVE(s) && SEES_TAKEN(me, s)
		:: else -> found = true
		fi
	:: else
	fi
}

/* idle_found(): waiting_for_worker(), which reads one queue after the other; then for each
 * queue. The worker's own pushes are not pending. */
inline count_work()
{
	work = queued[FIRST];
	work = work + queued[LAST]
}

inline pass_baton(s)
{
	if
	:: SEES_EVENT(me, s) -> wake_one(ALL & ~BIT(me))
	:: else
	fi
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

active [WORKERS] proctype worker()
{
	byte candidates, woken, work;
	bool found;

	/* worker_run(). A policy may visit in any order. The time at which it goes idle does not
	 * matter either, because S2 and S6 check the queues. */
visits:
	if
#if EXCLUSIVE < 2
	:: serve_one(FIRST); goto visits
#else
	:: serve_exclusive(FIRST); goto visits
#endif
#if EXCLUSIVE < 1
	:: serve_one(LAST); goto visits
#else
	:: serve_exclusive(LAST); goto visits
#endif
	:: goto idle
	fi;

	/* idle() */
idle:
	modify(SET_SEARCHER); /* S1, idle_search() */
	check(FIRST);          /* S2, search(). Checking twice is the same as checking later. */
	check(LAST);
	if
	:: found ->           /* S3, idle_found() */
		found = false;
#ifdef NO_S3
		modify(CLEAR_SEARCHER);
#else
		write_and_fence(CLEAR_SEARCHER);
#endif
#ifndef NO_BATON
		count_work();
		if
		:: d_step { work > BATON_OVER -> work = 0 };
			pass_baton(FIRST);
			pass_baton(LAST)
		:: d_step { work <= BATON_OVER -> work = 0 }
		fi;
#endif
		goto visits
	:: else
	fi;
	modify(SET_SLEEPER);  /* S4, idle_announce() */
	modify(CLEAR_SEARCHER);
#ifndef NO_S5
	FENCE;                /* S5 */
#endif
#ifndef NO_S6
	check(FIRST);          /* S6 */
	check(LAST);
	if
	:: found -> retract(); found = false; goto idle
	:: else
	fi;
#endif
	asleep = asleep | BIT(me); /* S7, block() */
end_sleep:
	if
	:: d_step { wake_fd & BIT(me) -> asleep = asleep & ~BIT(me) };
		retract();
		found = false;
		wake_fd = wake_fd & ~BIT(me); /* read_wake_fd() */
		goto idle
#ifdef OUTSIDE
	:: d_step { outside -> outside--; asleep = asleep & ~BIT(me) };
		retract(); /* visit_enter(); then the connection's work, which may be long */
		if
		:: goto end_long
		:: found -> found = false; wake_fd = wake_fd & ~BIT(me)
		:: else
		fi;
		goto visits
#endif
	fi;

end_long:
	false
}

active [PRODUCERS] proctype producer() /* outside of the group, such as an I/O thread:
                                             * stage_push(), visit_send() */
{
	byte candidates, woken, left = EVENTS;

	do
	:: left ->
		left--;
		if
		:: push(FIRST)
		:: PRODUCERS == 1 || me > WORKERS -> push(LAST) /* otherwise all is tried twice */
		fi
	:: else -> break
	od
}

active proctype memory()
{
end:
	do
	FLUSH_ALL(0) FLUSH_ALL(1) FLUSH_ALL(2)
#if CPUS > 3
	FLUSH_ALL(3)
#endif
#if CPUS > 4
	FLUSH_ALL(4)
#endif
	od
}

#define WORK_IS_LEFT ((queued[FIRST] && !is_taken[FIRST]) || (queued[LAST] && !is_taken[LAST]))

active proctype observer()
{
	timeout -> /* nothing else can move */
	assert(!(asleep && WORK_IS_LEFT))
}
