"""A second program agrees with each report, and finds each figure that is wrong."""

import collections
import functools
import json
import random
import re

import architectures
import cutoff
import plan
import pytest
import readme
import recompute
import report
import simulation
import synthetic
from results import Results

FOLDERS = sorted(path.parent for path in readme.RESULTS.glob("*/raw.jsonl")
                 if {"memory_gb", "costs"} & json.loads(path.read_text().splitlines()[0]).keys()
                 == {"memory_gb"})  # the cost model has a report of its own
MACHINE = {"kind": "machine", "date": "2026-01-02 03:04 UTC", "cpu": "made up", "cores": 2,
           "memory_gb": 8, "kernel": "6.1.0", "system": "Debian 12", "commit": "b12778b",
           "load_average": 0.07, "seed": 4711, "requests": 7654, "files": 321,
           "file_bytes": 98765432, "options": [], "command": "scripts/experiment --seed 4711"}
NAMES = {"drain": "drain", "cohort": "cohort", "cohort-stacks": "cohort", "mg1": "mg1",
         "srpt": "srpt", "seda": "seda", "seda-malloc": "seda", "seda-overthreaded": "seda",
         "thread-per-connection-16": "thread-per-connection"}
FASTER = {"seda": 0.6, "seda-malloc": 0.7, "cohort-stacks": 1.4, "all": 1.3}


