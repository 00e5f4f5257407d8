"""Traces of visits: --trace, ctl trace, and scripts/trace-draw. The orders of the policies are shown
in tests/unit/sched/test_trace_orders.c."""

import collections
import itertools
import json
import os
import pathlib
import socket
import subprocess
import sys
import threading
import xml.etree.ElementTree

import pytest

import pictures
from control import FIRST, OTHER, command, socket_of
from darkroom import POLICY, ROOT, eventually, overrides, run, slow
from darkroom import command as command_line

sys.path.insert(0, str(ROOT / "scripts" / "traces"))

import trace_file  # noqa: E402

# Events of an image with the variants of the shipped configuration.
PER_IMAGE = {"jpeg_decode": 1, "scale": 2, "blur": 1, "jpeg_encode": 3, "disk_write": 1, "stats": 1}
SMALL = pictures.photo_jpeg(320, 240, 2)


def draw(path, *options):
    return subprocess.run([ROOT / "scripts" / "trace-draw", *options, path], capture_output=True,
                          text=True, timeout=slow(60), check=False)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "visits.trace"


def traced(start, path, *settings, images=3, policy=POLICY):
    """Returns the trace of a daemon that has stored some images, one after the other."""
    daemon = start(*settings, policy=policy, extra=("--trace", path))
    for seed in range(images):
        daemon.image(pictures.photo_jpeg(640, 480, seed))
    # Events are counted when the handler returns; the response may be sent before.
    assert eventually(lambda: events_of(daemon.get("/stats").json()) ==
                      {name: images * n for name, n in PER_IMAGE.items()})
    # A visit is counted after its events, once its record is in the trace.
    assert eventually(lambda: visits_of(daemon.get("/stats").json()) ==
                      visits_recorded(trace_file.read(path)))
    stats = daemon.get("/stats").json()
    daemon.stop()
    return trace_file.read(path), stats


def visits_of(stats):
    """Returns {stage: visits that found work} of the pixel stages, without zeros."""
    return {stage["name"]: stage["visits"] for stage in stats["stages"]
            if stage["name"] in PER_IMAGE and stage["visits"]}


def visits_recorded(trace):
    """Returns the same from a trace."""
    counts = collections.Counter(trace.stages[visit.stage] for visit in trace.records()
                                 if visit.events)
    return {name: count for name, count in counts.items() if name in PER_IMAGE}


def events_of(stats):
    return {stage["name"]: stage["events"] for stage in stats["stages"]
            if stage["name"] in PER_IMAGE}


def handled(trace):
    """Returns {stage: events} of visits and direct calls."""
    sums = {}
    for kind in (trace_file.VISIT, trace_file.CALL):
        for record in trace.records(kind):
            name = trace.stages[record.stage]
            sums[name] = sums.get(name, 0) + record.events
    return sums


@pytest.mark.every_policy
def test_trace_has_every_visit(start, path):
    """The trace has as many events of each pixel stage as /stats, and each visit is within the
    trace, by a worker whose schedule is known."""
    trace, stats = traced(start, path)
    assert trace.is_complete and trace.lost == 0
    sums = handled(trace)
    assert {name: sums[name] for name in PER_IMAGE} == events_of(stats)
    for items in trace.workers.values():
        assert isinstance(items[0], trace_file.Schedule)
        assert items[0].policy == stats["scheduler"]["policy"]
    for visit in trace.records():
        assert trace.begin <= visit.begin <= visit.end <= trace.end
        assert visit.cpu <= visit.wall + 10_000_000 and visit.core < os.cpu_count()


