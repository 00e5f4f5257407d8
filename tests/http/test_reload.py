"""Reloads of the configuration, which fail no request. DARKROOM_RELOADS is the number of reloads
under load (60, fewer on slow builds)."""

import itertools
import os
import re
import threading
import time

import pytest

import pictures
from client import Closed, chunked
from darkroom import LEAST_THREADS, eventually, every_key, load, slow
from control import command
from store_files import directory_of

RELOADS = int(os.environ.get("DARKROOM_RELOADS", load(60, 15)))
SMALL = pictures.photo_jpeg(120, 80, 1)
JPEG = [("Content-Type", "image/jpeg")]
ORIGINAL = every_key()
OTHER_VARIANTS = """
[variant.tiny]
operations = scale 32x32 cover
[variant.grey]
operations = scale 100x100 inside, grayscale, rotate 90
[variant.soft]
operations = scale 60x60 inside, blur 2, sharpen 1
"""
OLD, NEW = {"medium", "thumb", "blurred"}, {"tiny", "grey", "soft"}


def edited(*edits, variants=None):
    text = ORIGINAL
    for key, value in edits:
        text, count = re.subn(rf"(?m)^{key} =.*$", f"{key} = {value}", text)
        assert count, key
    return text if variants is None else text[:text.index("\n[variant.")] + "\n" + variants


class Site:
    def __init__(self, start, directory, *settings):
        self.path = directory / "site.ini"
        self.path.write_text(ORIGINAL)
        self.daemon = start(*settings, config=self.path, policy="drain")

    def reload(self, *edits, **options):
        self.path.write_text(edited(*edits, **options))
        return command(self.daemon, "reload")

    def stats(self):
        return self.daemon.get("/stats").json()


@pytest.fixture
def site(start, tmp_path):
    return Site(start, tmp_path)


def test_reload_changes_the_variants(site):
    old = site.daemon.image(SMALL)
    assert site.reload(variants=OTHER_VARIANTS)[0] == 0
    new = site.daemon.image(SMALL)
    assert (set(old["variants"]), set(new["variants"])) == (OLD, NEW)
    assert pictures.size(site.daemon.fetch(new, "grey")) == (67, 100)
    # A stored image does not change.
    assert site.daemon.get(old["url"]).json()["variants"].keys() == OLD
    # What was stored is served, and nothing else.
    assert site.daemon.fetch(old, "thumb")
    assert site.daemon.get(old["url"] + "/tiny.jpg").status == 404
    assert site.reload()[0] == 0
    assert site.daemon.fetch(new, "tiny")
    assert site.daemon.get(new["url"] + "/thumb.jpg").status == 404
    assert command(site.daemon, "set variant.thumb.operations scale 10x10 exact")[0] == 0
    assert pictures.size(site.daemon.fetch(site.daemon.image(SMALL), "thumb")) == (10, 10)


def test_variants_that_do_not_fit_are_refused(site):
    """Queues have the size of the first configuration. A configuration that needs more is refused
    as a whole."""
    many = "".join(f"[variant.v{i}]\noperations = scale {i + 50}x50 exact, blur {i + 1}, "
                   "sharpen 1, rotate 90\n" for i in range(12))
    status, said = site.reload(variants=many)
    assert status == 1 and "needs a restart, or fewer images in flight" in said
    assert "it stays unchanged" in said, said
    assert set(site.daemon.image(SMALL)["variants"]) == OLD
    assert site.reload(("images_in_flight", "50"), variants=many)[0] == 0
    assert len(site.daemon.image(SMALL)["variants"]) == 12
    status, said = command(site.daemon, "set limits.connections 100000")
    assert status == 1 and "only by a restart" in said, said


def probe(daemon):
    """Returns the status of a probe on a new connection. Returns None if the connection is closed
    before the response, since it may be refused before the request."""
    try:
        return daemon.get("/healthz").status
    except (Closed, BrokenPipeError, ConnectionResetError):
        return None


def test_reload_changes_limits(site):
    assert site.reload(("pixels", "1K"))[0] == 0
    assert site.daemon.upload(SMALL).json()["limit"] == "limits.pixels"
    assert site.reload(("body_bytes", "1K"), ("images_in_flight", "1"))[0] == 0
    assert site.daemon.upload(pictures.photo_jpeg(300, 300)).json()["limit"] == "limits.body_bytes"
    assert site.reload(("connections", "1"))[0] == 0
    with site.daemon.client() as c:
        # An idle one would make room.
        c.send(c.head("POST", "/images", None, [*JPEG, ("Content-Length", "900")]) + b"\xff")
        assert eventually(lambda: site.daemon.has_read(c))
        assert eventually(lambda: probe(site.daemon) == 503)
    assert eventually(lambda: probe(site.daemon) == 200)
    assert site.reload()[0] == 0
    assert site.daemon.upload(SMALL).status == 201
    # A change of memory_budget needs a restart.
    assert site.reload(("memory_budget", "4G"), ("body_bytes", "1G"))[0] == 1
    assert site.reload(("idle_timeout", "1s"))[0] == 0
    with site.daemon.client() as c:
        assert c.request("GET", "/healthz").status == 200 and c.is_closed(slow(20))


