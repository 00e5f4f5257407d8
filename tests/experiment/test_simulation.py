"""Virtual time is told from real time where it differs, and still agrees with what was measured."""

import concurrent.futures
import heapq
import itertools
import os
import subprocess
import types

import pytest
import readme
import records
import results
import simulation

FOLDER = readme.RESULTS / "simulation"


def lines(throughput, p99, spread=0.01):
    """Four rounds with these ratios of virtual to real figures."""
    real = {"rounds_per_s": 2000.0, "p50_us": 1000.0, "p90_us": 2000.0, "p99_us": 4000.0}
    return [{"real": real, "virtual": real | {
        "rounds_per_s": real["rounds_per_s"] * (throughput + sign * spread),
        "p99_us": real["p99_us"] * (p99 + sign * spread)}} for sign in (-1, 1, -1, 1)]


@pytest.mark.parametrize("throughput, p99, spread, outside", [
    (1, 1, 0.01, []), (0.96, 1.09, 0.01, []), (0.94, 1, 0.01, ["throughput"]),
    (1.06, 0.89, 0.01, ["throughput", "p99"]), (1, 1.11, 0.01, ["p99"]),
    (1, 1.11, 0.3, [])])  # the last measurement cannot tell
def test_a_row_outside_names_its_figures(throughput, p99, spread, outside):
    assert simulation.outside(lines(throughput, p99, spread)) == outside


def test_one_round_tells_by_the_bound_alone():
    assert simulation.outside(lines(1, 1.2)[:1]) == ["p99"]


def test_a_trace_gives_a_record_for_each_picture():
    """A decoding that was parked counts for its picture; visits that found nothing do not."""
    visits = [("jpeg_decode", 1, 500), ("jpeg_decode", 0, 9), ("jpeg_decode", 1, 300), ("scale", 2, 200),
              ("disk_write", 1, 7), ("jpeg_encode", 3, 100), ("jpeg_decode", 1, 50), ("blur", 1, 4)]
    names = list(dict.fromkeys(name for name, _, _ in visits))
    trace = types.SimpleNamespace(stages=names, records=lambda: [
        types.SimpleNamespace(stage=names.index(name), events=events, cpu=1000 * us)
        for name, events, us in visits])
    assert [list(found.values()) for found in records.of_trace(trace)] == [
        [800, 200, 0, 100], [50, 0, 4, 0]]


@pytest.fixture(scope="module")
def built():
    subprocess.run(["make", "-s", f"-j{os.cpu_count()}", "build/plain/world/synthetic"],
                   cwd=simulation.ROOT, check=True)


@pytest.fixture(scope="module")
def measured(built):
    """The committed rows, with what the world says now in place of what it said then."""
    if not (FOLDER / "raw.jsonl").exists():
        pytest.skip("not measured yet")
    rows = list(simulation.rows(results.Results(results.read(FOLDER / "raw.jsonl"))))
    assert len(rows) == len(simulation.POLICIES) * len(simulation.WORKLOADS)

    def again(line):
        policy, name = line["name"].split(", ")
        words = simulation.arguments(policy, simulation.CORES, simulation.WORKLOADS[name],
                                     simulation.SECONDS, line["round"] + 1)
        return line | {"virtual": simulation.virtual(words, simulation.CORES, line["costs"])[0]}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return {name: (of_row, list(pool.map(again, of_row))) for name, of_row in rows}


def test_the_world_agrees_with_the_committed_measurement(measured):
    """No figure is outside that was not outside when it was measured."""
    worse = {name: found for name, (before, now) in measured.items()
             if (found := set(simulation.outside(now)) - set(simulation.outside(before)))}
    assert worse == {}


def test_the_world_tells_policies_apart(measured):
    """The virtual run of another policy is no match for a real one, under overload or in a loop."""
    for policy, other in itertools.permutations(("drain", "cohort", "srpt"), 2):
        assert any(simulation.outside(
            [real | {"virtual": virtual["virtual"]} for real, virtual in zip(
                measured[f"{policy}, {name}"][0], measured[f"{other}, {name}"][1])])
            for name in simulation.WORKLOADS), (policy, other)


def in_their_order(due, work, cores):
    """Serves the events in the order of their arrivals."""
    ends, free = [0.0] * len(due), [0.0] * cores
    for i in sorted(range(len(due)), key=due.__getitem__):
        ends[i] = max(due[i], heapq.heappop(free)) + work[i]
        heapq.heappush(free, ends[i])
    return ends


@pytest.mark.parametrize("workload, sources", [("load 0.5", 1), ("load 0.95", 1), ("load 0.8", 3)])
def test_an_oracle_has_the_arrivals_and_the_work_of_the_program(workload, sources, built, monkeypatch):
    """On one core and without costs, drain takes each event through all stages, in their order."""
    monkeypatch.setattr(simulation, "_sources", lambda cores: sources)
    monkeypatch.setitem(simulation.ORACLES, "in their order", in_their_order)
    free = dict.fromkeys(simulation.validated_costs(), 0)
    for number in range(3):
        want = simulation._measure_many(free, number, 1, "drain", workload, "")
        found = simulation.oracle(number, "in their order", 1, workload)
        for key in ("rounds", "slowdown_p50", "slowdown_p99"):
            assert found[key] == pytest.approx(want[key], rel=0.01), key
