"""Visits of a run, from /stats: the visit success rate (Gordon 2010, 4.3.6), maxima, and the split
of the work among the processors (Larus & Parkes 2002, figure 4)."""

import statistics

import results as r
from markdown import table as markdown_table


def of(stats):
    """Returns the visits of the threads that serve images: the I/O threads under
    thread-per-connection, otherwise those of the main group."""
    groups = {group["name"]: group for group in stats["scheduler"]["groups"]}
    group = max((groups[name] for name in ("main", "io") if name in groups),
                key=lambda group: sum(worker["busy_ms"] for worker in group["workers"]))
    return {"visit_success": group.get("visit_success"),
            "max_events_per_visit": max(s["max_events_per_visit"] for s in stats["stages"]),
            "max_queued_at_visit": max(s["max_queued_at_visit"] for s in stats["stages"]),
            "max_wait_ms": max(s["max_wait_us"] for s in stats["stages"]) / 1000,
            "busy_ms": [worker["busy_ms"] for worker in group["workers"]]}


def imbalance(run):
    """Returns the time of the busiest thread to the mean, or None if nothing was served."""
    busy = run["busy_ms"]
    return max(busy) * len(busy) / sum(busy) if sum(busy) else None


def table(results, workload):
    """Returns a table of the medians of all rounds, or "" for results without visits."""
    rows = []
    for name in results.ranking(workload, r.THROUGHPUT):
        runs = [run["visits"] for run in results.runs("policies", name, workload)
                if "visits" in run]
        shares = [run["visit_success"] for run in runs if run["visit_success"] is not None]
        if not shares:
            continue
        rows.append([name, f"{100 * statistics.median(shares):.0f} %",
                     *(f"{statistics.median(run[key] for run in runs):.0f}"
                       for key in ("max_events_per_visit", "max_queued_at_visit", "max_wait_ms")),
                     f"{statistics.median(imbalance(run) or 0 for run in runs):.2f}"])
    return markdown_table(["Configuration", "visits that found work", "most events in a visit",
                           "most events waiting", "longest wait, ms",
                           "busiest thread to the mean"],
                          rows) if rows else ""
