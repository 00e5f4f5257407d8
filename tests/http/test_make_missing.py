"""store.make_missing: a variant that a stored image lacks is made when a client asks for it. Also what
is answered if it cannot be made. DARKROOM_KILLS is the number of kills (6)."""

import concurrent.futures
import json
import os
import random
import socket
import struct
import threading
import time

import pytest

import client
import pictures
from darkroom import Daemon, eventually, load, run
from store_files import directory_of, files_of, made_by

KEEP = "server.keep_originals=yes"
MAKE = "store.make_missing=yes"
TINY = "variant.tiny.operations=scale 40x40 inside"
SMALL = "variant.small.operations=scale 20x20 inside"
HEAVY = ("variant.heavy.operations=scale 3000x3000 inside, blur 30", "variant.heavy.enlarge=yes")
SOURCES = [pictures.photo_jpeg(w, h, s)
           for w, h, s in ((320, 240, 1), (200, 300, 2), (400, 300, 3), (90, 60, 4))]
KILLS = int(os.environ.get("DARKROOM_KILLS", load(6, 2)))


def stored(start, count=1, *settings):
    """Returns a store with images that lack what is configured later, and their ids."""
    before = start(KEEP, *settings)
    images = [before.image(SOURCES[i % 4])["id"] for i in range(count)]
    before.stop()
    return before.store, images


def made(daemon):
    return daemon.get("/stats").json()["store"]["missing"]


def all_of(count, function):
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return list(pool.map(function, range(count)))


def check_tool(daemon):
    done = run("-o", f"server.root={daemon.store}", "store", "check")
    assert done.returncode == 0, done.stdout + done.stderr


def is_idle(daemon):
    stats = daemon.get("/stats").json()
    return stats["images"]["in_flight"] == 0 == stats["memory"]["reserved_body_bytes"]


@pytest.mark.every_policy
def test_missing_variant_is_made_once_for_all_who_wait(start):
    store, (ident,) = stored(start)
    daemon = start(KEEP, MAKE, TINY, SMALL, store=store)
    answers = all_of(20, lambda i: daemon.get(
        f"/images/{ident}/{'tiny' if i % 2 else 'small'}.jpg"))
    assert [answer.status for answer in answers] == [200] * 20, answers
    fresh = daemon.image(SOURCES[0])
    for i, name in enumerate(("small", "tiny")):
        assert {answer.body for answer in answers[i::2]} == {daemon.fetch(fresh, name)}
        assert len({answer["etag"] for answer in answers[i::2]}) == 1
    assert made(daemon) == {"made": 1, "failed": 0, "refused": 0}
    check_tool(daemon)
    assert not daemon.leftovers() and eventually(lambda: is_idle(daemon))


def test_made_variant_is_in_the_image_and_may_be_cached(start):
    store, (ident,) = stored(start)
    was = files_of(store, ident)
    daemon = start(KEEP, MAKE, TINY, store=store)
    first = daemon.get(f"/images/{ident}/tiny.jpg")
    assert first["cache-control"] == "public, max-age=3600, must-revalidate"
    document = daemon.get(f"/images/{ident}").json()
    answer = daemon.get(document["variants"]["tiny"]["url"])
    assert answer["cache-control"] == "public, max-age=31536000, immutable"
    assert (answer.body, answer["etag"]) == (first.body, first["etag"])
    assert daemon.get(f"/images/{ident}/tiny.jpg",
                      headers=[("If-None-Match", first["etag"])]).status == 304
    files = files_of(store, ident)
    assert {name: files[name] for name in was if name != "image.json"} == {
        name: data for name, data in was.items() if name != "image.json"}
    record = json.loads(files["image.json"])["record"]
    assert record["variants"]["tiny"]["operations"] == "scale 40x40 inside"
    head = daemon.client().request("HEAD", f"/images/{ident}/tiny.jpg")
    assert head.status == 200 and head["etag"] == first["etag"]


