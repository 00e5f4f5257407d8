"""The spool keeps images that were acknowledged before they were stored, over crashes, restarts and
a full disk."""

import re
import shutil
import signal
import subprocess

import pytest

import pictures
from darkroom import Daemon, eventually
from store_files import check_stored, spool

JPEG = ("Content-Type", "image/jpeg")
ASYNC = ("Prefer", "respond-async")
ID = "01K0000000000000000000000"  # plus one character
SOURCES = [pictures.photo_jpeg(w, h, s)
           for w, h, s in ((640, 480, 1), (200, 300, 2), (1200, 900, 3), (90, 60, 4))]

pytestmark = pytest.mark.also_with("thread-per-connection")


def spooled(daemon):
    return sorted(p.name for p in (daemon.store / ".spool").iterdir())


def stats(daemon):
    return daemon.get("/stats").json()["store"]


@pytest.mark.parametrize("durability", ["process", "power"])
def test_early_response_spools_first(start, durability):
    """The file is in the spool while the image is processed."""
    daemon = start(f"server.durability={durability}")
    large = pictures.photo_jpeg(4000, 3000, 1)
    with daemon.client() as c:
        answer = c.request("POST", "/images", large, [JPEG, ASYNC])
        assert answer.status == 202
        ident = answer.json()["images"][0]["id"]
        spooled_at_once = spooled(daemon)
        assert c.request("GET", f"/images/{ident}/medium.jpg").status == 200
    assert spooled_at_once in ([ident], [])  # it may be stored already
    # They disappear shortly after the image is visible.
    assert eventually(lambda: not spooled(daemon) and not daemon.leftovers())
    assert stats(daemon)["recovered"] == 0


def test_nothing_is_spooled_without_durability(start):
    daemon = start("server.durability=none", "server.respond_after=decode")
    before = (daemon.store / ".spool").stat().st_mtime_ns
    ident = daemon.upload(SOURCES[0]).json()["images"][0]["id"]
    assert daemon.get(f"/images/{ident}/medium.jpg").status == 200
    assert (daemon.store / ".spool").stat().st_mtime_ns == before


@pytest.mark.every_policy
def test_spooled_images_are_processed_after_a_start(start, tmp_path):
    store = tmp_path / "store"
    ids = [ID + c for c in "ABCDEFGH"]
    for i, ident in enumerate(ids):
        spool(store, ident, SOURCES[i % len(SOURCES)])
    (store / ".incoming" / "01K0000000000000000000000X").mkdir(parents=True)
    daemon = start(store=store)
    for ident in ids:
        answer = daemon.get(f"/images/{ident}")
        assert answer.status in (200, 202), answer
        assert answer.status == 200 or answer.json()["status"] == "processing"
    assert eventually(lambda: stats(daemon)["recovered"] == len(ids), 20), daemon.log
    for i, ident in enumerate(ids):
        check_stored(store, ident, SOURCES[i % len(SOURCES)])
        assert daemon.get(f"/images/{ident}").json()["filename"] == "lake.jpg"
    assert eventually(lambda: not spooled(daemon) and stats(daemon)["recovering"] == 0)
    assert stats(daemon)["leftovers_cleared"] == 1
    assert daemon.says("8 acknowledged images to be recovered")


def test_recovery_says_once_how_it_ended(start, tmp_path):
    store = tmp_path / "store"
    spool(store, ID + "A", SOURCES[0])
    daemon = start(store=store)
    assert daemon.says("recovery: 1 acknowledged image to be recovered")
    assert daemon.says("recovery: done: 1 acknowledged image made again, 0 had been stored, 0 set aside")
    daemon.stop()
    spool(store, ID + "A", SOURCES[0])
    for name, note in (("B", "0\nb.jpg"), ("C", "0\nc.jpg"), ("D", "3\nd.jpg")):
        spool(store, ID + name, SOURCES[1], note)
    daemon = start(store=store)
    assert daemon.says("recovery: done: 2 acknowledged images made again, 1 had been stored, 1 set aside")
    daemon.stop()
    assert daemon.log.count("recovery: done") == 1
    daemon = start(store=store)
    daemon.stop()
    assert "recovery:" not in daemon.log


