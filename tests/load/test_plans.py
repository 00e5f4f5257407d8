"""Order and times of requests, connections, and how darkroom-load shows its progress."""

import collections
import csv
import os
import re
import statistics
import time

import pytest

from generator import Handler, Watched, serving

TIMES = ("intended", "start", "sent", "done")


@pytest.fixture
def rows(load, tmp_path):
    """rows(*arguments) runs darkroom-load and returns the rows of its CSV file."""
    def run(*arguments):
        path = tmp_path / "rows.csv"
        done = load("-q", "--csv", path, *arguments)
        assert (done.status, done.output, done.errors) == (0, "", "")
        with open(path, newline="") as file:
            return [{key: float(value) if key in TIMES else value for key, value in row.items()}
                    for row in csv.DictReader(file)]
    return run


def due(found):
    return sorted(row["intended"] for row in found)


# ---- closed loop ----


def test_every_file_once_in_a_seeded_order(rows, serve, files):
    url = serve()

    def names(seed):
        found = rows("-c", 1, "--seed", seed, url, files)
        return [os.path.basename(row["file"]) for row in found]

    first = names(1)
    assert sorted(first) == [f"{i}.jpg" for i in range(10)] and first != sorted(first)
    assert names(1) == first and names(2) != first


def test_rows_are_in_order_and_complete(rows, serve, files):
    found = rows("-c", 3, "-n", 25, serve("-d", "1,5,20"), files)
    assert len(found) == 25
    assert [row["done"] for row in found] == sorted(row["done"] for row in found)
    for row in found:
        assert 0 <= row["intended"] <= row["start"] <= row["sent"] < row["done"]
        assert row["status"] == "201" and row["error"] == "" and row["connection"] in "012"
        assert int(row["bytes"]) == os.path.getsize(row["file"])


def test_a_connection_has_one_request_at_a_time(rows, serve, files):
    ends = {}
    found = rows("-c", 3, "-n", 60, serve("-d", "1,5,20"), files)
    for row in sorted(found, key=lambda row: row["start"]):
        assert row["start"] >= ends.get(row["connection"], 0)
        ends[row["connection"]] = row["done"]


def test_requests_per_connection(load, serve, files):
    code, report = load.json("-c", 2, "-n", 20, "--requests-per-connection", 3, serve("-d", "5"),
                             files)
    assert code == 0 and report["connections_opened"] in (7, 8)
    assert sum(report["responses_per_connection"]) == 20


def test_think_time(rows, serve, files):
    starts = [row["start"] for row in rows("-c", 1, "-n", 5, "--think", "50", serve(), files)]
    pauses = [b - a for a, b in zip(starts, starts[1:])]
    assert all(pause >= 0.05 for pause in pauses) and min(pauses) < 0.2, pauses


def test_duration(rows, serve, files):
    """Requests started in time are finished, and none is started later."""
    found = rows("-c", 2, "-d", "300ms", serve("-d", "10"), files)
    assert len(found) >= 2 and max(row["done"] for row in found) > 0.25
    late = sum(row["start"] > 0.3 for row in found)
    assert late <= 2, "the machine may have paused between reading the clock and a request"


def test_fairness_of_connections(load, serve, files):
    code, report = load.json("-c", 4, "-n", 40, serve("-d", "20"), files)
    assert code == 0 and report["fairness"] > 0.9
    shares = report["responses_per_connection"]
    squares = sum(share ** 2 for share in shares)
    assert report["fairness"] == pytest.approx(sum(shares) ** 2 / (4 * squares))


def test_threads_share_the_queue(load, serve, files):
    code, report = load.json("-t", 3, "-c", 7, "-n", 500, serve("-d", "1,2,3"), files)
    assert code == 0 and report["responses"] == 500
    assert sum(report["responses_per_connection"]) == 500


# ---- open loop ----


def test_a_constant_rate(rows, serve, files):
    found = rows("--rate", 100, "-n", 50, serve(), files)
    assert due(found) == pytest.approx([i / 100 for i in range(50)], abs=1e-6)
    assert statistics.median(row["start"] - row["intended"] for row in found) < 0.02


def test_poisson_arrivals(rows, serve, files):
    """Gaps have mean and deviation 1/rate, and depend on the seed but not on the threads."""
    url = serve()
    moments = due(rows("--rate", 4000, "--poisson", "-n", 2000, url, files))
    gaps = [b - a for a, b in zip(moments, moments[1:])]
    assert statistics.mean(gaps) == pytest.approx(1 / 4000, rel=0.1)
    assert statistics.stdev(gaps) == pytest.approx(1 / 4000, rel=0.1)
    assert due(rows("--rate", 4000, "--poisson", "-n", 2000, "-t", 2, url, files)) == moments
    assert due(rows("--rate", 4000, "--poisson", "-n", 2000, "--seed", 2, url, files)) != moments


def test_a_spike(rows, serve, files):
    moments = due(rows("--rate", 100, "--spike", "3:200@0.4s", "-n", 140, serve(), files))
    assert sum(t < 0.3999 for t in moments) == 40
    assert sum(0.3999 <= t < 0.5999 for t in moments) == 60
    assert sum(t >= 0.5999 for t in moments) == 40


