/*
 * s3_client.c - a queue of operations, and a thread that runs them with libcurl.
 *
 * The thread waits in curl_multi_poll(), which curl_multi_wakeup() ends. What it alone uses is not
 * under the lock.
 */
#include "s3_client.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <curl/curl.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/network.h"
#include "base/opener.h"
#include "base/pool.h"
#include "base/random.h"
#include "conf/conf_endpoint.h"
#include "log/log.h"
#include "s3_sign.h"
#include "store/checksum.h"
#include "telemetry/counter.h"

#define LIBRARY "libcurl.so.4"
#define SUM_HEADER "x-amz-meta-darkroom-tag"
#define URL_MAX 14336 /* a list of keys behind one of S3_NAME_MAX, each byte escaped */
#define ERROR_BODY_MAX 4096
#define ADDRESS_MAX 1024
#define ADDRESSES_MAX 8
#define OBJECT_MAX (UINT64_C(64) << 30) /* bytes, as of limits.body_bytes */
#define RATE_MIN 4096 /* bytes/s; below it, for the time of store.s3_timeout, an attempt ends */
#define TIMEOUTS_MAX 12
#define CONNECTION_S 300L           /* of its age; a younger one is used again */
#define QUEUE_MAX 4096              /* operations that wait; further ones get -EBUSY */
#define BACKOFF_NS (50 * NS_PER_MS) /* the longest time before the second attempt */
#define BACKOFF_MAX_NS NS_PER_S
#define BREAKER_WEIGHT 16
#define BREAKER_TIMEOUT 8 /* the weight of a request that got no answer; that of others is 1 */
#define BREAKER_OPEN_NS NS_PER_S

static_assert(CURL_AT_LEAST_VERSION(7, 87, 0), "of CURLOPT_CA_CACHE_TIMEOUT");

/* One request at a time on one of libcurl's handles. */
struct transfer {
	struct client *client;
	CURL *easy;
	struct s3_op *op;                     /* NULL: free */
	struct curl_slist *headers, *resolve; /* resolve: the addresses of the endpoint */
	size_t put;                           /* put: bytes that libcurl has taken */
	curl_off_t moved;                     /* bytes of both directions so far */
	uint64_t moved_ns;                    /* when the last ones did */
	int err;                              /* of this side: no memory, or no room in `body` */
};

/*
 * While a store is away, requests fail at once and do not wait for it. The breaker opens when all
 * requests have failed for BREAKER_OPEN_NS, and their failures weigh BREAKER_WEIGHT together. So
 * neither a blip nor a pause of this process opens it. Any success closes it, such as that of a
 * probe. Reads and writes have a breaker each, because a store may fail at one of them only.
 * Zeroed: closed.
 */
struct breaker {
	uint64_t weight;   /* of the failures since the last success */
	uint64_t first_ns; /* when the first of these requests began */
	bool is_open;
};

/* A client, with what its own thread needs. */
struct client {
	struct s3_client shared;
	/* fixed */
	struct conf_endpoint endpoint;
	char base[CONF_TEXT_MAX + 32]; /* "http://[::1]:9000" */
	char host[CONF_TEXT_MAX + 16]; /* the Host field */
	struct conf_store conf;
	CURLM *multi;
	struct transfer *transfer;
	unsigned transfer_count;
	/* of the main thread */
	pthread_t thread;
	bool is_started, has_keys_failed; /* has_keys_failed: and logged */
	/* under the lock */
	pthread_mutex_t lock;
	struct s3_op *first, **end; /* operations that wait for their time, or for a handle */
	size_t waiting;
	struct s3_keys keys;
	/* Set before the last operations are taken under the lock. */
	_Atomic bool is_stopping;
	/* of the client's thread */
	char address[ADDRESS_MAX]; /* of the endpoint: "HOST:PORT:ADDRESS,..."; "": in its URL */
	int resolver_fd;           /* -1: there is no process that looks it up again */
	bool is_asked;
	uint64_t moved_ns; /* when it changed */
	struct breaker breaker[S3_SIDES];
	struct random random;
};

/* ---- libcurl ---- */

/* It brings 29 libraries, 6 MB and 6 ms to the start of a process, which a daemon with files does
 * not need. So it is loaded only here, and its functions are pointers. */
/* clang-format off */
#define CURL_FUNCTIONS(X) \
	X(global_init) X(slist_append) X(slist_free_all) \
	X(easy_init) X(easy_cleanup) X(easy_reset) X(easy_setopt) X(easy_getinfo) X(easy_header) \
	X(easy_strerror) \
	X(multi_init) X(multi_cleanup) X(multi_setopt) X(multi_add_handle) X(multi_remove_handle) \
	X(multi_info_read) X(multi_perform) X(multi_poll) X(multi_wakeup) X(getdate)
/* clang-format on */

static struct {
#define X(name) __typeof__(curl_##name) *name;
	CURL_FUNCTIONS(X)
#undef X
} curl;

/* Sets the pointer. Returns whether the library has the function. */
static bool load(void *library, const char *name, void *pointer)
{
	void *function = dlsym(library, name);

	memcpy(pointer, &function, sizeof function); /* POSIX: both kinds have the same size */
	return function;
}

/* Loads and initialises the library, which stays loaded. Returns 0, or -ENOENT with the reason
 * logged. */
