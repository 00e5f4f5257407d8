"""store.verify: no byte is sent that the disk has changed, and what can be made again is.
DARKROOM_PLACES is the number of random places (40)."""

import json
import os
import random
import re

import pytest

import pictures
from darkroom import eventually, load
from store_files import directory_of
from test_record import TAG, has_attributes
from test_store_check import flip
from test_store_tool import tool
from test_tokens import make

SMALL = pictures.photo_jpeg(320, 240, 2)
# Its original and its largest variant have more bytes than are compared in one piece.
LARGE = pictures.photo_jpeg(900, 700, 3, 95)
PLACES = int(os.environ.get("DARKROOM_PLACES", load(40, 20)))
KEEP = "server.keep_originals=yes"
BIG = ("variant.big.operations=scale 900x900 inside", "variant.big.quality=92")


@pytest.fixture
def site(start, tmp_path):
    """A daemon whose clients may upload, and read originals."""
    path, (bearer, line) = tmp_path / "tokens", make("all", "upload", "original")
    path.write_text(line + "\n")
    path.chmod(0o600)

    def begin(*settings, **options):
        daemon = start(f"access.tokens_file={path}", KEEP, *settings, **options)
        daemon.bearer = [("Authorization", f"Bearer {bearer}")]
        return daemon
    return begin


def counts(daemon):
    store = daemon.get("/stats").json()["store"]
    return store["damaged"], store["lost"]


def forget(path):
    """Lets the page cache forget the file, as time does."""
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def check_refused(answer, path):
    assert answer.status == 503 and answer["cache-control"] == "no-store", answer
    assert answer.json()["type"] == "urn:darkroom:problem:damaged-file"
    assert answer.json()["detail"].startswith(f"{path.name} of image {path.parent.name} was damaged")
    assert int(answer["retry-after"]) > 0 and "etag" not in map(str.lower, answer.headers)


@pytest.mark.every_policy
@pytest.mark.parametrize("source,name,how", [(SMALL, "thumb", {}), (LARGE, "big", {}),
                                             (LARGE, "big", {"method": "HEAD"}),
                                             (SMALL, "thumb", {"headers": [("Range", "bytes=0-9")]}),
                                             (LARGE, "big", {"headers": [("Range", "bytes=-9")]})])
def test_damaged_variant_is_refused_moved_away_and_made_again(start, source, name, how):
    daemon = start(KEEP, *BIG)
    image = daemon.image(source)
    url, path = image["variants"][name]["url"], directory_of(daemon.store, image["id"]) / f"{name}.jpg"
    good = daemon.get(url)
    flip(path, random.Random(1))
    bad = path.read_bytes()
    known = daemon.get(url, headers=[("If-None-Match", good["etag"])])
    assert known.status == 304  # what the client has is what was stored
    method = how.get("method", "GET")
    answer = daemon.client().request(method, url, headers=how.get("headers", ()))
    if method == "HEAD":
        assert answer.status == 503
    else:
        check_refused(answer, path)
    moved = daemon.store / ".quarantine" / image["id"] / path.name
    assert moved.read_bytes() == bad
    assert daemon.says(f"image {image['id']}: {path.name} is damaged; it is in .quarantine now, and "
                       "made again from the original")
    assert eventually(lambda: daemon.get(url).status == 200)
    again = daemon.get(url)
    assert (again.body, again["etag"]) == (good.body, good["etag"])
    assert counts(daemon) == (1, 0)
    assert 'darkroom_store_damaged_files_total{made="again"} 1' in daemon.get("/metrics").body.decode()
    assert tool(daemon.store, "check").returncode == 0


def test_damage_without_an_original_stays_an_error_until_a_copy_is_there(start):
    daemon = start("server.keep_originals=no")
    image = daemon.image(SMALL)
    path = directory_of(daemon.store, image["id"]) / "thumb.jpg"
    good = path.read_bytes()
    flip(path, random.Random(2))
    for _ in range(3):
        answer = daemon.get(image["variants"]["thumb"]["url"])
        check_refused(answer, path)
        assert "cannot be made again" in answer.json()["detail"] and answer["retry-after"] == "3600"
    assert daemon.says(f"image {image['id']}: thumb.jpg is damaged, and cannot be made again; "
                       "it is answered 503 until a good copy is in its place")
    assert counts(daemon) == (0, 1)
    moved = daemon.store / ".quarantine" / image["id"] / path.name
    moved.write_bytes(good)
    moved.rename(path)
    assert daemon.fetch(image, "thumb") == good
    assert daemon.fetch(image, "medium")


def test_damaged_metadata_are_refused_and_left_out_of_lists(start):
    # A variant that is named like them does not mean that they can be made again.
    daemon = start(KEEP, "server.public_list=yes", "variant.image.operations=scale 90x90 inside")
    image, other = daemon.image(SMALL), daemon.image(LARGE)
    path = directory_of(daemon.store, image["id"]) / "image.json"
    good = path.read_bytes()
    path.write_bytes(good.replace(b'"width":320', b'"width":330', 1))
    for _ in range(3):
        check_refused(daemon.get(image["url"]), path)
    assert daemon.fetch(image, "thumb")
    assert [i["id"] for i in daemon.get("/images").json()["images"]] == [other["id"]]
    assert path.exists()  # without it nothing would know the image
    path.write_bytes(good)
    assert daemon.get(image["url"]).json()["width"] == 320
    assert counts(daemon) == (0, 3)


