/* client_acts.c - requests, their answers, and the promises. */
#include "client_acts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "disk.h"
#include "exchange.h"
#include "machine.h"
#include "store/ulid.h"
#include "support/jpeg_fixture.h"

#define ACTIONS 8
#define SLOW_NS (400 * NS_PER_S)
#define PHOTOS_MAX 512
#define KEYS 2
#define PATH_SIZE 128
#define PARTS_MAX 3
#define BOUNDARY "b0undary"

/* ---- pictures ---- */

enum { GOOD = 4, DAMAGED = GOOD, TEXT, PICTURES };

static struct {
	const uint8_t *data;
	size_t size;
} pictures[PICTURES];

static const char *const variants[] = { "medium", "thumb", "blurred" };

/* What the daemon made of each picture first. It always makes the same. */
static struct {
	char *data;
	size_t size;
} made[GOOD][COUNT_OF(variants)];

void clients_begin(void)
{
	static const struct fixture fixtures[GOOD] = {
		{ .width = 8, .height = 8, .from = JCS_RGB, .in = JCS_YCbCr, .components = 3 },
		{ .width = 40, .height = 30, .from = JCS_RGB, .in = JCS_YCbCr, .components = 3 },
		{ .width = 33,
		  .height = 64,
		  .from = JCS_GRAYSCALE,
		  .in = JCS_GRAYSCALE,
		  .components = 1 },
		{ .width = 200,
		  .height = 20,
		  .from = JCS_RGB,
		  .in = JCS_YCbCr,
		  .components = 3,
		  .is_progressive = true },
	};

	for (unsigned i = 0; i < GOOD; i++)
		pictures[i].data = fixture_make(&fixtures[i], &pictures[i].size);
	pictures[DAMAGED].data = pictures[1].data;
	pictures[DAMAGED].size = pictures[1].size / 2;
	pictures[TEXT].data = (const uint8_t *)"no picture";
	pictures[TEXT].size = 10;
}

/* ---- images ---- */

static struct photo {
	char id[ULID_LENGTH + 1];
	unsigned picture, owner;
	bool is_late;     /* it was answered before it was stored */
	bool is_deleting; /* its owner has asked for that */
	bool is_gone;     /* and was told so */
	/* Its own end is between these times. */
	uint64_t end_from_ns, end_to_ns;
} photos[PHOTOS_MAX];
static unsigned photo_count;

static struct photo *find_photo(const char *id)
{
	for (unsigned i = 0; i < photo_count; i++)
		if (strcmp(photos[i].id, id) == 0)
			return &photos[i];
	return NULL;
}

/* ---- uploads ---- */

struct key {
	unsigned picture;
	char id[ULID_LENGTH + 1]; /* "": no answer had one */
	bool may_be_open;         /* an upload with it got no answer */
};
static struct key keys[CLIENTS_MAX + 1][KEYS]; /* by the number of the client */

struct upload {
	unsigned part[PARTS_MAX], count; /* pictures */
	struct key *key;
	unsigned lasts_s;  /* 0: for ever */
	uint64_t begin_ns; /* when it was sent */
	bool is_form, is_chunked, prefers_async, expects_continue;
};

static struct upload draw_upload(struct client *c)
{
	struct upload u = { .is_form = draw(2),
		            .is_chunked = draw(4) == 0,
		            .prefers_async = draw(4) == 0,
		            .expects_continue = draw(6) == 0,
		            .count = 1 };

	if (u.is_form)
		u.count = 1 + (unsigned)draw(PARTS_MAX);
	for (unsigned i = 0; i < u.count; i++)
		u.part[i] = draw(8) ? (unsigned)draw(GOOD) : GOOD + (unsigned)draw(PICTURES - GOOD);
	if (draw(6) == 0) {
		u.lasts_s = 1 + (unsigned)draw(30);
	} else if (draw(3) == 0) {
		u.key = &keys[c->number][draw(KEYS)];
		u.count = 1;
		u.part[0] = u.key->picture;
		u.is_form = false;
	}
	return u;
}