def test_answer_names_what_the_image_has_if_the_variant_cannot_be_made(start):
    before = start("server.keep_originals=no")
    lost = before.image(SOURCES[0])["id"]
    before.stop()
    before = start(KEEP, store=before.store)
    kept = before.image(SOURCES[0])["id"]
    before.stop()
    daemon = start(KEEP, MAKE, TINY, store=before.store)
    none = kept[:-1] + ("1" if kept[-1] == "0" else "0")
    for path, detail in (
            (f"{lost}/tiny", f"image {lost} has no variant tiny; it has blurred, medium, thumb"),
            (f"{kept}/other", f"image {kept} has no variant other; it has blurred, medium, thumb"),
            (f"{none}/tiny", f"image {none} does not exist")):
        answer = daemon.get(f"/images/{path}.jpg")
        assert (answer.status, answer.json()["detail"]) == (404, detail)
    daemon.stop()
    off = start(KEEP, TINY, store=before.store)
    assert off.get(f"/images/{kept}/tiny.jpg").status == 404
    assert made(off) == {"made": 0, "failed": 0, "refused": 0}


def test_damaged_original_is_found_once_and_changes_nothing(start):
    store, (ident, good) = stored(start, 2)
    path = directory_of(store, ident) / "original.jpg"
    data = bytearray(path.read_bytes())
    data[-100] ^= 1
    path.write_bytes(data)
    daemon = start(KEEP, MAKE, TINY, store=store)
    files = files_of(store, ident)
    for _ in range(3):
        answer = daemon.get(f"/images/{ident}/tiny.jpg")
        assert answer.status == 404 and "it has blurred, medium, thumb" in answer.json()["detail"]
    assert daemon.says(f"make_missing: cannot make what image {ident} lacks: its original or its "
                       "image.json is damaged")
    assert made(daemon) == {"made": 0, "failed": 1, "refused": 2}
    assert files_of(store, ident) == files
    assert daemon.get(f"/images/{good}/tiny.jpg").status == 200


def test_original_that_is_refused_now_is_not_tried_again_at_once(start):
    store, (ident,) = stored(start)
    daemon = start(KEEP, MAKE, TINY, "limits.width=100", store=store)
    for _ in range(3):
        assert daemon.get(f"/images/{ident}/tiny.jpg").status == 404
    assert made(daemon) == {"made": 0, "failed": 1, "refused": 2}
    assert eventually(lambda: is_idle(daemon)) and not daemon.leftovers()


def test_few_images_of_a_client_wait(start):
    """Each image takes long, so that the client asks for all before the first is made."""
    store, images = stored(start, 12)
    daemon = start(KEEP, MAKE, *HEAVY, "server.trusted_proxies=127.0.0.1",
                   "server.admin_on_public=yes", "server.wait_timeout=5m", store=store)
    client = [("X-Forwarded-For", "192.0.2.7")]
    answers = all_of(12, lambda i: daemon.get(f"/images/{images[i]}/heavy.jpg", headers=client))
    refused = [answer for answer in answers if answer.status == 503]
    assert {answer.status for answer in answers} == {200, 503} and refused
    for answer in refused:
        assert answer.slug == "overloaded" and int(answer["retry-after"]) >= 1
        assert "4 images of the same client wait" in answer.json()["detail"]
    count = made(daemon)
    assert count["refused"] == len(refused) and count["made"] == 12 - len(refused)
    other = daemon.get(f"/images/{images[0]}/heavy.jpg")
    assert other.status == 200


def test_uploads_go_on_beside_a_flood_of_requests_for_missing_variants(start):
    store, images = stored(start, 24)
    daemon = start(KEEP, MAKE, *HEAVY, "server.wait_timeout=5s", store=store)
    is_over = threading.Event()

    def ask(i):
        while not is_over.is_set():
            answer = daemon.get(f"/images/{images[i % 24]}/heavy.jpg")
            assert answer.status == 200 or (answer.status == 503 and answer["retry-after"])

    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        flood = [pool.submit(ask, i) for i in range(32)]
        try:
            statuses = [daemon.upload(SOURCES[i % 4]).status for i in range(load(20, 4))]
        finally:
            is_over.set()
        for one in flood:
            one.result()
    assert set(statuses) == {201}


