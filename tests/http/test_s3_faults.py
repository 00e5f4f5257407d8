"""store.kind = s3: what becomes of images when the object store fails."""

import os
import re

import pytest

import pictures
import s3_image
from darkroom import IS_SANITIZED, ROOT, eventually, slow
from s3_fixtures import (all_share, begin, change, due, figures, is_away, remove, shared,  # noqa: F401
                         store, stored)
from s3_stand_in import Fault, Store
from test_tokens import make
from uploads import TINY, check_stored, in_parallel

def name_of(fault):
    return "-".join(str(fault["status"]) if key == "status" else key for key in fault)


SMALL = pictures.photo_jpeg(320, 240, 2)

ONCE = [
    dict(status=500, code="InternalError"),
    dict(status=503, code="SlowDown"),
    dict(status=503, code="ServiceUnavailable"),
    dict(status=502, code="a long page " * 1000),
    dict(status=403, code="InvalidAccessKeyId"),
    dict(status=408, code="RequestTimeout"),
    dict(status=404, code="NoSuchBucket"),
    dict(status=301, code="PermanentRedirect"),
    dict(cut=0),
    dict(cut=0, resets=True),
    dict(is_lost=True),
    dict(hangs=True),
    dict(change=lambda headers, body: ({"Server": "x"}, body[:-1] + b"!" if body else body)),
    dict(change=lambda headers, body: ({**headers, "Content-Length": str(len(body) + 5)}, body),
         cut=10000000),
]


@pytest.mark.parametrize("fault", ONCE, ids=name_of)
@pytest.mark.parametrize("method", ["PUT", "GET"])
def test_a_fault_is_tried_again(shared, fault, method):
    """Each kind of request meets each fault once, and its client does not see it."""
    daemon, store = shared
    image = daemon.image(SMALL)
    store.fail_once(method, "/image/", **fault)
    if method == "PUT":
        other = daemon.image(SMALL)
        check_stored(daemon, other)
        assert remove(daemon, other).status == 204
        store.fail_once(method, "/image/", **fault)
        assert remove(daemon, image).status == 204
        assert not stored(store)
    elif method == "GET":
        check_stored(daemon, image)
        store.fail_once(method, "/image/", **fault)
        assert daemon.get(image["url"]).json() == image
        store.fail_once(method, "/image/", 2, **fault)
        check_stored(daemon, image)
        store.fail_once(method, "/image/", **fault)
        assert remove(daemon, image).status == 204
        assert not stored(store)


def test_content_that_is_damaged_on_its_way_is_sent_again(begin, store):
    daemon = begin()
    store.fail_once("PUT", "/image/", damages=True)
    check_stored(daemon, daemon.image(SMALL))
    assert figures(daemon)["rejected"] == 1
    store.fail_always("PUT", "/image/", damages=True)
    assert is_away(daemon.upload(SMALL))


@pytest.mark.parametrize("resets", [False, True])
def test_connection_that_ends_at_every_byte(shared, resets):
    """The answers of the store end at every byte, once. No answer of the daemon is wrong."""
    daemon, store = shared
    images = [daemon.image(TINY) for _ in range(8)]
    url = "/blurred.jpg"
    contents = [daemon.get(image["url"] + url).body for image in images]
    lengths = {}
    for part in (url, ""):
        with store.lock:
            store.longest = 0
        daemon.get(images[0]["url"] + part)
        lengths[part] = store.longest
    cuts = {}  # by id; each is used up by one request

    def decide(method, key):
        cut = cuts.pop(next((id for id in cuts if id in key), None), None)
        return None if cut is None else Fault(cut=cut, resets=resets)

    store.fault = decide

    def work(i):
        with daemon.client() as c:
            for part, length in lengths.items():
                for cut in range(i, length, 8 * (7 if IS_SANITIZED else 1)):
                    with store.lock:
                        cuts[images[i]["id"]] = cut
                    answer = c.request("GET", images[i]["url"] + part)
                    assert answer.status == 200, (cut, answer, daemon.log[-2000:])
                    assert answer.body == contents[i] if part else answer.json() == images[i]

    in_parallel(8, work)
    for cut in range(0, 120, 5):
        store.fail_once("PUT", "image/", cut=cut, resets=resets)
        check_stored(daemon, daemon.image(TINY))


FOREVER = [dict(status=500, code="InternalError"), dict(status=503, code="SlowDown"),
           dict(cut=0, resets=True), dict(cut=40), dict(hangs=True),
           dict(change=lambda headers, body: ({"Server": "x"}, b"x" * len(body)))]


@pytest.mark.parametrize("fault", FOREVER, ids=name_of)
def test_image_that_cannot_be_stored_is_not_acknowledged(shared, fault):
    daemon, store = shared
    store.fail_always("PUT", "/image/", **fault)
    answer = daemon.upload(SMALL)
    if "change" in fault:  # the store says to the second attempt that the object is there
        assert answer.status == 201
    else:
        assert is_away(answer)
    store.release()
    for ident in stored(store):  # its answer was lost; then it is whole
        image = daemon.get(f"/images/{ident}").json()
        check_stored(daemon, image)
    assert eventually(lambda: daemon.upload(SMALL).status == 201, 20)
    check_stored(daemon, daemon.image(SMALL))


