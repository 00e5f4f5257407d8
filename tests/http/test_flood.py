"""A flood of large uploads from one client keeps all cores busy: others are served before it is.
Times are compared with those of the flood, since a busy machine slows all of them."""

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