/* Writes the body behind what the request has, and returns its size. */
static size_t put_body(struct client *c, const struct upload *u)
{
	size_t before = c->size;

	for (unsigned i = 0; i < u->count; i++) {
		if (u->is_form)
			put_text(c,
			         "--" BOUNDARY "\r\nContent-Disposition: form-data; name=\"f\"; "
			         "filename=\"%u.jpg\"\r\nContent-Type: image/jpeg\r\n\r\n",
			         i);
		put_bytes(c, pictures[u->part[i]].data, pictures[u->part[i]].size);
		if (u->is_form)
			put_text(c, "\r\n");
	}
	if (u->is_form)
		put_text(c, "--" BOUNDARY "--\r\n");
	return c->size - before;
}

/* Makes chunks of the body, which is the end of the request. */
static void cut_in_chunks(struct client *c, size_t size)
{
	char *body = malloc(size);

	if (!body)
		abort();
	c->size -= size;
	memcpy(body, c->request + c->size, size);
	for (size_t at = 0, n; at < size; at += n) {
		n = 1 + draw(draw(2) ? size - at : 100);
		n = n < size - at ? n : size - at;
		put_text(c, "%zx\r\n", n);
		put_bytes(c, body + at, n);
		put_text(c, "\r\n");
	}
	put_text(c, "0\r\n\r\n");
	free(body);
}

static void make_upload(struct client *c, const struct upload *u)
{
	begin_request(c, "POST", "/images");
	put_text(c, "Content-Type: %s\r\n",
	         u->is_form ? "multipart/form-data; boundary=" BOUNDARY : "image/jpeg");
	if (u->key)
		put_text(c, "Idempotency-Key: \"%u-%u\"\r\n", c->number,
		         (unsigned)(u->key - keys[c->number]));
	if (u->lasts_s)
		put_text(c, "X-Expires-After: %u\r\n", u->lasts_s);
	if (u->prefers_async)
		put_text(c, "Prefer: respond-async\r\n");
	if (u->expects_continue)
		put_text(c, "Expect: 100-continue\r\n");
	size_t head = c->size, size = put_body(c, u);

	/* The head is known only now: it moves behind its last field. */
	if (u->is_chunked) {
		static const char line[] = "Transfer-Encoding: chunked\r\n\r\n";

		memmove(c->request + head + sizeof line - 1, c->request + head, size);
		memcpy(c->request + head, line, sizeof line - 1);
		c->size += sizeof line - 1;
		cut_in_chunks(c, size);
	} else {
		char line[64];
		size_t length =
			(size_t)snprintf(line, sizeof line, "Content-Length: %zu\r\n\r\n", size);

		memmove(c->request + head + length, c->request + head, size);
		memcpy(c->request + head, line, length);
		c->size += length;
	}
}

/* Copies the next id of the answer. Returns what is behind it, or NULL. */
static const char *next_id(const char *at, char id[ULID_LENGTH + 1])
{
	at = strstr(at, "\"id\":\"");
	if (!at)
		return NULL;
	snprintf(id, ULID_LENGTH + 1, "%.*s", ULID_LENGTH, at + 6);
	return at + 6;
}

static void add_photo(const struct client *c, const struct upload *u, const char *id,
                      unsigned picture)
{
	struct photo *p = &photos[photo_count++];

	assert(photo_count <= PHOTOS_MAX);
	if (find_photo(id))
		FAIL("two images have the id %s", id);
	*p = (struct photo){ .picture = picture,
		             .owner = c->number,
		             .is_late = c->status == 202,
		             .end_from_ns = MACHINE_FOREVER,
		             .end_to_ns = MACHINE_FOREVER };
	if (u->lasts_s) {
		/* Both in whole seconds of the date. */
		p->end_from_ns = (u->begin_ns / NS_PER_S + u->lasts_s) * NS_PER_S;
		p->end_to_ns = machine_now() + (u->lasts_s + 1) * NS_PER_S;
	}
	snprintf(p->id, sizeof p->id, "%s", id);
}