@pytest.mark.parametrize("fault", FOREVER, ids=name_of)
def test_file_that_cannot_be_read_is_not_served(shared, fault):
    daemon, store = shared
    image = daemon.image(SMALL)
    store.fail_always("GET", "/image/", **fault)
    answer = daemon.get(image["variants"]["thumb"]["url"])
    assert is_away(answer), answer
    store.release()
    assert eventually(lambda: daemon.get(image["variants"]["thumb"]["url"]).status == 200, 20)


def test_removal_that_fails_can_be_repeated(begin, store):
    daemon = begin()
    image = daemon.image(SMALL)
    store.fail_always("PUT", "/image/", status=500, code="InternalError")
    assert is_away(remove(daemon, image))
    check_stored(daemon, image)
    store.fault = None
    assert eventually(lambda: remove(daemon, image).status == 204, 20)
    assert not stored(store)


def test_damaged_object_is_not_served(begin, store):
    daemon = begin()
    image = daemon.image(SMALL)
    whole = stored(store)[image["id"]]
    thumb = s3_image.files_of(whole)["thumb.jpg"]
    for piece in (thumb[-100:], b"image 1", b"image.json", b"original.jpg", b"\n\n", b'"url"'):
        change(store, image, lambda _: whole.replace(piece, bytes(len(piece))))  # noqa: B023
        answer = daemon.get(image["variants"]["thumb"]["url"])
        assert answer.status == 503 and "damaged" in answer.json()["detail"]
        change(store, image, lambda _: whole)
        check_stored(daemon, image)


def test_object_of_another_image_is_not_served(begin, store):
    daemon = begin()
    one, two = daemon.image(SMALL), daemon.image(TINY)
    content = stored(store)[two["id"]]
    change(store, one, lambda _: content)
    check_stored(daemon, two)
    for url in (one["url"], one["variants"]["thumb"]["url"]):
        assert daemon.get(url).status == 503
    assert remove(daemon, one).status == 204
    assert list(stored(store)) == [two["id"]]


def test_entity_tags_that_a_proxy_makes_weak(begin, store):
    store.is_weak = True
    daemon = begin()
    key = [("Idempotency-Key", '"a"')]
    image = daemon.image(SMALL, headers=key)
    assert daemon.image(SMALL, headers=key)["id"] == image["id"]
    check_stored(daemon, image)
    assert remove(daemon, image).status == 204
    assert not stored(store) and daemon.get(image["url"]).status == 404


def test_damaged_object_can_be_removed(begin, store):
    """By a client, and by the sweep, which goes on."""
    daemon = begin("store.sweep_interval=100ms")
    images = [daemon.image(TINY, headers=headers)
              for headers in ([], [("X-Expires-After", "1")], [("X-Expires-After", "2")])]
    for image in images[:2]:
        change(store, image, lambda content: content.replace(b"image 1", b"image 9"))
    assert remove(daemon, images[0]).status == 204
    assert eventually(lambda: not stored(store), slow(20))
    assert eventually(lambda: not due(store))


@pytest.mark.parametrize("answer", [(412, "PreconditionFailed"), (409, "ConditionalRequestConflict"),
                                    (404, "NoSuchKey")], ids=lambda answer: answer[0])
def test_store_that_refuses_every_put(shared, answer):
    """An answer that tells what cannot be is no statement about the image, or the daemon's disk."""
    daemon, store = shared
    image = daemon.image(TINY)
    store.fault = lambda method, key: Fault(*answer) if method == "PUT" else None
    for headers in ([], [("Idempotency-Key", '"a"')]):
        refused = daemon.upload(TINY, headers=headers)
        assert is_away(refused) or refused.slug == "idempotency-key-in-use", refused
    assert is_away(remove(daemon, image))
    store.fault = None
    check_stored(daemon, image)


def test_token_is_not_refused_for_an_image_that_cannot_be_read(begin, store, tmp_path):
    token, line = make("a", "upload", "delete", "own")
    tokens = tmp_path / "tokens"
    tokens.write_text(line + "\n")
    daemon = begin(f"access.tokens_file={tokens}")
    mine = [("Authorization", f"Bearer {token}")]
    with daemon.client() as c:
        image = daemon.upload(TINY, headers=mine).json()["images"][0]
        store.fail_always("GET", "/image/", status=500, code="InternalError")
        assert is_away(c.request("DELETE", image["url"], headers=mine))
        store.fault = None
        assert eventually(lambda: c.request("DELETE", image["url"], headers=mine).status == 204)


