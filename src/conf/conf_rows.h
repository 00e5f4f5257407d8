/*
 * conf_rows.h - the table of keys: a key of the configuration is one row, and nothing else.
 *
 * conf.h makes the members of struct conf of the rows, and conf_keys.c the table that reads, prints
 * and documents them. So this file has no include guard. An includer defines:
 *
 *   SECTION(section)              begins the struct of a section; SECTION_END ends the struct
 *   NAMED_SECTION(section)        the same, for a section of which a file may have several
 *   KEY(section, name, member, declaration, designators of struct conf_key)
 *
 * A row has the section, the name, what the kind of value needs, the default in the file's notation
 * (NULL: the key is required), whether the key is LIVE, which is to take effect while the daemon
 * runs, and its help: sentences on lines of at most 78 bytes. A line of a table begins with two
 * spaces.
 */

/* ---- kinds of values; the smallest and the largest number are in the unit of the member ---- */

#define COUNTED(section, name, member, type_, min_, max_, default_, live, help_)              \
	KEY(section, name, member, uint64_t member, .type = CONF_TYPE_##type_, .min = (min_), \
	    .max = (max_), .default_value = default_, live, .help = help_)
#define NUMBER(section, name, ...) COUNTED(section, name, name, NUMBER, __VA_ARGS__)
#define BYTES(section, name, ...) COUNTED(section, name, name, BYTES, __VA_ARGS__)
#define PIXELS(section, name, ...) COUNTED(section, name, name, PIXELS, __VA_ARGS__)
/* A duration: the member has the unit in its name. */
#define MS(section, name, ...) COUNTED(section, name, name##_ms, MS, __VA_ARGS__)
#define US(section, name, ...) COUNTED(section, name, name##_us, US, __VA_ARGS__)
/* A number or auto, which is CONF_AUTO. */
#define AUTO(section, name, ...) COUNTED(section, name, name, AUTO, __VA_ARGS__)
/* At most three digits behind the point; the member is in thousandths. */
#define DECIMAL(section, name, ...) COUNTED(section, name, name, DECIMAL, __VA_ARGS__)

/* One of a few words. */
#define CHOICE(section, name, choices_, default_, live, help_)                                 \
	KEY(section, name, name, uint64_t name, .type = CONF_TYPE_CHOICE, .choices = choices_, \
	    .default_value = default_, live, .help = help_)
#define CHOICES(...) ((const struct conf_choice[]){ __VA_ARGS__, { 0 } })
#define YES_NO(section, name, ...) CHOICE(section, name, conf_yes_no, __VA_ARGS__)

/* Text; form: what is_valid() accepts. The size has the zero byte. */
#define NOTATION(section, name, text_size, is_valid_, form_, empty, default_, live, help_)     \
	KEY(section, name, name, char name[text_size], .type = CONF_TYPE_TEXT, .min = (empty), \
	    .is_valid = is_valid_, .form = form_, .default_value = default_, live, .help = help_)
#define OR_EMPTY 0
#define NOT_EMPTY 1
#define TEXT(section, name, text_size, ...) \
	NOTATION(section, name, text_size, NULL, NULL, __VA_ARGS__)
#define POLICY(section, name, ...) \
	NOTATION(section, name, CONF_NAME_MAX, policy_is_known, NULL, __VA_ARGS__)
#define PATH(section, name, ...)                             \
	NOTATION(section, name, CONF_TEXT_MAX, conf_is_path, \
	         "an absolute path of at most 255 bytes", __VA_ARGS__)
#define LISTEN(section, name, ...)                                                         \
	NOTATION(section, name, CONF_TEXT_MAX, conf_is_listen, "HOST:PORT or [HOST]:PORT", \
	         __VA_ARGS__)

#define LIVE .is_live = true
#define FIXED .is_live = false

/* ---- the keys ---- */

SECTION(server)
LISTEN(server, listen, NOT_EMPTY, "127.0.0.1:8080", FIXED,
       "Address to listen on. Port 0 takes any free port, which the log names.")
NOTATION(server, admin_listen, CONF_TEXT_MAX, conf_is_admin_address,
         "auto, no, HOST:PORT, [HOST]:PORT or an absolute path of at most 107 bytes", NOT_EMPTY,
         "auto", FIXED,
         "Address for /stats, /metrics, /graph, /operator and the list of images. It also\n"
         "serves /healthz and /readyz. A Unix socket gets the mode 0660 less the umask.\n"
         "auto: 127.0.0.1:8081, unless server.listen serves them. no: no such address.")
LISTEN(server, agent_listen, OR_EMPTY, "", FIXED,
       "Address that answers the agent-check of HAProxy with the free share of the room\n"
       "for uploads, such as up 75%: its weight. Empty: no such address.")
CHOICE(server, admin_on_public, conf_yes_no_auto, "auto", FIXED,
       "Whether server.listen serves /stats and /metrics as well. auto: only if it is\n"
       "a loopback address and server.trusted_proxies is empty. A proxy makes a\n"
       "loopback address public: then set no, or name the proxy there.")
YES_NO(server, public_list, "no", LIVE,
       "Whether GET /images lists all images for every client. Otherwise it serves\n"
       "server.admin_listen, and tokens that may list.")
PATH(server, root, NOT_EMPTY, "/var/lib/darkroom", FIXED,
     "Directory of the stored images: ROOT/SPAN/XX/ID/{image.json,VARIANT.jpg}, where\n"
     "SPAN and XX are the first characters of ID. It is created if it is missing, its\n"
     "parents are not. It belongs to one daemon at a time. If it is deleted and made\n"
     "again, the daemon uses the new one; the sandbox permits this if the parent\n"
     "directory holds nothing else at the start.")
CHOICE(server, respond_after,
       CHOICES({ "store", CONF_RESPOND_STORE }, { "decode", CONF_RESPOND_DECODE }), "store", LIVE,
       "When an upload is answered: with 201 when all variants are stored, or with\n"
       "202 when all images are decoded. A client asks for the latter with the\n"
       "header Prefer: respond-async.")
