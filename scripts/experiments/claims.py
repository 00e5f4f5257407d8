"""The verdict on each claim, with its numbers. A claim is a function of the results.

A claim is a family of comparisons, each of a ratio and the region where it must be. It holds if all
intervals are within their regions. It does not hold if one is outside after a correction for their
number. Otherwise it cannot be told (paired.py). A claim on classes of configurations is one ratio,
of their geometric means.
"""

import collections
import itertools
import math
import statistics

import architectures
import caches
import cutoff
import results as r
import slowdown
import synthetic
from jobs import BATCHING, PARTITIONS, REPLICAS, SHARED
from overload import OVERLOAD
from paired import HOLDS, HOLDS_NOT, OPEN, ROUNDS_MAX, Pairs, family, rounds_to_decide
from plan import NOT_TUNED, PAPER, PER_CONNECTION, PER_CORE, POOLS, class_of

__all__ = ["HOLDS", "HOLDS_NOT", "OPEN"]  # the three verdicts

# claim: text; verdict: one of the above; numbers: sentences; expected: what the paper says, or "".
Verdict = collections.namedtuple("Verdict", "claim verdict numbers expected", defaults=("",))

MORE, LESS = (1, math.inf), (0, 1)
WITHIN = (0.98, 1 / 0.98)      # claim 2
# Claim 3: a gain smaller than this does not help.
NO_MORE, NO_SHORTER = (0, 1.01), (0.95, math.inf)
CHEAP = (0, 1.02)              # the CPU time of preemption
WELSH = (0, 5.1)               # a hand-over, in microseconds
TEN_TIMES = (10, math.inf)     # Larus and Parkes, figure 6: almost 20
NO_LOSS = (0.99, math.inf)     # of throughput: darkroom's own claim
IMBALANCE = (1.1, math.inf)    # claim 5: load per core of the heaviest part, relative to the mean
GROWS = (1.5, math.inf)        # claim 7: the last quarter's response time, to the first one's


def _region_text(region):
    low, high = region
    return (f"above {low:g}" if math.isinf(high) else f"below {high:g}" if low == 0
            else f"{low:.3g} to {high:.3g}")


def _log(ratio):
    return math.log(ratio) if ratio else -math.inf


def _beyond(interval, region):
    """Returns how far the nearer end of the interval is outside of the region, as a logarithm. It
    is negative for an interval that reaches into the region."""
    low, high = map(_log, region)
    return max(low - _log(interval.high), _log(interval.low) - high)


def _margin(interval, region):
    """Returns how far the interval is within the region, as a logarithm."""
    low, high = map(_log, region)
    return min(_log(interval.low) - low, high - _log(interval.high))


def _decided_by(verdict, words, intervals, regions, each):
    """Returns a sentence about the comparison that decided: of a claim that holds the one nearest
    to its bounds, of one that does not hold the one furthest outside."""
    if len(each) < 2 or verdict == OPEN:
        return []
    chosen = [i for i, of_one in enumerate(each) if of_one == verdict]
    if verdict == HOLDS:
        one = min(chosen, key=lambda i: _margin(intervals[i], regions[i]))
    else:
        one = max(chosen, key=lambda i: _beyond(intervals[i], regions[i]))
    return [f"Decided by {words[one]}."]


def _claim(text, comparisons, notes=(), expected=""):
    """Returns the verdict on comparisons, each (words, pairs, region); pairs may be None."""
    comparisons = [each for each in comparisons if each[1]]
    if not comparisons:
        return Verdict(text, OPEN, ["Not measured.", *notes], expected)
    ratios = [(pairs, region) for _, pairs, region in comparisons]
    verdict, intervals, each = family(ratios)
    regions = collections.defaultdict(list)
    for (words, _, region), interval, of_one in zip(comparisons, intervals, each):
        mark = {HOLDS: "", HOLDS_NOT: " no", OPEN: " ?"}[of_one]
        regions[region].append(f"{words} {r.ratio_text(interval)}{mark}")
    numbers = [f"Must be {_region_text(region)}: {'; '.join(parts)}."
               for region, parts in regions.items()]
    rounds = min(pairs.rounds for _, pairs, _ in comparisons)
    numbers.append(f"{len(comparisons)} comparison{'s' * (len(comparisons) > 1)}, {rounds} "
                   f"round{'s' * (rounds > 1)}.")
    numbers += _decided_by(verdict, [words for words, _, _ in comparisons], intervals,
                           [region for _, _, region in comparisons], each)
    if verdict == OPEN and rounds > 1:
        needed = rounds_to_decide(ratios)
        numbers.append(f"About {needed} rounds would tell." if needed
                       else f"More than {ROUNDS_MAX} rounds would be needed to tell.")
    return Verdict(text, verdict, [*numbers, *notes], expected)


