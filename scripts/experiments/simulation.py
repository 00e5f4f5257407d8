"""Virtual time (tests/world) beside real cores: the same program, scheduler, arrivals and work on two
real cores and on two virtual ones, for each policy, load and closed loop. And the scheduler on more
cores than this machine has.

Work is CPU time, so that the speed of the processor is no part of the comparison. The costs of
virtual time are measured on the same machine just before. Nothing is fitted to the compared runs.
"""

import json
import math
import os
import subprocess
import tempfile

import arrivals
import quiet
import run
import results as r
import synthetic
from job import Job
from machine import ROOT
from markdown import table as markdown_table
from oracles import ORACLES
from paired import Pairs

WORLD = ROOT / "build" / "plain" / "world"
PARTS = "simulation", "cores"
# user-threads passes stages while its stack has room, so its execution depends on the compiler.
POLICIES = tuple(policy for policy in synthetic.POLICIES if policy != "user-threads")
CORES = 2
# A ring of five stages. An event needs a millisecond of CPU time, with exponential distributions.
STAGES, BOTTLENECK_US, IDLE_US = 5, 400, 150
WORK_US = BOTTLENECK_US + (STAGES - 1) * IDLE_US
# Events of a closed loop, or a load of Poisson arrivals, as a share of the capacity.
WORKLOADS = {"4 events": 4, "16 events": 16, "load 0.3": 0.3, "load 0.6": 0.6, "load 0.9": 0.9,
             "load 1.2": 1.2}
SECONDS, ROUNDS = 1.5, 4
BOUNDS = {"rounds_per_s": 0.05, "p50_us": 0.1, "p90_us": 0.1, "p99_us": 0.1}
TITLES = {"rounds_per_s": "throughput", "p50_us": "p50", "p90_us": "p90", "p99_us": "p99"}
EVENTS_MAX = 4000  # of an open loop: the most that wait under overload


# ---- runs ----

def _arrivals_per_s(load, cores):
    return round(load * cores * 1e6 / WORK_US)


def arguments(policy, cores, workload, seconds, seed, pools=(CORES, 1), **more):
    """Returns the arguments of tests/bench/synthetic. workload: events, or a load. pools: the
    threads of the bottleneck's pool and of each other one, with seda."""
    is_open = isinstance(workload, float)
    rate = _arrivals_per_s(workload, cores) if is_open else 0
    more = {"random": seed, "clocked": 1, "rate": rate, **more}
    threads, pool = pools if policy == "seda" else (cores, 1)
    return [policy, STAGES, 0, threads, pool, EVENTS_MAX if is_open else workload, BOTTLENECK_US,
            IDLE_US, seconds, *(f"{name}={value}" for name, value in more.items() if value)]