def test_a_ramp_ends_the_run(load, serve, files, tmp_path):
    """From 0 to 400 per second within a second, 200 t^2 are due after t seconds. A busy machine may
    leave some unsent."""
    path = tmp_path / "rows.csv"
    code, report = load.json("--csv", path, "--ramp", "0:400@1s", serve(), files)
    moments = [float(row["intended"]) for row in csv.DictReader(path.read_text().splitlines())]
    assert code == 0 and len(moments) == report["responses"] + report["unsent"]
    assert len(moments) == pytest.approx(200, abs=2)
    assert sum(t < 0.5 for t in moments) == pytest.approx(50, abs=2)


def test_unsent_requests_are_reported(load, serve, files, tmp_path):
    """One connection takes a fifth of a second per request, and ten times as many are due. The rest
    counts as unsent, and has rows with nothing but the time when it was due."""
    path = tmp_path / "rows.csv"
    code, report = load.json("--csv", path, "--rate", 50, "-c", 1, "-d", "500ms",
                             serve("-d", "200"), files)
    assert report["responses"] + report["unsent"] == 25 and 1 <= report["responses"] <= 5
    assert report["makespan_s"] < 4 and code == 0, "the whole backlog would take 5 s"
    found = list(csv.DictReader(path.read_text().splitlines()))
    assert sorted(float(row["intended"]) for row in found) == pytest.approx(
        [i / 50 for i in range(25)], abs=1e-6)
    unsent = [row for row in found if row["error"] == "unsent"]
    assert len(unsent) == report["unsent"]
    assert {row[key] for row in unsent for key in row if key not in ("intended", "error")} == {""}


@pytest.mark.parametrize("connections, delay_ms, count", [(20, 0, "0"), (1, 200, "[1-9][0-9]*")])
def test_an_open_loop_always_tells_its_unsent_requests(load, serve, files, connections, delay_ms,
                                                       count):
    """Ten requests cannot use up 20 connections, however slow the machine is."""
    done = load("--rate", 20, "-c", connections, "-d", "500ms", serve("-d", delay_ms), files)
    assert re.search(f"^unsent +{count} requests were due but found no free connection",
                     done.output, re.MULTILINE)


# ---- how it is shown ----


def test_silent_when_piped(load, serve, files):
    done = load("-d", "1200ms", serve("-d", "10"), files)
    assert done.status == 0 and done.errors == ""
    assert "response time" in done.output and "\033" not in done.output


def test_progress_on_a_terminal(serve, files):
    """One line, overwritten every second and removed at the end."""
    begun = time.monotonic()
    run = Watched("-d", "2500ms", serve("-d", "10"), files)
    status, output = run.finish()
    lines = run.shown.split("\r\033[K")
    assert status == 0 and "response time" in output
    # a second more for each one that the machine paused
    assert 3 <= len(lines) <= time.monotonic() - begun + 2 and lines[0] == lines[-1] == "", lines
    words = (" answers, ", "/s  p50 ", " p99 ", " ms  errors 0  ETA 0:0")
    for line in lines[1:-1]:
        assert all(word in line for word in words) and len(line) < 80, line


@pytest.mark.parametrize("arguments", [
    ("--rate", "0"), ("--rate", "ten"), ("-c", "0"), ("-n", "-1"), ("-d", "1x"),
    ("--spike", "3:1000", "--rate", "1"), ("--spike", "3:1000@20s"), ("--poisson",),
    ("--ramp", "1:2@0"), ("--rate", "1", "--ramp", "1:2@3"), ("--expect", "99"),
    ("-H", "no colon"), ("-H", "Name: split\r\nX: y"), ("--rate", "1", "--think", "5"),
    ("-t", "9"), ("--unknown",)])
def test_wrong_usage(load, arguments):
    done = load(*arguments, "http://127.0.0.1:1/", "/nowhere")
    assert done.status == 2 and done.output == "" and "darkroom-load" in done.errors


def test_help(load):
    done = load("--help")
    assert done.status == 0 and done.errors == ""
    assert done.output.startswith("usage: darkroom-load")
    assert load("--version").output.startswith("darkroom-load ")


# ---- clients ----

class Recorder(Handler):
    """Refuses the first request of each client, and records when it came and whose it was."""

    def do_POST(self):  # noqa: N802
        client = self.headers["X-Forwarded-For"]
        self.read_body()
        is_first = client not in [other for other, _ in self.server.seen]
        self.server.seen.append((client, time.monotonic()))
        if is_first:
            self.answer(503, ("Retry-After", "2"))
        else:
            self.answer(201)


@pytest.fixture
def recorder():
    with serving(Recorder, seen=[]) as server:
        yield server


def of_recorder(load, recorder, files, *words):
    done = load("-q", "--expect", "201,503", *words, recorder.url, files)
    assert (done.status, done.errors) == (0, "")
    return collections.Counter(client for client, _ in recorder.seen)


def test_connections_of_a_closed_loop_are_clients(load, recorder, files):
    counts = of_recorder(load, recorder, files, "--clients", 3, "-c", 6, "-n", 60)
    assert set(counts) == {f"198.18.0.{n}" for n in range(3)} and sum(counts.values()) == 60


def test_requests_of_an_open_loop_are_of_any_client(load, recorder, files):
    counts = of_recorder(load, recorder, files, "--clients", 300, "-c", 1, "--rate", 10000, "-n",
                         300)
    assert len(counts) > 150 and {client.rsplit(".", 1)[0] for client in counts} == {
        "198.18.0", "198.18.1"}


def test_a_refused_connection_heeds_retry_after(load, recorder, files):
    of_recorder(load, recorder, files, "--clients", 1, "-c", 1, "-n", 4, "--heed-retry-after")
    times = [at for _, at in recorder.seen]
    assert times[1] - times[0] >= 2
