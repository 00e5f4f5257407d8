"""Many requests on one connection, one after the other and pipelined."""

import random

import pytest

import jpegfile
import pictures
from client import chunked, form_files
from uploads import TINY

SMALL = pictures.photo_jpeg(320, 240, 2)
JPEG = ("Content-Type", "image/jpeg")

pytestmark = pytest.mark.every_policy


# ---- many requests on one connection ----

def test_connection_serves_hundreds_of_requests(daemon):
    with daemon.client() as c:
        image = c.request("POST", "/images", SMALL, [JPEG]).json()["images"][0]
        for i in range(100):
            assert c.request("GET", image["url"]).json()["id"] == image["id"]
            assert c.request("GET", image["variants"]["thumb"]["url"]).status == 200
            assert c.request("GET", "/nope").status == 404
            if i % 10 == 0:
                assert c.request("POST", "/images", TINY, [JPEG]).status == 201
        assert not c.buffer


def test_pipelined_gets_get_their_responses_in_order(daemon):
    image = daemon.image(SMALL)
    paths = [image["url"], image["variants"]["medium"]["url"], "/nope", "/healthz",
             image["variants"]["thumb"]["url"]]
    same = [("X-Request-Id", "same")]
    alone = [daemon.get(p, headers=same) for p in paths]
    with daemon.client() as c:
        c.send(b"".join(c.head("GET", p, headers=same) for p in paths * 40))
        for i in range(40 * len(paths)):
            answer, expected = c.answer(), alone[i % len(paths)]
            assert answer.status == expected.status and answer.body == expected.body
        assert c.is_open()


def test_pipelined_posts_and_gets_get_their_responses_in_order(daemon):
    """Sizes identify the request of each response."""
    widths = [33, 700, 20, 512, 64, 1100, 18, 90]
    with daemon.client() as c:
        data = b""
        for i, width in enumerate(widths):
            body = pictures.photo_jpeg(width, 40, 3)
            if i % 2:
                data += c.head("POST", "/images", body,
                               [JPEG, ("Transfer-Encoding", "chunked")]) + chunked(body, 777)
            else:
                data += c.head("POST", "/images", body, [JPEG]) + body
            data += c.head("GET", "/healthz") + c.head("POST", "/images", b"xyz", [JPEG]) + b"xyz"
        c.send(data)
        for width in widths:
            answer = c.answer()
            assert answer.status == 201 and answer.json()["images"][0]["width"] == width
            assert c.answer().body == b"ok\n"
            assert c.answer().status == 415
        assert c.is_open()


def test_pipeline_may_arrive_in_any_pieces(daemon):
    rng = random.Random(5)
    with daemon.client() as c:
        kind, form_body = form_files(TINY, TINY)
        data = c.head("POST", "/images", TINY, [JPEG, ("Transfer-Encoding", "chunked")])
        data += chunked(TINY, 100)
        data += c.head("POST", "/images", form_body, [("Content-Type", kind)]) + form_body
        data += c.head("GET", "/healthz")
        data *= 4
        while data:
            size = rng.choice((1, 2, 7, 100, 1000))
            c.send(data[:size])
            data = data[size:]
        for _ in range(4):
            assert [len(c.answer().json()["images"]) for _ in range(2)] == [1, 2]
            assert c.answer().body == b"ok\n"


def test_requests_after_a_close_get_no_response(daemon):
    with daemon.client() as c:
        c.send(c.head("GET", "/healthz", headers=[("Connection", "close")])
               + c.head("GET", "/healthz"))
        assert c.answer().closes and c.is_closed()


@pytest.mark.parametrize("as_chunks", [False, True])
def test_upload_may_arrive_byte_by_byte(daemon, as_chunks):
    kind, body = form_files(TINY)
    with daemon.client() as c:
        headers = [("Content-Type", kind)]
        if as_chunks:
            headers.append(("Transfer-Encoding", "chunked"))
        head = c.head("POST", "/images", body, headers)
        for byte in head + (chunked(body, 90) if as_chunks else body):
            c.send(bytes([byte]))
        assert c.answer().status == 201
        assert c.is_open()


def test_pipelined_images_keep_their_own_orientation(daemon):
    """State of one request must not affect the next one of the same connection."""
    with daemon.client() as c:
        data, sizes = b"", []
        for orientation in (1, 6, 1, 8, 3):
            body = jpegfile.insert_segment(pictures.photo_jpeg(90, 60, 3), jpegfile.APP1,
                                           jpegfile.exif(orientation))
            data += c.head("POST", "/images", body, [JPEG]) + body
            sizes.append((60, 90) if orientation > 4 else (90, 60))
        c.send(data)
        for size in sizes:
            (image,) = c.answer().json()["images"]
            assert (image["width"], image["height"]) == size
