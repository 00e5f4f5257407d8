"""Limits: too many or too large bodies, parts, images and connections, and exhausted memory and
space. (The client checks the members of every problem document.)"""

import json
import os
import re
import subprocess
import threading
import time

import pytest

import pictures
from client import Closed, chunked, form_files
from darkroom import IS_SANITIZED, PER_CONNECTION, TooLate, attempts, eventually, slow
from uploads import in_parallel

SMALL = pictures.photo_jpeg(320, 240, 2)
JPEG = ("Content-Type", "image/jpeg")


@pytest.mark.also_with("thread-per-connection")
def test_rest_of_a_body_that_is_a_bit_too_large_is_discarded(start):
    """The rest of the body is read and discarded, and the connection stays open."""
    daemon = start("limits.body_bytes=100K")
    body = b"\xff\xd8\xff" + b"x" * 300000
    for data, headers in ((body, ()), (chunked(body), [("Transfer-Encoding", "chunked")])):
        with daemon.client() as c:
            c.send(c.head("POST", "/images", body, [JPEG, *headers]) + data)
            answer = c.answer()
            assert (answer.status, answer.slug) == (413, "body-too-large")
            document = answer.json()
            assert (document["limit"], document["configured"]) == ("limits.body_bytes", 102400)
            assert document["actual"] == len(body) if not headers else document["actual"] > 102400
            assert not answer.closes and c.is_open()
    assert daemon.upload(SMALL).status == 201


@pytest.mark.also_with("thread-per-connection")
@pytest.mark.parametrize("as_chunks", [False, True])
def test_large_rest_of_a_body_closes_the_connection(start, as_chunks):
    """A client that is still sending can read the response before the connection ends."""
    daemon = start("limits.body_bytes=100K")
    body = b"\xff\xd8\xff" + b"x" * (8 << 20)
    with daemon.client() as c:
        headers = [("Transfer-Encoding", "chunked")] if as_chunks else []
        c.send(c.head("POST", "/images", body, [JPEG, *headers]))
        c.send_some(chunked(body, 60000) if as_chunks else body)
        answer = c.answer()
        assert (answer.status, answer.slug) == (413, "body-too-large")
        assert answer.closes or as_chunks, (
            "the rest of a chunked body is not known when the response starts")
        assert c.is_closed()


def test_body_too_large_is_refused_instead_of_100(start):
    daemon = start("limits.body_bytes=100K")
    with daemon.client() as c:
        c.send(c.head("POST", "/images", None,
                      [JPEG, ("Content-Length", "999999999999"), ("Expect", "100-continue")]))
        answer = c.answer()
        assert (answer.status, answer.json()["actual"]) == (413, 999999999999) and not c.interim


def test_curl_reads_413(start, tmp_path):
    daemon = start("limits.body_bytes=100K")
    (tmp_path / "large").write_bytes(b"\xff\xd8\xff" + b"x" * (20 << 20))
    done = subprocess.run(["curl", "-sS", "-H", "Expect:", "-F", f"f=@{tmp_path}/large",
                           daemon.url + "/images"], capture_output=True, timeout=slow(60))
    assert json.loads(done.stdout)["limit"] == "limits.body_bytes", done


def test_body_of_exactly_the_limit_is_accepted(start):
    daemon = start(f"limits.body_bytes={len(SMALL)}")
    assert daemon.upload(SMALL).status == 201
    assert daemon.upload(SMALL + b"\0").status == 413


def test_too_many_parts_are_refused(start):
    daemon = start("limits.parts=3")
    assert daemon.upload(*reversed(form_files(SMALL, SMALL, SMALL))).status == 201
    answer = daemon.upload(*reversed(form_files(SMALL, SMALL, SMALL, SMALL)))
    assert (answer.status, answer.slug) == (413, "too-many-parts")
    assert (answer.json()["limit"], answer.json()["configured"]) == ("limits.parts", 3)
    assert answer.json()["actual"] > 3


# ---- 429, 503, 500, 507 ----

