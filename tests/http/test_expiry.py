"""Images that end: by X-Expires-After, store.max_age and store.max_bytes."""

import calendar
import email.utils
import os
import shutil
import threading
import time

import pytest

import pictures
from client import form_files
from control import command
from darkroom import eventually, run
from store_files import bytes_of, directory_of, move_to_old_place

SMALL = pictures.photo_jpeg(60, 40, 3)
SWEEP = "store.sweep_interval=100ms"
NEVER = "store.sweep_interval=24h"  # after the first run, at the start


def upload(daemon, *headers, count=1):
    content_type, body = form_files(*[SMALL] * count)
    answer = daemon.upload(body, content_type, headers=list(headers))
    assert answer.status == 201, answer
    return [image["id"] for image in answer.json()["images"]]


def expiring(daemon, after, count=1):
    return upload(daemon, ("X-Expires-After", after), count=count)


def stats(daemon):
    return daemon.get("/stats").json()


def removed(daemon):
    return stats(daemon)["store"]["removed"]


def stored(store):
    return {p.name for p in store.glob("????/??/*")}


def notes(store):
    return [p.name for p in store.glob(".expiry/*/*")]


def expiry_of(answer):
    return calendar.timegm(email.utils.parsedate(answer["expires"]))


@pytest.mark.also_with("seda")
def test_an_image_ends_with_its_time(start):
    daemon = start(SWEEP)
    ident, = expiring(daemon, "2s")
    stays, = expiring(daemon, "1h")
    assert eventually(lambda: daemon.get(f"/images/{ident}").status == 404)
    assert eventually(lambda: stored(daemon.store) == {stays})
    assert daemon.get(f"/images/{ident}/thumb.jpg").status == 404
    assert eventually(lambda: len(notes(daemon.store)) == 1)
    counts = removed(daemon)
    assert (counts["expired"], counts["max_age"], counts["max_bytes"]) == (1, 0, 0)
    assert counts["bytes"] > 0
    assert daemon.says("expire: removed 1 image ") and "1 by X-Expires-After" in daemon.log
    assert b'darkroom_store_removed_total{reason="expired"} 1' in daemon.get("/metrics").body


def test_a_start_with_a_clock_ahead_removes_nothing_by_age(start):
    """By a wrong clock, all images are old. The store knows when the last sweep was, and what
    clients do meanwhile does not change that."""
    daemon = start()
    images = set(upload(daemon, count=3)) | set(expiring(daemon, "1s"))
    daemon.stop()
    day = 86400
    mark = daemon.store / ".expiry" / "swept"
    os.utime(mark, (time.time() - 365 * day,) * 2)
    time.sleep(1)
    for after in "3h", "5h":
        daemon = start("store.max_age=1s", SWEEP, store=daemon.store)
        assert daemon.says("expire: the clock went forward by 3153")
        images |= set(expiring(daemon, after))
        time.sleep(.5)  # five sweeps
        assert stored(daemon.store) == images and not sum(removed(daemon).values())
        daemon.stop()
    os.utime(mark, (time.time() - day + 600,) * 2)
    daemon = start("store.max_age=1s", SWEEP, store=daemon.store)
    assert eventually(lambda: not stored(daemon.store))
    assert time.time() - mark.stat().st_mtime < 600


def test_images_end_on_a_full_disk(start, small_disk):
    """The note of the sweep needs room, which only the sweep makes."""
    disk = small_disk("nr_inodes=64")
    daemon = start(NEVER, store=disk / "store")
    upload(daemon, count=2)
    daemon.stop()
    shutil.rmtree(daemon.store / ".expiry", ignore_errors=True)
    with pytest.raises(OSError):
        for i in range(64):
            (disk / str(i)).touch()
    daemon = start("store.max_age=1s", SWEEP, store=daemon.store)
    assert eventually(lambda: not stored(daemon.store)), daemon.log
    assert daemon.says("expire: cannot note the time of the sweep: No space left on device")
    daemon.stop()


def test_no_cache_keeps_an_image_beyond_its_end(start):
    daemon = start()
    before = int(time.time())
    ident, = expiring(daemon, "1000")
    after = int(time.time())
    variant = daemon.get(f"/images/{ident}/thumb.jpg")
    document = daemon.get(f"/images/{ident}")
    for answer in (variant, document):
        assert before + 1000 <= expiry_of(answer) <= after + 1000
    directives = variant["cache-control"].split(", ")
    assert directives[::2] == ["public", "must-revalidate"]  # its URL has no version
    assert 900 < int(directives[1].removeprefix("max-age=")) <= 1000
    assert document["cache-control"] == "no-cache"
    text = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(expiry_of(document)))
    assert document.json()["expires"] == text
    again = daemon.get(f"/images/{ident}/thumb.jpg", headers=[("If-None-Match", variant["etag"])])
    assert again.status == 304 and again["expires"] == variant["expires"]
    hour = daemon.get(f"/images/{upload(daemon)[0]}/thumb.jpg")
    assert hour["cache-control"] == "public, max-age=3600, must-revalidate"
    assert hour["expires"] is None


