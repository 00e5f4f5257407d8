"""Recomputes every figure of a report of scripts/experiment from its raw results, without any of
its code: other formulas where there are some, and another way to Student's t. Prints what differs.

    /usr/bin/python3 tests/experiment/recompute.py FOLDER
"""

import bisect
import collections
import functools
import heapq
import json
import math
import pathlib
import re
import statistics
import sys

# Gordon 2010, table 4.4: processed bytes a second.
GORDON = {"mg1": 12450.92, "cohort": 12441.45, "srpt": 12433.82, "cohort-stacks": 12240.10,
          "seda-malloc": 10843.27, "seda": 9490.45, "seda-overthreaded": 7494.73,
          "thread-per-connection-4": 6120.20, "seda-underthreaded": 5943.91,
          "thread-per-connection-8": 5845.49, "thread-per-connection-16": 4677.09}
# What the papers say about a claim that has these words.
EXPECTED = {"lowest 90th": [0.32, 0.25, 4.0, 0.31, 0.53],
            "Replication beats": [892.93 / 873.73, 2.0, 911.62 / 656.20, 4.0],
            "Cohorts of all": [13.0], "are called directly": [795.77 / 800.82, 883.80 / 883.48],
            "SEDA with a thread per core": [661.13 / 912.89],
            "policies are within 2 % of color": [795.77 / 921.98, 883.80 / 921.98],
            "Welsh's 5.1 us": [5.1, 10.0, 2001.0], "median response time of cohort": [20.0]}
# Where a ratio must be.
ABOVE, BELOW = (1, math.inf), (0, 1)
ALIKE, ALIKE_5, ALIKE_1 = ((low, round(1 / low, 12)) for low in (0.98, 0.95, 0.99))
CORE, POOLS = {"mg1", "cohort", "srpt", "cohort-stacks"}, {"seda", "seda-malloc"}
# Title of a column: key of the raw results, and unit.
COLUMNS = {"Throughput, MB/s": ("input_bytes_per_s", 1e6), "Makespan, s": ("makespan_s", 1),
           "Responses, 1/s": ("responses_per_s", 1),
           "Median response time, ms": ("p50_ms", 1),
           "90th percentile of response times, ms": ("p90_ms", 1),
           "99th percentile of response times, ms": ("p99_ms", 1), "CPU use of the server, %": ("cpu_use", 1),
           "CPU per image, ms": ("cpu_ms_per_image", 1),
           "Memory, maximum, MB": ("peak_rss_bytes", 1e6)}
RATIOS = {"throughput": "input_bytes_per_s", "90th percentile": "p90_ms",
          "99th percentile": "p99_ms", "CPU per image": "cpu_ms_per_image"}
SPENT = {"looks": ("look", "scan"), "contended words": ("line",),
         "waking": ("wake", "wake_send", "doze_wake", "doze_send", "context")}
CLOSED = {"Requests/s": lambda row: row["answered"] / row["seconds"],
          "CPU us per request": lambda row: row["cpu_ns"] / 1000 / row["answered"],
          "p99, ms": lambda row: row["p99_ms"]}
VIRTUAL = "rounds_per_s", "p50_us", "p90_us", "p99_us"
ORACLES = "oracle SRPT", "processor sharing"
MEANS_S = 150e-6, 150e-6, 400e-6, 150e-6, 150e-6  # CPU times of the stages of a ring on virtual cores
WITHOUT_DAEMON = {"bottleneck", "gates", "ring", "threads", "simulation", "cores", "disturbed"}
KINDS = {"Events of a visit": "cohorts", "Layout": "layouts"}
STAGES = ("jpeg_decode", "scale", "blur", "jpeg_encode")


# ---- statistics ----

def _area(angle, freedom, steps=256):
    """Integrates cos^(freedom - 1) from 0 to this angle, by Simpson's rule."""
    h = angle / steps
    at = [math.cos(i * h) ** (freedom - 1) for i in range(steps + 1)]
    return h / 3 * (at[0] + at[-1] + 4 * sum(at[1:-1:2]) + 2 * sum(at[2:-1:2]))


@functools.cache
def student_tails(t, freedom):
    """Returns the chance of a value beyond -t or t: t = sqrt(freedom) tan(angle)."""
    return 1 - _area(math.atan(t / math.sqrt(freedom)), freedom) / _area(math.pi / 2, freedom)


@functools.cache
def student(share, freedom):
    """Returns the quantile, by bisection of the angle."""
    low, high, whole = 0.0, math.pi / 2, _area(math.pi / 2, freedom)
    for _ in range(50):
        middle = (low + high) / 2
        if _area(middle, freedom) < (2 * share - 1) * whole:
            low = middle
        else:
            high = middle
    return math.sqrt(freedom) * math.tan(low)