CHOICE(server, durability,
       CHOICES({ "none", CONF_DURABILITY_NONE }, { "process", CONF_DURABILITY_PROCESS },
               { "power", CONF_DURABILITY_POWER }),
       "process", LIVE,
       "What an upload survives once it was answered 201:\n"
       "  none, process  a crash of the daemon; an image is complete or absent\n"
       "  power          also a loss of power, if the disk keeps its promises\n"
       "With power the file system is flushed before the answer, once for all images\n"
       "that wait. This also writes out files of other programs: give the store a\n"
       "file system of its own if there are many. Linux before 5.8 hides some errors.\n"
       "An upload that was answered 202 survives the same, except with none. Its file\n"
       "is kept in ROOT/.spool until its variants are stored. After a crash the next\n"
       "start processes it again under the same id.")
YES_NO(server, keep_originals, "yes", LIVE,
       "Whether the uploaded file is stored next to its variants, as original.jpg.\n"
       "Without it, stored images cannot get other variants: remake, store.make_missing\n"
       "and overload.backfill need it. Its price is its size: a million photographs of\n"
       "3 MB take 3.1 TB, and 0.1 TB without originals. Its metadata may tell where it\n"
       "was taken, so it is served only to tokens with the scope original. Its memory\n"
       "is held until it is stored.")
CHOICE(server, damaged,
       CHOICES({ "reject", CONF_DAMAGED_REJECT }, { "accept", CONF_DAMAGED_ACCEPT }), "reject",
       LIVE,
       "JPEGs that have lost pixel data (truncated, or with unreadable parts): reject\n"
       "them with 422, or accept what can be decoded and report \"damaged\": true.\n"
       "Harmless faults of cameras are accepted in both cases. JPEG has no checksum:\n"
       "missing data are found, changed data mostly. See darkroom-http(7).")
NOTATION(server, hosts, CONF_TEXT_MAX, conf_are_hosts,
         "* or hosts such as images.example.org, without ports and separated by spaces", OR_EMPTY,
         "", LIVE,
         "Names under which clients use this server, without ports and separated by\n"
         "spaces, or * for all. A request for another Host is answered 421. localhost,\n"
         "127.x.x.x, [::1] and the host of listen always count. Empty: no others if all\n"
         "addresses are loopback, so that web pages cannot reach the server through a\n"
         "name of their own (DNS rebinding); otherwise all.")
NOTATION(server, trusted_proxies, CONF_TEXT_MAX, conf_are_networks,
         "at most 32 addresses or networks such as 10.0.0.0/8, separated by spaces", OR_EMPTY, "",
         FIXED,
         "Addresses and networks of proxies, separated by spaces, such as 127.0.0.1 ::1\n"
         "10.0.0.0/8. The client of their requests is the last address in\n"
         "X-Forwarded-For that is not one of them: the log shows it, and limits and\n"
         "turns apply to it. Each proxy must append the address of its client.")
YES_NO(server, proxy_protocol, "no", FIXED,
       "Whether each connection from server.trusted_proxies begins with a header of\n"
       "the PROXY protocol (version 1 or 2), which names its client, such as with\n"
       "send-proxy-v2 of HAProxy. A connection without it is closed.")
NOTATION(server, allow_origin, CONF_TEXT_MAX, conf_is_origin,
         "* or an origin such as https://example.org", OR_EMPTY, "", LIVE,
         "Origin of the web pages that may use this server from a browser (CORS), such\n"
         "as https://example.org, or * for all. Empty: only pages of its own origin. On\n"
         "a loopback address, POST and DELETE of other pages are answered 403.")
MS(server, wait_timeout, 0, CONF_MS_PER_HOUR, "10s", LIVE,
   "How long GET of a variant, or DELETE, waits for an image that is still being\n"
   "processed, and GET for a slow disk. After this time it is answered 503.")
MS(server, drain_delay, 0, CONF_MS_PER_HOUR, "0", LIVE,
   "Time after SIGTERM in which everything is served as before while /readyz\n"
   "returns 503, so that load balancers notice in time. Answers have Connection:\n"
   "close, so that no client keeps a connection until the end.")
MS(server, drain_timeout, 0, CONF_MS_PER_HOUR, "30s", LIVE,
   "Time after drain_delay in which work in flight must finish. New connections\n"
   "are no longer accepted.")
NOTATION(server, control, CONF_SOCKET_MAX, conf_is_socket,
         "auto, an absolute path of at most 107 bytes", OR_EMPTY, "auto", FIXED,
         "Unix socket for darkroomd ctl. Only root and the daemon's own user may\n"
         "connect. auto: control.sock in the root. Empty: no socket.")
NOTATION(server, user, CONF_NAME_MAX, conf_is_user_name, "a user's name of at most 31 bytes",
         OR_EMPTY, "", FIXED,
         "User to become when started as root, before anything is opened. The store must\n"
         "belong to this user, and a port below 1024 needs darkroomd.socket. Empty: the\n"
         "daemon keeps its user, and refuses to start as root. root: it stays root.")
CHOICE(server, sandbox, CHOICES({ "auto", CONF_SANDBOX_AUTO }, { "off", CONF_SANDBOX_OFF }), "auto",
       FIXED,
       "auto: once everything is open, the kernel refuses what the daemon does not\n"
       "need (Landlock, seccomp): files outside of the store, new sockets, programs and\n"
       "most system calls. A second process without a sandbox reopens configuration,\n"
       "tokens and access log. -t and the log tell what this kernel supports.")
YES_NO(server, page, "no", LIVE,
       "Whether GET / serves a page to upload photos and to look at them. It uses the\n"
       "same requests as other clients, and needs the same tokens. no: a site whose\n"
       "proxy passes everything on does not show a form unasked.")
YES_NO(server, admin_control, "no", LIVE,
       "Whether server.admin_listen also serves POST /control, with which the page\n"
       "/operator switches policy, service, discipline and threads. server.listen never\n"
       "does. Every user of this machine can connect to a port, so no is the default;\n"
       "a Unix socket is for its group only.")
SECTION_END(server)

SECTION(log)
CHOICE(log, level,
       CHOICES({ "error", LOG_LEVEL_ERROR }, { "warning", LOG_LEVEL_WARNING },
               { "notice", LOG_LEVEL_NOTICE }, { "info", LOG_LEVEL_INFO },
               { "debug", LOG_LEVEL_DEBUG }),
       "info", LIVE,
       "Messages above this level are not written. They go to standard error. If one\n"
       "place repeats an error or a warning, ten are written in ten seconds, then the\n"
       "number of the others.")