@pytest.mark.every_policy
def test_too_many_images_of_a_client_are_refused(start):
    daemon = start("limits.images_per_client=1")
    with daemon.client() as c:
        kind, body = form_files(SMALL, SMALL)
        answer = c.request("POST", "/images", body, [("Content-Type", kind)])
        assert (answer.status, answer.slug) == (429, "too-many-requests")
        assert answer["retry-after"] == "1"
        document = answer.json()
        assert (document["limit"], document["configured"], document["actual"]) == (
            "limits.images_per_client", 1, 2)
        for _ in range(3):
            assert c.request("POST", "/images", SMALL, [JPEG]).status == 201
        assert c.is_open()


@pytest.mark.every_policy
def test_too_many_images_in_flight_are_refused(start):
    daemon = start("limits.images_in_flight=2")
    with daemon.client() as c:
        kind, body = form_files(SMALL, SMALL, SMALL)
        answer = c.request("POST", "/images", body, [("Content-Type", kind)])
        assert (answer.status, answer.slug, answer["retry-after"]) == (503, "overloaded", "1")
        assert (answer.json()["limit"], answer.json()["configured"]) == (
            "limits.images_in_flight", 2)
        for _ in range(3):
            kind, body = form_files(SMALL, SMALL)
            assert c.request("POST", "/images", body, [("Content-Type", kind)]).status == 201


def begun_upload(daemon, body):
    """Returns a client whose upload lacks its last byte."""
    c = daemon.client()
    c.send(c.head("POST", "/images", body, [JPEG]) + body[:-1])
    assert eventually(lambda: daemon.has_read(c))
    return c


@pytest.mark.also_with("thread-per-connection")
def test_too_many_connections_are_refused(start):
    daemon = start("limits.connections=3")
    kept = [begun_upload(daemon, SMALL) for _ in range(3)]

    def rejected():
        metrics = kept[0].request("GET", "/metrics").body.decode()
        line = re.search(r"(?m)^darkroom_http_connections_rejected_total (\d+)$", metrics)
        return kept[0].request("GET", "/stats").json()["http"]["connections_rejected"], int(line[1])

    with daemon.client() as c:
        answer = c.answer()
        assert (answer.status, answer.slug, answer["retry-after"]) == (503, "overloaded", "1")
        assert answer.closes
        assert (answer.json()["limit"], answer.json()["configured"]) == ("limits.connections", 3)
        assert answer.json()["actual"] == 4
        assert c.is_closed()
    for c in kept:
        c.send(SMALL[-1:])
        assert c.answer().status == 201
    assert rejected() == (1, 1)
    kept.pop().close()

    def is_served():
        try:
            return daemon.get("/healthz").status == 200
        except (Closed, ConnectionResetError, BrokenPipeError):
            return False
    assert eventually(is_served)
    for c in kept:
        c.close()


@pytest.mark.every_policy
def test_bodies_stay_within_their_memory(start):
    """Bodies in progress stay within their share of the memory. If all of them wait for more, some
    are refused, so that the others can continue."""
    daemon = start("limits.memory_budget=32M", "limits.body_bytes=16M", "limits.body_timeout=2s",
                   "limits.body_rate=1")
    body, most = SMALL + bytes(12 << 20), []

    def upload(_):
        with daemon.client() as c:
            c.send_some(c.head("POST", "/images", body, [JPEG]))
            c.send_some(body)
            return c.answer()

    def watch():
        while not over.wait(0.02):
            most.append(json.loads(daemon.get("/stats").body)["memory"]["reserved_body_bytes"])
    over = threading.Event()
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        answers = in_parallel(6, upload)  # 72 MB of bodies for 16 MB of memory
    finally:
        over.set()
        watcher.join()
    refused = [a for a in answers if a.status != 201]
    assert len(refused) < 6
    assert {(a.status, a.slug) for a in refused} <= {(503, "overloaded"), (408, "timeout")}
    for answer in refused:
        if answer.status == 503:
            assert answer["retry-after"] == "1"
            assert "limits.memory_budget" in answer.json()["detail"]
    assert 4 << 20 < max(most) <= 16 << 20
    assert daemon.resident_bytes() < (200 << 20) * (4 if IS_SANITIZED else 1)


