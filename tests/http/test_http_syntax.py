"""HTTP on the wire: malformed and hostile requests, framing, versions and codings, and whether the
connection survives. (The client checks the members of every problem document.)"""

import pytest

import pictures
from client import chunked, form
from uploads import TINY

SMALL = pictures.photo_jpeg(320, 240, 2)
JPEG = ("Content-Type", "image/jpeg")


def raw(daemon, data):
    """Sends these bytes. Returns the answer, and whether the daemon closed the connection."""
    with daemon.client() as c:
        c.send(data)
        answer = c.answer("HEAD" if data.startswith(b"HEAD") else "GET")
        closed = not c.is_open() if not answer.closes else c.is_closed()
        assert closed == answer.closes, f"the field Connection is wrong: {answer}"
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
    "CR before the request line": b"\rGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
    "CR after an empty line": b"\r\n\rGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
    "CR LF CR X ends the header": b"GET /healthz HTTP/1.1\r\nHost: x\r\n\rX",
    "CR LF CR LF in reverse": b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\r\n",
    "fragment": b"GET /healthz#x HTTP/1.1\r\nHost: x\r\n\r\n",
    "fragment in a query": b"GET /healthz?x#y HTTP/1.1\r\nHost: x\r\n\r\n",
    "fragment in absolute form": b"GET http://x/healthz#x HTTP/1.1\r\nHost: x\r\n\r\n",
    "authority with a bad port": b"GET http://x:y/healthz HTTP/1.1\r\nHost: x\r\n\r\n",
    "two Hosts": b"GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
}

BAD_HOSTS = ["a:asd", "a:80:90", "a:-1", "a:65536", "a:8 0", "[::1", "::1", "[::1]80", "[x]", "a/b",
             "a@b", "a%4", ":80"]

BAD_LENGTHS = ["-1", "+5", "5 5", "5,5", "0x5", "5a", "1e3", "", "99999999999999999999999",
               "18446744073709551621", "\xb2"]


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_request_gets_400(daemon, name):
    answer, closed = raw(daemon, MALFORMED[name])
    assert (answer.status, answer.slug) == (400, "malformed-request") and closed, answer


