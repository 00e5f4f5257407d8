/*
 * handle_list.c - parses the query of GET /images, and responds with a page and a link to the next
 * one. The I/O thread.
 */
#include "handlers.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/pool.h"
#include "conn/respond.h"
#include "image/image_service.h"
#include "log/log.h"
#include "storage/storage.h"

#define LIMIT 20      /* images, unless the query says otherwise */
#define AT_ONCE_MAX 2 /* lists; its threads also read files */

/* ---- the query ---- */

static bool refuse(struct conn *c, const char *what)
{
	return problem_set(
		&c->problem, 400, "malformed-request",
		"%s: expected a query of after=ID, limit=1..%u and order=oldest or newest", what,
		STORED_LIST_MAX);
}

/* Takes one NAME=VALUE. *after: where the page begins. */
static bool take(struct conn *c, struct store_page *page, char after[ULID_LENGTH + 1],
                 struct slice name, struct slice value)
{
	uint64_t limit;

	if (slice_is(name, "limit")) {
		if (!field_number(value, &limit) || value.length > 3 || limit < 1 ||
		    limit > STORED_LIST_MAX)
			return refuse(c, "limit");
		page->max = (unsigned)limit;
		return true;
	}
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
	struct slice query = conn_query(c), name, value;
	char after[ULID_LENGTH + 1] = "";

	page->max = LIMIT;
	while (field_query_next(&query, &name, &value))
		if (name.length + value.length > 0 && !take(c, page, after, name, value))
			return false;
	memcpy(page->is_newest_first ? page->before : page->after, after, sizeof after);
	return true;
}

/* ---- the list ---- */

static _Atomic unsigned listing; /* lists that disk_read makes */

static void free_list(struct conn *c, struct stored_list *list)
{
	if (list)
		text_fini(&list->images);
	pool_put(list);
	c->job.list = NULL;
}

static enum conn_step end(struct conn *c, struct stored_list *list)
{
	free_list(c, list);
	return respond_problem(c);
}

static enum conn_step listed(struct visit *v, struct conn *c)
{
	struct stored_list *list = c->job.list;
	char url[160];

	(void)v;
	atomic_fetch_sub_explicit(&listing, 1, memory_order_relaxed);
	if (image_service_set_problem(c->job.result, &c->problem))
		return end(c, list);
	if (c->job.result) {
		log_error("list: cannot read the store for request %s: %s; responding 500",
		          request_id(c), strerror(-c->job.result));
		problem_set(&c->problem, 500, "internal", "the list cannot be read");
		return end(c, list);
	}
	struct json j = respond_json(c, 200, list->images.length + 512);

	if (list->has_more) {
		snprintf(url, sizeof url, "/images?after=%s&limit=%u&order=%s", list->last,
		         list->page.max, list->page.is_newest_first ? "newest" : "oldest");
		response_field(&c->response, "Link: <%s>; rel=\"next\"", url);
		json_string(&j, "next", url);
	}
	json_raw(&j, "images", list->images.data, list->images.length);
	free_list(c, list);
	return respond_json_end(c, &j);
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
	if (list->page.is_newest_first && conn_images(c)->storage.class->is_shared) {
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
	list->owner = c->sees_own ? c->token_name : NULL;
	conn_ask(v, c, listed);
	c->job.list = list;
	conn_send_job(v, c, DISK_LIST);
	return CONN_STEP_GONE;
}
