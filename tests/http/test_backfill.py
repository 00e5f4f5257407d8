"""Variants that were skipped under load are made when it has gone (overload.backfill).
DARKROOM_KILLS is the number of kills (6)."""

import json
import os
import random
import time

import pytest

import pictures
from client import form_files
from darkroom import Daemon, TooLate, attempts, eventually, load, run
from store_files import check_same, files_of
from uploads import in_parallel

SOURCES = [pictures.photo_jpeg(w, h, s)
           for w, h, s in ((320, 240, 1), (200, 300, 2), (400, 300, 3), (90, 60, 4))]
KEEP = "server.keep_originals=yes"
TARGET = "overload.target_p90=10ms"
SKIP = "overload.degrade=skip blurred"
BACKFILL = "overload.backfill=yes"
KILLS = int(os.environ.get("DARKROOM_KILLS", load(6, 2)))
FILES = {"medium.jpg", "thumb.jpg", "blurred.jpg"}


def skipped(daemon, count):
    """Uploads until `count` images lack the variant blurred. Returns {id: (source, JSON)}. Each form
    has several images, so that the daemon is busy although the clients are slow."""
    found = {}
    kind, form = form_files(*SOURCES)

    def upload(_):
        for answer in in_parallel(8, lambda i: daemon.upload(form, kind)):
            assert answer.status in (201, 503)
            for source, image in zip(SOURCES, answer.json().get("images", [])):
                if "skip blurred" in image.get("degraded", []):
                    found[image["id"]] = source, image
        return len(found) >= count
    assert eventually(lambda: upload(daemon), 60)
    return found


def queue(daemon):
    return sorted(p.name for p in (daemon.store / ".remake").iterdir())


def made_by(daemon):
    """Returns [{name: bytes}] of the variants that a daemon makes of each source without load."""
    images = [daemon.image(source) for source in SOURCES]
    return [{name: files_of(daemon.store, image["id"])[name] for name in FILES}
            for image in images]


def check(daemon):
    done = run("-o", f"server.root={daemon.store}", "store", "check")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.also_with("seda", "thread-per-connection")
@attempts(5)
def test_skipped_variants_are_made_when_the_load_has_gone(start):
    daemon = start(KEEP, TARGET, "overload.degrade=quality 30, skip blurred", BACKFILL)
    expected = made_by(daemon)
    images = skipped(daemon, 12)
    stats = daemon.get("/stats").json()
    if stats["overload"]["classes"][0]["level"] == 0:
        raise TooLate("the load has gone")
    assert stats["store"]["remake"] == {"waiting": len(images), "made": 0, "failed": 0}
    assert stats["overload"]["backfilled"] == len(images)
    assert queue(daemon) == sorted(images)
    removed, kept = list(images)[0], list(images)[1:]
    assert daemon.get(f"/images/{kept[0]}/blurred.jpg").slug == "variant-skipped"
    with daemon.client() as c:
        assert c.request("DELETE", f"/images/{removed}").status == 204
    before = {ident: files_of(daemon.store, ident) for ident in kept}

    assert eventually(lambda: not queue(daemon), 60)
    assert daemon.get(f"/images/{removed}").status == 404 and removed not in daemon.stored()
    for ident in kept:
        source, image = images[ident]
        files, document = files_of(daemon.store, ident), daemon.get(image["url"]).json()
        assert document["degraded"] == ["quality 30"]
        assert document["variants"].keys() == {"medium", "thumb", "blurred"}
        assert {k: v for k, v in document["variants"].items() if k != "blurred"} == \
            image["variants"]
        assert files["blurred.jpg"] == expected[SOURCES.index(source)]["blurred.jpg"]
        assert daemon.fetch(document, "blurred") == files["blurred.jpg"]
        assert {name: files[name] for name in before[ident] if name != "image.json"} == {
            name: data for name, data in before[ident].items() if name != "image.json"}
    check(daemon)
    count = len(kept)
    assert eventually(lambda: daemon.get("/stats").json()["store"]["remake"] == {
        "waiting": 0, "made": count, "failed": 0})
    metrics = daemon.get("/metrics").body.decode()
    for line in (f"darkroom_overload_backfilled_total {len(images)}", "darkroom_store_remake_waiting 0",
                 f"darkroom_store_remade_total {count}", "darkroom_store_remake_failed_total 0"):
        assert f"{line}\n" in metrics
    assert daemon.says(f"remake: {len(images)} stored image{'s' * (len(images) != 1)} to get variants; ")
    assert daemon.says(f"remake: done: {count} stored image{'s' * (count != 1)} with new variants, ")


