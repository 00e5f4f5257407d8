"""Which answers are right, which are wrong, what darkroom-load counts, and its exit status."""

import json
import os
import re
import signal

import pytest

from generator import ROOT, Handler, Watched, serving

SAMPLES = ROOT / "data" / "sample"


@pytest.mark.parametrize("kind, status", [
    ("plain", "201"), ("chunked", "200"), ("until-close", "200"), ("close", "201")])
def test_answers_of_every_framing(serve, load, files, kind, status):
    code, report = load.json("-n", 40, serve("-a", kind), files)
    assert code == 0 and report["ok"]
    assert report["statuses"] == {status: 40} and report["responses"] == 40
    assert report["input_bytes"] == 4 * sum(range(1000, 1010))
    assert report["connections_opened"] == (40 if "close" in kind else 4)


def test_get_sends_no_picture(load):
    """Each request is for the path of the URL, with the fields that were given."""
    seen = []

    class Getter(Handler):
        def do_GET(self):
            seen.append((self.path, self.headers["X-Field"], self.headers["Content-Length"]))
            self.answer(200 if self.path == "/images?b" else 404)

    with serving(Getter) as server:
        code, report = load.json("--get", "-n", 6, "-c", 2, "-H", "X-Field: x", "--clients", 2,
                                 "--requests-per-connection", 1, server.url + "?b")
        assert code == 0 and report["statuses"] == {"200": 6} and report["input_bytes"] == 0
        assert report["connections_opened"] == 6 and seen == [("/images?b", "x", None)] * 6
        code, report = load.json("--get", "-n", 1, server.url + "/x.truncated.jpg")
        assert code == 1 and report["unexpected"] == 1


@pytest.mark.parametrize("words", [["--get"], ["--get", "--form"], ["--get", "--verify"],
                                   ["--get", "--retry", "1s"]])
def test_get_excludes_uploads(load, words):
    paths = [SAMPLES] if words == ["--get"] else []
    done = load(*words, "http://127.0.0.1:1/", *paths)
    assert done.status == 2 and "--get" in done.errors


@pytest.mark.parametrize("kind, error", [
    ("short", "short"), ("nothing", "reset"), ("garbage", "parse"), ("silent", "timeout")])
def test_errors_by_kind(serve, load, files, kind, error):
    timeout = "100ms" if kind == "silent" else "60s"
    code, report = load.json("-n", 8, "--timeout", timeout, serve("-a", kind), files)
    assert code == 1 and not report["ok"]
    assert {name: count for name, count in report["errors"].items() if count} == {error: 8}
    assert report["responses"] == 0 and error in report["first_problem"]


EXPONENT = re.compile(r"\d[eE][+-]?\d")


def test_every_number_has_a_name_and_no_exponent(serve, load, files, tmp_path):
    """In the report for people, in JSON, in CSV, and while it runs."""
    url = serve("-d", 20)
    records = tmp_path / "records.csv"
    done = load("-n", 60, "--rate", 100, "--csv", records, url, files)
    for line in filter(None, done.output.splitlines()):
        assert re.match(r"[a-zA-Z ]", line), line  # begins with its name
    lines = records.read_text().splitlines()
    assert len({line.count(",") for line in lines}) == 1 and len(lines) == 61
    assert all(name.strip() for name in lines[0].split(","))
    run = Watched("-n", 60, "-c", 1, url, files)
    status, output = run.finish()
    assert status == 0
    as_json = load("--json", "-n", 60, url, files).output
    as_json = re.sub(r'"version":"[^"]*"', "", as_json)  # its commit may look like a number
    for text in (done.output, output, as_json, run.shown, *lines):
        assert not EXPONENT.search(text), text


def test_malformed_answers_are_explained(serve, load, files):
    _, report = load.json("-n", 1, serve("-a", "garbage"), files)
    assert report["first_problem"].endswith(": parse: Expected HTTP/")


