/* absent.c - explains what an image lacks, and waits while it is made. */
#include "absent.h"

#include <errno.h>

#include "conf/conf.h"
#include "files.h"
#include "image/image_service.h"
#include "respond.h"

enum conn_step absent_variant(struct visit *v, struct conn *c)
{
	c->purpose = CONN_FIND_VARIANTS;
	c->state = CONN_FOUND;
	conn_wait(v, c, conn_conf(c)->server.wait_timeout_ms);
	disk_job_send_explanation(v, &conn_images(c)->reads, &c->job, c->route.id, c->route.variant,
	                          &c->problem, &c->event, c->instance);
	return CONN_STEP_GONE;
}

static bool may_be_made(const struct conn *c)
{
	const struct conf *conf = conn_conf(c);

	return conf->store.make_missing == CONF_YES && !c->has_asked && c->job.has_original &&
	       conf_variant_find(conf, c->route.variant);
}

static void set_busy(struct conn *c, const char *why)
{
	problem_set(&c->problem, 503, "overloaded", "variant %s of image %s is not made yet: %s",
	            c->route.variant, c->route.id, why);
}

/* The problem of c already says what the image has. */
static enum conn_step ask(struct visit *v, struct conn *c)
{
	const struct client_key *client = c->has_share ? &c->payer : NULL;

	c->has_asked = true;
	c->state = CONN_MADE;
	c->missing.event = &c->event;
	c->missing.instance = c->instance;
	conn_wait(v, c, conn_conf(c)->server.wait_timeout_ms);
	enum missing_answer answer =
		missing_ask(&conn_images(c)->missing, c->route.id, client, &c->missing);

	if (answer == MISSING_WAITS)
		return CONN_STEP_GONE;
	conn_unwait(v, c);
	if (answer == MISSING_FULL)
		set_busy(c, "32 images wait for that");
	else if (answer == MISSING_CLIENT_FULL)
		set_busy(c, "4 images of the same client wait for that");
	return respond_problem(c);
}

enum conn_step absent_explained(struct visit *v, struct conn *c)
{
	if (c->job.result == -ENOENT)
		return files_not_found(c);
	if (c->job.result)
		return files_failed(c, c->job.result);
	return may_be_made(c) ? ask(v, c) : respond_problem(c);
}

enum conn_step absent_made(struct visit *v, struct conn *c)
{
	switch (c->missing.result) {
	case MISSING_ENDED:
		return files_get_ended(v, c);
	case MISSING_LATER:
		set_busy(c, "there was no room for it");
		break;
	default: /* the problem says what the image has */
		break;
	}
	return respond_problem(c);
}

bool absent_cancel(struct conn *c)
{
	if (!missing_cancel(&conn_images(c)->missing, &c->missing))
		return false;
	set_busy(c, "it was not made within server.wait_timeout");
	return true;
}
