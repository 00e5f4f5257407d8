"""Clients take turns at decoding: a client with many expensive images does not stop another one."""

import contextlib
import threading

import pytest

import pictures
from client import form_files
from darkroom import PER_CONNECTION, POLICY, eventually, load, slow
from uploads import JPEG

OTHER = "127.0.0.2"
MANY = 40
# A thread for each connection, where threads serve connections.
THREADS = "scheduler.threads=24" if PER_CONNECTION else "scheduler.threads=8"
SMALL = pictures.photo_jpeg(320, 240, 2)


def in_flight(daemon):
    return daemon.get("/stats").json()["images"]["in_flight"]


def send_many(daemon, image):
    """Sends a form of many images. Returns its client when they are in flight."""
    kind, body = form_files(*[image] * MANY)
    c = daemon.client(timeout=slow(300))
    c.send(c.head("POST", "/images", body, [("Content-Type", kind)]) + body)
    assert eventually(lambda: in_flight(daemon) >= MANY * 3 // 4)
    return c


def upload_from(daemon, source, data):
    """Returns the answer, and how many images were in flight when it came."""
    with daemon.client(source=source, timeout=slow(300)) as c:
        answer = c.request("POST", "/images", data, [JPEG])
        return answer, in_flight(daemon)


@pytest.mark.every_policy
@pytest.mark.skipif(PER_CONNECTION, reason="its threads serve connections, in any order")
def test_another_client_is_served_within_a_few_images(start):
    daemon = start("scheduler.threads=2")
    large = pictures.photo_jpeg(1600, 1200, 1, progressive=True)
    c = send_many(daemon, large)
    answer, left = upload_from(daemon, OTHER, SMALL)
    assert answer.status == 201
    assert left >= MANY // 2, "most images of the first client went before"
    answer = c.answer("POST")
    assert answer.status == 201 and len(answer.json()["images"]) == MANY
    assert eventually(lambda: in_flight(daemon) == 0)


def decoded(daemon):
    (edge,) = [e for e in daemon.get("/stats").json()["edges"]
               if (e["from"], e["to"]) == ("jpeg_decode", "scale")]
    return edge["events"]


def visited(daemon):
    """Returns how often an image has come to jpeg_decode."""
    return next(s["events"] for s in daemon.get("/stats").json()["stages"]
                if s["name"] == "jpeg_decode")


@pytest.mark.parametrize("fair", ["yes", "no"])
def test_fairness_can_be_turned_off(start, fair):
    """Without it, an image of any client is decoded behind all that came before, and comes to
    jpeg_decode once: the order is the policy's with any number of clients."""
    daemon = start("scheduler.threads=2", "scheduler.discipline=fcfs",
                   f"experiment.fair_clients={fair}", policy="drain")
    c = send_many(daemon, pictures.photo_jpeg(1600, 1200, 1, progressive=True))
    with contextlib.ExitStack() as stack:
        others = [stack.enter_context(daemon.client(source=f"127.0.0.{n}", timeout=slow(300)))
                  for n in range(2, 22)]
        for other in others:
            other.send(other.head("POST", "/images", SMALL, [JPEG]) + SMALL)
        assert others[0].answer("POST").status == 201
        assert (decoded(daemon) < MANY - 4) == (fair == "yes")
        assert {other.answer("POST").status for other in others[1:]} == {201}
    assert c.answer("POST").status == 201
    assert eventually(lambda: in_flight(daemon) == 0)
    assert (visited(daemon) == MANY + len(others)) == (fair == "no")


def test_another_client_waits_for_few_images_that_need_memory(start):
    """One image of the first client at a time has memory, so that the others wait for it."""
    daemon = start("scheduler.threads=2", "limits.memory_budget=48M", "limits.body_bytes=24M")
    c = send_many(daemon, pictures.photo_jpeg(1600, 1200, 1, progressive=True))
    answer, left = upload_from(daemon, OTHER, SMALL)
    assert answer.status == 201 and left >= MANY // 2
    assert c.answer("POST").status == 201
    assert eventually(lambda: in_flight(daemon) == 0)


@contextlib.contextmanager
def uploads(daemon, count, image):
    """Uploads the image over and over on this many connections. Yields the list of statuses."""
    statuses, stop = [], threading.Event()

    def upload():
        with daemon.client(timeout=slow(300)) as c:
            while not stop.is_set():
                statuses.append(c.request("POST", "/images", image, [JPEG]).status)
    threads = [threading.Thread(target=upload) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield statuses
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def waits(daemon):
    return daemon.get("/stats").json()["memory"]["waited"]


@pytest.mark.also_with("seda", "thread-per-connection")
@pytest.mark.parametrize("source, most", [(None, 500), (OTHER, 100)],
                         ids=["same client", "another client"])
def test_image_that_needs_much_memory_is_not_starved_by_others(start, source, most):
    """The line for memory is not overtaken, although the others would fit. Of the same client, smaller
    images are decoded first."""
    daemon = start(THREADS, "limits.memory_budget=48M", "limits.body_bytes=24M")
    huge = pictures.photo_jpeg(2400, 1600, 2, progressive=True)
    with uploads(daemon, 12, pictures.photo_jpeg(1200, 900, 1, progressive=True)) as statuses:
        assert eventually(lambda: waits(daemon) > 0, slow(60))
        for _ in range(load(3)):
            before = len(statuses)
            assert upload_from(daemon, source, huge)[0].status == 201
            assert len(statuses) - before < most
    assert set(statuses) == {201}


@pytest.mark.also_with("seda", "thread-per-connection")
def test_small_images_are_not_starved_by_those_that_need_much_memory(start):
    daemon = start(THREADS, "limits.memory_budget=48M", "limits.body_bytes=24M")
    huge = pictures.photo_jpeg(2400, 1600, 2, progressive=True)
    with uploads(daemon, 6, huge) as statuses:
        assert eventually(lambda: waits(daemon) > 0, slow(60))
        for _ in range(load(5)):
            before = len(statuses)
            assert upload_from(daemon, OTHER, SMALL)[0].status == 201
            assert len(statuses) - before < 20
    assert set(statuses) == {201}
