"""The oracles of slowdown by known answers and by a clock of small steps, and its percentiles."""

import random
import types

import machine
import pytest
import quiet
import slowdown


@pytest.mark.parametrize("cores, srpt, shared", [(1, [1, 3], [2, 3]), (2, [1, 2], [1, 2])])
def test_two_requests_at_once(cores, srpt, shared):
    assert slowdown.srpt([0, 0], [1, 2], cores) == pytest.approx(srpt)
    assert slowdown.processor_sharing([0, 0], [1, 2], cores) == pytest.approx(shared)


def test_a_short_request_interrupts_a_long_one():
    assert slowdown.srpt([0, 2, 20], [10, 1, 1], 1) == pytest.approx([11, 3, 21])
    # It gets half of the core: 2 of the work at 2, and 3 at 4.
    assert slowdown.processor_sharing([0, 2], [10, 1], 1) == pytest.approx([11, 4])
    # The long one that has little left is not interrupted.
    assert slowdown.srpt([0, 9.5], [10, 1], 1) == pytest.approx([10, 11])


def by_steps(due, work, cores, shares, step=1 / 512):
    """Serves the requests step by step. shares: from the remaining work of those present."""
    left, ends, now = list(work), [0.0] * len(due), 0.0
    while any(x > 0 for x in left):
        present = [i for i, at in enumerate(due) if at <= now and left[i] > 0]
        for i, share in shares([(left[i], i) for i in present], cores):
            left[i] -= share * step
            if left[i] <= 1e-9:
                left[i], ends[i] = 0, now + step
        now += step
    return ends


def least_first(present, cores):
    return [(i, 1) for _, i in sorted(present)[:cores]]


def equally(present, cores):
    return [(i, min(1, cores / len(present))) for _, i in present]


@pytest.mark.parametrize("oracle, shares", [(slowdown.srpt, least_first),
                                            (slowdown.processor_sharing, equally)])
@pytest.mark.parametrize("cores", [1, 2, 3])
def test_the_oracles_do_what_a_clock_of_small_steps_does(oracle, shares, cores):
    rng = random.Random(cores)
    due = sorted(rng.randrange(2048) / 512 for _ in range(12))
    work = [rng.randrange(50, 900) / 512 for _ in due]
    order = rng.sample(range(12), 12)  # requests need not be in the order of their times
    due, work = [due[i] for i in order], [work[i] for i in order]
    assert oracle(due, work, cores) == pytest.approx(by_steps(due, work, cores, shares), abs=0.03)


def test_processor_sharing_slows_all_sizes_alike():
    """The mean slowdown in M/G/1 is 1 / (1 - load) for each size (Kleinrock 1976), here at 0.5."""
    rng, now, due = random.Random(8), 0.0, []
    for _ in range(20000):
        now += rng.expovariate(0.5)
        due.append(now)
    work = [rng.choice((0.1, 0.1, 0.1, 3.7)) for _ in due]
    ends = slowdown.processor_sharing(due, work, 1)
    for size in (0.1, 3.7):
        mine = [(end - at) / own for end, at, own in zip(ends, due, work) if own == size]
        assert sum(mine) / len(mine) == pytest.approx(2, rel=0.1)
    best = slowdown.srpt(due, work, 1)
    assert sum(best) < sum(ends)


def test_percentiles_need_requests_beyond_them():
    bounds = slowdown.class_bounds(range(100))
    assert bounds == [50, 90]
    services = [i % 100 for i in range(2000)]
    found = slowdown.by_class([float(i) for i in range(2000)], services, bounds)
    assert {name: of["n"] for name, of in found.items()} == {
        "small half": 1000, "middle": 800, "largest tenth": 200}
    assert found["small half"]["p99_9"] == 1949 and found["middle"]["p99_9"] is None
    assert found["largest tenth"]["p99"] == 1998 and found["largest tenth"]["p50"] == 1090
    few = slowdown.by_class([1.0], [1], bounds)
    assert few["small half"]["p50"] is None and few["middle"] == {
        "n": 0, "p50": None, "p99": None, "p99_9": None}


@pytest.mark.parametrize("arrivals", slowdown.ARRIVALS)
def test_bursts_have_the_same_mean_rate(arrivals):
    words = slowdown._arguments(arrivals, 260.0, 10)
    requests = float(words[1]) * 10
    for spike in (word for word in words if "@" in word):
        factor, length, start = spike.replace("@", ":").removesuffix("s").split(":")
        requests += float(words[1]) * (float(factor) - 1) * float(length) / 1000
        assert 0 <= float(start) < 10
    assert requests == pytest.approx(2600, rel=1e-5)


def test_times_alone_are_measured_undisturbed_and_once(tmp_path, monkeypatch):
    shares, times = [0.3, 0.01], iter((7.0, 5.0))
    monkeypatch.setattr(quiet, "wait", lambda most: None)
    monkeypatch.setattr(machine, "Usage", lambda: types.SimpleNamespace(
        of_others=lambda: shares.pop(0)))
    monkeypatch.setattr(slowdown, "_measure_alone", lambda bench: {
        "capacity_per_s": 100.0, "alone_s": {"a.jpg": next(times)}})
    options = types.SimpleNamespace(out=tmp_path, others=5)
    for _ in range(2):
        assert slowdown._alone(options, None) == (100.0, {"a.jpg": 5.0})
    assert not shares


def test_an_oracle_has_the_arrivals_of_one_policy():
    one = {of_class: dict.fromkeys(slowdown.PERCENTILES, 2.0) for of_class in slowdown.CLASSES}
    lines = [{"policy": policy, "arrivals": "poisson", "load": 0.5, "slowdown": one, "srpt": one,
              "ps": one} for policy in ("mg1", "drain") for _ in range(3)]
    assert slowdown.names(lines) == ["drain", "mg1", "oracle SRPT", "processor sharing"]
    at = "poisson", 0.5, "middle", "p99"
    assert all(slowdown.values(lines, name, *at) == [2.0] * 3 for name in slowdown.names(lines))
    lines[0]["slowdown"] = {"middle": {"p99": None}}
    assert slowdown.values(lines, "mg1", *at) == []
