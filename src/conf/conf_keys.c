/*
 * conf_keys.c - the table of all keys, with their defaults, bounds and documentation, and its
 * printing.
 *
 * Who adds a key adds a row here and a member in conf.h. Any thread.
 */
#include "conf.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "conf_value.h"
#include "log/log.h"
#include "policy/policy.h"
#include "sched/graph.h"
#include "sched/schedule.h"

#define MS_PER_HOUR 3600000
#define GIB (UINT64_C(1) << 30)
#define SIDE_MAX 65500 /* of an image; libjpeg's JPEG_MAX_DIMENSION */

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
static const struct conf_choice yes_no[] = { { "yes", CONF_YES }, { "no", CONF_NO }, { 0 } };
static const struct conf_choice yes_no_auto[] = {
	{ "auto", CONF_DEFAULT }, { "yes", CONF_YES }, { "no", CONF_NO }, { 0 }
};
static const struct conf_choice sandbox_choices[] = { { "auto", CONF_SANDBOX_AUTO },
	                                              { "off", CONF_SANDBOX_OFF },
	                                              { 0 } };
static const struct conf_choice chroma_choices[] = { { "420", CONF_CHROMA_420 },
	                                             { "444", CONF_CHROMA_444 },
	                                             { 0 } };
static const struct conf_choice kind_choices[] = { { "auto", 0 },
	                                           { "shared", STAGE_SHARED },
	                                           { "exclusive", STAGE_EXCLUSIVE },
	                                           { "partitioned", STAGE_PARTITIONED },
	                                           { 0 } };
static const struct conf_choice service_choices[] = { { "auto", 0 },
	                                              { "exhaustive", SERVICE_EXHAUSTIVE },
	                                              { "gated", SERVICE_GATED },
	                                              { "n-gated", SERVICE_N_GATED },
	                                              { "time-gated", SERVICE_TIME_GATED },
	                                              { "cutoff", SERVICE_CUTOFF },
	                                              { 0 } };
static const struct conf_choice discipline_choices[] = { { "auto", CONF_DISCIPLINE_AUTO },
	                                                 { "fcfs", CONF_DISCIPLINE_FCFS },
	                                                 { "lcfs", CONF_DISCIPLINE_LCFS },
	                                                 { "srpt", CONF_DISCIPLINE_SRPT },
	                                                 { 0 } };
static const struct conf_choice idle_choices[] = { { "wake", CONF_IDLE_WAKE },
	                                           { "backoff", CONF_IDLE_BACKOFF },
	                                           { 0 } };
static const struct conf_choice layout_choices[] = { { "shared", CONF_LAYOUT_SHARED },
	                                             { "replicate", CONF_LAYOUT_REPLICATE },
	                                             { "partition", CONF_LAYOUT_PARTITION },
	                                             { 0 } };
static const struct conf_choice distribution_choices[] = {
	{ "round-robin", CONF_DISTRIBUTION_ROUND_ROBIN },
	{ "least-loaded", CONF_DISTRIBUTION_LEAST_LOADED },
	{ 0 }
};
static const struct conf_choice level_choices[] = {
	{ "error", LOG_LEVEL_ERROR },   { "warning", LOG_LEVEL_WARNING },
	{ "notice", LOG_LEVEL_NOTICE }, { "info", LOG_LEVEL_INFO },
	{ "debug", LOG_LEVEL_DEBUG },   { 0 }
};

static const struct conf_choice access_choices[] = {
	{ "no", LOG_ACCESS_NO }, { "text", LOG_ACCESS_TEXT }, { "json", LOG_ACCESS_JSON }, { 0 }
};

/* clang-format off */
#define FIELD(section, member) .offset = offsetof(struct conf, section.member), .size = sizeof ((struct conf *)NULL)->section.member
#define KEY(section_, name_, member, type_) .section = #section_, .name = name_, .type = type_, FIELD(section_, member)
#define OF(strct, name_, type_) .name = #name_, .type = type_, .offset = offsetof(struct strct, name_), \
                                .size = sizeof ((struct strct *)NULL)->name_

