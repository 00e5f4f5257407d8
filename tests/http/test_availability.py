"""One client with few bytes cannot stop the service for others: announced lengths, silence, and
connections that ask for nothing."""

import contextlib
import json
import signal
import threading
import time

import pytest

import pictures
from client import Closed, form, form_files
from darkroom import IS_SANITIZED, TooLate, attempts, eventually, load, slow
from store_files import directory_of
from uploads import TINY, in_parallel

SMALL = pictures.photo_jpeg(320, 240, 2)
JPEG = ("Content-Type", "image/jpeg")


def reserved(daemon):
    return json.loads(daemon.get("/stats").body)["memory"]["reserved_body_bytes"]


def announce(daemon, length, first=b"\xff"):
    """Returns a client that has sent the header of a body, and its first bytes."""
    c = daemon.client()
    c.send(c.head("POST", "/images", None, [JPEG, ("Content-Length", str(length))]) + first)
    return c


# ---- memory of bodies ----

@pytest.mark.every_policy
def test_announced_lengths_reserve_nothing(daemon):
    """16 bodies of 256 MB are announced. Uploads go on as if they were not."""
    silent = [announce(daemon, 256 << 20) for _ in range(16)]
    try:
        assert eventually(lambda: all(daemon.has_read(c) for c in silent))
        assert reserved(daemon) <= 16 * (64 << 10)
        for _ in range(5):
            started = time.monotonic()
            assert daemon.upload(SMALL).status == 201
            assert time.monotonic() - started < slow(5)
    finally:
        for c in silent:
            c.close()
    assert eventually(lambda: reserved(daemon) == 0)


@pytest.mark.skipif(IS_SANITIZED, reason="sanitizers write to memory that the daemon does not")
@pytest.mark.parametrize("length", [16 << 20, 257 << 10, 255 << 10, 70 << 10])
def test_bodies_that_stop_half_way_take_no_more_memory_than_came(start, length):
    """A body's buffer may be larger than its reservation: its pages are not written before bytes
    come. None of the bodies may time out while a busy machine begins the others."""
    count = 100
    daemon = start("limits.body_timeout=600s", "limits.body_rate=1")
    daemon.upload(SMALL)
    before = daemon.resident_bytes()
    silent = [announce(daemon, length) for _ in range(count)]
    try:
        assert eventually(lambda: reserved(daemon) == count * (64 << 10))
        assert daemon.resident_bytes() - before < count * (64 << 10)
    finally:
        for c in silent:
            c.close()


@pytest.mark.also_with("seda")
def test_small_bodies_do_not_wait_for_large_ones(start):
    """Large bodies have all the memory that they may have, and one more waits. A small one does
    not wait for them."""
    daemon = start("limits.memory_budget=64M", "limits.body_bytes=32M", "limits.body_timeout=600s",
                   "limits.body_rate=1", "server.wait_timeout=600s")  # none is refused meanwhile
    length = 28 << 20  # seven eighths of the bodies' half
    large = announce(daemon, length, SMALL + bytes(20 << 20))
    assert eventually(lambda: reserved(daemon) == length)
    late = announce(daemon, 2 << 20)
    assert eventually(lambda: json.loads(daemon.get("/stats").body)["memory"]["waited"] == 1)
    assert daemon.upload(SMALL).status == 201
    assert large.is_silent() and late.is_silent()
    for c in (large, late):
        c.close()


@pytest.mark.every_policy
def test_client_that_leaves_the_line_is_forgotten_at_once(start):
    """body_timeout would let it wait for ten minutes."""
    daemon = start("limits.memory_budget=64M", "limits.body_bytes=32M", "limits.body_timeout=600s",
                   "limits.body_rate=1")
    large = announce(daemon, 28 << 20, SMALL + bytes(20 << 20))
    assert eventually(lambda: reserved(daemon) == 28 << 20)
    left = [announce(daemon, 2 << 20) for _ in range(2)]

    def have_waited():
        """These three have connections, and the one that asks."""
        stats = json.loads(daemon.get("/stats").body)
        return stats["memory"]["waited"] == 2 and stats["http"]["connections"] == 4
    assert eventually(have_waited)
    left[0].close()
    left[1].reset()
    # This connection and the large one are left.
    assert eventually(
        lambda: json.loads(daemon.get("/stats").body)["http"]["connections"] == 2, 10)
    assert large.is_silent()
    large.close()


# ---- uploads that are announced and never sent ----