@pytest.mark.every_policy
def test_chunked_body_that_can_never_fit_is_refused_for_good_reason(start):
    """A growing body needs its memory twice. With 503 the client would retry forever."""
    daemon = start("limits.memory_budget=32M", "limits.body_bytes=16M")
    for size, status in ((9 << 20, 201), (15 << 20, 413)):
        with daemon.client() as c:
            c.send(c.head("POST", "/images", None, [JPEG, ("Transfer-Encoding", "chunked")]))
            c.send_some(chunked(SMALL + bytes(size), 60000))
            answer = c.answer()
            assert answer.status == status, answer
    assert (answer.slug, answer["retry-after"]) == ("memory", None)
    document = answer.json()
    assert document["limit"] == "limits.memory_budget"
    assert document["actual"] > document["configured"] == 32 << 20
    assert daemon.upload(SMALL + bytes(15 << 20)).status == 201, "its length is known"


def test_chunked_body_may_fill_the_room_that_is_left_exactly(start):
    """Bodies get 8 MiB and 1000 bytes. The last growth keeps the 4 MiB that it copies, so it may be
    to 4 MiB and 1000 bytes, which are needed at once."""
    most = (8 << 20) + 1000
    daemon = start(f"limits.memory_budget={2 * most}", "limits.body_bytes=8M")
    for rest, status in ((1000, 201), (1001, 413)):
        with daemon.client() as c:
            c.send(c.head("POST", "/images", None, [JPEG, ("Transfer-Encoding", "chunked")]))
            c.send(chunked(SMALL + bytes((4 << 20) - len(SMALL)), 60000).removesuffix(b"0\r\n\r\n"))
            assert eventually(lambda: daemon.has_read(c))
            c.send(chunked(bytes(rest)))
            assert c.answer().status == status, rest


def test_last_growth_of_a_chunked_body_takes_the_room_that_is_left(start):
    """Bodies get 16 MiB. Twice the 4 MiB would leave no room for another growth."""
    daemon = start("limits.memory_budget=32M", "limits.body_bytes=16M")
    most = (16 << 20) - (4 << 20)
    for size, status in ((most, 201), (most + 1, 413)):
        with daemon.client() as c:
            c.send(c.head("POST", "/images", None, [JPEG, ("Transfer-Encoding", "chunked")]))
            c.send_some(chunked(SMALL + bytes(size - len(SMALL)), 60000))
            assert c.answer().status == status, size


@pytest.mark.every_policy
@attempts(10)
def test_slow_body_releases_memory_that_others_wait_for(start):
    """A slow body is refused as soon as another one needs its memory, though it came fast at first.
    """
    daemon = start("limits.memory_budget=32M", "limits.body_bytes=16M", "limits.body_timeout=500ms",
                   "limits.body_rate=1")
    slow_one = daemon.client()
    slow_one.send(slow_one.head("POST", "/images", None, [JPEG, ("Content-Length", str(14 << 20))])
                  + SMALL + bytes(5 << 20))
    over, sent = threading.Event(), [time.monotonic()]

    def trickle():
        while not over.wait(0.05) and slow_one.is_silent():
            slow_one.send_some(b"x" * 1000)
            sent.append(time.monotonic())
    thread = threading.Thread(target=trickle)
    thread.start()
    try:
        # Wait for longer than the timeout.
        assert eventually(lambda: not slow_one.is_silent() or sent[-1] - sent[0] > 0.8)
        longest_s = max(b - a for a, b in zip(sent, sent[1:]))
        if not slow_one.is_silent() and longest_s > 0.4:
            raise TooLate("the client was below the rate")
        assert slow_one.is_silent(), "a slow client above the rate got a response"
        # The slow one holds 8 MB of 14.
        assert eventually(lambda: daemon.upload(SMALL + bytes(9 << 20)).status == 201)
    finally:
        over.set()
        thread.join()
    assert slow_one.answer().status == 408
    slow_one.close()


