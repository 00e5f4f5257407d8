"""The raw results: one JSON document per line. Medians, spreads and comparisons of them."""

import collections
import json
import statistics

Metric = collections.namedtuple("Metric", "key title unit scale digits is_more_better")

THROUGHPUT = Metric("input_bytes_per_s", "Throughput", "MB/s", 1e-6, 1, True)
MAKESPAN = Metric("makespan_s", "Makespan", "s", 1, 2, False)
RATE = Metric("responses_per_s", "Responses", "1/s", 1, 1, True)
MEAN = Metric("mean_ms", "Mean response time", "ms", 1, 1, False)
P50 = Metric("p50_ms", "Median response time", "ms", 1, 1, False)
P90 = Metric("p90_ms", "90th percentile of response times", "ms", 1, 1, False)
P99 = Metric("p99_ms", "99th percentile of response times", "ms", 1, 1, False)
CPU_USE = Metric("cpu_use", "CPU use of the server", "%", 1, 1, False)
NET = Metric("max_net_mbps", "Incoming traffic, maximum", "Mbit/s", 1, 0, True)
CPU = Metric("cpu_ms_per_image", "CPU per image", "ms", 1, 2, False)
RSS = Metric("peak_rss_bytes", "Memory, maximum", "MB", 1e-6, 0, False)

# So much of the rounds must agree before one is called better than the other.
AGREEMENT = 0.8
MIN_ROUNDS = 3


class Ratio:
    """Of one to another, round by round: a round's runs lie close together, so what the machine does to one it does to the
    other. is_more and is_less say that enough rounds agree; if neither does, there is no difference beyond the noise."""

    def __init__(self, values):
        self.values = sorted(values)
        self.median = statistics.median(values)

    @property
    def is_more(self):
        return self._agree(lambda value: value > 1)

    @property
    def is_less(self):
        return self._agree(lambda value: value < 1)

    def _agree(self, test):
        return len(self.values) >= MIN_ROUNDS and test(self.median) \
            and sum(map(test, self.values)) >= AGREEMENT * len(self.values)

    def __str__(self):
        return f"{self.median:.3f} ({self.values[0]:.3f}..{self.values[-1]:.3f})"


class Results:
    def __init__(self, lines):
        self.lines = lines
        self.machine = next((line for line in lines if line["kind"] == "machine"), {})

    def of(self, kind):
        return [line for line in self.lines if line["kind"] == kind]

    def workloads(self, kind="policies"):
        return sorted({line["workload"] for line in self.of(kind)}, reverse=True)

    def runs(self, kind, name, workload):
        """In the order of their rounds."""
        return sorted((line for line in self.of(kind) if line["name"] == name and line["workload"] == workload),
                      key=lambda line: line["round"])

    def values(self, kind, name, workload, metric):
        return [run[metric.key] * metric.scale for run in self.runs(kind, name, workload)]

    def median(self, name, workload, metric, kind="policies"):
        return statistics.median(self.values(kind, name, workload, metric))

    def ranking(self, workload, metric, kind="policies"):
        """The names, the best median first."""
        names = {line["name"] for line in self.of(kind) if line["workload"] == workload}
        return sorted(names, key=lambda name: self.median(name, workload, metric, kind), reverse=metric.is_more_better)

    def ratio(self, a, b, workload, metric, kind="policies"):
        """Of a's to b's, of the rounds that have both; None if there is none."""
        mine = {run["round"]: run[metric.key] for run in self.runs(kind, a, workload)}
        theirs = {run["round"]: run[metric.key] for run in self.runs(kind, b, workload)}
        shared = [mine[number] / theirs[number] for number in mine if theirs.get(number)]
        return Ratio(shared) if shared else None

    def rounds(self, kind="policies"):
        """None: of whatever kind."""
        return len({line["round"] for line in (self.of(kind) if kind else self.lines) if "round" in line})


def read(path):
    """An unfinished last line, of a run that was killed, does not count."""
    lines = []
    for number, text in enumerate(path.read_text().splitlines(), 1):
        try:
            lines.append(json.loads(text))
        except ValueError:
            if number < len(path.read_text().splitlines()):
                raise ValueError(f"{path}:{number}: this is not a line of JSON") from None
    return lines


def spread(values, digits):
    """Median and range."""
    median = f"{statistics.median(values):.{digits}f}"
    return median if len(values) == 1 else f"{median} ({min(values):.{digits}f}..{max(values):.{digits}f})"