static const struct conf_key keys[] = {
	{ KEY(server, "listen", listen, CONF_TYPE_LISTEN), .min = 1, .default_value = "127.0.0.1:8080",
	  .help = "address to listen on; port 0 takes any free one, which the log names" },
	{ KEY(server, "admin_listen", admin_listen, CONF_TYPE_ADMIN), .min = 1, .default_value = "auto",
	  .help = "where /stats and /metrics are served, beside /healthz and /readyz, and nothing else: an address, or a Unix\n"
	          "socket; auto: 127.0.0.1:8081, unless listen has them; no: nowhere but there" },
	{ KEY(server, "admin_on_public", admin_on_public, CONF_TYPE_CHOICE), .choices = yes_no_auto, .default_value = "auto",
	  .help = "whether listen has them, too; auto: if only this machine can connect there. Behind a proxy: no" },
	{ KEY(server, "root", root, CONF_TYPE_TEXT), .min = 1, .default_value = "/var/lib/darkroom",
	  .help = "directory of the stored images; made if it is missing, not its parents" },
	{ KEY(server, "respond_after", respond_after, CONF_TYPE_CHOICE), .choices = respond_choices, .default_value = "store", .is_live = true,
	  .help = "when an upload is answered: 201 when all variants are stored, or 202 when all images are decoded;\n"
	          "a client asks for the latter by Prefer: respond-async" },
	{ KEY(server, "durability", durability, CONF_TYPE_CHOICE), .choices = durability_choices, .default_value = "process", .is_live = true,
	  .help = "what an upload that was answered 201 survives: none and process, the daemon's crash; power, a loss of power,\n"
	          "too: all images that wait to be stored share a flush of the file system. With process and power one that was\n"
	          "answered 202 survives the same: its file is spooled first, and made again after a crash" },
	{ KEY(server, "keep_originals", keep_originals, CONF_TYPE_CHOICE), .choices = yes_no, .default_value = "no", .is_live = true,
	  .help = "whether the uploaded file is stored beside its variants, as original.jpg; it is never served" },
	{ KEY(server, "damaged", damaged, CONF_TYPE_CHOICE), .choices = damaged_choices, .default_value = "reject", .is_live = true,
	  .help = "JPEGs that have lost pixel data: reject with 422, or accept and report \"damaged\": true" },
	{ KEY(server, "allow_origin", allow_origin, CONF_TYPE_ORIGIN), .default_value = "", .is_live = true,
	  .help = "origin of the pages that may use this server from a browser (CORS); nothing: none but its own" },
	{ KEY(server, "wait_timeout", wait_timeout_ms, CONF_TYPE_MS), .max = MS_PER_HOUR, .default_value = "10s", .is_live = true,
	  .help = "how long GET of a variant, or DELETE, waits for an image in the making before it is answered 503" },
	{ KEY(server, "drain_delay", drain_delay_ms, CONF_TYPE_MS), .max = MS_PER_HOUR, .default_value = "0", .is_live = true,
	  .help = "after SIGTERM, for how long connections are accepted and served as before while /readyz says 503,\n"
	          "so that load balancers notice in time" },
	{ KEY(server, "drain_timeout", drain_timeout_ms, CONF_TYPE_MS), .max = MS_PER_HOUR, .default_value = "30s", .is_live = true,
	  .help = "how long work in flight may take to finish after that" },
	{ KEY(server, "control", control, CONF_TYPE_SOCKET), .default_value = "auto",
	  .help = "Unix socket for darkroomd ctl, for root and the daemon's own user only; auto: control.sock in the root;\n"
	          "nothing: none" },
	{ KEY(server, "user", user, CONF_TYPE_USER), .default_value = "",
	  .help = "user to become when started as root, before anything is opened; nothing: root does not start it, anybody\n"
	          "else stays who he is" },
	{ KEY(server, "sandbox", sandbox, CONF_TYPE_CHOICE), .choices = sandbox_choices, .default_value = "auto",
	  .help = "auto: once all is open, have the kernel refuse everything but the store, the directories of configuration,\n"
	          "tokens' file and access log, and the system calls that the work needs, as far as it can; -t and the log say how far" },

	{ KEY(log, "level", level, CONF_TYPE_CHOICE), .choices = level_choices, .default_value = "info", .is_live = true,
	  .help = "messages above this level are not written" },
	{ KEY(log, "access", access, CONF_TYPE_CHOICE), .choices = access_choices, .default_value = "text", .is_live = true,
	  .help = "one line for each request, when it is answered or its client has gone: text, of KEY=VALUE, or json" },
	{ KEY(log, "access_file", access_file, CONF_TYPE_LOG_FILE), .default_value = "stderr",
	  .help = "where those lines go: stderr, as messages of level info, or a file, which SIGHUP opens anew (logrotate).\n"
	          "The sandbox lets all files of its directory be written to: it should have one of its own" },

	{ KEY(scheduler, "policy", policy, CONF_TYPE_POLICY), .min = 1, .default_value = "drain", .is_live = true,
	  .help = "how threads and stages come together:" },
	{ KEY(scheduler, "threads", threads, CONF_TYPE_AUTO), .min = 1, .max = CONF_THREADS_MAX, .default_value = "auto", .is_live = true,
	  .help = "threads that work on images; auto: one for each core that the process may use, by affinity and CPU quota" },
	{ KEY(scheduler, "spin", spin_us, CONF_TYPE_US), .max = 10000, .default_value = "10us", .is_live = true,
	  .help = "how long a thread without work looks for some before it sleeps; 10us are about what that and being woken cost" },
	{ KEY(scheduler, "service", service, CONF_TYPE_CHOICE), .choices = service_choices, .default_value = "auto", .is_live = true,
	  .help = "how long a visit to a stage lasts: exhaustive, until nothing waits; gated, what waited at its start; n-gated,\n"
	          "at most service_events of that; time-gated, for service_time; cutoff, as gated, but work that takes longer\n"
	          "than cutoff is set aside; auto: exhaustive; for policy drain one event where images begin" },
	{ KEY(scheduler, "service_events", service_events, CONF_TYPE_NUMBER), .min = 1, .max = 1000000, .default_value = "16", .is_live = true,
	  .help = "events of a visit with service = n-gated" },
	{ KEY(scheduler, "service_time", service_time_us, CONF_TYPE_US), .min = 1, .max = 10000000, .default_value = "5ms", .is_live = true,
	  .help = "length of a visit with service = time-gated; the event in hand is finished" },
	{ KEY(scheduler, "cutoff", cutoff_us, CONF_TYPE_US), .min = 1, .max = 10000000, .default_value = "5ms", .is_live = true,
	  .help = "with service = cutoff: a decode that takes longer is set aside, and goes on at a later visit" },
	{ KEY(scheduler, "discipline", discipline, CONF_TYPE_CHOICE), .choices = discipline_choices, .default_value = "auto", .is_live = true,
	  .help = "which event is next: fcfs, the oldest; lcfs, mostly the youngest on this thread's own stack; srpt,\n"
	          "the smallest; auto: for policy drain lcfs behind the first stage, else fcfs" },
	{ KEY(scheduler, "age", age_ms, CONF_TYPE_MS), .min = 1, .max = MS_PER_HOUR, .default_value = "1s", .is_live = true,
	  .help = "with discipline srpt, what has waited for so long is served first, whatever its size" },
	{ KEY(scheduler, "idle", idle, CONF_TYPE_CHOICE), .choices = idle_choices, .default_value = "wake", .is_live = true,
	  .help = "how threads without work sleep: wake, until there is some; backoff, for 1, 2, 4, ... 64 ms (for comparison)" },
	{ KEY(scheduler, "dynamic", dynamic, CONF_TYPE_CHOICE), .choices = yes_no, .default_value = "no", .is_live = true,
	  .help = "policy seda: whether controllers change sizes of pools and batches while running" },
	{ KEY(scheduler, "counters", counters, CONF_TYPE_CHOICE), .choices = yes_no, .default_value = "no", .is_live = true,
	  .help = "whether processor and kernel count cycles, cache misses, page faults and the like for each stage;\n"
	          "with server.sandbox = auto only if it is so at the start" },

	{ KEY(layout, "mode", mode, CONF_TYPE_CHOICE), .choices = layout_choices, .default_value = "shared",
	  .help = "which cores visit which stages: shared, every core every stage; replicate, the graph of stages several times, each\n"
	          "with cores of its own, and requests are distributed over them; partition, stages divided into parts, each\n"
	          "with cores of its own. thread-per-connection expects shared. See --topology" },
	{ KEY(layout, "replicas", replicas, CONF_TYPE_NUMBER), .min = 1, .max = CONF_THREADS_MAX, .default_value = "2",
	  .help = "mode = replicate: how many; at most one for each thread (scheduler.threads); with seda all pools of all of\n"
	          "them have at most 64 threads together" },
	{ KEY(layout, "distribution", distribution, CONF_TYPE_CHOICE), .choices = distribution_choices, .default_value = "least-loaded", .is_live = true,
	  .help = "mode = replicate: which one a request goes to: round-robin, each in turn; least-loaded, the one that has the\n"
	          "fewest bytes of images in hand" },
	{ KEY(layout, "steal", steal, CONF_TYPE_CHOICE), .choices = yes_no, .default_value = "no", .is_live = true,
	  .help = "mode = replicate: whether threads without work do that of other replicas" },
	{ KEY(layout, "parts", parts, CONF_TYPE_NUMBER), .min = 1, .max = STAGE_COUNT_MAX, .default_value = "2", .is_live = true,
	  .help = "mode = partition: how many; at most one for each stage with a queue and for each thread" },
	{ KEY(layout, "profile", profile, CONF_TYPE_PATH), .default_value = "",
	  .help = "mode = partition: file with what the stages weigh, written by darkroomd --profile; needed unless online = yes" },
	{ KEY(layout, "online", online, CONF_TYPE_CHOICE), .choices = yes_no, .default_value = "no", .is_live = true,
	  .help = "mode = partition: whether stages are divided anew while running, by what was measured, when twice in a row the\n"
	          "heaviest part has more than online_imbalance per cent more work per core than there is on average, and\n"
	          "other parts would be better by a tenth" },
	{ KEY(layout, "online_interval", online_interval_ms, CONF_TYPE_MS), .min = 100, .max = MS_PER_HOUR, .default_value = "5s", .is_live = true,
	  .help = "time between two looks at that" },
	{ KEY(layout, "online_imbalance", online_imbalance, CONF_TYPE_NUMBER), .max = 1000, .default_value = "20", .is_live = true,
	  .help = "per cent" },

	{ KEY(limits, "header_bytes", header_bytes, CONF_TYPE_BYTES), .min = 1024, .max = 1 << 20, .default_value = "16K", .is_live = true,
	  .help = "request line and headers; above: 431, or 414 if the target is that long" },
	{ KEY(limits, "body_bytes", body_bytes, CONF_TYPE_BYTES), .min = 1024, .max = 64 * GIB, .default_value = "256M", .is_live = true,
	  .help = "body of a request; above: 413. At most half of memory_budget" },
	{ KEY(limits, "parts", parts, CONF_TYPE_NUMBER), .min = 1, .max = 10000, .default_value = "64", .is_live = true,
	  .help = "parts of a form; above: 413" },
	{ KEY(limits, "pixels", pixels, CONF_TYPE_PIXELS), .min = 1, .max = UINT64_C(5000000000), .default_value = "200M", .is_live = true,
	  .help = "pixels of an image; above: 413" },
	{ KEY(limits, "pixels_progressive", pixels_progressive, CONF_TYPE_PIXELS), .min = 1, .max = UINT64_C(5000000000), .default_value = "64M", .is_live = true,
	  .help = "the same for progressive files, which need memory for all of their coefficients" },
	{ KEY(limits, "scans", scans, CONF_TYPE_NUMBER), .min = 1, .max = 100000, .default_value = "100", .is_live = true,
	  .help = "scans of a progressive file; above: 413" },
	{ KEY(limits, "width", width, CONF_TYPE_NUMBER), .min = 1, .max = SIDE_MAX, .default_value = "65500", .is_live = true,
	  .help = "width of an image as stored in the file; above: 413" },
	{ KEY(limits, "height", height, CONF_TYPE_NUMBER), .min = 1, .max = SIDE_MAX, .default_value = "65500", .is_live = true,
	  .help = "height of an image as stored in the file; above: 413" },
	{ KEY(limits, "connections", connections, CONF_TYPE_NUMBER), .min = 1, .max = 100000, .default_value = "1024", .is_live = true,
	  .help = "open connections; one more is answered 503 and closed. Beyond what it was at the start only after a restart" },
	{ KEY(limits, "images_in_flight", images_in_flight, CONF_TYPE_NUMBER), .min = 1, .max = 65536, .default_value = "1024", .is_live = true,
	  .help = "images between upload and store; an upload that would exceed it is answered 503" },
	{ KEY(limits, "images_per_client", images_per_client, CONF_TYPE_NUMBER), .max = 65536, .default_value = "0", .is_live = true,
	  .help = "the same for one client's address, answered 429; 0: no limit" },
	{ KEY(limits, "header_timeout", header_timeout_ms, CONF_TYPE_MS), .min = 10, .max = MS_PER_HOUR, .default_value = "10s", .is_live = true,
	  .help = "time for request line and headers; above: 408" },
	{ KEY(limits, "body_timeout", body_timeout_ms, CONF_TYPE_MS), .min = 10, .max = MS_PER_HOUR, .default_value = "30s", .is_live = true,
	  .help = "time for a body, whatever its rate; later it must keep up body_rate, or: 408" },
	{ KEY(limits, "body_rate", body_rate, CONF_TYPE_BYTES), .max = GIB, .default_value = "1K", .is_live = true,
	  .help = "bytes per second, on average, of a body that takes longer than body_timeout; 0: none may. While others\n"
	          "wait for memory, a body must besides come within 4 times body_timeout as a whole" },
	{ KEY(limits, "idle_timeout", idle_timeout_ms, CONF_TYPE_MS), .min = 10, .max = 24 * MS_PER_HOUR, .default_value = "60s", .is_live = true,
	  .help = "a connection without a request is closed after this" },
	{ KEY(limits, "memory_budget", memory_budget, CONF_TYPE_BYTES), .min = 16 << 20, .max = 4096 * GIB, .default_value = "1G",
	  .help = "memory for bodies, decoders, planes and results of all requests together; requests wait for it, and one\n"
	          "that needs more than its share is answered 413" },

	{ KEY(access, "tokens_file", tokens_file, CONF_TYPE_PATH), .default_value = "",
	  .help = "file of the tokens that uploads and DELETE need, as made by darkroomd token: a line each, NAME HASH [upload]\n"
	          "[delete]; it is read again when it changes; nothing: they need none" },

	{ .section = "stage", OF(conf_stage, threads, CONF_TYPE_AUTO), .min = 1, .max = CONF_THREADS_MAX, .default_value = "auto", .is_live = true,
	  .help = "threads of its own: of accept_read, disk_write, and with policy seda of every stage that has a queue" },
	{ .section = "stage", OF(conf_stage, threads_max, CONF_TYPE_NUMBER), .min = 1, .max = CONF_THREADS_MAX, .default_value = "20", .is_live = true,
	  .help = "with policy seda and dynamic = yes: how many threads the stage's pool may come to have" },
	{ .section = "stage", OF(conf_stage, kind, CONF_TYPE_CHOICE), .choices = kind_choices, .default_value = "auto",
	  .help = "how many threads may serve it: any number, one at a time, or each an instance of its own (accept_read);\n"
	          "auto: as its code says" },
	{ .section = "stage", OF(conf_stage, pass_through, CONF_TYPE_CHOICE), .choices = yes_no_auto, .default_value = "auto", .is_live = true,
	  .help = "whether its handler is called directly, without a queue; auto: as its code says" },

	{ .section = "stage", OF(conf_stage, service, CONF_TYPE_CHOICE), .choices = service_choices, .default_value = "auto", .is_live = true,
	  .help = "as scheduler.service, for this stage; auto: as that says" },
	{ .section = "stage", OF(conf_stage, discipline, CONF_TYPE_CHOICE), .choices = discipline_choices, .default_value = "auto", .is_live = true,
	  .help = "as scheduler.discipline, for this stage; auto: as that says" },
	{ .section = "stage", OF(conf_stage, threshold_events, CONF_TYPE_NUMBER), .max = 1000000, .default_value = "0", .is_live = true,
	  .help = "with more events waiting, a visit to another stage is interrupted for this one; 0: never" },
	{ .section = "stage", .name = "threshold_interval", .type = CONF_TYPE_US, .offset = offsetof(struct conf_stage, threshold_interval_us),
	  .size = sizeof ((struct conf_stage *)NULL)->threshold_interval_us, .max = 60000000, .default_value = "0", .is_live = true,
	  .help = "likewise if events wait and it has not been visited for so long; 0: never" },

	{ .section = "variant", OF(conf_variant, operations, CONF_TYPE_TEXT), .min = 1, .is_live = true,
	  .help = "what is done to the picture, in this order, with commas between:\n"
	          "  scale WIDTHxHEIGHT inside  as large as fits inside, proportions kept\n"
	          "  scale WIDTHxHEIGHT cover   of this size; what does not fit is cut off, on both sides alike\n"
	          "  scale WIDTHxHEIGHT exact   of this size, whatever becomes of the proportions\n"
	          "  blur SIGMA                 Gaussian, 0.3 to 200 pixels of the scaled picture\n"
	          "  sharpen AMOUNT [SIGMA]     unsharp mask: 0.05 to 10 times what a blur by 0.3 to 20 pixels (default 1) takes\n"
	          "                             away is added, to brightness only\n"
	          "  grayscale                  without colours\n"
	          "  rotate 90, 180 or 270      degrees clockwise" },
	{ .section = "variant", OF(conf_variant, enlarge, CONF_TYPE_CHOICE), .choices = yes_no, .default_value = "no", .is_live = true,
	  .help = "whether scale may make pictures larger, up to limits.width, height and pixels. If not: inside and exact leave a\n"
	          "side that is smaller as it is, and cover makes the largest picture of the box's proportions that there is" },
	{ .section = "variant", OF(conf_variant, quality, CONF_TYPE_NUMBER), .min = 1, .max = 100, .default_value = "82", .is_live = true,
	  .help = "of the JPEG" },
	{ .section = "variant", OF(conf_variant, chroma, CONF_TYPE_CHOICE), .choices = chroma_choices, .default_value = "420", .is_live = true,
	  .help = "colours at half the resolution in both directions (4:2:0), or at full resolution (4:4:4): larger files, sharper\n"
	          "edges between colours, as of text and drawings" },
	{ .section = "variant", OF(conf_variant, progressive, CONF_TYPE_CHOICE), .choices = yes_no, .default_value = "no", .is_live = true,
	  .help = "a progressive JPEG, which shows all of the picture early; smaller by about 5 %, seven times the work" },
	{ .section = "variant", OF(conf_variant, optimize, CONF_TYPE_CHOICE), .choices = yes_no, .default_value = "yes", .is_live = true,
	  .help = "Huffman tables made for the file (progressive files always have them): 3 to 15 % smaller, for 3 % more CPU\n"
	          "time per image (40 % with libjpeg-turbo 3)" },
};
/* clang-format on */

