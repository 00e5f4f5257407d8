"""Images that snapshots of version 0.2 stored as several objects: nodes serve and remove them, and
darkroomd store migrate copies them. `spread` writes the objects as those versions did."""

import collections
import subprocess
import time

import pytest

import pictures
import s3_image
from darkroom import CONFIG, command, eventually, overrides
from s3_fixtures import begin, figures, remove, store, stored  # noqa: F401
from s3_stand_in import Fault
from uploads import check_stored

SMALL = pictures.photo_jpeg(320, 240, 2)
DAY = 86400


def end_of(content):
    return int(content.split(b" ", 4)[3])


def spread(store, *images):
    """Replaces the object of each image by its former objects, an object for each file."""
    with store.lock:
        for ident in (image["id"] for image in images):
            content, _, modified = store.objects.pop("a/b/" + s3_image.key_of(ident))
            for name, data in s3_image.files_of(content).items():
                is_json, end = name == "image.json", end_of(content)
                key = f"a/b/image/{ident}" if is_json else f"a/b/file/{ident}/{name}"
                store.objects[key] = (data, {
                    "x-amz-meta-darkroom-tag": s3_image.sum_of(data) + (f".{end}" if end else ""),
                    "content-type": "application/json" if is_json else "image/jpeg"}, modified)


def former(store):
    """Returns the keys of former objects."""
    return [key for key in store.keys() if key.startswith("a/b/file/") or
            (key.startswith("a/b/image/") and key.count("/") == 3)]


def copies(store):
    """Returns {id: content} of the images that are one object."""
    with store.lock:
        return {key[-26:]: content for key, (content, _, _) in store.objects.items()
                if key.startswith("a/b/image/") and content.startswith(b"image 1 ")}


def upload(daemon, count):
    """Returns images, the last of which ends by itself."""
    return [*(daemon.image(SMALL) for _ in range(count - 1)),
            daemon.image(SMALL, headers=[("X-Expires-After", "86400")])]


@pytest.fixture
def make(begin, store):
    """make(count) returns images with former objects, and the objects that they should have."""
    def make_images(count):
        daemon = begin("server.keep_originals=yes")
        images = upload(daemon, count)
        daemon.stop()  # a daemon that runs knows since its start that there are none
        before = stored(store)
        assert len(before) == count
        spread(store, *images)
        return images, before
    return make_images


