"""Enqueue predicates: a stage has enough, and the daemon degrades, refuses or waits before it reads a
body. Events wait for the stage disk_write, because its only thread writes to a slow disk."""

import pytest

from client import form_files
from darkroom import TooLate, attempts, eventually, run
from test_overload import SMALL, begin, finish, full, stats
from uploads import JPEG, TINY

ONE_WRITER = "stage.disk_write.threads=1"


def stage(daemon, name):
    return next(s for s in stats(daemon)["stages"] if s["name"] == name)


def is_writing(daemon):
    """Returns whether the thread of disk_write has taken all that was sent to it."""
    figures = stats(daemon)
    sent = sum(edge["events"] for edge in figures["edges"] if edge["to"] == "disk_write")
    return sent > 0 and next(s for s in figures["stages"] if s["name"] == "disk_write")["queued"] == 0


def filled(daemon, disk):
    """Returns clients of two images: one is being written, and one waits for the disk. A visit would
    take both if the second came before it began."""
    (first,) = full(daemon, disk, 1, 2000)
    assert eventually(lambda: is_writing(daemon))
    second = daemon.client()
    second.send(second.head("POST", "/images", SMALL, [JPEG]) + SMALL)
    assert eventually(lambda: stage(daemon, "disk_write")["queued"] == 1)
    return [first, second]


@pytest.mark.also_with("seda")
def test_refusal_names_the_stage(start, disk):
    daemon = start(ONE_WRITER, "stage.disk_write.queue_max=1", environ=disk.environ)
    clients = filled(daemon, disk)
    with begin(daemon, 1 << 20) as c:
        answer = c.answer()
        assert (answer.status, answer.slug) == (503, "overloaded")
        assert answer.json()["detail"] == ("stage disk_write has enough: 1 event in its queue; "
                                           "stage.disk_write.queue_max and rate_max limit it")
        assert 1 <= int(answer["retry-after"]) <= 60
    assert stage(daemon, "disk_write")["refusals"] == 1
    assert b'darkroom_stage_refusals_total{stage="disk_write"} 1' in daemon.get("/metrics").body
    finish(disk, clients)
    assert daemon.upload(SMALL).status == 201


def test_upload_waits_until_the_stage_accepts(start, disk):
    daemon = start(ONE_WRITER, "stage.disk_write.queue_max=1", "overload.when_full=wait",
                   environ=disk.environ)
    clients = filled(daemon, disk)
    waiting = begin(daemon, len(SMALL))
    assert eventually(lambda: stats(daemon)["overload"]["waiting"] == 1)
    waiting.send(SMALL)
    finish(disk, clients + [waiting])
    assert stats(daemon)["overload"]["waited"] == 1


def test_degradation_comes_before_refusal(start, disk):
    daemon = start(ONE_WRITER, "stage.disk_write.queue_max=1", "overload.degrade=quality 20",
                   environ=disk.environ)
    clients = filled(daemon, disk)
    third = daemon.client()
    third.send(third.head("POST", "/images", SMALL, [JPEG]) + SMALL)
    assert eventually(lambda: stats(daemon)["images"]["in_flight"] == 3)
    with begin(daemon, 1 << 20) as c:
        assert c.answer().status == 503
    disk.delay_all(0)
    assert third.answer().json()["images"][0]["degraded"] == ["quality 20"]
    third.close()
    finish(disk, clients)


@attempts(3)
def test_rate_of_a_stage(start):
    """A form of ten images takes the tokens of ten seconds."""
    daemon = start("stage.jpeg_decode.rate_max=1")
    kind, body = form_files(*[TINY] * 10)
    assert daemon.upload(body, kind).status == 201
    answer = daemon.upload(TINY)
    if answer.status == 201:
        raise TooLate("ten seconds have passed")
    assert answer.json()["detail"].startswith("stage jpeg_decode has enough: ")
    done = run("-o", f"server.root={daemon.store}", "ctl", "set", "stage.jpeg_decode.rate_max", "0")
    assert done.returncode == 0, done.stderr
    assert daemon.upload(TINY).status == 201


@pytest.mark.parametrize("setting, message", [
    ("stage.accept_read.queue_max=1", "queue_max=1: expected 0: events enter the graph"),
    ("stage.accept_read.rate_max=1", "rate_max=1: expected 0: events enter the graph"),
    ("stage.http_parse.queue_max=1", "called directly"),
])
def test_stages_without_a_queue_have_no_predicate(tmp_path, setting, message):
    done = run("-t", "-o", f"server.root={tmp_path}", "-o", setting)
    assert done.returncode != 0
    assert message in done.stderr
