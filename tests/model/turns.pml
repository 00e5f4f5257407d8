/*
 * turns.pml - a model for spin of policy color (src/sched/core/mechanism_color.c): a turn is only a
 * hint, and may come too early, too late or never.
 *
 * It includes the visits (serve_one(), serve_exclusive() and push_to_queue() in src/sched/core/serve.c
 * and push.c) and sleeping (src/sched/core/idle.c). tests/model/check runs it. Change the model and the
 * program together.
 *
 * Claim: once nothing moves any more, no worker is idle beside an event that it may handle. It is
 * neither asleep, nor alternating between idle() and a visit that finds nothing. A handler may take
 * forever.
 *
 * The queues are those of src/base/queue.c: a push claims a cell, then fills it. While the oldest
 * cell is claimed but not filled, nothing can be popped, not even events that younger pushes have
 * filled in. Their wake-ups and turns have no effect.
 *
 * Wider than the program, so that nothing depends on it:
 *   - A turn may be lost at any time, not only when it does not fit. It may not be seen at any
 *     time, not only when it stands behind one whose cell is claimed but not filled. Turns are
 *     taken in any order.
 *   - A worker that has served an event may give its stage another turn or not, at any
 *     count of turns. So the claim does not need this turn. It is there for the order:
 *     an event whose own turn is lost would have to wait until no stage has any.
 * The mutants fail without these liberties as well. In push_to_queue() the turn comes after the
 * event, which the claim does not need either.
 *
 * Memory is sequentially consistent here, and there are no searchers. idle.pml has store buffers
 * and searchers, but no cells, and shows that the fences and the searchers' bits work.
 *
 * -DEXCLUSIVE: FIRST is exclusive, otherwise shared. LAST is shared.
 *
 * Mutants, each of which must be rejected: NO_FIND_WORK (a worker without a turn goes idle without
 * checking the stages), NO_BATON, NO_RELEASE_CHECK.
 */
#define WORKERS 2
#define PRODUCERS 3 /* two push to FIRST, where one event may stand behind the other; one to LAST */
#define me _pid     /* workers first, then producers */
#define BIT(w) (1 << (w))
#define FIRST 0     /* stages, in the order of the visit set */
#define LAST 1

/* struct stage_queue; two cells each */
byte tail[2], head[2];
bool is_filled[4];

byte turns[2];          /* struct group: turns in the queue, by stage */
bool is_taken;           /* struct stage: a worker is in FIRST */
byte sleepers;           /* struct group */
byte idle;               /* not in the program: workers between a visit that
                          * found nothing and the next */

#define CELL(s, at) is_filled[2 * (s) + (at)]
#define CAN_POP(s) (head[s] < 2 && CELL(s, head[s])) /* !stage_queue_is_empty() */
#define OFFERS_WORK(s) (CAN_POP(s) && !((s) == FIRST && is_taken)) /* stage_offers_work() */

/* idle_wake(), wake_one(): wakes any sleeper; the caller is not one. A bit that is cleared
 * before its owner sleeps ends that sleep at once. */
inline wake()
{
	d_step { sleepers = sleepers & (sleepers - (sleepers > 0)) }
}

/* give_turn() */
inline give(s)
{
	if
	:: turns[s]++
	:: skip /* lost */
	fi
}

/* serve_turn(): take_turn(), or else the last stage that has work */
inline find_stage()
{
	if
	:: atomic { turns[FIRST] -> turns[FIRST]--; s = FIRST }
	:: atomic { turns[LAST] -> turns[LAST]--; s = LAST }
	:: skip;
#ifndef NO_FIND_WORK
		if
		:: OFFERS_WORK(LAST) -> s = LAST
		:: else ->
			if
			:: OFFERS_WORK(FIRST) -> s = FIRST
			:: else -> goto go_idle
			fi
		fi
#else
		goto go_idle
#endif
	fi
}

/* Whether find_stage() would find a stage. */
#ifndef NO_FIND_WORK
#define HAS_STAGE (turns[FIRST] || turns[LAST] || OFFERS_WORK(FIRST) || OFFERS_WORK(LAST))
#else
#define HAS_STAGE (turns[FIRST] || turns[LAST])
#endif

/* serve_batch(), of one event: sets found. Its handler returns, or takes forever. */
inline serve_one()
{
	atomic {
		if
		:: CAN_POP(s) ->
			head[s]++;
			if
			:: found = true
			:: goto end_long
			fi
		:: else
		fi
	}
}

/* serve_exclusive(), of one event: no worker waits. */
inline serve_exclusive()
{
	if
	:: d_step { !is_taken -> is_taken = true };
		serve_one();
		is_taken = false;
#ifndef NO_RELEASE_CHECK
		if
		:: CAN_POP(s) -> wake()
		:: else
		fi
#endif
	:: is_taken
	fi
}

active [WORKERS] proctype worker()
{
	byte s;
	bool found;

	/* worker_run(), serve_turn() */
visits:
	find_stage();
#ifdef EXCLUSIVE
	if
	:: s == FIRST -> serve_exclusive()
	:: else -> serve_one()
	fi;
#else
	serve_one();
#endif
	if
	:: found -> found = false;
		give(s);
		goto visits
	:: else ->
		if
		:: goto visits /* misses < round */
		:: goto go_idle
		fi
	fi;

	/* idle() */
go_idle:
	atomic { s = 0; idle = idle | BIT(me) };
announce:
	sleepers = sleepers | BIT(me); /* idle_announce() */
	if                             /* worker_sees_work() */
	:: OFFERS_WORK(FIRST) -> goto sees_work
	:: else
	fi;
	if
	:: OFFERS_WORK(LAST) -> goto sees_work
	:: else
	fi;
end_sleep:                             /* block() */
	!(sleepers & BIT(me)) -> goto announce;

sees_work:
	sleepers = sleepers & ~BIT(me); /* idle_retract() */
#ifndef NO_BATON
	if                              /* idle_found() */
	:: CAN_POP(FIRST) -> wake()
	:: else
	fi;
	if
	:: CAN_POP(LAST) -> wake()
	:: else
	fi;
#endif
	/* Back to the visits. If work is offered, and serve_turn() does not see it, the program comes
	 * here repeatedly, and the model waits. */
end_busy:
	if
	:: atomic { HAS_STAGE -> idle = idle & ~BIT(me); goto visits }
	:: !OFFERS_WORK(FIRST) && !OFFERS_WORK(LAST) -> goto announce
	fi;

end_long:
	false
}

active [PRODUCERS] proctype producer() /* push_to_queue() */
{
	byte s = (me < WORKERS + 2 -> FIRST : LAST), at;

	d_step { at = tail[s]; tail[s]++ }; /* queue_try_push() */
	CELL(s, at) = true;
	give(s);
	wake()
}

active proctype observer()
{
	timeout -> /* nothing else can move */
	assert(!(idle && (OFFERS_WORK(FIRST) || OFFERS_WORK(LAST))))
}