CHOICE(log, access,
       CHOICES({ "no", LOG_ACCESS_NO }, { "text", LOG_ACCESS_TEXT }, { "json", LOG_ACCESS_JSON }),
       "text", LIVE,
       "One line per request, written when it is answered or its client has gone.\n"
       "text: KEY=VALUE, separated by spaces.")
YES_NO(log, skip_probes, "no", LIVE,
       "Whether these lines leave out /healthz, /readyz, /stats and /metrics that were\n"
       "answered with success. A proxy that probes every second writes 86,400 a day.")
NOTATION(log, access_file, CONF_TEXT_MAX, conf_is_log_file,
         "stderr, or an absolute path of at most 255 bytes", NOT_EMPTY, "stderr", FIXED,
         "Where these lines go: stderr, as messages of level info, or a file. The file\n"
         "is created if it is missing, its directory is not. SIGHUP reopens it, for\n"
         "logrotate.")
SECTION_END(log)

SECTION(access)
PATH(access, tokens_file, OR_EMPTY, "", FIXED,
     "File of the tokens that POST, DELETE and lists need (Authorization: Bearer\n"
     "TOKEN). darkroomd token makes a token and its line: NAME HASH [upload] [delete]\n"
     "[list] [own] [original] [sign] [images=N] [bytes=N] [uploads=N], see\n"
     "darkroomd(8). A line without a scope allows upload, delete and list of all\n"
     "images; new lines have own. The file is reloaded when it changes. If it is\n"
     "wrong, the tokens stay as they were. The daemon's user must be able to read it,\n"
     "others should not. Empty: everybody may upload, and only this machine delete.")
SECTION_END(access)

SECTION(input)
NOTATION(input, formats, CONF_NAME_MAX, conf_are_formats, "png, webp and avif, separated by spaces",
         OR_EMPTY, "png webp avif", FIXED,
         "Formats that are accepted besides JPEG: png, webp, avif. Each file is decoded by\n"
         "a process of its own that can do nothing else: darkroom-decode, with libpng16,\n"
         "libwebp7 and libdav1d6. A format whose library is missing is refused. A PNG or a\n"
         "lossless WebP takes about eight times the CPU time of a JPEG of as many pixels,\n"
         "an AVIF or a lossy WebP three to four times. Empty: none, and no process.")
NOTATION(input, background, CONF_NAME_MAX, conf_is_color, "six hexadecimal digits such as ffffff",
         NOT_EMPTY, "ffffff", LIVE,
         "Colour behind the transparent parts of a picture, as red, green and blue. JPEG has\n"
         "no transparency.")
SECTION_END(input)

SECTION(store)
CHOICE(store, kind, CHOICES({ "file", CONF_STORE_FILE }, { "s3", CONF_STORE_S3 }), "file", FIXED,
       "Where images are kept. file: in files below server.root. s3: as objects in a\n"
       "bucket of an S3 store, which several nodes may share; any of them then serves any\n"
       "image. server.root is then for files that live as long as a request. What needs\n"
       "files is refused at the start: see darkroomd(8), OBJECT STORE.")
NOTATION(store, s3_endpoint, CONF_TEXT_MAX, conf_endpoint_is_valid, CONF_ENDPOINT_FORM, OR_EMPTY,
         "", FIXED,
         "Where the S3 store is, such as https://s3.eu-central-1.amazonaws.com. Its\n"
         "addresses are looked up at the start, and while it does not answer.")
NOTATION(store, s3_bucket, CONF_TEXT_MAX, conf_bucket_is_valid, CONF_BUCKET_FORM, OR_EMPTY, "",
         FIXED, "The bucket, which must exist. Requests have it in their path.")
NOTATION(store, s3_prefix, CONF_TEXT_MAX, conf_prefix_is_valid, CONF_PREFIX_FORM, OR_EMPTY, "",
         FIXED, "All keys of objects begin with it, so that a bucket may have other ones.")
TEXT(store, s3_region, CONF_NAME_MAX, NOT_EMPTY, "us-east-1", FIXED,
     "The region that requests are signed for.")
PATH(store, s3_credentials, OR_EMPTY, "", FIXED,
     "A file with the lines aws_access_key_id = ..., aws_secret_access_key = ... and\n"
     "perhaps aws_session_token = ..., which is read again when it changes. What systemd\n"
     "puts below /run/credentials changes with a restart only.")
PATH(store, s3_ca_file, NOT_EMPTY, "/etc/ssl/certs/ca-certificates.crt", FIXED,
     "The certificates that an endpoint with https:// is checked by. Others need a\n"
     "restart.")
MS(store, s3_timeout, 1000, 60000, "5s", FIXED,
   "How long the S3 store may be silent. A request to it is then repeated, up to five\n"
   "times within four times that time.")
CHOICE(store, s3_spool, CHOICES({ "none", CONF_SPOOL_NONE }, { "file", CONF_SPOOL_FILE }), "none",
       FIXED,
       "Where an upload waits that is answered 202, before its variants are stored. none:\n"
       "no upload is answered 202. file: in ROOT/.spool; also while the S3 store is away,\n"
       "so that such an upload is then accepted. The same node makes and stores it\n"
       "later, also after a crash.")
BYTES(store, s3_spool_bytes, UINT64_C(64) << 10, UINT64_C(1) << 50, "1G", FIXED,
      "Bytes in ROOT/.spool, at most, with store.s3_spool = file. Each image counts with\n"
      "8 KiB more than its size. Uploads that do not fit are answered 503.")
MS(store, max_age, 0, 36500 * CONF_MS_PER_DAY, "0", LIVE,
   "Images that were uploaded longer ago are removed: 365d is a year. They are\n"
   "answered 404 at once, and no cache may keep them longer. 0: no limit.")
BYTES(store, max_bytes, 0, UINT64_C(1) << 50, "0", LIVE,
      "Bytes of all stored files, without image.json. If there are more, the oldest\n"
      "images are removed. After a crash, and after darkroomd store remove, the\n"
      "daemon counts the images first, in the background. 0: no limit; otherwise at\n"
      "least limits.body_bytes.")
MS(store, sweep_interval, 100, CONF_MS_PER_DAY, "1m", LIVE,
   "How often images to remove are looked for.")
