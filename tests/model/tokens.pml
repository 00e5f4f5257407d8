/*
 * tokens.pml - policy color (src/sched/mechanism_color.c) as a model for spin: a token is a turn and no more, and may come too early,
 * too late or never. With it, the visits (visit_once(), serve_exclusive() and push_queue() in src/sched/visit.c) and sleeping
 * (src/sched/idle.c). tests/model/check runs it; who changes one changes the other.
 *
 * Claim: once nothing moves any more, no worker is idle beside an event that it may handle: neither asleep, nor busy going
 * from idle() to a visit that finds nothing and back. A handler may go on for ever.
 *
 * The queues are those of src/base/queue.c: a push claims a cell, then fills it. While the oldest cell is claimed but not
 * filled, nothing can be popped, not even what younger pushes have filled, and their wake-ups and tokens are spent in vain.
 *
 * Wider than the program, so that nothing depends on it:
 *   - A token may be lost at any time, not only when it does not fit; and not be seen at any time, not only when it stands
 *     behind one whose cell is claimed but not filled. Tokens are taken in any order.
 *   - Whoever has served an event may give its stage another token or not, whatever struct stage's count of them says. So the
 *     claim does not need this token. It is there for the order: an event whose own token is lost would have to wait until no
 *     stage has any.
 * The mutants are wrong without these liberties, too. In push_queue() the token comes after the event; the claim does not
 * need this either.
 *
 * Memory is sequentially consistent here, and there are no searchers: idle.pml has store buffers and searchers, though no
 * cells, and shows that the fences and the searchers' bits do what is taken for granted here.
 *
 * -DEXCLUSIVE: FIRST is exclusive, else shared. LAST is shared.
 *
 * Mutants, each of which must be rejected: NO_FIND_WORK (a worker without a token goes idle without a look at the stages),
 * NO_BATON, NO_LET_GO_LOOK.
 */
#define WORKERS 2
#define PRODUCERS 3 /* two push to FIRST, so that one event may stand behind the other, and one to LAST */
#define me _pid     /* workers first, then producers */
#define BIT(w) (1 << (w))
#define FIRST 0     /* stages, in the order of the visit set */
#define LAST 1

/* struct stage_queue; two cells each */
byte tail[2], head[2];
bool is_filled[4];

byte tokens[2];          /* struct group: those in the queue, of each stage */
bool is_taken;           /* struct stage: a worker is in FIRST */
byte sleepers;           /* struct group */
byte idle;               /* not in the program: workers between central_visit() in vain and the next visit */

#define CELL(s, at) is_filled[2 * (s) + (at)]
#define CAN_POP(s) (head[s] < 2 && CELL(s, head[s])) /* !stage_queue_is_empty() */
#define OFFERS_WORK(s) (CAN_POP(s) && !((s) == FIRST && is_taken)) /* stage_offers_work() */

/* idle_wake(), wake_one(): any sleeper but who calls, who is none. A bit cleared before its owner sleeps ends that sleep
 * at once. */
inline wake()
{
	d_step { sleepers = sleepers & (sleepers - (sleepers > 0)) }
}

/* central_give() */
inline give(s)
{
	if
	:: tokens[s]++
	:: skip /* lost */
	fi
}

/* central_take(), and find_work(), which looks at the last stage first */
inline find_stage()
{
	if
	:: atomic { tokens[FIRST] -> tokens[FIRST]--; s = FIRST }
	:: atomic { tokens[LAST] -> tokens[LAST]--; s = LAST }
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

/* What find_stage() would find. */
#ifndef NO_FIND_WORK
#define HAS_STAGE (tokens[FIRST] || tokens[LAST] || OFFERS_WORK(FIRST) || OFFERS_WORK(LAST))
#else
#define HAS_STAGE (tokens[FIRST] || tokens[LAST])
#endif

/* serve_batch(), of one event: sets found. Its handler returns, or goes on for ever. */
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

/* serve_exclusive(), of one event: nobody waits. */
inline serve_exclusive()
{
	if
	:: d_step { !is_taken -> is_taken = true };
		serve_one();
		is_taken = false;
#ifndef NO_LET_GO_LOOK
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

	/* worker_run(), central_visit() */
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
	if                             /* idle_sees_work() */
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
	/* Back to the visits. If work is offered, and central_visit() does not see it, the program comes here again and again:
	 * the model waits. */
end_busy:
	if
	:: atomic { HAS_STAGE -> idle = idle & ~BIT(me); goto visits }
	:: !OFFERS_WORK(FIRST) && !OFFERS_WORK(LAST) -> goto announce
	fi;

end_long:
	false
}

active [PRODUCERS] proctype producer() /* push_queue() */
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
