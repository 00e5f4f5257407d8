/*
 * steal.pml - a model for spin of sleeping and waking with stacks, stealing and replicas that help
 * each other, as the default policy uses them (src/sched/core/push.c, serve.c, idle.c, waiting.c).
 *
 * Memory is that of memory.pml. tests/model/check runs it. Change the model and the program
 * together.
 *
 * Claim: as in idle.pml. Every worker may take every event here, so no worker may be asleep beside
 * any event in a queue or on a stack. A handler may take forever.
 *
 * One shared stage has two queues, one per replica. Worker w belongs to replica w % 2, and helps the
 * other. A handler of an event of a queue pushes SENDS events on its worker's stack. Steps beside
 * S1 to S7 and P1 to P4 of idle_note:
 *
 *   W1  push an event on the own stack (release), then P2 to P4 for another worker
 *   W2  pop an event from the own stack
 *   W3  steal an event from another worker's stack
 *   W4  help another replica: take an event from its queue
 *   W5  push the only event that the worker could take, and wake none; the handler then returns
 *
 * Wider than the program: a worker takes from any queue or stack in any order, and goes idle at any
 * time.
 *
 * Not modelled: the inside of the deque (tests/weak/weak_deque.c) and of a queue (weak_idle.c,
 * for-self); a full stack; exclusive stages (idle.pml); workers with different visit sets; live
 * switches.
 *
 * Mutants, each of which must be rejected: NO_W1_FENCE (P2 is missing for a stack), NO_W1_WAKE,
 * NO_S3, NO_S5, NO_S6, NO_S6_STACKS and NO_S6_FOREIGN (S2 and S6 ignore them), NO_BATON,
 * NO_BATON_STACKS, HOME_ONLY (P4 wakes no helper), ALWAYS_W5, S5_BEFORE_S4.
 */
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef PRODUCERS
#define PRODUCERS 1
#endif
#ifndef EVENTS
#define EVENTS 1 /* per producer */
#endif
#ifndef SENDS
#define SENDS 1
#endif
#define HAS_WOKEN is_done = true
#define FIRST 0 /* queues, by replica */
#define LAST 1

#include "memory.pml"

#define ALL ((1 << WORKERS) - 1) /* stage_may_visit() */
#if WORKERS > 2
#define HOME(s) ((s) == 0 -> 5 : 2) /* stage_home() */
#else
#define HOME(s) BIT(s)
#endif

/* wake_one(): P3, then P4 for home and then for the others */
inline wake_one(home, may_visit)
{
	if
	:: SEES_SEARCHERS(me) & (may_visit) /* P3 */
	:: else ->
		wake_any(home);
		if
		:: is_done -> is_done = false
		:: else ->
#ifndef HOME_ONLY
			wake_any((may_visit) & ~(home));
			is_done = false
#endif
		fi
	fi
}

/* push_to_queue(): P1, P2 */
inline push(s)
{
	write_and_fence(PUSH + s);
	wake_one(HOME(s), ALL)
}

/* waiting_for_worker(), which reads one after the other */
inline count_work()
{
	work = SEES_EVENT(me, FIRST);
	work = work + SEES_EVENT(me, LAST) + (queued[FIRST] > 1) + (queued[LAST] > 1);
	work = work + stacked[0] + (me == 0 && HAS(me, PUSH_STACK));
	work = work + stacked[1] + (me == 1 && HAS(me, PUSH_STACK))
#if WORKERS > 2
	;
	work = work + stacked[2] + (me == 2 && HAS(me, PUSH_STACK))
#endif
}

/* push_to_stack() of an event of the queue s */
inline push_on_stack(s)
{
	count_work();
	if
#ifdef ALWAYS_W5
	:: d_step { work = 0 };
#else
	:: d_step { work == 0 && !is_for_self -> work = 0 };
#endif
		store(PUSH_STACK); /* W5: push_is_for_self() */
		is_for_self = true
#ifndef ALWAYS_W5
	:: d_step { work > 0 || is_for_self -> work = 0 };
#ifdef NO_W1_FENCE
		store(PUSH_STACK);
#else
		write_and_fence(PUSH_STACK); /* W1 */
#endif
#ifndef NO_W1_WAKE
		wake_one(HOME(s) & ~BIT(me), ALL & ~BIT(me)) /* push_to_stack() */
#endif
	/* The handler has other events left, or sleepers were not seen */
	:: d_step { work == 0 && !is_for_self -> work = 0 };
#ifdef NO_W1_FENCE
		store(PUSH_STACK);
#else
		write_and_fence(PUSH_STACK);
#endif
#ifndef NO_W1_WAKE
		wake_one(HOME(s) & ~BIT(me), ALL & ~BIT(me))
#endif
#endif
	fi
}