def virtual(program_arguments, cores, costs, **settings):
    """Runs the program on that many virtual cores. Returns its results, and the CPU time of each
    cost in seconds."""
    world = {"cpus": cores, **costs, "report": 1, **settings}
    done = subprocess.run(["setarch", "-R", WORLD / "synthetic", *map(str, program_arguments)],
                          env=os.environ | {"WORLD": " ".join(f"{k}={v}" for k, v in world.items())},
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise run.Failed(f"the world ended with status {done.returncode}: {done.stderr}")
    spent = {words[1]: float(words[3]) for words in map(str.split, done.stderr.splitlines())
             if words[0] == "cost"}
    return figures(json.loads(done.stdout)), spent


def figures(report):
    return {key: report[key] for key in (*BOUNDS, "rounds", "slowdown_p50", "slowdown_p99",
                                         "visits", "visits_empty", "refused")}


def _costs(options):
    """Returns the costs of this machine. They are measured once, undisturbed, and stored with the
    results."""
    return quiet.once(options.out / "costs.json", "costs", measure_costs,
                      options.others / 100)["costs"]


def measure_costs():
    """Returns all costs in ns. `visit` is what is left of a hand-over on one core."""
    costs = synthetic.program("costs")
    ring = ["drain", STAGES, 0, 1, 1, 1, 0, 0, 0.3]
    real_per_s = max(synthetic.program("synthetic", *ring)["rounds_per_s"] for _ in range(5))
    free, _ = virtual(ring, 1, {**costs, "visit": 0})
    visit = (1e9 / real_per_s - 1e9 / free["rounds_per_s"]) / STAGES
    return {"costs": costs | {"visit": max(0, visit)}}


# ---- two cores ----

def jobs(options, bench, number):
    return [Job("simulation", f"{policy}, {name}", 0, number,
                lambda policy=policy, workload=workload: _measure(options, policy, workload, number),
                1.25 * SECONDS + 0.9)
            for policy in POLICIES for name, workload in WORKLOADS.items()]


def _measure(options, policy, workload, number):
    costs = _costs(options)
    same = arguments(policy, CORES, workload, SECONDS, number + 1)
    real = figures(synthetic.program("synthetic", *same))
    return {"policy": policy, "real": real, "costs": costs,
            "virtual": virtual(same, CORES, costs)[0]}


def pairs(lines, key):
    """Returns the ratios of the virtual figure to the real one, one for each round."""
    return Pairs([line["virtual"][key] / line["real"][key] for line in lines])


def is_inside(lines, key):
    """A figure is inside its bound, or the measurement cannot tell it from the real one."""
    interval = pairs(lines, key).interval()
    return (abs(interval.ratio - 1) <= BOUNDS[key]
            or interval.low <= 1 <= interval.high and not math.isinf(interval.high))


def outside(lines):
    """Returns the figures of a row that are outside."""
    return [TITLES[key] for key in BOUNDS if not is_inside(lines, key)]


def rows(results):
    """Yields the name and the lines of each row."""
    for policy in POLICIES:
        for name in WORKLOADS:
            if lines := results.runs("simulation", f"{policy}, {name}", 0):
                yield f"{policy}, {name}", lines


def table(results):
    found = list(rows(results))
    all_inside = sum(not outside(lines) for _, lines in found)
    return (f"{all_inside} of {len(found)} rows are inside.\n\n" + markdown_table(
        ["Virtual to real", *TITLES.values(), "outside"],
        [[name, *(r.ratio_text(pairs(lines, key).interval()) for key in BOUNDS),
          ", ".join(outside(lines))] for name, lines in found]))


# ---- more cores ----

# Policies on virtual cores, with the costs that the validation has measured, and 20 seeds.
MANY = (4, 16, 64, 128, 256)
THREADS_MAX = 256
MANY_WORKLOADS = {"saturated": 8, "load 0.5": 0.5, "load 0.8": 0.8, "load 0.95": 0.95}
OPEN = [name for name, load in MANY_WORKLOADS.items() if isinstance(load, float)]
MANY_ROUNDS, MANY_REQUESTS = 20, 2000
POLICY_ROUNDS = 4  # the policies are compared in the first ones, and the layouts in all
SECONDS_MIN = 0.01  # of tests/bench/synthetic
SOURCE_CORES = 16  # for each thread from which events arrive: with less, they come late
ONE_GROUP, HELP = "one group", " that help"
WARM_UP = 0.25  # of tests/bench/synthetic, as a share of the measured time
# Layouts by cores, each beside one group of all of them.
LAYOUTS = {2: ("2 replicas",), 8: ("2 replicas",),
           16: ("2 replicas", "2 replicas that help", "2 parts", "2 groups"),
           64: ("4 replicas", "8 replicas", "4 replicas that help"),
           256: ("8 replicas", "8 replicas that help")}
# The same on nodes, where an event that another node had needs more CPU time by an assumed FAR_US.
NODES, FAR_US = {16: 2, 64: 4, 256: 8}, 20
LAYOUT_POLICIES = "drain", "cohort"
LAYOUT_WORKLOADS = "saturated", "load 0.5", "load 0.8"


def _pools(cores):
    """Pools in proportion to the work, rounded up, of as many threads as a group may have."""
    threads, pool = (-(-cores * us // WORK_US) for us in (BOTTLENECK_US, IDLE_US))
    while threads + (STAGES - 1) * pool > THREADS_MAX:
        pool -= 1
    return max(2, threads), pool


def layouts(cores):
    """Returns the names of the layouts, and of those to compare them with."""
    nodes = f" on {NODES.get(cores)} nodes"
    return {name: ONE_GROUP for name in LAYOUTS[cores]} | (
        {f"{NODES[cores]} replicas{nodes}": ONE_GROUP + nodes} if cores in NODES else {})


def cores_jobs(options, bench, number):
    costs = validated_costs()
    cases = [(f"{policy}, {workload}", cores, policy, workload, "") for policy in POLICIES
             for cores in MANY for workload in MANY_WORKLOADS if number < POLICY_ROUNDS]
    cases += [(f"{policy}, {layout}, {workload}", cores, policy, workload, layout)
              for policy in LAYOUT_POLICIES for cores in LAYOUTS
              for layout in sorted({*layouts(cores), *layouts(cores).values()})
              for workload in LAYOUT_WORKLOADS]
    return [Job("cores", name, each[0], number,
                lambda each=each: _measure_many(costs, number, *each), 0.5)
            for name, *each in cases] + [
        Job("cores", f"{name}, {workload}", cores, number,
            lambda each=(name, cores, workload): oracle(number, *each), 0.3)
        for name in ORACLES for cores in MANY for workload in OPEN if number < POLICY_ROUNDS]


def validated_costs():
    """Returns the costs of the committed validation. Without one those of tests/world/costs.h
    hold."""
    path = ROOT / "data" / "results" / "simulation" / "raw.jsonl"
    return next((line["costs"] for line in r.read(path) if line["kind"] == "simulation"),
                {}) if path.exists() else {}


def _layout_arguments(layout):
    """Returns the arguments of tests/bench/synthetic and the settings of the world for a layout."""
    count, *words = layout.split()
    world = {"nodes": int(words[-2]), "far": 1000 * FAR_US} if "nodes" in words else {}
    if count == "one":
        return {}, world
    kind = words[0]  # replicas, parts or groups
    more = {kind: 1 if kind == "groups" else int(count)}
    return more | ({"steal": 1} if layout.endswith(HELP) else {}), world


def _write_profile(file):
    """Writes what the stages cost, as layout.profile."""
    for stage in range(STAGES):
        us = BOTTLENECK_US if stage == STAGES // 2 else IDLE_US
        file.write(f"[stage.s{100 + stage}]\nservice_ns = {us * 1000}\nevents = 1\n"
                   f"to_s{100 + (stage + 1) % STAGES} = 1\n")
    file.flush()


def _sources(cores):
    return max(1, cores // SOURCE_CORES)


def _seconds(cores):
    """Returns the measured time, after the warm-up."""
    return max(MANY_REQUESTS * WORK_US / 1e6 / cores, SECONDS_MIN)


def oracle(number, name, cores, workload):
    """Returns the slowdown of an oracle under the arrivals and the work that every policy has in
    this round. As with a policy, those events count that end in the measured time."""
    seconds = _seconds(cores)
    due, work = arrivals.draw(
        number + 1, _arrivals_per_s(MANY_WORKLOADS[workload], cores), _sources(cores),
        [BOTTLENECK_US if stage == STAGES // 2 else IDLE_US for stage in range(STAGES)],
        (1 + WARM_UP) * seconds)
    ends = ORACLES[name](due, work, cores)
    slowdowns = sorted((end - at) / own for end, at, own in zip(ends, due, work)
                       if WARM_UP * seconds <= end < (1 + WARM_UP) * seconds)
    return {"policy": name, "rounds": len(slowdowns), **{
        f"slowdown_p{100 * share:g}": round(slowdowns[int(share * (len(slowdowns) - 1))], 3)
        for share in (0.5, 0.99)}}


def _measure_many(costs, number, cores, policy, workload, layout):
    load, rate = MANY_WORKLOADS[workload], cores * 1e6 / WORK_US
    is_open = isinstance(load, float)
    more, world = _layout_arguments(layout) if layout else ({}, {})
    more["sources"] = _sources(cores) if is_open else 0
    with tempfile.NamedTemporaryFile("w") as profile:
        if "parts" in more:
            _write_profile(profile)
            more["profile"] = profile.name
        words = arguments(policy, cores, load if is_open else load * cores,
                          _seconds(cores), number + 1, _pools(cores), **more)
        found, spent = virtual(words, cores, costs, skip=1, **world)
    return {"policy": policy, "spent": spent, "efficiency": found["rounds_per_s"] / rate, **found}


def cores_table(results):
    """Returns tables of the policies on each number of cores, of the layouts beside one group, and of
    what the scheduler costs: those that have been measured."""
    rows_ = [[f"{count} cores, {policy}, {layout}", *(_layout_cell(
        results, count, policy, layout, base, *column) for column in LAYOUT_COLUMNS)]
             for count in LAYOUTS for policy in LAYOUT_POLICIES
             for layout, base in layouts(count).items()
             if results.runs("cores", f"{policy}, {layout}, saturated", count)]
    of_layouts = [markdown_table(["Layout to one group", *(", ".join(column)
                                                           for column in LAYOUT_COLUMNS)], rows_)]
    oracles = measured_oracles(results)
    of_policies = [_policies_table(results, "Virtual cores, policy", (*POLICIES, *oracles), [
        (count, workload, SLOWDOWN if workload in OPEN else EFFICIENCY)
        for count in MANY for workload in MANY_WORKLOADS]),
                   *([ORACLES_TEXT] if oracles else []),
                   _policies_table(results, "Virtual cores, CPU us per event", POLICIES, [
                       (count, workload, key) for count in MANY[1:]
                       for workload in ("load 0.5", "load 0.95") for key in SPENT])]
    return "\n\n".join([*(of_policies if has_policies(results) else ()),
                        *(of_layouts if rows_ else ())])


def has_policies(results):
    return any(line["name"].count(", ") == 1 for line in results.of("cores"))


def _policies_table(results, title, names, columns):
    columns = [each for each in columns if results.runs("cores", f"{POLICIES[0]}, {each[1]}", each[0])]
    return markdown_table(
        [title, *(f"{count}, {workload}, {key}" for count, workload, key in columns)],
        [[name, *(_cores_cell(results, name, *each) for each in columns)] for name in names])


def measured_oracles(results):
    """Returns the oracles that the results have. Those of older commits have none."""
    found = {line["name"].split(", ")[0] for line in results.of("cores")}
    return [name for name in ORACLES if name in found]


ORACLES_TEXT = (
    "The oracles serve the same arrivals on as many cores without any overhead: SRPT with the least "
    "remaining work first, and processor sharing. The work of an event is the sum of its CPU times "
    "over all stages. An oracle knows that work, and may change between events at any time. An event "
    "uses one core at a time. Neither oracle is a bound on the p99 of the slowdown. A closed loop has "
    "none, since its arrivals depend on the policy.")


EFFICIENCY, SLOWDOWN = "efficiency", "p99 slowdown"
SPENT = {"looks": ("look", "scan"), "contended words": ("line",),
         "waking": ("wake", "wake_send", "doze_wake", "doze_send", "context")}
LAYOUT_COLUMNS = (("saturated", EFFICIENCY), ("load 0.5", SLOWDOWN), ("load 0.8", SLOWDOWN),
                  ("load 0.5", "looks"), ("load 0.5", "contended words"))


def _cores_figure(line, key):
    """Returns the efficiency, the slowdown, or the CPU time of costs for each event, in us."""
    if key in SPENT:
        return 1e6 * sum(line["spent"][cost] for cost in SPENT[key]) / (
            (1 + WARM_UP) * line["rounds"])
    return line["efficiency" if key == EFFICIENCY else "slowdown_p99"]


def _cores_cell(results, name, cores, workload, key):
    runs = results.runs("cores", f"{name}, {workload}", cores)
    return r.spread([_cores_figure(line, key) for line in runs],
                    3 if key == EFFICIENCY else 1) if runs else ""


def _layout_cell(results, cores, policy, layout, base, workload, key):
    pairs_ = results.pairs(f"{policy}, {layout}, {workload}", f"{policy}, {base}, {workload}",
                           cores, lambda line: _cores_figure(line, key), "cores")
    return r.ratio_text(pairs_.interval()) if pairs_ else ""
