"""The slowdown by size, its arrivals, and the times alone."""

import types

import machine
import pytest
import quiet
import slowdown


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
