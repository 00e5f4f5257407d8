"""store.kind = s3: stores that answer lists wrongly or have keys of others, full stores, and answers
that are not about an object of this daemon."""

import itertools
import time

import pytest

import s3_image
from darkroom import eventually
from s3_fixtures import begin, figures, is_away, remove, store, stored  # noqa: F401
from s3_stand_in import Fault
from uploads import TINY, check_stored

SWEEP = ("store.sweep_interval=100ms", "server.public_list=yes")
# Names that other programs may give: in front of and behind those of images, too long, with bytes
# that XML and URLs escape, and a directory of a web console.
ODD = ["", "!", "&amp;", "a b", "0<1>", "'\"", "\u00e4\u00f6", "~" * 200, "0" * 120, "01/\u20ac", "z&z"]


def answer_lists(store, page=1000, **wrong):
    """Makes the store answer lists of at most `page` keys. wrong: parameters of the query, and the
    values that the store uses in place of the client's."""
    right = store.list
    store.list = lambda query: right({**query, **wrong, "max-keys": str(min(page, int(query["max-keys"])))})


def add(store, key, age=0, content=b"x"):
    with store.lock:
        store.objects["a/b/" + key] = (content, {}, time.time() - age)


@pytest.mark.parametrize("wrong", [{"prefix": ""}, {"prefix": "a/b/"}, {"prefix": "a/b/image/"}],
                         ids=lambda wrong: wrong["prefix"])
def test_list_of_other_keys_removes_nothing(begin, store, wrong):
    daemon = begin(*SWEEP, idempotency_age="1s", max_age="365d")
    images = [daemon.image(TINY) for _ in range(2)]
    with store.lock:  # old enough for every sweep
        for key, (body, meta, _) in store.objects.items():
            store.objects[key] = body, meta, time.time() - 30 * 86400
    add(store, "other", 30 * 86400)
    kept = store.keys()
    answer_lists(store, **wrong)
    assert eventually(lambda: figures(daemon)["damaged"] > 20)
    assert daemon.says("the answer is not right: content")
    assert store.keys() == kept
    for image in images:
        check_stored(daemon, image)


def test_list_that_does_not_go_on_ends(begin, store):
    daemon = begin("server.public_list=yes")
    image = daemon.image(TINY)
    content, shard = stored(store)[image["id"]], s3_image.key_of(image["id"])[:9]
    others = itertools.islice((ident for ident in (f"01J{i:023d}" for i in itertools.count())
                               if s3_image.key_of(ident).startswith(shard)), 8)
    for ident in others:
        add(store, shard + ident, content=s3_image.renamed(content, image["id"], ident))
    answer_lists(store, page=2, **{"start-after": ""})
    assert is_away(daemon.get("/images"))
    assert figures(daemon)["damaged"] >= 6
    del store.list
    answer_lists(store, page=2)
    assert len(daemon.get("/images").json()["images"]) == 9


@pytest.mark.parametrize("page", [1, 3, 1000])
def test_keys_of_others_hide_none(begin, store, page):
    daemon = begin(*SWEEP)
    for kind in ("image/", "image/00/", "image/77/", "expiry/", "keys/", "keys/00"):
        for name in ODD:
            add(store, kind + name)
    others = store.keys()
    images = [daemon.image(TINY)["id"] for _ in range(3)]
    ends = daemon.image(TINY, headers=[("X-Expires-After", "1")])
    answer_lists(store, page)
    assert eventually(lambda: [image["id"] for image in daemon.get("/images").json()["images"]] == images)
    assert eventually(lambda: not store.keys(f"expiry/{ends['expires']}")
                      and ends["id"] not in stored(store)), daemon.log
    assert set(others) <= set(store.keys())
    assert figures(daemon)["damaged"] == 0 and figures(daemon)["foreign"] > 0


def test_full_store_is_told_and_serves_what_it_has(begin, store):
    daemon = begin()
    image = daemon.image(TINY)

    def is_refused():
        answer = daemon.upload(TINY)
        check_stored(daemon, image)
        return (answer.status, answer.slug) == (507, "storage-full")

    store.fail_always("PUT", "", status=403, code="QuotaExceeded")
    assert is_refused()
    store.fail_always("PUT", "", status=507, code="InsufficientStorage")
    began, results = time.monotonic(), []
    # Longer, and more often, than makes a store count as away.
    assert eventually(lambda: (results.append(is_refused()), time.monotonic() - began > 1.2
                               and len(results) > 8)[1], step=0.08)
    assert all(results)
    assert (figures(daemon)["outages"], figures(daemon)["retried"]) == (0, 0)
    store.fault = None
    check_stored(daemon, daemon.image(TINY))
    assert remove(daemon, image).status == 204


@pytest.mark.parametrize("part", ["", "/image/"])
def test_removal_needs_room_for_its_tombstone(begin, store, part):
    """Without one, a late PUT of the upload could bring the image back. So it stays, as a whole."""
    daemon = begin("store.sweep_interval=100ms")
    image = daemon.image(TINY)
    ends = daemon.image(TINY, headers=[("X-Expires-After", "2")])
    store.fail_always("PUT", part, status=507, code="InsufficientStorage")
    refused = remove(daemon, image)
    assert (refused.status, refused.slug) == (507, "storage-full")
    assert "raise its quota, or let a lifecycle rule end old images" in refused.json()["detail"]
    check_stored(daemon, image)
    if part:  # otherwise no node can begin a pass
        assert daemon.says("cannot remove an image: No space left on device; trying again")
    assert eventually(lambda: daemon.get(ends["variants"]["thumb"]["url"]).status == 404)
    assert not [key for method, key in store.requests if method == "DELETE" and "/image/" in key]
    store.fault = None
    assert remove(daemon, image).status == 204 and daemon.get(image["url"]).status == 404
    assert eventually(lambda: not stored(store))


