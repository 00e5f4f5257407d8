/* handle_control.c - the resource /control. The I/O thread. */
#include "handlers.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "admin_service.h"
#include "base/check.h"
#include "base/json.h"
#include "base/text.h"
#include "conf/conf.h"
#include "conf/conf_keys.h"
#include "conn/respond.h"
#include "policy/policy.h"

#define BODY_MAX 8192
#define OFF "settings change only at server.admin_listen, with server.admin_control = yes"

bool handle_control_is_on(const struct conf *conf, struct conn *c)
{
	if (c->kind == CONN_ADMIN && conf->server.admin_control == CONF_YES)
		return true;
	return problem_set(&c->problem, 403, "forbidden", "%s", OFF);
}

/* ---- the keys ---- */

static const char *const keys[] = { "scheduler.policy", "scheduler.service", "scheduler.discipline",
	                            "scheduler.threads" };

static bool is_value(const char *data, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)data[i]) && !(data[i] && strchr("-_.", data[i])))
			return false;
	return length > 0;
}

/* Copies a setting "KEY=VALUE" of these keys. Returns false if it is none, or has characters other
 * than letters, digits and "-_.". */
static bool read_setting(struct slice text, char setting[SETTING_MAX])
{
	for (size_t i = 0; i < COUNT_OF(keys); i++) {
		size_t key = strlen(keys[i]);

		if (text.length <= key || text.length >= SETTING_MAX ||
		    memcmp(text.data, keys[i], key) != 0 || text.data[key] != '=')
			continue;
		memcpy(setting, text.data, text.length);
		setting[text.length] = '\0';
		return is_value(text.data + key + 1, text.length - key - 1);
	}
	return false;
}

static void choices_json(const struct conf_key *key, struct json *j)
{
	json_array(j, "choices");
	if (key->is_valid == policy_is_known)
		for (size_t i = 0; policy_at(i); i++)
			json_string(j, NULL, policy_at(i)->name);
	for (size_t i = 0; key->choices && key->choices[i].name; i++)
		json_string(j, NULL, key->choices[i].name);
	json_array_end(j);
}

/* Appends {"scheduler.policy": {"value": "drain", "choices": [...]}, ...}. */
static void keys_json(const struct conf *conf, struct json *j)
{
	for (size_t i = 0; i < COUNT_OF(keys); i++) {
		const struct conf_key *key = conf_key_find("scheduler", strchr(keys[i], '.') + 1);
		struct text value = TEXT_LOCAL(CONF_TEXT_MAX);

		conf_value_print(key, &conf->scheduler, &value);
		json_object(j, keys[i]);
		json_string(j, "value", value.data);
		choices_json(key, j);
		json_object_end(j);
	}
}

static enum conn_step respond_keys(struct conn *c, const char *report)
{
	bool is_on = handle_control_is_on(conn_conf(c), c);

	c->problem.status = 0; /* GET only tells it */
	struct json j = respond_json(c, 200, BODY_MAX);

	if (report)
		json_string(&j, "report", report);
	json_bool(&j, "enabled", is_on);
	if (!is_on)
		json_string(&j, "why", OFF);
	keys_json(conn_conf(c), &j);
	return respond_json_end(c, &j);
}

/* ---- changes ---- */

/* Responds with the result. */
static enum conn_step controlled(struct visit *v, struct conn *c)
{
	struct setting_job *job = c->control;
	enum conn_step step;

	(void)v;
	c->control = NULL;
	job->report[strcspn(job->report, "\n")] = '\0';
	if (job->result) {
		problem_set(&c->problem, 422, "refused-setting", "%s", job->report);
		step = respond_problem(c);
	} else {
		step = respond_keys(c, job->report);
	}
	free(job);
	return step;
}

enum conn_step handle_control(struct visit *v, struct conn *c)
{
	struct admin_service *admin = c->io->http->admin;
	struct setting_job *job;

	if (c->request.method != METHOD_POST)
		return respond_keys(c, NULL);
	if (!(job = calloc(1, sizeof *job))) {
		problem_set(&c->problem, 503, "overloaded", "no memory");
		return respond_problem(c);
	}
	if (!read_setting(conn_query(c), job->setting)) {
		free(job);
		problem_set(&c->problem, 400, "malformed-request",
		            "expected a query of KEY=VALUE; the keys are those of GET /control");
		return respond_problem(c);
	}
	c->control = job;
	job->event = &c->event;
	job->instance = c->instance;
	conn_ask(v, c, controlled);
	setting_queue_submit(&admin->settings, job);
	stats_stream_wake(&admin->stream);
	return CONN_STEP_GONE;
}
