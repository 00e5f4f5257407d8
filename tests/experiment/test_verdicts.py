"""From runs to verdicts: each claim holds, does not hold, or stays open if the numbers do not
decide."""

import claims
import plan
import plots
import pytest
import results
from results import Results

RUN = {"makespan_s": 10.0, "responses_per_s": 100.0, "input_bytes_per_s": 40e6,
       "p50_ms": 10.0, "p90_ms": 50.0, "p99_ms": 90.0, "cpu_ms_per_image": 7.0, "cpu_use": 95.0,
       "peak_rss_bytes": 9e7, "max_net_mbps": 400.0, "interval_s": 1, "processed": [4e7] * 10,
       "connections": 16, "others_cpu_use": 0.0}
POLICIES = {"drain": "drain", "cohort": "cohort", "cohort-stacks": "cohort", "mg1": "mg1",
            "srpt": "srpt", "seda": "seda", "seda-malloc": "seda",
            "thread-per-connection": "thread-per-connection"}
NOISE = (1.0, 1.01, 0.99, 1.005, 0.995)


def runs(changes=None, rounds=5, noise=NOISE):
    """Returns equal runs except for the changes, {configuration: {metric: factor}}. The rounds
    differ a little."""
    lines = []
    for name, policy in POLICIES.items():
        for number in range(rounds):
            line = dict(RUN, kind="policies", name=name, policy=policy, workload=16, round=number)
            for metric, factor in (changes or {}).get(name, {}).items():
                line[metric] *= factor
            line["input_bytes_per_s"] *= noise[number]
            line["p90_ms"] *= noise[-number - 1]
            lines.append(line)
    return Results(lines)


def slower(*names, by=0.8):
    return {name: {"input_bytes_per_s": by} for name in names}


def test_claim_1_needs_both_differences():
    pools, connection = slower("seda", "seda-malloc"), slower("thread-per-connection", by=0.6)
    assert claims.thread_per_core_is_best(runs(pools | connection), 16).verdict == claims.HOLDS
    assert claims.thread_per_core_is_best(runs(pools), 16).verdict == claims.HOLDS_NOT
    assert claims.thread_per_core_is_best(runs(), 16).verdict == claims.HOLDS_NOT
    # One thread-per-core policy as slow as the pools refutes the claim.
    assert claims.thread_per_core_is_best(runs(pools | connection | slower("mg1", by=0.79)),
                                          16).verdict == claims.HOLDS_NOT


def test_claim_2_allows_two_per_cent():
    assert claims.thread_per_core_is_alike(runs(slower("mg1", by=0.985)),
                                           16).verdict == claims.HOLDS
    assert claims.thread_per_core_is_alike(runs(slower("mg1", by=0.97)),
                                           16).verdict == claims.HOLDS_NOT


def test_claim_3_fails_if_stacks_help_throughput_or_response_times():
    assert claims.stacks_do_not_help(runs(), 16).verdict == claims.HOLDS
    assert claims.stacks_do_not_help(runs(slower("cohort-stacks")), 16).verdict == claims.HOLDS
    assert claims.stacks_do_not_help(runs(slower("cohort")), 16).verdict == claims.HOLDS_NOT
    assert claims.stacks_do_not_help(runs({"cohort-stacks": {"p90_ms": 0.9}}),
                                     16).verdict == claims.HOLDS_NOT


def test_claim_4_fails_if_another_is_faster_than_one_of_the_two():
    low = {"srpt": {"p90_ms": 0.7}, "thread-per-connection": {"p90_ms": 0.5}}
    assert claims.lowest_response_times(runs(low), 16).verdict == claims.HOLDS
    verdict = claims.lowest_response_times(runs(low | {"mg1": {"p90_ms": 0.6}}), 16)
    assert verdict.verdict == claims.HOLDS_NOT
    assert "Lower than one of the two: mg1." in verdict.numbers


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


def test_claim_6_needs_counters():
    assert claims.batching_saves_cycles(batching(0.9, 0.8)).verdict == claims.HOLDS
    assert claims.batching_saves_cycles(batching(1.1, 0.8)).verdict == claims.HOLDS_NOT
    assert claims.batching_saves_cycles(batching(0.9, 1.2)).verdict == claims.HOLDS_NOT
    without = batching(0.9)
    for line in without.lines:
        line["counters"] = {"page_faults": 7}
        line["counters_missing"] = {"cycles": "not offered by this machine"}
    verdict = claims.batching_saves_cycles(without)
    assert verdict.verdict == claims.OPEN
    assert "cycles: not offered by this machine" in verdict.numbers[0]
    assert claims.batching_saves_cycles(Results([])).verdict == claims.OPEN


def layouts(partitions, imbalance, rounds=5):
    lines = []
    for number in range(rounds):
        for name, factor, layout in (("shared", 1, {}), ("2 replicas", 1, {}),
                                     ("2 partitions", partitions, {"imbalance": imbalance})):
            lines.append(dict(RUN, kind="layouts", name=name, workload=16, round=number,
                              layout=layout))
            lines[-1]["input_bytes_per_s"] *= factor * NOISE[number]
    return Results(lines)


