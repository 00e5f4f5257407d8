"""What a reload changes, and that nobody notices. DARKROOM_RELOADS: how many there are under load; else as many as CI has time for."""

import itertools
import os
import re
import threading
import time

import pytest

import pictures
from client import Closed, chunked
from darkroom import CONFIG, LEAST_THREADS, POLICY, eventually, load, slow
from test_switch import command

pytestmark = pytest.mark.skipif(POLICY not in ("", "drain"), reason="the policy does not matter")

RELOADS = int(os.environ.get("DARKROOM_RELOADS", load(60, 15)))
SMALL = pictures.photo_jpeg(120, 80, 1)
JPEG = [("Content-Type", "image/jpeg")]
ORIGINAL = CONFIG.read_text()
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


def test_variants(site):
    old = site.daemon.image(SMALL)
    assert site.reload(variants=OTHER_VARIANTS)[0] == 0
    new = site.daemon.image(SMALL)
    assert (set(old["variants"]), set(new["variants"])) == (OLD, NEW)
    assert pictures.size(site.daemon.fetch(new, "grey")) == (67, 100)
    assert site.daemon.get(old["url"]).json()["variants"].keys() == OLD  # what is there stays as it was made,
    assert site.daemon.get(old["variants"]["thumb"]["url"]).status == 404  # and only what is configured is served
    assert site.reload()[0] == 0
    assert site.daemon.fetch(old, "thumb") and site.daemon.get(new["variants"]["tiny"]["url"]).status == 404
    assert command(site.daemon, "set variant.thumb.operations scale 10x10 exact")[0] == 0
    assert pictures.size(site.daemon.fetch(site.daemon.image(SMALL), "thumb")) == (10, 10)


def test_variants_that_have_no_room(site):
    """The queues are made for what there can be at once; more is refused as a whole."""
    many = "".join(f"[variant.v{i}]\noperations = scale {i + 50}x50 exact, blur {i + 1}, sharpen 1, rotate 90\n" for i in range(12))
    status, said = site.reload(variants=many)
    assert status == 1 and "needs a restart, or fewer images in flight" in said and "it stays unchanged" in said, said
    assert set(site.daemon.image(SMALL)["variants"]) == OLD
    assert site.reload(("images_in_flight", "50"), variants=many)[0] == 0
    assert len(site.daemon.image(SMALL)["variants"]) == 12
    status, said = command(site.daemon, "set limits.connections 100000")
    assert status == 1 and "only by a restart" in said, said


def probe(daemon):
    """The status of a probe on a connection of its own; None if that is closed before we have the answer, as it may be that is refused
    before it has asked."""
    try:
        return daemon.get("/healthz").status
    except (Closed, BrokenPipeError, ConnectionResetError):
        return None


def test_limits(site):
    assert site.reload(("pixels", "1K"))[0] == 0
    assert site.daemon.upload(SMALL).json()["limit"] == "limits.pixels"
    assert site.reload(("body_bytes", "1K"), ("images_in_flight", "1"))[0] == 0
    assert site.daemon.upload(pictures.photo_jpeg(300, 300)).json()["limit"] == "limits.body_bytes"
    assert site.reload(("connections", "1"))[0] == 0
    with site.daemon.client() as c:
        assert c.is_open()
        assert eventually(lambda: probe(site.daemon) == 503)
    assert eventually(lambda: probe(site.daemon) == 200)
    assert site.reload()[0] == 0
    assert site.daemon.upload(SMALL).status == 201
    assert site.reload(("memory_budget", "4G"), ("body_bytes", "1G"))[0] == 1  # that budget needs a restart
    assert site.reload(("idle_timeout", "1s"))[0] == 0
    with site.daemon.client() as c:
        assert c.request("GET", "/healthz").status == 200 and c.is_closed(slow(20))


def test_header_limit_of_connections_that_are_there(site):
    """Their buffers have the size of before: no more, and no less, is taken than fits."""
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


def test_durability_and_originals(site):
    assert site.reload(("durability", "power"), ("keep_originals", "yes"))[0] == 0
    image = site.daemon.image(SMALL)
    assert site.stats()["store"]["flushes"] == 2
    directory = site.daemon.store / image["id"][-2:] / image["id"]
    assert (directory / "original.jpg").read_bytes() == SMALL
    assert site.reload(("durability", "none"), ("respond_after", "decode"), ("allow_origin", "https://example.org"))[0] == 0
    answer = site.daemon.upload(SMALL)
    assert answer.status == 202 and answer["access-control-allow-origin"] == "https://example.org"
    assert eventually(lambda: site.stats()["images"]["stored"] == 2)
    assert site.stats()["store"]["flushes"] == 2


def test_images_keep_what_they_began_with(site):
    """A body that comes in two halves, with a change in between, and others while there is work all the time."""
    half = len(SMALL) // 2
    with site.daemon.client() as c:
        c.send(c.head("POST", "/images", SMALL, JPEG) + SMALL[:half])
        time.sleep(0.05)
        assert site.reload(variants=OTHER_VARIANTS)[0] == 0
        c.send(SMALL[half:])
        assert set(c.answer("POST").json()["images"][0]["variants"]) == NEW


class Uploader(threading.Thread):
    """Uploads, in each of the ways, reads back what it got, and removes it."""

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
            answer = self.request(client, (201,), "POST", "/images", chunked(SMALL), [*JPEG, ("Transfer-Encoding", "chunked")])
        image = answer.json()["images"][0]
        if set(image["variants"]) not in (OLD, NEW):
            self.failures.append(image)
        for variant in image["variants"].values():
            # It may not be configured any more.
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


def test_reloads_under_load(start, tmp_path):
    site = Site(start, tmp_path)
    files = [edited(), edited(("pixels", "50M"), ("durability", "none"), ("connections", "100"), variants=OTHER_VARIANTS),
             edited(("header_bytes", "8K"), ("images_in_flight", "64"), ("keep_originals", "yes"), ("threads", f"{LEAST_THREADS}")),
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
    print(f"\n{RELOADS} reloads, {sum(u.requests for u in uploaders)} requests, {len(failures)} failed; a reload took "
          f"{1000 * sum(times) / len(times):.1f} ms, the longest {1000 * max(times):.0f} ms; resident {resident >> 20} MiB at half, "
          f"{site.daemon.resident_bytes() >> 20} MiB at the end")
    assert not failures, failures[:3]
    assert not refused, refused[:3]
    assert not site.daemon.stored() and eventually(lambda: not site.daemon.leftovers())
    assert site.daemon.resident_bytes() < resident + (64 << 20)
