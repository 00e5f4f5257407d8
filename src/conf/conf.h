/*
 * conf.h - the configuration: one typed struct, read from an INI file and -o overrides.
 *
 * Every key is one row of a table (conf_keys.h) with its type, range, default and help text.
 * Parsing, messages, the dump, the shipped INI file and its man page all come from that table. An
 * unknown section or key, a bad value or a duplicate is an error that names file, line, the
 * offending text and what was expected. Checks that compare several keys are in
 * daemon/check_all.h. Nothing here knows HTTP or JPEG beyond the names of keys.
 */
#ifndef DARKROOM_CONF_CONF_H
#define DARKROOM_CONF_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"

struct conf_source;
struct text;

#define CONF_VARIANT_MAX 16
#define CONF_GROUP_MAX 8
#define CONF_NAME_MAX 32     /* bytes of the name of a variant or a group, with the zero */
#define CONF_TEXT_MAX 256    /* bytes of any other text value, with the zero */
#define CONF_SOCKET_MAX 108  /* bytes of a socket's path, with the zero: unix(7) */
#define CONF_AUTO UINT64_MAX /* "auto", for keys that offer it */

enum conf_respond_after { CONF_RESPOND_STORE = 1, CONF_RESPOND_DECODE };
enum conf_durability { CONF_DURABILITY_NONE = 1, CONF_DURABILITY_PROCESS, CONF_DURABILITY_POWER };
enum conf_store_kind { CONF_STORE_FILE = 1, CONF_STORE_S3 };
enum conf_spool { CONF_SPOOL_NONE = 1, CONF_SPOOL_FILE, CONF_SPOOL_S3 };
enum conf_serve { CONF_SERVE_PROXY = 1, CONF_SERVE_REDIRECT };
enum conf_damaged { CONF_DAMAGED_REJECT = 1, CONF_DAMAGED_ACCEPT };
enum conf_sandbox { CONF_SANDBOX_AUTO = 1, CONF_SANDBOX_OFF };
enum conf_idle { CONF_IDLE_WAKE = 1, CONF_IDLE_BACKOFF };
enum conf_discipline {
	CONF_DISCIPLINE_AUTO = 0,
	CONF_DISCIPLINE_FCFS,
	CONF_DISCIPLINE_LCFS,
	CONF_DISCIPLINE_SRPT
};
enum conf_tristate { CONF_DEFAULT = 0, CONF_NO, CONF_YES };
enum conf_layout { CONF_LAYOUT_SHARED = 0, CONF_LAYOUT_REPLICATE, CONF_LAYOUT_PARTITION };
enum conf_distribution { CONF_DISTRIBUTION_LEAST_LOADED = 0, CONF_DISTRIBUTION_ROUND_ROBIN };
enum conf_controller { CONF_CONTROLLER_OFF = 1, CONF_CONTROLLER_WELSH, CONF_CONTROLLER_BACKLOG };
enum conf_when_full { CONF_WHEN_FULL_REFUSE = 1, CONF_WHEN_FULL_WAIT };
enum conf_chroma { CONF_CHROMA_420 = 1, CONF_CHROMA_444 };

/* How long a visit lasts (Gordon 2010, table 3.1 and 2.4.2). */
enum schedule_service {
	SERVICE_EXHAUSTIVE = 1, /* until the queue is empty */
	SERVICE_GATED,          /* the events that waited when the visit began (D-gated) */
	SERVICE_N_GATED,        /* at most n of those (T-gated(n)) */
	SERVICE_TIME_GATED,     /* until its time has passed */
	SERVICE_CUTOFF /* as gated, but an event that takes longer than its cutoff is parked for a
	                * later visit (C-gated) */
};

struct conf_variant {
	char name[CONF_NAME_MAX]; /* [a-z0-9_-]+ */
	char operations[CONF_TEXT_MAX];
	uint64_t enlarge;               /* enum conf_tristate */
	uint64_t quality;               /* 1..100 */
	uint64_t chroma;                /* enum conf_chroma */
	uint64_t progressive, optimize; /* enum conf_tristate */
};

