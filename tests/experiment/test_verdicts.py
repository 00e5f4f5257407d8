"""From runs to verdicts: each claim holds, does not hold, or cannot be told."""

import io
import random

import claims
import job
import overload
import plan
import progress
import pytest
import results
from results import Results

RUN = {"makespan_s": 10.0, "responses_per_s": 100.0, "input_bytes_per_s": 40e6,
       "p50_ms": 10.0, "p90_ms": 50.0, "p99_ms": 90.0, "cpu_ms_per_image": 7.0, "cpu_use": 95.0,
       "peak_rss_bytes": 9e7,
       "connections": 16}
POLICIES = {"drain": "drain", "cohort": "cohort", "cohort-stacks": "cohort", "mg1": "mg1",
            "srpt": "srpt", "seda": "seda", "seda-malloc": "seda", "seda-underthreaded": "seda",
            "thread-per-connection": "thread-per-connection",
            "thread-per-connection-16": "thread-per-connection"}
NOISE = (1.0, 1.001, 0.999, 1.0005, 0.9995)


def runs(changes=None, rounds=5, noise=NOISE, own_noise=0.0005):
    """Returns equal runs except for the changes, {configuration: {metric: factor}}. The rounds
    differ, and each run differs a little by itself."""
    lines = []
    rng = random.Random(4)
    for name, policy in POLICIES.items():
        for number in range(rounds):
            line = dict(RUN, kind="policies", name=name, policy=policy, workload=16, round=number)
            for metric, factor in (changes or {}).get(name, {}).items():
                line[metric] *= factor
            for metric in ("input_bytes_per_s", "p90_ms", "p99_ms"):
                line[metric] *= noise[number] * (1 + rng.gauss(0, own_noise))
            lines.append(line)
    return Results(lines)


def slower(*names, by=0.8):
    return {name: {"input_bytes_per_s": by} for name in names}


def test_claim_1_compares_the_classes():
    """The geometric means of the classes decide, and not the worst pair."""
    pools = slower("seda", "seda-malloc")
    assert claims.thread_per_core_beats_pools(runs(pools), 16).verdict == claims.HOLDS
    assert claims.thread_per_core_beats_pools(runs(), 16).verdict == claims.OPEN
    assert claims.thread_per_core_beats_pools(runs(pools | slower("mg1", by=0.79)),
                                              16).verdict == claims.HOLDS
    core = slower("mg1", "srpt", "cohort", "cohort-stacks", by=0.9)
    assert claims.thread_per_core_beats_pools(runs(core), 16).verdict == claims.HOLDS_NOT


def test_a_contrast_is_that_of_a_textbook():
    """Two of 8 and 2 to one of 2: the geometric mean 4 is twice as much."""
    found = runs({"cohort": {"input_bytes_per_s": 8}, "mg1": {"input_bytes_per_s": 2},
                  "seda": {"input_bytes_per_s": 2}}, own_noise=0)
    contrast = found.contrast(["cohort", "mg1"], ["seda"], 16, results.THROUGHPUT)
    assert contrast.rounds == 5 and contrast.interval().ratio == pytest.approx(2)
    assert found.contrast([], ["seda"], 16, results.THROUGHPUT) is None
    found.lines.remove(found.runs("policies", "mg1", 16)[2])
    assert found.contrast(["cohort", "mg1"], ["seda"], 16, results.THROUGHPUT).rounds == 4


def test_only_the_papers_configurations_are_in_its_classes():
    own = slower("drain", by=0.1) | slower("seda", "seda-malloc")
    verdict = claims.thread_per_core_beats_pools(runs(own), 16)
    assert verdict.verdict == claims.HOLDS and "drain" not in " ".join(verdict.numbers)
    assert claims.thread_per_core_is_alike(runs(slower("drain", by=0.1)), 16).verdict == claims.HOLDS


def test_an_undecided_claim_says_how_many_rounds_would_decide_it():
    verdict = claims.thread_per_core_is_alike(runs(slower("mg1", by=0.9795)), 16)
    assert verdict.verdict == claims.OPEN
    assert verdict.numbers[-1].startswith("About ") or verdict.numbers[-1].startswith("More than ")