static int load_curl(void)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	bool is_loaded = library;

#define X(name) is_loaded = is_loaded && load(library, "curl_" #name, &curl.name);
	CURL_FUNCTIONS(X)
#undef X
	if (is_loaded && curl.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
		return 0;
	log_error("store.kind = s3 needs libcurl 7.87 or later, which cannot be loaded: %s",
	          is_loaded ? "it has no memory" : dlerror());
	return -ENOENT;
}

/* ---- where the endpoint's name leads ---- */

/* Writes the addresses as libcurl reads them; "" if that fails. Returns 0 or as getaddrinfo(3). */
static int look_up(const struct conf_endpoint *e, char line[ADDRESS_MAX])
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct addrinfo *list;
	char host[NI_MAXHOST];
	struct text t;
	unsigned n = 0;
	int code = getaddrinfo(e->host, NULL, &hints, &list);

	line[0] = '\0';
	if (code)
		return code;
	text_init(&t, line, ADDRESS_MAX);
	text_printf(&t, "%s:%u:", e->host, e->port);
	for (const struct addrinfo *ai = list; ai && n < ADDRESSES_MAX; ai = ai->ai_next)
		if (getnameinfo(ai->ai_addr, ai->ai_addrlen, host, sizeof host, NULL, 0,
		                NI_NUMERICHOST) == 0)
			text_printf(&t, ai->ai_family == AF_INET6 ? "%s[%s]" : "%s%s",
			            n++ ? "," : "", host);
	freeaddrinfo(list);
	if (n > 0 && !t.overflowed)
		return 0;
	line[0] = '\0';
	return EAI_NONAME;
}

/* The sandbox has no resolver, and a name server may be silent for seconds. So a process without
 * the sandbox, forked before, looks the name up when it is asked. It can be asked nothing else. */
static void resolve(void *endpoint)
{
	char ask, line[ADDRESS_MAX];
	ssize_t n = 1;

	while (n > 0 && recv(0, &ask, 1, 0) == 1) {
		(void)look_up(endpoint, line);
		n = send(0, line, strlen(line) + 1, MSG_NOSIGNAL);
	}
}

/* Looks the name up, and starts the process, which ends when resolver_fd is closed. Returns 0, or
 * -errno with the reason logged. Blocks; before any thread starts. */
static int find_address(struct client *c)
{
	int code = look_up(&c->endpoint, c->address);

	if (code) {
		log_error("store.s3_endpoint: cannot look up %s: %s", c->endpoint.host,
		          gai_strerror(code));
		return -EHOSTUNREACH;
	}
	c->resolver_fd = opener_fork("darkroomd-dns", resolve, &c->endpoint);
	return c->resolver_fd < 0 ? c->resolver_fd : 0;
}

/* Takes its answer if that has come. */
static void take_address(struct client *c)
{
	char line[ADDRESS_MAX];
	ssize_t n = c->is_asked ? recv(c->resolver_fd, line, sizeof line, MSG_DONTWAIT) : 0;

	if (n <= 0)
		return;
	c->is_asked = false;
	if (!line[0] || strcmp(line, c->address) == 0)
		return;
	memcpy(c->address, line, (size_t)n);
	c->moved_ns = clock_ns();
	log_notice("store: the endpoint has moved to %s", c->address);
}

/* ---- operations ---- */

/* Releases what an attempt has received. */
static void reset(struct s3_op *op)
{
	size_t body_max = op->body_max > ERROR_BODY_MAX ? op->body_max : ERROR_BODY_MAX;

	text_fini(&op->body);
	text_init_growable(&op->body, body_max + 1);
}

static enum s3_side side_of(const struct s3_op *op)
{
	return op->verb == S3_PUT || op->verb == S3_DELETE ? S3_WRITES : S3_READS;
}

/* Ends an operation with its error. */
static void finish(struct client *c, struct s3_op *op, int err)
{
	op->err = err;
	if (err == S3_AWAY || err == S3_DAMAGED)
		counter_add_shared(&c->shared.counters.failed);
	atomic_fetch_sub_explicit(&c->shared.counters.in_flight, 1, memory_order_relaxed);
	op->done(op); /* which may free it */
}

/* Appends to the operations that wait, if there are fewer than max. Returns 0, -EBUSY or
 * -ECANCELED. */
static int enqueue(struct client *c, struct s3_op *op, size_t max)
{
	int err = 0;

	op->next = NULL;
	pthread_mutex_lock(&c->lock);
	if (c->is_stopping) {
		err = -ECANCELED;
	} else if (c->waiting >= max) {
		err = -EBUSY;
	} else {
		*c->end = op;
		c->end = &op->next;
		c->waiting++;
	}
	pthread_mutex_unlock(&c->lock);
	return err;
}

/* Takes the first operation that is due, or returns NULL. Lowers *next_ns to the time of those
 * before it, which are not. */
static struct s3_op *take_due(struct client *c, uint64_t now, uint64_t *next_ns)
{
	struct s3_op *op, **at = &c->first;

	pthread_mutex_lock(&c->lock);
	for (; (op = *at) && op->due_ns > now; at = &op->next)
		*next_ns = op->due_ns < *next_ns ? op->due_ns : *next_ns;
	if (op) {
		*at = op->next;
		c->end = op->next ? c->end : at;
		c->waiting--;
	}
	pthread_mutex_unlock(&c->lock);
	return op;
}

