/*
 * idle.pml - a model for spin of the protocol by which workers sleep and are woken (idle_note in
 * src/sched/core/idle.h), and of the release of an exclusive stage (src/sched/core/serve.c).
 *
 * tests/model/check runs it. Change the model and the program together.
 *
 * Claim: once nothing moves any more, no worker is asleep beside an event that it may handle. A
 * handler may take forever here ("a long decode"), so that it is not enough if another worker would
 * take the event later.
 *
 * Memory is that of memory.pml. Stacks, stealing and helping replicas are in steal.pml.
 *
 * Not modelled: loads that are overtaken by later loads. The argument in idle_note does not need
 * their order.
 *
 * -DEXCLUSIVE=n  the last n of the two stages are exclusive; all workers visit both stages
 * -DFORWARD      handling an event of FIRST sends one to LAST, so that workers are also producers
 * -DWORDS        each of two workers is in a word of its own: P3 and P4 read them one by one
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
#define HAS_WOKEN is_done = true
#define FIRST 0  /* stages */
#define LAST 1
#define IS_EXCLUSIVE(s) ((s) + EXCLUSIVE > 1)
#define ALL ((1 << WORKERS) - 1) /* stage_may_visit() of both stages */

#ifdef OUTSIDE
byte outside = OUTSIDE;  /* pieces of work that have not come yet */
#endif

#include "memory.pml"

/* wake_one(): P3, P4 */
inline wake_one(may_visit)
{
	if
#ifdef WORDS
	:: SEES_SEARCHERS(me) & (may_visit) & 1
	:: else ->
		if
		:: SEES_SEARCHERS(me) & (may_visit) & 2
		:: else ->
			wake_any((may_visit) & 1);
			if
			:: !is_done -> wake_any((may_visit) & 2)
			:: else
			fi;
			is_done = false
		fi
#else
	:: SEES_SEARCHERS(me) & (may_visit) /* P3 */
	:: else -> wake_any(may_visit); is_done = false
#endif
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

/* ---- sleeping: worker.c, idle.c and waiting.c ---- */

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

active [WORKERS] proctype worker()
{
	byte candidates, woken, work;
	bool found, is_done;

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
	bool is_done;

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