def test_claim_1_leaves_out_pools_of_wrong_size():
    """The paper made them wrong on purpose."""
    fast = {"seda-underthreaded": {"input_bytes_per_s": 2}}
    verdict = claims.thread_per_core_beats_pools(runs(fast | slower("seda", "seda-malloc")), 16)
    assert verdict.verdict == claims.HOLDS and "seda-underthreaded" not in verdict.numbers[0]


def test_claim_1b_compares_pools_with_thread_per_connection():
    connection = slower("thread-per-connection-16", by=0.6)
    assert claims.pools_beat_thread_per_connection(runs(connection), 16).verdict == claims.HOLDS
    assert claims.pools_beat_thread_per_connection(
        runs(slower("seda", "seda-malloc")), 16).verdict == claims.HOLDS_NOT


def test_claim_2_allows_two_per_cent():
    alike = claims.thread_per_core_is_alike
    assert alike(runs(slower("mg1", by=0.985)), 16).verdict == claims.HOLDS
    assert alike(runs(slower("mg1", by=0.97)), 16).verdict == claims.HOLDS_NOT
    # Too much noise to tell.
    assert alike(runs(own_noise=0.02), 16).verdict == claims.OPEN


def test_claim_3_fails_if_stacks_help_throughput_or_response_times():
    helps_not = claims.stacks_do_not_help
    assert helps_not(runs(), 16).verdict == claims.HOLDS
    assert helps_not(runs(slower("cohort-stacks")), 16).verdict == claims.HOLDS
    assert helps_not(runs(slower("cohort")), 16).verdict == claims.HOLDS_NOT
    assert helps_not(runs({"cohort-stacks": {"p90_ms": 0.9}}), 16).verdict == claims.HOLDS_NOT
    assert helps_not(runs(slower("cohort", by=0.99)), 16).verdict == claims.OPEN


def test_claim_4_fails_if_another_is_faster_than_one_of_the_two():
    low = {"srpt": {"p90_ms": 0.7}, "thread-per-connection": {"p90_ms": 0.5}}
    assert claims.lowest_response_times(runs(low), 16).verdict == claims.HOLDS
    # drain is not the paper's.
    assert claims.lowest_response_times(runs(low | {"drain": {"p90_ms": 0.1}}),
                                        16).verdict == claims.HOLDS
    verdict = claims.lowest_response_times(runs(low | {"mg1": {"p90_ms": 0.6}}), 16)
    assert verdict.verdict == claims.HOLDS_NOT
    assert "mg1 : srpt 0.857 (" in verdict.numbers[0] and ") no" in verdict.numbers[0]


def batching(per_instruction, misses=1.0, rounds=5):
    lines = []
    for number in range(rounds):
        for name in claims.BATCHING:
            mine = name == "batches"
            counters = {"cycles": int(1e9 * (per_instruction if mine else 1)),
                        "instructions": 10 ** 9,
                        "l1d_read_misses": int(1e6 * (misses if mine else 1))}
            lines.append(dict(RUN, kind="batching", name=name, workload=16, round=number,
                              counters_missing={}, counters=counters))
    return Results(lines)


def with_noise(found, *keys):
    for place, line in enumerate(found.lines):
        for key in keys:
            line[key] *= 1 + 0.001 * (place * 3 % 5)
    return found


def test_claim_6_uses_cpu_time_and_counters_where_there_are_any():
    saves = claims.batching_saves_cpu
    less = batching(0.9)
    for line in less.lines:
        line["cpu_ms_per_image"] *= 0.97 if line["name"] == "batches" else 1
    with_noise(less, "cpu_ms_per_image")
    assert saves(less).verdict == claims.HOLDS
    more = batching(1.1)
    assert saves(with_noise(more, "cpu_ms_per_image")).verdict == claims.HOLDS_NOT
    for line in less.lines:
        line["counters"] = {"page_faults": 7}
        line["counters_missing"] = {"cycles": "not offered by this machine"}
    verdict = saves(less)
    assert verdict.verdict == claims.HOLDS
    assert "cycles: not offered by this machine" in verdict.numbers[-1]