static const char *const plain_sections[] = { "server", "log",    "scheduler",
	                                      "layout", "limits", "access" };

const char *conf_section_at(size_t index)
{
	return index < COUNT_OF(plain_sections) ? plain_sections[index] : NULL;
}

const struct conf_key *conf_key_at(size_t index)
{
	return index < COUNT_OF(keys) ? &keys[index] : NULL;
}

#define REFERENCE(name_, operations_, quality_)                                                    \
	{                                                                                          \
		.name = name_, .operations = operations_, .enlarge = CONF_NO, .quality = quality_, \
		.chroma = CONF_CHROMA_420, .progressive = CONF_NO, .optimize = CONF_YES            \
	}

static const struct conf_variant reference_variants[] = {
	REFERENCE("medium", "scale 800x800 inside", 82),
	REFERENCE("thumb", "scale 160x160 inside", 80),
	REFERENCE("blurred", "scale 800x800 inside, blur 8", 75),
};

const struct conf_variant *conf_reference_variant_at(size_t index)
{
	return index < COUNT_OF(reference_variants) ? &reference_variants[index] : NULL;
}

/* ---- the documentation ---- */

/* Every line of the help text as a comment, then what may stand there. */
static void print_help(FILE *to, const struct conf_key *key)
{
	char expected[512];
	struct text t;

	for (const char *line = key->help; line;) {
		size_t length = strcspn(line, "\n");

		fprintf(to, "; %.*s\n", (int)length, line);
		line = line[length] ? line + length + 1 : NULL;
	}
	for (size_t i = 0; key->type == CONF_TYPE_POLICY && policy_at(i); i++)
		fprintf(to, ";   %-21s  %s\n", policy_at(i)->name, policy_at(i)->help);
	text_init(&t, expected, sizeof expected);
	conf_value_describe(key, &t);
	fprintf(to, "; (%s)%s\n", expected, key->is_live ? " live" : "");
}