inline handle_queued(s)
{
	sent = 0;
	do
	:: sent < SENDS -> sent++; push_on_stack(s)
	:: else -> sent = 0; break
	od;
	if
	:: is_for_self -> is_for_self = false /* it has no event left, and returns */
	:: else ->
		if
		:: skip
		:: goto end_long
		fi
	fi
}

/* serve_batch() of a queue: the own one, or W4 */
inline serve_queue(s)
{
	d_step { queued[s] > 0 && MAY_MODIFY(me, PUSH + (s)) -> queued[s]-- };
	handle_queued(s)
}

/* serve_batch() of the own stack (W2), and serve_stolen() (W3). Both have a fence. */
inline serve_stack(w)
{
	atomic {
		IS_DRAINED(me) && stacked[w] > 0 -> stacked[w]--;
		if
		:: skip
		:: goto end_long
		fi
	}
}

/* worker_sees_work() */
inline check(s)
{
	if
#ifdef NO_S6_FOREIGN
	:: !found && s == me % 2 && SEES_EVENT(me, s) -> found = true
#else
	:: !found && SEES_EVENT(me, s) -> found = true
#endif
	:: else
	fi
}

inline check_stack(w)
{
	if
#ifdef NO_S6_STACKS
	:: !found && w == me && SEES_STACK(me, w) -> found = true
#else
	:: !found && SEES_STACK(me, w) -> found = true
#endif
	:: else
	fi
}

inline check_all()
{
	check(me % 2);
	check_stack(me);
	check(1 - me % 2);
	check_stack(0);
	check_stack(1)
#if WORKERS > 2
	;
	check_stack(2)
#endif
}

/* pass_baton() */
inline pass_baton(s)
{
	if
	:: SEES_EVENT(me, s) -> wake_one(HOME(s) & ~BIT(me), ALL & ~BIT(me))
	:: else
	fi
}

#if WORKERS > 2
#define SEES_STACKS (SEES_STACK(me, 0) || SEES_STACK(me, 1) || SEES_STACK(me, 2))
#else
#define SEES_STACKS (SEES_STACK(me, 0) || SEES_STACK(me, 1))
#endif

active [WORKERS] proctype worker()
{
	byte candidates, woken, work, sent;
	bool found, is_done, is_for_self;

visits:
	if
	:: serve_queue(FIRST); goto visits
	:: serve_queue(LAST); goto visits
	:: serve_stack(0); goto visits
	:: serve_stack(1); goto visits
#if WORKERS > 2
	:: serve_stack(2); goto visits
#endif
	:: goto idle
	fi;

idle:
	modify(SET_SEARCHER); /* S1 */
	check_all();          /* S2 */
	if
	:: found ->
		found = false;
#ifdef NO_S3
		modify(CLEAR_SEARCHER);
#else
		write_and_fence(CLEAR_SEARCHER); /* S3 */
#endif
#ifndef NO_BATON
		count_work();
		if
		:: d_step { work > 1 -> work = 0 };
			pass_baton(me % 2);
			pass_baton(1 - me % 2);
#ifndef NO_BATON_STACKS
			if
			:: SEES_STACKS -> wake_one(ALL & ~BIT(me), ALL & ~BIT(me))
			:: else
			fi
#endif
		:: d_step { work <= 1 -> work = 0 }
		fi;
#endif
		goto visits
	:: else
	fi;
#ifdef S5_BEFORE_S4
	FENCE;
#endif
	modify(SET_SLEEPER); /* S4 */
	modify(CLEAR_SEARCHER);
#if !defined(NO_S5) && !defined(S5_BEFORE_S4)
	FENCE;               /* S5 */
#endif
#ifndef NO_S6
	check_all();         /* S6 */
	if
	:: found -> retract(); found = false; goto idle
	:: else
	fi;
#endif
	asleep = asleep | BIT(me); /* S7 */
end_sleep:
	d_step { wake_fd & BIT(me) -> asleep = asleep & ~BIT(me) };
	retract();
	found = false;
	wake_fd = wake_fd & ~BIT(me);
	goto idle;

end_long:
	false
}

active [PRODUCERS] proctype producer()
{
	byte candidates, woken, left = EVENTS;
	bool is_done;

	do
	:: left ->
		left--;
		if
		:: push(FIRST)
		:: push(LAST)
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
	od
}

#define STACKED (stacked[0] || stacked[1] || stacked[2]) /* stacked[2] is a producer's, and stays 0 */

active proctype observer()
{
	timeout -> /* nothing else can move */
	assert(!(asleep && (queued[FIRST] || queued[LAST] || STACKED)))
}
