/*
 * conf_keys.c - the tables of keys and sections, and access to them by index and by name. Any
 * thread.
 */
#include "conf_keys.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/network.h"
#include "conf.h"
#include "conf_classes.h"
#include "conf_degrade.h"
#include "conf_endpoint.h"
#include "log/log.h"
#include "policy/policy.h"
#include "stage_table.h"

static_assert(CONF_TEXT_MAX == 256 && CONF_SOCKET_MAX == 108, "rows name them");
static_assert(CONF_NAME_MAX == 32, "rows name it");
static_assert(NETWORKS_MAX == 32, "rows name it");

/* ---- keys ---- */

static const struct conf_choice conf_yes_no[] = { { "yes", CONF_YES }, { "no", CONF_NO }, { 0 } };

static const struct conf_choice conf_yes_no_auto[] = {
	{ "auto", CONF_DEFAULT }, { "yes", CONF_YES }, { "no", CONF_NO }, { 0 }
};
static const struct conf_choice conf_services[] = {
	{ "auto", 0 },
	{ "exhaustive", SERVICE_EXHAUSTIVE },
	{ "gated", SERVICE_GATED },
	{ "n-gated", SERVICE_N_GATED },
	{ "time-gated", SERVICE_TIME_GATED },
	{ "cutoff", SERVICE_CUTOFF },
	{ 0 },
};
static const struct conf_choice conf_disciplines[] = {
	{ "auto", CONF_DISCIPLINE_AUTO },
	{ "fcfs", CONF_DISCIPLINE_FCFS },
	{ "lcfs", CONF_DISCIPLINE_LCFS },
	{ "srpt", CONF_DISCIPLINE_SRPT },
	{ 0 },
};

#define conf_experiment_stage conf_stage /* these keys are members of the same struct */