static void take_keyed(struct client *c, const struct upload *u, const char *id)
{
	struct key *k = u->key;

	if (k->id[0] && strcmp(k->id, id) != 0)
		FAIL("a key has made %s, and then %s", k->id, id);
	if (!find_photo(id))
		add_photo(c, u, id, k->picture);
	snprintf(k->id, sizeof k->id, "%s", id);
	k->may_be_open = false;
}

/* All good pictures are images of the answer, in their order, unless the store failed. */
static void take_images(struct client *c, const struct upload *u, uint64_t faults)
{
	const char *at = c->body;
	char id[ULID_LENGTH + 1];

	for (unsigned i = 0; i < u->count; i++) {
		if (u->part[i] >= GOOD)
			continue;
		at = next_id(at, id);
		if (!at && disk.faults_seen == faults)
			FAIL("an image is missing: %.300s", c->body);
		if (!at || (u->count > 1 && disk.faults_seen != faults))
			return; /* which ones are there cannot be told */
		if (u->key)
			take_keyed(c, u, id);
		else
			add_photo(c, u, id, u->part[i]);
	}
	if (next_id(at, id))
		FAIL("an image is too many: %.300s", c->body);
}

static bool has_good(const struct upload *u)
{
	for (unsigned i = 0; i < u->count; i++)
		if (u->part[i] < GOOD)
			return true;
	return false;
}

static void check_upload(struct client *c, const struct upload *u, uint64_t faults)
{
	bool is_made = c->status == 201 || c->status == 202;

	if (is_made != has_good(u) &&
	    !(c->status == 503 || (c->status >= 500 && disk.faults_seen != faults) ||
	      (c->status == 409 && u->key && u->key->may_be_open)))
		FAIL("an upload of %u parts is answered %u: %.300s", u->count, c->status, c->body);
	if (!has_good(u) && c->status != 422 && c->status != 415 && c->status != 503)
		FAIL("an upload without a picture is answered %u", c->status);
	if (c->status == 202 && !u->prefers_async && !strstr(c->in, "processing"))
		FAIL("an upload is answered 202");
	if (is_made)
		take_images(c, u, faults);
}

static void send_upload(struct client *c, struct upload u)
{
	uint64_t faults = disk.faults_seen;

	make_upload(c, &u);
	u.begin_ns = machine_now();
	exchange(c, false);
	check_upload(c, &u, faults);
}

static void upload(struct client *c)
{
	send_upload(c, draw_upload(c));
}

/* ---- downloads ---- */

static struct photo *some_photo(const struct client *c, bool is_own)
{
	struct photo *some = NULL;
	unsigned seen = 0;

	for (unsigned i = 0; i < photo_count; i++)
		if ((!is_own || photos[i].owner == c->number) && draw(++seen) == 0)
			some = &photos[i];
	return some;
}

static void write_path(char path[PATH_SIZE], const struct photo *p, unsigned variant)
{
	snprintf(path, PATH_SIZE, "/images/%.*s/%s.jpg", ULID_LENGTH, p->id, variants[variant]);
}

static void get(struct client *c, const char *path)
{
	begin_request(c, "GET", path);
	put_text(c, "\r\n");
	exchange(c, false);
}

/* Compares a part of the file with what was made of the picture the first time. */
static void compare(const struct photo *p, unsigned variant, const char *data, size_t size,
                    size_t at, bool is_whole)
{
	char **known = &made[p->picture][variant].data;
	size_t *known_size = &made[p->picture][variant].size;

	if (!*known && is_whole) {
		*known = malloc(size);
		if (!*known)
			abort();
		memcpy(*known, data, size);
		*known_size = size;
	}
	if (*known && (at + size > *known_size || memcmp(*known + at, data, size) != 0 ||
	               (is_whole && size != *known_size)))
		FAIL("%s/%s.jpg has other bytes", p->id, variants[variant]);
}

/* Whether it must be absent from now on. */
static bool is_over(const struct photo *p)
{
	return p->is_gone || machine_now() >= p->end_to_ns;
}

