"""scripts/cluster: its figures and picture from made-up answers, a short run, and its end by a signal."""

import pathlib
import shutil
import signal
import subprocess
import sys
import xml.etree.ElementTree

import pytest

import cluster_report
import machine

COMMAND = [sys.executable, machine.ROOT / "scripts" / "experiments" / "cluster.py", "--store",
           "stand-in", "--phase", "2", "--outage", "3", "--nodes", "3"]
needs_haproxy = pytest.mark.skipif(
    not shutil.which("haproxy", path="/usr/sbin:/usr/bin:/usr/local/sbin"),
    reason="HAProxy is not installed")


def answer(s, status="201", node="node1"):
    return {"s": s, "status": status, "node": node}


def phase(begin_s, end_s, repeated=0, lost=0, doubled=0):
    retries = {"repeated": repeated, "late": doubled, "doubled": doubled, "lost": lost}
    return {"phase": f"from {begin_s}", "begin_s": begin_s, "end_s": end_s, "report": {
        "retries": retries, "since_due_ms": {"p50": 1.4, "p90": 20.6, "p99": 300},
        "statuses": {"201": 2}},
        "uploads": [{"due_s": begin_s + i, "done_s": begin_s + i + 0.25, "status": "201"}
                    for i in range(2)]}


def test_answers_are_counted_by_second():
    seconds = cluster_report.by_second([answer(0.1), answer(0.9, node="node2"), answer(2, "503")])
    assert seconds == [{"s": 0, "statuses": {"201": 2}, "nodes": {"node1": 1, "node2": 1}},
                       {"s": 2, "statuses": {"503": 1}, "nodes": {}}]


def test_a_phase_has_its_own_answers_and_the_closed_connections():
    answers = cluster_report.by_second(
        [answer(1), answer(3.5, "503"), answer(4.2, "502"), answer(4.3, "503"), answer(7, "503")])
    cells = cluster_report.row(phase(3, 5, repeated=4, lost=1, doubled=1), answers)
    assert cells == ("from 3", 2, 2, 2, 1, 2, 4, 1, 1, 1, "1", "21", "300")


def test_report_and_picture(tmp_path):
    head = {**machine.describe(), "kind": "cluster", "nodes": 3, "rate_per_s": 2, "connections": 4,
            "retry": "9s", "store": "stand-in", "stored": 5}
    events = [{"s": 3.25, "what": "the store's end"}, {"s": 3.26, "what": "too close"}]
    cluster_report.write_raw(tmp_path, head, [phase(0, 2), phase(3, 5, doubled=1)], events,
                             [answer(0.5), answer(3.5, "503")])
    report = cluster_report.write(tmp_path)
    assert report == (tmp_path / "report.md").read_text()
    assert "5 images; 4 uploads were answered 201, and 1 of them" in report
    assert "| 3.2 | the store's end |" in report or "| 3.3 | the store's end |" in report
    picture = xml.etree.ElementTree.parse(tmp_path / "cluster.svg")
    texts = "".join(picture.getroot().itertext())
    assert "the store's end" in texts and "too close" not in texts


def processes(directory):
    """Returns the command lines that name a directory."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if str(directory) in text:
            found.append(text)
    return found


@needs_haproxy
def test_short_run(tmp_path):
    (tmp_path / "work").mkdir()
    done = subprocess.run([*COMMAND, "--out", tmp_path / "out"], capture_output=True, text=True,
                          env={"TMPDIR": str(tmp_path / "work")}, timeout=300)
    assert done.returncode == 0, done.stderr
    _, phases, events, _ = cluster_report.read_raw(tmp_path / "out")
    assert [phase["phase"] for phase in phases] == [
        "steady", "a node is killed", "a node is added", "a node is drained", "the store is away",
        "steady again"]
    assert sum(phase["report"]["retries"]["lost"] for phase in phases) == 0
    assert {"kill -9 node2", "HAProxy: node4 is up", "node1 has ended", "the store stores"} \
        <= {event["what"] for event in events}
    assert processes(tmp_path / "work") == [] and not list((tmp_path / "work").iterdir())


@needs_haproxy
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_all_that_was_started(tmp_path, number):
    (tmp_path / "work").mkdir()
    process = subprocess.Popen([*COMMAND, "--out", tmp_path / "out"], stderr=subprocess.PIPE,
                               text=True, env={"TMPDIR": str(tmp_path / "work")})
    for line in process.stderr:
        if line.startswith("a node is killed"):
            break
    assert len(processes(tmp_path / "work")) >= 4
    process.send_signal(number)
    process.communicate(timeout=120)
    assert process.returncode in (1, 143)
    assert processes(tmp_path / "work") == [] and not list((tmp_path / "work").iterdir())
