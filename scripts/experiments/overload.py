"""More load than the server can take, with and without a limit of images in flight."""

import run
from job import Job
from machine import ROOT

# Claim 7: the load is OVERLOAD times the capacity, and the admitted images take TARGET_S to
# process.
OVERLOAD, TARGET_S = 1.5, 0.25
NO_LIMIT = 65536  # the largest limits.images_in_flight
OPEN_CONNECTIONS = 1000


def jobs(options, bench, number):
    return [Job("overload", "drain", max(options.connections), number,
                lambda: _measure(options, bench, number), 2 * options.overload_s + 10)]


def _measure(options, bench, number):
    """Measures the capacity of the server, and then OVERLOAD times that rate with and without a
    limit of images in flight."""
    path = ROOT / "conf" / "drain.ini"
    with bench.daemon(path) as daemon:
        bench.warm_up(daemon, max(options.connections))
        report, _ = bench.load(daemon, "-c", max(options.connections), "-d",
                               max(2, options.overload_s / 4))
    capacity = report["responses_per_s"]
    admitted = max(4, round(capacity * TARGET_S))
    out = {"capacity_per_s": capacity, "rate_per_s": OVERLOAD * capacity, "target_s": TARGET_S,
           "admitted": admitted}
    for name, limit in (("limited", admitted), ("unlimited", NO_LIMIT)):
        extra = [f"limits.images_in_flight={limit}", f"limits.connections={2 * OPEN_CONNECTIONS}",
                 f"limits.body_timeout={run.LONG}"]
        with bench.daemon(path, extra) as daemon:
            bench.warm_up(daemon, 1)
            report, rows = bench.load(daemon, "-c", OPEN_CONNECTIONS,
                                      "--rate", f"{OVERLOAD * capacity:.3f}", "--poisson", "-d",
                                      options.overload_s, "--timeout", run.LONG, "--expect",
                                      "201,503", "--seed", number + 1)
        if report["unsent"] != sum(row["error"] == "unsent" for row in rows):
            raise run.Failed("darkroom-load has not recorded all requests that were never sent")
        out[name] = by_quarter(rows, options.overload_s)
    return out


def by_quarter(rows, seconds):
    """Returns response times of accepted uploads since they were due, by the quarter of the run in
    which they were due. A request that was never sent would have been later than all others."""
    quarters, unsent = [[] for _ in range(4)], [0] * 4
    begin = min(float(row["intended"]) for row in rows)
    for row in rows:
        due = float(row["intended"])
        quarter = min(3, int(4 * (due - begin) / seconds))
        if row["status"] == "201":
            quarters[quarter].append(float(row["done"]) - due)
        unsent[quarter] += row["error"] == "unsent"
    answered = sum(len(times) for times in quarters)
    return {"due": len(rows), "answered": answered, "unsent": sum(unsent),
            "refused": sum(row["status"] == "503" for row in rows),
            "unsent_by_quarter": unsent,
            "p50_s": [percentile(times, count, 0.5) for times, count in zip(quarters, unsent)],
            "p90_s": [percentile(times, count, 0.9) for times, count in zip(quarters, unsent)],
            # At least: as if those that were never sent had been as late as the latest.
            "p90_least_s": [percentile(times + [max(times, default=0)] * count, 0, 0.9)
                            if times else None for times, count in zip(quarters, unsent)]}


def percentile(times, later, share):
    """Returns the percentile of the times and of this many later ones, or None if it is one of
    those or there is none."""
    index = int(share * (len(times) + later))
    return sorted(times)[min(index, len(times) - 1)] if index < len(times) or (
        times and not later) else None
