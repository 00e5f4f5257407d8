"""store.kind = s3 with a real store: Ceph's object gateway. Skipped where it is not installed, which
scripts/setup does for the nightly tier only."""

import time

import pytest

import pictures
from darkroom import eventually, slow
from s3_gateway import BUCKET, Gateway, missing
from test_idempotency import OTHER, is_repeated, post
from test_s3_stream import HUGE, PART, PHOTO, THIRD
from uploads import TINY, check_stored, in_parallel

SMALL = pictures.photo_jpeg(320, 240, 2)

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"not installed: {', '.join(missing())}")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    made = Gateway(tmp_path_factory.mktemp("gateway"))
    yield made
    made.stop()


@pytest.fixture
def begin(start, gateway, tmp_path):
    return lambda *settings, **of_store: start(*gateway.settings(tmp_path, **of_store), *settings)


def remove(daemon, image):
    with daemon.client() as c:
        return c.request("DELETE", image["url"]).status


def test_life_of_an_image(begin):
    one, two = begin("server.keep_originals=yes"), begin()
    image = one.image(SMALL)
    check_stored(two, image)
    assert two.get(image["url"]).json() == image
    with two.client() as c:
        variant = image["variants"]["thumb"]["url"]
        whole = c.request("GET", variant)
        part = c.request("GET", variant, headers=[("Range", "bytes=-5")])
        assert part.status == 206 and part.body == whole.body[-5:]
        assert c.request("GET", variant,
                         headers=[("If-None-Match", whole["etag"])]).status == 304
    assert two.get(f"{image['url']}/huge.jpg").status == 404
    assert remove(two, image) == 204
    assert one.get(image["url"]).status == one.get(variant).status == 404
    assert remove(one, image) == 404


def test_content_that_is_not_the_signed_one_is_refused(gateway):
    """The daemon relies on it."""
    assert gateway.put(f"/{BUCKET}/other") == 200
    assert gateway.put(f"/{BUCKET}/other", b"x") == 400


def test_large_object(begin):
    daemon = begin(*HUGE)
    image = daemon.image(PHOTO)
    url, length = image["variants"]["huge"]["url"], image["variants"]["huge"]["bytes"]
    whole = daemon.get(url)
    assert len(whole.body) == length > THIRD
    check_stored(daemon, image)
    with daemon.client() as c:
        for first, last in ((9, THIRD + 5), (length - 7, length - 1), (0, PART)):
            part = c.request("GET", url, headers=[("Range", f"bytes={first}-{last}")])
            assert part.status == 206 and part.body == whole.body[first:last + 1]
    assert remove(daemon, image) == 204


def test_list_and_end(begin):
    daemon = begin("server.public_list=yes", "store.sweep_interval=100ms")
    images = in_parallel(4, lambda _: daemon.image(TINY))
    listed = daemon.get("/images?limit=100").json()["images"]
    assert sorted(images, key=lambda image: image["id"]) == listed
    first = daemon.get("/images?limit=2").json()
    assert first["images"] == listed[:2]
    assert daemon.get(first["next"]).json()["images"] == listed[2:]
    answer = daemon.upload(TINY, headers=[("X-Expires-After", "1")])
    assert answer.status == 201
    assert eventually(lambda: daemon.get("/stats").json()["store"]["removed"]["expired"] == 1, 30)
    for image in images:
        assert remove(daemon, image) == 204
    assert daemon.get("/images").json()["images"] == []


def test_keys_are_shared(begin):
    one, two = begin("server.public_list=yes"), begin()
    first = post(one, "a")
    assert is_repeated(post(two, "a"), first)
    assert post(two, "a", OTHER).status == 422
    answers = in_parallel(8, lambda i: post((one, two)[i % 2], "b"))
    assert {answer.status for answer in answers} <= {201, 409}
    assert len({answer["location"] for answer in answers if answer.status == 201}) == 1
    images = one.get("/images?limit=100").json()["images"]
    assert len(images) == 2
    for image in images:
        assert remove(one, image) == 204


def test_gateway_that_is_killed_and_started_again(begin, gateway):
    daemon = begin()
    image = daemon.image(SMALL)
    gateway.kill("rgw")
    away = lambda: daemon.get("/stats").json()["store"]["s3"]["is_away"]  # noqa: E731
    assert eventually(lambda: daemon.upload(TINY).status == 503 and away(), 30)
    gateway.start("rgw")
    assert eventually(gateway.serves, 60)
    back = time.monotonic()
    assert eventually(lambda: daemon.upload(TINY).status == 201, slow(10))
    assert time.monotonic() - back < slow(2)
    check_stored(daemon, image)


def test_outage_with_a_spool(begin, gateway):
    daemon = begin(s3_spool="file")
    gateway.kill("rgw")
    ids = []
    while not daemon.get("/stats").json()["store"]["s3"]["is_away"] or len(ids) < 3:
        answer = daemon.upload(TINY, headers=[("Prefer", "respond-async")])
        assert answer.status == 202, answer
        ids.append(answer.json()["images"][0]["id"])
    gateway.start("rgw")
    assert eventually(gateway.serves, 60)
    for ident in ids:
        assert eventually(lambda: daemon.get(f"/images/{ident}").status == 200, 20)  # noqa: B023
        check_stored(daemon, daemon.get(f"/images/{ident}").json())
