"""Every status of the error table: the problem document, and whether the connection survives. Malformed and hostile
HTTP, sent as raw bytes. (The client checks the members of every problem document that it reads.)"""

import json
import os
import subprocess
import threading
import time

import pytest

import jpegfile
import pictures
from client import Closed, chunked, form, form_files
from darkroom import IS_SANITIZED, PER_CONNECTION, TooLate, attempts, eventually, slow

SMALL = pictures.photo_jpeg(320, 240, 2)
JPEG = ("Content-Type", "image/jpeg")
GOOD_ID = "01HZZZZZZZZZZZZZZZZZZZZZZZ"  # well-formed, but nobody's


def raw(daemon, data):
    """Answer to these bytes, and True if the daemon then closed the connection."""
    with daemon.client() as c:
        c.send(data)
        answer = c.answer("HEAD" if data.startswith(b"HEAD") else "GET")
        closed = not c.is_open() if not answer.closes else c.is_closed()
        assert closed == answer.closes, f"Connection does not say what happens: {answer}"
        return answer, closed


@pytest.fixture
def image(daemon):
    return daemon.image(SMALL)


# ---- 400: HTTP syntax ----

MALFORMED = {
    "garbage": b"GARBAGE\r\n\r\n",
    "TLS hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\xaa" * 64 + b"\r\n\r\n",
    "zeros": b"\0" * 64,
    "SSH": b"SSH-2.0-OpenSSH_9.2p1 Debian\r\n",
    "bad protocol": b"GET /healthz HTTQ/1.1\r\nHost: x\r\n\r\n",
    "space in the path": b"GET /heal thz HTTP/1.1\r\nHost: x\r\n\r\n",
    "control in the path": b"GET /heal\x01thz HTTP/1.1\r\nHost: x\r\n\r\n",
    "space before the colon": b"GET /healthz HTTP/1.1\r\nHost : x\r\n\r\n",
    "no colon": b"GET /healthz HTTP/1.1\r\nHost: x\r\nnonsense\r\n\r\n",
    "empty name": b"GET /healthz HTTP/1.1\r\nHost: x\r\n: x\r\n\r\n",
    "NUL in a value": b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n",
    "NUL in a name": b"GET /healthz HTTP/1.1\r\nHost: x\r\nA\0B: c\r\n\r\n",
    "CR in a value": b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: b\rc\r\n\r\n",
    "no Host": b"GET /healthz HTTP/1.1\r\n\r\n",
    "two Hosts": b"GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
}

BAD_LENGTHS = ["-1", "+5", "5 5", "5,5", "0x5", "5a", "1e3", "", "99999999999999999999999", "18446744073709551621", "\xb2"]


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_requests(daemon, name):
    answer, closed = raw(daemon, MALFORMED[name])
    assert (answer.status, answer.slug) == (400, "malformed-request") and closed, answer


@pytest.mark.parametrize("length", BAD_LENGTHS)
def test_bad_content_length(daemon, length):
    head = f"POST /images HTTP/1.1\r\nHost: x\r\nContent-Type: image/jpeg\r\nContent-Length: {length}\r\n\r\n"
    answer, closed = raw(daemon, head.encode("latin-1"))
    assert answer.status in ((400, 413) if len(length) > 15 else (400,)) and closed, answer


@pytest.mark.parametrize("headers", [
    "Content-Length: 5\r\nContent-Length: 6", "Content-Length: 6\r\nContent-Length: 6",
    "Content-Length: 6\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 6",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", "Transfer-Encoding: chunked, identity",
    "Transfer-Encoding: xchunked", "Transfer-Encoding: chunkedx", "Transfer-Encoding: ", "Transfer-Encoding: \x0bchunked",
    "Transfer-Encoding : chunked", "X: y\r\nTransfer-Encoding\x00: chunked"])
