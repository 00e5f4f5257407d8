"""The preemption quantum: policy cohort with scheduler.service = cutoff, from 0.1 to 50 ms, in an
open loop of Poisson arrivals. A decode that takes longer is parked, and smaller pictures pass it
(Shinjuku, Kaffes et al. 2019, has 5 us; a decode here takes milliseconds)."""

import statistics

import paired
import plan
import results as r
import slowdown
from job import Job
from markdown import table as markdown_table

NONE = "none"
CUTOFFS = {NONE: "10s", "50 ms": "50ms", "10 ms": "10ms", "5 ms": "5ms", "1 ms": "1ms",
           "0.5 ms": "500us", "0.1 ms": "100us"}
LOAD, ROUNDS = 0.7, 6
SMALL, LARGE = "small half", "largest tenth"


def jobs(options, bench, number):
    configuration, = plan.configurations(["cohort"])
    return [Job("cutoff", name, 0, number,
                lambda value=value: slowdown.measure(
                    options, bench, configuration, "poisson", LOAD, number,
                    ("scheduler.service=cutoff", f"experiment.cutoff={value}")), bench.guess_s)
            for name, value in CUTOFFS.items()]


def p99(line, of_class):
    return line["slowdown"][of_class]["p99"]


def pairs(results, name, of):
    """Returns the ratios of a cutoff to none in a figure of the rows, or None if a round lacks it."""
    rounds = {row: {line["round"]: of(line) for line in results.runs("cutoff", row, 0)}
              for row in (name, NONE)}
    shared = [number for number in rounds[name] if number in rounds[NONE]]
    if not shared or any(not rounds[row][number] for row in rounds for number in shared):
        return None
    return paired.Pairs([rounds[name][number] / rounds[NONE][number] for number in shared])


def _yields(results, name):
    """Returns the yields per image of each round, and the CPU time that each costs in
    microseconds: [] for none, whose visits are those of the images alone."""
    none = {line["round"]: line for line in results.runs("cutoff", NONE, 0)}
    counts, costs = [], []
    for line in results.runs("cutoff", name, 0):
        if name == NONE or line["round"] not in none:
            continue
        base = none[line["round"]]
        counts.append(line["events_per_image"] - base["events_per_image"])
        if counts[-1] > 0:
            costs.append(1000 * (line["cpu_ms_per_image"] - base["cpu_ms_per_image"]) / counts[-1])
    return counts, costs


def table(results):
    rows = []
    for name in CUTOFFS:
        runs = results.runs("cutoff", name, 0)
        if not runs:
            continue
        counts, costs = _yields(results, name)
        cpu = pairs(results, name, lambda line: line["cpu_ms_per_image"])
        rows.append([name, r.spread(counts, 2) if counts else "",
                     r.spread([line["cpu_ms_per_image"] for line in runs], 2),
                     r.ratio_text(cpu.interval()) if cpu and name != NONE else "",
                     f"{statistics.median(costs):.1f}" if costs else "",
                     *(r.spread(values, 1) if None not in values else "" for values in (
                         [p99(line, SMALL) for line in runs], [p99(line, LARGE) for line in runs]))])
    return markdown_table(["Cutoff", "yields per image", "CPU per image, ms", "CPU to none",
                           "CPU of a yield, us", "p99 slowdown, small half",
                           "p99 slowdown, largest tenth"], rows)
