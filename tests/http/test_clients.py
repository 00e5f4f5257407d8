"""Clients that are slow, disconnect, half-close, or do not read. Each gets its response, and no
other client is delayed."""

import random
import socket
import time

import pytest

import pictures
from client import Closed, form_files
from darkroom import TooLate, attempts, eventually, load, slow
from uploads import TINY, is_served

SMALL = pictures.photo_jpeg(320, 240, 2)
LARGE = pictures.photo_jpeg(1600, 1200, 1)
JPEG = ("Content-Type", "image/jpeg")


# ---- time limits ----

@pytest.mark.also_with("thread-per-connection")
def test_header_that_takes_too_long_gets_408(start):
    daemon = start("limits.header_timeout=300ms")
    with daemon.client() as c:
        started = time.monotonic()
        for byte in b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 10000:
            time.sleep(0.02)
            if not c.send_some(bytes([byte])) or time.monotonic() - started > slow(10):
                break
            c.socket.setblocking(False)
            try:
                if c.socket.recv(1, socket.MSG_PEEK):
                    break
            except BlockingIOError:
                pass
            c.socket.settimeout(slow(60))
        c.socket.settimeout(slow(60))
        answer = c.answer()
        assert (answer.status, answer.slug) == (408, "timeout") and answer.closes
        assert 0.25 < time.monotonic() - started < slow(10)
        assert c.is_closed()
    assert is_served(daemon)


@pytest.mark.also_with("thread-per-connection")
def test_body_that_stops_gets_408(start):
    daemon = start("limits.body_timeout=300ms")
    for headers, piece in (([("Content-Length", "100000")], SMALL[:500]),
                           ([("Transfer-Encoding", "chunked")], b"1000\r\n" + SMALL[:500])):
        with daemon.client() as c:
            started = time.monotonic()
            c.send(c.head("POST", "/images", None, [JPEG, *headers]) + piece)
            answer = c.answer()
            assert (answer.status, answer.slug) == (408, "timeout") and answer.closes
            assert 0.25 < time.monotonic() - started < slow(10)
            assert c.is_closed()
    assert is_served(daemon)


@pytest.mark.also_with("thread-per-connection")
@attempts(10)
def test_body_below_the_rate_gets_408(start):
    """A few bytes now and then do not prevent the timeout. Enough bytes do."""
    daemon = start("limits.body_timeout=1500ms", "limits.body_rate=5000")
    with daemon.client() as c:
        c.send(c.head("POST", "/images", SMALL, [JPEG]))
        started, i = time.monotonic(), 0
        c.socket.setblocking(False)
        while time.monotonic() - started < slow(20):
            try:
                c.socket.send(SMALL[i:i + 10])
                i += 10
                if c.socket.recv(1, socket.MSG_PEEK):
                    break
            except BlockingIOError:
                pass
            except (BrokenPipeError, ConnectionResetError):
                break
            time.sleep(0.02)
        c.socket.settimeout(slow(60))
        assert c.answer().status == 408
    with daemon.client() as c:
        c.send(c.head("POST", "/images", SMALL, [JPEG]))
        step, started = len(SMALL) // 20, time.monotonic()
        for at in range(0, len(SMALL), step):
            c.send_some(SMALL[at:at + step])
            time.sleep(0.04)
        if time.monotonic() - started > 1.4:
            raise TooLate("the client was below the rate")
        assert c.answer().status == 201, "20 KB in 0.8 s are above the rate"


@pytest.mark.also_with("thread-per-connection")
@attempts(10)
def test_idle_connection_is_closed_without_a_response(start):
    daemon = start("limits.idle_timeout=300ms")
    for requests in (0, 1):
        with daemon.client() as c:
            started = time.monotonic()
            try:
                for _ in range(requests):
                    assert c.request("GET", "/healthz").status == 200
            except (Closed, BrokenPipeError, ConnectionResetError):
                raise TooLate("it was closed before the first request") from None
            assert c.is_closed()
            assert 0.25 < time.monotonic() - started < slow(10)


@pytest.mark.every_policy
@attempts(10)
def test_processing_is_not_idleness(start):
    """The work grows until it takes longer than each timeout of a client."""
    daemon = start("limits.idle_timeout=200ms", "limits.header_timeout=200ms",
                   "limits.body_timeout=200ms",
                   "variant.medium.operations=scale 6000x6000 inside, blur 60")
    for count in (4, 8, 16, 32, 64):
        kind, body = form_files(*[pictures.photo_jpeg(3000, 2200, 1)] * count)
        with daemon.client() as c:
            started = time.monotonic()
            try:
                answer = c.request("POST", "/images", body, [("Content-Type", kind)])
            except (Closed, BrokenPipeError, ConnectionResetError):
                raise TooLate("the request may have been sent too late") from None
            if answer.status == 408:
                raise TooLate("the request may have been read too late")
            assert answer.status == 201, answer
            if time.monotonic() - started > 0.25:
                return
    raise AssertionError("the work took no longer than the limits")


# ---- clients that disconnect or half-close ----

@pytest.mark.every_policy
@pytest.mark.parametrize("body, status", [(LARGE, 201), (b"text", 415)])
def test_half_closed_client_gets_its_response(daemon, body, status):
    with daemon.client() as c:
        c.send(c.head("POST", "/images", body, [JPEG]) + body)
        c.finish_sending()
        assert c.answer().status == status
        assert c.is_closed()