def test_an_expired_image_is_not_served_before_it_is_removed(start):
    daemon = start(NEVER, "server.public_list=yes")
    ident, = expiring(daemon, "1s")
    assert eventually(lambda: daemon.get(f"/images/{ident}/thumb.jpg").status == 404)
    assert daemon.get(f"/images/{ident}").status == 404
    assert daemon.get("/images").json() == {"images": []}
    assert stored(daemon.store) == {ident}
    with daemon.client() as c:
        assert c.request("DELETE", f"/images/{ident}").status == 204
    assert not stored(daemon.store) and not notes(daemon.store)


@pytest.mark.parametrize("value", ["", "0", "0d", "x", "-1", "1.5", "1w", "3651d", "9999999999",
                                   "1 s", "d", "87601h"])
def test_a_wrong_duration_is_refused(daemon, value):
    answer = daemon.upload(SMALL, headers=[("X-Expires-After", value)])
    assert answer.status == 400 and "X-Expires-After: expected one dur" in answer.json()["detail"]


def test_two_durations_are_refused(daemon):
    answer = daemon.upload(SMALL, headers=[("X-Expires-After", "1d"), ("X-Expires-After", "2d")])
    assert answer.status == 400


@pytest.mark.parametrize("value", ["1", "3650d", "87600h", "315360000", "90m"])
def test_a_duration_has_a_unit_or_is_in_seconds(daemon, value):
    assert len(expiring(daemon, value)) == 1


def test_the_end_survives_a_crash_before_the_image_is_stored(start):
    daemon = start("stage.disk_write.threads=1")
    ident = daemon.upload(SMALL, headers=[("X-Expires-After", "1h"),
                                          ("Prefer", "respond-async")]).json()["images"][0]["id"]
    assert eventually(lambda: stored(daemon.store) == {ident})
    first = expiry_of(daemon.get(f"/images/{ident}"))
    daemon.kill()
    # As after a crash before it was stored: its original and its note are in the spool.
    shutil.rmtree(directory_of(daemon.store, ident))
    spooled = daemon.store / ".spool" / ident
    spooled.mkdir()
    (spooled / "original.jpg").write_bytes(SMALL)
    (spooled / "note").write_bytes(b"0\nsea.jpg\0site\0%d" % first)
    daemon = start(store=daemon.store)
    assert eventually(lambda: daemon.get(f"/images/{ident}").status == 200)
    assert expiry_of(daemon.get(f"/images/{ident}")) == first


def test_notes_of_a_crash_are_removed_when_their_time_comes(start):
    daemon = start(SWEEP)
    hour = daemon.store / ".expiry" / "0000100"
    hour.mkdir(parents=True)
    (hour / "0000360001.01K0000000000000000000000A").touch()
    (hour.parent / "stray").touch()
    assert eventually(lambda: not hour.exists())
    assert (hour.parent / "stray").exists()  # it is not the daemon's
    ident, = upload(daemon)
    assert stored(daemon.store) == {ident}


def age(store, ident, years):
    """Gives a stored image an older id. Returns it."""
    old = "%s%s" % (bound(time.time() - years * 365 * 86400), ident[10:])
    target = directory_of(store, old)
    target.parent.mkdir(parents=True, exist_ok=True)
    directory_of(store, ident).rename(target)
    return old


def bound(seconds):
    digits, ms = "0123456789ABCDEFGHJKMNPQRSTVWXYZ", int(seconds * 1000)
    return "".join(digits[ms >> shift & 31] for shift in range(45, -1, -5))


def test_old_images_are_removed_in_both_layouts(start):
    daemon = start()
    images = upload(daemon, count=6)
    old = [age(daemon.store, ident, 2 + i / 100) for i, ident in enumerate(images[:4])]
    move_to_old_place(daemon.store, old[3])
    daemon.stop()
    daemon = start("store.max_age=8760h", SWEEP, store=daemon.store)
    for ident in old:
        assert daemon.get(f"/images/{ident}").status == 404
    assert eventually(lambda: removed(daemon)["max_age"] == 4)
    span = directory_of(daemon.store, old[0]).parent.parent
    assert eventually(lambda: not span.exists())
    assert stored(daemon.store) == set(images[4:])
    answer = daemon.get(f"/images/{images[4]}/thumb.jpg")
    assert abs(expiry_of(answer) - time.time() - 8760 * 3600) < 600