class Made:
    """Rows of every part, with figures drawn at random."""

    def __init__(self, rounds, seed):
        self.rng, self.rounds, self.rows = random.Random(seed), rounds, []

    def near(self, value, spread=0.05):
        return value * self.rng.lognormvariate(0, spread)

    def add(self, kind, names, make, workload=16):
        for number in range(self.rounds):
            rows = [{"kind": kind, "name": name, "workload": workload, "round": number,
                     "others_cpu_share": self.near(0.02, 0.3)} for name in names]
            self.rows += [row | make(row["name"]) for row in rows]

    def closed(self, name):
        makespan, images = self.near(15), 7654
        cpu = makespan * self.rng.uniform(1.6, 2)
        return {"makespan_s": makespan, "answered_s": makespan * 0.98, "images": images,
                "responses_per_s": images / makespan,
                "input_bytes_per_s": self.near(60e6 * FASTER.get(name, 1)),
                **{f"{key}_ms": self.near(value, 0.1)
                   for key, value in (("p50", 9), ("p90", 20), ("p99", 55), ("max", 140))},
                "cpu_s": cpu, "cpu_ms_per_image": 1000 * cpu / images, "connections": 16,
                "cpu_use": 100 * cpu / makespan / 2, "peak_rss_bytes": self.near(9e7),
                "policy": NAMES.get(name, "cohort"), "counters_missing": {}, "counters": {
                    "cycles": self.near(3e9), "instructions": self.near(4e9)},
                "visits": {"visit_success": self.rng.random(), "max_events_per_visit": 12,
                           "max_queued_at_visit": 17, "max_wait_ms": self.near(80), "busy_ms": [self.near(800), self.near(900)]},
                "layout": {"imbalance": self.near(1.2)} if "partition" in name else {}}

    def overload(self, _):
        def run():
            return {"due": self.rng.randrange(1000), "answered": self.rng.randrange(900),
                    "refused": 5, "unsent": 6, "p90_s": [self.near(0.2, 0.2) for _ in range(4)],
                    "p90_least_s": [self.near(0.3, 0.2) for _ in range(4)]}
        return {"capacity_per_s": 500.0, "target_s": 0.25, "admitted": 125, "limited": run(),
                "unlimited": run()}

    def plain(self, *keys):
        return {key: self.near(1000, 0.2) for key in keys}

    def by_class(self):
        return {name: {"n": 900, "p50": self.near(1.3), "p99": self.near(9, 0.3), "p99_9": None}
                for name in ("small half", "middle", "largest tenth")}

    def addresses(self, name):
        controller, loop, factor = name.split(", ")
        return {"controller": controller, "loop": loop, "factor": float(factor),
                "capacity_per_s": self.near(300), "load_share": self.near(0.1),
                "goodput": self.near(0.95), "refusal_p99_s": self.near(0.01),
                **{size: {"admitted": self.rng.randrange(900), "refused": self.rng.randrange(900),
                          "p90_s": None if loop == "think" else self.near(1)}
                   for size in ("small", "large")},
                **({"recovery_s": 0.5, "recovery_services": self.near(40), "normal_after_s": 0}
                   if loop == "jump" else {"rare_refused_in_a_row": self.rng.randrange(3)})}

    def architectures(self):
        """A thread for each connection serves few of them."""
        all_names = architectures.NAMES
        for workload, counts in architectures.WORKLOADS.items():
            for count in counts:
                self.add("architectures", [f"{name}, {workload}" for name in all_names
                                           if count < 64 or name != architectures.PER_CONNECTION],
                         lambda _: {"measured": "closed", "answered": self.rng.randrange(900, 1100),
                                    "seconds": self.near(1.0), "cpu_ns": self.near(1e9),
                                    "p99_ms": self.near(7.0)}, count)
        self.add("architectures", [f"{name}, load {load:g}" for name in all_names
                                   for load in architectures.LOADS], lambda name: {
            "all": {"p50": self.near(4), "p99": None if "0.1" in name else self.near(20)}}, 0)
        self.add("architectures", [f"{name}, memory" for name in all_names], lambda _: {
            key: {"connections": 999, "bytes": self.near(5e6)} for key in ("idle", "active")}, 0)
        self.add("architectures", [f"{name}, scarce memory, {word}" for name in architectures.SCARCE
                                   for word in ("no", "yes")], lambda _: {
            **self.plain("goodput", "p50_s", "p90_s", "rss", "pool"),
            "waited": self.rng.randrange(99)}, 0)
        for row in self.rows:
            if row["kind"] == "architectures":
                row["architecture"] = row["name"].partition(", ")[0]

    def caches(self, _):
        return {"images": 47, "sizes": {"LL": "2097152,16,64"},
                "events_per_visit": dict.fromkeys(recompute.STAGES, self.near(5)),
                "misses": {stage: self.plain("instructions", "l1i", "l1d", "l2i", "l2d")
                           for stage in (*recompute.STAGES, "all")}}

    def everything(self):
        for workload in (16, 4):
            self.add("policies", [*NAMES][:None if workload == 16 else -1], self.closed, workload)
        self.add("batching", ["batches", "single events"], self.closed)
        self.add("layouts", ["shared", "2 replicas", "2 partitions", "2 replicas by load"],
                 self.closed)
        self.add("overload", ["drain"], self.overload)
        # Oracles are the same for all policies.
        oracle = [self.by_class() for _ in range(self.rounds)]
        self.add("slowdown", [f"{policy}, {arrivals}, {load:g}" for policy in ("drain", "mg1", "cohort", "thread-per-connection")
                              for arrivals in ("poisson", "bursts") for load in (0.5, 1.2)],
                 lambda name: {"policy": name.split(", ")[0], "arrivals": name.split(", ")[1],
                               "load": float(name.split(", ")[2]), "slowdown": self.by_class()}, 0)
        for row in self.rows:
            if row["kind"] == "slowdown":
                row |= {"srpt": oracle[row["round"]], "ps": oracle[-1 - row["round"]]}
        self.add("cutoff", [*cutoff.CUTOFFS], lambda name: {
            "cpu_ms_per_image": self.near(4), "slowdown": self.by_class(),
            "events_per_image": self.near(4 if name == "none" else 9)}, 0)
        self.add("cohorts", ["1", "4", "10", "20", "all"], self.closed)
        self.add("bursts", ["controllers"], lambda _: {
            **self.plain("rate_per_s", "p50_ms", "p90_ms", "p99_ms", "max_ms"), "answered": 17,
            "unsent": 3, "samples": []})
        for clients in (1, 600):
            self.add("addresses", ["backlog, open, 0.95", "backlog, open, 2", "rate, think, 0",
                                   "backlog, jump, 1.4"], self.addresses, clients)
        self.add("bottleneck", [case[0] for case in synthetic.cases()], lambda _: self.plain(
            "rounds_per_s", "most_per_s", "cpu_ns", "rounds", "visits", "visits_empty")
            | {"paths": [self.plain("p50_us", "p99_us") for _ in range(3)]})
        self.add("gates", [*map(str, synthetic.GATES)], lambda name: {
            "cpu_ns": self.near(4e8 if name == "1" else 3e8), "rounds": 10**5,
            "rounds_per_s": self.near(3e5)}, 1000)
        for policy, stages in (("cohort", 1), ("cohort", 5), ("seda", 5), ("seda", 10)):
            self.add("ring", [f"{policy}, {stages} stages"],
                     lambda _, policy=policy, stages=stages: {
                         "policy": policy, "stages": stages, "cpu_ns": self.near(4e8),
                         "seconds": self.near(1.0), "rounds": 10**5}, 1)
        for count in (1, 64):
            self.add("threads", [f"{count} threads"], lambda _: {**self.plain(
                "tasks_per_s", "cpu_ns", "p50_us", "p99_us"), "tasks": 100}, count)
        self.architectures()
        self.add("caches", ["cohort", "cohort, single events", "drain"], self.caches)
        self.add("simulation", [f"{policy}, {name}" for policy in ("drain", "seda")
                                for name in simulation.WORKLOADS], lambda _: {
            side: self.plain(*simulation.BOUNDS) for side in ("real", "virtual")}, 0)
        names = collections.defaultdict(list)
        for each in simulation.cores_jobs(None, None, 0):
            names[each.workload].append(each.name)
        for cores in names:
            # Oracles cannot be made up, and take their time.
            self.add("cores", [name for name in names[cores] if cores == 4
                               or name.split(", ")[0] not in recompute.ORACLES],
                     lambda _: {"efficiency": self.near(0.9), "slowdown_p99": self.near(5),
                                "rounds": 2000, "spent": {
                                    cost: self.near(0.02) for cost in (
                                        "look", "scan", "line", "wake", "wake_send", "doze_wake",
                                        "doze_send", "context")}},
                     cores)
        for row in self.rows:
            name, _, workload = row["name"].partition(", ")
            if row["kind"] == "cores" and name in recompute.ORACLES:
                row |= of_oracle(row["round"], name, row["workload"], workload)
        self.rows.sort(key=lambda row: (row["round"], row["kind"], plan.place(
            4711, row["kind"], row["name"], row["workload"], row["round"])))
        self.rows.append(self.rows[0] | {"kind": "disturbed", "part": "policies"})
        return [MACHINE, *self.rows]