static void print_section(FILE *to, const char *class, const char *section, const char *lead)
{
	fprintf(to, "\n%s[%s]\n", lead, section);
	for (size_t i = 0; i < COUNT_OF(keys); i++) {
		if (strcmp(keys[i].section, class) != 0)
			continue;
		print_help(to, &keys[i]);
		fprintf(to, "%s%s = %s\n", lead, keys[i].name,
		        keys[i].default_value ? keys[i].default_value : "");
	}
}

void conf_print_keys(FILE *to)
{
	fprintf(to,
	        "; Every key of darkroomd's configuration with its default. Sizes take K, M and G, durations us, ms, s, m\n"
	        "; and h. From the command line: -o SECTION.KEY=VALUE. What is \"live\" can change while the daemon runs: edit\n"
	        "; the file and send SIGHUP, or darkroomd ctl set SECTION.KEY VALUE.\n");
	for (size_t i = 0; i < COUNT_OF(plain_sections); i++)
		print_section(to, plain_sections[i], plain_sections[i], "");
	fprintf(to, "\n; Stages, in the order of the pipeline:");
	for (unsigned i = 0; i < graph_row_count; i++)
		fprintf(to, " %s", graph_rows[i].class->name);
	fprintf(to, "\n; Each may have a section.");
	print_section(to, "stage", "stage.NAME", ";");
	fprintf(to,
	        "\n; What is made of every image: GET /images/ID/NAME.jpg. At least one and at most %d; these three if no file\n"
	        "; is given.",
	        CONF_VARIANT_MAX);
	print_section(to, "variant", "variant.NAME", ";");
	for (size_t i = 0; i < COUNT_OF(reference_variants); i++)
		fprintf(to, "\n[variant.%s]\noperations = %s\nquality = %" PRIu64 "\n",
		        reference_variants[i].name, reference_variants[i].operations,
		        reference_variants[i].quality);
}
