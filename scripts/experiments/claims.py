"""The verdict on each claim, with its numbers. A claim is a function of the results."""

import collections

import results as r
from jobs import BATCHING, OVERLOAD, PARTITIONS, REPLICAS, SHARED
from plan import PER_CONNECTION, PER_CORE, POOLS, class_of

HOLDS, HOLDS_NOT, OPEN = "holds", "does not hold", "not decided"

# claim: text; verdict: one of the above; numbers: sentences.
Verdict = collections.namedtuple("Verdict", "claim verdict numbers")

WITHIN = 0.02        # claim 2
BALANCED = 1.1       # claim 5: load per core of the heaviest part, relative to the mean
# Claim 7: the last quarter's response time, relative to the target and to the first quarter's.
STAYS, GROWS = 1.5, 1.5


def _classes(results, workload):
    """Returns the configurations of each class, the best throughput first."""
    out = {PER_CORE: [], POOLS: [], PER_CONNECTION: []}
    for name in results.ranking(workload, r.THROUGHPUT):
        out[class_of(results.runs("policies", name, workload)[0]["policy"])].append(name)
    return out


def _enough(results, kind="policies"):
    return results.rounds(kind) >= r.MIN_ROUNDS


def _too_few(results, kind="policies"):
    return (f"{results.rounds(kind)} rounds are too few to separate differences from noise; "
            f"{r.MIN_ROUNDS} are needed.")


def _verdict(claim, is_decided, is_true, numbers):
    return Verdict(claim, OPEN if not is_decided else HOLDS if is_true else HOLDS_NOT, numbers)


def _missing(claim, what):
    return Verdict(claim, OPEN, [what])


def _compare(results, a, b, workload, metric):
    """Returns the comparison in words."""
    ratio = results.ratio(a, b, workload, metric)
    cpu = results.ratio(a, b, workload, r.CPU)
    return f"{a} : {b} = {ratio} in {metric.title.lower()}, {cpu} in CPU per image"


def thread_per_core_is_best(results, workload):
    claim = ("Thread-per-core policies out-perform pools of threads per stage, and those "
             "out-perform thread-per-connection.")
    core, pools, connection = _classes(results, workload).values()
    if not core or not pools or not connection:
        return _missing(claim, "Needs configurations of all three classes.")
    upper = results.ratio(core[-1], pools[0], workload, r.THROUGHPUT)
    lower = results.ratio(pools[0], connection[0], workload, r.THROUGHPUT)
    pairs = {"The slowest of the first and the fastest of the second": (core[-1], pools[0]),
             "The fastest of the first and of the second": (core[0], pools[0]),
             "The fastest of the second and of the third": (pools[0], connection[0])}
    numbers = [f"{title}: {_compare(results, *pair, workload, r.THROUGHPUT)}."
               for title, pair in pairs.items()]
    if not _enough(results):
        numbers.append(_too_few(results))
    return _verdict(claim, _enough(results), upper.is_more and lower.is_more, numbers)


def thread_per_core_is_alike(results, workload):
    claim = f"Thread-per-core policies are within {100 * WITHIN:.0f} % of each other."
    core = _classes(results, workload)[PER_CORE]
    if len(core) < 2:
        return _missing(claim, "Needs two configurations of that class.")
    last = results.ratio(core[-1], core[0], workload, r.THROUGHPUT)
    numbers = [
        f"The last to the first: {_compare(results, core[-1], core[0], workload, r.THROUGHPUT)}.",
        "In order: " + ", ".join(f"{name} {results.median(name, workload, r.THROUGHPUT):.1f} MB/s"
                                 for name in core) + "."]
    is_alike = last.median >= 1 - WITHIN
    return _verdict(claim, _enough(results) and (is_alike or last.is_less), is_alike, numbers)


def stacks_do_not_help(results, workload):
    claim = "Per-core stacks do not help cohort scheduling."
    ratio = results.ratio("cohort-stacks", "cohort", workload, r.THROUGHPUT)
    if not ratio:
        return _missing(claim, "Needs cohort and cohort-stacks.")
    p90 = results.ratio("cohort-stacks", "cohort", workload, r.P90)
    compared = _compare(results, "cohort-stacks", "cohort", workload, r.THROUGHPUT)
    numbers = [f"{compared}, {p90} in the 90th percentile."]
    return _verdict(claim, _enough(results), not ratio.is_more and not p90.is_less, numbers)


