"""The tables in Markdown, in the form of the paper's tables 4.4 to 4.6."""

import statistics

import addresses as of_addresses
import caches
import paired
import results as r
import slowdown as slowdowns
import synthetic
from jobs import COHORTS
from markdown import table
from plan import PAPER, class_of


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
    return _medians(results, workload, (r.CPU_USE, r.CPU, r.RSS))


def drain(results, workload):
    """Returns a comparison of darkroom's own policy with each other one: ratios with intervals of
    95 %, not corrected for their number."""
    rows = []
    for name in results.ranking(workload, r.THROUGHPUT):
        if name == "drain":
            continue
        ratios = [results.pairs("drain", name, workload, metric)
                  for metric in (r.THROUGHPUT, r.P90, r.P99, r.CPU)]
        rows.append([name, *(r.ratio_text(pairs.interval()) if pairs else "" for pairs in ratios)])
    return table(["drain relative to", "throughput", "90th percentile", "99th percentile",
                  "CPU per image"], rows)


def design(results, workload):
    """Returns a sentence about the smallest difference that the rounds can detect."""
    parts = []
    names = results.ranking(workload, r.THROUGHPUT)
    for metric in (r.THROUGHPUT, r.CPU, r.P90):
        spread = results.spread(workload, metric)
        if spread is None:
            continue
        rounds = max(len(results.runs("policies", name, workload)) for name in names)
        alone = paired.detectable(spread, rounds)
        among = paired.detectable(spread, rounds, len(names) - 1)
        parts.append(f"{metric.title.lower()}: {100 * spread:.2f} %, {100 * alone:.1f} %, "
                     f"{100 * among:.1f} %")
    if not parts:
        return "One run of each configuration detects no difference."
    return ("Residual spread of one run, the smallest difference that is found in four of five "
            "experiments, and the same if a configuration is compared with all others: "
            + "; ".join(parts) + ".")


def overload(results):
    rows = []
    for line in results.of("overload"):
        for name in ("limited", "unlimited"):
            run = line[name]
            rows.append([f"{line['round'] + 1}, {name}",
                         *(str(run.get(key, "not recorded"))
                           for key in ("due", "answered", "refused", "unsent")),
                         " ".join(f"{value:.2f}" if value is not None else "later"
                                  for value in run["p90_s"])])
    return table(["Round", "due", "accepted", "refused", "never sent",
                  "90th percentile by quarter, s"], rows)


def cache_misses(results):
    """Returns tables of misses per image: of the whole program, and of the stages in the L2."""
    lines = results.of("caches")
    names = list(dict.fromkeys(line["name"] for line in sorted(lines, key=lambda x: x["round"])))

    def mean(name, stage, kinds):
        values = [sum(line["misses"][stage][kind] for kind in kinds) for line in lines
                  if line["name"] == name and stage in line["misses"]]
        return statistics.fmean(values) if values else None

    def number(value):
        return "" if value is None else f"{value:,.0f}"

    def visit(name):
        values = [line["events_per_visit"]["jpeg_decode"] for line in lines
                  if line["name"] == name]
        return "" if None in values else f"{statistics.fmean(values):.1f}"

    order = sorted(names, key=lambda name: mean(name, "all", ("l2i", "l2d")))
    whole = [[name, visit(name), f"{mean(name, 'all', ('instructions',)) / 1e6:.2f}",
              *(number(mean(name, "all", (kind,))) for kind in ("l1i", "l1d", "l2i", "l2d"))]
             for name in order]
    stages = [[name, *(number(mean(name, stage, (kind,))) for kind in ("l2i", "l2d")
                       for stage in caches.STAGES)] for name in order]
    return (table(["Misses per image", "decodes a visit", "instructions, million",
                   "L1 instructions", "L1 data", "L2 instructions", "L2 data"], whole) + "\n\n"
            + table(["L2 misses by stage", *(f"{stage}, {kind}" for kind in ("instructions", "data")
                                             for stage in caches.STAGES)], stages))


def slowdown(results):
    """Returns a table of the 99th percentile for each kind of arrivals and class, by load."""
    lines, out = results.of("slowdown"), []
    for arrivals in slowdowns.ARRIVALS:
        loads = sorted({line["load"] for line in lines if line["arrivals"] == arrivals})
        for of_class in slowdowns.CLASSES:
            rows = []
            for name in slowdowns.names(lines):
                found = [slowdowns.values(lines, name, arrivals, load, of_class, "p99")
                         for load in loads]
                rows.append([name, *(r.ratio_text(paired.Pairs(own).interval()) if own else ""
                                     for own in found)])
            out.append(table([f"p99, {arrivals}, {of_class}", *(f"{load:g}" for load in loads)],
                             rows))
    return "\n\n".join(out)


def cohorts(results):
    """Returns a table of sizes of cohorts, each relative to the next one in the list."""
    workload = results.workloads("cohorts")[0]
    rows = []
    for size in COHORTS:
        if not results.runs("cohorts", size, workload):
            continue
        pairs = [results.pairs(size, "1", workload, metric, "cohorts") if size != "1" else None
                 for metric in (r.THROUGHPUT, r.CPU)]
        rows.append([size, *(r.spread(results.values("cohorts", size, workload, metric),
                                      metric.digits)
                             for metric in (r.THROUGHPUT, r.P50, r.P90, r.CPU)),
                     *(r.ratio_text(each.interval()) if each else "" for each in pairs)])
    return table(["Events of a visit", *map(_head, (r.THROUGHPUT, r.P50, r.P90, r.CPU)),
                  "throughput to 1", "CPU to 1"], rows)