def misses(factors, rounds=4):
    """Returns results of simulated caches: {kind: batches relative to single events}."""
    base = {"instructions": 4e7, "l1i": 3000, "l1d": 170000, "l2i": 1200, "l2d": 76000}
    lines = []
    for number in range(rounds):
        for name in ("cohort", "cohort, single events", "drain"):
            counts = {kind: value * (factors.get(kind, 1) if name == "cohort" else 1)
                      * (1 + 0.001 * ((number * 3 + len(name)) % 4))
                      for kind, value in base.items()}
            lines.append({"kind": "caches", "name": name, "workload": 16, "round": number,
                          "misses": {"all": counts}})
    return Results(lines)


def test_larus_claims_are_decided_by_simulated_caches():
    instructions, data, both, drain = claims.verdicts(
        misses({"l1i": 0.73, "l2i": 0.3, "l2d": 1.1}))
    assert instructions.verdict == claims.HOLDS
    assert data.verdict == claims.HOLDS_NOT and "L2 1.10" in data.numbers[0]
    assert both.verdict == claims.HOLDS_NOT
    assert drain.verdict == claims.HOLDS
    assert claims.verdicts(misses({"l1i": 0.73, "l2i": 0.3}))[1].verdict == claims.OPEN


def layouts(partitions, imbalance, rounds=5):
    lines = []
    for number in range(rounds):
        for name, factor in (("shared", 1), ("2 replicas", 1), ("2 partitions", partitions)):
            layout = {"imbalance": imbalance * NOISE[-number]} if "part" in name else {}
            lines.append(dict(RUN, kind="layouts", name=name, workload=16, round=number,
                              layout=layout))
            lines[-1]["input_bytes_per_s"] *= factor * NOISE[(number * len(name)) % 5]
    return Results(lines)


def test_claim_5_needs_speed_and_imbalance():
    beats = claims.replication_beats_partitioning
    assert beats(layouts(0.8, 1.4)).verdict == claims.HOLDS
    # The parts are balanced.
    assert beats(layouts(0.8, 1.05)).verdict == claims.HOLDS_NOT
    assert beats(layouts(1.1, 1.4)).verdict == claims.HOLDS_NOT
    # No difference.
    assert beats(layouts(1, 1.4)).verdict == claims.OPEN
    assert beats(layouts(0.8, 1.4, rounds=1)).verdict == claims.OPEN
    assert beats(Results([])).verdict == claims.OPEN


def overloaded(limited, unlimited, rounds=3):
    return Results([{"kind": "overload", "name": "drain", "workload": 16, "round": number,
                     "capacity_per_s": 100.0, "target_s": 0.25, "admitted": 25,
                     **{name: {"due": 10, "answered": 6, "refused": 3, "unsent": 1,
                               "p90_least_s": [value and value * NOISE[number] for value in p90],
                               "p90_s": [value and value * NOISE[number] for value in p90]}
                        for name, p90 in (("limited", limited), ("unlimited", unlimited))}}
                    for number in range(rounds)])


@pytest.mark.parametrize("limited, unlimited, verdict", [
    ([0.2, 0.24, 0.24, 0.24], [0.5, 1, 1.5, 2], claims.HOLDS),
    ([0.2, 0.25, 0.25, 0.26], [0.5, 1, 1.5, 2], claims.HOLDS_NOT),    # the limit misses the target
    ([0.2, 0.24, 0.24, 0.24], [0.5, 0.5, 0.6, 0.6], claims.HOLDS_NOT),  # there is no overload
    ([0.2, 0.24, 0.24, 0.25], [0.5, 1, 1.5, 2], claims.OPEN),         # on the border
    ([0.2, 0.24, 0.24, 0.24], [0.5, 1, None, None], claims.HOLDS),    # later nothing was answered
])
def test_claim_7_needs_limited_and_unlimited_times(limited, unlimited, verdict):
    found = claims.admission_keeps_response_times(overloaded(limited, unlimited))
    assert found.verdict == verdict
    assert "10 due, 6 accepted, 3 refused, 1 never sent" in " ".join(found.numbers)


