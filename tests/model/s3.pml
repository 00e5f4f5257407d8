/*
 * s3.pml - a model for spin of images in an object store that several nodes share: uploads, repeated
 * uploads with an Idempotency-Key, removals, reads, and the passes that clean up (stages/storage,
 * stages/s3, stages/image/upload_key.c).
 *
 * tests/model/check runs it. Change the model and the program together.
 *
 * Claims, each of which holds at every moment:
 *   SERVED   what was acknowledged, and whose removal nobody has begun, is an image in the store,
 *            or will be one: it waits on a disk (-DSPOOL)
 *   REMOVED  what a removal was answered for is no image again, and no answer has it
 *   ONE      while a key is remembered, its uploads make one image
 *   TRUE     a repeated upload is told that its image was removed only if somebody removed it
 *
 * The object of an id is nothing, an image, or a mark. A mark says that the image was removed, or
 * that it has failed and must never appear. A record is the object of a key. It is open and names
 * the id of the upload's image, or it is empty. The steps:
 *
 *   U1  put the image, if its id has no object
 *   U2  read the object, if the answer to U1 was lost, or said that there is one
 *   U3  refuse U1 for an id that is too old, by the clock that signs the request
 *   D1  read the object that is to be removed
 *   D2  put a mark, if the object is still that one
 *   D3  put a mark for an image that may still come, if the id has no object: because it waits on a disk,
 *       or because a pass has its note, and its end is over
 *   D4  answer that the image is removed; take its original from the disk before
 *   K1  read the record of the key
 *   K2  put an open record with a new id, if the record is still that of K1
 *   K4  put the open record again, with the same id: this node makes its image, too
 *   K5  put a mark for an image that has failed, if the id has no object; then nobody can make it
 *   K6  put an empty record, if the record is still that of K2 or K4; the id has a mark
 *   K7  remove a record that is too old, if it is still that one
 *   M1  read the object: only an image without one is copied (-DFORMER)
 *   M2  read the former objects; if there are none, read the object again
 *   M3  put the copy as U1, unless M1 was so long ago that a mark of the meantime may be gone
 *   M4  remove the former objects, if the id has an object; T1 comes after this
 *   R2  read a part of the object, if it is still that of the head that was kept
 *   T1  remove a mark that is too old
 *
 * The store applies one request after the other. A request may be applied and its answer lost. It may
 * be applied at any later time, or never. It may be applied again later, although it was answered. A
 * node may stop before each step for as long as it takes, or end there, and then only the store and
 * its disk remember. No step waits for another node, and no step compares the clocks of two nodes.
 *
 * Time is in the steps of `calendar`. An id is too old: U1, D3 and K5 are no longer sent (U3), and what
 * was sent before is refused, because the store compares the date in its signature. Its record is too
 * old, too. Only marks of ids that are too old are removed (T1). A key is too old: it is no longer
 * remembered.
 *
 * Wider than the program: a node takes a record over at once, while another node is at it (K3).
 *
 * -DUPLOADS=n: of each node, with the key. -DREMOVALS=n, of which each is a client's or a pass's.
 * -DFORMER: without keys; image 1 is in the objects of a former version, and two nodes copy it: for a GET,
 * or to remove them (darkroomd store migrate). Claims are the same: what has no object is served from them.
 *
 * -DENDS: with a pass that has the note of image 1, which was put before U1, and drops it afterwards.
 * -DREADER: with a GET. -DSPOOL: without keys; the node acknowledges an image when its disk has it, and
 * the disk is there after an end of the node. -DTIME: with `calendar`. -DREPEATS=n: requests
 * that come late or again. -DBEGINS_OVER: with a record that is too old.
 *
 * Mutants, each of which must be rejected; they are named where they change a step.
 */
#ifndef UPLOADS
#define UPLOADS 1
#endif
#ifndef REPEATS
#define REPEATS 2
#endif
#ifndef IDS
#define IDS 2
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 2 /* of all removals together (-DFORMER) */
#endif
#define NODES 2
#define BIT(n) (1 << (n))

/* Objects, by id from 1 on. Nobody puts two images under one id, so a state is an entity tag. */
#define NOTHING 0
#define IMAGE 1
#define REMOVED 2
#define FAILED 3
byte object[IDS + 1];

/* Records are numbered as they are put: each has a text of its own, and so its own entity tag. */
#define RECORDS 6
#ifdef BEGINS_OVER
#define IS_BEGUN 1 /* with a record that is too old */
#else
#define IS_BEGUN 0
#endif
byte record = IS_BEGUN, last_record = IS_BEGUN; /* 0: there is none */
byte id_of[RECORDS + 1];                        /* 0: an empty record */
bool is_over = IS_BEGUN;                        /* the record is too old */

