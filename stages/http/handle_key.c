/* handle_key.c - responds by what is known of a key. The I/O thread. */
#include "handle_key.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "conf/conf.h"
#include "image/storage.h"
#include "image/upload_key.h"
#include "respond.h"
#include "sched/stage.h"

static enum conn_step ask(struct visit *v, struct conn *c, enum disk_work work,
                          enum conn_state next)
{
	c->state = next;
	visit_park(v, &c->event);
	disk_job_send_key(v, &c->job, work, c->key, &c->event, c->instance);
	return CONN_STEP_GONE;
}

enum conn_step handle_key_begin(struct visit *v, struct conn *c)
{
	c->key->upload = c->upload;
	return ask(v, c, DISK_KEY_BEGIN, CONN_KEY_BEGUN);
}

/* Responds with the images that an earlier upload has made. */
static enum conn_step respond_known(struct conn *c)
{
	const struct upload_key *k = c->key;
	struct text *body = &c->response.body;
	struct json j;

	respond_start(c, k->is_processing ? 202 : 201, k->images.length + 512);
	respond_content(c, "application/json");
	response_text_field(&c->response, "Idempotent-Replayed", "true");
	if (k->id[0])
		response_field(&c->response, "Location: /images/%s", k->id);
	json_init(&j, body);
	json_object(&j, NULL);
	json_raw(&j, "images", k->images.data, k->images.length);
	if (k->failed) {
		json_array(&j, "errors");
		json_array_end(&j);
		json_uint(&j, "errors_omitted", k->failed);
	}
	json_object_end(&j);
	text_puts(body, "\n");
	return respond_finish(c);
}

static void set_store_problem(struct conn *c, int err)
{
	if (storage_set_problem(err, &c->problem))
		c->problem.retry_after_s = 1;
	else if (err == -ENOSPC || err == -EDQUOT)
		problem_set(&c->problem, 507, "storage-full", "%s", strerror(-err));
	else if (err == -ENOMEM)
		problem_set(&c->problem, 503, "overloaded", "no memory");
	else if (err == -EOPNOTSUPP)
		problem_set(&c->problem, 500, "storage-failed",
		            "the store has no conditional requests, which Idempotency-Key needs");
	else
		problem_set(&c->problem, 500, "storage-failed", "%s", strerror(-err));
}

static enum conn_step respond_refused(struct conn *c)
{
	const struct upload_key *k = c->key;

	switch (k->verdict) {
	case UPLOAD_KEY_IN_PROGRESS:
		problem_set(&c->problem, 409, "idempotency-key-in-use",
		            "an upload with this Idempotency-Key has not been answered yet");
		c->problem.retry_after_s = 1;
		break;
	case UPLOAD_KEY_OF_OTHER:
		problem_set(&c->problem, 422, "idempotency-key-reused",
		            "this Idempotency-Key was used for an upload with another content");
		break;
	case UPLOAD_KEY_TOO_MANY:
		problem_set_limit(&c->problem, 429, "too-many-requests", "limits.idempotency_keys",
		                  conn_conf(c)->limits.idempotency_keys, k->used + 1);
		c->problem.retry_after_s = (unsigned)k->wait_s;
		break;
	default:
		set_store_problem(c, k->err);
	}
	return respond_problem(c);
}

enum conn_step handle_key_begun(struct visit *v, struct conn *c)
{
	enum upload_key_verdict verdict = c->key->verdict;

	(void)v;
	if (c->key->is_content && verdict != UPLOAD_KEY_NEW && verdict != UPLOAD_KEY_KNOWN) {
		/* Nobody has asked for it: the image is made, and not remembered. */
		upload_key_free(c->key);
		c->key = NULL;
	}
	if (!c->key || verdict == UPLOAD_KEY_NEW) {
		c->state = CONN_BODY_DONE; /* its images start */
		return CONN_STEP_AGAIN;
	}
	c->key->upload = NULL;
	upload_unref(c->upload);
	c->upload = NULL;
	return verdict == UPLOAD_KEY_KNOWN ? respond_known(c) : respond_refused(c);
}

enum conn_step handle_key_end(struct visit *v, struct conn *c)
{
	return ask(v, c, DISK_KEY_END, CONN_KEY_ENDED);
}

enum conn_step handle_key_ended(struct visit *v, struct conn *c)
{
	(void)v;
	if (c->upload && c->key->verdict != UPLOAD_KEY_NEW) {
		upload_unref(c->upload);
		c->upload = NULL;
		return respond_refused(c);
	}
	c->state = c->upload ? CONN_UPLOADED : CONN_REFUSE;
	return CONN_STEP_AGAIN;
}