@pytest.fixture
def migrate(store, tmp_path):
    """migrate(...) starts the command and returns the process. All are killed after the test."""
    started = []

    def start_command(*options):
        words = overrides(*store.settings(tmp_path), f"server.root={tmp_path / 'store0'}")
        started.append(subprocess.Popen(
            command("-c", CONFIG, *words, "store", "migrate", *options), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        return started[-1]

    yield start_command
    for process in started:
        process.kill()
        process.communicate()


def end(process):
    """Returns the exit status, standard output and the last line of standard error."""
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err.splitlines()[-1] if err else ""


def says(copied=0, there=0, unfinished=0, recent=0, failed=0):
    return (f"darkroomd store: {copied} image{'s' * (copied != 1)} copied, {there} there already, "
            f"{unfinished} unfinished removed, {recent} younger than a day left, {failed} failed")


def test_nodes_serve_former_images(begin, make, store):
    images, objects = make(3)
    keys = former(store)
    daemon = begin()
    with daemon.client() as c:  # of a variant before the rest of the image
        assert c.request("GET", images[0]["variants"]["thumb"]["url"]).status == 200
    for image in images:
        assert daemon.get(image["url"]).json() == image
        check_stored(daemon, image)
    assert copies(store) == objects and former(store) == keys
    assert daemon.get(images[0]["url"] + "/other.jpg").status == 404


def test_the_command_copies_all_and_removes_the_former(begin, make, migrate, store):
    images, objects = make(5)
    check_stored(begin(), images[2])  # and copies it
    assert len(copies(store)) == 1
    code, out, _ = end(migrate("--dry-run"))
    assert (code, out.split()) == (0, sorted(objects)) and len(copies(store)) == 1
    assert end(migrate()) == (0, "", says(copied=4, there=1))
    assert copies(store) == objects and not former(store)
    assert end(migrate()) == (0, "", says())
    for image in images:
        check_stored(begin(), image)


@pytest.mark.parametrize("method, part", [("GET", "b/file/"), ("PUT", "b/image/"), ("DELETE", "b/image/"),
                                          ("DELETE", "b/file/")])
def test_an_interrupted_command_is_repeated(make, migrate, store, method, part):
    _, objects = make(3)
    store.fail_once(method, part, 2, hangs=True)
    process = migrate()
    assert eventually(lambda: [k for m, k in list(store.requests) if m == method and part in k][1:])
    process.kill()
    store.release()
    code, _, said = end(migrate())
    assert code == 0 and said.endswith(" 0 failed")
    assert copies(store) == objects and not former(store)


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_damaged_image_is_left_and_can_be_removed(begin, make, migrate, store, is_lost):
    images, objects = make(3)
    bad = images[1]
    key = f"a/b/file/{bad['id']}/medium.jpg"
    with store.lock:
        data, *rest = store.objects.pop(key)
        if not is_lost:
            store.objects[key] = (data[:-1] + bytes([data[-1] ^ 1]), *rest)
    left = [key for key in former(store) if bad["id"] in key]
    process = migrate()
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (1, "")
    assert f"{bad['id']}: not migrated: a file is missing or damaged\n" in err
    assert err.endswith(says(copied=2, failed=1) + "\n")
    del objects[bad["id"]]
    assert copies(store) == objects and former(store) == left
    daemon = begin()
    assert daemon.get(bad["url"]).status == 503
    assert remove(daemon, bad).status == 204
    assert not former(store) and daemon.get(bad["url"]).status == 404


def damaged(number, part):
    """Returns a fault of the first `number` answers to a GET of each key with the part."""
    left = collections.defaultdict(lambda: number)

    def decide(method, key):
        if method != "GET" or part not in key or left[key] == 0:
            return None
        left[key] -= 1
        return Fault(change=lambda headers, body: (headers, body[:-2] + b"!\n"))
    return decide


@pytest.mark.parametrize("part", ["a/b/image/", "thumb.jpg", "a/b/file/"])
def test_content_that_is_damaged_on_its_way_is_read_again(begin, make, migrate, store, part):
    """By a GET, by the pass that removes what has ended, and by the command."""
    images, objects = make(4)
    ids = [image["id"] for image in images]
    with store.lock:
        for ident in ids[1:3]:  # whose end is not now
            store.objects[f"a/b/expiry/1000000000.{ident}"] = (b"expires\n", {}, time.time())
    store.fault = damaged(2, part)
    daemon = begin("store.sweep_interval=100ms")
    assert eventually(lambda: not store.keys("expiry/1000"), 60)
    assert copies(store) == {ident: objects[ident] for ident in ids[1:3]}
    check_stored(daemon, images[0])
    assert figures(daemon)["damaged"] >= 6 and figures(daemon)["failed"] == 0
    store.fault = damaged(2, part)
    assert end(migrate()) == (0, "", says(copied=1, there=3))
    assert copies(store) == objects and not former(store)


def test_no_pass_removes_a_damaged_image(begin, make, store):
    """Whatever its note says: it may be readable later."""
    images, objects = make(2)
    keys = former(store)
    with store.lock:
        for image in images:
            store.objects[f"a/b/expiry/1000000000.{image['id']}"] = (b"expires\n", {}, time.time())
    store.fault = damaged(1000, "a/b/file/")
    daemon = begin("store.sweep_interval=100ms")
    assert eventually(lambda: not store.keys("expiry/1000"), 60)
    for image in images:
        assert daemon.says(f"cannot read former image {image['id']}: Bad message; leaving it")
        assert daemon.get(image["url"]).status == 503
    assert figures(daemon)["failed"] >= 2 and store.keys("image/") == store.keys("image/01")
    assert former(store) == keys
    store.fault = None
    for image in images:
        check_stored(daemon, image)
    assert copies(store) == objects


def test_a_removed_image_does_not_come_back(begin, make, migrate, store):
    images, _ = make(2)
    with store.lock:
        for image, mark in zip(images, (s3_image.REMOVED, s3_image.FAILED)):
            store.objects["a/b/" + s3_image.key_of(image["id"])] = (mark, {}, time.time())
    daemon = begin()
    assert [daemon.get(image["url"]).status for image in images] == [404, 404]
    assert [remove(daemon, image).status for image in images] == [404, 404]
    assert end(migrate())[0] == 0
    assert not former(store) and not copies(store)
    assert [daemon.get(image["url"]).status for image in images] == [404, 404]


def test_a_tombstone_goes_after_the_former_objects(begin, make, store):
    """Otherwise the image would be there again."""
    images, _ = make(2)
    with store.lock:
        for image in images:
            store.objects["a/b/" + s3_image.key_of(image["id"])] = (s3_image.REMOVED, {},
                                                                    time.time() - 31 * DAY)
            store.objects[f"a/b/expiry/1000000000.{image['id']}"] = (b"expires\n", {}, time.time())
    store.fail_once("DELETE", "a/b/image/", status=507)  # the client does not repeat it
    daemon = begin("store.sweep_interval=100ms")
    assert eventually(lambda: not store.keys("image/"), 60)
    assert not former(store)
    assert [daemon.get(image["url"]).status for image in images] == [404, 404]


def test_a_delete_of_a_former_image(begin, make, migrate, store):
    images, _ = make(2)
    daemon = begin()
    assert daemon.get(images[1]["url"]).status == 200  # it is copied
    assert [remove(daemon, image).status for image in images] == [204, 204]
    assert not former(store) and not copies(store)
    assert [remove(daemon, image).status for image in images] == [404, 404]
    assert end(migrate()) == (0, "", says())
    assert [daemon.get(image["url"]).status for image in images] == [404, 404]


def test_a_delete_during_a_copy(begin, make, migrate, store):
    (image,), _ = make(1)
    daemon = begin()
    key = "a/b/" + s3_image.key_of(image["id"])
    store.fail_once("PUT", key, delays=120)  # the copy comes late, whatever the command does then
    process = migrate()
    assert eventually(lambda: ("PUT", key) in list(store.requests))
    assert remove(daemon, image).status == 204
    store.release()
    assert end(process)[0] == 0
    assert eventually(lambda: store.answered.count(("PUT", key)) ==
                      store.requests.count(("PUT", key)))
    assert not former(store) and not copies(store)
    assert daemon.get(image["url"]).status == 404


def test_unfinished_uploads(make, migrate, store):
    images, _ = make(2)
    with store.lock:
        for image in images:
            del store.objects[f"a/b/image/{image['id']}"]
        for key in former(store):
            if images[0]["id"] in key:
                data, meta, modified = store.objects[key]
                store.objects[key] = (data, meta, modified - DAY - 60)
    assert end(migrate()) == (0, "", says(unfinished=1, recent=1))
    assert {key.split("/")[3] for key in former(store)} == {images[1]["id"]}


def test_a_store_without_former_images_costs_nothing(begin, store):
    daemon = begin()
    with store.lock:
        store.requests.clear()
    assert daemon.get("/images/01M8EZGXX73291CNE5W0Y0SV3F/thumb.jpg").status == 404
    with store.lock:
        assert not [key for _, key in store.requests if "b/file/" in key or key.count("/") == 3]


def test_the_command_needs_a_store_that_can_do_it(begin, migrate, store):
    begin()
    store.is_plain = True
    code, _, said = end(migrate())
    assert code == 1 and "Operation not supported" in said
    done = subprocess.run(command("-c", CONFIG, "store", "migrate"), capture_output=True, text=True)
    assert done.returncode == 2 and "store.kind = file does not provide it" in done.stderr