@pytest.mark.also_with("seda", "color", "cohort", "user-threads")
def test_stats_has_the_visits_of_the_trace(start, path):
    """Visits that found work and their maxima by stage, and events by worker, are the same in
    both. The success rate is that of the visits."""
    trace, stats = traced(start, path)
    for number, stage in enumerate(stats["stages"]):
        found = [visit for visit in trace.records() if visit.stage == number and visit.events]
        if stage["name"] not in PER_IMAGE or not found:
            continue
        assert stage["visits"] == len(found), stage["name"]
        assert stage["max_events_per_visit"] == max(visit.events for visit in found)
        assert stage["max_queued_at_visit"] >= max(visit.queued for visit in found) > 0
        assert stage["wait"]["mean_ms"] - 0.001 <= stage["max_wait_us"] / 1000 <= \
            stage["wait"]["sum_ms"]
        assert stage["visit_success"] == pytest.approx(
            stage["visits"] / (stage["visits"] + stage["visits_empty"]), rel=1e-3)
    for group in stats["scheduler"]["groups"]:
        assert group["visits"] == sum(worker["visits"] for worker in group["workers"])
        for index, worker in enumerate(group["workers"]):
            if group["name"] == "io":  # visits the pages that this test reads
                continue
            items = trace.workers.get((trace.groups.index(group["name"]), index), [])
            events = {}
            for item in items:
                if isinstance(item, trace_file.Record) and item.events:
                    name = trace.stages[item.stage]
                    events[name] = events.get(name, 0) + item.events
            assert {name: of["events"] for name, of in worker["stages"].items()} == events
            assert (worker["busy_ms"] > 0) == bool(events)


@pytest.mark.every_policy
def test_no_visit_is_to_a_stage_that_is_called_directly(start, path):
    """Unless the visit finds an event from outside."""
    trace, _ = traced(start, path)
    for items in trace.workers.values():
        schedule = None
        for item in items:
            if isinstance(item, trace_file.Schedule):
                schedule = item
                assert not schedule.pass_through & set(schedule.polled)
            elif isinstance(item, trace_file.Record) and item.type == trace_file.VISIT:
                assert item.stage in schedule.polled or item.events


@pytest.mark.shared_layout
def test_thread_per_connection_carries_a_request_through(start, path):
    """Each request's calls follow one another on one thread, from the parser to the statistics."""
    trace, _ = traced(start, path, "scheduler.threads=2", images=4, policy="thread-per-connection")
    images = 0
    for items in trace.workers.values():
        calls = sorted((item for item in items if isinstance(item, trace_file.Record)
                        and item.type == trace_file.CALL), key=lambda call: call.begin)
        names = [trace.stages[call.stage] for call in calls]
        while "form_decode" in names:
            first = names.index("form_decode")
            end = names.index("stats", first)
            chain = names[first:end + 1]
            assert chain[:2] == ["form_decode", "jpeg_decode"] and chain[-2:] == ["disk_write", "stats"]
            assert chain.count("scale") == 2 and chain.count("blur") == 1
            assert chain.count("jpeg_encode") == 3 and len(chain) == 10
            names = names[end + 1:]
            images += 1
    assert images == 4


class Load:
    """Uploads small images on some connections until the block ends."""

    def __init__(self, daemon, connections=6):
        self.daemon, self.over = daemon, threading.Event()
        self.threads = [threading.Thread(target=self.run) for _ in range(connections)]

    def run(self):
        with self.daemon.client(timeout=slow(60)) as client:
            while not self.over.is_set():
                assert client.request("POST", "/images", SMALL,
                                      [("Content-Type", "image/jpeg")]).status == 201

    def __enter__(self):
        for thread in self.threads:
            thread.start()

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()


def late_orders(path):
    """Returns {main worker: orders that it computed from the first second of load on}."""
    trace = trace_file.read(path)
    load = min((visit.begin for visit in trace.records()
                if trace.stages[visit.stage] == "jpeg_decode" and visit.events), default=trace.end)
    return {trace.name(key): [item for item in items if isinstance(item, trace_file.Order)
                              and item.begin >= load + 1_000_000_000]
            for key, items in trace.workers.items() if trace.groups[key[0]] == "main"}