@pytest.mark.parametrize("host", BAD_HOSTS)
def test_impossible_host_gets_400(daemon, host):
    answer, closed = raw(daemon, f"GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    assert (answer.status, answer.slug) == (400, "malformed-request") and closed, answer


@pytest.mark.parametrize("length", BAD_LENGTHS)
def test_bad_content_length_is_refused(daemon, length):
    head = ("POST /images HTTP/1.1\r\nHost: x\r\nContent-Type: image/jpeg\r\n"
            f"Content-Length: {length}\r\n\r\n")
    answer, closed = raw(daemon, head.encode("latin-1"))
    assert answer.status in ((400, 413) if len(length) > 15 else (400,)) and closed, answer


@pytest.mark.parametrize("headers", [
    "Content-Length: 5\r\nContent-Length: 6",
    "Content-Length: 6\r\nContent-Length: 6", "Content-Length: 6\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: chunked\r\nContent-Length: 6",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
    "Transfer-Encoding: chunked, identity", "Transfer-Encoding: xchunked",
    "Transfer-Encoding: chunkedx", "Transfer-Encoding: ", "Transfer-Encoding: \x0bchunked",
    "Transfer-Encoding : chunked", "Transfer-Encoding: chunked\t",
    "Transfer-Encoding: chunked\t\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding:\tchunked\t \t", "Transfer-Encoding: chunked,\tchunked",
    "Content-Length: 42\t", "Content-Length:\t5\t\r\nX: y", "X: y\r\nTransfer-Encoding\x00: chunked"])
def test_ambiguous_framing_is_refused(daemon, headers):
    """Requests that two parsers could frame differently are refused. The bytes behind them are not
    a request."""
    with daemon.client() as c:
        c.send(f"POST /images HTTP/1.1\r\nHost: x\r\nContent-Type: image/jpeg\r\n{headers}\r\n\r\n"
               "0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n".encode("latin-1"))
        answer = c.answer()
        assert answer.status in (400, 501) and answer.closes, answer
        assert c.is_closed()


@pytest.mark.parametrize("body", [
    b"zz\r\n", b"-5\r\nhello\r\n", b"0x5\r\nhello\r\n", b"5 \r\nhello\r\n0\r\n\r\n", b"\r\n",
    b"FFFFFFFFFFFFFFFFF\r\n", b"10000000000000005\r\nhello\r\n", b"5\r\nhelloXX\r\n0\r\n\r\n",
    b"5\nhello\r\n0\r\n\r\n", b"5;\0\r\nhello\r\n", b"5\r\nhello0\r\n\r\n", b"5;\r\nhello",
    b"5;a\nhello", b"5\r\nhello\r\n0\r\n X: y\r\n\r\n", b"5\r\nhello\r\n0\r\nX: y\n\r\n"])
def test_bad_chunks_are_refused(daemon, body):
    head = (b"POST /images HTTP/1.1\r\nHost: x\r\nContent-Type: image/jpeg\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n")
    answer, closed = raw(daemon, head + body)
    assert answer.status in (400, 413) and closed, answer


@pytest.mark.parametrize("size", [b"FFFFFFFFFFFFFFED", b"10000001"])
def test_large_chunk_is_refused_before_it_comes(daemon, size):
    """The size of a chunk is enough: the daemon does not wait for its bytes."""
    with daemon.client() as c:
        c.send(c.head("POST", "/images", None, [JPEG, ("Transfer-Encoding", "chunked")])
               + size + b"\r\n")
        answer = c.answer()
        assert (answer.status, answer.slug) == (413, "body-too-large") and answer.closes
        assert answer.json()["actual"] == int(size, 16)


@pytest.mark.parametrize("data", [SMALL, b""])
@pytest.mark.parametrize("extension", [
    b"", b";name", b";name=value", b';name="quoted value"', b"; some; parameters=stuff", b" ;a",
    b" \t;\ta = b"])
def test_chunk_extensions_and_trailers_are_skipped(daemon, data, extension):
    body = b"%X%b\r\n%b\r\n" % (len(data), extension, data) if data else b""
    with daemon.client() as c:
        c.send(c.head("POST", "/images", None, [JPEG, ("Transfer-Encoding", "Chunked")])
               + body + b"000" + extension + b"\r\nX-Trailer: 1\r\n\r\n")
        assert c.answer().status == (201 if data else 400)
        assert c.is_open()


@pytest.mark.parametrize("request_bytes", [
    b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n",
    b"GET  /healthz HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /healthz HTTP/1.1\nHost: x\n\n"])
def test_old_syntax_may_be_tolerated(daemon, request_bytes):
    """RFC 9112 lets a server accept folded lines, additional spaces and bare line feeds."""
    answer, closed = raw(daemon, request_bytes)
    assert (answer.status == 400 and closed) or answer.status == 200


def test_missing_version_is_refused(daemon):
    answer, closed = raw(daemon, b"GET /healthz\r\nHost: x\r\n\r\n")
    assert answer.status in (400, 505) and closed


def test_absolute_form_is_accepted(daemon):
    answer, _ = raw(
        daemon,
        f"GET http://{daemon.host}:{daemon.port}/healthz HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert answer.status == 200


@pytest.mark.parametrize("version, statuses",
                         [("HTTP/2.0", (505,)), ("HTTP/0.9", (400, 505)), ("HTTP/3.1", (400, 505)),
                          ("HTTP/x.y", (400, 505)), ("HTTP/1.9", (200, 400, 505))])
def test_other_versions_are_refused(daemon, version, statuses):
    answer, closed = raw(daemon, f"GET /healthz {version}\r\nHost: x\r\n\r\n".encode())
    assert answer.status in statuses and (closed or answer.status == 200), answer
    if answer.status == 505:
        assert answer.slug == "http-version"


def test_http2_preface_is_refused(daemon):
    answer, closed = raw(daemon, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    assert answer.status in (400, 505) and closed


@pytest.mark.parametrize("coding", ["gzip", "deflate, chunked", "gzip, chunked"])
def test_unknown_transfer_coding_gets_501(daemon, coding):
    answer, closed = raw(daemon, f"POST /images HTTP/1.1\r\nHost: x\r\nContent-Type: image/jpeg\r\n"
                         f"Transfer-Encoding: {coding}\r\n\r\n5\r\nhello\r\n0\r\n\r\n".encode())
    assert (answer.status, answer.slug) == (501, "not-implemented") and closed


def test_requests_cannot_inject_response_headers(daemon, image):
    for path in ("/%0d%0aX-Injected:%201", "/images/%0d%0aX-Injected:1",
                 f"{image['url']}/%0d%0aX-Injected:1.jpg", "/images/x%22%7d%0a"):
        answer = daemon.get(path)
        assert answer.status == 404 and "x-injected" not in answer.headers
    kind, body = form([("n", "a%0d%0aX-Injected: 1.jpg", "image/jpeg", SMALL)])
    assert "x-injected" not in daemon.upload(body, kind).headers
    answer = daemon.get("/healthz", headers=[("Origin", "http://evil\x85x"), ("Prefer", "a=b")])
    assert answer.status == 200 and answer["access-control-allow-origin"] is None


@pytest.mark.parametrize("line", [
    "BREW /images", "QUERY /images", "FOO /", "get /healthz", "CONNECT x:80", "PLAY /healthz",
    "GETS /healthz", "M-SEARCHES *"])
def test_unknown_method_gets_501(daemon, line):
    answer, closed = raw(daemon, f"{line} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert (answer.status, answer.slug) == (501, "not-implemented") and closed


def test_unknown_method_may_come_in_pieces(daemon):
    with daemon.client() as c:
        for byte in b"QUERY /images HTTP/1.1\r":
            c.send(bytes([byte]))
        assert c.is_silent()
        c.send(b"\n")
        assert c.answer().status == 501


@pytest.mark.parametrize("target", ["http://x?/stats", "http://x?/healthz", "http://x"])
def test_authority_ends_at_a_question_mark(daemon, target):
    answer, _ = raw(daemon, f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert answer.status == 404


# ---- 408 is in test_connections.py ----

# ---- 411, 413, 415, 417, 431 ----

@pytest.mark.parametrize("version", ["HTTP/1.1", "HTTP/1.0"])
def test_missing_length_gets_411(daemon, version):
    answer, _ = raw(
        daemon, f"POST /images {version}\r\nHost: x\r\nContent-Type: image/jpeg\r\n\r\n".encode())
    assert (answer.status, answer.slug) == (411, "length-required")


def test_large_header_is_refused(start):
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
            slugs = {400: "malformed-request", 414: "uri-too-long", 431: "header-too-large"}
            assert answer.slug == slugs[answer.status]
            status = 400 if head.startswith(b"y") else 414 if head.startswith(b"GET /y") else 431
            assert answer.status == status, head[:50]
            if answer.status != 400:
                document = answer.json()
                assert (document["limit"], document["configured"]) == ("limits.header_bytes", 2048)
                assert document["actual"] > 2048
            assert answer.closes and c.is_closed()


@pytest.mark.parametrize("head, status", [
    (b"GET / HTTP/1.1\r\nX: %s\r\nHost: a\r\nHost: a\r\n\r\n", 431),
    (b"GET / HTTP/1.1\r\nX: %s\r\nno colon\r\n\r\n", 431),
    (b"GET /%s\x01 HTTP/1.1\r\nHost: a\r\n\r\n", 414),
    (b"BREW /%s HTTP/1.1\r\nHost: a\r\n\r\n", 431)])
def test_errors_behind_the_largest_header_are_not_read(start, head, status):
    """So the answer is that to the same bytes in several pieces."""
    daemon = start("limits.header_bytes=1K")
    with daemon.client() as c:
        c.send(head % (b"y" * 1030))
        answer = c.answer()
        assert answer.status == status and answer.closes


def test_endless_header_is_refused(daemon):
    with daemon.client() as c:
        c.send(b"GET / HTTP/1.1\r\nHost: x\r\n")
        for _ in range(500):
            if not c.send_some(b"X-Header: " + b"y" * 1000 + b"\r\n"):
                break
        answer = c.answer()
        assert answer.status == 431 and answer.closes and c.is_closed()


def test_body_of_a_get_is_not_a_request(daemon):
    with daemon.client() as c:
        inner = b"GET /nope HTTP/1.1\r\nHost: x\r\n\r\n"
        assert c.request("GET", "/healthz", inner).status == 200
        c.send(c.head("GET", "/healthz", None, [("Transfer-Encoding", "chunked")]) + chunked(inner))
        assert c.answer().status == 200
        assert c.is_open()


@pytest.mark.parametrize("value", ["close", "close\t", "\tClose \t", "a,\tclose"])
def test_connection_close_is_honoured(daemon, value):
    """What comes behind the request is not answered (RFC 9112 9.6)."""
    with daemon.client() as c:
        request = c.head("GET", "/healthz", None, [("Connection", value)])
        c.send(request + request)
        answer = c.answer()
        assert answer.status == 200 and answer.closes and c.is_closed()


def test_empty_lines_before_a_request_are_skipped(daemon):
    with daemon.client() as c:
        c.send(b"\r\n\r\n" + c.head("GET", "/healthz"))
        assert c.answer().status == 200
        c.send(b"\r\n" + c.head("GET", "/healthz"))
        assert c.answer().status == 200


# ---- HTTP/1.0 ----

def test_http_1_0_connection_stays_if_asked(daemon):
    with daemon.client() as c:
        answer = c.request("GET", "/healthz", version="HTTP/1.0")
        assert answer.status == 200 and answer["connection"] in (None, "close") and c.is_closed()
    with daemon.client() as c:
        for _ in range(3):
            answer = c.request("GET", "/healthz", version="HTTP/1.0",
                               headers=[("Connection", "Keep-Alive")])
            assert answer.status == 200 and answer["connection"].lower() == "keep-alive"
        assert c.request("POST", "/images", TINY, [JPEG, ("Connection", "keep-alive")],
                         "HTTP/1.0").status == 201
        assert c.request("POST", "/images", TINY, [JPEG], "HTTP/1.0").status == 201
        assert c.is_closed()


def test_http_1_0_gets_no_100(daemon):
    with daemon.client() as c:
        answer = c.request("POST", "/images", TINY, [JPEG, ("Expect", "100-continue")], "HTTP/1.0")
        assert answer.status == 201 and not c.interim


def test_http_1_0_needs_no_host(daemon):
    with daemon.client() as c:
        c.send(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert c.answer().status == 200 and c.is_closed()


def test_options_star_is_accepted(daemon):
    answer, _ = raw(daemon, b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n")
    assert answer.status in (200, 204)