/* An image that was promised may be absent only if its owner removes it, or at its end. */
static void check_absent(const struct client *c, const struct photo *p)
{
	if (!p->is_deleting && machine_now() < p->end_from_ns && !(p->is_late && disk.faults_seen))
		FAIL("%s is answered %u: %.200s", p->id, c->status, c->body);
}

/* The answer must be one of a file that is there, or not. may_fail: the disk had a fault. */
static void check_file(struct client *c, const struct photo *p, unsigned variant, bool was_over,
                       bool may_fail)
{
	const char *range;
	size_t at, last;

	if (was_over && c->status < 400)
		FAIL("%s is over and is answered %u", p->id, c->status);
	if (c->status == 200 && c->body_size) {
		compare(p, variant, c->body, c->body_size, 0, true);
	} else if (c->status == 206) {
		range = answer_field(c, "Content-Range");
		if (!range || sscanf(range, "bytes %zu-%zu/", &at, &last) != 2 ||
		    last - at + 1 != c->body_size)
			FAIL("a part of %zu bytes is answered as %.40s", c->body_size,
			     range ? range : "nothing");
		compare(p, variant, c->body, c->body_size, at, false);
	} else if (c->status == 404 || c->status == 410) {
		check_absent(c, p);
	} else if (c->status >= 500 && !may_fail && !p->is_deleting) {
		FAIL("%s is answered %u: %.200s", p->id, c->status, c->body);
	}
}

static void download(struct client *c)
{
	struct photo *p = some_photo(c, false);
	char path[PATH_SIZE], etag[80] = "";
	uint64_t faults = disk.faults_seen;

	if (!p)
		return;
	unsigned variant = (unsigned)draw(COUNT_OF(variants));
	bool was_over = is_over(p), is_head = draw(8) == 0;

	write_path(path, p, variant);
	begin_request(c, is_head ? "HEAD" : "GET", path);
	if (draw(4) == 0)
		put_text(c, "Range: bytes=%u-%s\r\n", (unsigned)draw(300), draw(2) ? "" : "400");
	put_text(c, "\r\n");
	exchange(c, is_head);
	check_file(c, p, variant, was_over, disk.faults_seen != faults);
	const char *tag = c->status == 200 ? answer_field(c, "ETag") : NULL;

	if (!tag)
		return;
	snprintf(etag, sizeof etag, "%.*s", (int)strcspn(tag, "\r"), tag);
	begin_request(c, "GET", path);
	put_text(c, "If-None-Match: %s\r\n\r\n", etag);
	faults = disk.faults_seen;
	was_over = is_over(p);
	exchange(c, false);
	if (c->status == 200)
		FAIL("%s/%s.jpg has a tag and then another one", p->id, variants[variant]);
	check_file(c, p, variant, was_over, disk.faults_seen != faults);
}

static void look(struct client *c)
{
	struct photo *p = some_photo(c, false);
	char path[PATH_SIZE];
	uint64_t faults = disk.faults_seen;

	if (!p)
		return;
	bool was_over = is_over(p);

	snprintf(path, sizeof path, "/images/%s", p->id);
	get(c, path);
	if (was_over && c->status < 400)
		FAIL("%s is over and is answered %u", p->id, c->status);
	if (c->status == 404)
		check_absent(c, p);
	else if (c->status >= 500 && disk.faults_seen == faults)
		FAIL("%s is answered %u: %.200s", p->id, c->status, c->body);
	else if (c->status < 400 && !strstr(c->body, p->id))
		FAIL("the answer has another image than %s: %.200s", p->id, c->body);
}