@pytest.mark.parametrize("policy", ["mg1", "dbr"])
def test_orders_are_made_of_measured_rates(start, path, policy):
    """From the first second of load on, each order that a worker computes has a rate of each
    stage. Each worker computes some."""
    daemon = start("scheduler.threads=2", policy=policy, extra=("--trace", path))
    with Load(daemon):
        assert eventually(lambda: len(late_orders(path)) == 2 and all(late_orders(path).values()),
                          60, step=0.3)
    daemon.stop()
    for order in itertools.chain(*late_orders(path).values()):
        assert min(order.service) > 0 and min(order.arrival) > 0, order
        if policy == "dbr":
            assert order.positions == sorted(order.positions, key=lambda i: order.service[i])


# ---- ctl trace ----

def ctl_trace(daemon, path, seconds):
    """Starts darkroomd ctl trace, with standard output to a file."""
    with open(path, "wb") as out:
        return subprocess.Popen(
            command_line(*overrides(f"server.root={daemon.store}"), "ctl", "trace", seconds),
            stdout=out, stderr=subprocess.PIPE)


def test_ctl_traces_a_running_daemon_and_its_switches(start, path):
    """The trace ends after the given time and has the schedules before and after a switch. Another
    trace meanwhile is refused, and one afterwards is not."""
    daemon = start(policy=FIRST)
    process = ctl_trace(daemon, path, "2")
    assert eventually(lambda: path.stat().st_size > 0)
    assert "a trace is on already" in command(daemon, "trace 1")[1]
    daemon.image(SMALL)
    assert command(daemon, f"policy {OTHER}")[0] == 0
    daemon.image(SMALL)
    assert process.wait(slow(30)) == 0, process.stderr.read()
    process.stderr.close()
    trace = trace_file.read(path)
    assert trace.is_complete
    assert 1.9e9 < trace.end - trace.begin
    schedules = [item for items in trace.workers.values() for item in items
                 if isinstance(item, trace_file.Schedule)]
    assert {item.policy for item in schedules} == {FIRST, OTHER}
    for items in trace.workers.values():
        number = 0
        for item in items:
            if isinstance(item, trace_file.Schedule):
                assert item.number > number
                number = item.number
            elif isinstance(item, trace_file.Record):
                assert item.schedule == number
    size = path.stat().st_size
    daemon.image(SMALL)
    assert path.stat().st_size == size
    again = ctl_trace(daemon, path, "1")
    assert again.wait(slow(30)) == 0
    again.stderr.close()
    assert trace_file.read(path).is_complete


def test_trace_ends_when_its_client_goes(start, path):
    daemon = start()
    process = ctl_trace(daemon, path, "3600")
    assert eventually(lambda: path.stat().st_size > 0)
    process.kill()
    process.wait()
    process.stderr.close()
    assert daemon.says("the client has gone; the trace ends")
    status, _ = command(daemon, "trace 0")
    assert status == 2


def test_client_that_does_not_read_stops_nothing(start):
    """The daemon serves as before and does not keep more and more records for the client. What is
    lost is counted: tests/unit/sched/test_trace_orders.c."""
    daemon = start("scheduler.policy=cohort")
    with socket.socket(socket.AF_UNIX) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.connect(str(socket_of(daemon)))
        s.sendall(b"trace 3600\n")
        assert s.recv(2) == b"0\n"
        with Load(daemon):
            daemon.image(SMALL)
        assert "a trace is on already" in command(daemon, "trace 1")[1]
        assert daemon.get("/healthz").status == 200
    assert daemon.says("the client has gone; the trace ends")


def test_trace_is_not_printed_on_a_terminal(tmp_path):
    ours, terminal = os.openpty()
    done = subprocess.run(
        command_line(*overrides(f"server.root={tmp_path}"), "ctl", "trace", "1"), stdout=terminal,
        stderr=subprocess.PIPE, text=True, timeout=slow(60), check=False)
    os.close(terminal)
    os.close(ours)
    assert done.returncode == 1 and "expected a file" in done.stderr


