/* recovery_report.c - the line that ends a recovery. */
#include "recovery_report.h"

#include <inttypes.h>

#include "log/log.h"
#include "recovery.h"
#include "telemetry/counter.h"

void recovery_report(struct recovery *r)
{
	uint64_t recovered = counter_read(&r->recovered),
		 quarantined = counter_read(&r->quarantined);
	uint64_t made = recovered - r->reported.recovered, known = r->known - r->reported.known,
		 set_aside = quarantined - r->reported.quarantined;

	if (counter_read(&r->waiting) > 0 || made + known + set_aside == 0)
		return;
	log_notice("recovery: done: %" PRIu64 " images made again, %" PRIu64
	           " had been stored, %" PRIu64 " set aside",
	           made, known, set_aside);
	r->reported.recovered = recovered;
	r->reported.known = r->known;
	r->reported.quarantined = quarantined;
}