@pytest.mark.every_policy
def test_half_closed_pipeline_gets_all_responses(daemon):
    with daemon.client() as c:
        c.send((c.head("POST", "/images", SMALL, [JPEG]) + SMALL + c.head("GET", "/healthz")) * 5)
        c.finish_sending()
        for _ in range(5):
            assert c.answer().status == 201
            assert c.answer().status == 200
        assert c.is_closed()


@pytest.mark.also_with("thread-per-connection")
def test_request_cut_by_a_half_close_ends_the_connection(daemon):
    """A cut header or body cannot be served. The connection ends, and may get an error first."""
    for data in (b"GET /hea", b"GET /healthz HTTP/1.1\r\n",
                 b"POST /images HTTP/1.1\r\nHost: x\r\nContent-Type: image/jpeg\r\n"
                 b"Content-Length: 1000\r\n\r\n" + SMALL[:99]):
        with daemon.client() as c:
            c.send(data)
            c.finish_sending()
            try:
                assert c.answer().status in (400, 408)
            except Closed:
                continue
            assert c.is_closed()
    assert is_served(daemon)


@pytest.mark.every_policy
def test_clients_that_disconnect_leave_nothing(daemon):
    """They disconnect at any point of an upload, with a FIN or a RST."""
    rng = random.Random(3)
    kind, body = form_files(SMALL, TINY, SMALL)
    for i in range(load(60, 20)):
        c = daemon.client()
        request = c.head("POST", "/images", body, [("Content-Type", kind)]) + body
        c.send(request[:rng.randrange(1, len(request) + 1)] if i % 3 else request)
        if i % 2:
            c.reset()
        else:
            c.close()
    for _ in range(4):
        c = daemon.client()
        c.send(c.head("POST", "/images", LARGE, [JPEG]) + LARGE)
        assert eventually(lambda: daemon.has_read(c), step=0.001)
        c.reset()
    assert is_served(daemon)
    assert eventually(lambda: not daemon.leftovers(), 20)


@pytest.mark.every_policy
def test_clients_that_leave_free_their_place(start):
    """Limits count current connections and images only."""
    daemon = start("limits.images_in_flight=4", "limits.images_per_client=4",
                   "limits.connections=12")
    for i in range(load(24, 12)):
        try:
            c = daemon.client()
            c.send(c.head("POST", "/images", SMALL, [JPEG]) + (SMALL if i % 2 else SMALL[:5000]))
            c.reset()
        except (ConnectionResetError, BrokenPipeError):
            pass

    def has_room():
        kind, body = form_files(SMALL, SMALL, SMALL, SMALL)
        try:
            return daemon.upload(body, kind).status == 201
        except (Closed, ConnectionResetError, BrokenPipeError):
            return False
    assert eventually(has_room, 10, 0.05)


@pytest.mark.every_policy
def test_variant_survives_a_client_that_stops_waiting(daemon):
    answer = daemon.upload(pictures.photo_jpeg(4000, 3000, 1),
                           headers=[("Prefer", "respond-async")])
    for i in range(6):
        c = daemon.client()
        c.send(c.head("GET", answer["location"] + "/blurred.jpg"))
        c.reset() if i % 2 else c.close()
    assert daemon.get(answer["location"] + "/blurred.jpg").status == 200


# ---- clients that do not read ----

@pytest.mark.every_policy
def test_client_that_does_not_read_delays_no_other(start):
    """A client requests a large file sixty times and has a small window. Others are served
    meanwhile, and it finally gets the right bytes."""
    daemon = start("variant.medium.operations=scale 6000x6000 inside", "variant.medium.quality=100")
    image = daemon.image(pictures.photo_jpeg(2000, 1500, 1))
    path, whole = image["variants"]["medium"]["url"], daemon.fetch(image, "medium")
    assert len(whole) > 500_000
    before = daemon.resident_bytes()
    with daemon.client(receive_buffer=4096) as c:
        c.send(c.head("GET", path) * 60)
        assert eventually(lambda: daemon.is_held_up_by(c))
        started = time.monotonic()
        for _ in range(5):
            assert is_served(daemon)
            assert daemon.fetch(image, "medium") == whole
        assert time.monotonic() - started < slow(30)
        assert daemon.resident_bytes() - before < 40 << 20, "responses must not collect in memory"
        for _ in range(60):
            assert c.answer().body == whole
    with daemon.client(receive_buffer=4096) as c:
        c.send(c.head("GET", path) * 3)
        assert eventually(lambda: daemon.is_held_up_by(c))
        c.reset()
    assert is_served(daemon)


@pytest.mark.also_with("thread-per-connection")
def test_client_that_only_sends_is_no_longer_read(daemon):
    """A client sends requests without end and reads no response. The daemon stops reading its
    requests."""
    before = daemon.resident_bytes()
    with daemon.client(receive_buffer=4096) as c:
        c.socket.settimeout(0.3)
        burst = c.head("GET", "/stats") * 200
        sent = 0
        try:
            while sent < 64 << 20:
                sent += c.socket.send(burst)
        except (socket.timeout, ConnectionResetError, BrokenPipeError):
            pass
        assert sent < 64 << 20, "the daemon read everything"
        assert daemon.resident_bytes() - before < 40 << 20
        assert is_served(daemon)


@pytest.mark.also_with("thread-per-connection")
def test_silent_connections_delay_no_other(daemon):
    """There are fewer of them than threads of thread-per-connection, which leaves some for
    others."""
    idle = [daemon.client() for _ in range(24)]
    for c in idle[::2]:
        c.send(b"GET /hea")
    assert is_served(daemon)
    for c in idle[::2]:
        c.send(b"lthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert c.answer().status == 200
    for c in idle:
        c.close()
