"""Demsky's cost model: the right answer for made-up rows, the events of a run, and a run."""

import copy
import json
import os
import pathlib

import cost_model
import pytest

COSTS = {"kernel_thread": [30000, 29000, 31000], "page": [2000, 1900, 2100],
         "hand_over": [20, 19, 21], "hand_over_far": [500, 400, 600], "wake": [10000, 9000, 11000],
         "user_switch": [10, 10, 10], "kernel_switch": [1500, 1400, 1600],
         "poll": [1000, 900, 1100], "poll_ready": [50, 40, 60]}
MODELS = list(cost_model.MODELS)


def row(architecture, requests=100, independent_ns=10000, cell=("GET", "short"), **events):
    """A run whose independent time is known."""
    return {"architecture": architecture, "workload": cell[0], "connections": cell[1],
            "requests": requests, "events": events, "threads": 4,
            "cpu_ns": requests * independent_ns + sum(count * COSTS[name][0]
                                                      for name, count in events.items())}


ROWS = [row("threads", kernel_thread=100, kernel_switch=200), row("loop", requests=300, poll=150, page=60),
        row("pool", wake=50, hand_over_far=100, hand_over=40, poll_ready=100, poll=10)]


@pytest.mark.parametrize("model, threads, loop, pool", [
    ("none", 43000, 10900, 15658), ("creation", 13000, 10900, 15658),
    ("inflation", 13000, 10500, 15658), ("complete", 10000, 10500, 10150),
    ("with select", 10000, 10000, 10000)])
def test_each_model_takes_its_events_away(model, threads, loop, pool):
    assert [cost_model.independent_ns(each, COSTS, model) for each in ROWS] == [threads, loop, pool]


def test_the_right_model_leaves_no_variation():
    found = [cost_model.variation(ROWS, COSTS, model)[0] for model in MODELS]
    assert found[0] > 0.7 and found[1] < found[0] / 3 and found[3] < 0.03
    assert found[-1] == pytest.approx(0) and found[2] > found[1]  # a better model may look worse (4.9)


def test_the_coefficient_is_that_of_the_means():
    """The standard deviation of the architectures' means over the mean of these, not of the runs."""
    rows = [row("a", independent_ns=8000), row("a", independent_ns=12000),
            row("b", independent_ns=20000), row("b", independent_ns=20000)]
    middle, low, high = cost_model.variation(rows, COSTS, "none")
    assert middle == pytest.approx(50 ** 0.5 / 15)
    assert low == pytest.approx(32 ** 0.5 / 16) and high == pytest.approx(72 ** 0.5 / 14)


def test_one_architecture_has_no_variation():
    assert cost_model.variation(ROWS[:1], COSTS, "none") is None
    assert "| GET, short |  |" in cost_model.table(ROWS[:1], COSTS)


def test_an_event_without_a_model_is_an_error():
    unknown = row("loop") | {"events": {"jump": 1}}
    with pytest.raises(ValueError, match="jump"):
        cost_model.independent_ns(unknown, COSTS, "none")


def test_the_tables_have_each_workload_and_architecture(tmp_path):
    text = cost_model.table(ROWS + [row("loop", cell=("/healthz", "long"))], COSTS)
    assert "| GET, short: threads | 4 | 1 | 43.0 | 30.00 | 0.00 | 3.00 | 0.00 | 10.0 |" in text
    assert "| /healthz, long: loop | 0.000 |" in text and "| wake | 10000 | 9000..11000 |" in text
    cost_model.draw(ROWS, COSTS, tmp_path / "x.svg")
    assert "short connections" in (tmp_path / "x.svg").read_text()


# ---- events ----

def stage(name, group, pass_through=False, taken=0, events=0, visits=0):
    return {"name": name, "group": group, "pass_through": pass_through, "events": events,
            "visits": visits, "wait": {"count": taken}}


def stats(policy="drain", stages=(), edges=(), **groups):
    zero = {"sleeps": 0, "wakes_sent": 0, "visits": 0, "visits_empty": 0}
    return {"scheduler": {"policy": policy, "groups": [
        {"name": name, **zero, **groups.get(name, {})} for name in ("io", "main", "disk")]},
        "stages": list(stages), "edges": [dict(zip(("from", "to", "events"), edge)) for edge in edges]}


def snapshot(of, cpu_ns=0, switches=0, page=0, threads=()):
    return {"stats": of, "cpu_ns": cpu_ns, "kernel_switch": switches, "page": page,
            "threads": set(threads)}


def counted(after, **process):
    """The events since a snapshot without any."""
    before = copy.deepcopy(after)
    for one in before["stages"]:
        one |= {"events": 0, "visits": 0, "wait": {"count": 0}}
    for one in before["edges"]:
        one["events"] = 0
    for one in before["scheduler"]["groups"]:
        one |= {key: 0 for key in one if key != "name"}
    return cost_model.events(snapshot(before), snapshot(after, **process))[0]