NOTATION(store, metadata, CONF_TEXT_MAX, conf_are_fields,
         "at most 8 names, each of at most 32 of a-z, A-Z, 0-9, '_' and '-' (not focus)", OR_EMPTY,
         "", LIVE,
         "Fields of upload forms, at most 8, that are kept as texts with each image of the\n"
         "form and returned in its JSON, such as caption, user. Others are ignored.")
YES_NO(store, make_missing, "no", LIVE,
       "Whether a GET of a variant that a stored image lacks makes it from the original,\n"
       "with all others that it lacks, also those that overload.degrade has skipped.\n"
       "Uploads come first. If 32 images wait for that, or 4 of one client, the answer\n"
       "is 503. Needs server.keep_originals = yes when the image is uploaded. If not,\n"
       "the answer is 404: see darkroom-store(7), remake.")
YES_NO(store, verify, "yes", LIVE,
       "Whether a file is compared with its checksum before it is sent. One that the disk\n"
       "has changed is answered 503, goes to ROOT/.quarantine/ID, and is made again from\n"
       "the original if there is one (server.keep_originals). no: it is sent as it is.")
YES_NO(store, placeholder, "yes", LIVE,
       "Keeps the average colour of each image and a ThumbHash, 25 bytes from which a page\n"
       "draws a blurred picture until it has the real one, and returns them in its\n"
       "JSON. They are made from the smallest variant.")
MS(store, idempotency_age, 0, 30 * CONF_MS_PER_DAY, "24h", LIVE,
   "How long the Idempotency-Key of an upload is remembered. A repeated upload gets\n"
   "the first one's images meanwhile. 0: the field is ignored.")
SECTION_END(store)

SECTION(limits)
BYTES(limits, header_bytes, 1024, 1 << 20, "16K", LIVE,
      "Request line and headers: 431, or 414 if the target is that long.")
BYTES(limits, body_bytes, 1024, UINT64_C(64) << 30, "256M", LIVE,
      "Body of a request: 413. At most half of memory_budget, because a chunked body\n"
      "needs its room twice while it grows.")
NUMBER(limits, parts, 1, 10000, "64", LIVE, "Parts of a form: 413.")
PIXELS(limits, pixels, 1, UINT64_C(5000000000), "200M", LIVE, "Pixels of an image: 413.")
PIXELS(limits, pixels_progressive, 1, UINT64_C(5000000000), "64M", LIVE,
       "Pixels of an image that is in memory as a whole while it is decoded: of a\n"
       "progressive JPEG, an interlaced PNG, a lossless WebP and an AVIF: 413.")
NUMBER(limits, scans, 1, 100000, "30", LIVE,
       "Scans of a progressive image: 413. Common programs write at most 10, and 18 for\n"
       "CMYK. Scans that visit the blocks more than 8 times, and more than once for\n"
       "2 bits of data, are refused as well.")
MS(limits, image_time, 1, CONF_MS_PER_HOUR, "30s", LIVE,
   "CPU time for decoding one image: 413. The largest images that the limits above\n"
   "allow need a few seconds.")
NUMBER(limits, width, 1, PICTURE_SIDE_MAX, "65500", LIVE,
       "Width of an image as stored in the file: 413.")
NUMBER(limits, height, 1, PICTURE_SIDE_MAX, "65500", LIVE,
       "Height of an image as stored in the file: 413.")
NUMBER(limits, connections, 1, 100000, "1024", LIVE,
       "Open connections. When all but a sixteenth are used, each new one closes the one\n"
       "that has waited longest for a request, or for the first byte of a body. If there\n"
       "is none, it is answered 503 and closed. A client that reads nothing takes at\n"
       "most 256 KB of the kernel's memory, and its further requests wait. A higher\n"
       "number needs a restart.")
NUMBER(limits, images_in_flight, 1, 65536, "1024", LIVE,
       "Images between upload and store. An upload that would exceed the limit gets 503.\n"
       "A sixteenth is for uploads of one image, unless that leaves less than parts. A\n"
       "much higher number, or many more variants, need a restart.")
MS(limits, header_timeout, 10, CONF_MS_PER_HOUR, "10s", LIVE,
   "Time for request line and headers: 408. The first byte of a new connection is\n"
   "also due within it; otherwise the connection is closed.")
MS(limits, body_timeout, 10, CONF_MS_PER_HOUR, "30s", LIVE,
   "Time in which a body may arrive at any rate. After that it must keep up\n"
   "body_rate: 408.")
BYTES(limits, body_rate, 0, 1 << 30, "1K", LIVE,
      "Bytes per second, on average, of a body that takes longer than body_timeout.\n"
      "0: a body must not take longer. A client must read a response as fast. While\n"
      "requests wait for memory, or few connections are left, this rate is demanded\n"
      "from the first seconds on, and a higher one of large bodies: what is reserved\n"
      "for a body must then arrive within 4 times body_timeout.")
MS(limits, idle_timeout, 10, 24 * CONF_MS_PER_HOUR, "60s", LIVE,
   "A connection without a request is closed after this time.")
BYTES(limits, memory_budget, 16 << 20, UINT64_C(4096) << 30, "1G", FIXED,
      "Memory for bodies, decoders, planes and results of all requests together.\n"
      "It is reserved for a body as the body arrives, and for a response that its\n"
      "client does not read at once. Requests wait for it; small bodies (1/128 of\n"
      "it) do not wait for large ones. A request that needs more than its share gets\n"
      "413. The daemon's resident memory stays below this plus 32M, 4M per thread of\n"
      "[scheduler] and 32K per connection, and below 64M more while many bodies stop\n"
      "half-way. Buffers kept for reuse are included. Freed ones below 256K are not:\n"
      "the C library may keep their memory, for others of that size.")
BYTES(limits, free_bytes, 0, UINT64_C(4096) << 30, "64M", LIVE,
      "Bytes of the store's file system that images leave free, for logs and others:\n"
      "507. 0: images may use all.")
AUTO(limits, connections_per_client, 0, 100000, "auto", LIVE,
     "Open connections of one client. One more is answered 503 and closed. 0: no\n"
     "limit. auto: a quarter of connections, and no limit for this machine, where a\n"
     "proxy may stand for all clients. A proxy on another machine needs more, or 0.")