def test_client_that_goes_leaves_nothing(start):
    store, images = stored(start, 8)
    daemon = start(KEEP, MAKE, *HEAVY, store=store)
    for ident in images:
        with socket.create_connection((daemon.host, daemon.port)) as s:
            s.sendall(f"GET /images/{ident}/heavy.jpg HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert daemon.get(f"/images/{images[-1]}/heavy.jpg").status == 200
    assert eventually(lambda: is_idle(daemon) and not daemon.leftovers())
    check_tool(daemon)


def test_wait_ends_with_its_time(start):
    store, (ident,) = stored(start)
    daemon = start(KEEP, MAKE, *HEAVY, "server.wait_timeout=1ms", store=store)
    answers = [daemon.get(f"/images/{ident}/heavy.jpg") for _ in range(2)]
    assert answers[0].status == 503 and answers[0]["retry-after"], answers
    assert eventually(lambda: daemon.get(f"/images/{ident}/heavy.jpg").status == 200)


def test_image_that_is_removed_meanwhile_stays_removed(start):
    store, images = stored(start, 12)
    daemon = start(KEEP, MAKE, TINY, store=store)

    def work(i):
        path = f"/images/{images[i // 2]}"
        with daemon.client() as c:
            return c.request(*(("DELETE", path) if i % 2 else ("GET", f"{path}/tiny.jpg"))).status

    statuses = all_of(24, work)
    assert set(statuses[1::2]) == {204} and set(statuses[::2]) <= {200, 404}
    assert eventually(lambda: daemon.stored() == [] and not daemon.leftovers())


@pytest.mark.also_with("seda")
def test_daemon_stops_while_clients_wait(start):
    store, images = stored(start, 8)
    daemon = start(KEEP, MAKE, *HEAVY, store=store)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(daemon.get, f"/images/{ident}/heavy.jpg") for ident in images]
        assert eventually(lambda: daemon.get("/stats").json()["images"]["in_flight"] > 0
                          or made(daemon)["made"] > 0)
        daemon.stop()
        statuses = []
        for answer in answers:
            try:
                statuses.append(answer.result().status)
            except OSError:
                pass  # the request came after the end
    # The request that was in flight has an answer.
    assert statuses and set(statuses) <= {200, 503}


def test_daemon_that_is_killed_leaves_old_or_new_files(tmp_path):
    rng = random.Random(7)
    before = Daemon(tmp_path / "store", KEEP)
    images = [before.image(SOURCES[i % 4])["id"] for i in range(24)]
    was = [files_of(before.store, ident) for ident in images[:4]]
    before.stop()
    settings = (KEEP, MAKE, TINY, "server.durability=power")
    reference = Daemon(tmp_path / "reference", *settings)
    expected = [{**made_by(reference, source),
                 "tiny.jpg": reference.fetch(reference.image(source), "tiny")}
                for source in SOURCES]
    reference.stop()

    def check():
        for i, ident in enumerate(images):
            files = files_of(before.store, ident)
            names = expected[i % 4] if "tiny.jpg" in files else was[i % 4]
            assert files.keys() >= names.keys() - {"image.json"}
            for name, data in expected[i % 4].items():
                assert files.get(name, data) == data
            document = json.loads(files["image.json"])
            assert ("tiny" in document["variants"]) == ("tiny.jpg" in files)

    def ask(daemon, ident):
        try:
            daemon.get(f"/images/{ident}/tiny.jpg")
        except (OSError, client.Closed):
            pass  # it is killed

    for _ in range(KILLS):
        daemon, asked = Daemon(before.store, *settings), []
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            for ident in rng.sample(images, 6):
                asked.append(pool.submit(ask, daemon, ident))
            time.sleep(rng.uniform(0, 0.1))
            daemon.kill()
        for one in asked:
            one.result()
        check()
    daemon = Daemon(before.store, *settings)
    try:
        for ident in images:
            assert daemon.get(f"/images/{ident}/tiny.jpg").status == 200
        check()
        check_tool(daemon)
        assert eventually(lambda: not daemon.leftovers())
    finally:
        daemon.stop()


@pytest.mark.parametrize("settings, headers", [
    ((), [("X-Expires-After", "2s")]), (("store.max_age=2s",), [])], ids=["own", "max_age"])
def test_expired_image_has_no_variants(start, settings, headers):
    """It is gone, though its files are still there."""
    daemon = start(KEEP, "store.sweep_interval=24h", *settings)
    ident = daemon.image(SOURCES[0], headers=headers)["id"]
    daemon.stop()
    daemon = start(KEEP, MAKE, TINY, "store.sweep_interval=24h", *settings, store=daemon.store)
    assert eventually(lambda: daemon.get(f"/images/{ident}/thumb.jpg").status == 404)
    for name in ("lost", "tiny", "thumb"):
        answer = daemon.get(f"/images/{ident}/{name}.jpg")
        assert (answer.status, answer.json()["detail"]) == (404, f"image {ident} does not exist")
    assert made(daemon)["made"] == 0