def test_a_server_that_ends(serve, files):
    """Refused connections are errors, and the run ends."""
    run = Watched("--json", "-c", 2, "-n", 120, serve("-d", 50), files)
    run.wait_for_answers()
    os.kill(serve.pid, signal.SIGTERM)
    status, output = run.finish()
    report = json.loads(output)
    assert status == 1 and report["errors"]["connect"] > 0 and not report["interrupted"]
    assert report["responses"] + sum(report["errors"].values()) == 120


def test_no_server(load, files):
    done = load("http://127.0.0.1:1/", files)
    assert done.status == 1 and "Connection refused" in done.errors and done.output == ""


def test_no_such_process(serve, load, files):
    """A wrong process ID must not look like a server that costs nothing."""
    done = load("--server-pid", 2**22 + 1, serve(), files)  # above the kernel's highest
    assert done.status == 1 and "--server-pid: No such process" in done.errors and done.output == ""


def test_unexpected_statuses(serve, load, files):
    url = serve("-a", "error")
    code, report = load.json(url, files)
    assert code == 1 and report["unexpected"] == 10 and report["statuses"] == {"500": 10}
    assert report["input_bytes"] == 0
    code, report = load.json("--expect", "2xx,500", url, files)
    assert code == 0 and report["unexpected"] == 0


def test_a_quiet_run_says_why_it_failed(serve, load, files):
    url = serve("-a", "error")
    done = load("--quiet", url, files)
    assert done.status == 1 and done.output == ""
    assert "0 requests without an answer, 10 with an unexpected status" in done.errors
    assert done.errors.endswith(": status 500\n")
    done = load("--quiet", "--expect", "500", url, files)
    assert (done.status, done.output, done.errors) == (0, "", "")


@pytest.mark.parametrize("kind", ["no-picture", "elsewhere", "no-json"])
def test_verify_finds_wrong_variants(serve, load, files, kind):
    code, report = load.json("--verify", serve("-a", kind), files)
    assert code == 1 and report["unexpected"] == 0
    assert report["variants_right"] == 0 and report["variants_wrong"] == 10


def test_interruption_ends_with_a_report(serve, files):
    run = Watched("-c", 2, "-d", 60, serve("-d", 100), files)
    run.wait_for_answers()
    run.process.send_signal(signal.SIGINT)
    status, output = run.finish()
    assert status == 1 and "201: " in output
    assert re.search("interrupted        [012] requests were in flight", output)


# ---- against the daemon ----


@pytest.mark.parametrize("options, status", [
    ((), "201"), (("-H", "Prefer: respond-async"), "202"), (("--form",), "201")])
def test_verify_fetches_every_variant(daemon, load, options, status):
    code, report = load.json("--verify", "-n", 12, *options, daemon.url, SAMPLES)
    assert code == 0, report
    assert report["statuses"] == {status: 12}
    assert report["variants_right"] == 36 and report["variants_wrong"] == 0
    assert len(daemon.stored()) == 12


def test_broken_files_are_recognised_by_their_names(daemon, load, tmp_path):
    lake = (SAMPLES / "lake.jpg").read_bytes()
    (tmp_path / "a.truncated.jpg").write_bytes(lake[:20000])
    (tmp_path / "b.notjpeg.jpg").write_bytes(b"GIF89a" + b"x" * 100)
    (tmp_path / "c.empty.jpg").write_bytes(b"")
    (tmp_path / "d.jpg").write_bytes(lake)
    code, report = load.json(daemon.url, tmp_path)
    assert code == 0 and report["statuses"] == {"201": 1, "400": 1, "415": 1, "422": 1}
    (tmp_path / "e.jpg").write_bytes(lake[:20000])
    code, report = load.json(daemon.url, tmp_path)
    assert code == 1 and report["unexpected"] == 1
    assert "e.jpg: status 422" in report["first_problem"]


def test_cpu_time_and_memory_of_the_server(daemon, load):
    before = daemon.cpu_seconds()
    code, report = load.json("-n", 30, daemon.url, SAMPLES)
    used = daemon.cpu_seconds() - before
    assert code == 0 and report["server"]["pid"] == daemon.pid
    assert 0.5 * used < report["server"]["cpu_s"] <= used
    assert report["server"]["peak_rss_bytes"] >= daemon.resident_bytes() * 0.5
