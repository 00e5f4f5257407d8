"""One client with few bytes cannot stop the service for others: announced lengths, silence, and
connections that ask for nothing."""

import json
import threading
import time

import pytest

import pictures
from client import Closed
from darkroom import eventually, slow
from uploads import TINY, in_parallel

SMALL = pictures.photo_jpeg(320, 240, 2)
JPEG = ("Content-Type", "image/jpeg")


def reserved(daemon):
    return json.loads(daemon.get("/stats").body)["memory"]["reserved_body_bytes"]


def announce(daemon, length, first=b"\xff"):
    """Returns a client that has sent the header of a body, and its first bytes."""
    c = daemon.client()
    c.send(c.head("POST", "/images", None, [JPEG, ("Content-Length", str(length))]) + first)
    return c


# ---- memory of bodies ----

@pytest.mark.every_policy
def test_announced_lengths_reserve_nothing(daemon):
    """16 bodies of 256 MB are announced. Uploads go on as if they were not."""
    silent = [announce(daemon, 256 << 20) for _ in range(16)]
    try:
        assert eventually(lambda: all(daemon.has_read(c) for c in silent))
        assert reserved(daemon) <= 16 * (64 << 10)
        for _ in range(5):
            started = time.monotonic()
            assert daemon.upload(SMALL).status == 201
            assert time.monotonic() - started < slow(5)
    finally:
        for c in silent:
            c.close()
    assert eventually(lambda: reserved(daemon) == 0)


@pytest.mark.also_with("seda")
def test_small_bodies_do_not_wait_for_large_ones(start):
    """Large bodies have all the memory that they may have, and one more waits. A small one does
    not wait for them."""
    daemon = start("limits.memory_budget=64M", "limits.body_bytes=32M")
    length = 28 << 20  # seven eighths of the bodies' half
    large = announce(daemon, length, SMALL + bytes(20 << 20))
    assert eventually(lambda: reserved(daemon) == length)
    late = announce(daemon, 2 << 20)
    assert eventually(lambda: json.loads(daemon.get("/stats").body)["memory"]["waited"] == 1)
    started = time.monotonic()
    assert daemon.upload(SMALL).status == 201
    assert time.monotonic() - started < slow(1.5), "it waited for a large one to be refused"
    for c in (large, late):
        c.close()


@pytest.mark.every_policy
def test_client_that_leaves_the_line_is_forgotten_at_once(start):
    """body_timeout would let it wait for ten minutes."""
    daemon = start("limits.memory_budget=64M", "limits.body_bytes=32M", "limits.body_timeout=600s",
                   "limits.body_rate=1")
    large = announce(daemon, 28 << 20, SMALL + bytes(20 << 20))
    assert eventually(lambda: reserved(daemon) == 28 << 20)
    left = [announce(daemon, 2 << 20) for _ in range(2)]
    memory = {}

    def have_waited():
        memory.update(json.loads(daemon.get("/stats").body))
        return memory["memory"]["waited"] == 2
    assert eventually(have_waited)
    assert memory["http"]["connections"] == 4
    left[0].close()
    left[1].reset()
    # This connection and the large one are left.
    assert eventually(
        lambda: json.loads(daemon.get("/stats").body)["http"]["connections"] == 2, 10)
    assert large.is_silent()
    large.close()


# ---- a large body that arrives in one piece ----

@pytest.mark.every_policy
def test_bodies_of_all_lengths_arrive_whole(start):
    """Lengths around each step in which memory is reserved, and around those of the buffer."""
    daemon = start("server.keep_originals=yes")
    lengths = [n + d for n in (64 << 10, 128 << 10, 1 << 20, 2 << 20, 17 << 20)
               for d in (-1, 0, 1)]

    def upload(i):
        body = SMALL + bytes((j * 7 + i) & 0xff for j in range(1000)) * (lengths[i] // 1000 + 1)
        body = body[:lengths[i]]
        image = daemon.image(body)
        ident = image["id"]
        stored = (daemon.store / ident[-2:] / ident / "original.jpg").read_bytes()
        assert stored == body
    in_parallel(len(lengths), upload)
    assert eventually(lambda: reserved(daemon) == 0)