static void delete (struct client *c)
{
	struct photo *p = some_photo(c, true);
	char path[PATH_SIZE];
	uint64_t faults = disk.faults_seen;

	if (!p)
		return;
	bool was_certain = !p->is_deleting && !(p->is_late && disk.faults_seen);

	p->is_deleting |= is_of_this_machine(c);
	snprintf(path, sizeof path, "/images/%s", p->id);
	begin_request(c, "DELETE", path);
	put_text(c, "\r\n");
	exchange(c, false);
	if (!is_of_this_machine(c)) {
		if (c->status != 403)
			FAIL("a removal from elsewhere is answered %u", c->status);
	} else if (c->status == 204) {
		p->is_gone = true;
	} else if (c->status == 404 ? was_certain && machine_now() < p->end_from_ns
	                            : disk.faults_seen == faults) {
		FAIL("the removal of %s is answered %u: %.200s", p->id, c->status, c->body);
	}
}

/* ---- administration ---- */

static void administer(struct client *c)
{
	static const char *const paths[] = { "/stats", "/metrics", "/images", "/graph", "/readyz" };
	uint64_t faults = disk.faults_seen;

	forget_socket(c);
	need_socket(c, ADMIN_PORT);
	get(c, paths[draw(COUNT_OF(paths))]);
	forget_socket(c);
	if (c->status != 200 && disk.faults_seen == faults &&
	    !(c->status == 503 && strstr(c->body, "lists are being made")))
		FAIL("%.30s is answered %u: %.200s", c->request, c->status, c->body);
}

/* ---- what no client should do ---- */

/* Makes some request that is valid. Returns the upload; its count is 0 if it is none. */
static struct upload make_some(struct client *c, bool has_keys)
{
	struct upload u = draw_upload(c);

	if (!has_keys)
		u.key = NULL;
	if (draw(3)) {
		make_upload(c, &u);
		if (u.key)
			u.key->may_be_open = true;
		return u;
	}
	struct photo *p = some_photo(c, false);
	char path[PATH_SIZE] = "/healthz";

	if (p)
		write_path(path, p, (unsigned)draw(COUNT_OF(variants)));
	begin_request(c, "GET", path);
	put_text(c, "\r\n");
	return (struct upload){ .count = 0 };
}

/* Closes before the answer, often in the request. An upload with a key is often repeated at once.
 */
static void vanish(struct client *c)
{
	uint64_t until_ns = machine_now() + SLOW_NS;

	forget_socket(c);
	struct upload u = make_some(c, true);

	need_socket(c, PORT);
	if (send_pieces(c, draw(2) ? c->size : draw(c->size), 300 * NS_PER_MS, until_ns) && draw(2))
		net_shut(c->socket);
	if (draw(2))
		pause_for(draw(2) ? NS_PER_MS : NS_PER_S);
	tell("client %u vanishes", c->number);
	forget_socket(c);
	if (u.count && u.key && draw(4))
		send_upload(c, u);
}

/* Reads all that comes until the daemon closes. Returns false if it does not. */
static bool read_to_end(struct client *c, uint64_t pause_ns, uint64_t until_ns)
{
	enum outcome outcome;

	do {
		c->come = 0;
		if (pause_ns)
			pause_for(pause_ns);
		outcome = receive(c, until_ns);
	} while (outcome == ANSWERED);
	return outcome != LATE;
}

/* Changes some bytes of a request. */
static void confuse(struct client *c)
{
	forget_socket(c);
	make_some(c, false);
	for (uint64_t n = 1 + draw(4); n; n--) {
		size_t at = draw(draw(4) ? (c->size < 200 ? c->size : 200) : c->size);

		c->request[at] = (char)(draw(2) ? draw(256) : (uint64_t) "\r\n :,;\"0"[draw(8)]);
	}
	need_socket(c, PORT);
	send_pieces(c, c->size, NS_PER_MS, machine_now() + SLOW_NS);
	if (draw(2))
		net_shut(c->socket);
	if (!read_to_end(c, 0, machine_now() + SLOW_NS))
		FAIL("client %u: a strange request is never ended: %.100s", c->number, c->request);
	forget_socket(c);
}