def pipeline(passes=(), **taken):
    return [stage(name, group, name in passes, taken.get(name, 0)) for name, group in (
        ("accept_read", "io"), ("http_parse", "io"), ("jpeg_decode", "main"), ("scale", "main"))]


EDGES = [("accept_read", "http_parse", 9), ("http_parse", "jpeg_decode", 5), ("jpeg_decode", "scale", 5),
         ("scale", "accept_read", 5)]


def test_hand_overs_within_a_group_are_near():
    found = counted(stats(stages=pipeline({"http_parse"}, accept_read=5, jpeg_decode=5, scale=5),
                          edges=EDGES))
    assert (found["hand_over"], found["hand_over_far"]) == (5, 10)


def test_a_loop_that_calls_all_stages_hands_over_to_itself():
    """What comes back to its own queue; its stages run where it runs."""
    found = counted(stats(stages=pipeline({"http_parse", "jpeg_decode", "scale"}, accept_read=5),
                          edges=EDGES))
    assert (found["hand_over"], found["hand_over_far"]) == (5, 0)


def test_each_pool_is_a_group():
    found = counted(stats("seda", pipeline({"http_parse"}, accept_read=5, jpeg_decode=5, scale=5),
                          EDGES))
    assert (found["hand_over"], found["hand_over_far"]) == (0, 15)


def test_a_user_level_thread_carries_its_event_on():
    found = counted(stats("user-threads", pipeline({"http_parse"}, accept_read=5, jpeg_decode=5, scale=5),
                          EDGES, main={"visits": 10, "visits_empty": 1}))
    assert (found["hand_over"], found["hand_over_far"]) == (0, 10) and found["user_switch"] == 22


def test_polls_and_what_the_process_did():
    after = stats(stages=[stage("accept_read", "io", taken=3, events=20, visits=2)],
                  io={"sleeps": 7, "wakes_sent": 1}, disk={"sleeps": 50, "wakes_sent": 4})
    found = counted(after, switches=70, page=6, threads={"1", "2"})
    assert found == {"kernel_thread": 2, "page": 6, "hand_over": 3, "hand_over_far": 0, "wake": 5,
                     "user_switch": 0, "kernel_switch": 70, "poll": 9, "poll_ready": 17}


def test_switches_of_threads_that_have_ended():
    assert counted(stats(stages=[stage("accept_read", "io")], io={"sleeps": 9}),
                   switches=-30)["kernel_switch"] == 9


def test_a_thread_that_ends_meanwhile(monkeypatch):
    iterdir = pathlib.Path.iterdir
    monkeypatch.setattr(pathlib.Path, "iterdir", lambda path: [path / "0", *iterdir(path)])
    found = cost_model._process(os.getpid())
    assert found["kernel_switch"] > 0 and found["cpu_ns"] > 0
    assert str(os.getpid()) in found["threads"] and "0" not in found["threads"]


# ---- runs ----

def test_new_threads_are_counted_by_connections(tmp_path):
    cells = [(cost_model.HEALTH, kind) for kind in (cost_model.SHORT, cost_model.LONG)]
    short, long = cost_model.measure(cost_model.NEW_THREADS, 0.2, tmp_path, cells)
    assert short["events"]["kernel_thread"] >= short["requests"] > long["events"]["kernel_thread"]
    assert long["events"]["kernel_thread"] >= cost_model.CLIENTS


def test_a_run_of_each_workload(tmp_path):
    rows = list(cost_model.measure("user-threads", 0.2, tmp_path))
    assert [(each["workload"], each["connections"]) for each in rows] == cost_model.CELLS
    for each in rows:
        of = each["events"]
        assert each["requests"] > 0 and each["cpu_ns"] > 1000 * each["requests"]
        assert of.keys() < COSTS.keys() | {"user_thread"} and of["poll"] and of["kernel_switch"]
        is_upload = each["workload"] in (cost_model.TINY, cost_model.PICTURES)
        # jpeg_decode, two of scale, blur, and three of jpeg_encode: each enters and leaves a thread
        assert of["user_switch"] >= 14 * each["requests"] if is_upload else not of["user_switch"]
        if each["connections"] == cost_model.SHORT:  # its listener, too, is ready
            assert of["poll_ready"] > 1.9 * each["requests"]
    assert not list(tmp_path.glob("daemon-*"))


def test_the_microbenchmarks_have_every_event():
    costs = cost_model.measured_costs()
    counted_events = {name for names in cost_model.EVENTS.values() for name in names}
    assert counted_events < costs.keys() and json.dumps(costs)
    assert all(low <= middle <= high for middle, low, high in costs.values())
    assert costs["user_switch"][0] < costs["kernel_thread"][0]


def test_the_tiny_picture():
    assert 390 <= len(cost_model.tiny_jpeg()) <= 410
