/* remake_report.c - counters as JSON, and the lines that begin and end the work. */
#include "remake_report.h"

#include <inttypes.h>

#include "base/json.h"
#include "base/text.h"
#include "log/log.h"
#include "remake.h"
#include "telemetry/counter.h"

void remake_report(struct remake *r, struct text *to)
{
	struct json j;

	json_init(&j, to);
	json_object(&j, NULL);
	json_uint(&j, "waiting", counter_read(&r->waiting));
	json_uint(&j, "made", counter_read(&r->made));
	json_uint(&j, "failed", counter_read(&r->failed));
	json_uint(&j, "ns_per_kilopixel", counter_read(&r->ns_per_kilopixel));
	json_object_end(&j);
	text_puts(to, "\n");
}

void remake_tell_begin(struct remake *r)
{
	if (r->is_told)
		return;
	r->is_told = true;
	log_notice("remake: %" PRIu64
	           " stored images are to get variants; making them while little "
	           "else is to do",
	           counter_read(&r->waiting));
}

void remake_tell_end(struct remake *r)
{
	uint64_t made = counter_read(&r->made), failed = counter_read(&r->failed);

	if (!r->is_told)
		return;
	log_notice("remake: done: %" PRIu64 " stored images have got variants, %" PRIu64
	           " cannot get them",
	           made - r->told_made, failed - r->told_failed);
	r->is_told = false;
	r->told_made = made;
	r->told_failed = failed;
}