class Ratio:
    """The ratios of the rounds, as logarithms."""

    def __init__(self, values):
        self.logs = [math.log(value) for value in values]
        self.n, self.mean = len(self.logs), sum(self.logs) / len(self.logs)
        squares = sum(x * x for x in self.logs) - self.n * self.mean ** 2
        self.spread = math.sqrt(max(0, squares) / (self.n - 1)) if self.n > 1 else math.inf

    def ends(self, alpha=0.05):
        if self.n < 2:
            return -math.inf, math.inf
        half = student(1 - alpha / 2, self.n - 1) * self.spread / math.sqrt(self.n)
        return self.mean - half, self.mean + half

    def figures(self):
        """Returns the numbers of its text."""
        return [math.exp(x) for x in ([self.mean] if self.n < 2 else [self.mean, *self.ends()])]

    def says(self, region, count, rank):
        """Returns the verdict on this ratio alone. count: the ratios of its claim, for Holm's
        correction. rank: how many of them are further outside."""
        low, high = self.ends()
        if region[0] < low and high < region[1]:
            return "holds"
        low, high = self.ends(0.05 / (count - rank))
        return "does not hold" if high <= region[0] or low >= region[1] else "cannot be told"

    def outside(self, region):
        """Returns the chance that a ratio on the border is as far outside, or 1 for one inside."""
        if region[0] < self.mean < region[1] or self.n < 2:
            return 1.0
        nearest = min(abs(self.mean - end) for end in region if math.isfinite(end))
        return student_tails(nearest * math.sqrt(self.n) / self.spread, self.n - 1)

    def rounds(self, region, alpha):
        nearest = min(abs(self.mean - end) for end in region if math.isfinite(end))
        low, n = 1, 1001  # too few, and enough or too many
        while n - low > 1:
            middle = (low + n) // 2
            quantiles = student(1 - alpha / 2, middle - 1) + student(0.8, middle - 1)
            if quantiles * self.spread <= nearest * math.sqrt(middle):
                n = middle
            else:
                low = middle
        return n


def verdict(ratios, regions):
    """Returns the verdict, the mark of each ratio, and the rounds that would tell."""
    order = sorted(range(len(ratios)), key=lambda i: ratios[i].outside(regions[i]))
    each, is_open = [""] * len(ratios), False
    for rank, i in enumerate(order):
        each[i] = ratios[i].says(regions[i], len(ratios), rank)
        is_open |= ratios[i].outside(regions[i]) > 0.05 / (len(ratios) - rank)
        if is_open and each[i] == "does not hold":  # Holm has stopped before
            each[i] = "cannot be told"
    whole = next((word for word in ("does not hold", "cannot be told") if word in each), "holds")
    out = [i for i in range(len(ratios)) if not regions[i][0] < ratios[i].mean < regions[i][1]]
    if out:
        needed = min(ratios[i].rounds(regions[i], 0.05 / len(ratios)) for i in out)
    else:
        needed = max(ratios[i].rounds(regions[i], 0.05) for i in range(len(ratios)))
    return whole, each, needed


# ---- oracles ----

def mixed(x):
    for shift, factor in ((30, 0xbf58476d1ce4e5b9), (27, 0x94d049bb133111eb)):
        x = ((x ^ (x >> shift)) * factor) & (2**64 - 1)
    return x ^ (x >> 31)


def exponential(seed, stream, place):
    """Returns the number at a place of a stream of random numbers."""
    begin = mixed((mixed(seed) + 0x632be59bd9b4e019 * (stream + 1)) & (2**64 - 1))
    drawn = mixed((begin + 0x9e3779b97f4a7c15 * (place + 1)) & (2**64 - 1))
    return 53 * math.log(2) - math.log((drawn >> 11) + 1)


def drawn_events(seed, cores, load, seconds):
    """Returns the events of an open loop, each when it is due and its work, in their order."""
    sources, out = cores // 16 or 1, []
    for source in range(sources):
        at, place = 0.0, 0
        while True:
            at += exponential(seed, 2**63 - 1 - source, place) * sources / round(1000 * load * cores)
            if at >= seconds:
                break
            number = source + sources * place
            out.append((at, math.fsum(mean * exponential(seed, number, stage)
                                      for stage, mean in enumerate(MEANS_S))))
            place += 1
    return sorted(out)


def least_work_first(events, cores):
    """Yields the end and the slowdown of each event. The running ones are known by their ends."""
    running, waiting = [], []  # (end, event); (work that is left, event)
    for at, event in [*((event[0], event) for event in events), (math.inf, None)]:
        while running and running[0][0] <= at:
            end, (due, work) = running.pop(0)
            yield end, (end - due) / work
            if waiting:
                left, next_one = heapq.heappop(waiting)
                bisect.insort(running, (end + left, next_one))
        if event and len(running) == cores and running[-1][0] > at + event[1]:
            end, longest = running.pop()
            heapq.heappush(waiting, (end - at, longest))
        if event and len(running) < cores:
            bisect.insort(running, (at + event[1], event))
        elif event:
            heapq.heappush(waiting, (event[1], event))


def equal_shares(events, cores):
    """Yields the same if all events get an equal share."""
    left, now = {}, 0.0  # work
    for at, event in [*((event[0], event) for event in events), (math.inf, None)]:
        while left:
            speed = min(1, cores / len(left))
            first = min(left, key=left.get)
            end = now + left[first] / speed
            for one in left:
                left[one] -= (min(end, at) - now) * speed
            now = min(end, at)
            if end > at:
                break
            del left[first]
            yield end, (end - first[0]) / first[1]
        now = at
        if event:
            left[event] = event[1]