def test_answer_about_no_object_of_this_daemon_is_refused(begin, store):
    daemon = begin(s3_timeout="1s")
    image = daemon.image(TINY)
    url = image["variants"]["thumb"]["url"]
    good = daemon.get(url)
    for field, value in (("ETag", ""), ("Content-Range", f"bytes 0-4095/{1 << 50}"),
                         ("Content-Range", "bytes 0-10/20"), ("Content-Range", "")):
        store.fault = lambda method, key: Fault(
            change=lambda headers, body: ({**headers, field: value}, body)) if "/image/" in key else None
        head = daemon.client().request("HEAD", url)
        assert head.status == 503 and head["etag"] is None, (field, value)
    store.fault = None
    assert daemon.get(url).body == good.body


def age_all(store, seconds):
    with store.lock:
        for key, (body, meta, modified) in store.objects.items():
            store.objects[key] = body, meta, modified - seconds


def foreign_without_end(store, kind):
    """Makes the store's lists of some keys go on for ever. Returns a list of as many as it gave."""
    right, given = store.list, []

    def answer(query):
        if not query["prefix"].startswith("a/b/" + kind):
            return right(query)
        first, count = len(given), int(query["max-keys"])  # the stand-in has its lock
        names = "".join(f"<Contents><Key>{query['prefix']}~{first + i:09}</Key></Contents>"
                        for i in range(count))
        given.extend([None] * count)
        return 200, {}, ("<ListBucketResult><IsTruncated>true</IsTruncated>"
                         f"{names}</ListBucketResult>").encode()

    store.list = answer
    return given


def test_list_without_end_ends_with_the_daemon(begin, store):
    daemon = begin(*SWEEP)
    given = foreign_without_end(store, "expiry/")
    assert eventually(lambda: len(given) > 5000)
    daemon.stop()


def test_tombstones_cost_few_lists(begin, store):
    """A page that lies behind many tombstones of one shard."""
    daemon = begin("server.public_list=yes")
    image = daemon.image(TINY)
    shard = s3_image.key_of(image["id"])[:9]
    for i in range(1000):
        add(store, f"{shard}01J{i:023d}", content=s3_image.REMOVED)
    with store.lock:
        store.requests.clear()
    assert [one["id"] for one in daemon.get("/images").json()["images"]] == [image["id"]]
    with store.lock:
        lists = store.requests.count(("GET", ""))
    assert lists < 256 + 40, lists  # of a run of the sweep as well


def notes(store):
    """Returns {id: days until the note is due}."""
    times = (key.split("/")[3].split(".") for key in store.keys("expiry/"))
    return {ident: (int(second) - time.time()) / 86400 for second, ident in times}


@pytest.mark.parametrize("bare", [False, True])
def test_old_tombstones_go_without_a_condition(begin, store, bare):
    """By their notes, and not before their time. Some stores refuse conditions of DELETE."""
    store.tag_quotes = '"' if bare else ""
    daemon = begin(*SWEEP)
    old, young = (daemon.image(TINY)["id"] for _ in range(2))
    with daemon.client() as c:
        for ident in (old, young):
            assert c.request("DELETE", f"/images/{ident}").status == 204
    assert notes(store).keys() == {old, young} and 30.9 < notes(store)[old] <= 31.01
    with store.lock:
        key = "a/b/" + s3_image.key_of(old)
        store.objects[key] = (*store.objects[key][:2], time.time() - 31 * 86400)
    for ident in (old, young):
        add(store, f"expiry/1000000000.{ident}")
    assert eventually(lambda: not store.keys("expiry/1000"))
    assert store.keys("image/") == ["a/b/" + s3_image.key_of(young)]
    assert figures(daemon)["tombstones"] == 1 and daemon.get("/stats").json()["store"]["removed"]["expired"] == 0


def test_refused_tombstone_removes_no_image(begin, store):
    """The object changes at each attempt. The note stays, because another removal may have it as well."""
    daemon = begin()
    image = daemon.image(TINY)
    store.fail_always("PUT", "/image/", status=412, code="PreconditionFailed")
    assert is_away(remove(daemon, image))
    assert store.keys("expiry/")
    check_stored(daemon, image)


def test_wrong_note_removes_no_image(begin, store):
    """The object tells when its image ends."""
    daemon = begin(*SWEEP)
    images = [daemon.image(TINY), daemon.image(TINY, headers=[("X-Expires-After", "86400")])]
    for image in images:
        add(store, f"expiry/1000000000.{image['id']}")
    assert eventually(lambda: not store.keys("expiry/1000"))
    for image in images:
        check_stored(daemon, image)


@pytest.mark.parametrize("days", [-400, 400])
def test_absurd_date_ends_no_image(begin, store, days):
    daemon = begin(*SWEEP)
    image = daemon.image(TINY, headers=[("X-Expires-After", "86400")])
    store.ahead_s = days * 86400
    other = daemon.image(TINY, headers=[("X-Expires-After", "86400")])
    runs = len(store.requests)
    assert eventually(lambda: len(store.requests) > runs + 200)
    for one in (image, other):
        assert daemon.get(one["url"]).status == 200
        check_stored(daemon, one)
    assert figures(daemon)["skew_s"] > 399 * 86400
    store.ahead_s = 0
    check_stored(daemon, other)
    assert sorted(stored(store)) == sorted([image["id"], other["id"]])