/* Sends or reads slowly, or sends only a part and waits. */
static void dawdle(struct client *c)
{
	uint64_t until_ns = machine_now() + SLOW_NS, pause_ns = (1 + draw(3000)) * NS_PER_MS;
	bool is_slow_reader = draw(2);

	forget_socket(c);
	make_some(c, true);
	need_socket(c, PORT);
	if (is_slow_reader) {
		send_pieces(c, c->size, NS_PER_MS, until_ns);
	} else {
		for (size_t at = 0, n; at < c->size && machine_now() < until_ns; at += n) {
			n = 1 + draw(64);
			n = n < c->size - at ? n : c->size - at;
			if (!net_send(c->socket, c->request + at, n, until_ns) || draw(16) == 0)
				break;
			pause_for(pause_ns);
		}
	}
	tell("client %u has dawdled", c->number);
	if (!read_to_end(c, is_slow_reader ? pause_ns : 0, machine_now() + SLOW_NS))
		FAIL("client %u: a slow request is never ended: %.100s", c->number, c->request);
	forget_socket(c);
}

/* Several requests at once: each is answered, in their order, unless the idle connection is closed
 * for others. */
static void pipeline(struct client *c)
{
	uint64_t count = 2 + draw(3);
	char one[256];

	get(c, "/healthz"); /* so that it has a connection, which may be closed while it is idle */
	size_t size = c->size;

	memcpy(one, c->request, size);
	for (uint64_t i = 1; i < count; i++)
		put_bytes(c, one, size);
	if (!c->socket)
		return;
	tell("client %u sends %u requests at once", c->number, (unsigned)count);
	send_pieces(c, c->size, NS_PER_MS, machine_now() + ANSWER_NS);
	for (uint64_t i = 0; i < count; i++) {
		enum outcome outcome = read_answer(c, false, machine_now() + ANSWER_NS);

		if (outcome == CLOSED && i == 0) {
			forget_socket(c);
			return;
		}
		if (outcome != ANSWERED || c->status != 200)
			FAIL("client %u: answer %u of %u requests at once: %s, %u", c->number,
			     (unsigned)i, (unsigned)count, outcomes[outcome], c->status);
	}
	end_exchange(c);
}

/* ---- the threads ---- */

static struct client *new_client(unsigned number)
{
	struct client *c = calloc(1, sizeof *c);

	if (!c)
		abort();
	c->number = number;
	for (unsigned i = 0; i < KEYS; i++)
		keys[number][i].picture = (unsigned)draw(GOOD);
	return c;
}

static void act(struct client *c)
{
	static void (*const acts[])(struct client *) = {
		upload, upload, upload,  download, download, look,
		delete, vanish, confuse, dawdle,   pipeline, administer,
	};

	acts[draw(COUNT_OF(acts))](c);
	pause_for(draw(4) ? 10 * NS_PER_MS : 3 * NS_PER_S);
}

void client_run(unsigned number)
{
	struct client *c = new_client(number);

	for (unsigned i = 0; i < ACTIONS; i++)
		act(c);
	forget_socket(c);
	free(c);
}

static void expect_zero(const struct client *c, const char *name)
{
	char member[64];
	const char *at;

	snprintf(member, sizeof member, "\"%s\":", name);
	at = strstr(c->body, member);
	if (!at || at[strlen(member)] != '0')
		FAIL("%s is %.20s after the last request", name,
		     at ? at + strlen(member) : "not in /stats");
}

void client_check_all(void)
{
	struct client *c = new_client(0);
	char path[PATH_SIZE];

	for (unsigned i = 0; i < photo_count; i++) {
		struct photo *p = &photos[i];
		unsigned variant = (unsigned)draw(COUNT_OF(variants));

		write_path(path, p, variant);
		get(c, path);
		check_file(c, p, variant, is_over(p), false);
	}
	forget_socket(c);
	machine_block(machine_now() + NS_PER_S); /* until the daemon knows that it has closed */
	need_socket(c, ADMIN_PORT);
	get(c, "/stats");
	if (c->status != 200)
		FAIL("/stats is answered %u", c->status);
	expect_zero(c, "in_flight");
	expect_zero(c, "waiting");
	expect_zero(c, "reserved_body_bytes");
	expect_zero(c, "reserved_image_bytes");
	expect_zero(c, "connections");
	forget_socket(c);
	free(c);
}