def bursts(results):
    rows = []
    for line in sorted(results.of("bursts"), key=lambda line: (line["round"], line["name"])):
        rows.append([f"{line['round'] + 1}, {line['name']}", f"{line['rate_per_s']:.0f}",
                     str(line["answered"]), str(line["unsent"]),
                     *(f"{line[key]:.0f}" for key in ("p50_ms", "p90_ms", "p99_ms", "max_ms"))])
    return table(["Round", "rate between bursts, 1/s", "answered", "never sent",
                  "p50 since due, ms", "p90, ms", "p99, ms", "maximum, ms"], rows)


def addresses(results):
    """Returns a table of overloads by many clients, a row for each controller, loop and number of
    clients. The worst round counts for refusals in a row."""
    groups = {}
    for line in sorted(results.of("addresses"), key=lambda line: (
            line["controller"], line["loop"], line["workload"], line["factor"], line["round"])):
        name = f"{line['name']}, {line['workload']} clients"
        groups.setdefault(name, []).append(line)
    rows = []
    for name, lines in groups.items():
        shares = [[100 * of_addresses.refused_share(line, size) for line in lines]
                  for size in of_addresses.SIZES]
        ratios = [of_addresses.refusal_ratio(line) for line in lines]
        figures = [([line["capacity_per_s"] for line in lines], 0),
                   ([100 * line["load_share"] for line in lines], 0),
                   ([line["goodput"] for line in lines], 2),
                   ([of_addresses.goodput_elsewhere(line) for line in lines], 2),
                   (shares[0], 0), (shares[1], 0),
                   (ratios, 2), *(([line[size]["p90_s"] for line in lines], 2)
                                  for size in of_addresses.SIZES),
                   ([line["refusal_p99_s"] and 1000 * line["refusal_p99_s"] for line in lines], 1),
                   ([line.get("rare_refused_in_a_row") for line in lines], 0),
                   ([line.get("recovery_s") for line in lines], 2),
                   ([line.get("recovery_services") for line in lines], 0),
                   ([line.get("normal_after_s") for line in lines], 2)]
        rows.append([name, *("" if None in values else r.spread(values, digits)
                             for values, digits in figures)])
    return table(["Controller, loop, load", "capacity, 1/s", "generator, %", "goodput",
                  "with the clients elsewhere", "small refused, %", "large refused, %", "ratio",
                  "p90 of small, s", "p90 of large, s", "p99 of refusals, ms",
                  "rare client refused in a row", "recovery, s", "in service times",
                  "normal after, s"], rows)


def bottleneck(results):
    """Returns a table like 4.9 to 4.11: rates, maxima of intervals, visits, and times by path."""
    lines = results.of("bottleneck")
    names = sorted({line["name"] for line in lines}, key=lambda name: -statistics.median(
        line["rounds_per_s"] for line in lines if line["name"] == name))
    rows = []
    for name in names:
        runs = [line for line in lines if line["name"] == name]
        visits = [run["visits"] / max(1, run["visits"] + run["visits_empty"]) for run in runs]
        rows.append([name, r.spread([run["rounds_per_s"] for run in runs], 0),
                     r.spread([run["most_per_s"] for run in runs], 0),
                     r.spread([run["most_per_s"] / run["rounds_per_s"] for run in runs], 2),
                     r.spread([run["cpu_ns"] / max(1, run["rounds"]) / 1e3 for run in runs], 1),
                     *(r.spread([run["paths"][path][key] / 1e3 for run in runs], 1)
                       for path in (synthetic.TITLE, synthetic.TERMS)
                       for key in ("p50_us", "p99_us")),
                     r.spread([100 * share for share in visits], 0)])
    return table(["Policy", "rounds/s", "best interval", "best to mean", "CPU us per round",
                  "titles, p50, ms", "p99, ms", "terms, p50, ms", "p99, ms",
                  "visits with work, %"], rows)


def gates(results):
    rows = []
    for gate in synthetic.GATES:
        runs = results.runs("gates", str(gate), synthetic.COHORT_EVENTS)
        if runs:
            cpu_ns = [run["cpu_ns"] / max(1, run["rounds"]) / synthetic.COHORT_STAGES
                      for run in runs]
            rows.append([str(gate), r.spread(cpu_ns, 0),
                         r.spread([run["rounds_per_s"] for run in runs], 0)])
    return table(["Most events of a visit", "CPU ns per event and stage", "rounds/s"], rows)


def ring(results):
    rows = []
    for policy, stages in sorted({(line["policy"], line["stages"])
                                  for line in results.of("ring")}):
        runs = [line for line in results.of("ring")
                if (line["policy"], line["stages"]) == (policy, stages)]
        rows.append([f"{policy}, {stages}", *(
            r.spread([run[key] * scale / max(1, run["rounds"]) / stages for run in runs], 0)
            for key, scale in (("cpu_ns", 1), ("seconds", 1e9)))])
    return table(["Stages of the ring", "CPU ns per hand-over", "ns per hand-over"], rows)


def threads(results):
    rows = []
    for count in results.workloads("threads")[::-1]:
        runs = results.runs("threads", f"{count} threads", count)
        rows.append([str(count), *(r.spread(values, digits) for values, digits in (
            ([run["tasks_per_s"] for run in runs], 0),
            ([run["cpu_ns"] / max(1, run["tasks"]) / 1e3 for run in runs], 2),
            ([run["p50_us"] for run in runs], 1), ([run["p99_us"] for run in runs], 1)))])
    return table(["Threads", "tasks/s", "CPU us per task", "p50, us", "p99, us"], rows)


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
