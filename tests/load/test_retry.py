"""--retry: failed uploads are repeated with their keys; what is lost, late and doubled."""

import contextlib
import csv
import re
import threading

import pytest

import pictures
from darkroom import Daemon, eventually
from generator import Handler, serving
from nodes import free_port


class FirstFails(Handler):
    """Closes the connection of each first upload, then answers with a new Location each time, or
    with one for each key."""

    def do_POST(self):  # noqa: N802
        key = self.headers["Idempotency-Key"]
        self.read_body()
        with self.server.lock:
            is_first = key not in self.server.seen
            self.server.answers += 1
            self.server.seen.setdefault(key, self.server.answers)
            number = self.server.seen[key] if self.server.knows_keys else self.server.answers
        if is_first:
            self.close_connection = True
            return
        self.answer(201, ("Location", f"/images/{number}"))


@pytest.fixture
def server():
    with serving(FirstFails, lock=threading.Lock(), seen={}, answers=0, knows_keys=True) as made:
        yield made


@pytest.mark.parametrize("words", [(), ("--form",)])
def test_a_failed_upload_is_repeated_with_its_key(load, files, server, words):
    status, report = load.json("-n", 30, "--retry", "30s", *words, server.url, files)
    assert status == 0 and report["ok"]
    assert report["retries"] == {"repeated": 30, "late": 30, "doubled": 0, "lost": 0}
    assert report["statuses"] == {"201": 30} and not any(report["errors"].values())
    assert len(server.seen) == 30 and server.answers == 90  # failed, late, once more
    assert all(re.fullmatch(r'"[0-9a-f]{16}-\d+"', key) for key in server.seen)


def test_a_second_image_of_a_key_is_doubled(load, files, server):
    server.knows_keys = False
    status, report = load.json("-n", 10, "--retry", "30s", server.url, files)
    assert status == 1 and not report["ok"]
    assert report["retries"] == {"repeated": 10, "late": 10, "doubled": 10, "lost": 0}
    assert report["first_problem"].endswith(": stored twice")


@pytest.mark.parametrize("kind, counted", [("error", "statuses"), ("nothing", "errors")])
def test_an_upload_without_a_right_answer_is_lost(serve, load, files, kind, counted):
    status, report = load.json("-n", 4, "--retry", "250ms", serve("-a", kind), files)
    assert status == 1
    assert report["retries"]["lost"] == 4 == sum(report[counted].values())
    assert report["retries"]["repeated"] >= 4 and report["retries"]["late"] == 0


def test_an_upload_that_succeeds_is_sent_once(serve, load, files):
    done = load("-n", 20, "--retry", "1s", serve("-a", "plain"), files)
    assert done.status == 0
    assert "retries            0 repetitions, 0 uploads answered late, 0 doubled, 0 lost" in \
        done.output


def test_retry_excludes_verify(load, files):
    done = load("--retry", "1s", "--verify", "http://127.0.0.1:1/", files)
    assert done.status == 2 and "--retry: excludes --verify" in done.errors


def test_no_upload_is_lost_or_doubled_by_kills_of_the_daemon(load, tmp_path):
    """A run through two kills. The store then has one image for each upload."""
    folder = tmp_path / "pictures"
    folder.mkdir()
    for i in range(4):
        (folder / f"{i}.jpg").write_bytes(pictures.photo_jpeg(200, 150, i + 1))
    port, store, rows = free_port(), tmp_path / "store", tmp_path / "rows.csv"
    daemon = Daemon(store, listen=f"127.0.0.1:{port}")
    found = []
    run = threading.Thread(target=lambda: found.append(load.json(
        "-n", 100, "-c", 8, "--retry", "200s", "--csv", rows, f"http://127.0.0.1:{port}/images",
        folder, timeout=200)))
    run.start()
    with contextlib.ExitStack() as stack:
        stack.callback(run.join)
        for goal in (15, 50):
            assert eventually(lambda: len(daemon.stored()) >= goal, 80)
            daemon.kill()
            daemon = Daemon(store, listen=f"127.0.0.1:{port}")
    (status, report), = found
    assert status == 0 and report["statuses"] == {"201": 100}, report
    retries = report["retries"]
    assert retries["lost"] == retries["doubled"] == 0 and retries["repeated"] > 0, retries
    with rows.open(newline="") as file:
        assert sorted(row["id"] for row in csv.DictReader(file)) == daemon.stored()
    assert len(daemon.stored()) == 100
    daemon.stop()