void s3_client_submit(struct s3_client *shared, struct s3_op *op)
{
	struct client *c = (struct client *)shared;
	_Atomic uint64_t *const counters[] = { [S3_GET] = &c->shared.counters.gets,
		                               [S3_PUT] = &c->shared.counters.puts,
		                               [S3_DELETE] = &c->shared.counters.deletes,
		                               [S3_LIST] = &c->shared.counters.lists };

	op->err = 0;
	op->attempts = 0;
	op->etag[0] = '\0';
	op->body = (struct text){ 0 };
	reset(op);
	op->due_ns = 0;
	op->end_ns = clock_ns() + 4 * c->conf.s3_timeout_ms * NS_PER_MS;
	counter_add_shared(counters[op->verb]);
	atomic_fetch_add_explicit(&c->shared.counters.in_flight, 1, memory_order_relaxed);
	int err = enqueue(c, op, QUEUE_MAX);

	if (err)
		finish(c, op, err);
	else
		curl.multi_wakeup(c->multi);
}

static void run_done(struct s3_op *op)
{
	sem_post(op->arg);
}

void s3_client_run(struct s3_client *c, struct s3_op *ops, size_t count)
{
	size_t started = 0;
	sem_t ended;

	sem_init(&ended, 0, 0);
	for (size_t i = 0; i < count; i++) {
		if (!ops[i].verb)
			continue;
		ops[i].done = run_done;
		ops[i].arg = &ended;
		s3_client_submit(c, &ops[i]);
		started++;
	}
	while (started > 0)
		started -= sem_wait(&ended) == 0; /* a signal may interrupt it */
	sem_destroy(&ended);
}

/* ---- the request ---- */

/* Appends the escaped path of a key with its bucket, and the query of a list. Its names stand in
 * order, as they must be signed. */
static void write_target(const struct client *c, const struct s3_op *op, struct text *url)
{
	text_puts(url, "/");
	s3_escape(url, c->conf.s3_bucket, false);
	if (op->verb != S3_LIST) {
		text_puts(url, "/");
		s3_escape(url, c->conf.s3_prefix, true);
		s3_escape(url, op->key, true);
		return;
	}
	text_printf(url, "?list-type=2&max-keys=%u&prefix=", op->max);
	s3_escape(url, c->conf.s3_prefix, false);
	s3_escape(url, op->key, false);
	if (!*op->after)
		return;
	text_puts(url, "&start-after=");
	s3_escape(url, c->conf.s3_prefix, false);
	s3_escape(url, op->after, false);
}

static const char *method_of(const struct s3_op *op)
{
	return op->verb == S3_PUT ? "PUT" : op->verb == S3_DELETE ? "DELETE" : "GET";
}

/* "": without the header. */
static void add_header(struct text *lines, const char *name, const char *value)
{
	if (*value)
		text_printf(lines, "%s:%s\n", name, value);
}

/* Writes the headers that are signed, in order, and signs them. */
static bool sign(const struct client *c, const struct s3_op *op, const struct s3_keys *keys,
                 const char *target, struct text *lines, char authorization[S3_AUTHORIZATION_MAX])
{
	char date[S3_DATE_MAX], hash[S3_HASH_MAX] = S3_UNSIGNED, sum[CHECKSUM_LENGTH + 1] = "";

	s3_date(time(NULL), date);
	/* The store refuses content that has another hash. With the SHA instructions of today's
	 * processors that takes half the CPU time of an MD5, which the store would return as the
	 * entity tag. */
	if (op->verb == S3_PUT)
		s3_hash(op->piece, op->piece_count, hash);
	if (op->verb == S3_PUT && op->piece_count == 1)
		checksum_of(op->piece->iov_base, op->piece->iov_len, sum);
	add_header(lines, "host", c->host);
	add_header(lines, op->match[0] == '*' ? "if-none-match" : "if-match", op->match);
	add_header(lines, "x-amz-content-sha256", hash);
	add_header(lines, "x-amz-date", date);
	add_header(lines, SUM_HEADER, sum);
	add_header(lines, "x-amz-security-token", keys->session);
	return !lines->overflowed && s3_sign(keys,
	                                     &(struct s3_request){ c->conf.s3_region, method_of(op),
	                                                           target, lines->data, hash },
	                                     date, authorization);
}

/* Lists the headers of the request. Returns 0 or -errno. */
static int add_headers(struct transfer *t, const struct s3_keys *keys, const char *target)
{
	char data[S3_HEADERS_MAX], authorization[S3_AUTHORIZATION_MAX] = "", *rest = NULL;
	struct text lines;

	text_init(&lines, data, sizeof data);
	bool is_signed = sign(t->client, t->op, keys, target, &lines, authorization);

	add_header(&lines, "authorization", authorization);
	add_header(&lines, "content-type", t->op->verb == S3_PUT ? "application/octet-stream" : "");
	text_puts(&lines, "expect:\n"); /* libcurl would wait for a "100 Continue" */
	int err = is_signed && !lines.overflowed ? 0 : -EINVAL;

	(void)strtok_r(data, "\n", &rest); /* "host", which libcurl writes */
	for (char *line; !err && (line = strtok_r(NULL, "\n", &rest));) {
		struct curl_slist *list = curl.slist_append(t->headers, line);

		err = list ? 0 : -ENOMEM;
		t->headers = list ? list : t->headers;
	}
	explicit_bzero(data, sizeof data);
	return err;
}