def test_claim_7_needs_the_requests_that_were_never_sent():
    for limited, unlimited in (([0.2, 0.25, 0.25, None], [0.5, 1, 1.5, 2]),
                               ([0.2, 0.24, 0.24, 0.24], [0.5, None, None, None])):
        missing = overloaded(limited, unlimited)
        assert claims.admission_keeps_response_times(missing).verdict == claims.OPEN
    old = overloaded([0.2, 0.24, 0.24, 0.24], [0.5, 1, 1.5, 2])
    for line in old.lines:
        del line["limited"]["unsent"]
    assert claims.admission_keeps_response_times(old).verdict == claims.OPEN


def test_requests_that_were_never_sent_are_later_than_all_others():
    rows = [{"intended": str(due), "done": str(due + 1), "status": "201", "error": ""}
            for due in (0, 1, 2, 3)]
    rows += [{"intended": "3.9", "done": "", "status": "", "error": "unsent"}] * 2
    rows += [{"intended": "0.5", "done": "0.6", "status": "503", "error": ""}]
    out = overload.by_quarter(rows, 4)
    assert (out["due"], out["answered"], out["refused"], out["unsent"]) == (7, 4, 1, 2)
    assert out["unsent_by_quarter"] == [0, 0, 0, 2]
    assert out["p50_s"] == [1, 1, 1, None] and out["p90_s"] == [1, 1, 1, None]
    assert out["p90_least_s"] == [1, 1, 1, 1]
    assert overload.percentile(list(range(10)), 0, 0.9) == 9
    assert overload.percentile(list(range(18)), 2, 0.85) == 17
    assert overload.percentile(list(range(18)), 2, 0.9) is None
    assert overload.percentile([], 0, 0.5) is None


def test_drain_must_lose_nothing_and_be_the_fastest():
    best = {"p90_ms": 0.9, "p99_ms": 0.9}
    assert claims.drain_is_best(runs({"drain": best}), 16).verdict == claims.HOLDS
    assert claims.drain_is_best(runs({"drain": best | {"input_bytes_per_s": 0.9}}),
                                16).verdict == claims.HOLDS_NOT
    assert claims.drain_is_best(runs({"drain": best | {"p99_ms": 1.1}}),
                                16).verdict == claims.HOLDS_NOT
    # All are equal: drain loses nothing, but is not the fastest.
    assert claims.drain_is_best(runs(), 16).verdict == claims.OPEN


def test_one_round_decides_nothing():
    pools = runs(slower("seda", "seda-malloc"), rounds=1)
    for verdict in claims.verdicts(pools):
        assert verdict.verdict == claims.OPEN


def test_differences_between_rounds_do_not_count():
    """cohort is 3 % slower in every round, and the rounds differ by far more."""
    pairs = runs(slower("cohort", by=0.97), noise=(1, 2, 0.5, 1.5, 0.7)).pairs(
        "cohort", "mg1", 16, results.THROUGHPUT)
    assert pairs.interval().high < 1 and pairs.interval().ratio == pytest.approx(0.97, rel=0.002)


def test_the_spread_of_a_run_is_without_that_of_the_rounds():
    found = runs(slower("cohort", by=0.5), noise=(1, 2, 0.5, 1.5, 0.7), own_noise=0)
    assert found.spread(16, results.THROUGHPUT) == pytest.approx(0, abs=1e-12)


def test_orders_are_drawn_at_random_for_each_round():
    """Each configuration comes first as often as the others, and after each other one."""
    items = [f"configuration {i}" for i in range(5)]

    def order(seed, number, of=items):
        return sorted(of, key=lambda name: plan.place(seed, "policies", name, 16, number))
    orders = [order(7, number) for number in range(500)]
    for item in items:
        assert 70 < sum(each[0] == item for each in orders) < 130
        assert len({each[each.index(item) - 1] for each in orders if each[0] != item}) == 4
    assert orders[:20] == [order(7, number) for number in range(20)] != [
        order(8, number) for number in range(20)]
    # An interrupted round continues in its order.
    assert order(7, 3, items[1:]) == [name for name in orders[3] if name != items[0]]