def test_the_oldest_images_are_removed_when_there_are_too_many_bytes(start):
    daemon = start()
    images = sorted(upload(daemon, count=8))
    one = bytes_of(daemon.store, images[0], SMALL)
    daemon.kill()  # so that they are counted at the start
    daemon = start(f"store.max_bytes={5 * one}", f"limits.body_bytes={5 * one}", SWEEP, store=daemon.store)
    assert eventually(lambda: removed(daemon)["max_bytes"] == 3)
    assert stored(daemon.store) == set(images[3:])
    more = sorted(upload(daemon, count=2))
    assert eventually(lambda: removed(daemon)["max_bytes"] == 5)
    assert stored(daemon.store) == set(images[5:] + more)
    figures = stats(daemon)["store"]
    assert (figures["images"], figures["bytes"], figures["is_counted"]) == (5, 5 * one, True)
    assert f"darkroom_store_bytes {5 * one}\n".encode() in daemon.get("/metrics").body


def figures(daemon):
    store = stats(daemon)["store"]
    return store.get("images"), store.get("bytes"), store.get("is_counted")


def test_figures_survive_a_stop_and_are_counted_after_a_crash(start):
    daemon = start("store.max_bytes=1G", SWEEP)
    images = upload(daemon, count=5)
    one = bytes_of(daemon.store, images[0], SMALL)
    with daemon.client() as c:
        assert c.request("DELETE", f"/images/{images[0]}").status == 204
    expected = (4, 4 * one, True)
    assert eventually(lambda: figures(daemon) == expected)
    daemon.stop()
    assert (daemon.store / ".usage").exists()
    daemon = start("store.max_bytes=1G", SWEEP, store=daemon.store)
    assert eventually(lambda: "images" in stats(daemon)["store"] and figures(daemon) == expected)
    assert not (daemon.store / ".usage").exists() and "counted" not in daemon.log
    daemon.kill()
    daemon = start("store.max_bytes=1G", SWEEP, store=daemon.store)
    assert eventually(lambda: "images" in stats(daemon)["store"] and figures(daemon) == expected)
    assert f"counted 4 images with {4 * one} bytes" in daemon.log


def test_images_that_another_process_removes_are_counted_once_more(start):
    daemon = start("store.max_bytes=1G", SWEEP)
    images = upload(daemon, count=3)
    one = bytes_of(daemon.store, images[0], SMALL)
    assert eventually(lambda: figures(daemon) == (3, 3 * one, True))
    run("-o", f"server.root={daemon.store}", "store", "remove", images[0])
    assert eventually(lambda: figures(daemon) == (2, 2 * one, True))


def test_changed_limits_apply_at_once(start):
    daemon = start(NEVER)
    upload(daemon)
    now = int(time.time())
    assert eventually(lambda: time.time() > now + 2)  # an age is one of whole seconds
    assert command(daemon, "set store.max_age 1ms")[0] == 0
    assert eventually(lambda: removed(daemon)["max_age"] == 1)
    upload(daemon)
    assert command(daemon, "set store.sweep_interval 100ms")[0] == 0
    assert eventually(lambda: removed(daemon)["max_age"] == 2)


def test_removals_race_with_requests(start):
    """Each image answers 200 or 404, and the figures agree with the files at the end."""
    daemon = start("store.max_bytes=1G", SWEEP)
    failures, count = [], 40

    def work():
        try:
            with daemon.client() as c:
                for i in range(count):
                    answer = c.request("POST", "/images", SMALL, [
                        ("Content-Type", "image/jpeg"), ("X-Expires-After", "1" if i % 2 else "1h")])
                    assert answer.status == 201
                    ident = answer.json()["images"][0]["id"]
                    assert c.request("GET", f"/images/{ident}/thumb.jpg").status in (200, 404)
                    if i % 4 < 2:
                        assert c.request("DELETE", f"/images/{ident}").status in (204, 404)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures
    assert eventually(lambda: len(stored(daemon.store)) == 3 * count // 4)
    kept = stored(daemon.store)
    assert figures(daemon) == (len(kept), sum(bytes_of(daemon.store, i, SMALL) for i in kept), True)
    assert eventually(lambda: len(notes(daemon.store)) == len(kept))
