/*
 * conf.h - the configuration: one typed struct, read from an INI file and -o overrides.
 *
 * Every key is one row of a table (conf_rows.h) with its type, range, default and help text. The
 * struct, parsing, messages, the dump, darkroomd --keys and the man page all come from that
 * table. Words are kept as the enumerators of their row. An unknown section or key, a bad value or
 * a duplicate is an error that names file, line, the offending text and what was expected. Checks
 * that compare several keys are in daemon/check_all.h. Nothing here knows HTTP or JPEG beyond the
 * names of keys.
 */
#ifndef DARKROOM_CONF_CONF_H
#define DARKROOM_CONF_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"

struct conf_source;
struct text;

enum conf_respond_after { CONF_RESPOND_STORE = 1, CONF_RESPOND_DECODE };
enum conf_durability { CONF_DURABILITY_NONE = 1, CONF_DURABILITY_PROCESS, CONF_DURABILITY_POWER };
enum conf_store_kind { CONF_STORE_FILE = 1, CONF_STORE_S3 };
enum conf_spool { CONF_SPOOL_NONE = 1, CONF_SPOOL_FILE };
enum conf_damaged { CONF_DAMAGED_REJECT = 1, CONF_DAMAGED_ACCEPT };
enum conf_sandbox { CONF_SANDBOX_AUTO = 1, CONF_SANDBOX_OFF };
enum conf_discipline {
	CONF_DISCIPLINE_AUTO = 0,
	CONF_DISCIPLINE_FCFS,
	CONF_DISCIPLINE_LCFS,
	CONF_DISCIPLINE_SRPT
};
enum conf_tristate { CONF_DEFAULT = 0, CONF_NO, CONF_YES };
enum conf_layout_mode { CONF_LAYOUT_SHARED = 0, CONF_LAYOUT_REPLICATE, CONF_LAYOUT_PARTITION };
enum conf_distribution { CONF_DISTRIBUTION_LEAST_LOADED = 0, CONF_DISTRIBUTION_ROUND_ROBIN };
enum conf_controller {
	CONF_CONTROLLER_OFF = 1,
	CONF_CONTROLLER_BACKLOG,
	CONF_CONTROLLER_WELSH,
	CONF_CONTROLLER_RATE,
	CONF_CONTROLLER_CODEL,
	CONF_CONTROLLER_DAGOR
};
enum conf_when_full { CONF_WHEN_FULL_REFUSE = 1, CONF_WHEN_FULL_WAIT };
enum conf_chroma { CONF_CHROMA_420 = 1, CONF_CHROMA_444 };
enum conf_effort { CONF_EFFORT_FAST = 1, CONF_EFFORT_SMALL };
enum conf_when { CONF_WHEN_UPLOAD = 1, CONF_WHEN_IDLE };

/* How long a visit lasts (Gordon 2010, table 3.1 and 2.4.2). */
enum schedule_service {
	SERVICE_EXHAUSTIVE = 1, /* until the queue is empty */
	SERVICE_GATED,          /* the events that waited when the visit began (D-gated) */
	SERVICE_N_GATED,        /* at most n of those (T-gated(n)) */
	SERVICE_TIME_GATED,     /* until its time has passed */
	SERVICE_CUTOFF /* as gated, but an event that takes longer than its cutoff is parked for a
	                * later visit (C-gated) */
};

#define CONF_MS_PER_HOUR 3600000
#define CONF_MS_PER_DAY (UINT64_C(24) * CONF_MS_PER_HOUR)

/* A struct conf_SECTION for each section of conf_rows.h, with a member for each key. */
struct conf {
#define SECTION(section) struct conf_##section {
#define NAMED_SECTION(section)  \
	struct conf_##section { \
		char name[CONF_NAME_MAX];
#define SECTION_END(member) \
	}                   \
	member;
#define KEY(section, name, member, declaration, ...) declaration;
#include "conf_rows.h"
	unsigned group_count, variant_count; /* both arrays are in the file's order */
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
 * Changes one key: setting is SECTION.KEY=VALUE, as after -o. *source as above, but not NULL.
 * Returns 0, or -EINVAL with the problem in errors and *conf unchanged. Main thread.
 */
int conf_change(struct conf *conf, struct conf_source *source, const char *setting,
                struct text *errors);

/* Returns whether a variant or a group may have the name: a-z, 0-9, '_' and '-'. Any thread. */
bool conf_is_variant_name(const char *name);

/* The variant of that name, or NULL. Any thread. */
const struct conf_variant *conf_variant_find(const struct conf *conf, const char *name);

#endif