AUTO(limits, images_per_client, 0, 65536, "auto", LIVE,
     "Images of one client between upload and store: 429. A client is a token if the\n"
     "request needs one, otherwise an address. Behind a proxy that is not one of\n"
     "server.trusted_proxies, all clients have its address. 0: no limit. auto: a\n"
     "quarter of images_in_flight, at least parts, and no limit for addresses of this\n"
     "machine.")
DECIMAL(limits, client_rate, 0, 1000000000, "0", LIVE,
        "Images per second that one client may send, on average: 429 with Retry-After,\n"
        "before the body is read. 0: no limit. Clients take turns in any case, so this\n"
        "is for sites that bound what a client stores.")
NUMBER(limits, client_burst, 1, 1000000, "100", LIVE,
       "Images that a client may send at once before client_rate holds it back. A form\n"
       "with more images is accepted, and the next upload waits for longer.")
NUMBER(limits, idempotency_keys, 0, 1000000, "100000", LIVE,
       "Images that a client may upload with an Idempotency-Key within\n"
       "store.idempotency_age: 429. Each takes a small file for that time. 0: no limit.\n"
       "Clients on this machine have none.")
SECTION_END(limits)

SECTION(overload)
CHOICE(overload, controller,
       CHOICES({ "backlog", CONF_CONTROLLER_BACKLOG }, { "welsh", CONF_CONTROLLER_WELSH },
               { "rate", CONF_CONTROLLER_RATE }, { "codel", CONF_CONTROLLER_CODEL },
               { "dagor", CONF_CONTROLLER_DAGOR }, { "off", CONF_CONTROLLER_OFF }),
       "backlog", LIVE,
       "What decides whether an upload is admitted:\n"
       "  backlog  as much is admitted as the machine, measured while it is busy, can\n"
       "           process within target_p90; a client that has had more than others\n"
       "           finds less room, and files of all sizes are refused equally often\n"
       "  off      nothing but limits.images_in_flight\n"
       "and, for comparison, see darkroom-scheduling(7):\n"
       "  welsh    uploads per second, moved until target_p90 is met (SEDA, 2002)\n"
       "  rate     welsh, mended\n"
       "  codel    by the time in the queue (RFC 8289)\n"
       "  dagor    by priorities and the time in the queue (WeChat, 2018)\n"
       "Nothing is refused while a core has fewer than two images to process, or while\n"
       "a pool of threads still grows (experiment.dynamic).")
MS(overload, target_p90, 10, CONF_MS_PER_HOUR, "5s", LIVE,
   "Response time that nine of ten uploads should keep, from the end of the body: of\n"
   "small, of medium and of large pictures each. Uploads that would have to wait\n"
   "longer are answered 503 before their body is read. Browsers do not repeat an\n"
   "upload: a long wait is better for their users.\n"
   "A service whose clients repeat requests by themselves needs 1s or less.")
CHOICE(overload, when_full,
       CHOICES({ "refuse", CONF_WHEN_FULL_REFUSE }, { "wait", CONF_WHEN_FULL_WAIT }), "refuse",
       LIVE,
       "What happens to an upload that is not admitted: refuse answers 503 with a\n"
       "Retry-After. wait leaves its body unread, so that TCP holds the client back,\n"
       "for at most limits.body_timeout.")
MS(overload, max_queue_time, 0, CONF_MS_PER_HOUR, "0", LIVE,
   "An admitted image that has waited longer before it is decoded is dropped, and\n"
   "its upload is answered 503. 0: it waits. A client sets a bound of its own with\n"
   "X-Request-Deadline.")
NOTATION(overload, classes, CONF_TEXT_MAX, conf_classes_are_valid, CONF_CLASSES_FORM, OR_EMPTY, "",
         LIVE,
         "Classes of uploads, highest first: a name, and terms of which one must match.\n"
         "  token:NAME         the token of that name in access.tokens_file\n"
         "  net:10.0.0.0/8     the client's address\n"
         "  header:X-Tier=gold a header field; only behind a proxy that sets it\n"
         "  target:1s          the class has this instead of target_p90\n"
         "All other uploads are in the class other, the lowest. A lower class may use half\n"
         "of the room of the one above it, so that it is refused first.")
NOTATION(overload, degrade, CONF_TEXT_MAX, conf_degrade_is_valid, CONF_DEGRADE_FORM, OR_EMPTY, "",
         LIVE,
         "Cheaper ways to make images under load, in the order in which they are added:\n"
         "  skip VARIANT    the variant is not made; at least one must remain\n"
         "  quality NUMBER  no variant has a higher quality\n"
         "  no-progressive  no file is progressive, which takes seven times the work\n"
         "  no-optimize     no file has Huffman tables of its own\n"
         "One after the other is added while half of the room of the upload's class is\n"
         "taken, and removed when the load has gone. The controller refuses an upload only\n"
         "when all are in. The image's JSON has them as degraded. skip saves most, but the\n"
         "image lacks the variant from then on, or until backfill makes it.")
YES_NO(overload, backfill, "no", LIVE,
       "Whether variants that were skipped are made when the load has gone, also after a\n"
       "restart. They are made from original.jpg, so this needs server.keep_originals.\n"
       "Variants of a lower quality stay as they are; darkroomd store remake makes them\n"
       "as configured.")
SECTION_END(overload)

SECTION(scheduler)
POLICY(scheduler, policy, NOT_EMPTY, "drain", LIVE,
       "How threads and stages come together. With drain, a core begins one image at a\n"
       "time and finishes it, because its caches hold the pixels. Idle cores take work\n"
       "from others.")
AUTO(scheduler, threads, 1, CONF_THREADS_MAX, "auto", LIVE,
     "Threads that work on images. auto: one per core that the process may use, by\n"
     "affinity and by the CPU quota of its cgroup.")
CHOICE(scheduler, service, conf_services, "auto", LIVE,
       "How long a visit to a stage lasts:\n"
       "  exhaustive  until its queue is empty\n"
       "  gated       the events that waited when the visit began\n"
       "  n-gated     at most experiment.service_events of those\n"
       "  time-gated  for experiment.service_time; the current event is finished\n"
       "  cutoff      as gated, but a decode that takes longer than experiment.cutoff is\n"
       "              parked\n"
       "auto: exhaustive. With policy drain one event in the stage where images begin.")
