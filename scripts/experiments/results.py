"""The raw results, one JSON document in each line, and their medians, spreads and comparisons."""

import collections
import json
import math
import statistics

import paired
import plan

Metric = collections.namedtuple("Metric", "key title unit scale digits is_more_better")

THROUGHPUT = Metric("input_bytes_per_s", "Throughput", "MB/s", 1e-6, 1, True)
MAKESPAN = Metric("makespan_s", "Makespan", "s", 1, 2, False)
RATE = Metric("responses_per_s", "Responses", "1/s", 1, 1, True)
P50 = Metric("p50_ms", "Median response time", "ms", 1, 1, False)
P90 = Metric("p90_ms", "90th percentile of response times", "ms", 1, 1, False)
P99 = Metric("p99_ms", "99th percentile of response times", "ms", 1, 1, False)
CPU_USE = Metric("cpu_use", "CPU use of the server", "%", 1, 1, False)
CPU = Metric("cpu_ms_per_image", "CPU per image", "ms", 1, 2, False)
ROUNDS = Metric("rounds_per_s", "Rounds", "1/s", 1, 0, True)
RSS = Metric("peak_rss_bytes", "Memory, maximum", "MB", 1e-6, 0, False)

class Results:
    def __init__(self, lines):
        self.lines = lines
        self.machine = next((line for line in lines if line["kind"] == "machine"), {})

    def of(self, kind):
        return [line for line in self.lines if line["kind"] == kind]

    def workloads(self, kind="policies"):
        return sorted({line["workload"] for line in self.of(kind)}, reverse=True)

    def runs(self, kind, name, workload):
        """Returns the runs in the order of their rounds."""
        found = (line for line in self.of(kind)
                 if line["name"] == name and line["workload"] == workload)
        return sorted(found, key=lambda line: line["round"])

    def values(self, kind, name, workload, metric):
        return [run[metric.key] * metric.scale for run in self.runs(kind, name, workload)]

    def median(self, name, workload, metric, kind="policies"):
        return statistics.median(self.values(kind, name, workload, metric))

    def ranking(self, workload, metric, kind="policies"):
        """Returns the names, the best median first."""
        names = {line["name"] for line in self.of(kind) if line["workload"] == workload}
        return sorted(names, key=lambda name: self.median(name, workload, metric, kind),
                      reverse=metric.is_more_better)

    def pairs(self, a, b, workload, metric, kind="policies"):
        """Returns the ratios of a to b for the rounds that have both, or None without such a
        round. metric: or a function that returns the figure of a run."""
        of = metric if callable(metric) else lambda run: run[metric.key]
        mine = {run["round"]: of(run) for run in self.runs(kind, a, workload)}
        theirs = {run["round"]: of(run) for run in self.runs(kind, b, workload)}
        shared = [mine[number] / theirs[number] for number in mine
                  if theirs.get(number) and mine[number]]
        return paired.Pairs(shared) if shared else None

    def contrast(self, left, right, workload, metric, kind="policies"):
        """Returns the ratios of the geometric means of two classes of configurations for the rounds
        that have all of them, or None without such a round."""
        logs = {}
        for name in (*left, *right):
            for run in self.runs(kind, name, workload):
                logs.setdefault(run["round"], {})[name] = math.log(run[metric.key])
        whole = [of for _, of in sorted(logs.items()) if left and len(of) == len(left) + len(right)]
        return paired.Pairs([math.exp(statistics.fmean(of[name] for name in left)
                                      - statistics.fmean(of[name] for name in right))
                             for of in whole]) if whole and right else None

    def spread(self, workload, metric, kind="policies"):
        """Returns the residual spread of one run, or None with too few runs."""
        names = {line["name"] for line in self.of(kind) if line["workload"] == workload}
        rows = [self.values(kind, name, workload, metric) for name in sorted(names)]
        rounds = max(map(len, rows), default=0)
        return paired.residual_spread([row for row in rows if len(row) == rounds])

    def rounds(self, kind="policies"):
        """Returns the number of rounds. kind = None means all kinds."""
        return len({line["round"] for line in (self.of(kind) if kind else self.lines)
                    if "round" in line})


def read(path):
    """Reads raw results. Ignores an unfinished last line of a killed run."""
    lines = []
    for number, text in enumerate(path.read_text().splitlines(), 1):
        try:
            lines.append(json.loads(text))
        except ValueError:
            if number < len(path.read_text().splitlines()):
                raise ValueError(f"{path}:{number}: this is not a line of JSON") from None
    return lines


def check_order(lines):
    """Checks that each round was measured in the order of its seed. So a run that has the number of
    another round is found."""
    seed, last = lines[0].get("seed") if lines else None, {}
    for line in lines if seed is not None else ():
        if "round" not in line or line["kind"] == "disturbed":
            continue
        of_round = line["kind"], line["round"]
        now = plan.place(seed, line["kind"], line["name"], line["workload"], line["round"])
        if last.get(of_round, b"") >= now:
            raise ValueError(f"round {line['round'] + 1} of {line['kind']} is not in the order of "
                             f"its seed: {line['name']}, {line['workload']} connections")
        last[of_round] = now


def spread(values, digits):
    """Returns median and range as text."""
    median = f"{statistics.median(values):.{digits}f}"
    return (median if len(values) == 1
            else f"{median} ({min(values):.{digits}f}..{max(values):.{digits}f})")


def ratio_text(interval):
    """Returns a ratio with its interval as text."""
    if interval.low == 0:
        return f"{interval.ratio:.3f} (one round)"
    digits = 3 if interval.high / interval.low < 1.5 else 2
    return (f"{interval.ratio:.{digits}f} ({interval.low:.{digits}f}.."
            f"{interval.high:.{digits}f})")
