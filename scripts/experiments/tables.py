"""The tables in Markdown, in the form of the paper's tables 4.4 to 4.6."""

import statistics

import results as r
from plan import PAPER, class_of


def table(head, rows):
    line = "| " + " | ".join(head) + " |"
    rule = "|" + "---|" + "---:|" * (len(head) - 1)
    return "\n".join([line, rule, *("| " + " | ".join(row) + " |" for row in rows)])


def _head(metric):
    return f"{metric.title}, {metric.unit}"


def _difference(ratio):
    return "" if ratio is None else "best" if ratio == 1 else f"{100 * (ratio - 1):+.1f} %"


def throughput(results, workload):
    """Returns a table like 4.4."""
    order = results.ranking(workload, r.THROUGHPUT)
    rows = []
    for name in order:
        values = results.values("policies", name, workload, r.THROUGHPUT)
        best = results.median(order[0], workload, r.THROUGHPUT)
        run = results.runs("policies", name, workload)[0]
        rows.append([name, class_of(run["policy"]),
                     str(run["connections"]), f"{statistics.median(values):.1f}",
                     _difference(statistics.median(values) / best),
                     f"{min(values):.1f}..{max(values):.1f}", _difference(PAPER.get(name))])
    return table(["Configuration", "threads", "connections", "MB/s, median", "to the best", "range",
                  "the paper's"], rows)


def _medians(results, workload, metrics):
    rows = [[name, *(r.spread(results.values("policies", name, workload, metric), metric.digits)
                     for metric in metrics)] for name in results.ranking(workload, r.THROUGHPUT)]
    return table(["Configuration", *map(_head, metrics)], rows)


def clients(results, workload):
    """Returns a table like 4.5."""
    return _medians(results, workload, (r.MAKESPAN, r.RATE, r.P50, r.P90, r.P99))


def server(results, workload):
    """Returns a table like 4.6."""
    return _medians(results, workload, (r.CPU_USE, r.NET, r.CPU, r.RSS))


def drain(results, workload):
    """Returns a comparison of darkroom's own policy with each other one, round by round."""
    rows = []
    for name in results.ranking(workload, r.THROUGHPUT):
        if name == "drain":
            continue
        ratios = [results.ratio("drain", name, workload, metric)
                  for metric in (r.THROUGHPUT, r.P90, r.P99)]
        rows.append([name, *map(str, ratios)])
    return table(["drain relative to", "throughput", "90th percentile", "99th percentile"], rows)


def layouts(results, workload):
    """Returns a table of replicas and parts."""
    metrics = (r.THROUGHPUT, r.P90, r.CPU, r.CPU_USE)
    rows = []
    for name in results.ranking(workload, r.THROUGHPUT, "layouts"):
        imbalances = [run["layout"]["imbalance"] for run in results.runs("layouts", name, workload)
                      if "imbalance" in run["layout"]]
        rows.append([name,
                     *(r.spread(results.values("layouts", name, workload, metric), metric.digits)
                       for metric in metrics), r.spread(imbalances, 2) if imbalances else ""])
    return table(["Layout", *map(_head, metrics), "load of the heaviest part to the mean"], rows)


def baseline(results):
    lines = results.of("baseline")
    rows = []
    for title, runs in (("ImageMagick processes, one after the other", lines),
                        ("darkroom, one connection", [line["daemon"] for line in lines])):
        rows.append([title, *(r.spread([run[metric.key] * metric.scale for run in runs],
                                       metric.digits) for metric in (r.RATE, r.THROUGHPUT, r.CPU))])
    return table(["", *map(_head, (r.RATE, r.THROUGHPUT, r.CPU))], rows)
