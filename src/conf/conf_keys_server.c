/*
 * conf_keys_server.c - rows of the table of keys: [server] and [limits].
 */
#include "base/check.h"
#include "conf.h"
#include "conf_keys.h"
#include "log/log.h"

#define GIB (UINT64_C(1) << 30)
#define SIDE_MAX 65500 /* pixels of an image; libjpeg's JPEG_MAX_DIMENSION */
static const struct conf_choice respond_choices[] = { { "store", CONF_RESPOND_STORE },
	                                              { "decode", CONF_RESPOND_DECODE },
	                                              { 0 } };
static const struct conf_choice durability_choices[] = { { "none", CONF_DURABILITY_NONE },
	                                                 { "process", CONF_DURABILITY_PROCESS },
	                                                 { "power", CONF_DURABILITY_POWER },
	                                                 { 0 } };
static const struct conf_choice damaged_choices[] = { { "reject", CONF_DAMAGED_REJECT },
	                                              { "accept", CONF_DAMAGED_ACCEPT },
	                                              { 0 } };
static const struct conf_choice sandbox_choices[] = { { "auto", CONF_SANDBOX_AUTO },
	                                              { "off", CONF_SANDBOX_OFF },
	                                              { 0 } };
static const struct conf_key rows[] = {
	{
		CONF_KEY(server, listen, listen),
		.type = CONF_TYPE_LISTEN,
		.min = 1,
		.default_value = "127.0.0.1:8080",
		.help = "Address to listen on. Port 0 takes any free port, which the log names.",
	},
	{
		CONF_KEY(server, admin_listen, admin_listen),
		.type = CONF_TYPE_ADMIN,
		.min = 1,
		.default_value = "auto",
		.help = "Address for /stats and /metrics. It also serves /healthz and /readyz, and\n"
			"nothing else. A Unix socket gets the mode 0660 less the umask.\n"
			"auto: 127.0.0.1:8081, unless server.listen serves them. no: no such address.",
	},
	{
		CONF_KEY(server, agent_listen, agent_listen),
		.type = CONF_TYPE_LISTEN,
		.default_value = "",
		.help = "Address that answers the agent-check of HAProxy with the free share of the room\n"
			"for uploads, such as up 75%: its weight. Empty: no such address.",
	},
	{
		CONF_KEY(server, admin_on_public, admin_on_public),
		.type = CONF_TYPE_CHOICE,
		.choices = conf_yes_no_auto,
		.default_value = "auto",
		.help = "Whether server.listen serves /stats and /metrics as well. auto: only if it is\n"
			"a loopback address. A proxy on this machine makes that public: then set no,\n"
			"or let the proxy pass on /images only.",
	},
	{
		CONF_KEY(server, public_list, public_list),
		.type = CONF_TYPE_CHOICE,
		.choices = conf_yes_no,
		.default_value = "no",
		.is_live = true,
		.help = "Whether GET /images lists all images for every client. Otherwise it serves\n"
			"server.admin_listen, and tokens that may list.",
	},
	{
		CONF_KEY(server, root, root),
		.type = CONF_TYPE_PATH,
		.min = 1,
		.default_value = "/var/lib/darkroom",
		.help = "Directory of the stored images: ROOT/SPAN/XX/ID/{image.json,VARIANT.jpg}, where\n"
			"SPAN and XX are the first characters of ID. It is created if it is missing, its\n"
			"parents are not. It belongs to one daemon at a time. If it is deleted and made\n"
			"again, the daemon uses the new one; the sandbox permits this if the parent\n"
			"directory holds nothing else at the start.",
	},
	{
		CONF_KEY(server, respond_after, respond_after),
		.type = CONF_TYPE_CHOICE,
		.choices = respond_choices,
		.default_value = "store",
		.is_live = true,
		.help = "When an upload is answered: with 201 when all variants are stored, or with\n"
			"202 when all images are decoded. A client asks for the latter with the\n"
			"header Prefer: respond-async.",
	},
	{
		CONF_KEY(server, durability, durability),
		.type = CONF_TYPE_CHOICE,
		.choices = durability_choices,
		.default_value = "process",
		.is_live = true,
		.help = "What an upload survives once it was answered 201:\n"
			"  none, process  a crash of the daemon; an image is complete or absent\n"
			"  power          also a loss of power, if the disk keeps its promises\n"
			"With power the file system is flushed before the answer, once for all images\n"
			"that wait. This also writes out files of other programs: give the store a\n"
			"file system of its own if there are many. Linux before 5.8 hides some errors.\n"
			"An upload that was answered 202 survives the same, except with none. Its file\n"
			"is kept in ROOT/.spool until its variants are stored. After a crash the next\n"
			"start processes it again under the same id.",
	},
	{
		CONF_KEY(server, keep_originals, keep_originals),
		.type = CONF_TYPE_CHOICE,
		.choices = conf_yes_no,
		.default_value = "no",
		.is_live = true,
		.help = "Whether the uploaded file is stored next to its variants, as original.jpg.\n"
			"Its metadata may tell where it was taken, so it is served only to tokens with\n"
			"the scope original. Its memory is held until it is stored.",
	},
	{
		CONF_KEY(server, damaged, damaged),
		.type = CONF_TYPE_CHOICE,
		.choices = damaged_choices,
		.default_value = "reject",
		.is_live = true,
		.help = "JPEGs that have lost pixel data (truncated, or with unreadable parts): reject\n"
			"them with 422, or accept what can be decoded and report \"damaged\": true.\n"
			"Harmless faults of cameras are accepted in both cases. JPEG has no checksum:\n"
			"missing data are found, changed data mostly. See darkroom-http(7).",
	},
	{
		CONF_KEY(server, own_huffman, own_huffman),
		.type = CONF_TYPE_CHOICE,
		.choices = conf_yes_no,
		.default_value = "yes",
		.is_live = true,
		.help = "Baseline JPEGs: an own Huffman decoder, faster than that of libjpeg-turbo 2.",
	},
	{
		CONF_KEY(server, hosts, hosts),
		.type = CONF_TYPE_HOSTS,
		.default_value = "",
		.is_live = true,
		.help = "Names under which clients use this server, without ports and separated by\n"
			"spaces, or * for all. A request for another Host is answered 421. localhost,\n"
			"127.x.x.x, [::1] and the host of listen always count. Empty: no others if all\n"
			"addresses are loopback, so that web pages cannot reach the server through a\n"
			"name of their own (DNS rebinding); otherwise all.",
	},
	{
		CONF_KEY(server, trusted_proxies, trusted_proxies),
		.type = CONF_TYPE_NETWORKS,
		.default_value = "",
		.help = "Addresses and networks of proxies, separated by spaces, such as 127.0.0.1 ::1\n"
			"10.0.0.0/8. The client of their requests is the last address in\n"
			"X-Forwarded-For that is not one of them: the log shows it, and limits and\n"
			"turns apply to it. Each proxy must append the address of its client.",
	},
	{
		CONF_KEY(server, proxy_protocol, proxy_protocol),
		.type = CONF_TYPE_CHOICE,
		.choices = conf_yes_no,
		.default_value = "no",
		.help = "Whether each connection from server.trusted_proxies begins with a header of\n"
			"the PROXY protocol (version 1 or 2), which names its client, such as with\n"
			"send-proxy-v2 of HAProxy. A connection without it is closed.",
	},
	{
		CONF_KEY(server, allow_origin, allow_origin),
		.type = CONF_TYPE_ORIGIN,
		.default_value = "",
		.is_live = true,
		.help = "Origin of the web pages that may use this server from a browser (CORS), such\n"
			"as https://example.org, or * for all. Empty: only pages of its own origin. On\n"
			"a loopback address, POST and DELETE of other pages are answered 403.",
	},
	{
		CONF_KEY(server, wait_timeout, wait_timeout_ms),
		.type = CONF_TYPE_MS,
		.max = CONF_MS_PER_HOUR,
		.default_value = "10s",
		.is_live = true,
		.help = "How long GET of a variant, or DELETE, waits for an image that is still being\n"
			"processed, and GET for a slow disk. After this time it is answered 503.",
	},
	{
		CONF_KEY(server, drain_delay, drain_delay_ms),
		.type = CONF_TYPE_MS,
		.max = CONF_MS_PER_HOUR,
		.default_value = "0",
		.is_live = true,
		.help = "Time after SIGTERM in which everything is served as before while /readyz\n"
			"returns 503, so that load balancers notice in time.",
	},
	{
		CONF_KEY(server, drain_timeout, drain_timeout_ms),
		.type = CONF_TYPE_MS,
		.max = CONF_MS_PER_HOUR,
		.default_value = "30s",
		.is_live = true,
		.help = "Time after drain_delay in which work in flight must finish. New connections\n"
			"are no longer accepted.",
	},
	{
		CONF_KEY(server, control, control),
		.type = CONF_TYPE_SOCKET,
		.default_value = "auto",
		.help = "Unix socket for darkroomd ctl. Only root and the daemon's own user may\n"
			"connect. auto: control.sock in the root. Empty: no socket.",
	},
	{
		CONF_KEY(server, user, user),
		.type = CONF_TYPE_USER,
		.default_value = "",
		.help = "User to become when started as root, before anything is opened. The store must\n"
			"belong to this user, and a port below 1024 needs darkroomd.socket. Empty: the\n"
			"daemon keeps its user, and refuses to start as root. root: it stays root.",
	},
	{
		CONF_KEY(server, sandbox, sandbox),
		.type = CONF_TYPE_CHOICE,
		.choices = sandbox_choices,
		.default_value = "auto",
		.help = "auto: once everything is open, the kernel refuses what the daemon does not\n"
			"need (Landlock, seccomp): files outside of the store, new sockets, programs and\n"
			"most system calls. A second process without a sandbox reopens configuration,\n"
			"tokens and access log. -t and the log tell what this kernel supports.",
	},
	{
		CONF_KEY(server, core_dumps, core_dumps),
		.type = CONF_TYPE_CHOICE,
		.choices = conf_yes_no,
		.default_value = "no",
		.help = "Whether a crash may leave a core file, which has the pictures of that moment.\n"
			"no: also no process of the same user may attach to the daemon. yes: ulimit -c,\n"
			"or LimitCORE= of the unit, must allow it as well.",
	},
	{
		CONF_KEY(limits, header_bytes, header_bytes),
		.type = CONF_TYPE_BYTES,
		.min = 1024,
		.max = 1 << 20,
		.default_value = "16K",
		.is_live = true,
		.help = "Request line and headers: 431, or 414 if the target is that long.",
	},
	{
		CONF_KEY(limits, body_bytes, body_bytes),
		.type = CONF_TYPE_BYTES,
		.min = 1024,
		.max = 64 * GIB,
		.default_value = "256M",
		.is_live = true,
		.help = "Body of a request: 413. At most half of memory_budget, because a chunked body\n"
			"needs its room twice while it grows.",
	},
	{
		CONF_KEY(limits, parts, parts),
		.type = CONF_TYPE_NUMBER,
		.min = 1,
		.max = 10000,
		.default_value = "64",
		.is_live = true,
		.help = "Parts of a form: 413.",
	},
	{
		CONF_KEY(limits, pixels, pixels),
		.type = CONF_TYPE_PIXELS,
		.min = 1,
		.max = UINT64_C(5000000000),
		.default_value = "200M",
		.is_live = true,
		.help = "Pixels of an image: 413.",
	},
	{
		CONF_KEY(limits, pixels_progressive, pixels_progressive),
		.type = CONF_TYPE_PIXELS,
		.min = 1,
		.max = UINT64_C(5000000000),
		.default_value = "64M",
		.is_live = true,
		.help = "Pixels of a progressive image, whose coefficients all stay in memory: 413.",
	},
	{
		CONF_KEY(limits, scans, scans),
		.type = CONF_TYPE_NUMBER,
		.min = 1,
		.max = 100000,
		.default_value = "30",
		.is_live = true,
		.help = "Scans of a progressive image: 413. Common programs write at most 10, and 18 for\n"
			"CMYK. Scans that visit the blocks more than 8 times, and more than once for\n"
			"2 bits of data, are refused as well.",
	},
	{
		CONF_KEY(limits, image_time, image_time_ms),
		.type = CONF_TYPE_MS,
		.min = 1,
		.max = CONF_MS_PER_HOUR,
		.default_value = "30s",
		.is_live = true,
		.help = "CPU time for decoding one image: 413. The largest images that the limits above\n"
			"allow need a few seconds.",
	},
	{
		CONF_KEY(limits, width, width),
		.type = CONF_TYPE_NUMBER,
		.min = 1,
		.max = SIDE_MAX,
		.default_value = "65500",
		.is_live = true,
		.help = "Width of an image as stored in the file: 413.",
	},
	{
		CONF_KEY(limits, height, height),
		.type = CONF_TYPE_NUMBER,
		.min = 1,
		.max = SIDE_MAX,
		.default_value = "65500",
		.is_live = true,
		.help = "Height of an image as stored in the file: 413.",
	},
	{
		CONF_KEY(limits, connections, connections),
		.type = CONF_TYPE_NUMBER,
		.min = 1,
		.max = 100000,
		.default_value = "1024",
		.is_live = true,
		.help = "Open connections. When all but a sixteenth are used, each new one closes the one\n"
			"that has waited longest for a request. If there is none, it is answered 503\n"
			"and closed. A higher number than at startup needs a restart.",
	},
	{
		CONF_KEY(limits, images_in_flight, images_in_flight),
		.type = CONF_TYPE_NUMBER,
		.min = 1,
		.max = 65536,
		.default_value = "1024",
		.is_live = true,
		.help = "Images between upload and store. An upload that would exceed the limit gets 503.\n"
			"A sixteenth is for uploads of one image, unless that leaves less than parts.",
	},
	{
		CONF_KEY(limits, header_timeout, header_timeout_ms),
		.type = CONF_TYPE_MS,
		.min = 10,
		.max = CONF_MS_PER_HOUR,
		.default_value = "10s",
		.is_live = true,
		.help = "Time for request line and headers: 408. The first byte of a new connection is\n"
			"also due within it; otherwise the connection is closed.",
	},
	{
		CONF_KEY(limits, body_timeout, body_timeout_ms),
		.type = CONF_TYPE_MS,
		.min = 10,
		.max = CONF_MS_PER_HOUR,
		.default_value = "30s",
		.is_live = true,
		.help = "Time in which a body may arrive at any rate. After that it must keep up\n"
			"body_rate: 408.",
	},
	{
		CONF_KEY(limits, body_rate, body_rate),
		.type = CONF_TYPE_BYTES,
		.max = GIB,
		.default_value = "1K",
		.is_live = true,
		.help = "Bytes per second, on average, of a body that takes longer than body_timeout.\n"
			"0: a body must not take longer. A client must read a response as fast. While\n"
			"requests wait for memory, or few connections are left, this rate is demanded\n"
			"from the first seconds on, and a higher one of large bodies: what is reserved\n"
			"for a body must then arrive within 4 times body_timeout.",
	},
	{
		CONF_KEY(limits, idle_timeout, idle_timeout_ms),
		.type = CONF_TYPE_MS,
		.min = 10,
		.max = 24 * CONF_MS_PER_HOUR,
		.default_value = "60s",
		.is_live = true,
		.help = "A connection without a request is closed after this time.",
	},
	{
		CONF_KEY(limits, memory_budget, memory_budget),
		.type = CONF_TYPE_BYTES,
		.min = 16 << 20,
		.max = 4096 * GIB,
		.default_value = "1G",
		.help = "Memory for bodies, decoders, planes and results of all requests together.\n"
			"It is reserved for a body as the body arrives, and for a response that its\n"
			"client does not read at once. Requests wait for it; small bodies (1/128 of\n"
			"it) do not wait for large ones. A request that needs more than its share gets\n"
			"413. The daemon's resident memory stays below this plus 32M, 4M per thread of\n"
			"[scheduler] and 32K per connection, and below 64M more while many bodies stop\n"
			"half-way. Buffers kept for reuse are included. Freed ones below 256K are not:\n"
			"the C library may keep their memory, for others of that size.",
	},
	{
		CONF_KEY(limits, free_bytes, free_bytes),
		.type = CONF_TYPE_BYTES,
		.max = 4096 * GIB,
		.default_value = "64M",
		.is_live = true,
		.help = "Bytes of the store's file system that images leave free, for logs and others:\n"
			"507. 0: images may use all.",
	},
};

const struct conf_key_list conf_keys_server = { rows, COUNT_OF(rows) };