of_oracle = functools.cache(simulation.oracle)


@functools.cache
def made(rounds, seed):
    lines = Made(rounds, seed).everything()
    return ("".join(json.dumps(line) + "\n" for line in lines),
            report.text(Results(lines), MACHINE["command"])[1])


@pytest.fixture
def folder(tmp_path, request):
    """A folder with raw results, and the report that follows from them."""
    for name, text in zip(("raw.jsonl", "report.md"), made(*request.param)):
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("path", FOLDERS, ids=lambda path: path.name)
def test_committed_reports_are_recomputed(path):
    faults, checked = recompute.check(path)
    assert not faults and checked > 100


@pytest.mark.parametrize("folder", [(1, 1), (2, 2), (5, 3), (12, 4)], indirect=True,
                         ids=lambda p: f"{p[0]} rounds")
def test_every_part_is_recomputed(folder):
    faults, checked = recompute.check(folder)
    assert not faults and checked > 400


@pytest.mark.parametrize("folder", [(2, 2)], indirect=True, ids=["2 rounds"])
@pytest.mark.parametrize("kinds", [("simulation",), ("cores",), ("bottleneck", "ring"), ("gates", "threads")])
def test_a_report_without_a_daemon_names_none(folder, kinds):
    lines = [line for line in map(json.loads, (folder / "raw.jsonl").read_text().splitlines())
             if line["kind"] in ("machine", *kinds)]
    (folder / "raw.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    text = report.text(Results(lines), MACHINE["command"])[1]
    (folder / "report.md").write_text(text)
    assert "empty store" not in text and recompute.check(folder)[0] == []
    named = text.replace(". There is no daemon", ", with a fresh daemon and an empty store")
    (folder / "report.md").write_text(named)
    assert recompute.check(folder)[0] == ["head: no part has a daemon"]


def figures(text):
    """Returns the places of all figures of the tables and verdicts, without names, bounds and
    sections of papers."""
    text = re.sub(r"\((?:Gordon|Larus|Welsh|Kaffes)[^)]*\)", lambda found: " " * len(found[0]), text)
    out = []
    for line in re.finditer(r"^(?:\|(?!---| [A-Z]|  ).*|\d+\. \*\*.*)$", text, re.MULTILINE):
        body = line[0]
        begin = body.index("|", 1) if body[0] == "|" else body.index("** ", 5)
        for found in re.finditer(r"\d+\.\d+(?=[ )]| |$|\.\.)|(?<=\.\.)\d+\.\d+", body[begin:]):
            out.append(line.start() + begin + found.start())
    return out


@pytest.mark.parametrize("folder", [(5, 3)], indirect=True, ids=["5 rounds"])
def test_each_wrong_figure_is_found(folder):
    """The first digit of one figure at a time is another one."""
    text = (folder / "report.md").read_text()
    places = figures(text)
    assert len(places) > 500
    one = recompute.Report(folder)
    for place in random.Random(6).sample(places, 60):
        digit = str((int(text[place]) + 1) % 10)
        one.text, one.faults = text[:place] + digit + text[place + 1:], []
        one.check_tables()
        one.check_verdicts()
        assert one.faults, text[place - 80:place + 20]


@pytest.mark.parametrize("folder", [(5, 3)], indirect=True, ids=["5 rounds"])
@pytest.mark.parametrize("old, new", [
    ("Holds.", "Does not hold."), (" ?", ""), (" no", ""), ("6 comparisons", "5 comparisons"),
    ("321 files", "322 files"), ("--seed 4711", "--seed 4712"),
    ("the seed 4711", "the seed 4712"), ("7654 requests", "7653 requests"),
    ("Debian 12", "Debian 13"), ("1 runs were disturbed", "2 runs were disturbed"),
    ("About ", "About 1"), ("cohort-stacks, ", ""), ("below 1:", "below 1.01:"),
    ("Decided by ", "Decided by the other "),
    ("The paper: 1.", "The paper: 2."), ("The paper: 0.983", "The paper: 0.982")])
def test_a_wrong_word_is_found(folder, old, new):
    path = folder / "report.md"
    text = path.read_text()
    verdicts = text.index("1. **")
    at = text.find(old, verdicts) if old in text[verdicts:] else text.index(old)
    path.write_text(text[:at] + new + text[at + len(old):])
    assert recompute.check(folder)[0]


@pytest.mark.parametrize("folder", [(5, 3)], indirect=True, ids=["5 rounds"])
def test_a_row_that_was_changed_is_found(folder):
    """The clock of one run stops at the answer, as if nobody had seen it."""
    lines = (folder / "raw.jsonl").read_text().splitlines()
    place = next(i for i, line in enumerate(lines) if "answered_s" in line)
    row = json.loads(lines[place])
    row["cpu_s"] = 2.3 * row["makespan_s"]
    lines[place] = json.dumps(row)
    (folder / "raw.jsonl").write_text("\n".join(lines) + "\n")
    faults, _ = recompute.check(folder)
    assert any("more CPU time than the machine has" in fault for fault in faults)


@pytest.mark.parametrize("cores", simulation.MANY)
@pytest.mark.parametrize("name", recompute.ORACLES)
def test_two_programs_agree_on_each_oracle(name, cores):
    """And one of them finds another number of cores, and the events of another round."""
    row = {"kind": "cores", "name": f"{name}, load 0.95", "workload": cores, "round": 2,
           **simulation.oracle(2, name, cores, "load 0.95")}
    one = recompute.Report.__new__(recompute.Report)
    one.faults = []
    one.check_oracle("", row)
    assert one.faults == [] and row["rounds"] > 1500
    others = {"workload": cores - 1}, {"round": 3}, {"slowdown_p99": 1.001 * row["slowdown_p99"]}
    for other in others:
        one.check_oracle("", row | other)
    assert len(one.faults) == len(others)