def _ranking(results, workload, metric):
    """Returns the configurations that had as many connections as the workload says."""
    return [name for name in results.ranking(workload, metric)
            if results.runs("policies", name, workload)[0]["connections"] == workload]


def _classes(results, workload):
    """Returns the paper's configurations of each class, the best throughput first."""
    out = {PER_CORE: [], POOLS: [], PER_CONNECTION: []}
    for name in _ranking(results, workload, r.THROUGHPUT):
        if name in PAPER and name not in NOT_TUNED:
            out[class_of(results.runs("policies", name, workload)[0]["policy"])].append(name)
    return out


def _all_pairs(results, left, right, workload, metric, region):
    return [(f"{a} : {b}", results.pairs(a, b, workload, metric), region)
            for a, b in itertools.product(left, right)]


def _contrast(text, results, left, right, workload):
    """Returns the verdict on more throughput of a class of configurations than of another."""
    words = f"{', '.join(left)} : {', '.join(right)}"
    cpu = results.contrast(left, right, workload, r.CPU)
    return _claim(f"{text}, at {workload} connections (geometric means of the paper's "
                  "configurations).",
                  [(words, results.contrast(left, right, workload, r.THROUGHPUT), MORE)],
                  [f"CPU per image {r.ratio_text(cpu.interval())}."] if cpu else [],
                  f"{_paper(left) / _paper(right):.3f} (Gordon, table 4.4)"
                  if left and right else "")


def _paper(names):
    return statistics.geometric_mean(PAPER[name] for name in names)


def thread_per_core_beats_pools(results, workload):
    core, pools, _ = _classes(results, workload).values()
    return _contrast("Thread-per-core policies have more throughput than pools of threads per "
                     "stage", results, core, pools, workload)


def pools_beat_thread_per_connection(results, workload):
    _, pools, connection = _classes(results, workload).values()
    return _contrast("Pools of threads per stage have more throughput than thread-per-connection",
                     results, pools, connection, workload)


def thread_per_core_is_alike(results, workload):
    core = _classes(results, workload)[PER_CORE]
    return _claim("The paper's thread-per-core policies are within 2 % of each other in "
                  f"throughput, at {workload} connections.",
                  [(f"{a} : {b}", results.pairs(a, b, workload, r.THROUGHPUT), WITHIN)
                   for a, b in itertools.combinations(core, 2)],
                  expected="0.983 to 1 of the best (Gordon, table 4.4)")


def stacks_do_not_help(results, workload):
    names = "cohort-stacks", "cohort", workload
    return _claim(f"Per-core stacks do not help cohort scheduling, at {workload} connections: less "
                  "than 1 % more throughput and less than 5 % shorter 90th percentile.",
                  [("throughput", results.pairs(*names, r.THROUGHPUT), NO_MORE),
                   ("90th percentile", results.pairs(*names, r.P90), NO_SHORTER)],
                  expected="0.984 in throughput, 1.38 in the 90th percentile (Gordon, tables 4.4 and "
                  "4.5)")


def lowest_response_times(results, workload):
    order = _ranking(results, workload, r.P90)
    named = [name for name in ("srpt", "thread-per-connection") if name in order]
    order = [name for name in order if name in PAPER or name in named]
    others = [name for name in order if name not in named]
    verb = "have" if len(named) > 1 else "has"
    return _claim(f"{' and '.join(named) or 'srpt'} {verb} the lowest 90th percentile of response "
                  f"times, at {workload} connections.",
                  _all_pairs(results, others, named, workload, r.P90, MORE),
                  expected="0.32 s with srpt, 0.25 s with 4 threads and connections, and 0.31 to 0.53 s "
                  "with the others that are tuned (Gordon, table 4.5)")


def replication_beats_partitioning(results):
    """Compares equal numbers of replicas and parts, for each measured number of parts."""
    workload = max(results.workloads("layouts"), default=None)
    names = {line["name"] for line in results.of("layouts")}
    pairs = [(f"{name.split()[0]} {REPLICAS}", name) for name in sorted(names)
             if name.endswith(PARTITIONS)]
    comparisons, notes = [], []
    for replicas, partitions in pairs:
        comparisons.append((f"{replicas} : {partitions}", results.pairs(
            replicas, partitions, workload, r.THROUGHPUT, "layouts"), MORE))
        comparisons.append((f"heaviest of {partitions} : mean", Pairs(
            [run["layout"]["imbalance"] for run in results.runs("layouts", partitions, workload)]),
            IMBALANCE))
    for name in sorted(names - {SHARED}):
        ratio = results.pairs(name, SHARED, workload, r.THROUGHPUT, "layouts")
        if ratio:
            notes.append(f"{name} : {SHARED} = {r.ratio_text(ratio.interval())} in throughput.")
    return _claim("Replication beats partitioning, and partitioning has an imbalance of more than "
                  "10 %.", comparisons, notes,
                  "1.022 with 2 parts, 1.389 with 4 (Gordon, table 4.14)")