def test_image_that_ended_the_daemon_three_times_is_quarantined(start, tmp_path):
    store = tmp_path / "store"
    spool(store, ID + "A", SOURCES[0], "3\nbad.jpg")
    spool(store, ID + "B", SOURCES[0], "2\nlast-chance.jpg")
    daemon = start(store=store)
    assert eventually(lambda: not spooled(daemon), 20)
    assert (store / ".quarantine" / (ID + "A") / "original.jpg").read_bytes() == SOURCES[0]
    assert daemon.get(f"/images/{ID}A").status == 404
    # It leaves the spool before it is visible.
    assert eventually(lambda: daemon.get(f"/images/{ID}B").status == 200)
    assert daemon.says(f"<3>recovery: cannot process acknowledged image {ID}A: ")
    assert eventually(lambda: (stats(daemon)["quarantined"], stats(daemon)["recovered"]) == (1, 1))


def test_attempts_are_counted_before_they_start(tmp_path):
    """The daemon is killed while it processes an image, and has counted the attempt. The fourth
    daemon does not process it."""
    store = tmp_path / "store"
    ident = ID + "A"
    spool(store, ident, pictures.photo_jpeg(8000, 6000, 1), "0\nlarge.jpg")
    note = store / ".spool" / ident / "note"
    for attempt in "123":
        # The variant takes seconds.
        daemon = Daemon(store, "variant.medium.operations=scale 9000x9000 inside, blur 60")
        assert eventually(lambda: note.read_text()[0] == attempt, step=0.001)
        daemon.kill()
        assert note.read_text() == attempt + "\nlarge.jpg"
    daemon = Daemon(store)
    assert eventually(lambda: (store / ".quarantine" / ident).exists(), 20)
    daemon.stop()


@pytest.mark.parametrize("what", ["no JPEG", "no note", "no original", "strange"])
def test_broken_spool_entries_are_quarantined(start, tmp_path, what):
    """An entry that cannot be processed is quarantined, and other entries are processed."""
    store = tmp_path / "store"
    ident = ID + "A"
    spool(store, ident, b"no JPEG at all", "7\n" if what == "no note" else "0\nx.jpg")
    spool(store, ID + "B", SOURCES[1])
    if what == "no note":
        (store / ".spool" / ident / "note").unlink()
    elif what == "no original":
        (store / ".spool" / ident / "original.jpg").write_bytes(b"")
    elif what == "strange":
        (store / ".spool" / "x" / "y").mkdir(parents=True)
    daemon = start(store=store)
    assert eventually(lambda: (store / ".quarantine" / ident).exists(), 20), daemon.log
    assert eventually(lambda: daemon.get(f"/images/{ID}B").status == 200, 20)


def test_stored_image_leaves_the_spool(start, tmp_path):
    """The daemon ended after it stored an image, but before it removed the spooled file."""
    daemon = start(store=tmp_path / "store")
    image = daemon.image(SOURCES[0])
    daemon.stop()
    spool(daemon.store, image["id"], SOURCES[0])
    daemon = start(store=daemon.store)
    assert eventually(lambda: not spooled(daemon))
    assert stats(daemon)["recovered"] == 0
    check_stored(daemon.store, image["id"], SOURCES[0])


def test_spooled_image_can_be_deleted(start, tmp_path):
    store = tmp_path / "store"
    spool(store, ID + "A", pictures.photo_jpeg(6000, 4000, 1))
    for c in "BCDEFGHJKMNPQ":
        spool(store, ID + c, pictures.photo_jpeg(3000, 2000, 2))
    daemon = start(store=store)
    with daemon.client() as c:
        for last in "QAPB":
            assert c.request("DELETE", f"/images/{ID}{last}").status == 204
            # The recovery may already be processing the image.
            image = f"/images/{ID}{last}"
            assert eventually(lambda path=image: c.request("GET", path).status == 404, 60)
    assert eventually(lambda: not spooled(daemon), 60)
    assert sorted(i[-1] for i in daemon.stored()) == sorted("CDEFGHJKMN")