def test_open_connections_keep_their_header_buffers(site):
    """Open connections keep their buffers, and accept exactly what fits."""
    long = [("X-Long", "x" * 20000)]
    with site.daemon.client() as c:
        c.send(b"GET /healthz HTTP/1.1\r\n")
        assert eventually(lambda: site.daemon.has_read(c))
        assert site.reload(("header_bytes", "32K"))[0] == 0
        c.send(b"Host: here\r\nX-Long: " + b"x" * 20000 + b"\r\n\r\n")
        assert c.answer().status == 431
    assert site.daemon.get("/healthz", headers=long).status == 200
    with site.daemon.client() as c:
        assert c.is_open() and site.reload(("header_bytes", "1K"))[0] == 0
        assert c.request("GET", "/healthz", headers=long).status == 431


def test_reload_changes_durability_and_originals(site):
    assert site.reload(("durability", "power"), ("keep_originals", "yes"))[0] == 0
    image = site.daemon.image(SMALL)
    assert site.stats()["store"]["flushes"] == 2
    directory = directory_of(site.daemon.store, image["id"])
    assert (directory / "original.jpg").read_bytes() == SMALL
    assert site.reload(("durability", "none"), ("respond_after", "decode"),
                       ("allow_origin", "https://example.org"))[0] == 0
    answer = site.daemon.upload(SMALL)
    assert answer.status == 202 and answer["access-control-allow-origin"] == "https://example.org"
    assert eventually(lambda: site.stats()["images"]["stored"] == 2)
    assert site.stats()["store"]["flushes"] == 2


def test_images_keep_their_configuration(site):
    """A body arrives in two halves, with a reload in between."""
    half = len(SMALL) // 2
    with site.daemon.client() as c:
        c.send(c.head("POST", "/images", SMALL, JPEG) + SMALL[:half])
        assert eventually(lambda: site.daemon.has_read(c))
        assert site.reload(variants=OTHER_VARIANTS)[0] == 0
        c.send(SMALL[half:])
        assert set(c.answer("POST").json()["images"][0]["variants"]) == NEW


class Uploader(threading.Thread):
    """Uploads with and without chunks, reads all files of the image, and removes it."""

    def __init__(self, site, index, over):
        super().__init__()
        self.daemon, self.index, self.over = site.daemon, index, over
        self.requests, self.failures = 0, []

    def request(self, client, expected, *args):
        answer = client.request(*args)
        self.requests += 1
        if answer.status not in expected:
            self.failures.append((args[:2], answer))
        return answer

    def once(self, client, n):
        if n % 2:
            answer = self.request(client, (201,), "POST", "/images", SMALL, JPEG)
        else:
            answer = self.request(client, (201,), "POST", "/images", chunked(SMALL),
                                  [*JPEG, ("Transfer-Encoding", "chunked")])
        image = answer.json()["images"][0]
        if set(image["variants"]) not in (OLD, NEW):
            self.failures.append(image)
        for variant in image["variants"].values():
            # The variant may no longer be configured.
            answer = self.request(client, (200, 404), "GET", variant["url"])
            if answer.status == 200 and len(answer.body) != variant["bytes"]:
                self.failures.append((variant, answer))
        self.request(client, (200,), "GET", image["url"])
        self.request(client, (204,), "DELETE", image["url"])

    def run(self):
        try:
            with self.daemon.client(timeout=slow(60)) as client:
                for n in itertools.count(self.index):
                    if self.over.is_set():
                        break
                    self.once(client, n)
        except Exception as failure:  # pylint: disable=broad-except
            self.failures.append(failure)


def test_reloads_under_load_fail_no_request(start, tmp_path):
    site = Site(start, tmp_path)
    files = [edited(), edited(("pixels", "50M"), ("durability", "none"),
                              ("connections", "100"), variants=OTHER_VARIANTS),
             edited(("header_bytes", "8K"), ("images_in_flight", "64"),
                    ("keep_originals", "yes"), ("threads", f"{LEAST_THREADS}")),
             edited(("policy", "cohort"), ("body_timeout", "20s"), variants=OTHER_VARIANTS)]
    over = threading.Event()
    uploaders = [Uploader(site, i, over) for i in range(8)]
    for u in uploaders:
        u.start()
    times, refused, resident = [], [], 0
    try:
        assert eventually(lambda: all(u.requests for u in uploaders), 30)
        for i in range(RELOADS):
            site.path.write_text(files[i % len(files)])
            began = time.monotonic()
            status, said = command(site.daemon, "reload")
            times.append(time.monotonic() - began)
            if status:
                refused.append(said)
            if i == RELOADS // 2:
                resident = site.daemon.resident_bytes()
    finally:
        over.set()
        for u in uploaders:
            u.join()
    failures = [f for u in uploaders for f in u.failures]
    print(f"\n{RELOADS} reloads, {sum(u.requests for u in uploaders)} requests, "
          f"{len(failures)} failed; a reload took {1000 * sum(times) / len(times):.1f} ms, "
          f"the longest {1000 * max(times):.0f} ms; resident {resident >> 20} MiB at half, "
          f"{site.daemon.resident_bytes() >> 20} MiB at the end")
    assert not failures, failures[:3]
    assert not refused, refused[:3]
    assert not site.daemon.stored() and eventually(lambda: not site.daemon.leftovers())
    assert site.daemon.resident_bytes() < resident + (64 << 20)