/* Requests that the store may still apply: bits of ids; of records, those that they replace. */
byte creates, removes, fences, purges, forgets;
bool ends; /* a fence of the pass: D3 */
byte writes[RECORDS + 1];

/* results */
#define OK 1
#define REFUSED 2 /* 412 */
#define LOST 3    /* no answer */

byte too_old;                     /* bits of ids */
byte disk;                        /* of node 0: ids in its spool */

/* for the claims */
#ifdef FORMER
byte acknowledged = BIT(1);
bool former = true;
byte count_removals; /* attempts so far */
bool is_old; /* the mark that the id has */
byte fresh;  /* bits of copiers whose M1 is younger than is_old allows */
bool clears; /* M4 was sent */
#else
#define former false
byte acknowledged;
#endif
byte asked, removed;               /* ids; asked: a removal has begun; removed: it was answered */
byte epoch = IS_BEGUN, epoch_of[IDS + 1]; /* how often the key was forgotten; when an id got its record */
byte made[4];                      /* the image of each epoch */
byte last_id = IS_BEGUN;

#define IS_SERVED(i) (object[i] == IMAGE || (disk & BIT(i)) || (former && object[i] == NOTHING))
#define CHECK_SERVED(i) assert(!(acknowledged & BIT(i)) || (asked & BIT(i)) || IS_SERVED(i))

/* ---- the store ---- */

inline apply_create(i, r)
{
	if
#ifdef U1_ALWAYS /* REMOVED: U1 without its condition */
	:: true ->
#else
	:: object[i] == NOTHING ->
#endif
		object[i] = IMAGE;
		assert(!(removed & BIT(i)));
		assert(!made[epoch_of[i]] || made[epoch_of[i]] == i);
		made[epoch_of[i]] = i;
		r = OK
#ifndef U1_ALWAYS
	:: else -> r = REFUSED
#endif
	fi
}

inline apply_remove(i, r)
{
	if
	:: object[i] == IMAGE ->
#ifdef NO_MARK /* REMOVED: a removal leaves nothing */
		object[i] = NOTHING;
#else
		object[i] = REMOVED;
#ifdef FORMER
		is_old = false;
#endif
#endif
		r = OK
	:: else -> r = REFUSED
	fi
}

inline apply_fence(i, mark, r)
{
	if
#ifdef K5_ALWAYS /* SERVED: K5 without its condition, as a withdrawal */
	:: true ->
#else
	:: object[i] == NOTHING ->
#endif
		object[i] = mark;
#ifdef FORMER
		is_old = false;
#endif
		CHECK_SERVED(i);
		r = OK
#ifndef K5_ALWAYS
	:: else -> r = REFUSED
#endif
	fi
}

inline apply_write(from, to, r)
{
	if
#ifdef K2_ALWAYS /* ONE: records are put without a condition */
	:: true ->
#else
	:: record == from ->
#endif
		record = to;
		is_over = false;
		epoch_of[id_of[to]] = (made[epoch_of[id_of[to]]] == id_of[to] -> epoch_of[id_of[to]] : epoch);
		r = OK
#ifndef K2_ALWAYS
	:: else -> r = REFUSED
#endif
	fi
}

/* ---- requests of a node ---- */

/* A request is applied and answered, or applied, or neither now. */
inline send_create(i)
{
	atomic {
		if
#ifdef NO_U3 /* REMOVED: after a pause of any length */
		:: true ->
#else
		:: !(too_old & BIT(i)) ->
#endif
			creates = creates | BIT(i);
			if
			:: true -> apply_create(i, result)
			:: true -> apply_create(i, result); result = LOST
			:: result = LOST
			fi
#ifndef NO_U3
		:: else -> result = LOST
#endif
		fi
	}
}

inline send_remove(i)
{
	atomic {
		removes = removes | BIT(i);
		if
		:: true -> apply_remove(i, result)
		:: true -> apply_remove(i, result); result = LOST
		:: result = LOST
		fi
	}
}

inline send_fence(i, mark)
{
	atomic {
		if
		:: !(too_old & BIT(i)) -> /* U3 */
			fences = fences | BIT(i);
			if
			:: true -> apply_fence(i, mark, result)
			:: true -> apply_fence(i, mark, result); result = LOST
			:: result = LOST
			fi
		:: else -> result = LOST
		fi
	}
}

inline send_write(from, to)
{
	atomic {
		writes[to] = writes[to] | BIT(from);
		if
		:: true -> apply_write(from, to, result)
		:: true -> apply_write(from, to, result); result = LOST
		:: result = LOST
		fi
	}
}