def batching_saves_cpu(results):
    many, single = BATCHING
    lines = results.of("batching")
    workload = lines[0]["workload"] if lines else None
    comparisons = [("CPU per image", results.pairs(many, single, workload, r.CPU, "batching"),
                    LESS)]
    notes = []
    if lines and all(line["counters"].get("cycles") and line["counters"].get("instructions")
                     for line in lines):
        runs = [results.runs("batching", name, workload) for name in BATCHING]
        comparisons.append(("cycles per instruction", Pairs(
            [(a["counters"]["cycles"] / a["counters"]["instructions"])
             / (b["counters"]["cycles"] / b["counters"]["instructions"])
             for a, b in zip(*runs)]), LESS))
    elif lines:
        missing = "; ".join(sorted({f"{name}: {why}" for line in lines
                                    for name, why in line["counters_missing"].items()}))
        notes.append(f"Cycles are not measured ({missing or 'no counters here'}).")
    return _claim("Batching saves CPU time (cohort with batches : single events).", comparisons,
                  notes, "fewer cycles per instruction (Larus and Parkes, figure 7)")


def _misses(results, a, b, kinds):
    """Returns the ratios of misses per image, summed over these kinds, by round."""
    return results.pairs(a, b, results.workloads("caches")[0],
                         lambda run: sum(run["misses"]["all"][kind] for kind in kinds), "caches")


CACHE_CLAIMS = (
    ("Batching saves misses of instructions (cohort with batches : single events, simulated "
     "caches).", caches.BATCHES, caches.SINGLE, {"L1": ("l1i",), "L2": ("l2i",)}, LESS),
    ("Batching saves misses of data (cohort with batches : single events, simulated caches).",
     caches.BATCHES, caches.SINGLE, {"L1": ("l1d",), "L2": ("l2d",)}, LESS),
    ("Batching saves L2 misses, of instructions and data together (cohort with batches : single "
     "events, simulated caches).", caches.BATCHES, caches.SINGLE, {"L2": ("l2i", "l2d")}, LESS),
    ("drain has fewer L2 misses than cohort (simulated caches).", "drain", caches.BATCHES,
     {"L2": ("l2i", "l2d")}, LESS),
)


def admission_keeps_response_times(results):
    """Counts the requests that were never sent as slower than all others."""
    text = (f"At {OVERLOAD} times the capacity a limit of images in flight keeps the 90th "
            "percentile of accepted uploads below its target; without it, it grows.")
    lines, notes = results.of("overload"), []
    if any("unsent" not in line["limited"] for line in lines):
        return Verdict(text, OPEN, ["The requests that were never sent are not recorded."])
    # A quarter in which nothing was answered is worse than those before.
    quarters = [(line["limited"]["p90_s"],
                 [value for value in line["unlimited"]["p90_least_s"] if value is not None])
                for line in lines]
    if any(limited[3] is None or len(unlimited) < 2 for limited, unlimited in quarters):
        return Verdict(text, OPEN, ["A quarter of a run has no 90th percentile."])
    for line in lines:
        for name in ("limited", "unlimited"):
            run = line[name]
            notes.append(f"Round {line['round'] + 1}, {name}: {run['due']} due, {run['answered']} "
                         f"accepted, {run['refused']} refused, {run['unsent']} never sent.")
    return _claim(
        text, [("last quarter with a limit : target", Pairs(
            [limited[3] / line["target_s"] for (limited, _), line in zip(quarters, lines)]), LESS),
         ("last : first quarter without a limit, at least", Pairs(
             [unlimited[-1] / unlimited[0] for _, unlimited in quarters]), GROWS)], notes,
        "the target is kept (Welsh, 5.4)")


def drain_is_best(results, workload):
    others = [name for name in _ranking(results, workload, r.THROUGHPUT) if name != "drain"]
    comparisons = []
    for metric, region in ((r.THROUGHPUT, NO_LOSS), (r.P90, LESS), (r.P99, LESS)):
        comparisons += [(f"{metric.title.lower()} drain : {name}",
                         results.pairs("drain", name, workload, metric), region)
                        for name in others]
    return _claim("drain loses less than 1 % of throughput to any other, and has the lowest 90th "
                  f"and 99th percentiles (darkroom's own claim), at {workload} connections.",
                  comparisons)