def ordered(rounds=4):
    """Returns the lines of a whole experiment."""
    lines = [{"kind": "machine", "seed": 5}]
    for number in range(rounds):
        lines += sorted(({"kind": "policies", "name": name, "workload": 16, "round": number}
                         for name in POLICIES),
                        key=lambda line: plan.place(5, "policies", line["name"], 16, line["round"]))
    return lines


def test_swapped_rounds_are_found():
    lines = ordered()
    results.check_order(lines)
    results.check_order(lines[:13])                           # interrupted
    results.check_order([{"kind": "machine"}] + lines[:0:-1])  # of a version without seeds
    lines.insert(3, lines[5] | {"kind": "disturbed"})
    results.check_order(lines)
    whole = [dict(line) for line in lines]
    for line in whole[1:]:
        line["round"] = {0: 1, 1: 0}.get(line["round"], line["round"])
    with pytest.raises(ValueError, match="round 2 of policies is not in the order of its seed"):
        results.check_order(whole)
    # One configuration's rounds are swapped.
    for line in lines[1:]:
        if line["name"] == "mg1" and line["round"] in (1, 2):
            line["round"] = 3 - line["round"]
    with pytest.raises(ValueError, match="is not in the order of its seed"):
        results.check_order(lines)


def test_thread_per_connection_has_as_many_connections_as_the_others():
    cases = [case for workload in (16, 8, 4) for case in filter(
        None, (configuration.case(workload) for configuration in plan.configurations()))]
    at = {workload: {case.name for case in cases if case.workload == workload}
          for workload in (16, 8, 4)}
    for workload in (16, 8, 4):
        numbered = [name for name in at[workload] if name.startswith("thread-per-connection-")]
        assert numbered == [f"thread-per-connection-{workload}"]
        assert {"drain", "cohort", "srpt", "seda-cores"} <= at[workload]
    assert "seda" in at[16] and "seda" not in at[4] | at[8]


def test_all_configurations_of_the_paper_answer_when_decoded_on_one_graph():
    for configuration in plan.configurations():
        case = configuration.case(configuration.threads if "connection" in configuration.name
                                  else 16)
        assert set(plan.PAPER_SERVER) <= set(case.options)
        if configuration.name not in ("drain", "groups"):  # not of the paper's table
            text = configuration.path.read_text()
            assert "\nrespond_after = decode " in text and "\ndurability = none\n" in text
            assert "[experiment.form_decode]\npass_through = no\n" in text
            assert "[experiment.scale]\npass_through = yes" in text


def test_pools_are_scaled_to_the_cores():
    assert plan.pools_for(4) == ["stage.jpeg_decode.threads=3", "stage.blur.threads=2",
                                 "stage.jpeg_encode.threads=3"]
    assert plan.pools_for(2) == ["stage.jpeg_decode.threads=2", "stage.blur.threads=1",
                                 "stage.jpeg_encode.threads=2"]
    assert plan.pools_for(16)[0] == "stage.jpeg_decode.threads=12"


def test_every_configuration_of_the_paper_is_there():
    assert set(plan.PAPER) <= {configuration.name for configuration in plan.configurations()}


def test_remaining_time_is_that_of_earlier_jobs_of_the_same_kind():
    jobs = [job.Job(kind, kind, 4, number, dict, guess_s)
            for number in range(2) for kind, guess_s in (("ring", 5), ("bursts", 7000))]
    shown = progress.Progress(jobs, io.StringIO())
    assert shown.remaining() == 14010
    shown.run(jobs[0])
    assert shown.remaining() == pytest.approx(14000, abs=2)
    assert [progress.duration(s) for s in (9.6, 120, 5999, 14010)] == [
        "10 s", "2 min 00 s", "99 min 59 s", "3 h 53 min"]


def test_an_unfinished_last_line_does_not_count(tmp_path):
    path = tmp_path / "raw.jsonl"
    path.write_text('{"kind": "machine"}\n{"kind": "poli')
    assert results.read(path) == [{"kind": "machine"}]
    path.write_text('{"kind": "poli\n{"kind": "machine"}\n')
    with pytest.raises(ValueError, match="raw.jsonl:1"):
        results.read(path)


