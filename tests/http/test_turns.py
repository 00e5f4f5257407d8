"""Clients take turns at decoding: a client with many expensive images does not stop another one."""

import pytest

import pictures
from client import form_files
from darkroom import POLICY, eventually, slow
from uploads import JPEG

OTHER = "127.0.0.2"
MANY = 40
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
@pytest.mark.skipif(POLICY == "thread-per-connection", reason="its threads serve connections, in any order")
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


def test_another_client_waits_for_few_images_that_need_memory(start):
    """One image of the first client at a time has memory, so that the others wait for it."""
    daemon = start("scheduler.threads=2", "limits.memory_budget=48M", "limits.body_bytes=24M")
    c = send_many(daemon, pictures.photo_jpeg(1600, 1200, 1, progressive=True))
    answer, left = upload_from(daemon, OTHER, SMALL)
    assert answer.status == 201 and left >= MANY // 2
    assert c.answer("POST").status == 201
    assert eventually(lambda: in_flight(daemon) == 0)