def preemption_helps_the_small(results):
    """The tail of small requests behind large ones is why Shinjuku preempts."""
    return _claim(f"At a load of {cutoff.LOAD:g} a cutoff of 1 ms shortens the 99th percentile of the "
                  "small half's slowdown.",
                  [("1 ms : none", cutoff.pairs(results, "1 ms",
                                                lambda line: cutoff.p99(line, cutoff.SMALL)), LESS)],
                  expected="shorter by far (Kaffes et al. 2019)")


def preemption_is_cheap(results):
    return _claim("A cutoff of 1 ms costs less than 2 % of CPU time.",
                  [("1 ms : none", cutoff.pairs(results, "1 ms",
                                                lambda line: line["cpu_ms_per_image"]), CHEAP)])


def light_load(results):
    """Larus and Parkes, figure 6: the latency of stages is almost 20 times that of threads under
    light load, because requests wait for cohorts."""
    lines = results.of("slowdown")
    load = min(line["load"] for line in lines)
    rounds = [{(line["policy"], line["round"]): line["slowdown"][of_class]["p50"] for line in lines
               if (line["arrivals"], line["load"]) == ("poisson", load)}
              for of_class in slowdown.CLASSES]
    shared = sorted(number for policy, number in rounds[0] if policy == "cohort"
                    and ("thread-per-connection", number) in rounds[0])
    comparisons = []
    for of_class, of in zip(slowdown.CLASSES, rounds):
        both = [(of["cohort", number], of["thread-per-connection", number]) for number in shared]
        if both and all(all(pair) for pair in both):
            comparisons.append((of_class, Pairs([a / b for a, b in both]), TEN_TIMES))
    return _claim(f"At a load of {load:g} the median response time of cohort is more than ten times "
                  "that of thread-per-connection.", comparisons,
                  expected="almost 20 (Larus and Parkes, figure 6)")


# ---- the parts without images, and cohorts ----

def larger_cohorts_help(results):
    workload = results.workloads("cohorts")[0]
    return _claim("Cohorts of all waiting events have more throughput than single events.",
                  [("all : 1", results.pairs("all", "1", workload, r.THROUGHPUT, "cohorts"), MORE)],
                  expected="as many as 13 % more requests (Larus and Parkes, 5.1)")


def _bottleneck(results, a, b, metric=r.ROUNDS):
    workload = results.workloads("bottleneck")[0]
    return results.pairs(a, b, workload, metric, "bottleneck")


def passing_idle_stages_helps(results):
    policies = [policy for policy in synthetic.POLICIES if policy != "seda"]
    return _claim("With one bottleneck, each thread-per-core policy has more throughput if the "
                  "stages with little work are called directly.",
                  [(policy, _bottleneck(results, f"{policy}, {synthetic.UNDERTHREADED}",
                                        f"{policy}, {synthetic.NORMAL}"), MORE)
                   for policy in policies], expected="0.994 to 1.000 (Gordon, table 4.9)")


def bottleneck_delays_other_paths(results):
    """Gordon 4.3.6: thread-per-core policies spend most of their time in the bottleneck, while
    queues build up elsewhere. The kernel limits the visits of pools."""
    mode = synthetic.NORMAL
    return _claim("With one bottleneck, requests whose path does not meet it are answered later under "
                  "each thread-per-core policy than with pools.",
                  [(f"{policy} : seda", _bottleneck(
                      results, f"{policy}, {mode}", f"seda, {mode}",
                      lambda run: run["paths"][synthetic.TITLE]["p50_us"]), MORE)
                   for policy in synthetic.POLICIES if policy != "seda"],
                  expected="queues elsewhere (Gordon, 4.3.6)")


def quanta_help_other_paths(results):
    """What Gordon proposes in 4.3.6 and has not measured."""
    short = synthetic.quantum(synthetic.QUANTA_US[0])
    return _claim(f"With one bottleneck and visits of at most {synthetic.QUANTA_US[0] / 1000:g} ms, "
                  "cohort has a shorter 99th percentile of the requests whose path does not meet it, "
                  "and still more throughput than pools.",
                  [("99th percentile, limited : whole visits", _bottleneck(
                      results, short, f"cohort, {synthetic.NORMAL}",
                      lambda run: run["paths"][synthetic.TITLE]["p99_us"]), LESS),
                   ("throughput, limited : seda",
                    _bottleneck(results, short, f"seda, {synthetic.NORMAL}"), MORE)],
                  expected="a limit is difficult to choose (Gordon, 4.3.6)")