CHOICE(scheduler, discipline, conf_disciplines, "auto", LIVE,
       "Which event of a stage is next:\n"
       "  fcfs  the oldest\n"
       "  lcfs  the youngest on the thread's own stack, which receives what the thread\n"
       "        itself sends, then the oldest of the others; the oldest first every\n"
       "        32nd time, so that no event starves\n"
       "  srpt  the smallest rest of work, see experiment.age; it also interrupts larger\n"
       "        events\n"
       "auto: fcfs. With policy drain srpt where images begin, and lcfs after that.")
SECTION_END(scheduler)

SECTION(layout)
CHOICE(layout, mode,
       CHOICES({ "shared", CONF_LAYOUT_SHARED }, { "replicate", CONF_LAYOUT_REPLICATE },
               { "partition", CONF_LAYOUT_PARTITION }),
       "shared", FIXED,
       "Which cores visit which stages, under any policy:\n"
       "  shared     every core visits every stage\n"
       "  replicate  there are several copies of the stage graph. Each has its own\n"
       "             cores, which share caches, and works on whole requests. Threads\n"
       "             for connections and for the disk serve all replicas\n"
       "  partition  the stages are divided into parts. Each has as many cores as its\n"
       "             work needs, and few events pass between parts\n"
       "Policy thread-per-connection needs shared. With seda every replica has a pool\n"
       "for each stage, and every part the pools of its stages. See darkroomd\n"
       "--topology for the place of each thread, and GET /stats for the load.")
NUMBER(layout, replicas, 1, CONF_THREADS_MAX, "2", FIXED,
       "With mode = replicate: number of replicas, at most one per thread\n"
       "(scheduler.threads). With seda the pools of all replicas have at most 256\n"
       "threads together. Each replica has queues for all images in flight.")
NUMBER(layout, parts, 1, STAGE_COUNT_MAX, "2", LIVE,
       "With mode = partition: number of parts, at most one per thread and one per\n"
       "stage that has a queue.")
PATH(layout, profile, OR_EMPTY, "", FIXED,
     "With mode = partition: file with the costs of the stages, from darkroomd ctl\n"
     "profile after the usual load, or written by scripts/partition. Required unless\n"
     "online = yes.")
YES_NO(layout, online, "no", LIVE,
       "With mode = partition: whether the parts change while the daemon runs. The load\n"
       "is measured every 5 seconds. The parts change if the heaviest had more than 20\n"
       "per cent more work per core than the average, twice in a row, and if other\n"
       "parts would be better by at least a tenth. Without a profile\n"
       "the first parts are a guess.")
SECTION_END(layout)

NAMED_SECTION(group)
TEXT(group, stages, CONF_TEXT_MAX, OR_EMPTY, "", LIVE,
     "Its stages, separated by spaces. Each is in one group at most. At least one has\n"
     "a queue.")
POLICY(group, policy, NOT_EMPTY, "drain", LIVE,
       "As scheduler.policy, for the stages of the group. thread-per-connection is only\n"
       "possible if there is no other group.")
AUTO(group, threads, 1, CONF_THREADS_MAX, "auto", LIVE,
     "As scheduler.threads, for the stages of the group. With policy seda each stage\n"
     "has its stage.NAME.threads instead. All groups have at most 256 threads\n"
     "together. Threads are bound to cores if all together have a core each.")
SECTION_END(group[CONF_GROUP_MAX])

SECTION(stage)
AUTO(stage, threads, 1, CONF_THREADS_MAX, "auto", LIVE,
     "Threads of its own. For accept_read: event loops (auto: one per four cores).\n"
     "For disk_write and disk_read: threads that may wait for the disk (auto: one per\n"
     "four cores, and at least 2), 64 together. With policy seda: for every stage that\n"
     "has a queue (auto: 2), in each replica.")
NUMBER(stage, queue_max, 0, 1000000, "0", LIVE,
       "While this many events wait for the stage, it has enough: uploads are made in\n"
       "the cheaper ways of overload.degrade, and when all are in, they are refused or\n"
       "wait, as overload.when_full says. 0: no limit.")
NUMBER(stage, rate_max, 0, 1000000, "0", LIVE,
       "The same while its events come faster than this number per second. 0: no limit.")
NUMBER(experiment_stage, threads_max, 1, CONF_THREADS_MAX, "20", FIXED,
       "With policy seda and experiment.dynamic = yes: the largest size of its pool.")
CHOICE(experiment_stage, kind,
       CHOICES({ "auto", 0 }, { "shared", STAGE_SHARED }, { "exclusive", STAGE_EXCLUSIVE },
               { "partitioned", STAGE_PARTITIONED }),
       "auto", FIXED,
       "How many threads may serve it at the same time. shared: any number. exclusive:\n"
       "one, the others skip it. partitioned: each thread has an event loop and a\n"
       "listener of its own (accept_read only). auto: as its code says.")
CHOICE(experiment_stage, pass_through, conf_yes_no_auto, "auto", LIVE,
       "Whether the stage before it calls it directly, without a queue. auto: as its\n"
       "code says. With yes, disk_write saves a tenth of the CPU time of a picture of\n"
       "10 KB. But a disk that hangs then stops the threads that work on images.")
CHOICE(experiment_stage, service, conf_services, "auto", LIVE,
       "As scheduler.service, for this stage. auto: as scheduler.service says.")
CHOICE(experiment_stage, discipline, conf_disciplines, "auto", LIVE,
       "As scheduler.discipline, for this stage. auto: as scheduler.discipline says.")
NUMBER(experiment_stage, threshold_events, 0, 1000000, "0", LIVE,
       "With more waiting events, a visit to another stage is interrupted for this one.\n"
       "0: never.")
US(experiment_stage, threshold_interval, 0, 60000000, "0", LIVE,
   "If events wait and the stage was not visited for this time, a visit to another\n"
   "stage is interrupted for this one. 0: never.")
SECTION_END(stage[STAGE_COUNT_MAX])

NAMED_SECTION(variant)
TEXT(variant, operations, CONF_TEXT_MAX, NOT_EMPTY, NULL, LIVE,
     "Operations on the picture, in this order, separated by commas:")
