"""Floods of one client: of large uploads, which keep all cores busy, and of requests for dear documents
whose answers it does not read. Times are compared with those of the flood, since a busy machine
slows all of them."""

import contextlib
import statistics
import threading
import time

import pytest

import pictures
from darkroom import eventually, slow
from uploads import JPEG

FLOODER, OTHER = "127.0.0.2", "127.0.0.3"
CONNECTIONS = 16
LARGE = pictures.photo_jpeg(1600, 1200, 3)
SMALL = pictures.photo_jpeg(320, 240, 2)
DEAR = ["/metrics", "/stats", "/graph", "/graph.svg", "/openapi.json"]
UNREAD_MAX = 256 << 10  # 128 KB, and what the kernel takes at once


def timed(client, *request):
    started = time.monotonic()
    answer = client.request(*request)
    assert answer.status in (200, 201), answer
    return time.monotonic() - started


@contextlib.contextmanager
def flood(daemon):
    """Uploads large images over many connections. Yields the list of response times, when each
    connection has had an answer."""
    times, stop = [], threading.Event()

    def upload():
        with daemon.client(source=FLOODER, timeout=slow(300)) as c:
            while not stop.is_set():
                times.append(timed(c, "POST", "/images", LARGE, [JPEG]))
    threads = [threading.Thread(target=upload) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    try:
        assert eventually(lambda: len(times) >= CONNECTIONS, slow(60))
        yield times
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.mark.every_policy
def test_flood_holds_up_neither_downloads_nor_another_client(start):
    daemon = start()
    variant = daemon.image(SMALL)["variants"]["thumb"]["url"]
    with flood(daemon) as times:
        with daemon.client(source=OTHER, timeout=slow(300)) as c:
            gets, uploads = [], []
            for _ in range(20):
                gets += [timed(c, "GET", variant) for _ in range(3)]
                uploads.append(timed(c, "POST", "/images", SMALL, [JPEG]))
            typical = statistics.median(times)
    assert statistics.median(gets) < typical / 4
    assert statistics.median(uploads) < typical / 4


def unread(daemon):
    """Returns the bytes that the kernel keeps for each connection of the daemon, by port."""
    with open("/proc/net/tcp", encoding="ascii") as f:
        rows = [line.split() for line in f][1:]
    return {row[2]: int(row[4].split(":")[0], 16) for row in rows
            if row[1].endswith(f":{daemon.port:04X}") and row[3] == "01"}


def test_unread_answers_bound_memory_and_work(start):
    daemon = start()
    count, asked = 40, 200
    with contextlib.ExitStack() as stack:
        for i in range(count):
            c = stack.enter_context(daemon.client(receive_buffer=16 << 10))
            c.send(c.head("GET", DEAR[i % len(DEAR)]) * asked)
        last = {}

        def is_settled():
            nonlocal last
            daemon.image(SMALL)
            before, last = last, unread(daemon)
            return sum(size > 0 for size in last.values()) == count and last == before
        assert eventually(is_settled), last
        assert max(last.values()) < UNREAD_MAX
        answered = daemon.get("/stats").json()["http"]["requests"]
    assert answered < count * asked / 4


@pytest.mark.parametrize("path", DEAR[:-1])
def test_dear_documents_are_shared_in_a_flood(start, path):
    daemon = start()
    with daemon.client() as c:
        started = time.monotonic()
        c.send(c.head("GET", path) * 300)
        made = len({c.answer().body for _ in range(300)})
        seconds = time.monotonic() - started
    assert made <= 32 + 100 * seconds + 1  # each has the count of requests
