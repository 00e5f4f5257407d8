/* setting_queue.c - the queue between I/O threads and the main thread. */
#include "setting_queue.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "sched/graph.h"
#include "sched/stage.h"
#include "stage_ids.h"

static const char *const keys[] = { "scheduler.policy", "scheduler.service", "scheduler.discipline",
	                            "scheduler.threads" };

const char *setting_key_at(unsigned index)
{
	return index < COUNT_OF(keys) ? keys[index] : NULL;
}

static bool is_value(const char *data, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)data[i]) && !(data[i] && strchr("-_.", data[i])))
			return false;
	return length > 0;
}

bool setting_read(struct slice text, char setting[SETTING_MAX])
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

void setting_queue_init(struct setting_queue *c)
{
	pthread_mutex_init(&c->lock, NULL);
	c->first = NULL;
	c->last = &c->first;
}

void setting_queue_submit(struct setting_queue *c, struct setting_job *job)
{
	job->next = NULL;
	pthread_mutex_lock(&c->lock);
	*c->last = job;
	c->last = &job->next;
	pthread_mutex_unlock(&c->lock);
}

struct setting_job *setting_queue_first(struct setting_queue *c)
{
	pthread_mutex_lock(&c->lock);
	struct setting_job *job = c->first;
	pthread_mutex_unlock(&c->lock);
	return job;
}

void setting_queue_end(struct setting_queue *c, struct graph *graph, int result, const char *report)
{
	pthread_mutex_lock(&c->lock);
	struct setting_job *job = c->first;

	c->first = job->next;
	if (!c->first)
		c->last = &c->first;
	pthread_mutex_unlock(&c->lock);
	job->result = result;
	snprintf(job->report, sizeof job->report, "%s", report);
	stage_push(graph_stage(graph, STAGE_ACCEPT_READ), job->instance, job->event);
}
