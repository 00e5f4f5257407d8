"""Acknowledged uploads survive kill -9 under load. DARKROOM_KILLS is the number of kills (8)."""

import json
import os
import random
import threading
import time

import pytest

import pictures
from client import Closed
from darkroom import Daemon, eventually, load, slow
from store_files import check_same, files_of, made_by

KILLS = int(os.environ.get("DARKROOM_KILLS", load(8, 3)))
CONNECTIONS = 16
JPEG = ("Content-Type", "image/jpeg")
ASYNC = ("Prefer", "respond-async")

SOURCES = [pictures.photo_jpeg(w, h, s)
           for w, h, s in ((640, 480, 1), (200, 300, 2), (1200, 900, 3), (90, 60, 4))]


# ---- kill -9 under load ----

class Uploader(threading.Thread):
    """Uploads on one connection until the daemon has ended. Records the acknowledged uploads."""

    def __init__(self, daemon, seed, headers):
        super().__init__(daemon=True)
        self.target, self.rng, self.headers = daemon, random.Random(seed), [JPEG, *headers]
        self.acknowledged = []  # (id, index of the source)
        self.start()

    def run(self):
        try:
            with self.target.client() as c:
                while True:
                    i = self.rng.randrange(len(SOURCES))
                    answer = c.request("POST", "/images", SOURCES[i], self.headers)
                    assert answer.status in (201, 202), answer
                    self.acknowledged.append((answer.json()["images"][0]["id"], i))
        except (Closed, OSError):
            pass


def reserved(daemon):
    memory = daemon.get("/stats").json()["memory"]
    return memory["reserved_body_bytes"], memory["reserved_image_bytes"]


def kill_under_load(store, kills, settings, headers, seed):
    """Kills the daemon at random moments. After each kill all acknowledged images must exist."""
    rng = random.Random(seed)
    total, visible = 0, set()
    keeps_originals = "server.keep_originals=no" not in settings
    reference = Daemon(store.with_name("reference"), *settings)
    expected = [made_by(reference, source) for source in SOURCES]
    reference.stop()
    by_size = {pictures.size(source): i for i, source in enumerate(SOURCES)}
    for kill in range(kills):
        daemon = Daemon(store, *settings)
        uploaders = [Uploader(daemon, rng.random(), headers) for _ in range(CONNECTIONS)]
        time.sleep(rng.uniform(0.02, 0.6) * min(slow(1), 3))
        if kill == kills - 1:  # on a busy disk it may have stored nothing yet
            _ = eventually(lambda: total + sum(len(u.acknowledged) for u in uploaders) >= kills,
                           60)
        daemon.kill()
        for u in uploaders:
            u.join(slow(60))
            assert not u.is_alive()
        acknowledged = [a for u in uploaders for a in u.acknowledged]
        total += len(acknowledged)
        after = Daemon(store, *settings)
        try:
            if not headers:  # otherwise spooled images may be in .incoming again
                # It is cleared before the first request is served.
                assert not list((store / ".incoming").iterdir())
            assert eventually(lambda: not list((store / ".spool").iterdir()), 60)
            assert not list((store / ".quarantine").iterdir()), after.log
            for ident, i in acknowledged:
                check_same(files_of(store, ident), expected[i], SOURCES[i], keeps_originals)
            now = set(after.stored())
            for ident in now - visible:  # also those that no response has reported
                files = files_of(store, ident)
                document = json.loads(files["image.json"])
                i = by_size[document["width"], document["height"]]
                check_same(files, expected[i], SOURCES[i], keeps_originals)
            visible = now
            if acknowledged:  # and the daemon serves them
                ident, i = rng.choice(acknowledged)
                for name, data in expected[i].items():
                    answer = after.get(f"/images/{ident}/{name}")
                    assert (answer.status, answer.body) == (200, data)
            # A recovered image gives its memory back.
            assert eventually(lambda: reserved(after) == (0, 0)), reserved(after)
        finally:
            after.stop()
        assert not after.leftovers()
    print(f"{kills} kills, {total} uploads acknowledged")
    assert total >= kills, "too few uploads"


def test_kill_under_load_loses_no_acknowledged_image(tmp_path):
    kill_under_load(tmp_path / "store", KILLS, ["server.durability=process"], [], 1)


@pytest.mark.also_with("thread-per-connection")
def test_kill_under_load_loses_no_image_acknowledged_early(tmp_path):
    """With status 202, images that are not stored are spooled."""
    kill_under_load(tmp_path / "store", max(2, KILLS // 4),
                    ["server.durability=process", "server.keep_originals=no"], [ASYNC], 2)


def test_kill_under_load_loses_nothing_with_flushes(tmp_path):
    kill_under_load(tmp_path / "store", max(2, KILLS // 10),
                    ["server.durability=power"], [], 3)