def test_claim_5_needs_speed_and_imbalance():
    assert claims.replication_beats_partitioning(layouts(0.8, 1.4)).verdict == claims.HOLDS
    # The parts are balanced.
    assert claims.replication_beats_partitioning(layouts(0.8, 1.05)).verdict == claims.HOLDS_NOT
    assert claims.replication_beats_partitioning(layouts(1.1, 1.4)).verdict == claims.HOLDS_NOT
    # No difference.
    assert claims.replication_beats_partitioning(layouts(1, 1.4)).verdict == claims.OPEN
    assert claims.replication_beats_partitioning(layouts(0.8, 1.4, rounds=2)).verdict == claims.OPEN
    assert claims.replication_beats_partitioning(Results([])).verdict == claims.OPEN


def overload(limited, unlimited):
    return Results([{"kind": "overload", "name": "drain",
                     "workload": 16, "round": 0, "capacity_per_s": 100.0, "target_s": 0.25,
                     "admitted": 25, "limited": {"requests": 10, "answered": 6, "p90_s": limited},
                     "unlimited": {"requests": 10, "answered": 10, "p90_s": unlimited}}])


@pytest.mark.parametrize("limited, unlimited, verdict", [
    ([0.2, 0.25, 0.25, 0.3], [0.5, 1, 1.5, 2], claims.HOLDS),
    ([0.2, 0.4, 0.5, 0.6], [0.5, 1, 1.5, 2], claims.HOLDS_NOT),      # the limit misses the target
    ([0.2, 0.25, 0.25, 0.3], [0.5, 0.5, 0.6, 0.6], claims.HOLDS_NOT),  # there is no overload
    ([0.2, 0.25, 0.25, None], [0.5, 1, 1.5, 2], claims.OPEN),
])
def test_claim_7_needs_limited_and_unlimited_times(limited, unlimited, verdict):
    assert claims.admission_keeps_response_times(overload(limited, unlimited)).verdict == verdict


def test_drain_must_lose_nothing_and_be_the_fastest():
    best = {"p90_ms": 0.9, "p99_ms": 0.9}
    assert claims.drain_is_best(runs({"drain": best}), 16).verdict == claims.HOLDS
    assert claims.drain_is_best(runs({"drain": best | {"input_bytes_per_s": 0.9}}),
                                16).verdict == claims.HOLDS_NOT
    assert claims.drain_is_best(runs({"drain": best | {"p99_ms": 1.1}}),
                                16).verdict == claims.HOLDS_NOT
    # All are equal: drain loses nothing, but is not the fastest.
    assert claims.drain_is_best(runs(), 16).verdict == claims.OPEN


def test_two_rounds_decide_nothing():
    pools = runs(slower("seda", "seda-malloc"), rounds=2)
    for verdict in (claims.thread_per_core_is_best(pools, 16),
                    claims.thread_per_core_is_alike(runs(rounds=2), 16),
                    claims.stacks_do_not_help(runs(rounds=2), 16),
                    claims.lowest_response_times(runs(rounds=2), 16),
                    claims.drain_is_best(runs(rounds=2), 16)):
        assert verdict.verdict == claims.OPEN


def test_differences_between_rounds_do_not_count():
    """cohort is 3 % slower in every round, and the rounds differ by far more."""
    ratio = runs(slower("cohort", by=0.97), noise=(1, 2, 0.5, 1.5, 0.7)).ratio(
        "cohort", "mg1", 16, results.THROUGHPUT)
    assert ratio.is_less and ratio.median == pytest.approx(0.97)


def test_noise_is_neither_more_nor_less():
    ratio = results.Ratio([0.9, 1.1, 1.2, 0.95, 1.01])
    assert not ratio.is_more and not ratio.is_less
    assert results.Ratio([0.99, 1.1, 1.2, 1.3, 1.01]).is_more
    assert not results.Ratio([1.5, 1.5]).is_more


def test_orders_rotate_between_rounds():
    """Each round has all configurations. None is always first, or always after the same one."""
    items = list(range(7))
    orders = [plan.rotated(items, number, 5) for number in range(5)]
    assert all(sorted(order) == items for order in orders)
    assert len({order[0] for order in orders}) >= 4
    followers = [{order[order.index(item) + 1] for order in orders if order[-1] != item}
                 for item in items]
    assert min(map(len, followers)) >= 2


def test_threads_beyond_the_connections_are_left_out():
    cases = {case.name: case for workload in (16, 4) for case in filter(
        None, (configuration.case(workload) for configuration in plan.configurations()))}
    assert cases["thread-per-connection-16"].connections == 16
    assert cases["thread-per-connection-8"].workload == 16
    assert cases["thread-per-connection-8"].connections == 8
    assert cases["thread-per-connection-4"].workload == 4
    assert cases["thread-per-connection-4"].connections == 4
    assert cases["seda"].connections == 4


def test_every_configuration_of_the_paper_is_there():
    assert set(plan.PAPER) <= {configuration.name for configuration in plan.configurations()}


def test_quartiles_are_inclusive():
    assert plots.quartiles([5]) == [5] * 5
    assert plots.quartiles([4, 1, 3, 2, 5]) == [1, 2, 3, 4, 5]


def test_an_unfinished_last_line_does_not_count(tmp_path):
    path = tmp_path / "raw.jsonl"
    path.write_text('{"kind": "machine"}\n{"kind": "poli')
    assert results.read(path) == [{"kind": "machine"}]
    path.write_text('{"kind": "poli\n{"kind": "machine"}\n')
    with pytest.raises(ValueError, match="raw.jsonl:1"):
        results.read(path)