def rows_of(kind, workload, cases, rounds=4):
    """Returns rows: for each name what of(noise) makes, with a little noise in each round."""
    rng = random.Random(5)
    return [{"kind": kind, "name": name, "workload": workload, "round": number,
             **of(rng.lognormvariate(0, 0.01))} for name, of in cases.items()
            for number in range(rounds)]


@pytest.mark.parametrize("factor, verdict", [(18, claims.HOLDS), (1.2, claims.HOLDS_NOT)])
def test_light_load_compares_medians_at_the_lightest_load(factor, verdict):
    def row(policy, load, p50):
        return lambda noise: {"policy": policy, "arrivals": "poisson", "load": load, "slowdown": {
            of_class: {"p50": p50 * noise} for of_class in claims.slowdown.CLASSES}}
    lines = rows_of("slowdown", 0, {
        "a": row("cohort", 0.1, factor), "b": row("thread-per-connection", 0.1, 1),
        "c": row("cohort", 0.9, 5), "d": row("thread-per-connection", 0.9, 5)})
    found = claims.light_load(Results(lines))
    assert found.verdict == verdict and "At a load of 0.1 " in found.claim


def paths(titles_ms, terms_ms, per_s):
    return lambda noise: {"rounds_per_s": per_s * noise, "paths": [
        {"p50_us": 1000 * ms * noise, "p99_us": 2000 * ms * noise}
        for ms in (titles_ms, titles_ms, terms_ms)]}


def test_a_bottleneck_delays_the_other_paths_but_not_with_pools_or_quanta():
    cases = {f"{policy}, normal": paths(7, 8, 36000) for policy in claims.synthetic.POLICIES
             if policy != "seda"}
    lines = rows_of("bottleneck", 256, cases | {
        "seda, normal": paths(0.6, 50, 22000), "cohort, at most 0.2 ms": paths(1, 31, 35000)})
    delayed = claims.bottleneck_delays_other_paths(Results(lines))
    assert delayed.verdict == claims.HOLDS and "7 comparisons" in " ".join(delayed.numbers)
    assert claims.quanta_help_other_paths(Results(lines)).verdict == claims.HOLDS
    slow = [line for line in lines if line["name"] != "cohort, at most 0.2 ms"]
    slow += rows_of("bottleneck", 256, {"cohort, at most 0.2 ms": paths(1, 31, 20000)})
    found = claims.quanta_help_other_paths(Results(slow))
    assert found.verdict == claims.HOLDS_NOT
    assert "Decided by throughput, limited : seda." in found.numbers


def test_cohorts_of_any_size_must_save_cpu():
    def gate(cpu_ns):
        return lambda noise: {"cpu_ns": 1e6 * cpu_ns * noise, "rounds": 10**6}
    cases = {str(size): gate(500 if size == 1 else 380) for size in claims.synthetic.GATES}
    assert claims.larger_cohorts_save_cpu(Results(rows_of("gates", 1000, cases))).verdict \
        == claims.HOLDS
    worse = cases | {"1000": gate(560)}
    found = claims.larger_cohorts_save_cpu(Results(rows_of("gates", 1000, worse)))
    assert found.verdict == claims.HOLDS_NOT and "Decided by 1000 : 1." in found.numbers


def test_a_hand_over_of_pools_takes_time_and_not_only_cpu():
    def ring(policy, us):
        return lambda noise: {"policy": policy, "stages": 10, "rounds": 10**5, "cpu_ns": 10**8,
                              "seconds": us * noise}
    lines = rows_of("ring", 1, {"seda, 10 stages": ring("seda", 14),
                                "cohort, 10 stages": ring("cohort", 0.2)})
    assert claims.hand_over_of_pools(Results(lines)).verdict == claims.HOLDS_NOT
    assert claims.hand_over_is_cheap(Results(lines)).verdict == claims.HOLDS


def test_the_weakest_comparison_of_a_claim_that_holds_decides_it():
    found = claims.thread_per_core_is_alike(runs(slower("mg1", by=0.99)), 16)
    assert found.verdict == claims.HOLDS and "mg1" in found.numbers[-1]
    assert found.numbers[-1].startswith("Decided by ") and found.expected.startswith("0.983 to 1")
