/*
 * tokens.pml - policy color (src/visit.c: stage_signal(), visit_token(), serve_exclusive()) as a model for spin: whoever
 * queues an event puts a token for its stage into one central queue, and workers wait for tokens only. tests/model/check
 * runs it; idle.pml has the sleeping itself, which is taken for granted here.
 *
 * Claim: once nothing moves any more, no worker waits for a token beside an event that it may handle. A handler may go on
 * for ever.
 *
 * The queue is the one of src/queue.c: a push claims a cell, then fills it. While the oldest cell is claimed but not
 * filled, nothing can be popped, not even what younger pushes have filled. Stores go through store buffers, first in, first
 * out: all of them are releases.
 *
 * -DEXCLUSIVE: the stage is exclusive, else shared.
 *
 * Mutants, each of which must be rejected: DROPS_TOKEN (when nothing can be popped), NO_LET_GO_LOOK.
 */
#define WORKERS 2
#define PRODUCERS 3
#define CPUS (WORKERS + PRODUCERS)
#define me _pid /* workers first, then producers */

byte tail, head;         /* struct queue */
bool is_filled[PRODUCERS];
byte waiting;            /* struct stage_queue: pushed or being pushed, and not popped */
byte tokens;             /* struct group */
bool is_taken;           /* struct stage */
byte idle;               /* not in the program: workers that wait for a token */

/* ---- memory --------------------------------------------------------------------------------------- */

#define DEPTH 2
byte pending[CPUS * DEPTH]; /* oldest first; 0: none */
#define TOKEN 1
#define FILL 2              /* + cell */

#define AT(p, k) pending[(p) * DEPTH + (k)]
#define FENCE (AT(me, 0) == 0) /* and what every read-modify-write waits for */

#define FLUSH(p) \
	:: d_step { \
		AT(p, 0) -> \
		if \
		:: AT(p, 0) == TOKEN -> tokens++ \
		:: else -> is_filled[AT(p, 0) - FILL] = true \
		fi; \
		AT(p, 0) = AT(p, 1); \
		AT(p, 1) = 0 \
	}

inline store(e)
{
	d_step {
		AT(me, 1) == 0 ->
		if
		:: AT(me, 0) -> AT(me, 1) = e
		:: else -> AT(me, 0) = e
		fi
	}
}

#define CAN_POP (head < PRODUCERS && is_filled[head]) /* !queue_is_empty() */

/* ---- visit.c -------------------------------------------------------------------------------------- */

/* serve_batch(), of one event: sets found. */
inline serve_one()
{
	atomic {
		if
		:: CAN_POP -> /* a read-modify-write, so it waits for the buffer */
			FENCE;
			if
			:: CAN_POP -> head++; found = true
			:: else
			fi
		:: else
		fi
	};
	if
	:: found ->
		atomic {
			FENCE -> waiting--;
			if
			:: skip
			:: goto end_long
			fi
		}
	:: else
	fi
}

active [WORKERS] proctype worker()
{
	bool found;

wait:
	idle++;
end_wait:
	/* queue_try_pop() of the tokens */
	d_step { tokens && FENCE -> tokens--; idle-- };

	/* visit_token() */
#ifdef EXCLUSIVE
	if
	:: d_step { FENCE && !is_taken -> is_taken = true }; /* serve_exclusive(), atomic_exchange */
		do
		:: serve_one();
			if
			:: found -> found = false
			:: else -> break
			fi
		:: break /* the regime may end the visit at any time */
		od;
		atomic { FENCE -> is_taken = false }; /* atomic_exchange */
#ifndef NO_LET_GO_LOOK
		if
		:: CAN_POP -> store(TOKEN)
		:: else
		fi
#endif
	:: FENCE && is_taken /* the token is dropped: whoever is within looks at the queue after letting go */
	fi;
#else
	serve_one();
	if
	:: found -> found = false
#ifndef DROPS_TOKEN
	:: !found && waiting -> store(TOKEN)
	:: !found && !waiting
#else
	:: else
#endif
	fi;
#endif
	goto wait;

end_long:
	false
}

active [PRODUCERS] proctype producer() /* push_queue() */
{
	byte at;

	d_step { FENCE -> waiting++ };        /* stage_queue_push() */
	d_step { FENCE -> at = tail; tail++ }; /* queue_try_push() */
	store(FILL + at);
	store(TOKEN)                          /* stage_signal() */
}

active proctype memory()
{
end:
	do
	FLUSH(0) FLUSH(1) FLUSH(2) FLUSH(3) FLUSH(4)
	od
}

active proctype observer()
{
	timeout -> /* nothing else can move */
	assert(!(idle && CAN_POP && !is_taken))
}