static const struct conf_key rows[] = {
#define SECTION(section)
#define NAMED_SECTION(section)
#define SECTION_END(member)
#define KEY(section_, name_, member_, declaration, ...)              \
	{ .section = #section_,                                      \
	  .name = #name_,                                            \
	  .offset = offsetof(struct conf_##section_, member_),       \
	  .size = sizeof(((struct conf_##section_ *)NULL)->member_), \
	  __VA_ARGS__ },
#include "conf_rows.h"
};

const struct conf_key *conf_key_at(size_t index)
{
	return index < COUNT_OF(rows) ? &rows[index] : NULL;
}

const struct conf_key *conf_key_find(const char *section, const char *name)
{
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (strcmp(rows[i].section, section) == 0 && strcmp(rows[i].name, name) == 0)
			return &rows[i];
	return NULL;
}

/* ---- sections ---- */

#define ONE(section) .name = #section, .title = #section, .offset = offsetof(struct conf, section)
#define OF_STAGE(section, title_)                                                  \
	.name = #section, .title = title_, .offset = offsetof(struct conf, stage), \
	.size = sizeof(struct conf_stage), .is_of_stage = true
#define NAMED(section, max_)                                                                   \
	.name = #section, .title = #section ".NAME", .offset = offsetof(struct conf, section), \
	.size = sizeof(struct conf_##section), .max = (max_),                                  \
	.count = offsetof(struct conf, section##_count)

/* In the order of darkroomd --keys: what most sites change comes first. */
static const struct conf_section sections[] = {
	{ ONE(server) },
	{ ONE(log) },
	{ ONE(access) },
	{ ONE(input), .help = "Pictures of other formats than JPEG. Animations are refused." },
	{ ONE(store),
	  .help = "Where images are, and which are removed. A request may name a time of its own:\n"
	          "X-Expires-After, see darkroom-http(7)." },
	{ ONE(limits),
	  .help = "The most that a request may cost. A request above a limit gets the status that is\n"
	          "named here. The answer names the limit, its value and what was found." },
	{ ONE(overload),
	  .help = "What is refused when more is uploaded than the machine can process. The defaults\n"
	          "suit most sites: only target_p90 is a matter of taste." },
	{ ONE(scheduler) },
	{ ONE(layout) },
	{ NAMED(group, CONF_GROUP_MAX),
	  .help = "Stages with a policy and threads of their own, up to 8 groups. NAME consists of\n"
	          "a-z, 0-9, _ and -. The other stages stay in the group main, which has\n"
	          "scheduler.policy and scheduler.threads. accept_read, disk_write and disk_read\n"
	          "have threads of their own in any case. More than one group needs layout.mode =\n"
	          "shared." },
	{ OF_STAGE(stage, "stage.NAME"), .help = "Each may have a section." },
	{ NAMED(variant, CONF_VARIANT_MAX),
	  .help = "What is made of every image: GET /images/ID/NAME.jpg. A file must have 1 to 16\n"
	          "variants. NAME consists of a-z, 0-9, _ and -. Without a file there are the\n"
	          "three at the end." },
	{ ONE(experiment), .help = "For experiments and tests; operators do not need these keys.",
	  .is_for_experiments = true },
	{ OF_STAGE(experiment_stage, "experiment.STAGE"),
	  .help = "The same for a stage. Each stage may have a section.",
	  .is_for_experiments = true },
};

const struct conf_section *conf_section_at(size_t index)
{
	return index < COUNT_OF(sections) ? &sections[index] : NULL;
}

const struct conf_section *conf_section_find(const char *title, const char **name)
{
	for (size_t i = 0; i < COUNT_OF(sections); i++) {
		size_t length = strcspn(sections[i].title, ".");
		bool has_name = sections[i].title[length] == '.';

		if (strncmp(title, sections[i].title, length + has_name) != 0 ||
		    (!has_name && title[length]))
			continue;
		*name = title + length + has_name;
		return &sections[i];
	}
	return NULL;
}

/* ---- sections of a configuration ---- */

static unsigned count_of(const struct conf *conf, const struct conf_section *s)
{
	unsigned count = s->is_of_stage ? stage_table_count() : 1;

	if (s->max)
		memcpy(&count, (const char *)conf + s->count, sizeof count);
	return count;
}

static_assert(offsetof(struct conf_group, name) == 0 && offsetof(struct conf_variant, name) == 0,
              "the struct of a section begins with its name");

bool conf_part_at(const struct conf *conf, size_t index, struct conf_part *part)
{
	const struct conf_section *s = sections;

	for (unsigned n; s < sections + COUNT_OF(sections) && index >= (n = count_of(conf, s)); s++)
		index -= n;
	if (s == sections + COUNT_OF(sections))
		return false;
	*part = (struct conf_part){ .section = s, .offset = s->offset + index * s->size };
	if (s->is_of_stage || s->max)
		snprintf(part->name, sizeof part->name, "%.*s.%s", (int)strcspn(s->title, "."),
		         s->title,
		         s->is_of_stage ? stage_table_name((unsigned)index)
		                        : (const char *)conf + part->offset);
	else
		snprintf(part->name, sizeof part->name, "%s", s->title);
	part->is_source = s->is_of_stage && stage_table_is_source((unsigned)index);
	return true;
}

bool conf_part_find(const struct conf *conf, const char *name, struct conf_part *part)
{
	for (size_t i = 0; conf_part_at(conf, i, part); i++)
		if (strcmp(part->name, name) == 0)
			return true;
	return false;
}

/* ---- reference variants ---- */

#define REFERENCE(name_, operations_, quality_)                                                    \
	{                                                                                          \
		.name = name_, .operations = operations_, .enlarge = CONF_NO, .quality = quality_, \
		.chroma = CONF_CHROMA_420, .progressive = CONF_NO, .optimize = CONF_YES,           \
		.formats = "jpeg", .effort = CONF_EFFORT_FAST, .when = CONF_WHEN_UPLOAD            \
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