def test_outage(begin, store):
    """While the store is away, answers are 503 with Retry-After, soon. All that was acknowledged is
    there when it is back. The first probe that it answers is enough, and they come often."""
    daemon = begin()
    before = [daemon.image(SMALL) for _ in range(3)]
    store.stop()
    assert eventually(lambda: figures(daemon)["is_away"] or not is_away(daemon.upload(SMALL)), 20)
    assert eventually(lambda: figures(daemon)["is_away"], 20)
    for _ in range(20):
        assert is_away(daemon.upload(SMALL))
        assert is_away(daemon.get(before[0]["variants"]["thumb"]["url"]))
        assert is_away(daemon.get(before[0]["url"]))
    assert daemon.get("/readyz").status == 200
    answered = len(store.answered)
    store.start()
    assert eventually(lambda: daemon.upload(SMALL).status == 201, slow(5))
    assert eventually(lambda: not figures(daemon)["is_away"])  # where it is read
    assert store.answered[answered:].count(("PUT", "a/b/probe")) <= 2  # the daemon may give one up
    assert int(re.search(r"trying again every (\d+) ms", daemon.log)[1]) <= 1000
    for image in before:
        check_stored(daemon, image)
    assert daemon.says("answers again")
    assert figures(daemon)["outages"] == 1


@pytest.mark.parametrize("methods", ["PUT DELETE", "GET"], ids=["writes", "reads"])
def test_a_store_that_fails_at_one_kind_of_requests_is_used_for_the_other(begin, store, methods):
    daemon = begin("store.sweep_interval=1d")
    image = daemon.image(SMALL)

    def fails():
        return is_away(daemon.upload(SMALL) if "PUT" in methods else daemon.get(image["url"]))

    def works():
        answer = daemon.get(image["url"]) if "PUT" in methods else daemon.upload(SMALL)
        return answer.status in (200, 201)

    store.fault = lambda method, _: Fault(status=503, code="SlowDown") if method in methods else None
    assert eventually(lambda: fails() and figures(daemon)["is_away"], 20)
    asked = [key for method, key in store.requests if method in methods and "/image/" in key]
    assert all(works() for _ in range(20))
    assert fails() and works() and figures(daemon)["is_away"]
    assert asked == [key for method, key in store.requests if method in methods and "/image/" in key]
    store.fault = None
    assert daemon.says("answers again; serving where it is " + ("written" if "PUT" in methods else "read"))
    check_stored(daemon, daemon.image(SMALL))
    assert not figures(daemon)["is_away"] and figures(daemon)["outages"] == 1


def test_end_while_the_store_hangs(begin, store):
    """The drain waits for the request, which gets an answer."""
    daemon = begin()
    image = daemon.image(SMALL)
    store.fail_always("GET", "/image/", hangs=True)
    with daemon.client() as c:
        c.send(f"GET {image['variants']['thumb']['url']} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert eventually(lambda: figures(daemon)["in_flight"] == 1, 10)
        daemon.stop()
        assert is_away(c.answer("GET"))


def descriptors(daemon):
    return len(os.listdir(f"/proc/{daemon.process.pid}/fd"))


def test_no_descriptor_is_lost(begin, store):
    daemon = begin()
    image = daemon.image(SMALL)
    url = image["variants"]["thumb"]["url"]
    count = [0]

    def some(method, key):
        count[0] += 1
        return Fault(cut=count[0] % 400) if method == "GET" and count[0] % 2 else None

    assert daemon.get(url).status == 200
    before = descriptors(daemon)
    store.fault = some
    for _ in range(100):
        assert daemon.get(url).status == 200
    store.fault = None
    assert eventually(lambda: descriptors(daemon) <= before + 4, 20)


@pytest.mark.skipif(IS_SANITIZED, reason="a sanitizer's library must be the first")
@pytest.mark.parametrize("answers", [False, True], ids=["gone", "refuses"])
def test_endpoint_that_moves_is_found(start, store, tmp_path, answers):
    """The name gets another address. At the former one there is nothing, or a gateway that refuses."""
    address = tmp_path / "address"
    address.write_text("127.0.0.1")
    daemon = start(*store.settings(tmp_path, s3_endpoint=f"http://store.test:{store.port}"),
                   environ={"LD_PRELOAD": str(ROOT / "build/plain/tests/tools/addresses.so"),
                            "DARKROOM_ADDRESS": str(address)})
    image = daemon.image(TINY)
    check_stored(daemon, image)
    former = Store() if answers else None
    store.stop()
    if former:
        former.stop()
        former.port, former.fault = store.port, lambda method, key: Fault(status=503, code="SlowDown")
        former.start()
    store.address = "127.0.0.2"
    store.start()
    address.write_text("")  # the name server does not know it for a while
    assert eventually(lambda: is_away(daemon.upload(TINY)) and figures(daemon)["outages"] == 1)
    address.write_text("127.0.0.2")
    assert daemon.says(f"the endpoint has moved to store.test:{store.port}:127.0.0.2")
    assert eventually(lambda: daemon.upload(TINY).status == 201)
    assert eventually(lambda: not figures(daemon)["is_away"])  # where it is read
    for _ in range(20):  # no connection to the former address is used again
        check_stored(daemon, image)
    assert figures(daemon)["outages"] == 1
    if former:
        former.stop()
