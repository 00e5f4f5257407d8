"""store.dedupe: a file that its client uploads again gets the image that it made."""

import pytest

from client import form, form_files
from darkroom import overrides, run
from s3_fixtures import begin, store  # noqa: F401
from test_idempotency import OTHER, SMALL, ids, key
from uploads import in_parallel

DEDUPE = "store.dedupe=yes"
PROXY = "server.trusted_proxies=127.0.0.1"


def one(answer):
    assert answer.status == 201, answer
    image, = ids(answer)
    return image


@pytest.mark.also_with("seda", "thread-per-connection")
def test_the_same_file_has_one_image(start):
    daemon = start(DEDUPE)
    first, again = daemon.upload(SMALL), daemon.upload(SMALL)
    assert one(first) == one(again) and again["location"] == first["location"]
    assert again["idempotent-replayed"] == "true" and first["idempotent-replayed"] is None
    assert again.json() == first.json()
    assert one(daemon.upload(OTHER)) != one(first)
    assert len(daemon.stored()) == 2
    daemon.kill()
    daemon = start(DEDUPE, store=daemon.store)
    assert one(daemon.upload(SMALL)) == one(first)


def test_names_do_not_count(start):
    daemon = start(DEDUPE)
    first = one(daemon.upload(SMALL))
    for name in ("a.jpg", "b.jpg"):
        kind, body = form([("file", name, "image/jpeg", SMALL)])
        assert one(daemon.upload(body, kind)) == first


def test_it_is_off_by_default(start):
    daemon = start()
    assert one(daemon.upload(SMALL)) != one(daemon.upload(SMALL))


def test_a_removed_image_is_made_again(start):
    daemon = start(DEDUPE)
    first = daemon.upload(SMALL)
    with daemon.client() as c:
        assert c.request("DELETE", first["location"]).status == 204
    again = daemon.upload(SMALL)
    assert one(again) != one(first) and again["idempotent-replayed"] is None
    assert one(daemon.upload(SMALL)) == one(again)
    assert daemon.stored() == ids(again)


def test_another_client_has_an_image_of_its_own(start):
    daemon = start(DEDUPE, PROXY)
    images = {one(daemon.upload(SMALL, headers=[("X-Forwarded-For", f"192.0.2.{i}")]))
              for i in (1, 2, 1, 2)}
    assert len(images) == 2


@pytest.mark.parametrize("setting", ["variant.medium.quality=31", "server.keep_originals=yes",
                                     "variant.more.operations=scale 20x20 inside"])
def test_another_plan_makes_another_image(start, setting):
    daemon = start(DEDUPE)
    first = one(daemon.upload(SMALL))
    daemon.stop()
    daemon = start(DEDUPE, setting, store=daemon.store)
    assert one(daemon.upload(SMALL)) != first


def test_what_belongs_to_one_upload_is_not_shared(start):
    daemon = start(DEDUPE)
    first = one(daemon.upload(SMALL))
    expiring = one(daemon.upload(SMALL, headers=[("X-Expires-After", "1h")]))
    keyed = one(daemon.upload(SMALL, headers=[key("a")]))
    kind, body = form_files(SMALL, OTHER)
    several = ids(daemon.upload(body, kind)) + ids(daemon.upload(body, kind))
    assert len({first, expiring, keyed, *several}) == 7
    assert one(daemon.upload(SMALL)) == first
    assert one(daemon.upload(SMALL, headers=[key("a")])) == keyed


@pytest.mark.every_policy
def test_uploads_at_once_have_all_an_image(start):
    daemon = start(DEDUPE)
    images = set(in_parallel(8, lambda _: one(daemon.upload(SMALL))))
    assert set(daemon.stored()) == images
    assert one(daemon.upload(SMALL)) in images


def test_nodes_share_what_they_know(begin):
    first, second = begin(DEDUPE), begin(DEDUPE)
    image = one(first.upload(SMALL))
    assert one(second.upload(SMALL)) == image
    with second.client() as c:
        assert c.request("DELETE", f"/images/{image}").status == 204
    again = one(first.upload(SMALL))
    assert again != image and one(second.upload(SMALL)) == again


def test_files_are_remembered_for_an_age():
    done = run("--check", *overrides(DEDUPE, "store.idempotency_age=0"))
    assert done.returncode == 78
    assert "store.dedupe" in done.stderr and "expected no, or an age" in done.stderr