@functools.cache
def slowdown_of_oracle(name, seed, cores, load):
    """Returns the number of events that end in the measured time, and p50 and p99 of the slowdown."""
    seconds = max(2 / cores, 0.01)
    serve = dict(zip(ORACLES, (least_work_first, equal_shares)))[name]
    found = sorted(slowdown for end, slowdown in serve(
        drawn_events(seed, cores, load, 1.25 * seconds), cores)
        if 0.25 * seconds <= end < 1.25 * seconds)
    return [len(found), found[(len(found) - 1) // 2], found[99 * (len(found) - 1) // 100]]


# ---- figures of a text ----

NUMBER = re.compile(r"(?<![\w.])[+-]?\d[\d,]*(?:\.\d+)?")


def numbers(text):
    return [(float(found.replace(",", "")), len(found.partition(".")[2]))
            for found in NUMBER.findall(text.replace("..", " "))]


def agree(text, expected):
    """Returns whether a text has these numbers: to its last digit, or to three digits. Counts must
    be equal."""
    found = numbers(text)
    return len(found) == len(expected) and all(
        value == want if isinstance(want, int) else
        abs(value - want) <= max(0.501 * 10 ** -digits, 5e-4 * abs(want))
        for (value, digits), want in zip(found, expected))


def spread(values):
    """Returns the numbers of "median (least..most)"."""
    values = sorted(values)
    middle = len(values) // 2
    median = values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2
    return [median] if len(values) == 1 else [median, values[0], values[-1]]


class Report:
    def __init__(self, folder):
        lines = [json.loads(line) for line in (folder / "raw.jsonl").read_text().splitlines()]
        self.machine, self.rows = lines[0], lines[1:]
        self.text = (folder / "report.md").read_text()
        self.faults, self.checked = [], 0

    def check(self, where, text, expected):
        self.checked += len(expected)
        if not agree(text, expected):
            self.faults.append(f"{where}: the report says {text!r}, and the raw results "
                               f"{', '.join(f'{value:.6g}' for value in expected) or 'nothing'}")

    # ---- raw results ----

    def of(self, kind, name=None, workload=None):
        return sorted((row for row in self.rows if row["kind"] == kind
                       and name in (None, row["name"]) and workload in (None, row["workload"])), key=lambda row: row["round"])

    def ratio(self, a, b, key, kind="policies", workload=None):
        """Returns the ratio of a to b. key: of a row, or a function."""
        of = key if callable(key) else lambda row: row[key]
        ours = {row["round"]: of(row) for row in self.of(kind, a, workload)}
        theirs = {row["round"]: of(row) for row in self.of(kind, b, workload)}
        return Ratio([ours[k] / theirs[k] for k in sorted(ours.keys() & theirs.keys())])

    def contrast(self, left, right, key, workload):
        rounds = collections.defaultdict(dict)
        for name in (*left, *right):
            for row in self.of("policies", name, workload):
                rounds[row["round"]][name] = row[key]
        return Ratio([math.prod(of[name] for name in left) ** (1 / len(left))
                      / math.prod(of[name] for name in right) ** (1 / len(right))
                      for of in rounds.values() if len(of) == len(left) + len(right)])

    def check_rows(self):
        """Checks the figures of a row with each other, and that its clock is possible."""
        for row in self.rows:
            where = f"round {row['round'] + 1} of {row['kind']}, {row['name']}"
            seconds = row.get("seconds", 0) if row.get("measured") == "closed" else math.inf
            self.check_oracle(where, row)
            if row.get("cpu_ns", 0) / 1e9 > self.machine["cores"] * seconds + 0.1:
                self.faults.append(f"{where}: more CPU time than the machine has")
            if "answered_s" not in row:
                continue
            for key, want in (("responses_per_s", row["images"] / row["makespan_s"]),
                              ("cpu_ms_per_image", 1000 * row["cpu_s"] / row["images"])):
                if not math.isclose(row[key], want, rel_tol=5e-4):
                    self.faults.append(f"{where}: {key} is {row[key]}, and follows as {want}")
            if row["makespan_s"] < row["answered_s"]:
                self.faults.append(f"{where}: it ends before its last answer")
            if row["cpu_s"] > self.machine["cores"] * row["makespan_s"] + 0.1:
                self.faults.append(f"{where}: more CPU time than the machine has")

    def check_oracle(self, where, row):
        name, _, workload = row["name"].partition(", ")
        if row["kind"] != "cores" or name not in ORACLES:
            return
        want = slowdown_of_oracle(name, row["round"] + 1, row["workload"],
                                  float(workload.removeprefix("load ")))
        found = [row[key] for key in ("rounds", "slowdown_p50", "slowdown_p99")]
        if not all(abs(a - b) <= 0.00051 for a, b in zip(found, want, strict=True)):
            self.faults.append(f"{where}: {found}, and the same arrivals have {want}")

    # ---- head ----

    def check_head(self):
        head = self.text.partition("\n## ")[0]
        machine = " ".join(map(str, self.machine.values()))
        first = next(line for line in head.splitlines() if line.startswith("`"))
        for number in re.findall(r"\d+(?:\.\d+)?", first.partition("` on ")[2]):
            if number not in re.findall(r"\d+(?:\.\d+)?", machine):
                self.faults.append(f"head: {number} is not in the first line of the raw results")
        command = first[1:].partition("` on ")[0]
        if command != self.machine.get("command", command):
            self.faults.append("head: the command is not that of the raw results")
        has_daemon = any(row["kind"] not in WITHOUT_DAEMON for row in self.rows)
        counts = [self.machine["files"], self.machine["file_bytes"] / 1e6] if has_daemon else []
        counts.append(len({row["round"] for row in self.rows}))
        counts += [self.machine["seed"]] if "seed" in self.machine else []
        counts += [self.machine["requests"]] if has_daemon and self.machine.get("requests") else []
        line = next(line for line in head.splitlines() if " rounds. Each round" in line)
        self.check("head", line, counts)
        if ("with a fresh daemon and an empty store" in line) != has_daemon:
            self.faults.append(f"head: {'a' if has_daemon else 'no'} part has a daemon")
        if found := re.search(r"Other programs used (.*?)\)", head):
            shares = [100 * row["others_cpu_share"] for row in self.rows
                      if row["kind"] not in ("caches", "cores", "disturbed")]
            self.check("head", found[1], [spread(shares)[0], max(shares)])
        if disturbed := self.of("disturbed"):
            self.check("head", next(line for line in head.splitlines() if "disturbed" in line),
                       [len(disturbed)])

    # ---- tables ----

    def check_tables(self):
        workload, head = None, None
        for line in self.text.splitlines():
            if found := re.match(r"## (\d+) connections", line):
                workload = int(found[1])
            elif line.startswith("## "):
                workload = None
            elif line.startswith("Residual spread"):
                self.check_design(line, workload)
            if not line.startswith("|"):
                head = None
            elif head is None:
                head = [cell.strip() for cell in line.strip("|").split("|")]
            elif not line.startswith("|---"):
                name, *cells = [cell.strip() for cell in line.strip("|").split("|")]
                try:
                    wanted = self.row(head, name, workload)
                except (LookupError, ValueError, ZeroDivisionError) as error:
                    self.faults.append(f"{head[0]}, {name}: {error!r}")
                    continue
                for title, cell, want in zip(head[1:], cells, wanted, strict=True):
                    if want is not None:
                        self.check(f"{head[0]}, {name}, {title}", cell, want)

    def row(self, head, name, workload):
        """Returns the expected numbers of the cells of a row, each a list, or None for words."""
        first = head[0]
        if first.endswith(", connections") or first.startswith(
                ("Slowdown, ", "Memory", "Order by resources")):
            return self.architecture(head, name)
        if first == "Configuration" and "MB/s, median" in head:
            return self.throughput(name, workload)
        if first == "Configuration" and "most events waiting" in head:
            return self.visits(name, workload)
        if first == "drain relative to":
            return [self.ratio("drain", name, RATIOS[title], workload=workload).figures()
                    for title in head[1:]]
        if first == "Round" and "never sent" in head:
            return self.rounds(head, name)
        if first.startswith(("Misses", "L2 misses")):
            return self.caches(head, name)
        if first.startswith("p99, "):
            return self.slowdown(head, name)
        if first == "Policy":
            return self.bottleneck(name)
        if first == "Cutoff":
            return self.cutoff(name)
        if first == "Controller, loop, load":
            return self.addresses(name)
        if first == "Stages of the ring":
            policy, stages = name.split(", ")
            rows = self.of("ring", f"{policy}, {stages} stages")
            return [spread([value / row["rounds"] / int(stages) for row, value in zip(rows, values)])
                    for values in ([row["cpu_ns"] for row in rows],
                                   [1e9 * row["seconds"] for row in rows])]
        if first == "Most events of a visit":
            rows = self.of("gates", name)
            return [spread([row["cpu_ns"] / (8 * row["rounds"]) for row in rows]),
                    spread([row["rounds_per_s"] for row in rows])]
        if first == "Virtual to real":
            rows = self.of("simulation", name)
            return [self.ratio_to_real(rows, key).figures() for key in VIRTUAL] + [None]
        if first.startswith("Virtual cores"):
            return [self.cores(name, title) for title in head[1:]]
        if first == "Layout to one group":
            return [self.layout(*name.split(", "), *title.split(", ")) for title in head[1:]]
        if first == "Threads":
            rows = self.of("threads", workload=int(name))
            return [spread([row["tasks_per_s"] for row in rows]),
                    spread([row["cpu_ns"] / row["tasks"] / 1000 for row in rows]),
                    *(spread([row[key] for row in rows]) for key in ("p50_us", "p99_us"))]
        rows = self.of(KINDS.get(first, "policies"), name, workload)
        return [self.cell(rows, title) for title in head[1:]]

    def architecture(self, head, name):
        first, *columns = head
        if first == "Memory":
            rows = self.of("architectures", f"{name}, memory")
            return [figures for key in ("idle", "active") for figures in (
                [rows[0][key]["connections"]],
                spread([row[key]["bytes"] / 1024 / row[key]["connections"] for row in rows]))]
        if first == "Order by resources":
            waits = [spread([row["waited"] for row in self.of(
                "architectures", f"{name}, scarce memory, {word}")]) for word in ("no", "yes")]
            rows = self.of("architectures", f"{name}, scarce memory, yes")
            return [*([] if rows[0][key] is None else self.by_resources(name, key).figures()
                      for key in ("goodput", "p50_s", "p90_s", "rss", "pool")), *waits]
        if first.endswith(", load"):
            out = []
            for load in columns:
                values = [row["all"][first.split(", ")[1]]
                          for row in self.of("architectures", f"{name}, load {load}")]
                out.append([] if None in values or not values else Ratio(values).figures())
            return out
        figure = next(figure for figure in CLOSED if first.startswith(f"{figure}, "))
        workload = first.removeprefix(f"{figure}, ").removesuffix(", connections")
        rows = [self.of("architectures", f"{name}, {workload}", int(count)) for count in columns]
        return [spread([CLOSED[figure](row) for row in of]) if of else [] for of in rows]

    def by_resources(self, name, key):
        return self.ratio(*(f"{name}, scarce memory, {word}" for word in ("yes", "no")), key,
                          "architectures")

    def of_architectures(self, claim, words):
        """Returns the ratio of a claim on architectures, and where it must be; or None."""
        left, _, right = words.partition(" : ")

        def closed(a, b, workload, count, of=CLOSED["Requests/s"]):
            return self.ratio(f"{a}, {workload}", f"{b}, {workload}", of, "architectures", count)
        cpu = CLOSED["CPU us per request"]
        if claim.startswith("At 100 connections user-level"):
            return closed("user-threads", "event-loop", words, 100), (0.98, math.inf)
        if "AMPED" in claim:
            return closed("amped", "event-loop", "GET of a variant", int(words.split()[0])), (
                0.98, math.inf)
        if found := re.search(r"within 5 % .* at (\d+) connections: (.*)\.", claim):
            return closed(left, right, found[2], int(found[1]), cpu), ALIKE_5
        if claim.startswith("User-level threads need"):
            return closed("user-threads", "drain", "dataset", int(words.split()[0]), cpu), ALIKE_1
        if claim.startswith("With 10,000 connections"):
            of = [{row["round"]: row["answered"] / row["seconds"] for row in self.of(
                "architectures", words, count)} for count in (10000, 100)]
            return Ratio([of[0][k] / of[1][k] for k in sorted(of[0].keys() & of[1].keys())]), (
                0.8, math.inf)
        if claim.startswith("An idle connection"):
            of = [{row["round"]: row["idle"]["bytes"] / 1024 / row["idle"]["connections"]
                   for row in self.of("architectures", f"{name}, memory")}
                  for name in ("user-threads", "drain")]
            return Ratio([of[0][k] / (of[1][k] + 3) for k in sorted(of[0].keys() & of[1].keys())]), BELOW
        if "lowest median slowdown" in claim:
            load = words.rpartition(" at ")[2]
            return self.ratio(f"{left}, load {load}", f"drain, load {load}",
                              lambda row: row["all"]["p50"], "architectures"), ABOVE
        if "order by resources" in claim:
            return self.by_resources(words, "goodput"), ABOVE
        return None

    def ratio_to_real(self, rows, key):
        return Ratio([row["virtual"][key] / row["real"][key] for row in rows])

    def cores(self, name, title):
        """Returns the expected figures of a policy or layout on virtual cores."""
        cores, workload, key = title.split(", ")
        rows = self.of("cores", f"{name}, {workload}", int(cores))
        return spread([self.of_cores(row, key) for row in rows]) if rows else []

    def of_cores(self, row, key):
        if key in SPENT:
            return sum(row["spent"][cost] for cost in SPENT[key]) / row["rounds"] * 8e5
        return row["efficiency" if key == "efficiency" else "slowdown_p99"]

    def layout(self, cores, policy, layout, workload, key):
        """Returns the expected ratio of a layout to one group on the same virtual cores."""
        base = "one group" + layout[layout.index(" on "):] if " on " in layout else "one group"
        return self.ratio(f"{policy}, {layout}, {workload}", f"{policy}, {base}, {workload}",
                          lambda row: self.of_cores(row, key), "cores", int(cores.split()[0])).figures()

    def cell(self, rows, title):
        if title == "load of the heaviest part to the mean":
            found = [row["layout"]["imbalance"] for row in rows if "imbalance" in row["layout"]]
            return spread(found) if found else []
        if title in ("throughput to 1", "CPU to 1"):
            key = "input_bytes_per_s" if title.startswith("t") else "cpu_ms_per_image"
            return [] if rows[0]["name"] == "1" else self.ratio(rows[0]["name"], "1", key,
                                                                "cohorts").figures()
        key, unit = COLUMNS[title]
        return spread([row[key] / unit for row in rows])

    def throughput(self, name, workload):
        medians = {row["name"]: spread([each["input_bytes_per_s"] for each in self.of(
            "policies", row["name"], workload)])[0] for row in self.of("policies", None, workload)}
        rows = self.of("policies", name, workload)
        values, best = [row["input_bytes_per_s"] / 1e6 for row in rows], max(medians.values())
        paper = GORDON.get(name)
        return [None, [rows[0]["connections"]], spread(values)[:1],
                [] if medians[name] == best else [100 * (medians[name] / best - 1)],
                [min(values), max(values)],
                [] if paper in (None, GORDON["mg1"]) else [100 * (paper / GORDON["mg1"] - 1)]]

    def visits(self, name, workload):
        rows = [row["visits"] for row in self.of("policies", name, workload) if "visits" in row]
        shares = [100 * row["visit_success"] for row in rows if row["visit_success"] is not None]
        busy = [max(row["busy_ms"]) / statistics.mean(row["busy_ms"]) for row in rows]
        return [spread(shares)[:1], *(spread([row[key] for row in rows])[:1] for key in (
            "max_events_per_visit", "max_queued_at_visit", "max_wait_ms")), spread(busy)[:1]]

    def rounds(self, head, name):
        number, _, which = name.partition(", ")
        if "due" in head:
            run, = (row[which] for row in self.of("overload") if row["round"] == int(number) - 1)
            return [[run["due"]], [run["answered"]], [run["refused"]], [run["unsent"]],
                    [value for value in run["p90_s"] if value is not None]]
        run, = (row for row in self.of("bursts", which) if row["round"] == int(number) - 1)
        return [[run[key]] for key in ("rate_per_s", "answered", "unsent", "p50_ms", "p90_ms",
                                       "p99_ms", "max_ms")]

    def caches(self, head, name):
        rows = self.of("caches", name)

        def mean(stage, kind):
            return [statistics.mean(row["misses"][stage][kind] for row in rows)
                    ] if stage in rows[0]["misses"] else []
        if head[0].startswith("L2"):
            return [mean(stage, kind) for kind in ("l2i", "l2d") for stage in STAGES]
        visits = [row["events_per_visit"]["jpeg_decode"] for row in rows]
        return [[] if None in visits else [statistics.mean(visits)],
                [mean("all", "instructions")[0] / 1e6],
                *(mean("all", kind) for kind in ("l1i", "l1d", "l2i", "l2d"))]

    def slowdown(self, head, name):
        _, arrivals, of_class = head[0].split(", ")
        key = {"oracle SRPT": "srpt", "processor sharing": "ps"}.get(name, "slowdown")
        out = []
        for load in map(float, head[1:]):
            rows = [row for row in self.of("slowdown") if (row["arrivals"], row["load"]) == (
                arrivals, load)]
            # An oracle is the same for each policy, since the arrivals are.
            policy = name if key == "slowdown" else rows[0]["policy"]
            own = [row[key][of_class]["p99"] for row in rows if row["policy"] == policy]
            out.append([] if None in own or not own else Ratio(own).figures())
        return out

    def cutoff(self, name):
        rows, none = self.of("cutoff", name), {
            row["round"]: row for row in self.of("cutoff", "none")}
        more = [(row["events_per_image"] - none[row["round"]]["events_per_image"],
                 row["cpu_ms_per_image"] - none[row["round"]]["cpu_ms_per_image"])
                for row in rows if name != "none"]
        costs = [1000 * ms / yields for yields, ms in more if yields > 0]
        tails = [[row["slowdown"][of_class]["p99"] for row in rows]
                 for of_class in ("small half", "largest tenth")]
        return [spread([yields for yields, _ in more]) if more else [],
                spread([row["cpu_ms_per_image"] for row in rows]),
                self.ratio(name, "none", "cpu_ms_per_image", "cutoff").figures() if more else [],
                spread(costs)[:1] if costs else [],
                *([] if None in values else spread(values) for values in tails)]

    def light_load(self, load, of_class):
        medians = {(row["policy"], row["round"]): row["slowdown"][of_class]["p50"]
                   for row in self.of("slowdown") if row["arrivals"] == "poisson"
                   and row["load"] == load}
        rounds = [k for policy, k in sorted(medians) if policy == "cohort"]
        return Ratio([medians["cohort", k] / medians["thread-per-connection", k] for k in rounds
                      if ("thread-per-connection", k) in medians])

    def addresses(self, name):
        name, clients = re.fullmatch(r"(.*), (\d+) clients", name).groups()
        rows = self.of("addresses", name, int(clients))

        def refused(row, size):
            return row[size]["refused"] / max(1, row[size]["refused"] + row[size]["admitted"])

        def ratio(row):
            both = [refused(row, "small"), refused(row, "large")]
            return max(both) / max(min(both), 0.001) if max(both) >= 0.05 else None

        def elsewhere(row):
            lost = (1 - row["load_share"]) * (1 - row["goodput"])
            return 1 - lost if row["loop"] == "open" and row["factor"] >= 1 else None
        wanted = [[row["capacity_per_s"] for row in rows],
                  [100 * row["load_share"] for row in rows],
                  [row["goodput"] for row in rows], [elsewhere(row) for row in rows],
                  *([100 * refused(row, size) for row in rows] for size in ("small", "large")),
                  [ratio(row) for row in rows],
                  *([row[size]["p90_s"] for row in rows] for size in ("small", "large")),
                  [row["refusal_p99_s"] and row["refusal_p99_s"] * 1000 for row in rows],
                  *([row.get(key) for row in rows] for key in (
                      "rare_refused_in_a_row", "recovery_s", "recovery_services", "normal_after_s"))]
        return [[] if None in values else spread(values) for values in wanted]

    def bottleneck(self, name):
        rows = self.of("bottleneck", name)
        return [spread(values) for values in (
            [row["rounds_per_s"] for row in rows], [row["most_per_s"] for row in rows],
            [row["most_per_s"] / row["rounds_per_s"] for row in rows],
            [row["cpu_ns"] / row["rounds"] / 1000 for row in rows],
            *([row["paths"][path][key] / 1000 for row in rows] for path in (0, 2)
              for key in ("p50_us", "p99_us")),
            [100 * row["visits"] / max(1, row["visits"] + row["visits_empty"]) for row in rows])]

    def check_design(self, line, workload):
        """Checks the residual spread and what it can detect: the remainder after the means of rows
        and columns, one after the other."""
        names = sorted({row["name"] for row in self.of("policies", None, workload)})
        want = []
        for key in ("input_bytes_per_s", "cpu_ms_per_image", "p90_ms"):
            logs = [[math.log(row[key]) for row in self.of("policies", name, workload)]
                    for name in names]
            rounds = max(map(len, logs))
            logs = [row for row in logs if len(row) == rounds]
            rest = [[x - sum(row) / rounds for x in row] for row in logs]
            columns = [sum(column) / len(rest) for column in zip(*rest)]
            squares = sum((x - columns[k]) ** 2 for row in rest for k, x in enumerate(row))
            one = math.sqrt(squares / (rounds - 1) / (len(rest) - 1))
            want.append(100 * one)
            for alpha in (0.05, 0.05 / (len(names) - 1)):
                want.append(100 * one * math.sqrt(2 / rounds) * (
                    student(1 - alpha / 2, rounds - 1) + student(0.8, rounds - 1)))
        self.check("design", re.sub(r"9\dth percentile", "", line), want)

    # ---- verdicts ----

    def check_verdicts(self):
        for line in self.text.splitlines():
            if found := re.match(r"\d+\. \*\*(.*)\*\* (Holds|Does not hold|Cannot be told)\. (.*)",
                                 line):
                try:
                    self.check_verdict(*found.groups())
                except (LookupError, ValueError, ZeroDivisionError, AttributeError,
                        TypeError) as error:
                    self.faults.append(f"{found[1]}: {error!r}")
            elif re.match(r"\d+\. ", line):
                self.faults.append(f"this is no verdict: {line}")

    def check_verdict(self, claim, word, rest):
        if expected := re.match(r"The paper: (.*?\))\. ", rest):
            rest = rest[expected.end():]
            self.check_expected(claim, expected[1], rest)
        if rest.startswith(("Not measured.", "The requests that", "A quarter")):
            if word != "Cannot be told":
                self.faults.append(f"{claim}: {rest}")
            return
        ratios, regions, marks, names = [], [], [], []
        for part, body in re.findall(r"Must be (.*?): (.*?)\.(?= |$)(?!\.)", rest):
            region = self.region(part)
            for text in body.split("; "):
                words, figures, mark = re.match(
                    r"(.*?) ([\d.]+ \((?:[\d.]+|one round)\))( no| \?|)$", text).groups()
                ratio, wanted = self.comparison(claim, words)
                if region != wanted:
                    self.faults.append(f"{claim}: {words} must not be {part}")
                self.check(f"{claim}: {words}", figures, ratio.figures())
                ratios.append(ratio)
                regions.append(tuple(math.log(end) if end else -math.inf for end in region))
                marks.append(mark)
                names.append(words)
        whole, each, needed = verdict(ratios, regions)
        signs = [{"holds": "", "does not hold": " no", "cannot be told": " ?"}[one] for one in each]
        if (whole.capitalize(), signs) != (word, marks):
            self.faults.append(f"{claim}: {word} {marks}, and the raw results say {whole} {signs}")
        decided = re.search(r"Decided by (.*?)\.(?= |$)", rest)
        if (decided and decided[1]) != self.deciding(whole, each, names, ratios, regions):
            self.faults.append(f"{claim}: {decided and decided[1]} has not decided it")
        rounds = min(ratio.n for ratio in ratios)
        self.check(claim, re.search(r"\d+ comparisons?, \d+ rounds?\.", rest)[0],
                   [len(ratios), rounds])
        tells = re.search(r"(About|More than) (\d+) rounds would", rest)
        if (word == "Cannot be told" and rounds > 1) != bool(tells):
            self.faults.append(f"{claim}: the rounds that would tell")
        elif tells:
            self.check(claim, tells[2], [min(needed, 1000)])
            if (tells[1] == "About") != (needed <= 1000):
                self.faults.append(f"{claim}: {needed} rounds would tell")
        self.check_notes(claim, rest)

    @staticmethod
    def deciding(whole, each, names, ratios, regions):
        """Returns the name of the ratio whose interval is nearest to its bounds if the claim holds,
        and furthest beyond them if it does not."""
        if len(each) < 2 or whole == "cannot be told":
            return None
        ends = [ratio.ends() for ratio in ratios]
        if whole == "holds":
            rest = [min(low - region[0], region[1] - high)
                    for (low, high), region in zip(ends, regions)]
            return names[rest.index(min(rest))]
        beyond = [max(region[0] - high, low - region[1]) if one == whole else -math.inf
                  for (low, high), region, one in zip(ends, regions, each)]
        return names[beyond.index(max(beyond))]

    def check_expected(self, claim, text, rest):
        """Checks the paper's figures."""
        if "geometric means" in claim:
            left, right = (of.split(", ") for of in re.search(
                r"above 1: (.*?) : (.*?) [\d.]+ \(", rest).groups())
            want = [statistics.geometric_mean(GORDON[name] for name in left)
                    / statistics.geometric_mean(GORDON[name] for name in right)]
        elif "within 2 % of each other" in claim:
            core = [GORDON[name] for name in CORE]
            want = [min(core) / max(core), 1]
        elif "stacks do not help" in claim:
            want = [GORDON["cohort-stacks"] / GORDON["cohort"], 0.44 / 0.32, 90.0]
        else:
            want = next((want for words, want in EXPECTED.items() if words in claim), [])
        self.check(claim, text.rpartition(" (")[0].replace("90th", "90"), want)

    @staticmethod
    def region(text):
        ends = [float(found) for found in re.findall(r"[\d.]+", text)]
        if text.startswith("above"):
            return ends[0], math.inf
        if text.startswith("below"):
            return 0, ends[0]
        return {0.98: ALIKE, 0.95: ALIKE_5, 0.99: ALIKE_1}[ends[0]]

    def comparison(self, claim, words):
        """Returns the ratio that the words of a claim name, and where it must be."""
        at = re.search(r"at (\d+) connections", claim)
        workload = int(at[1]) if at else None
        left, _, right = words.partition(" : ")
        if found := self.of_architectures(claim, words):
            return found
        if "geometric means" in claim:
            left, right = left.split(", "), right.split(", ")
            measured = {row["name"] for row in self.of("policies", None, workload)
                        if row["connections"] == workload}
            threads = {f"thread-per-connection-{workload}"}
            classes = (CORE, POOLS) if claim.startswith("Thread-per-core") else (POOLS, threads)
            if [set(left), set(right)] != [names & measured for names in classes]:
                raise ValueError(f"{words} are not the paper's classes")
            return self.contrast(left, right, "input_bytes_per_s", workload), ABOVE
        if "within 2 % of each other" in claim:
            if not {left, right} <= CORE:
                raise ValueError(f"{words} are not the paper's")
            return self.ratio(left, right, "input_bytes_per_s", workload=workload), ALIKE
        if "stacks do not help" in claim:
            return (self.ratio("cohort-stacks", "cohort", RATIOS[words], workload=workload),
                    (0, 1.01) if words == "throughput" else (0.95, math.inf))
        if "lowest 90th percentile" in claim:
            return self.ratio(left, right, "p90_ms", workload=workload), ABOVE
        if claim.startswith("drain loses less"):
            metric = re.match(r"(throughput|9\dth percentile)( of response times)? drain$", left)[1]
            return (self.ratio("drain", right, RATIOS[metric], workload=workload),
                    (0.99, math.inf) if metric == "throughput" else BELOW)
        if claim.startswith("Replication"):
            if left.startswith("heaviest"):
                return Ratio([row["layout"]["imbalance"] for row in self.of(
                    "layouts", left.removeprefix("heaviest of "))]), (1.1, math.inf)
            return self.ratio(left, right, "input_bytes_per_s", "layouts"), ABOVE
        if claim.startswith("Batching saves CPU"):
            return self.ratio("batches", "single events", "cpu_ms_per_image" if words.startswith(
                "CPU") else lambda row: row["counters"]["cycles"] / row["counters"]["instructions"],
                "batching"), BELOW
        if "simulated caches" in claim:
            return self.misses(claim, words), BELOW
        if claim.startswith("Cohorts of all"):
            return self.ratio("all", "1", "input_bytes_per_s", "cohorts"), ABOVE
        if claim.startswith("With one bottleneck"):
            return self.one_bottleneck(claim, words)
        if "hand-over" in claim:
            stages = int(re.match(r"(\d+) stages", words)[1])
            if "thread for each" in claim:
                return Ratio([1e6 * row["seconds"] / (row["rounds"] * stages) for row in self.of(
                    "ring", f"seda, {stages} stages")]), (0, 5.1)
            return Ratio([row["cpu_ns"] / row["rounds"] / stages / 1000 for row in self.of(
                "ring", f"cohort, {stages} stages")]), BELOW
        if claim.startswith("Cohorts save CPU"):
            return self.ratio(left, right, lambda row: row["cpu_ns"] / row["rounds"],
                              "gates"), BELOW
        if "median response time of cohort" in claim:
            least = min(row["load"] for row in self.of("slowdown"))
            if f"{least:g}" != re.search(r"a load of ([\d.]+) ", claim)[1]:
                raise ValueError("this is not the lightest load")
            return self.light_load(least, words), (10, math.inf)
        if "cutoff of" in claim:
            of = (lambda row: row["slowdown"]["small half"]["p99"]) if "99th" in claim \
                else "cpu_ms_per_image"
            return (self.ratio(left, right, of, "cutoff"),
                    BELOW if "99th" in claim else (0, 1.02))
        if "threads have less throughput" in claim:
            names = f"{left} threads", f"{right} threads"
            return self.ratio(*names, "tasks_per_s", "threads"), BELOW
        if "times the capacity" in claim:
            rows = self.of("overload")
            if words.startswith("last quarter"):
                return Ratio([row["limited"]["p90_s"][3] / row["target_s"] for row in rows]), BELOW
            growth = []
            for row in rows:
                first, *rest = row["unlimited"]["p90_least_s"]
                growth.append([later for later in rest if later][-1] / first)
            return Ratio(growth), (1.5, math.inf)
        raise LookupError("this claim is unknown here")

    def misses(self, claim, words):
        kinds = {"instructions (": ("i",), "data (": ("d",), "together": ("i", "d"),
                 "than cohort": ("i", "d")}
        ends = next(ends for text, ends in kinds.items() if text in claim)
        a, b = ("drain", "cohort") if claim.startswith("drain") else ("cohort",
                                                                      "cohort, single events")
        return self.ratio(a, b, lambda row: sum(row["misses"]["all"][words.lower() + end]
                                                for end in ends), "caches")

    def one_bottleneck(self, claim, words):
        left, _, right = words.partition(" : ")

        def ratio(a, b):
            return self.ratio(a, b, "rounds_per_s", "bottleneck")
        if "visits of at most" in claim:
            short = f"cohort, at most {re.search(r'([0-9.]+) ms', claim)[1]} ms"
            if words == "throughput, limited : seda":
                return ratio(short, "seda, normal"), ABOVE
            return self.ratio(short, "cohort, normal", lambda row: row["paths"][0]["p99_us"],
                              "bottleneck"), BELOW
        if "does not meet it" in claim:
            if right != "seda" or left == "seda":
                raise ValueError(f"{words} are not a policy and the pools")
            return self.ratio(f"{left}, normal", "seda, normal",
                              lambda row: row["paths"][0]["p50_us"], "bottleneck"), ABOVE
        if "called directly" in claim:
            return ratio(f"{words}, underthreaded", f"{words}, normal"), ABOVE
        if words == "overthreaded : normal":
            return ratio("seda, overthreaded", "seda, normal"), BELOW
        return ratio(*(f"{word}, underthreaded" for word in words.split(" : "))), ALIKE

    def check_notes(self, claim, rest):
        for text in re.findall(r"CPU per image ([\d.]+ \([^)]*\))\.", rest):
            if "geometric means" in claim:
                words = re.search(r": (.*?) : (.*?) [\d.]+ \(", rest)
                workload = int(re.search(r"at (\d+) connections", claim)[1])
                self.check(claim, text, self.contrast(words[1].split(", "), words[2].split(", "),
                                                      "cpu_ms_per_image", workload).figures())
        for name, text in re.findall(r"(?<=\. )([^.]*?) : shared = ([\d.]+ \([^)]*\)) in", rest):
            self.check(claim, text,
                       self.ratio(name, "shared", "input_bytes_per_s", "layouts").figures())
        for number, name, *counts in re.findall(
                r"Round (\d+), (\w+): (\d+) due, (\d+) accepted, (\d+) refused, (\d+) never", rest):
            run, = (row[name] for row in self.of("overload") if row["round"] == int(number) - 1)
            self.check(claim, " ".join(counts),
                       [run[key] for key in ("due", "answered", "refused", "unsent")])


def check(folder):
    """Returns the differences of a report from its raw results, and the number of figures."""
    report = Report(pathlib.Path(folder))
    for part in (report.check_rows, report.check_head, report.check_tables, report.check_verdicts):
        part()
    return report.faults, report.checked


if __name__ == "__main__":
    faults_, count_ = check(sys.argv[1])
    print("\n".join(faults_) or f"{count_} figures agree")
    sys.exit(bool(faults_))