struct conf_stage {
	uint64_t threads;      /* CONF_AUTO; for accept_read and disk_write, and with policy seda
	                        * for every stage that has a queue */
	uint64_t threads_max;  /* seda: upper bound of the pool's size for its controller */
	uint64_t kind;         /* enum stage_kind; 0: the kind of its class */
	uint64_t pass_through; /* enum conf_tristate */
	uint64_t service;      /* enum schedule_service; 0: scheduler.service */
	uint64_t discipline;   /* enum conf_discipline; 0: scheduler.discipline */
	uint64_t threshold_events, threshold_interval_us; /* 0: none */
	uint64_t queue_max, rate_max; /* waiting events, and events per second; 0: no limit */
};

/* Stages that have their own policy and threads (Gordon 2010, 4.1.1). */
struct conf_group {
	char name[CONF_NAME_MAX];   /* [a-z0-9_-]+ */
	char stages[CONF_TEXT_MAX]; /* names, separated by spaces */
	char policy[CONF_NAME_MAX];
	uint64_t threads; /* CONF_AUTO: one per core that the process may use */
};

struct conf {
	struct {
		char listen[CONF_TEXT_MAX]; /* HOST:PORT or [HOST]:PORT; port 0: any free one */
		char agent_listen[CONF_TEXT_MAX]; /* as listen; "": off */
		char admin_listen[CONF_TEXT_MAX]; /* as listen, an absolute path, "auto" or "no" */
		uint64_t admin_on_public;         /* enum conf_tristate */
		uint64_t public_list;             /* enum conf_tristate */
		uint64_t page, admin_control;     /* CONF_YES or CONF_NO */
		char root[CONF_TEXT_MAX];
		uint64_t respond_after;              /* enum conf_respond_after */
		uint64_t durability;                 /* enum conf_durability */
		uint64_t keep_originals;             /* enum conf_tristate */
		uint64_t damaged;                    /* enum conf_damaged */
		uint64_t own_huffman;                /* enum conf_tristate */
		char hosts[CONF_TEXT_MAX];           /* separated by spaces; "*": all */
		char trusted_proxies[CONF_TEXT_MAX]; /* networks, separated by spaces */
		uint64_t proxy_protocol;             /* enum conf_tristate */
		char allow_origin[CONF_TEXT_MAX];    /* "": no CORS headers */
		uint64_t wait_timeout_ms;
		uint64_t drain_delay_ms, drain_timeout_ms;
		char control[CONF_SOCKET_MAX]; /* "auto", an absolute path, or "" for none */
		char user[CONF_NAME_MAX];      /* "": keep the current user, unless it is root */
		uint64_t sandbox;              /* enum conf_sandbox */
		uint64_t core_dumps;           /* enum conf_tristate */
	} server;
	struct {
		uint64_t level;                  /* enum log_level */
		uint64_t access;                 /* enum log_access */
		uint64_t skip_probes;            /* CONF_YES or CONF_NO */
		char access_file[CONF_TEXT_MAX]; /* "stderr" or an absolute path */
	} log;
	struct {
		char policy[CONF_NAME_MAX];
		uint64_t threads; /* CONF_AUTO: one per core that the process may use */
		uint64_t spin_us;
		uint64_t service;         /* enum schedule_service; 0: the policy's own */
		uint64_t service_events;  /* n-gated */
		uint64_t service_time_us; /* time-gated */
		uint64_t cutoff_us;
		uint64_t discipline;     /* enum conf_discipline */
		uint64_t age_ms;         /* srpt: events that have waited longer are served first */
		uint64_t idle;           /* enum conf_idle */
		uint64_t resource_aware; /* CONF_YES or CONF_NO */
		uint64_t dynamic;        /* enum conf_tristate: seda's controllers */
		uint64_t counters;       /* enum conf_tristate */
	} scheduler;
	struct {
		uint64_t mode; /* enum conf_layout */
		uint64_t replicas;
		uint64_t distribution; /* enum conf_distribution */
		uint64_t steal;        /* enum conf_tristate */
		uint64_t parts;
		char profile[CONF_TEXT_MAX]; /* "": none */
		uint64_t online;             /* enum conf_tristate */
		uint64_t online_interval_ms;
		uint64_t online_imbalance; /* per cent above the mean */
	} layout;
	struct {
		uint64_t header_bytes, body_bytes, parts;
		uint64_t pixels, pixels_progressive, scans, width, height;
		uint64_t connections, images_in_flight;
		uint64_t connections_per_client; /* 0: no limit; CONF_AUTO */
		uint64_t images_per_client;      /* 0: no limit; CONF_AUTO */
		uint64_t client_rate;        /* images per second, in thousandths; 0: no limit */
		uint64_t client_burst;       /* images */
		uint64_t idempotency_keys;   /* images within idempotency_age; 0: no limit */
		uint64_t client_ipv6_prefix; /* bits */
		uint64_t image_time_ms;
		uint64_t header_timeout_ms, body_timeout_ms, idle_timeout_ms;
		uint64_t body_rate;     /* bytes/s, on average, that a body must reach once
		                         * body_timeout has passed */
		uint64_t memory_budget; /* bytes */
		uint64_t free_bytes;    /* of the store's file system; 0: no floor */
	} limits;
	struct {
		uint64_t controller; /* enum conf_controller */
		uint64_t target_p90_ms;
		char classes[CONF_TEXT_MAX]; /* conf_classes.h; "": none */
		char degrade[CONF_TEXT_MAX]; /* conf_degrade.h; "": nothing */
		uint64_t backfill;           /* enum conf_tristate */
		uint64_t when_full;          /* enum conf_when_full */
		uint64_t max_queue_time_ms;  /* 0: none */
		uint64_t samples;            /* that end an interval of the controller */
		uint64_t interval_ms;
		/* welsh; in thousandths, but for the last */
		uint64_t smoothing, increase_below, decrease_above;
		uint64_t increase, increase_offset, decrease, rate_min, rate_max;
		uint64_t decrease_lower, decrease_patience;
	} overload;
	struct {
		char tokens_file[CONF_TEXT_MAX]; /* absolute; "": tokens are not needed */
	} access;
	struct {
		uint64_t kind;                   /* enum conf_store_kind */
		char s3_endpoint[CONF_TEXT_MAX]; /* conf_endpoint.h, as the next two */
		char s3_bucket[CONF_TEXT_MAX];
		char s3_prefix[CONF_TEXT_MAX]; /* of all keys */
		char s3_region[CONF_NAME_MAX];
		char s3_credentials[CONF_TEXT_MAX]; /* absolute */
		char s3_ca_file[CONF_TEXT_MAX];     /* absolute */
		uint64_t s3_serve;                  /* enum conf_serve */
		uint64_t s3_connections;
		uint64_t s3_timeout_ms;
		uint64_t s3_spool;       /* enum conf_spool */
		uint64_t s3_spool_bytes; /* of originals in files */
		uint64_t s3_lease_ms;    /* of a spooled image */
		uint64_t max_age_ms;     /* of an image; 0: no limit */
		uint64_t max_bytes;      /* of all images; 0: no limit */
		uint64_t sweep_interval_ms;
		uint64_t sweep_rate;          /* images/s */
		char metadata[CONF_TEXT_MAX]; /* conf_fields.h */
		uint64_t make_missing;        /* CONF_YES or CONF_NO */
		uint64_t placeholder;         /* CONF_YES or CONF_NO */
		uint64_t idempotency_age_ms;  /* 0: Idempotency-Key is ignored */
		uint64_t dedupe;              /* CONF_YES or CONF_NO */
	} store;
	struct conf_stage stage[STAGE_COUNT_MAX];      /* by index in stage_table */
	struct conf_variant variant[CONF_VARIANT_MAX]; /* in the file's order */
	unsigned variant_count;
	struct conf_group group[CONF_GROUP_MAX]; /* in the file's order */
	unsigned group_count;
};

/*
 * Reads the file at path and applies the overrides. Path NULL stands for the defaults with the
 * three reference variants. *source receives every setting with its place, for later checks; the
 * caller releases it with conf_source_fini() in any case. NULL: the places are not wanted. Returns
 * 0, -EINVAL with one line per problem in errors (a growable text), or -errno of the file; values
 * that were refused keep their defaults. Main thread.
 */
int conf_load(struct conf *conf, struct conf_source *source, const char *path,
              const char *const *overrides, size_t override_count, struct text *errors);

/*
 * Changes one key: setting is SECTION.KEY=VALUE, as after -o. *source as above. Returns 0, or
 * -EINVAL with the problem in errors and *conf unchanged. Main thread.
 */
int conf_change(struct conf *conf, struct conf_source *source, const char *setting,
                struct text *errors);

/* Returns whether a variant or a group may have the name. Any thread. */
bool conf_is_variant_name(const char *name);

/* The variant of that name, or NULL. Any thread. */
const struct conf_variant *conf_variant_find(const struct conf *conf, const char *name);

/* The group of that name, or NULL. Any thread. */
const struct conf_group *conf_group_find(const struct conf *conf, const char *name);

#endif
