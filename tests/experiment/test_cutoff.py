"""The preemption quantum: a real run yields, and the cost of a yield follows from the rows."""

import math
import types

import cutoff
import pytest
import run
import slowdown
from machine import ROOT
from results import Results


def row(name, number, cpu_ms, events, p99=8.0):
    return {"kind": "cutoff", "name": name, "workload": 0, "round": number,
            "cpu_ms_per_image": cpu_ms, "events_per_image": events,
            "slowdown": {of_class: {"p99": p99} for of_class in slowdown.CLASSES}}


def test_a_small_cutoff_yields(tmp_path, monkeypatch):
    files = ROOT / "data" / "sample"
    alone = {path.name: 0.01 for path in files.glob("*.jpg")}
    monkeypatch.setattr(slowdown, "_alone", lambda options, bench: (20.0, alone))
    options = types.SimpleNamespace(run_s=1)
    lines = {job.name: job.measure() for job in cutoff.jobs(options, run.Bench(files, tmp_path), 0)
             if job.name in (cutoff.NONE, "0.1 ms")}
    assert all(line["requests"] == 14 and line["load"] == cutoff.LOAD for line in lines.values())
    assert lines["0.1 ms"]["events_per_image"] > lines[cutoff.NONE]["events_per_image"] + 1


def test_the_cost_of_a_yield():
    results = Results([row("none", 0, 4.0, 3), row("none", 1, 4.2, 3),
                       row("1 ms", 0, 4.1, 8, p99=4.0), row("1 ms", 1, 4.3, 13, p99=4.0)])
    counts, costs = cutoff._yields(results, "1 ms")
    assert counts == [5, 10] and costs == pytest.approx([20, 10])
    assert "| 1 ms | 7.50 (5.00..10.00) |" in cutoff.table(results)
    assert "| 15.0 |" in cutoff.table(results)


def test_a_round_without_a_percentile_says_nothing():
    results = Results([row("none", 0, 4.0, 3), row("1 ms", 0, 4.1, 8, p99=None)])
    assert cutoff.pairs(results, "1 ms", lambda line: cutoff.p99(line, cutoff.SMALL)) is None
    found = cutoff.pairs(results, "1 ms", lambda line: line["cpu_ms_per_image"])
    assert math.exp(found.mean) == pytest.approx(1.025)
    assert cutoff.pairs(results, "5 ms", lambda line: line["cpu_ms_per_image"]) is None