inline new_record(i)
{
	last_record++;
	mine = last_record;
	id_of[mine] = i
}

inline acknowledge(i)
{
	acknowledged = acknowledged | BIT(i);
	CHECK_SERVED(i)
}

/* ---- former images ---- */

#ifdef FORMER
inline apply_clear()
{
	former = false;
	CHECK_SERVED(1)
}

inline send_clear() /* M4 */
{
	atomic {
		clears = true;
		if
		:: true -> apply_clear(); result = OK
		:: true -> apply_clear(); result = LOST
		:: result = LOST
		fi
	}
}

active [NODES] proctype copier()
{
	byte state, result;
	bool has;

end_idle:
	fresh = fresh | BIT(_pid);
#ifdef M2_FIRST /* REMOVED: meanwhile a pass removes both the former objects and the mark */
	has = former;
	state = object[1];
#else
	state = object[1]; /* M1 */
	has = former;      /* M2 */
	if
#ifndef NO_M2 /* SERVED: meanwhile the other node copies the image, and removes the former objects */
	:: state == NOTHING && !has -> state = object[1]
#endif
	:: else
	fi;
#endif
	if
	:: state != NOTHING -> goto clear
	:: state == NOTHING && !has -> atomic { assert(asked & BIT(1)); goto done } /* 404 */
	:: else
	fi;
#ifdef M4_EARLY /* SERVED, REMOVED: the former objects go before the copy is there */
	send_clear();
#endif
	atomic { /* M3 */
		if
#ifdef NO_M3 /* REMOVED: after a pause of any length */
		:: true ->
#else
		:: fresh & BIT(_pid) ->
#endif
			send_create(1)
		:: !(fresh & BIT(_pid)) -> goto done
		fi
	};
	if
	:: result == LOST -> goto done
	:: else
	fi;

clear:
	if
	:: true /* it was for a GET */
	:: send_clear()
	fi;

done: /* the search has fewer states if nothing is left over */
	atomic { state = 0; result = 0; has = false; fresh = fresh & ~BIT(_pid); goto end_idle }
}

active [REMOVALS] proctype removal()
{
	byte state, result;
	bool has;

end_idle:
	atomic { count_removals < ATTEMPTS -> count_removals++ };
	atomic { state = object[1]; asked = asked | BIT(1) }; /* D1 */
	if
	:: state == IMAGE -> send_remove(1) /* D2 */
	:: else ->
		has = former;
		if
		:: !has && object[1] == IMAGE -> goto done /* copied meanwhile */
		:: !has && object[1] != IMAGE -> goto answer /* 404 */
		:: has && state == NOTHING ->
#ifdef NO_D3 /* REMOVED: only the former objects are removed, and a copy comes late */
			result = OK
#else
			send_fence(1, REMOVED) /* D3 */
#endif
		:: has && state >= REMOVED -> send_clear(); goto answer /* 404 */
		fi
	fi;
	if
	:: result != OK -> goto done /* again, or 503 */
	:: else
	fi;
	send_clear();
	if
	:: result != OK -> goto done /* 503 */
	:: else
	fi;

answer: /* D4 */
	atomic { removed = removed | BIT(1); assert(!IS_SERVED(1)) };

done:
	atomic { state = 0; result = 0; has = false; goto end_idle }
}

active proctype months()
{
	byte result;

end_idle:
	do
	:: atomic { /* the store refuses what was signed before */
		object[1] >= REMOVED && !is_old -> is_old = true; creates = 0; fences = 0; fresh = 0
	}
	:: atomic { object[1] >= REMOVED && is_old -> skip }; send_clear() /* M4 */
	:: atomic { /* T1 */
#ifdef T1_BEFORE_M4 /* REMOVED: the former objects are the image again */
		object[1] >= REMOVED && is_old ->
#else
		object[1] >= REMOVED && is_old && !former ->
#endif
		purges = BIT(1);
		if
		:: object[1] = NOTHING; assert(!(removed & BIT(1)) || !former)
		:: true
		fi
	}
	od
}

/* ---- uploads ---- */