def lowest_response_times(results, workload):
    claim = (
        "SRPT and thread-per-connection with one thread per core have the lowest response times.")
    order = results.ranking(workload, r.P90)
    named = [name for name in ("srpt", "thread-per-connection") if name in order]
    if len(named) < 2:
        return _missing(claim, "Needs srpt and thread-per-connection.")
    others = [name for name in order if name not in named]
    beaten = [name for name in others
              if any(results.ratio(name, mine, workload, r.P90).is_less for mine in named)]
    numbers = ["90th percentile in order: " + ", ".join(
        f"{name} {results.median(name, workload, r.P90):.1f} ms" for name in order) + "."]
    connections = {name: results.runs("policies", name, workload)[0]["connections"]
                   for name in named}
    if len(set(connections.values())) > 1:
        numbers.append("As in the paper, thread-per-connection gets only as many connections as it "
                       f"has threads ({connections['thread-per-connection']}), the others get "
                       f"{workload}: with fewer requests in the queue, each waits less.")
    if beaten:
        numbers.append(f"Lower than one of the two: {', '.join(beaten)}.")
    return _verdict(claim, _enough(results), not beaten, numbers)


def replication_beats_partitioning(results):
    """Compares equal numbers of replicas and parts, for each measured number of parts."""
    claim = "Replication beats partitioning; partitioning risks imbalance."
    workload = max(results.workloads("layouts"), default=None)
    names = {line["name"] for line in results.of("layouts")}
    pairs = [(f"{name.split()[0]} {REPLICAS}", name) for name in sorted(names)
             if name.endswith(PARTITIONS)]
    pairs = [pair for pair in pairs if pair[0] in names]
    if not pairs:
        return _missing(claim, "Not measured.")
    ratios, imbalances, numbers = [], [], []
    for replicas, partitions in pairs:
        ratios.append(results.ratio(replicas, partitions, workload, r.THROUGHPUT, "layouts"))
        imbalances.append(max(run["layout"]["imbalance"]
                              for run in results.runs("layouts", partitions, workload)))
        cpu = results.ratio(replicas, partitions, workload, r.CPU, "layouts")
        numbers.append(f"{replicas} : {partitions} = {ratios[-1]} in throughput, {cpu} in CPU per "
                       f"image; the heaviest of the parts had {imbalances[-1]:.2f} times the mean "
                       "load per core.")
    for name in sorted(names - {SHARED}):
        if SHARED in names:
            ratio = results.ratio(name, SHARED, workload, r.THROUGHPUT, "layouts")
            numbers.append(f"{name} : {SHARED} = {ratio} in throughput.")
    if not _enough(results, "layouts"):
        numbers.append(_too_few(results, "layouts"))
    beats = all(ratio.is_more for ratio in ratios)
    is_clear = beats or any(ratio.is_less for ratio in ratios) or max(imbalances) <= BALANCED
    return _verdict(claim, _enough(results, "layouts") and is_clear,
                    beats and max(imbalances) > BALANCED, numbers)


