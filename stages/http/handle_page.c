/* handle_page.c - responds with the files of the web pages. The I/O thread. */
#include "handle_page.h"

#include <string.h>
#include <time.h>

#include "base/check.h"
#include "base/text.h"
#include "conf/conf.h"
#include "page_files.h"
#include "preconditions.h"
#include "respond.h"

/* Everything comes from this server. Scripts and styles are files, and no other page may show these
 * in a frame. */
#define POLICY                                                                            \
	"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; " \
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

bool handle_page_is_on(const struct conf *conf, const struct conn *c)
{
	return c->route.kind != ROUTE_PAGE || c->kind == CONN_ADMIN ||
	       conf->server.page == CONF_YES;
}

/* Returns the file of the route; "/" of an administrative connection is the operator's page. */
static const struct page_file *file_of(const struct conn *c)
{
	const struct page_file *file = page_file_at(c->route.file);

	if (c->kind != CONN_ADMIN || strcmp(file->path, "/") != 0)
		return file;
	for (unsigned i = 0; (file = page_file_at(i)); i++)
		if (strcmp(file->path, "/operator") == 0)
			break;
	return file;
}

enum conn_step handle_page(struct conn *c)
{
	const struct page_file *file = file_of(c);
	assert(file);
	size_t size = (size_t)(file->end - file->data);
	char etag[PAGE_ETAG_MAX];

	page_file_etag(file, etag);
	/* There is no Last-Modified; a date in a request is always older. */
	enum precondition condition =
		preconditions_check(&c->request, c->input + c->begin, etag, time(NULL));

	if (condition == PRECONDITION_FAILED) {
		problem_set(&c->problem, 412, "precondition-failed",
		            "the file is not the one that the request's conditions ask for");
		return respond_problem(c);
	}
	respond_start(c, condition == PRECONDITION_NOT_MODIFIED ? 304 : 200, size + 1);
	response_text_field(&c->response, "ETag", etag);
	response_text_field(&c->response, "Cache-Control", "no-cache");
	response_text_field(&c->response, "Content-Security-Policy", POLICY);
	response_text_field(&c->response, "X-Content-Type-Options", "nosniff");
	response_text_field(&c->response, "Referrer-Policy", "no-referrer");
	response_text_field(&c->response, "Cross-Origin-Opener-Policy", "same-origin");
	response_text_field(&c->response, "Cross-Origin-Resource-Policy", "same-origin");
	if (condition == PRECONDITION_TRUE) {
		response_text_field(&c->response, "Content-Type", file->type);
		text_put(&c->response.body, file->data, size);
	}
	return respond_finish(c);
}