#elif !defined SPOOL
active [NODES] proctype node()
{
	byte id, was, mine, result, count;

next:
	atomic { id = 0; was = 0; mine = 0; result = 0 };
end_idle:
	atomic { count < UPLOADS -> count++ };
	atomic { /* K1 */
		was = record;
		if
		:: last_record > RECORDS - 2 -> goto next /* the bound of the model */
		:: else
		fi;
		if
		:: is_over || id_of[was] == 0 ->
			if
			:: last_id == IDS -> goto next
			:: else -> last_id++; id = last_id; new_record(id)
			fi;
			goto write
		:: else -> id = id_of[was]
		fi
	};
	atomic { /* what has become of its image */
		if
		:: last_record > RECORDS - 2 -> goto next
		:: else -> result = object[id]
		fi;
		if
		:: result == IMAGE -> acknowledge(id); goto next
		:: result == REMOVED -> assert(asked & BIT(id)); goto next
#ifdef FAILED_IS_REMOVED /* TRUE: one kind of mark */
		:: result == FAILED -> assert(asked & BIT(id)); goto next
#else
		:: result == FAILED -> /* nothing was made, and nothing can be */
			if
			:: last_id == IDS -> goto next
			:: else -> last_id++; id = last_id; new_record(id); goto write
			fi
#endif
		:: else
		fi;
#ifdef K4_NEW_ID /* ONE: the record is taken over with an id of one's own */
		if
		:: last_id == IDS -> goto next
		:: else -> last_id++; id = last_id
		fi;
#endif
		new_record(id)
	};

write: /* K2 or K4 */
	send_write(was, mine);
	if
	:: result == OK
	:: result == REFUSED -> goto next /* 409 */
	:: result == LOST ->
		if
		:: atomic { record == mine -> skip } /* K1 again */
		:: atomic { record != mine -> goto next }
		fi
	fi;

make:
	if
	:: true
	:: goto failed /* a damaged picture, no memory */
	:: goto next   /* the node ends, or answers 503 */
	fi;
	send_create(id); /* U1 */
	if
	:: result == OK -> atomic { acknowledge(id); goto next }
	:: else
	fi;
	atomic { /* U2 */
		if
		:: object[id] == IMAGE -> acknowledge(id); goto next
		:: object[id] == NOTHING -> goto make
		:: else -> goto next
		fi
	};

failed:
#ifdef NO_K5 /* ONE: a failed upload is forgotten, although another request may make its image */
	goto forget;
#endif
	send_fence(id, FAILED); /* K5 */
	if
	:: result == OK
	:: else ->
		atomic {
			if
			:: object[id] == IMAGE -> acknowledge(id); goto next
			:: object[id] == FAILED
			:: else -> goto next
			fi
		}
	fi;

forget: /* K6 */
	atomic {
		if
		:: last_record == RECORDS -> goto next
		:: else -> was = mine; new_record(0)
		fi
	};
	send_write(was, mine);
	goto next
}
#else
/* Node 0 with a spool, and after its end the next process, which recovers. */
bool is_noted;

active proctype node()
{
	byte result;

	atomic {
		last_id = 1;
		disk = disk | BIT(1);
		acknowledge(1)
	};
end_start: /* also of the next process: the node may end at any step */
	(disk & BIT(1));
	atomic {
		if
#ifndef NO_U3
		:: too_old & BIT(1) -> goto end_set_aside
#endif
		:: else
		fi
	};
	send_create(1); /* U1 */
	if
	:: true -> goto end_start
	:: true
	fi;
	atomic { /* U2 */
		if
#ifdef SPOOL_EARLY /* SERVED: the original goes before the image is there */
		:: true
#else
		:: object[1] == NOTHING -> goto end_start
		:: else
#endif
		fi
	};
	atomic {
		disk = disk & ~BIT(1);
		CHECK_SERVED(1)
	};
end_set_aside: /* in .quarantine, with a log line */
	false
}
#endif

/* ---- removals and reads ---- */

/* A client's, or that of a pass. */
#if REMOVALS > 0 && !defined FORMER
active [REMOVALS] proctype removal()
{
	byte id, result;

end_idle:
	atomic { /* D1 */
		if
		:: object[1] == IMAGE -> id = 1
#if IDS > 1
		:: object[2] == IMAGE -> id = 2
#endif
#ifdef SPOOL
		:: disk & BIT(1) -> asked = asked | BIT(1); id = 1; goto waits
#endif
		fi;
		asked = asked | BIT(id)
	};
again:
	send_remove(id); /* D2 */
	atomic {
		if /* D4 */
		:: result == OK || object[id] != IMAGE -> removed = removed | BIT(id); goto end_done
		:: else ->
			if
			:: goto again
			:: goto end_done /* 503 */
			fi
		fi
	};
#ifdef SPOOL
waits: /* at the node whose disk has it */
#ifndef NO_SPOOL_MARK /* REMOVED: only the disk is cleared */
	send_fence(1, REMOVED); /* D3 */
	if
	:: result == OK
	:: else ->
		atomic {
			if
			:: object[1] == IMAGE -> goto again
			:: object[1] == NOTHING -> goto end_done /* 503 */
			:: else
			fi
		}
	fi;
#endif
	atomic { disk = disk & ~BIT(1); removed = removed | BIT(1) };
#endif
end_done:
	false
}
#endif