/* For CURLOPT_READFUNCTION: the next bytes of what is put. */
static size_t on_read(char *to, size_t one, size_t room, void *arg)
{
	struct transfer *t = arg;
	size_t n = 0, before = t->put;

	(void)one;
	for (unsigned i = 0; i < t->op->piece_count && n < room; i++) {
		const struct iovec *piece = &t->op->piece[i];
		size_t at = before < piece->iov_len ? before : piece->iov_len;
		size_t left = piece->iov_len - at, now = left < room - n ? left : room - n;

		memcpy(to + n, (const char *)piece->iov_base + at, now);
		n += now;
		before -= at;
	}
	t->put += n;
	return n;
}

/* For CURLOPT_SEEKFUNCTION: libcurl sends a request again, from its beginning, if a connection that
 * it kept has ended. */
static int on_seek(void *arg, curl_off_t offset, int origin)
{
	struct transfer *t = arg;

	t->put = 0;
	return offset == 0 && origin == SEEK_SET ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL;
}

/* For CURLOPT_XFERINFOFUNCTION, at least once a second: ends a transfer in which nothing moves.
 * LOW_SPEED_LIMIT sees an average of some seconds, in which an upload is fast. */
static int on_progress(void *arg, curl_off_t total, curl_off_t got, curl_off_t to_send,
                       curl_off_t sent)
{
	struct transfer *t = arg;
	uint64_t now = clock_ns();

	(void)total, (void)to_send;
	if (got + sent != t->moved)
		t->moved_ns = now;
	t->moved = got + sent;
	return now - t->moved_ns > t->client->conf.s3_timeout_ms * NS_PER_MS;
}

static long status_of(const struct transfer *t)
{
	long status = 0;

	curl.easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	return status;
}

/* Returns whether the body is what was asked for. 206: a part of it (RFC 9110, 15.3.7). */
static bool is_content(const struct transfer *t)
{
	long status = status_of(t);

	return status == 200 || (status == 206 && t->op->part_max);
}

/* For CURLOPT_WRITEFUNCTION; arg: the transfer. */
static size_t on_body(char *data, size_t one, size_t size, void *arg)
{
	struct transfer *t = arg;
	struct s3_op *op = t->op;
	bool has_content = is_content(t) && side_of(op) == S3_READS;
	size_t room = (has_content ? op->body_max : ERROR_BODY_MAX) - op->body.length;

	(void)one;
	if (size > room && has_content)
		t->err = -EFBIG;
	else /* of the page of a proxy, the beginning will do */
		text_put(&op->body, data, size < room ? size : room);
	if (op->body.overflowed)
		t->err = -ENOMEM;
	return t->err ? 0 : size; /* 0: libcurl ends the transfer */
}