@pytest.mark.also_with("seda")
def test_a_skipped_variant_is_made_once_if_it_is_asked_for_meanwhile(start):
    """store.make_missing makes it when it is asked for, and backfill when the load has gone."""
    daemon = start(KEEP, TARGET, SKIP, BACKFILL, "store.make_missing=yes",
                   "limits.images_per_client=0")
    expected = made_by(daemon)
    images = skipped(daemon, 24)
    names = list(images)

    def get(ident):
        answers = []
        assert eventually(lambda: answers.append(daemon.get(f"/images/{ident}/blurred.jpg"))
                          or answers[-1].status == 200), answers[-1]
        assert {answer.status for answer in answers} <= {200, 503}
        return answers[-1].body

    def total():
        store = daemon.get("/stats").json()["store"]
        assert store["remake"]["failed"] == store["missing"]["failed"] == 0
        return store["remake"]["made"], store["missing"]["made"]

    half = len(names) // 2
    first = in_parallel(2 * half, lambda i: get(names[i % half]))
    assert total()[1] > 0
    assert eventually(lambda: total()[0] > 0, 60)  # backfill has begun
    second = in_parallel(2 * len(names), lambda i: get(names[i % len(names)]))
    assert eventually(lambda: not queue(daemon), 60)
    assert sum(total()) == len(names), total()
    for bodies, count in ((first, half), (second, len(names))):
        for i, body in enumerate(bodies):
            source = SOURCES.index(images[names[i % count]][0])
            assert body == expected[source]["blurred.jpg"]
    check(daemon)


def test_nothing_is_backfilled_without_the_key(start):
    daemon = start(KEEP, TARGET, SKIP)
    images = skipped(daemon, 1)
    assert not queue(daemon)
    assert daemon.get("/stats").json()["overload"]["backfilled"] == 0
    assert all("blurred.jpg" not in files_of(daemon.store, ident) for ident in images)


@attempts(3)
def test_a_backfill_that_is_killed_continues(tmp_path):
    """The daemon is killed while nothing is made yet, and then at random moments. Each image is
    whole after each kill, and in the end all have the files of an upload without load."""
    rng = random.Random(7)
    settings = (KEEP, TARGET, SKIP, BACKFILL, f"server.durability={rng.choice(('process', 'power'))}")
    daemon = Daemon(tmp_path / f"store{len(list(tmp_path.iterdir()))}", *settings)
    expected = made_by(daemon)
    images = skipped(daemon, 40)
    daemon.kill()
    for kill in range(KILLS):
        queued = len(queue(daemon))
        print(f"{queued} images are queued")
        if kill == 0:
            assert queued >= len(images) - 8  # the load may have paused
        daemon = Daemon(daemon.store, *settings)
        time.sleep(rng.uniform(0, 0.05))
        daemon.kill()
        for ident, (source, _) in images.items():
            files = files_of(daemon.store, ident)
            assert FILES - {"blurred.jpg"} <= files.keys()
            for name in files.keys() & FILES:
                assert files[name] == expected[SOURCES.index(source)][name], name
    daemon = Daemon(daemon.store, *settings)
    try:
        assert eventually(lambda: not queue(daemon), 60)
        if "attempts failed" in daemon.log:
            raise TooLate("three kills have met the same image, which stays as it is")
        for ident, (source, _) in images.items():
            files = files_of(daemon.store, ident)
            check_same(files, expected[SOURCES.index(source)], source, True)
            assert "degraded" not in json.loads(files["image.json"])
        check(daemon)
        assert not daemon.leftovers()
    finally:
        daemon.stop()