YES_NO(variant, enlarge, "no", LIVE,
       "Whether scale may enlarge pictures, up to limits.width, height and pixels. If\n"
       "not: inside and exact keep a side that is smaller, and cover makes the largest\n"
       "picture of the box's proportions.")
NUMBER(variant, quality, 1, 100, "82", LIVE,
       "Quality of the JPEG. Files of other formats look about as good.")
CHOICE(variant, chroma, CHOICES({ "420", CONF_CHROMA_420 }, { "444", CONF_CHROMA_444 }), "420",
       LIVE,
       "Resolution of the colours. 420: half in both directions, as in most JPEGs.\n"
       "444: full. Files are larger, and edges between colours are sharper, for\n"
       "example in text and drawings.")
YES_NO(variant, progressive, "no", LIVE,
       "Whether the JPEG is progressive: it shows all of the picture early. It is\n"
       "smaller by about 5 % and takes seven times the work.")
YES_NO(variant, optimize, "yes", LIVE,
       "Whether Huffman tables are made for the file, as progressive files always have\n"
       "them. The file is 3 to 15 % smaller, for 3 % more CPU time per image (40 %\n"
       "with libjpeg-turbo 3).")
NOTATION(variant, formats, CONF_NAME_MAX, conf_are_variant_formats,
         "jpeg, and avif, webp or both, separated by commas", NOT_EMPTY, "jpeg", LIVE,
         "Formats of its files, each with a URL of its own: NAME.jpg, NAME.avif, NAME.webp.\n"
         "For equal looks an AVIF has about 0.7 of the bytes of the JPEG, for about eight\n"
         "times its CPU time; a WebP 0.8, for fourteen times. They are made by processes\n"
         "of darkroom-decode, with libaom3 and libwebp7. One that cannot be made is left\n"
         "out, and the image is stored without it. The first avif or webp of a\n"
         "configuration needs a restart. All variants together have at most 32 files.")
CHOICE(variant, effort, CHOICES({ "fast", CONF_EFFORT_FAST }, { "small", CONF_EFFORT_SMALL }),
       "fast", LIVE,
       "With avif: small takes about ten times the CPU time of fast, for 5 to 64 % fewer\n"
       "bytes, 23 % in the median.")
CHOICE(variant, when, CHOICES({ "upload", CONF_WHEN_UPLOAD }, { "idle", CONF_WHEN_IDLE }), "upload",
       LIVE,
       "When the files of other formats than JPEG are made. upload: before the answer.\n"
       "idle: later, from the original, while little else is to do and never under load;\n"
       "until then the answers do not name them. This needs server.keep_originals.")
SECTION_END(variant[CONF_VARIANT_MAX])

SECTION(experiment)
YES_NO(experiment, pixel_own, "yes", FIXED,
       "Baseline and progressive JPEGs: an own decoder, faster than that of\n"
       "libjpeg-turbo 2. It also finds more damage: libjpeg decodes many files without a\n"
       "word that are damaged for this decoder, never the reverse. Both make the same\n"
       "pictures of sound files. With yes, the encoder also makes files of blurs by 2 to\n"
       "16 pixels (4 to 16 with chroma = 420) without their pixels, from samples as far\n"
       "apart as the sharpness needs.")
AUTO(experiment, decode_processes, 1, 64, "auto", FIXED,
     "Pictures of other formats than JPEG that are decoded at a time, and files of them\n"
     "that are made beside these. auto: one for each core, from 2 to 16.")
YES_NO(experiment, core_dumps, "no", FIXED,
       "Whether a crash may leave a core file, which has the pictures of that moment.\n"
       "no: also no process of the same user may attach to the daemon. yes: ulimit -c,\n"
       "or LimitCORE= of the unit, must allow it as well.")
NUMBER(experiment, client_ipv6_prefix, 32, 128, "64", FIXED,
       "Bits of an IPv6 address that tell clients apart, for limits and turns: a host\n"
       "may use all addresses of its network. 56 or 48 if providers give each customer\n"
       "that many.")
NUMBER(experiment, s3_connections, 1, 1024, "32", FIXED,
       "Connections to the S3 store, at most. They are kept open.")
NUMBER(experiment, sweep_rate, 1, 100000, "500", FIXED,
       "Images removed in a second, at most. Uploads come first: while images are in\n"
       "flight, each batch of removals waits for up to 100 ms.")
NUMBER(experiment, overload_samples, 1, 1000, "100", FIXED,
       "Response times that end an interval of overload.controller.")
MS(experiment, overload_interval, 10, 60000, "1s", FIXED,
   "Time that ends such an interval in any case.")
DECIMAL(experiment, welsh_smoothing, 0, 999, "0.7", FIXED,
        "overload.controller = welsh: weight of earlier intervals in the response time. The\n"
        "keys of welsh have the names and defaults of its figure 50. The error is the\n"
        "response time less its target, divided by the target.")
DECIMAL(experiment, welsh_increase_below, 0, 1000, "0.5", FIXED,
        "The rate grows while the error is below minus this.")
DECIMAL(experiment, welsh_decrease_above, 0, 10000, "0", FIXED,
        "The rate falls while the error is above this.")
DECIMAL(experiment, welsh_increase, 0, 1000000, "2", FIXED,
        "The rate grows by this times -(error + welsh_increase_offset).")
DECIMAL(experiment, welsh_increase_offset, 0, 1000, "0.1", FIXED,
        "The error at which it would not grow.")
DECIMAL(experiment, welsh_decrease, 1001, 100000, "1.2", FIXED,
        "The rate falls by division by this.")
DECIMAL(experiment, welsh_rate_min, 1, 1000000, "0.05", FIXED,
        "Uploads per second that are admitted in any case.")
DECIMAL(experiment, welsh_rate_max, 1000, 1000000000, "5000", FIXED,
        "Uploads per second that are admitted at most.")
DECIMAL(experiment, welsh_decrease_lower, 1001, 1000000, "10", FIXED,
        "When a class misses its target, the rates of lower classes are divided by\n"
        "this first.")
NUMBER(experiment, welsh_decrease_patience, 0, 1000, "20", FIXED,
       "Intervals with the lower classes at welsh_rate_min before the own rate falls.")
