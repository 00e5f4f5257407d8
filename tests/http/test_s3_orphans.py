"""store.kind = s3: objects of images that were never stored are removed."""

import time

import pictures
from darkroom import eventually
from s3_fixtures import begin, figures, store  # noqa: F401
from s3_stand_in import Fault
from uploads import TINY, check_stored

SMALL = pictures.photo_jpeg(320, 240, 2)
DAY = 86400
ID = "01K0000000000000000000000"  # plus one character
SWEEP = "store.sweep_interval=100ms"


def put(store, key, days, body=b"x"):
    """Puts an object of an age in days."""
    with store.lock:
        store.objects["a/b/" + key] = (body, {}, time.time() - days * DAY)


def make_old(store, part, days=30):
    with store.lock:
        for key, (body, meta, _) in store.objects.items():
            if part in key:
                store.objects[key] = (body, meta, time.time() - days * DAY)


def test_old_objects_without_an_image_are_removed(begin, store):
    daemon = begin(SWEEP, "server.keep_originals=yes")
    images = [daemon.image(SMALL) for _ in range(3)]
    make_old(store, "")
    kept = store.keys()
    put(store, f"file/{ID}A/thumb.jpg", 8)
    put(store, f"file/{ID}A/medium.jpg", 8)
    put(store, f"file/{ID}B/thumb.jpg", 6)
    put(store, "file/other", 30)
    young = [f"a/b/file/{ID}B/thumb.jpg", "a/b/file/other"]
    assert eventually(lambda: store.keys() == sorted(kept + young), 20), store.keys()
    assert eventually(lambda: figures(daemon)["orphans"] == 2)
    assert daemon.says("removed 2 objects of images that were never stored")
    for image in images:
        check_stored(daemon, image)


def test_upload_that_was_interrupted(begin, store):
    """The node ends between the files and image.json."""
    daemon = begin(SWEEP)
    store.fault = lambda method, key: Fault(hangs=True) if "/image/" in key else None
    with daemon.client() as c:
        c.send(b"POST /images HTTP/1.1\r\nHost: x\r\nContent-Type: image/jpeg\r\n"
               b"Content-Length: %d\r\n\r\n" % len(TINY) + TINY)
        assert eventually(lambda: any("/image/" in key for _, key in store.requests), 20)
        daemon.kill()
    store.release()
    assert store.keys("file/") and not store.keys("image/")
    begin(SWEEP)
    make_old(store, "file/")
    assert eventually(lambda: not store.keys(), 20)


def test_many_objects(begin, store):
    """A pass has a bound, and the next one goes on behind it."""
    for i in range(60):
        for name in ("medium", "thumb"):
            put(store, f"file/01K{i:023d}/{name}.jpg", 30)
    for i in range(2400):
        put(store, f"file/01J{i:023d}/thumb.jpg", 1)
    daemon = begin(SWEEP)
    assert eventually(lambda: len(store.keys()) == 2400, 60)
    assert eventually(lambda: figures(daemon)["orphans"] == 120)


def test_image_that_is_stored_meanwhile_stays(begin, store):
    """The image is looked for again after the list, which may be old."""
    daemon = begin(SWEEP)
    image = daemon.image(SMALL)
    make_old(store, "")
    key = f"a/b/image/{image['id']}"
    hidden = store.list

    def list_without(query):
        with_image = store.objects.pop(key, None) if "image/" in query["prefix"] else None
        answer = hidden(query)
        if with_image:
            store.objects[key] = with_image
        return answer

    store.list = list_without
    passes = figures(daemon)["lists"]
    assert eventually(lambda: figures(daemon)["lists"] > passes + 8, 20)
    store.list = hidden
    check_stored(daemon, image)
    assert figures(daemon)["orphans"] == 0


def test_store_that_fails(begin, store):
    daemon = begin(SWEEP)
    put(store, f"file/{ID}A/thumb.jpg", 30)
    store.fail_once("DELETE", "thumb", status=503, code="SlowDown")
    assert eventually(lambda: not store.keys(), 20)
    store.fail_always("GET", f"image/{ID}", status=404, code="NoSuchBucket")
    put(store, f"file/{ID}A/thumb.jpg", 30)
    assert daemon.says("cannot remove objects of images that were never stored", 60)
    assert store.keys()
    store.fault = None
    assert eventually(lambda: not store.keys(), 20)
