/*
 * conn_states.c - the table of a connection's states. It is above the steps, and nobody includes
 * it.
 *
 *   READ_PROXY -> READ_HEAD <------------------------------------------------- NEXT
 *                     |                                                          ^
 *       http_parse decides; any step may go to REFUSE, and from there to WRITE   |
 *                     |                                                          |
 *                     +--> HANDLE --> ANSWERED ...... what the URL asks for --+  |
 *                     |                                                       |  |
 *                     +--> ADMIT --> ANSWERED (in line)                       |  |
 *                            |                                                v  |
 *                            +--> RESERVE_BODY <-> READ_BODY --+             WRITE --> DISCARD
 *                            |       CONTINUE before each      |              ^  |
 *                            +--> READ_CHUNKS -----------------+              |  +--> LINGER_SHED
 *                                                              v              |  |        |
 *                          form_decode <-- BODY_DONE <-> FORM_TURN            |  +--> LINGER
 *                              |                                              |  |        |
 *                              +--> KEY --> BODY_DONE --> KEY                 |  |        |
 *                              |                                     |        |  v        v
 *                              +--> UPLOADED <-----------------------+--------+  CLOSE <--+
 *
 * ANSWERED stands for each wait for an answer: of admission, the budget, an image or the disk. The
 * asker says which step the answer continues (conn_ask(), conn_wait()).
 */
#include "conn/conn_steps.h"
#include "conn/respond.h"
#include "resource/handlers.h"

const struct conn_state_row conn_states[CONN_STATE_COUNT] = {
	[CONN_READ_PROXY] = { "read-proxy", conn_read_proxy, conn_late_close },
	[CONN_READ_HEAD] = { "read-head", conn_read_head, conn_late_head },
	[CONN_ADMIT] = { "admit", admit_upload, NULL },
	[CONN_RESERVE_BODY] = { "reserve-body", conn_reserve_body, NULL },
	[CONN_CONTINUE] = { "continue", conn_send_continue, conn_late_close },
	[CONN_READ_BODY] = { "read-body", conn_read_body, conn_late_body },
	[CONN_READ_CHUNKS] = { "read-chunks", conn_read_chunks, conn_late_body },
	[CONN_BODY_DONE] = { "body-done", conn_send_body, NULL },
	[CONN_FORM_TURN] = { "form-turn", conn_end_turn, NULL },
	[CONN_KEY] = { "key", handle_key, NULL },
	[CONN_UPLOADED] = { "uploaded", handle_uploaded, NULL },
	[CONN_HANDLE] = { "handle", handle_request, NULL },
	[CONN_ANSWERED] = { "answered", NULL, NULL }, /* conn_run() takes the step of the wait */
	[CONN_REFUSE] = { "refuse", respond_refuse, NULL },
	[CONN_WRITE] = { "write", respond_write, conn_late_write },
	[CONN_NEXT] = { "next", conn_next, NULL },
	[CONN_DISCARD] = { "discard", conn_discard, conn_late_body },
	[CONN_LINGER_SHED] = { "linger-shed", conn_linger_shed, conn_late_shed },
	[CONN_LINGER] = { "linger", conn_linger, conn_late_close },
	[CONN_CLOSE] = { "close", conn_end, NULL },
};
