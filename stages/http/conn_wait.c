/* conn_wait.c - ends the wait of a connection whose event is with a part that would resume it. */
#include "conn_wait.h"

#include "absent.h"
#include "base/check.h"
#include "conn.h"
#include "conn_admit.h"
#include "conn_body.h"
#include "files.h"
#include "image/image_service.h"

bool conn_cancel_wait(struct conn *c)
{
	struct image_service *images = conn_images(c);

	if (c->state == CONN_ADMITTED) {
		if (!admission_leave(images, &c->admission))
			return false;
		conn_shed(c);
		return true;
	}
	if (c->state == CONN_RESERVED) {
		if (!budget_cancel(&images->budget, &c->body_waiter))
			return false;
		conn_set_no_budget(c, c->request.content_length);
		return true;
	}
	if (c->state == CONN_FOUND || c->state == CONN_FILE_READ)
		return files_cancel(c);
	if (c->state == CONN_MADE)
		return absent_cancel(c);
	assert(c->state == CONN_IMAGE_ENDED);
	if (!inflight_cancel(&images->inflight, &c->waiter))
		return false;
	problem_set(&c->problem, 503, "not-ready",
	            "image %s was not ready within server.wait_timeout", c->route.id);
	return true;
}