/* Sets the options; a handle that libcurl cannot set up has no memory. */
static int set_options(struct transfer *t, const char *url)
{
	const struct client *c = t->client;
	const struct s3_op *op = t->op;
	long timeout_ms = (long)c->conf.s3_timeout_ms;
	long moved_s = (long)((clock_ns() - c->moved_ns) / NS_PER_S);
	char range[48];
	bool is_bad = false;

	snprintf(range, sizeof range, "%" PRIu64 "-%" PRIu64, op->at, op->at + op->part_max - 1);
#define SET(option, value) \
	(is_bad |= curl.easy_setopt(t->easy, CURLOPT_##option, value) != CURLE_OK)
	curl.easy_reset(t->easy);
	SET(URL, url);
	SET(PROTOCOLS_STR, "http,https");
	SET(HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	SET(PATH_AS_IS, 1L);
	SET(NOSIGNAL, 1L);
	SET(PROXY, "");
	SET(RESOLVE, t->resolve);
	/* A connection from before the endpoint moved leads to where it was. */
	SET(FRESH_CONNECT, c->breaker[side_of(op)].is_open || moved_s < 3 ? 1L : 0L);
	SET(MAXLIFETIME_CONN, moved_s < 3 || moved_s > CONNECTION_S ? CONNECTION_S : moved_s - 1);
	SET(HTTPHEADER, t->headers);
	SET(PRIVATE, (char *)t);
	SET(WRITEFUNCTION, on_body);
	SET(WRITEDATA, t);
	SET(CONNECTTIMEOUT_MS, timeout_ms / 2);
	SET(NOPROGRESS, 0L);
	SET(XFERINFOFUNCTION, on_progress);
	SET(XFERINFODATA, t);
	SET(LOW_SPEED_LIMIT, (long)RATE_MIN);
	SET(LOW_SPEED_TIME, (timeout_ms + 999) / 1000);
	SET(TIMEOUT_MS, timeout_ms * TIMEOUTS_MAX);
	if (c->endpoint.is_tls) {
		SET(CAINFO, c->conf.s3_ca_file);
		SET(CA_CACHE_TIMEOUT, -1L);
	}
	if (op->part_max)
		SET(RANGE, range);
	SET(CUSTOMREQUEST, method_of(op));
	return is_bad ? -ENOMEM : 0;
}

/* The same of what is put, in pieces, which POSTFIELDS cannot take. */
static int set_upload(struct transfer *t)
{
	curl_off_t size = 0;
	bool is_bad = false;

	t->put = 0;
	if (t->op->verb != S3_PUT)
		return 0;
	for (unsigned i = 0; i < t->op->piece_count; i++)
		size += (curl_off_t)t->op->piece[i].iov_len;
	SET(UPLOAD, 1L);
	SET(UPLOAD_BUFFERSIZE, 256L << 10); /* one system call sends most images */
	SET(INFILESIZE_LARGE, size);
	SET(READFUNCTION, on_read);
	SET(READDATA, t);
	SET(SEEKFUNCTION, on_seek);
	SET(SEEKDATA, t);
#undef SET
	return is_bad ? -ENOMEM : 0;
}

/* Prepares the request of an operation, signed now. Returns 0 or -errno. */
static int prepare(struct transfer *t, const struct s3_keys *keys)
{
	struct client *c = t->client;
	const struct s3_op *op = t->op;
	char data[URL_MAX];
	struct text url;

	t->moved = 0;
	t->moved_ns = op->began_ns;
	text_init(&url, data, sizeof data);
	text_puts(&url, c->base);
	write_target(c, op, &url);
	int err = url.overflowed ? -EINVAL : 0;

	if (c->address[0])
		t->resolve = curl.slist_append(NULL, c->address);
	if (!err)
		err = add_headers(t, keys, data + strlen(c->base));
	if (!err)
		err = set_options(t, data);
	return err ? err : set_upload(t);
}

/* ---- the answer ---- */

/* Copies the value of a field of the answer; "" if there is none, or it is too long. */
static void take_field(const struct transfer *t, const char *name, char *value, size_t size)
{
	struct curl_header *header;
	int length = 0;

	if (curl.easy_header(t->easy, name, 0, CURLH_HEADER, -1, &header) == CURLHE_OK)
		length = snprintf(value, size, "%s", header->value);
	/* Of an empty field libcurl (7.88) gives the line end. */
	if (length <= 0 || (size_t)length >= size || (unsigned char)value[0] <= ' ')
		value[0] = '\0';
}

/* The same of a date. 0: there is none. */
static time_t take_date(const struct transfer *t, const char *name)
{
	char date[64];

	take_field(t, name, date, sizeof date);
	time_t when = curl.getdate(date, NULL);

	return when > 0 ? when : 0;
}

/* Sets what the answer is of the object. Returns whether that is what was asked for. */
static bool is_part(const struct transfer *t)
{
	struct s3_op *op = t->op;
	uint64_t first, last, total, length = op->body.length;
	char range[96], more;

	if (status_of(t) == 200) {
		op->total = length;
		return op->at == 0;
	}
	take_field(t, "Content-Range", range, sizeof range); /* RFC 9110, 14.4 */
	if (sscanf(range, "bytes %" SCNu64 "-%" SCNu64 "/%" SCNu64 "%c", &first, &last, &total,
	           &more) != 3)
		return false;
	op->total = total;
	return first == op->at && last < total && total <= OBJECT_MAX &&
	       last - first + 1 == length && (length == op->part_max || last + 1 == total);
}

/* Returns 0 if the content is what was asked for, or as judge(). */
static int judge_content(const struct transfer *t)
{
	const struct s3_op *op = t->op;
	char sum[CHECKSUM_LENGTH + 32], own[CHECKSUM_LENGTH + 1]; /* a former sum may have more */

	if (!is_part(t))
		return S3_DAMAGED;
	if (op->judge)
		return op->judge(op);
	take_field(t, SUM_HEADER, sum, sizeof sum);
	checksum_of(op->body.data, op->body.length, own);
	return strncmp(sum, own, CHECKSUM_LENGTH) == 0 ? 0 : S3_DAMAGED;
}

/* ---- the store's clock ---- */

/* Only an answer that came soon tells that the clocks agree. A store refuses a request that was
 * signed by a clock that is 15 minutes off. So an answer that tells more than S3_SKEW_MAX_S is
 * wrong, and images would end by it. */
static void note_skew(struct client *c, const struct s3_op *op)
{
	time_t now = time(NULL), took = (time_t)((clock_ns() - op->began_ns) / NS_PER_S) + 1;
	int64_t skew = s3_skew_of(op->date, now, took);

	if (!op->date || (!skew && took > 2))
		return;
	uint64_t off = (uint64_t)(skew < 0 ? -skew : skew),
		 old = atomic_exchange(&c->shared.counters.skew_s, off);
	bool is_usable = off <= S3_SKEW_MAX_S;

	atomic_store(&c->shared.skew_s, is_usable ? skew : 0);
	if (off && !old)
		log_warning("store: this node's clock is %" PRIu64 " s %s that of %s; ends of "
		            "images are by the latter%s",
		            off, skew < 0 ? "ahead of" : "behind", c->base,
		            is_usable ? "" : " only if that is at most a day");
	else if (old && !off)
		log_notice("store: this node's clock agrees with that of %s again", c->base);
}

int64_t s3_client_skew(const struct s3_client *c)
{
	return c ? atomic_load_explicit(&c->skew_s, memory_order_relaxed) : 0;
}

/* ---- verdicts ---- */

enum verdict {
	DONE = 1, /* op->err is 0, the object's state, or of this side */
	RETRY,    /* the store lives, and its answer is not the one that is wanted */
	GONE      /* it does not answer, or says that it cannot */
};

/* Counts and logs that an attempt has failed. */
static enum verdict failed(struct transfer *t, int err, _Atomic uint64_t *counter, const char *what,
                           enum verdict verdict)
{
	struct s3_op *op = t->op;

	op->err = err;
	counter_add_shared(counter);
	log_warning("store: %s %s: %s; attempt %u of %u", method_of(op), op->key, what,
	            op->attempts, S3_ATTEMPTS_MAX);
	return verdict;
}

/* Returns what a status tells of the object, or 0: it tells nothing of it. */
static int state_of(const struct s3_op *op, long status, const char *code)
{
	if (status == 404 && strcmp(code, "NoSuchKey") == 0)
		return op->verb == S3_GET || op->verb == S3_DELETE || op->match[0] ? -ENOENT : 0;
	if (status == 416 && op->at) /* another, shorter object has its place */
		return -ENOENT;
	if (!op->match[0])
		return 0;
	return status == 412 ? -EEXIST : status == 501 ? -EOPNOTSUPP : 0;
}

/* Returns what an answer tells that says of itself that it is good: 0, or an error. */
static int judge_good(const struct transfer *t)
{
	const struct s3_op *op = t->op;

	if (op->verb == S3_DELETE)
		return 0;
	if (op->verb == S3_LIST)
		return s3_list_is_right(op->body.data, op->body.length, t->client->conf.s3_prefix,
		                        op->key, op->after)
		               ? 0
		               : S3_DAMAGED;
	if (!op->etag[0]) /* it is of no object */
		return S3_DAMAGED;
	return op->verb == S3_GET ? judge_content(t) : 0;
}

/* Judges an answer without an error of the connection: sets op->err and the results. */
static enum verdict judge_answer(struct transfer *t)
{
	struct s3_counters *counters = &t->client->shared.counters;
	struct s3_op *op = t->op;
	char code[64], what[96];
	long status = status_of(t);
	bool is_good = op->verb == S3_DELETE ? status == 204 || status == 200 : is_content(t);

	take_field(t, "ETag", op->etag, sizeof op->etag);
	if (strncmp(op->etag, "W/", 2) ==
	    0) /* of a proxy; only strong ones match (RFC 9110, 8.8.3) */
		memmove(op->etag, op->etag + 2, sizeof op->etag - 2);
	op->date = take_date(t, "Date");
	op->modified = take_date(t, "Last-Modified");
	note_skew(t->client, op);
	if (is_good) {
		op->err = judge_good(t);
		return op->err != S3_DAMAGED
		               ? DONE
		               : failed(t, S3_DAMAGED, &counters->damaged,
		                        "the answer is not right: content or entity tag", RETRY);
	}
	s3_get_code(op->body.data, op->body.length, code, sizeof code);
	op->err = state_of(op, status, code);
	if (op->err)
		return DONE;
	snprintf(what, sizeof what, "status %ld%s%s", status, *code ? ": " : "", code);
	if (status == 507 || strcmp(code, "QuotaExceeded") == 0) /* it serves what it has */
		return failed(t, -ENOSPC, &counters->rejected, what, DONE);
	/* Ceph's gateway answers 408 while its disks are away, and 403 later. */
	bool is_gone = status >= 500 || status == 403 || status == 408 || status == 429;

	return failed(t, status == 409 && op->match[0] ? -EAGAIN : S3_AWAY, &counters->rejected,
	              what, is_gone ? GONE : RETRY);
}

/* Judges an attempt, with the operation's results filled in. */
static enum verdict judge(struct transfer *t, CURLcode result)
{
	struct s3_counters *counters = &t->client->shared.counters;

	t->op->err = t->err;
	if (t->err)
		return DONE;
	if (result == CURLE_OK)
		return judge_answer(t);
	return failed(t, S3_AWAY,
	              result == CURLE_OPERATION_TIMEDOUT ? &counters->timeouts
	              : result == CURLE_PARTIAL_FILE     ? &counters->damaged
	                                                 : &counters->broken,
	              curl.easy_strerror(result), GONE);
}

/* ---- a store that is away ---- */

/* Notes the result of a request. weight: of a failure; 0: it has succeeded. Returns whether the
 * breaker has opened or closed. */
static bool breaker_note(struct breaker *b, unsigned weight, uint64_t began_ns, uint64_t now_ns)
{
	bool was_open = b->is_open;

	if (!b->weight)
		b->first_ns = began_ns;
	b->weight = weight ? b->weight + weight : 0;
	b->is_open = weight && (was_open || (b->weight >= BREAKER_WEIGHT &&
	                                     now_ns - b->first_ns >= BREAKER_OPEN_NS));
	return b->is_open != was_open;
}

static void note_result(struct client *c, const struct s3_op *op, unsigned weight)
{
	struct s3_counters *counters = &c->shared.counters;
	enum s3_side side = side_of(op);
	const char *done = side == S3_READS ? "read" : "written";

	if (!breaker_note(&c->breaker[side], weight, op->began_ns, clock_ns()))
		return;
	if (weight && !s3_is_away(counters)) /* otherwise it is the same outage */
		counter_add_shared(&counters->outages);
	atomic_store(&counters->is_away[side], weight != 0);
	if (weight)
		log_error("store: %s does not answer as it should; responding 503 where it is %s, "
		          "and trying again every %d ms",
		          c->base, done, S3_PROBE_MS);
	else
		log_notice("store: %s answers again; serving where it is %s", c->base, done);
}

/* ---- attempts ---- */

/* Lets the operation wait for another attempt, or ends it. */
static void try_later(struct client *c, struct s3_op *op)
{
	uint64_t longest = BACKOFF_NS << (op->attempts - 1);
	int err = op->err;

	longest = longest < BACKOFF_MAX_NS ? longest : BACKOFF_MAX_NS;
	op->due_ns = clock_ns() + random_next(&c->random) % longest;
	if (op->attempts < S3_ATTEMPTS_MAX && op->due_ns < op->end_ns && !op->is_probe)
		err = enqueue(c, op, SIZE_MAX);
	if (err)
		finish(c, op, err);
}

/* Ends an attempt. The handle is free then. */
static void end(struct transfer *t, CURLcode result)
{
	struct client *c = t->client;
	struct s3_op *op = t->op;

	curl.multi_remove_handle(c->multi, t->easy);
	if (result == CURLE_ABORTED_BY_CALLBACK) /* on_progress() */
		result = CURLE_OPERATION_TIMEDOUT;
	enum verdict verdict = judge(t, result);

	if (op->err || side_of(op) == S3_WRITES)
		reset(op);
	curl.slist_free_all(t->headers);
	curl.slist_free_all(t->resolve);
	t->headers = t->resolve = NULL;
	t->op = NULL;
	if (verdict == GONE)
		note_result(c, op, result == CURLE_OPERATION_TIMEDOUT ? BREAKER_TIMEOUT : 1);
	else if (!t->err)
		note_result(c, op, 0);
	if (verdict == DONE)
		finish(c, op, op->err);
	else
		try_later(c, op);
}

static void start(struct transfer *t, struct s3_op *op)
{
	struct client *c = t->client;
	struct s3_keys keys;

	t->op = op;
	if (op->is_probe && c->breaker[side_of(op)].is_open && c->resolver_fd >= 0 && !c->is_asked)
		c->is_asked = send(c->resolver_fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
	if (op->attempts++)
		counter_add_shared(&c->shared.counters.retried);
	op->began_ns = clock_ns();
	pthread_mutex_lock(&c->lock);
	keys = c->keys;
	pthread_mutex_unlock(&c->lock);
	t->err = prepare(t, &keys);
	explicit_bzero(&keys, sizeof keys);
	if (!t->err && curl.multi_add_handle(c->multi, t->easy) != CURLM_OK)
		t->err = -ENOMEM;
	if (t->err)
		end(t, CURLE_OK);
}

static struct transfer *find_idle(struct client *c)
{
	unsigned i = 0;

	while (i < c->transfer_count && c->transfer[i].op)
		i++;
	return i < c->transfer_count ? &c->transfer[i] : NULL;
}

/* Returns whether the operation may not be tried now. */
static bool is_refused(const struct client *c, const struct s3_op *op)
{
	if (op->verb == S3_PUT && !atomic_load(&c->shared.is_fit) && strcmp(op->key, S3_PROBE) != 0)
		return true;
	/* In a drain nobody probes any more: each operation may find that the store is back. */
	return c->breaker[side_of(op)].is_open && !op->is_probe &&
	       !atomic_load(&c->shared.are_lists_over);
}

/* Starts what is due and has a handle. A repetition may have waited for the handle until its
 * operation's time was over. Returns the ms until something else is due. */
static int start_due(struct client *c)
{
	uint64_t now = clock_ns(), next_ns = now + NS_PER_S;
	struct transfer *t;
	struct s3_op *op;

	take_address(c);
	while ((t = find_idle(c)) && (op = take_due(c, now, &next_ns))) {
		if (op->attempts && now >= op->end_ns) {
			finish(c, op, op->err);
		} else if (!is_refused(c, op)) {
			start(t, op);
		} else {
			counter_add_shared(&c->shared.counters.refused);
			finish(c, op, S3_AWAY);
		}
	}
	return next_ns > now ? (int)((next_ns - now) / NS_PER_MS) + 1 : 0;
}

/* Ends what libcurl has ended. */
static void end_transfers(struct client *c)
{
	CURLMsg *message;
	int left;

	while ((message = curl.multi_info_read(c->multi, &left))) {
		struct transfer *t = NULL;

		if (message->msg != CURLMSG_DONE)
			continue;
		CURLcode result = message->data.result; /* the message ends with the handle */

		curl.easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&t);
		end(t, result);
	}
}

/* ---- the thread ---- */

/* Ends all operations. */
static void cancel_all(struct client *c)
{
	uint64_t ignored = 0;
	struct s3_op *op;

	for (unsigned i = 0; i < c->transfer_count; i++)
		if (c->transfer[i].op) {
			c->transfer[i].err = -ECANCELED;
			end(&c->transfer[i], CURLE_OK);
		}
	while ((op = take_due(c, UINT64_MAX, &ignored)))
		finish(c, op, -ECANCELED);
}

/* Runs until is_stopping. */
static void *run(void *arg)
{
	struct client *c = arg;
	CURLMcode result = CURLM_OK;
	int running;

	pthread_setname_np(pthread_self(), "s3");
	while (!c->is_stopping && result == CURLM_OK) {
		result = curl.multi_perform(c->multi, &running);
		end_transfers(c);
		int wait_ms = start_due(c); /* libcurl does not wait for what is started here */

		if (result == CURLM_OK)
			result = curl.multi_poll(c->multi, NULL, 0, wait_ms, NULL);
	}
	if (result != CURLM_OK)
		log_error("store: no memory for its event loop; no object can be read or written "
		          "until the next start");
	c->is_stopping = true;
	cancel_all(c);
	pool_thread_fini();
	return NULL;
}

bool s3_is_away(const struct s3_counters *counters)
{
	return atomic_load(&counters->is_away[S3_READS]) ||
	       atomic_load(&counters->is_away[S3_WRITES]);
}

/* ---- life ---- */

void s3_client_check_keys(struct s3_client *shared)
{
	struct client *c = (struct client *)shared;
	struct s3_keys keys;
	int err = s3_keys_read(c->conf.s3_credentials, &keys);

	if (err && !c->has_keys_failed)
		log_error("store.s3_credentials: cannot read %s: %s; the earlier keys stay",
		          c->conf.s3_credentials,
		          err == -EINVAL ? "expected aws_access_key_id and aws_secret_access_key"
		                         : strerror(-err));
	c->has_keys_failed = err != 0;
	if (!err && memcmp(&keys, &c->keys, sizeof keys) != 0) {
		if (c->keys.id[0])
			log_notice(
				"store.s3_credentials: the keys have changed; using the new ones");
		pthread_mutex_lock(&c->lock);
		c->keys = keys;
		pthread_mutex_unlock(&c->lock);
	}
	explicit_bzero(&keys, sizeof keys);
}

/* Finds out where the store is. Returns 0, or -errno with the reason logged. Blocks. */
static int find_store(struct client *c)
{
	uint8_t address[NETWORK_ADDRESS_SIZE];
	char port[8] = "";

	if (!conf_endpoint_parse(c->conf.s3_endpoint, &c->endpoint))
		return -EINVAL;
	const char *host = c->endpoint.host;
	bool is_ipv6 = strchr(host, ':') != NULL;

	if (!c->endpoint.has_usual_port)
		snprintf(port, sizeof port, ":%u", c->endpoint.port);
	snprintf(c->host, sizeof c->host, is_ipv6 ? "[%s]%s" : "%s%s", host, port);
	snprintf(c->base, sizeof c->base, "%s://%s", c->endpoint.is_tls ? "https" : "http",
	         c->host);
	return network_parse_address(host, strlen(host), address) ? 0 : find_address(c);
}

/* Makes a handle for each connection. Returns 0 or -ENOMEM. */
static int make_transfers(struct client *c, unsigned count)
{
	long connections = (long)count;

	c->multi = curl.multi_init();
	c->transfer = calloc(count, sizeof *c->transfer);
	if (!c->multi || !c->transfer ||
	    curl.multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, connections) ||
	    curl.multi_setopt(c->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, connections))
		return -ENOMEM;
	for (unsigned i = 0; i < count; i++) {
		struct transfer *t = &c->transfer[c->transfer_count++];

		t->client = c;
		t->easy = curl.easy_init();
		if (!t->easy)
			return -ENOMEM;
	}
	return 0;
}

int s3_client_open(struct s3_client **out, const struct conf *conf)
{
	struct client *c = calloc(1, sizeof *c);

	*out = c ? &c->shared : NULL;
	if (!c)
		return -ENOMEM;
	c->conf = conf->store;
	c->shared.prefix_length = strlen(c->conf.s3_prefix);
	pthread_mutex_init(&c->lock, NULL);
	c->end = &c->first;
	c->resolver_fd = -1;
	c->random = random_stream(clock_ns(), (uint64_t)getpid());
	int err = load_curl();

	if (!err)
		err = find_store(c);
	if (!err)
		err = make_transfers(c, (unsigned)conf->experiment.s3_connections);
	if (err) {
		log_error("store: cannot make the client of %s: %s", conf->store.s3_endpoint,
		          strerror(-err));
		return err;
	}
	s3_client_check_keys(*out);
	return c->has_keys_failed ? -EACCES : 0;
}

int s3_client_start(struct s3_client *shared)
{
	struct client *c = (struct client *)shared;
	int err = c ? -pthread_create(&c->thread, NULL, run, c) : 0;

	if (err)
		log_error("store: cannot start its thread: %s", strerror(-err));
	if (c)
		c->is_started = !err;
	return err;
}

void s3_client_stop(struct s3_client *shared)
{
	struct client *c = (struct client *)shared;

	if (!c || !c->is_started)
		return;
	c->is_stopping = true;
	curl.multi_wakeup(c->multi);
	pthread_join(c->thread, NULL);
	c->is_started = false;
}

void s3_client_close(struct s3_client *shared)
{
	struct client *c = (struct client *)shared;

	if (!c)
		return;
	s3_client_stop(shared);
	for (unsigned i = 0; i < c->transfer_count; i++)
		curl.easy_cleanup(c->transfer[i].easy);
	if (c->multi)
		curl.multi_cleanup(c->multi);
	if (c->resolver_fd >= 0)
		close(c->resolver_fd);
	free(c->transfer);
	explicit_bzero(&c->keys, sizeof c->keys);
	pthread_mutex_destroy(&c->lock);
	free(c);
}