@pytest.mark.every_policy
def test_failing_store_is_reported(start):
    """A directory of the store disappears. Uploads get a response, and everything else works."""
    daemon = start()
    image = daemon.image(SMALL)
    (daemon.store / ".incoming").rmdir()
    (daemon.store / ".incoming").write_text("")
    answer = daemon.upload(SMALL)
    assert (answer.status, answer.slug) == (503, "storage-missing"), answer
    assert daemon.get(image["url"]).status == 200 and daemon.get("/healthz").status == 200


def test_full_store_is_reported(start, small_disk):
    disk = small_disk("size=256k")
    daemon = start("limits.free_bytes=0", store=disk / "store")
    answers = [daemon.upload(pictures.photo_jpeg(800, 600, 3))]
    while answers[-1].status == 201:
        answers.append(daemon.upload(pictures.photo_jpeg(800, 600, 3)))
    assert (answers[-1].status, answers[-1].slug) == (507, "storage-full")
    assert not daemon.leftovers(), "unfinished files still use space"
    if len(answers) > 1:
        url = answers[0].json()["images"][0]["url"]
        with daemon.client() as c:
            assert c.request("GET", url).status == 200
            assert c.request("DELETE", url).status == 204
        assert daemon.upload(pictures.photo_jpeg(800, 600, 3)).status == 201
    daemon.stop()


def test_images_leave_a_part_of_the_disk_free(start, small_disk):
    """Images are stored until limits.free_bytes are left, then refused before their body is read.
    Space that others release counts as well."""
    disk = small_disk("size=4m")
    floor = 3 << 20
    picture = pictures.photo_jpeg(800, 600, 3)

    def free_bytes():
        return os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize

    (disk / "other").write_bytes(bytes(512 << 10))
    daemon = start(f"limits.free_bytes={floor}", store=disk / "store")
    answers = [daemon.upload(picture)]
    while answers[-1].status == 201:
        assert free_bytes() >= floor
        answers.append(daemon.upload(picture))
    assert len(answers) > 1
    for answer in (answers[-1], daemon.upload(picture)):
        assert (answer.status, answer.slug) == (507, "storage-full")
        document = answer.json()
        assert (document["limit"], document["configured"]) == ("limits.free_bytes", floor)
        assert document["actual"] == free_bytes() >= floor
    assert not daemon.leftovers()
    (disk / "more").write_bytes(bytes(256 << 10))
    assert free_bytes() < floor and daemon.upload(picture).status == 507
    with daemon.client() as c:
        c.send(c.head("POST", "/images", None, [JPEG, ("Content-Length", "1000000"),
                                                ("Expect", "100-continue")]))
        assert c.answer().status == 507 and not c.interim
    (disk / "other").unlink()
    (disk / "more").unlink()
    assert eventually(lambda: daemon.upload(picture).status == 201)
    daemon.stop()


@pytest.mark.every_policy
@attempts(10)
def test_wait_timeout_gets_503(start):
    daemon = start("server.wait_timeout=1ms",
                   "variant.medium.operations=scale 6000x6000 inside, blur 60")
    answer = daemon.upload(pictures.photo_jpeg(3000, 2200, 1),
                           headers=[("Prefer", "respond-async")])
    assert answer.status == 202
    with daemon.client() as c:
        answer = c.request("GET", answer["location"] + "/medium.jpg")
        if PER_CONNECTION:  # its thread processes the whole image before it responds
            assert answer.status == 200
        elif answer.status == 200:
            raise TooLate("it was stored before the request")
        else:
            assert (answer.status, answer.slug, answer["retry-after"]) == (503, "not-ready", "1")
        assert c.is_open()


def test_size_of_a_chunk_is_read_whole_before_it_is_too_large(daemon):
    """A size that may still prove malformed gets the same answer in one piece and in several."""
    with daemon.client() as c:
        c.send(c.head("POST", "/images", None, [JPEG, ("Transfer-Encoding", "chunked")]))
        c.send(b"dddddddddddd")
        assert eventually(lambda: daemon.has_read(c))
        assert c.is_silent()
        c.send(b"x\r\n")
        answer = c.answer()
        assert (answer.status, answer.slug) == (400, "malformed-request")
