/*
 * handle_list.c - parses the query of GET /images, and responds with a page and a link to the next
 * one. The I/O thread.
 */
#include "handle_list.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/pool.h"
#include "image/image_service.h"
#include "image/storage.h"
#include "image/stored_list.h"
#include "io_loop.h"
#include "log/log.h"
#include "respond.h"
#include "sched/stage.h"

#define LIMIT 20      /* images, unless the query says otherwise */
#define AT_ONCE_MAX 2 /* lists; the disk's threads also store images */

/* ---- the query ---- */

static bool refuse(struct conn *c, const char *what)
{
	problem_set(&c->problem, 400, "malformed-request",
	            "%s: expected a query of after=ID, limit=1..%u and order=oldest or newest",
	            what, STORED_LIST_MAX);
	return false;
}

static bool read_limit(struct slice value, unsigned *limit)
{
	*limit = 0;
	for (size_t i = 0; i < value.length && i < 4; i++) {
		if (value.data[i] < '0' || value.data[i] > '9')
			return false;
		*limit = *limit * 10 + (unsigned)(value.data[i] - '0');
	}
	return value.length < 4 && *limit >= 1 && *limit <= STORED_LIST_MAX;
}

/* Takes one NAME=VALUE. *after: where the page begins. */
static bool take(struct conn *c, struct store_page *page, char after[ULID_LENGTH + 1],
                 struct slice item)
{
	const char *equals = memchr(item.data, '=', item.length);
	size_t length = equals ? (size_t)(equals - item.data) : item.length;
	struct slice name = { item.data, length };
	struct slice value = { item.data + length + 1, equals ? item.length - length - 1 : 0 };

	if (slice_is(name, "limit"))
		return read_limit(value, &page->max) || refuse(c, "limit");
	if (slice_is(name, "order")) {
		page->is_newest_first = slice_is(value, "newest");
		return page->is_newest_first || slice_is(value, "oldest") || refuse(c, "order");
	}
	if (!slice_is(name, "after") || !value.length || !ulid_is_valid(value.data, value.length))
		return refuse(c, slice_is(name, "after") ? "after" : "unknown parameter");
	memcpy(after, value.data, ULID_LENGTH);
	return true;
}

/* Reads the query of the target. Returns false with the problem set. */
static bool read_query(struct conn *c, struct store_page *page)
{
	struct slice target = span_slice(c->request.target, c->input + c->begin);
	const char *mark = memchr(target.data, '?', target.length);
	const char *at = mark ? mark + 1 : target.data + target.length,
		   *end = target.data + target.length;
	char after[ULID_LENGTH + 1] = "";

	page->max = LIMIT;
	while (at < end) {
		const char *next = memchr(at, '&', (size_t)(end - at));
		struct slice item = { at, (size_t)((next ? next : end) - at) };

		if (item.length > 0 && !take(c, page, after, item))
			return false;
		at = next ? next + 1 : end;
	}
	memcpy(page->is_newest_first ? page->before : page->after, after, sizeof after);
	return true;
}

/* ---- the list ---- */

static _Atomic unsigned listing; /* lists that disk_write makes */

static enum conn_step end(struct conn *c, struct stored_list *list)
{
	if (list) {
		text_fini(&list->images);
		pool_put(list);
	}
	c->job.list = NULL;
	return respond_problem(c);
}

enum conn_step handle_list(struct visit *v, struct conn *c)
{
	struct stored_list *list = pool_get(sizeof *list);

	if (!list) {
		problem_set(&c->problem, 503, "overloaded", "no memory");
		return end(c, list);
	}
	memset(list, 0, sizeof *list);
	if (!read_query(c, &list->page))
		return end(c, list);
	if (list->page.is_newest_first && conn_images(c)->s3) {
		problem_set(&c->problem, 501, "not-implemented",
		            "store.kind = s3 does not provide order=newest");
		return end(c, list);
	}
	/* Relaxed: only the number matters. */
	if (atomic_fetch_add_explicit(&listing, 1, memory_order_relaxed) >= AT_ONCE_MAX) {
		atomic_fetch_sub_explicit(&listing, 1, memory_order_relaxed);
		problem_set(&c->problem, 503, "overloaded", "%u lists are being made", AT_ONCE_MAX);
		return end(c, list);
	}
	c->state = CONN_LISTED;
	visit_park(v, &c->event);
	disk_job_send_list(v, &c->job, list, &c->event, c->instance);
	return CONN_STEP_GONE;
}

static void add_next(struct conn *c, const struct stored_list *list, struct json *j)
{
	char url[160];

	snprintf(url, sizeof url, "/images?after=%s&limit=%u&order=%s", list->last, list->page.max,
	         list->page.is_newest_first ? "newest" : "oldest");
	response_field(&c->response, "Link: <%s>; rel=\"next\"", url);
	json_string(j, "next", url);
}

enum conn_step handle_listed(struct visit *v, struct conn *c)
{
	struct stored_list *list = c->job.list;
	struct text *body = &c->response.body;
	struct json j;

	(void)v;
	atomic_fetch_sub_explicit(&listing, 1, memory_order_relaxed);
	if (storage_set_problem(c->job.result, &c->problem))
		return end(c, list);
	if (c->job.result) {
		log_error("list: cannot read the store for request %s: %s; responding 500",
		          request_id(c), strerror(-c->job.result));
		problem_set(&c->problem, 500, "internal", "the list cannot be read");
		return end(c, list);
	}
	respond_start(c, 200, list->images.length + 512);
	respond_content(c, "application/json");
	json_init(&j, body);
	json_object(&j, NULL);
	if (list->has_more)
		add_next(c, list, &j);
	text_puts(body, list->has_more ? ",\"images\":" : "\"images\":");
	text_put(body, list->images.data, list->images.length);
	json_object_end(&j);
	text_puts(body, "\n");
	text_fini(&list->images);
	pool_put(list);
	c->job.list = NULL;
	return respond_finish(c);
}