def test_smuggling(daemon, headers):
    """What two parsers may frame differently is refused, and what follows on the connection is not a request."""
    with daemon.client() as c:
        c.send(f"POST /images HTTP/1.1\r\nHost: x\r\nContent-Type: image/jpeg\r\n{headers}\r\n\r\n"
               "0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n".encode("latin-1"))
        answer = c.answer()
        assert answer.status in (400, 501) and answer.closes, answer
        assert c.is_closed()


@pytest.mark.parametrize("body", [
    b"zz\r\n", b"-5\r\nhello\r\n", b"0x5\r\nhello\r\n", b"5 \r\nhello\r\n0\r\n\r\n", b"\r\n", b"FFFFFFFFFFFFFFFFF\r\n",
    b"10000000000000005\r\nhello\r\n", b"5\r\nhelloXX\r\n0\r\n\r\n", b"5\nhello\r\n0\r\n\r\n", b"5;\0\r\nhello\r\n",
    b"5\r\nhello0\r\n\r\n"])
def test_bad_chunks(daemon, body):
    head = b"POST /images HTTP/1.1\r\nHost: x\r\nContent-Type: image/jpeg\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer, closed = raw(daemon, head + body)
    assert answer.status in (400, 413) and closed, answer


@pytest.mark.parametrize("data", [SMALL, b""])
@pytest.mark.parametrize("extension", [b"", b";name", b";name=value", b';name="quoted value"'])
def test_chunk_extensions_and_trailers(daemon, data, extension):
    body = b"%X%b\r\n%b\r\n" % (len(data), extension, data) if data else b""
    with daemon.client() as c:
        c.send(c.head("POST", "/images", None, [JPEG, ("Transfer-Encoding", "Chunked")])
               + body + b"000" + extension + b"\r\nX-Trailer: 1\r\n\r\n")
        assert c.answer().status == (201 if data else 400)
        assert c.is_open()


@pytest.mark.parametrize("request_bytes", [b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n",
                                           b"GET  /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
                                           b"GET /healthz HTTP/1.1\nHost: x\n\n"])
def test_what_may_be_tolerated(daemon, request_bytes):
    """Folded lines, more space than needed, bare line feeds: RFC 9112 leaves it to the server."""
    answer, closed = raw(daemon, request_bytes)
    assert (answer.status == 400 and closed) or answer.status == 200


def test_version_missing(daemon):
    answer, closed = raw(daemon, b"GET /healthz\r\nHost: x\r\n\r\n")
    assert answer.status in (400, 505) and closed