@pytest.mark.parametrize("seconds", ["0", "3601", "-1", "1x", "99999999999999999999", ""])
def test_wrong_seconds_are_refused(daemon, seconds):
    status, text = command(daemon, f"trace {seconds}".strip())
    assert status == 2 and "expected" in text


def test_trace_to_something_else_than_a_file_is_refused(tmp_path):
    done = run(*overrides(f"server.root={tmp_path}"), "--trace", tmp_path)
    assert done.returncode == 1 and f"--trace {tmp_path}" in done.stderr
    done = run(*overrides(f"server.root={tmp_path}"), "--trace", "/dev/null")
    assert done.returncode == 1 and "expected a regular file" in done.stderr


# ---- scripts/trace-draw ----

def test_trace_is_drawn(start, path):
    """As tables with each stage, as SVG with a box for long visits and each stage in the legend, and
    as JSON with one complete event for each visit that found work."""
    trace, stats = traced(start, path)
    names = [stage["name"] for stage in stats["stages"] if stage["events"] or stage["calls"]]
    done = draw(path)
    assert done.returncode == 0 and "visit success rate" in done.stdout, done.stderr
    assert "not complete" not in done.stdout
    for name in names:
        assert name in done.stdout
    row = next(line for line in done.stdout.splitlines() if line.startswith("| jpeg_decode"))
    visits = [v for v in trace.records() if trace.stages[v.stage] == "jpeg_decode"]
    if visits:
        assert int(row.split("|")[2]) == len(visits)
    done = draw(path, "--format", "svg")
    assert done.returncode == 0, done.stderr
    svg = xml.etree.ElementTree.fromstring(done.stdout)
    texts = "\n".join(text.text for text in svg.iter("{http://www.w3.org/2000/svg}text"))
    assert all(name in texts for name in names) and ("core 0" in texts or "core 1" in texts)
    assert "ms" in texts.split("\n")
    done = draw(path, "--format", "json")
    events = json.loads(done.stdout)["traceEvents"]
    complete = [event for event in events if event["ph"] == "X" and event["cat"] == "visit"]
    assert len(complete) == sum(visit.events > 0 for visit in trace.records())
    assert all(event["dur"] > 0 and event["ts"] >= 0 for event in complete)
    assert {event["args"]["name"] for event in events if event["name"] == "thread_name"} \
        == set(map(trace.name, trace.workers))


def test_part_of_a_trace_is_drawn(start, path):
    trace, _ = traced(start, path)
    visit = max(trace.records(), key=lambda record: record.wall)
    begin = (visit.begin - trace.begin) / 1e6
    done = draw(path, "--format", "json", "--from", str(begin - 0.001), "--to", str(begin + 0.001))
    found = [event for event in json.loads(done.stdout)["traceEvents"] if event["ph"] == "X"]
    assert trace.stages[visit.stage] in {event["name"] for event in found} and len(found) < 20
    done = draw(path, "--from", "1e9")
    assert done.returncode == 1 and "nothing between" in done.stderr


def test_damaged_traces_are_reported(start, path, tmp_path):
    """A trace that is cut off anywhere is drawn up to there, or refused with a reason."""
    traced(start, path, images=1)
    whole = path.read_bytes()
    cut = tmp_path / "cut.trace"
    for size in (0, 7, 30, 60, 400, len(whole) // 2, len(whole) - 1):
        cut.write_bytes(whole[:size])
        done = draw(cut)
        assert "Traceback" not in done.stderr
        assert done.returncode == 1 or "not complete" in done.stdout
    cut.write_bytes(b"\x89PNG" + whole[4:])
    assert "not a trace" in draw(cut).stderr
    other = bytearray(whole)
    other[12] ^= 0x40
    cut.write_bytes(other)
    assert "expected version 1" in draw(cut).stderr
    assert "No such file" in draw(pathlib.Path("/nowhere")).stderr