def larger_cohorts_save_cpu(results):
    return _claim("Cohorts save CPU time of stages that read tables of their own.",
                  [(f"{gate} : 1", results.pairs(
                      str(gate), "1", synthetic.COHORT_EVENTS,
                      lambda run: run["cpu_ns"] / run["rounds"], "gates"), LESS)
                   for gate in synthetic.GATES[1:]],
                  expected="fewer cycles per instruction (Larus and Parkes, figure 7)")


def overthreading_costs(results):
    return _claim("With one bottleneck, SEDA with a thread per core for each stage has less "
                  "throughput than with one thread for each idle stage.",
                  [("overthreaded : normal", _bottleneck(
                      results, f"seda, {synthetic.OVERTHREADED}", f"seda, {synthetic.NORMAL}"), LESS)],
                  expected="0.724 (Gordon, table 4.9)")


def bottleneck_policies_are_alike(results):
    mode = synthetic.UNDERTHREADED
    return _claim("With one bottleneck, the other thread-per-core policies are within 2 % of color "
                  "in throughput.",
                  [(f"{policy} : color",
                    _bottleneck(results, f"{policy}, {mode}", f"color, {mode}"), WITHIN)
                   for policy in synthetic.POLICIES if policy not in ("seda", "color")],
                  expected="0.863 to 0.959 (Gordon, table 4.9)")


def hand_over_is_cheap(results):
    of_cohort = [line for line in results.of("ring") if line["policy"] == "cohort"]
    return _claim("A hand-over on one core costs less than 1 us of CPU time.",
                  [(f"{stages} stages, us", Pairs(
                      [line["cpu_ns"] / line["rounds"] / stages / 1e3
                       for line in of_cohort if line["stages"] == stages]), LESS)
                   for stages in sorted({line["stages"] for line in of_cohort})])


def hand_over_of_pools(results):
    of_pools = [line for line in results.of("ring") if line["policy"] == "seda"]
    return _claim("With a thread for each stage a hand-over takes less than Welsh's 5.1 us.",
                  [(f"{stages} stages, us", Pairs(
                      [1e6 * line["seconds"] / line["rounds"] / stages
                       for line in of_pools if line["stages"] == stages]), WELSH)
                   for stages in sorted({line["stages"] for line in of_pools})],
                  expected="5.1 us with 10 stages, on one processor of 2001 (Welsh, 5.8.2)")


def many_threads_cost(results):
    least, most = min(results.workloads("threads")), max(results.workloads("threads"))
    runs = [sorted((line for line in results.of("threads") if line["workload"] == count),
                   key=lambda line: line["round"]) for count in (most, least)]
    return _claim(f"{most} threads have less throughput than {least}.",
                  [(f"{most} : {least}", Pairs([a["tasks_per_s"] / b["tasks_per_s"]
                                                for a, b in zip(*runs)]), LESS)],
                  expected="a steady loss with more threads (Welsh, figure 3)")


# By the part that measures it.
CLAIMS = {"layouts": (replication_beats_partitioning,), "batching": (batching_saves_cpu,),
          "cohorts": (larger_cohorts_help,), "overload": (admission_keeps_response_times,),
          "slowdown": (light_load,),
          "cutoff": (preemption_helps_the_small, preemption_is_cheap),
          "bottleneck": (passing_idle_stages_helps, overthreading_costs,
                         bottleneck_policies_are_alike, bottleneck_delays_other_paths,
                         quanta_help_other_paths),
          "gates": (larger_cohorts_save_cpu,), "ring": (hand_over_is_cheap, hand_over_of_pools),
          "threads": (many_threads_cost,)}


def verdicts(results):
    """Returns the verdicts on all claims that were measured, in the order of the paper. Claims 1
    to 3 use the largest number of connections, claim 4 and darkroom's own claim each of them."""
    out = []
    workloads = results.workloads()
    if workloads:
        for claim in (thread_per_core_beats_pools, pools_beat_thread_per_connection,
                      thread_per_core_is_alike, stacks_do_not_help):
            out.append(claim(results, workloads[0]))
        out += [lowest_response_times(results, workload) for workload in workloads]
    out += [claim(results) for part, of_part in CLAIMS.items() if results.of(part)
            for claim in of_part]
    if results.of("caches"):
        out += [_claim(text, [(words, _misses(results, a, b, kinds), region)
                              for words, kinds in of.items()])
                for text, a, b, of, region in CACHE_CLAIMS]
    if results.of(architectures.PART):
        out += [_claim(*each) for each in architectures.claims(results)]
    return out + [drain_is_best(results, workload) for workload in workloads]