def test_absolute_form(daemon):
    answer, _ = raw(daemon, f"GET http://{daemon.host}:{daemon.port}/healthz HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert answer.status == 200


@pytest.mark.parametrize("version, statuses", [("HTTP/2.0", (505,)), ("HTTP/0.9", (400, 505)), ("HTTP/3.1", (400, 505)), ("HTTP/x.y", (400, 505)),
                                              
                                               ("HTTP/1.9", (200, 400, 505))])
def test_versions(daemon, version, statuses):
    answer, closed = raw(daemon, f"GET /healthz {version}\r\nHost: x\r\n\r\n".encode())
    assert answer.status in statuses and (closed or answer.status == 200), answer
    if answer.status == 505:
        assert answer.slug == "http-version"


def test_http2_preface(daemon):
    answer, closed = raw(daemon, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    assert answer.status in (400, 505) and closed


@pytest.mark.parametrize("coding", ["gzip", "deflate, chunked", "gzip, chunked"])
def test_transfer_codings(daemon, coding):
    answer, closed = raw(daemon, f"POST /images HTTP/1.1\r\nHost: x\r\nContent-Type: image/jpeg\r\n"
                                 f"Transfer-Encoding: {coding}\r\n\r\n5\r\nhello\r\n0\r\n\r\n".encode())
    assert (answer.status, answer.slug) == (501, "not-implemented") and closed


def test_header_injection(daemon, image):
    for path in ("/%0d%0aX-Injected:%201", "/images/%0d%0aX-Injected:1", f"{image['url']}/%0d%0aX-Injected:1.jpg",
                 "/images/x%22%7d%0a"):
        answer = daemon.get(path)
        assert answer.status == 404 and "x-injected" not in answer.headers
    kind, body = form([("n", "a%0d%0aX-Injected: 1.jpg", "image/jpeg", SMALL)])
    assert "x-injected" not in daemon.upload(body, kind).headers
    answer = daemon.get("/healthz", headers=[("Origin", "http://evil\x85x"), ("Prefer", "a=b")])
    assert answer.status == 200 and answer["access-control-allow-origin"] is None


# ---- 400: forms ----

KIND, BODY = form([("f", "a.jpg", "image/jpeg", SMALL)])


@pytest.mark.parametrize("name, kind, body", [
    ("no boundary", "multipart/form-data", BODY),
    ("empty boundary", "multipart/form-data; boundary=", BODY),
    ("long boundary", "multipart/form-data; boundary=" + "x" * 71, BODY),
    ("boundary not found", KIND + "x", BODY),
    ("cut in the picture", KIND, BODY[:len(BODY) // 2]),
    ("no last boundary", KIND, BODY[:-18]),
    ("last boundary cut", KIND, BODY[:-4]),
    ("part without blank line", KIND, b"--a-boundary\r\nContent-Disposition: form-data; name=f\r\n--a-boundary--\r\n"),
    ("header without colon", KIND, BODY.replace(b"Content-Disposition:", b"Content-Disposition")),
    ("binary", KIND, bytes(range(256)) * 50),
])
def test_malformed_forms(daemon, name, kind, body):
    with daemon.client() as c:
        answer = c.request("POST", "/images", body, [("Content-Type", kind)])
        assert (answer.status, answer.slug) == (400, "malformed-form"), answer
        assert c.is_open()


@pytest.mark.parametrize("parts", [[("a", None, None, b"x")], [], [("nothing chosen", "", "application/octet-stream", b"")]])
def test_form_without_image(daemon, parts):
    with daemon.client() as c:
        kind, body = form(parts)
        answer = c.request("POST", "/images", body, [("Content-Type", kind)])
        assert (answer.status, answer.slug) == (400, "no-image"), answer
        assert c.is_open()


# ---- 404, 405 ----

@pytest.mark.parametrize("path", [
    "/nope", "/images/", "/images//", "/images/x", f"/images/{GOOD_ID}", f"/images/{GOOD_ID}/medium.jpg",
    f"/images/{GOOD_ID}/", "/images/" + "0" * 25, "/images/" + "0" * 27, "/images/" + "I" * 26, "/images/" + "Z" * 26,
    "/images/../../etc/passwd", "/../../etc/passwd", "/images/..", "/images/.incoming", "/images/.incoming/x.jpg",
    "/images/%2e%2e/%2e%2e/etc/passwd", "/images/..%2f..%2fetc%2fpasswd", "/etc/passwd", "/images/" + "A" * 5000,
    "/stats/", "/healthz/x", "/HEALTHZ", "//healthz", "/images/%00", "/images/%zz", "/favicon.ico", "/image.json"])
def test_not_found(daemon, path):
    with daemon.client() as c:
        for method in ("GET", "HEAD"):
            answer = c.request(method, path)
            assert answer.status == 404
            assert method == "HEAD" or (answer.slug == "not-found" and b"root:" not in answer.body)
        assert c.is_open()


def test_not_found_in_an_image(daemon, image):
    with daemon.client() as c:
        for name in ("image.json", "medium", "medium.jpeg", "medium.png", ".jpg", "nope.jpg", "../medium.jpg", "", ".", "..",
                     "%2e%2e%2fx.jpg", "medium.jpg/", "medium.jpg/x", "MEDIUM.jpg", "a" * 300 + ".jpg", "medium.jpg%00"):
            answer = c.request("GET", f"{image['url']}/{name}")
            assert (answer.status, answer.slug) == (404, "not-found"), name
        other = f"/images/{GOOD_ID}/../{image['id']}/medium.jpg"
        assert c.request("GET", other).status == 404
        assert c.request("GET", image["url"] + "/medium.jpg").status == 200


@pytest.mark.parametrize("method, path, allowed", [
    ("GET", "/images", {"POST", "OPTIONS"}), ("HEAD", "/images", {"POST", "OPTIONS"}), ("PUT", "/images", {"POST", "OPTIONS"}),
    ("DELETE", "/images", {"POST", "OPTIONS"}),
    ("PUT", "{image}", {"GET", "HEAD", "DELETE", "OPTIONS"}), ("PATCH", "{image}", {"GET", "HEAD", "DELETE", "OPTIONS"}),
    ("POST", "{image}", {"GET", "HEAD", "DELETE", "OPTIONS"}),
    ("DELETE", "{image}/thumb.jpg", {"GET", "HEAD", "OPTIONS"}), ("PUT", "{image}/thumb.jpg", {"GET", "HEAD", "OPTIONS"}),
    ("POST", "/healthz", {"GET", "HEAD", "OPTIONS"}), ("DELETE", "/readyz", {"GET", "HEAD", "OPTIONS"}),
    ("PROPFIND", "/stats", {"GET", "HEAD", "OPTIONS"}), ("TRACE", "/healthz", {"GET", "HEAD", "OPTIONS"})])
def test_method_not_allowed(daemon, image, method, path, allowed):
    with daemon.client() as c:
        body = b"x" * 10 if method in ("PUT", "PATCH", "POST") else None
        answer = c.request(method, path.format(image=image["url"]), body)
        assert answer.status == 405 and (method == "HEAD" or answer.slug == "method-not-allowed")
        assert {m.strip() for m in answer["allow"].split(",")} == allowed
        assert c.is_open()


def test_unknown_method(daemon):
    answer, _ = raw(daemon, b"BREW /images HTTP/1.1\r\nHost: x\r\n\r\n")
    assert answer.status in (400, 405, 501)


# ---- 408 is in test_connections.py ----

# ---- 411, 413, 415, 417, 431 ----

@pytest.mark.parametrize("version", ["HTTP/1.1", "HTTP/1.0"])
def test_length_required(daemon, version):
    answer, _ = raw(daemon, f"POST /images {version}\r\nHost: x\r\nContent-Type: image/jpeg\r\n\r\n".encode())
    assert (answer.status, answer.slug) == (411, "length-required")


def test_body_too_large_small_rest(start):
    """What is left of the body is read and discarded: the connection stays."""
    daemon = start("limits.body_bytes=100K")
    body = b"\xff\xd8\xff" + b"x" * 300000
    for data, headers in ((body, ()), (chunked(body), [("Transfer-Encoding", "chunked")])):
        with daemon.client() as c:
            c.send(c.head("POST", "/images", body, [JPEG, *headers]) + data)
            answer = c.answer()
            assert (answer.status, answer.slug) == (413, "body-too-large")
            document = answer.json()
            assert (document["limit"], document["configured"]) == ("limits.body_bytes", 102400)
            assert document["actual"] == len(body) if not headers else document["actual"] > 102400
            assert not answer.closes and c.is_open()
    assert daemon.upload(SMALL).status == 201


@pytest.mark.parametrize("as_chunks", [False, True])
def test_body_too_large_large_rest(start, as_chunks):
    """The answer is read by a client that is still sending, and nothing is reset before that."""
    daemon = start("limits.body_bytes=100K")
    body = b"\xff\xd8\xff" + b"x" * (8 << 20)
    with daemon.client() as c:
        headers = [("Transfer-Encoding", "chunked")] if as_chunks else []
        c.send(c.head("POST", "/images", body, [JPEG, *headers]))
        c.send_some(chunked(body, 60000) if as_chunks else body)
        answer = c.answer()
        assert (answer.status, answer.slug) == (413, "body-too-large")
        assert answer.closes or as_chunks, "how much is left of chunks is not known when the answer begins"
        assert c.is_closed()


def test_body_too_large_is_refused_before_it_is_sent(start):
    daemon = start("limits.body_bytes=100K")
    with daemon.client() as c:
        c.send(c.head("POST", "/images", None, [JPEG, ("Content-Length", "999999999999"), ("Expect", "100-continue")]))
        answer = c.answer()
        assert (answer.status, answer.json()["actual"]) == (413, 999999999999) and not c.interim


def test_curl_reads_413(start, tmp_path):
    daemon = start("limits.body_bytes=100K")
    (tmp_path / "large").write_bytes(b"\xff\xd8\xff" + b"x" * (20 << 20))
    done = subprocess.run(["curl", "-sS", "-H", "Expect:", "-F", f"f=@{tmp_path}/large", daemon.url + "/images"],
                          capture_output=True, timeout=slow(60))
    assert json.loads(done.stdout)["limit"] == "limits.body_bytes", done


def test_a_body_of_exactly_the_limit(start):
    daemon = start(f"limits.body_bytes={len(SMALL)}")
    assert daemon.upload(SMALL).status == 201
    assert daemon.upload(SMALL + b"\0").status == 413


def test_too_many_parts(start):
    daemon = start("limits.parts=3")
    assert daemon.upload(*reversed(form_files(SMALL, SMALL, SMALL))).status == 201
    answer = daemon.upload(*reversed(form_files(SMALL, SMALL, SMALL, SMALL)))
    assert (answer.status, answer.slug) == (413, "too-many-parts")
    assert (answer.json()["limit"], answer.json()["configured"]) == ("limits.parts", 3)
    assert answer.json()["actual"] > 3


@pytest.mark.parametrize("kind", ["text/plain", "image/png", "application/json", "multipart/mixed; boundary=x",
                                  "application/x-www-form-urlencoded", "image/jpegx", "jpeg", "", ";;"])
def test_unsupported_media_type(daemon, kind):
    with daemon.client() as c:
        answer = c.request("POST", "/images", SMALL, [("Content-Type", kind)])
        assert (answer.status, answer.slug) == (415, "unsupported-media-type")
        assert c.is_open()


def test_no_content_type(daemon):
    with daemon.client() as c:
        assert c.request("POST", "/images", b"hello").status == 415
        assert c.is_open()


@pytest.mark.parametrize("expectation", ["200-ok", "100-continue-not", "x"])
def test_expectation_failed(daemon, expectation):
    with daemon.client() as c:
        answer = c.request("POST", "/images", SMALL, [JPEG, ("Expect", expectation)])
        assert (answer.status, answer.slug) == (417, "expectation-failed")
        assert answer.closes or c.is_open()


def test_header_too_large(start):
    daemon = start("limits.header_bytes=2K")
    assert daemon.get("/healthz", headers=[("X", "y" * 1500)]).status == 200
    for head in (b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 4000 + b"\r\n\r\n",
                 b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 700 + b"\r\n",
                 b"GET /" + b"y" * 4000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
                 b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 4000,
                 b"y" * 4000):
        with daemon.client() as c:
            c.send(head)
            answer = c.answer()
            slug = {400: "malformed-request", 414: "uri-too-long", 431: "header-too-large"}[answer.status]
            assert answer.slug == slug
            assert answer.status == (400 if head.startswith(b"y") else 414 if head.startswith(b"GET /y") else 431), head[:50]
            if answer.status != 400:
                document = answer.json()
                assert (document["limit"], document["configured"]) == ("limits.header_bytes", 2048)
                assert document["actual"] > 2048
            assert answer.closes and c.is_closed()


def test_endless_header(daemon):
    with daemon.client() as c:
        c.send(b"GET / HTTP/1.1\r\nHost: x\r\n")
        for _ in range(500):
            if not c.send_some(b"X-Header: " + b"y" * 1000 + b"\r\n"):
                break
        answer = c.answer()
        assert answer.status == 431 and answer.closes and c.is_closed()


# ---- 429, 503, 500, 507 ----

def test_images_per_client(start):
    daemon = start("limits.images_per_client=1")
    with daemon.client() as c:
        kind, body = form_files(SMALL, SMALL)
        answer = c.request("POST", "/images", body, [("Content-Type", kind)])
        assert (answer.status, answer.slug, answer["retry-after"]) == (429, "too-many-requests", "1")
        document = answer.json()
        assert (document["limit"], document["configured"], document["actual"]) == ("limits.images_per_client", 1, 2)
        for _ in range(3):
            assert c.request("POST", "/images", SMALL, [JPEG]).status == 201
        assert c.is_open()


def test_images_in_flight(start):
    daemon = start("limits.images_in_flight=2")
    with daemon.client() as c:
        kind, body = form_files(SMALL, SMALL, SMALL)
        answer = c.request("POST", "/images", body, [("Content-Type", kind)])
        assert (answer.status, answer.slug, answer["retry-after"]) == (503, "overloaded", "1")
        assert (answer.json()["limit"], answer.json()["configured"]) == ("limits.images_in_flight", 2)
        for _ in range(3):
            kind, body = form_files(SMALL, SMALL)
            assert c.request("POST", "/images", body, [("Content-Type", kind)]).status == 201


def test_connections(start):
    daemon = start("limits.connections=3")
    kept = [daemon.client() for _ in range(3)]
    assert all(c.request("GET", "/healthz").status == 200 for c in kept)
    with daemon.client() as c:
        answer = c.answer()
        assert (answer.status, answer.slug, answer["retry-after"]) == (503, "overloaded", "1") and answer.closes
        assert (answer.json()["limit"], answer.json()["configured"]) == ("limits.connections", 3)
        assert c.is_closed()
    assert all(c.is_open() for c in kept)
    kept.pop().close()

    def is_served():
        try:
            return daemon.get("/healthz").status == 200
        except (Closed, ConnectionResetError, BrokenPipeError):
            return False
    assert eventually(is_served)
    for c in kept:
        c.close()


def test_body_memory(start):
    """Bodies under way may not take more than their share of the memory; who has to wait too long for it is told."""
    daemon = start("limits.memory_budget=32M", "limits.body_bytes=16M", "limits.body_timeout=500ms", "limits.body_rate=1")
    length, clients = 14 << 20, [daemon.client() for _ in range(6)]
    for c in clients:
        c.send(c.head("POST", "/images", None, [JPEG, ("Content-Length", str(length))]) + SMALL)
    assert eventually(lambda: sum(not c.is_silent() for c in clients) >= 4), "84 MB of bodies within 32 MB"
    answers = [c.answer() for c in clients if not c.is_silent()]
    refused = [a for a in answers if a.status == 503]
    assert refused and {(a.status, a.slug) for a in answers} <= {(503, "overloaded"), (408, "timeout")}
    for answer in refused:
        assert answer["retry-after"] == "1" and "limits.memory_budget" in answer.json()["detail"]
    for c in clients:
        c.close()
    assert eventually(lambda: daemon.upload(SMALL).status == 201)
    assert daemon.resident_bytes() < (200 << 20) * (4 if IS_SANITIZED else 1)


def test_body_in_chunks_that_memory_will_never_do_for(start):
    """While it grows it is there twice. 503 would ask the client to try again, for ever."""
    daemon = start("limits.memory_budget=32M", "limits.body_bytes=16M")
    for size, status in ((9 << 20, 201), (15 << 20, 413)):
        with daemon.client() as c:
            c.send(c.head("POST", "/images", None, [JPEG, ("Transfer-Encoding", "chunked")]))
            c.send_some(chunked(SMALL + bytes(size), 60000))
            answer = c.answer()
            assert answer.status == status, answer
    assert (answer.slug, answer["retry-after"]) == ("memory", None)
    document = answer.json()
    assert document["limit"] == "limits.memory_budget" and document["actual"] > document["configured"] == 32 << 20
    assert daemon.upload(SMALL + bytes(15 << 20)).status == 201, "of a known length"


def test_slow_bodies_do_not_keep_memory_that_others_wait_for(start):
    daemon = start("limits.memory_budget=32M", "limits.body_bytes=16M", "limits.body_timeout=500ms", "limits.body_rate=1")
    slow_ones = [daemon.client() for _ in range(2)]
    for c in slow_ones:
        c.send(c.head("POST", "/images", None, [JPEG, ("Content-Length", str(8 << 20))]) + SMALL)
    over = threading.Event()

    def trickle(c):
        while not over.wait(0.05) and c.is_silent():
            c.send_some(b"x" * 1000)
    threads = [threading.Thread(target=trickle, args=(c,)) for c in slow_ones]
    for thread in threads:
        thread.start()
    time.sleep(0.8)
    assert all(c.is_silent() for c in slow_ones), "slow, but above the rate, and nobody minded"
    try:
        assert eventually(lambda: daemon.upload(SMALL).status == 201)
    finally:
        over.set()
        for thread in threads:
            thread.join()
    # Memory is given back a moment before the answer is written.
    assert eventually(lambda: not all(c.is_silent() for c in slow_ones))
    assert {c.answer().status for c in slow_ones if not c.is_silent()} == {408}
    for c in slow_ones:
        c.close()


def test_store_that_fails(start):
    """The store's directory goes away beneath the daemon: an answer, and no harm to the rest."""
    daemon = start()
    image = daemon.image(SMALL)
    (daemon.store / ".incoming").rmdir()
    answer = daemon.upload(SMALL)
    assert answer.status in (201, 500), answer
    assert answer.status == 201 or answer.slug == "storage-failed"
    assert daemon.get(image["url"]).status == 200 and daemon.get("/healthz").status == 200


def test_store_that_is_full(start, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk],
                                           capture_output=True).returncode:
        pytest.skip("cannot mount a small file system")
    try:
        daemon = start(store=disk / "store")
        answers = [daemon.upload(pictures.photo_jpeg(800, 600, 3))]
        while answers[-1].status == 201:
            answers.append(daemon.upload(pictures.photo_jpeg(800, 600, 3)))
        assert (answers[-1].status, answers[-1].slug) == (507, "storage-full")
        assert not daemon.leftovers(), "the unfinished files still take room"
        if len(answers) > 1:
            url = answers[0].json()["images"][0]["url"]
            with daemon.client() as c:
                assert c.request("GET", url).status == 200
                assert c.request("DELETE", url).status == 204
            assert daemon.upload(pictures.photo_jpeg(800, 600, 3)).status == 201
        daemon.stop()
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


# ---- the connection after an error ----

def test_connection_survives_errors(daemon, image):
    """One connection, one error after the other, and a good answer after each."""
    with daemon.client() as c:
        for method, path, body, headers, status in [
                ("GET", "/nope", None, [], 404), ("DELETE", f"/images/{GOOD_ID}", None, [], 404),
                ("PUT", "/images", b"x" * 100000, [], 405), ("POST", "/nope", b"x" * 100000, [], 404),
                ("POST", "/images", b"x" * 100000, [JPEG], 415), ("POST", "/images", b"", [JPEG], 400),
                ("POST", "/images", SMALL, [("Content-Type", "image/gif")], 415),
                ("POST", "/images", SMALL[:2000], [JPEG], 422),
                ("POST", "/images", jpegfile.header_only(65000, 65000), [JPEG], 413),
                ("POST", "/images", b"nonsense", [("Content-Type", "multipart/form-data; boundary=x")], 400),
                ("GET", image["url"] + "/medium.jpg", None, [("Range", "bytes=99999999-")], 416)]:
            answer = c.request(method, path, body, headers)
            assert answer.status == status and not answer.closes, answer
            assert c.request("GET", image["url"]).json()["id"] == image["id"]
        assert c.request("POST", "/images", SMALL, [JPEG]).status == 201


def test_body_of_a_get_is_not_a_request(daemon):
    with daemon.client() as c:
        inner = b"GET /nope HTTP/1.1\r\nHost: x\r\n\r\n"
        assert c.request("GET", "/healthz", inner).status == 200
        c.send(c.head("GET", "/healthz", None, [("Transfer-Encoding", "chunked")]) + chunked(inner))
        assert c.answer().status == 200
        assert c.is_open()


def test_connection_close_is_honoured(daemon):
    with daemon.client() as c:
        answer = c.request("GET", "/healthz", headers=[("Connection", "close")])
        assert answer.status == 200 and answer.closes and c.is_closed()


# ---- OPTIONS, CORS ----

@pytest.mark.parametrize("path, allowed", [("/images", {"POST", "OPTIONS"}), ("/healthz", {"GET", "HEAD", "OPTIONS"}),
                                           ("{image}", {"GET", "HEAD", "DELETE", "OPTIONS"}),
                                           ("{image}/medium.jpg", {"GET", "HEAD", "OPTIONS"})])
def test_options(daemon, image, path, allowed):
    with daemon.client() as c:
        answer = c.request("OPTIONS", path.format(image=image["url"]))
        assert answer.status == 204 and {m.strip() for m in answer["allow"].split(",")} == allowed
        assert not [h for h in answer.headers if h.startswith("access-control")], "CORS is not configured"
        assert c.is_open()


def test_options_star(daemon):
    answer, _ = raw(daemon, b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n")
    assert answer.status in (200, 204)


@pytest.mark.parametrize("origin", ["*", "https://photos.example"])
def test_cors(start, origin):
    daemon = start(f"server.allow_origin={origin}")
    image = daemon.image(SMALL)
    with daemon.client() as c:
        for method, path, status in (("GET", "/healthz", 200), ("GET", image["url"] + "/thumb.jpg", 200), ("GET", "/nope", 404),
                                     ("PUT", "/images", 405), ("POST", "/images", 201), ("OPTIONS", "/images", 204)):
            body = SMALL if method == "POST" else b"" if method == "PUT" else None
            headers = [("Origin", "https://photos.example"), JPEG, ("Access-Control-Request-Method", "POST")]
            answer = c.request(method, path, body, headers)
            assert answer.status == status and answer["access-control-allow-origin"] == origin, answer
            assert origin == "*" or "origin" in answer["vary"].lower()
            if method == "OPTIONS":
                assert "POST" in answer["access-control-allow-methods"]
                assert {h.strip() for h in answer["access-control-allow-headers"].lower().split(",")} >= \
                    {"content-type", "prefer"}
                assert int(answer["access-control-max-age"]) > 0
            elif status < 400:
                assert {h.strip().lower() for h in answer["access-control-expose-headers"].split(",")} >= \
                    {"location", "server-timing", "etag"}
    with daemon.client() as c:
        c.send(b"NONSENSE\r\n\r\n")
        assert c.answer()["access-control-allow-origin"] == origin


@attempts(10)
def test_wait_timeout_is_told(start):
    daemon = start("server.wait_timeout=20ms", "variant.medium.operations=scale 6000x6000 inside, blur 60")
    answer = daemon.upload(pictures.photo_jpeg(3000, 2200, 1), headers=[("Prefer", "respond-async")])
    assert answer.status == 202
    with daemon.client() as c:
        answer = c.request("GET", answer["location"] + "/medium.jpg")
        if PER_CONNECTION:  # a connection's thread makes the whole image before it answers
            assert answer.status == 200
        elif answer.status == 200:
            raise TooLate("it was made before it was asked for")
        else:
            assert (answer.status, answer.slug, answer["retry-after"]) == (503, "not-ready", "1")
        assert c.is_open()