DECIMAL(experiment, queue_target, 1, 1000, "0.1", FIXED,
        "overload.controller = codel, dagor: time in the queue that is too long, as a part\n"
        "of overload.target_p90.")
DECIMAL(experiment, backlog_gain, 200, 1500, "0.75", FIXED,
        "overload.controller = backlog: work that is admitted at first, as a part of what\n"
        "the machine ends within overload.target_p90.")
DECIMAL(experiment, backlog_aim, 100, 1000, "0.85", FIXED,
        "The percentile for which that part is corrected, as a part of the target. The\n"
        "rest is for what is not known: the speed varies, and images differ.")
DECIMAL(experiment, backlog_rise, 1000, 2000, "1.1", FIXED,
        "It grows by this factor while uploads are refused far below that percentile.")
DECIMAL(experiment, backlog_rise_below, 0, 1000, "0.8", FIXED,
        "backlog, rate: far below is this part of it, and of the target.")
DECIMAL(experiment, rate_rise, 1000, 2000, "1.05", FIXED,
        "overload.controller = rate: the rate grows by this factor then.")
MS(experiment, share_half_life, 100, CONF_MS_PER_HOUR, "10s", FIXED,
   "What a client has had counts half after this time.")
DECIMAL(experiment, share_reserve, 0, 499, "0.25", FIXED,
        "Part of the room that a client which has had a typical share leaves to others.")
MS(experiment, dagor_window, 10, 60000, "1s", FIXED,
   "overload.controller = dagor: time between two moves of the threshold.")
DECIMAL(experiment, dagor_fall, 0, 999, "0.05", FIXED,
        "With too long a queue, this part less than was admitted is expected.")
DECIMAL(experiment, dagor_rise, 0, 1000, "0.01", FIXED,
        "Otherwise this part of what asked is expected more.")
US(experiment, spin, 0, 10000, "10us", LIVE,
   "How long a thread without work keeps polling before it sleeps. 10us are about\n"
   "the cost of sleeping and of being woken, so neither is wasted for long.")
NUMBER(experiment, service_events, 1, 1000000, "16", LIVE,
       "With scheduler.service = n-gated: events of a visit.")
US(experiment, service_time, 1, 10000000, "5ms", LIVE,
   "With scheduler.service = time-gated: length of a visit.")
US(experiment, cutoff, 1, 10000000, "5ms", LIVE,
   "With scheduler.service = cutoff: a decode that takes longer is parked and\n"
   "continues at a later visit.")
MS(experiment, age, 1, CONF_MS_PER_HOUR, "10ms", LIVE,
   "With scheduler.discipline = srpt: head start of small events. The event with the\n"
   "highest (time waited + age) / size is next. So an event that is n times as large\n"
   "as others waits at most n * age longer, and none starves.")
YES_NO(experiment, dynamic, "no", LIVE,
       "With policy = seda: whether controllers change sizes of pools and batches once\n"
       "a second (Welsh's dissertation on SEDA, 5.4). log.level = debug reports every\n"
       "change, and GET /stats the current sizes.\n"
       "Pools: a stage with more than 100 waiting events gets another thread, up to its\n"
       "threads_max, 20. After 5 seconds in which one of them had nothing to do, a thread\n"
       "goes, down to the stage's threads. If a long queue is served 20 % slower than\n"
       "before, the pool returns to its best size, less 0 to 4 threads at random.\n"
       "Batches: the events that a thread takes from its queue at a time. They shrink\n"
       "from 16 to 1 as long as at most 10 % of the throughput is lost, and grow until it\n"
       "is regained. Only for stages whose service is auto.")
YES_NO(experiment, counters, "no", LIVE,
       "Whether cycles, instructions, read misses of the caches, page faults, context\n"
       "switches and CPU time are counted for each stage. GET /stats has what this\n"
       "machine offers, and the log names what is missing. Virtual machines often have\n"
       "no counters of the processor. The cost is one or two system calls per event.\n"
       "With server.sandbox = auto it must be on at startup: otherwise the sandbox\n"
       "does not allow its system calls.")
YES_NO(experiment, fair_clients, "yes", LIVE,
       "yes: while several clients have images, they take turns at decoding, and images\n"
       "of a client with few of them come first. no: the policy alone decides, as with\n"
       "one client.")
YES_NO(experiment, new_threads, "no", LIVE,
       "With scheduler.policy = thread-per-connection: whether each connection has a new\n"
       "thread of the kernel, which ends with it. No connection waits for the making of\n"
       "its thread: that is done when the one before has closed.")
YES_NO(experiment, resource_aware, "yes", LIVE,
       "Whether threads serve the stages that release memory first, and those that take\n"
       "it last, while nine tenths of limits.memory_budget are in use or an image waits\n"
       "for memory (Capriccio, 2003, section 4). What a stage takes is learned; GET\n"
       "/stats has it. Not in the pools of seda and in the threads of connections of\n"
       "thread-per-connection, which the kernel orders.")
CHOICE(experiment, distribution,
       CHOICES({ "round-robin", CONF_DISTRIBUTION_ROUND_ROBIN },
               { "least-loaded", CONF_DISTRIBUTION_LEAST_LOADED }),
       "least-loaded", LIVE,
       "With layout.mode = replicate: the replica of a request. round-robin: each in turn.\n"
       "least-loaded: the one with the fewest bytes of images in flight.")
YES_NO(experiment, steal, "no", LIVE,
       "With layout.mode = replicate: whether threads without work serve other replicas.")
MS(experiment, online_interval, 100, CONF_MS_PER_HOUR, "5s", FIXED,
   "With layout.online = yes: time between two measurements of the load.")
NUMBER(experiment, online_imbalance, 0, 1000, "20", FIXED,
       "With layout.online = yes: imbalance that is tolerated, in per cent.")
SECTION_END(experiment)

#undef SECTION
#undef NAMED_SECTION
#undef SECTION_END
#undef KEY
#undef COUNTED
#undef NUMBER
#undef BYTES
#undef PIXELS
#undef MS
#undef US
#undef AUTO
#undef DECIMAL
#undef CHOICE
#undef CHOICES
#undef YES_NO
#undef NOTATION
#undef OR_EMPTY
#undef NOT_EMPTY
#undef TEXT
#undef POLICY
#undef PATH
#undef LISTEN
#undef LIVE
#undef FIXED