#ifdef ENDS
active proctype ending()
{
	byte result;

	atomic { last_id > 0 -> asked = asked | BIT(1) };
again:
	if
	:: atomic { object[1] == IMAGE -> result = 0 }; send_remove(1) /* D2 */
	:: atomic { object[1] >= REMOVED -> goto drop }
	:: atomic { object[1] == NOTHING && (too_old & BIT(1)) -> goto drop }
#ifdef NO_D3 /* REMOVED: a note is dropped whose image has not come */
	:: atomic { object[1] == NOTHING -> goto drop }
#else
	:: atomic { object[1] == NOTHING -> result = 0 };
		atomic {
			ends = true;
			if
			:: apply_fence(1, REMOVED, result)
			:: result = LOST
			fi
		} /* D3 */
#endif
	fi;
	if
	:: result != OK -> goto again
	:: else
	fi;
drop:
	atomic { removed = removed | BIT(1); assert(object[1] != IMAGE) };
end_done:
	false
}
#endif

#ifdef READER
active proctype reader()
{
	bool was_removed;

end_idle:
	object[1] == IMAGE; /* an earlier request, whose head was kept */
	was_removed = (removed & BIT(1)) != 0;
	atomic { /* R2 */
#ifdef NO_R2 /* REMOVED: what was kept is served */
		assert(!was_removed)
#else
		assert(!(was_removed && object[1] == IMAGE))
#endif
	}
}
#endif

/* ---- late and repeated requests, and time ---- */

active proctype network()
{
	byte i, result, count;

end_idle:
	atomic { count < REPEATS -> count++ };
	atomic {
		select (i : 1 .. IDS);
		if
		:: creates & BIT(i) -> apply_create(i, result)
		:: removes & BIT(i) -> apply_remove(i, result)
#if defined SPOOL || defined FORMER
		:: fences & BIT(i) -> apply_fence(i, REMOVED, result)
#else
		:: fences & BIT(i) -> apply_fence(i, FAILED, result)
#endif
		:: ends -> apply_fence(1, REMOVED, result)
		:: purges & BIT(i) -> object[i] = NOTHING; CHECK_SERVED(i)
#ifdef FORMER
		:: clears -> apply_clear()
#endif
		:: true ->
			select (i : 1 .. RECORDS);
			if
			:: writes[i] & BIT(record) -> apply_write(record, i, result)
#ifdef K7_ALWAYS /* ONE: a record is removed without a condition */
			:: forgets -> record = 0
#else
			:: forgets & BIT(record) -> record = 0
#endif
			:: else
			fi
		:: else
		fi;
		i = 0;
		result = 0
	};
	goto end_idle
}

#ifdef TIME
inline forget_key()
{
	is_over = true;
	epoch++;
#ifndef NO_DATE
	writes[1] = 0; writes[2] = 0; writes[3] = 0;
	writes[4] = 0; writes[5] = 0; writes[6] = 0
#endif
}

active proctype calendar()
{
	byte i;

end_idle:
	do
	:: atomic {
		select (i : 1 .. IDS);
		if
		:: i <= last_id && !(too_old & BIT(i)) ->
			too_old = too_old | BIT(i);
			fences = fences & ~BIT(i);
			if
			:: i == 1 -> ends = false
			:: else
			fi;
			if
			:: id_of[record] == i && !is_over -> forget_key()
			:: else
			fi;
#ifndef NO_DATE /* REMOVED: the store takes requests of any age */
			creates = creates & ~BIT(i)
#endif
		:: else
		fi;
		i = 0
	}
	:: atomic { /* T1 */
		select (i : 1 .. IDS);
		if
#ifdef T1_EARLY /* REMOVED: a mark goes while U1 may still come */
		:: object[i] >= REMOVED ->
#else
		:: object[i] >= REMOVED && (too_old & BIT(i)) ->
#endif
			purges = purges | BIT(i);
			if
			:: object[i] = NOTHING
			:: true
			fi
		:: else
		fi;
		i = 0
	}
	:: atomic { /* the key is no longer remembered */
		record && !is_over && epoch < 1 -> forget_key()
	}
	:: atomic { /* K7 */
		is_over ->
		forgets = forgets | BIT(record);
		if
		:: record = 0; is_over = false
		:: true
		fi
	}
	od
}
#endif