def batching_saves_cycles(results):
    claim = "Batching lowers cycles per instruction and cache misses."
    many, single = BATCHING
    lines = results.of("batching")
    if not lines:
        return _missing(claim, "Not measured.")
    workload = lines[0]["workload"]
    cpu = results.ratio(many, single, workload, r.CPU, "batching")
    numbers = [f"Policy cohort with batches, relative to single events: {cpu} in CPU per image."]
    if not all(line["counters"].get("cycles") and line["counters"].get("instructions")
               for line in lines):
        missing = "; ".join(sorted({f"{name}: {why}" for line in lines
                                    for name, why in line["counters_missing"].items()}))
        return _missing(claim, f"Needs hardware counters ({missing or 'none here'}). {numbers[0]}")
    per_instruction = {name: [run["counters"]["cycles"] / run["counters"]["instructions"]
                              for run in results.runs("batching", name, workload)]
                       for name in BATCHING}
    ratio = r.Ratio([a / b for a, b in zip(per_instruction[many], per_instruction[single])])
    numbers.append(f"Cycles per instruction: {ratio}.")
    is_lower = [ratio.is_less]
    for counter in ("l1d_read_misses", "l1i_read_misses", "llc_read_misses"):
        if all(line["counters"].get(counter) for line in lines):
            misses = r.Ratio([a["counters"][counter] / b["counters"][counter]
                              for a, b in zip(results.runs("batching", many, workload),
                                              results.runs("batching", single, workload))])
            numbers.append(f"{counter}: {misses}.")
            is_lower.append(misses.is_less)
    return _verdict(claim, _enough(results, "batching"), all(is_lower), numbers)


def admission_keeps_response_times(results):
    claim = ("With admission control, response time of admitted requests stays at its target under "
             "overload; without it, it grows without bound.")
    lines = results.of("overload")
    if not lines:
        return _missing(claim, "Not measured.")
    numbers, is_true = [], True
    for line in lines:
        with_limit, without = line["limited"]["p90_s"], line["unlimited"]["p90_s"]
        if None in with_limit or None in without:
            return _missing(claim, f"Round {line['round']}: a quarter of the run has no response.")
        stays = with_limit[3] <= STAYS * line["target_s"]
        grows = without == sorted(without) and without[3] >= GROWS * without[0]
        is_true = is_true and stays and grows
        numbers.append(
            f"{OVERLOAD} times the capacity of {line['capacity_per_s']:.0f}/s; 90th percentile by "
            f"quarter of the run, s: at most {line['admitted']} images admitted (target "
            f"{line['target_s']} s) {_seconds(with_limit)}; without a limit {_seconds(without)}; "
            f"answered {line['limited']['answered']} and {line['unlimited']['answered']} of "
            f"{line['limited']['requests']} and {line['unlimited']['requests']}.")
    return _verdict(claim, True, is_true, numbers)


def _seconds(values):
    return " ".join(f"{value:.2f}" for value in values)


def drain_is_best(results, workload):
    claim = ("drain has the throughput of the best, and the lowest 90th and 99th percentiles "
             f"(darkroom's own claim), at {workload} connections.")
    others = [name for name in results.ranking(workload, r.THROUGHPUT) if name != "drain"
              and results.runs("policies", name, workload)[0]["connections"] == workload]
    if not results.runs("policies", "drain", workload) or not others:
        return _missing(claim, "Needs drain and another.")
    numbers, is_best, is_worse = [], True, False
    for metric in (r.THROUGHPUT, r.P90, r.P99):
        rival = next(name for name in results.ranking(workload, metric) if name in others)
        ratio = results.ratio("drain", rival, workload, metric)
        is_better = ratio.is_more if metric.is_more_better else ratio.is_less
        is_loss = ratio.is_less if metric.is_more_better else ratio.is_more
        # It only claims not to lose throughput.
        is_best = is_best and (is_better or metric is r.THROUGHPUT)
        is_worse = is_worse or is_loss
        verdict = ("better" if is_better else "worse" if is_loss
                   else "no difference beyond the noise")
        numbers.append(f"{metric.title} to the best other: drain : {rival} = {ratio}, {verdict}.")
    return _verdict(claim, _enough(results) and (is_best or is_worse),
                    is_best and not is_worse, numbers)


def verdicts(results):
    """Returns all verdicts in the order of the paper. Claims 1 to 3 use the largest number of
    connections, claim 4 and darkroom's own claim use each of them."""
    out = []
    workloads = results.workloads()
    if workloads:
        largest = workloads[0]
        claims = thread_per_core_is_best, thread_per_core_is_alike, stacks_do_not_help
        out += [claim(results, largest) for claim in claims]
        out += [lowest_response_times(results, workload) for workload in workloads]
    out += [replication_beats_partitioning(results), batching_saves_cycles(results),
            admission_keeps_response_times(results)]
    return out + [drain_is_best(results, workload) for workload in workloads]