def test_drain_leaves_unprocessed_images_in_the_spool(start, tmp_path):
    store = tmp_path / "store"
    ids = [f"01K00000000000000000000{i:03}" for i in range(200)]
    for ident in ids:
        spool(store, ident, pictures.photo_jpeg(1500, 1000, 1))
    daemon = start(store=store)
    daemon.stop()
    assert spooled(daemon), "it processed all images before it ended"
    assert sorted(spooled(daemon) + daemon.stored()) == sorted(ids)


def test_images_that_a_drain_gave_up_are_processed_after_the_next_start(start, tmp_path):
    first = Daemon(tmp_path / "store", "server.drain_timeout=0")
    large = pictures.photo_jpeg(6000, 4000, 1)
    ids = []
    with first.client() as c:
        for _ in range(2):
            answer = c.request("POST", "/images", large, [JPEG, ASYNC])
            assert answer.status == 202
            ids.append(answer.json()["images"][0]["id"])
        first.signal(signal.SIGTERM)
        assert first.wait_exit() in (0, 1)
    second = start(store=first.store)
    assert eventually(lambda: second.stored() == sorted(ids) and not spooled(second), 20)
    for ident in ids:
        check_stored(first.store, ident, large)


# ---- a full disk ----

@pytest.mark.parametrize("durability", ["process", "power"])
def test_full_disk_gets_507_and_keeps_stored_images(start, small_disk, durability):
    """Uploads get 507. Acknowledged images are kept, unfinished files are removed, and uploads work
    again when there is space."""
    daemon = start(f"server.durability={durability}", "limits.free_bytes=0",
                   store=small_disk("size=3m") / "store")
    stored = []
    with daemon.client() as c:
        for _ in range(200):
            answer = c.request("POST", "/images", SOURCES[2], [JPEG])
            if answer.status != 201:
                break
            stored.append(answer.json()["images"][0]["id"])
        assert answer.status == 507 and answer.slug == "storage-full" and stored
        for headers in ([JPEG], [JPEG, ASYNC]):
            assert c.request("POST", "/images", SOURCES[2], headers).status == 507
        assert stats(daemon)["failures"] == {"full": 3, "other": 0}
        assert not daemon.leftovers() and not spooled(daemon)
        assert daemon.stored() == sorted(stored)
        for ident in stored[:2]:
            assert c.request("DELETE", f"/images/{ident}").status == 204
        assert c.request("POST", "/images", SOURCES[2], [JPEG]).status == 201
    for ident in stored[2:]:
        check_stored(daemon.store, ident, SOURCES[2])


def test_spooled_images_wait_for_space(start, small_disk):
    """Spooled images without space for their variants are processed when there is space."""
    disk = small_disk("size=3m")
    store = disk / "store"
    for c in "ABC":
        spool(store, ID + c, SOURCES[2])
    filler = disk / "filler"
    left = shutil.disk_usage(disk).free
    filler.write_bytes(b"x" * (left - 20000))
    daemon = start("limits.free_bytes=0", store=store)
    assert eventually(lambda: stats(daemon)["failures"]["full"] >= 2, 20), "it does not retry"
    assert spooled(daemon) == [ID + c for c in "ABC"] and not daemon.stored()
    assert daemon.get(f"/images/{ID}A").status == 202
    assert daemon.get(f"/images/{ID}A/thumb.jpg").status == 503 or daemon.stored()
    filler.unlink()
    assert eventually(lambda: not spooled(daemon), 30), daemon.log
    for c in "ABC":
        check_stored(store, ID + c, SOURCES[2])
    assert stats(daemon)["quarantined"] == 0


def test_failing_disk_gets_500(start):
    """A file size limit of the running daemon replaces a failing disk."""
    daemon = start()
    limit = ["prlimit", "--pid", str(daemon.pid)]
    subprocess.run([*limit, "--fsize=20000:"], check=True)
    for headers in ([], [ASYNC]):
        answer = daemon.upload(SOURCES[2], headers=headers)
        assert answer.status == 500 and answer.slug == "storage-failed", answer
    assert not daemon.leftovers() and not daemon.stored() and not spooled(daemon)
    assert stats(daemon)["failures"] == {"full": 0, "other": 2}
    subprocess.run([*limit, "--fsize=unlimited:"], check=True)
    check_stored(daemon.store, daemon.image(SOURCES[2])["id"], SOURCES[2])