def test_damaged_original_is_never_used(site):
    daemon = site()
    image = daemon.image(SMALL, headers=daemon.bearer)
    directory = directory_of(daemon.store, image["id"])
    original, thumb = directory / "original.jpg", directory / "thumb.jpg"
    flip(original, random.Random(3))
    flip(thumb, random.Random(3))
    check_refused(daemon.get(f"{image['url']}/thumb.jpg"), thumb)
    assert daemon.says(f"cannot remake image {image['id']}: its original or its image.json is damaged")
    for _ in range(2):
        answer = daemon.get(f"{image['url']}/original.jpg", headers=daemon.bearer)
        check_refused(answer, original)
        assert "cannot be made again" in answer.json()["detail"]
    check_refused(daemon.get(f"{image['url']}/thumb.jpg"), thumb)
    assert not thumb.exists() and not original.exists()
    assert daemon.fetch(image, "medium")


def test_file_without_an_attribute_is_compared_with_the_record(start):
    daemon = start(KEEP)
    image = daemon.image(SMALL)
    path = directory_of(daemon.store, image["id"]) / "thumb.jpg"
    good = path.read_bytes()
    if has_attributes(path):
        os.removexattr(path, TAG)
    assert daemon.fetch(image, "thumb") == good
    flip(path, random.Random(4))
    check_refused(daemon.get(f"{image['url']}/thumb.jpg"), path)
    assert eventually(lambda: daemon.get(f"{image['url']}/thumb.jpg").status == 200)
    assert daemon.fetch(image, "thumb") == good


def test_verify_can_be_turned_off(start):
    daemon = start("store.verify=no")
    image = daemon.image(SMALL)
    path = directory_of(daemon.store, image["id"]) / "thumb.jpg"
    flip(path, random.Random(5))
    assert daemon.fetch(image, "thumb") == path.read_bytes()


def damage(path, rng):
    """Changes the file at a random place, or cuts it there."""
    data = bytearray(path.read_bytes())
    at = rng.randrange(len(data))
    if rng.random() < 0.3:
        os.truncate(path, at)
        return f"cut to {at} of {len(data)}"
    with open(path, "r+b") as f:
        f.seek(at)
        f.write(bytes([data[at] ^ 1 << rng.randrange(8)]))
    return f"a bit at {at} of {len(data)}"


def ask(daemon, url, rng, good):
    """Asks in one of the ways in which a file is sent. What is sent must be right."""
    at = rng.randrange(len(good))
    fields = rng.choice([[], [], [("Range", f"bytes={at}-{at + 99}")], [("Range", f"bytes={at}-")]])
    answer = daemon.get(url, headers=[*daemon.bearer, *fields])
    assert answer.status in (200, 206, 503), answer
    if answer.status == 206:
        first = int(re.match(r"bytes (\d+)-", answer["content-range"])[1])
        assert answer.body == good[first:first + len(answer.body)]
    elif answer.status == 200:
        assert answer.body == good
    return answer.status


def test_no_wrong_byte_is_sent_wherever_the_disk_changes_one(site):
    seed = int(os.environ.get("DARKROOM_SEED", random.randrange(1 << 32)))
    print("DARKROOM_SEED", seed)
    rng = random.Random(seed)
    daemon = site(*BIG)
    images = [daemon.image(source, headers=daemon.bearer) for source in (SMALL, LARGE, SMALL, LARGE)]
    files = {}
    for image in images:
        for path in directory_of(daemon.store, image["id"]).iterdir():
            url = image["url"] + ("" if path.name == "image.json" else f"/{path.name}")
            files[path] = url, daemon.get(url, headers=daemon.bearer).body
    for _ in range(PLACES):
        path = rng.choice(sorted(files))
        url, good = files[path]
        stored = path.read_bytes()
        what = f"{path.name}: {damage(path, rng)}"
        if rng.random() < 0.5:
            forget(path)
        # An image that was healed before may be made once more meanwhile.
        assert ask(daemon, url, rng, good) == 503 or path.read_bytes() == stored, what
        if path.name in ("image.json", "original.jpg"):  # a copy has to come back
            assert ask(daemon, url, rng, good) == 503, what
            moved = daemon.store / ".quarantine" / path.parent.name / path.name
            if moved.exists():
                moved.rename(path)
            path.write_bytes(stored)
        assert eventually(lambda: ask(daemon, url, rng, good) != 503), what
        assert path.read_bytes() == stored, what
    assert tool(daemon.store, "check").returncode == 0
    for path, (url, good) in files.items():
        assert daemon.get(url, headers=daemon.bearer).body == good