@pytest.mark.also_with("seda")  # silent connections take all threads of thread-per-connection
def test_headers_without_bodies_refuse_no_upload(start):
    """An upload that is only announced has no claim, also not against others of its address."""
    daemon = start("limits.body_timeout=10m", "overload.target_p90=1s")
    silent = [announce(daemon, 1 << 20, b"") for _ in range(400)]
    try:
        assert eventually(lambda: json.loads(daemon.get("/stats").body)["overload"]["classes"][0]
                          ["admitted"] == len(silent))
        assert [daemon.upload(SMALL).status for _ in range(5)] == [201] * 5
    finally:
        for c in silent:
            c.close()


# ---- a large body that arrives in one piece ----

@pytest.mark.every_policy
def test_bodies_of_all_lengths_arrive_whole(start):
    """Lengths around each step in which memory is reserved, and around those of the buffer."""
    daemon = start("server.keep_originals=yes")
    lengths = [n + d for n in (64 << 10, 128 << 10, 1 << 20, 2 << 20, 17 << 20)
               for d in (-1, 0, 1)]

    def upload(i):
        body = SMALL + bytes((j * 7 + i) & 0xff for j in range(1000)) * (lengths[i] // 1000 + 1)
        body = body[:lengths[i]]
        image = daemon.image(body)
        ident = image["id"]
        stored = (directory_of(daemon.store, ident) / "original.jpg").read_bytes()
        assert stored == body
    in_parallel(len(lengths), upload)
    assert eventually(lambda: reserved(daemon) == 0)


# ---- connections ----

ANNOUNCED = b"POST /images HTTP/1.1\r\nHost: localhost\r\nContent-Type: image/jpeg\r\n"


@pytest.mark.parametrize("sent", [
    b"", b"GET /healthz HT", ANNOUNCED + b"Content-Length: 1000\r\n\r\n",
    ANNOUNCED + b"Transfer-Encoding: chunked\r\n\r\n"])
def test_connections_without_a_request_make_room(start, sent):
    """Nearly all connections send nothing, or never finish a header, or send no body. The one that
    has waited longest is closed for each new one."""
    daemon = start("limits.connections=20", "limits.idle_timeout=1h", "limits.header_timeout=1h",
                   "limits.body_timeout=10m")
    silent = [daemon.client() for _ in range(19)]
    for c in silent:
        c.send(sent)
    assert eventually(lambda: all(daemon.has_read(c) for c in silent))
    for _ in range(5):
        assert daemon.get("/healthz").status == 200
        assert daemon.upload(SMALL).status == 201
    assert silent[0].is_closed(slow(20))
    assert silent[-1].is_silent()
    for c in silent:
        c.close()


def test_a_connection_without_a_body_grows_old(start):
    """Also while its rate is looked at, once a second. So it is closed before younger ones."""
    daemon = start("limits.connections=20", "limits.idle_timeout=1h", "limits.header_timeout=1h",
                   "limits.body_timeout=10m")
    with announce(daemon, 1000, b"") as oldest:
        assert eventually(lambda: daemon.has_read(oldest))
        silent = [daemon.client() for _ in range(18)]
        time.sleep(1.1)
        assert daemon.get("/healthz").status == 200
        assert oldest.is_closed(slow(20))
        assert all(c.is_silent() for c in silent)
        for c in silent:
            c.close()


def test_connection_that_is_used_is_not_closed_for_others(start):
    daemon = start("limits.connections=20", "limits.idle_timeout=1h", "limits.header_timeout=1h")
    with daemon.client() as used:
        assert used.is_open()
        for _ in range(6):
            others = [daemon.client() for _ in range(10)]
            assert used.is_open()
            for c in others:
                c.close()


@attempts(5)
def test_connection_that_was_used_stays_while_another_client_opens_many(start):
    """Each silent connection closes one that is silent, too. The kept one waits longer than they."""
    daemon = start("limits.connections=200", "limits.idle_timeout=1h", "limits.header_timeout=1h")
    with daemon.client() as used:
        assert used.is_open()  # it asks
        for _ in range(3):
            begin = time.monotonic()
            silent = [daemon.client() for _ in range(400)]
            is_open = used.is_open()
            if not is_open and time.monotonic() - begin > 1.5:
                raise TooLate("the used connection has waited for long")
            assert is_open
            for c in silent:
                c.close()


@attempts(5)
def test_connection_that_was_used_stays_while_many_are_accepted_at_once(start):
    """None of them has waited when the next is accepted."""
    daemon = start("limits.connections=100", "limits.idle_timeout=1h", "limits.header_timeout=1h")
    with daemon.client() as used:
        assert used.is_open()
        begin = time.monotonic()
        daemon.process.send_signal(signal.SIGSTOP)
        silent = [daemon.client() for _ in range(200)]
        time.sleep(0.5)
        daemon.process.send_signal(signal.SIGCONT)
        assert eventually(silent[99].is_closed)
        is_open = used.is_open()
        if not is_open and time.monotonic() - begin > 1.5:
            raise TooLate("the used connection has waited for long")
        assert is_open
        for c in silent:
            c.close()


def test_idle_connections_make_room(start):
    """A client keeps nearly all connections after a request. Others open some without a request."""
    daemon = start("limits.connections=20", "limits.idle_timeout=1h", "limits.header_timeout=1h")
    kept = [daemon.client() for _ in range(19)]
    assert all(c.is_open() for c in kept)
    time.sleep(2.1)  # they are not closed before
    others = [daemon.client() for _ in range(5)]
    assert eventually(lambda: sum(c.is_silent() for c in kept) <= 15)
    assert all(c.is_open() for c in others)


@pytest.mark.also_with("thread-per-connection")
def test_first_byte_is_due_within_header_timeout(start):
    daemon = start("limits.header_timeout=300ms", "limits.idle_timeout=1h")
    with daemon.client() as c:
        assert c.is_closed(slow(20))
    with daemon.client() as c:
        assert c.is_open()
        time.sleep(0.5)  # idle between requests is limited by idle_timeout
        assert c.is_open()


@pytest.mark.also_with("thread-per-connection")
def test_connections_of_one_client_are_limited(start):
    daemon = start("limits.connections_per_client=3")
    kept = [daemon.client() for _ in range(3)]
    assert all(c.is_open() for c in kept)
    with daemon.client() as c:
        answer = c.answer()
        assert (answer.status, answer.slug, answer["retry-after"]) == (503, "overloaded", "1")
        document = answer.json()
        assert (document["limit"], document["configured"], document["actual"]) == (
            "limits.connections_per_client", 3, 4)
    assert all(c.is_open() for c in kept)
    kept.pop().close()
    assert eventually(lambda: served(daemon))
    for c in kept:
        c.close()


def served(daemon):
    try:
        return daemon.get("/healthz").status == 200
    except (Closed, ConnectionResetError, BrokenPipeError):
        return False


def test_clients_on_this_machine_have_no_limit_of_their_own(start):
    """They may be a proxy."""
    daemon = start("limits.connections=40")
    kept = [daemon.client() for _ in range(30)]
    assert all(c.is_open() for c in kept)
    for c in kept:
        c.close()


def test_each_refused_connection_gets_its_503(start):
    """More than are kept until they have read their 503."""
    daemon = start("limits.connections_per_client=1")
    with daemon.client() as first:
        assert first.is_open()
        refused = [daemon.client() for _ in range(200)]
        for c in refused:
            assert c.answer().status == 503
            c.close()
        stats = json.loads(first.request("GET", "/stats").body)["http"]
        assert (stats["connections"], stats["connections_rejected"]) == (1, 200)


@pytest.mark.also_with("thread-per-connection")
def test_response_that_is_not_read_ends_its_connection(start):
    """What the kernel took from the daemon was not read by the client, and pays for nothing."""
    daemon = start("limits.body_timeout=500ms", "limits.body_rate=100",
                   "variant.medium.operations=scale 2000x2000 exact")
    image = daemon.image(SMALL)
    with daemon.client(receive_buffer=4096) as c:
        get = c.head("GET", image["variants"]["medium"]["url"])
        c.send(get * 200)
        assert eventually(lambda: daemon.is_held_up_by(c))
        assert eventually(
            lambda: json.loads(daemon.get("/stats").body)["http"]["connections"] == 1, 10)


def test_reader_of_small_answers_is_cut_as_well(start):
    """Each of them is written soon: the rate is that of all."""
    daemon = start("limits.body_timeout=500ms", "limits.body_rate=1M")
    with daemon.client(receive_buffer=4096) as c:
        rest = memoryview(c.head("GET", "/healthz") * 20000)
        c.socket.setblocking(False)

        def is_cut():
            nonlocal rest
            with contextlib.suppress(BlockingIOError):
                rest = rest[c.socket.send(rest):]
            with contextlib.suppress(BlockingIOError):
                return not c.socket.recv(190)  # each 10 ms

        def is_reset():
            try:
                return is_cut()
            except ConnectionError:
                return True
        assert eventually(is_reset)
    assert daemon.get("/healthz").status == 200


@pytest.mark.also_with("thread-per-connection")
def test_response_that_is_read_slowly_is_complete(start):
    daemon = start("limits.body_timeout=300ms", "limits.body_rate=100",
                   "variant.medium.operations=scale 2000x2000 exact")
    url = daemon.image(SMALL)["variants"]["medium"]["url"]
    whole = daemon.get(url).body
    with daemon.client(receive_buffer=4096) as c:
        c.send(c.head("GET", url) * 40)
        for _ in range(40):
            assert c.answer().body == whole
            time.sleep(0.05)


# ---- large forms ----

@pytest.mark.every_policy
@attempts(5)
def test_large_form_does_not_stop_others(start):
    """200 MB that nearly are boundaries take most of a second of parsing, 32 MB with a sanitizer.
    Other requests get their turn meanwhile."""
    daemon = start("limits.body_bytes=256M", "limits.memory_budget=1G")
    kind, body = form_files(SMALL)
    filler, fillers = b"\r\n--" * (1 << 20), load(50, 8)
    begin = body[:-len(b"--a-boundary--\r\n")] + b"--a-boundary\r\n" \
        b'Content-Disposition: form-data; name="x"\r\n\r\n'
    end = b"\r\n--a-boundary--\r\n"
    length = len(begin) + fillers * len(filler) + len(end)
    answers, longest = [], 0
    with contextlib.ExitStack() as stack:
        # In pieces: a busy machine copies 200 MB for longer than limits.header_timeout, and the
        # daemon closes a connection that sends nothing for that time.
        c = stack.enter_context(daemon.client())
        c.send(c.head("POST", "/images", None,
                      [("Content-Type", kind), ("Content-Length", str(length))]) + begin)
        for _ in range(fillers):
            c.send(filler)
        c.send(end[:-1])
        assert eventually(lambda: daemon.has_read(c))
        other = stack.enter_context(daemon.client())  # not before: it would be idle for too long
        sender = threading.Thread(target=lambda: (c.send(end[-1:]), answers.append(c.answer())))
        begun = time.monotonic()
        sender.start()
        while not answers:
            started = time.monotonic()
            assert other.is_open()
            longest = max(longest, time.monotonic() - started)
        sender.join()
        total = time.monotonic() - begun
    assert answers[0].status == 201 and len(answers[0].json()["images"]) == 1
    if longest > total / 2:
        raise TooLate(f"one request took {longest:.3f} s of {total:.3f}")


def test_response_to_many_bad_parts_is_bounded(start):
    """Names are escaped to six times their length, and the client may read them slowly."""
    daemon = start("limits.parts=300")
    name = "\x01" * 120
    kind, body = form([(name, name, "image/jpeg", b"x")] * 300)
    answer = daemon.upload(body, kind)
    assert answer.status == 415
    document = answer.json()
    assert len(document["errors"]) == 100 and document["errors_omitted"] == 200
    assert document["errors"][0]["filename"] == name
    assert "filename" not in document["errors"][-1]
    assert len(answer.body) < 64 << 10


@pytest.mark.parametrize("is_read", [True, False])
def test_responses_that_are_not_read_count_as_bodies(start, is_read):
    """A client with many small forms reads the responses late, or never."""
    daemon = start("limits.parts=300")
    kind, body = form([("\x01" * 120, "", "image/jpeg", b"x")] * 300)
    sent = 0
    with daemon.client(receive_buffer=4096) as c:
        while reserved(daemon) == 0:  # the sockets have room for some
            c.send(c.head("POST", "/images", body, [("Content-Type", kind)]) + body)
            sent += 1
            assert eventually(lambda: daemon.has_read(c) or reserved(daemon) > 0)
        assert eventually(lambda: 20 << 10 < reserved(daemon) < 80 << 10)
        for _ in range(sent if is_read else 0):
            assert c.answer().status == 415
        assert not is_read or eventually(lambda: reserved(daemon) == 0)
    assert eventually(lambda: reserved(daemon) == 0)


def test_response_has_the_names_of_ordinary_parts(daemon):
    kind, body = form([("file", f"picture number {i}.png", "image/png", b"\x89PNG") for i in
                       range(64)])
    errors = daemon.upload(body, kind).json()["errors"]
    assert [e["filename"] for e in errors] == [f"picture number {i}.png" for i in range(64)]
