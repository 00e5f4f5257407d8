"""store.kind = s3: objects that are sent while they are read, part by part."""

import contextlib
import os
import select

import pytest

import pictures
import s3_image
from darkroom import IS_SANITIZED, eventually, slow
from s3_fixtures import as_before, begin, change, figures, for_all, store, stored  # noqa: F401
from s3_stand_in import Fault
from test_s3_faults import ONCE, name_of
from uploads import check_stored

PART, LARGE = 256 << 10, 2 << 20  # bytes of the first part, and of the others
THIRD = PART + LARGE
LARGE_PARTS = 32  # at once
HUGE = ("variant.huge.operations=scale 2400x1800 inside", "variant.huge.quality=100")
PHOTO = pictures.photo_jpeg(2400, 1800, 2, quality=100)


@pytest.fixture(scope="module")
def made(start_for_all, tmp_path_factory):
    """Returns a daemon, its store, the URL of a variant of three parts, and its content."""
    with for_all(start_for_all, tmp_path_factory.mktemp("s3"), *HUGE) as (daemon, store):
        image = daemon.image(PHOTO)
        check_stored(daemon, image)
        url = image["variants"]["huge"]["url"]
        answer = daemon.get(url)
        assert THIRD < len(answer.body) == image["variants"]["huge"]["bytes"]
        content = s3_image.files_of(stored(store)[image["id"]])["huge.jpg"]
        assert answer.body == content
        yield daemon, store, url, content


@pytest.fixture
def large(made):
    with as_before(*made[:2]):
        yield made


def gets(store):
    with store.lock:
        return sum(method == "GET" and "image" in key for method, key in store.requests)


def test_parts(large):
    daemon, store, url, content = large
    before = gets(store)
    answer = daemon.get(url)
    assert answer.body == content
    assert gets(store) - before == 3
    with daemon.client() as c:
        head = c.request("HEAD", url)
        assert head["content-length"] == str(len(content)) and head["etag"] == answer["etag"]
        assert c.request("GET", url, headers=[("If-None-Match", answer["etag"])]).status == 304
        assert c.request("GET", url).body == content
    assert gets(store) - before == 3 + 1 + 1 + 3, "one part tells the tag"


def test_ranges(large):
    daemon, store, url, content = large
    end = len(content)
    with daemon.client() as c:
        for first, last in ((0, 0), (0, end - 1), (10, PART - 1), (10, PART), (PART, PART),
                            (PART - 1, THIRD + 1), (end - 1, end - 1), (THIRD, end + 9),
                            (5, 5 + LARGE), (5, 4 + LARGE)):
            part = c.request("GET", url, headers=[("Range", f"bytes={first}-{last}")])
            last = min(last, end - 1)
            assert part.status == 206 and part.body == content[first:last + 1], (first, last)
            assert part["content-range"] == f"bytes {first}-{last}/{end}"
        part = c.request("GET", url, headers=[("Range", f"bytes=-{PART + 5}")])
        assert part.status == 206 and part.body == content[-PART - 5:]
        assert c.request("GET", url, headers=[("Range", f"bytes={end}-")]).status == 416
        whole = c.request("GET", url, headers=[("Range", "bytes=5-9"), ("If-Range", '"x"')])
        assert whole.status == 200 and whole.body == content


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("fault", [fault for fault in ONCE if name_of(fault) != "change"], ids=name_of)
def test_a_fault_in_a_part_is_tried_again(large, fault, number):
    daemon, store, url, content = large
    store.fail_once("GET", "/image/", number, **fault)
    assert daemon.get(url).body == content
    store.fail_once("GET", "/image/", 2, **fault)
    with daemon.client() as c:
        part = c.request("GET", url, headers=[("Range", f"bytes=7-{PART + 9}")])
        assert part.status == 206 and part.body == content[7:PART + 10]


@pytest.mark.parametrize("resets", [False, True])
def test_connection_that_ends_in_a_part(large, resets):
    daemon, store, url, content = large
    with daemon.client() as c:
        for cut in (*range(0, 400, 9), *range(400, PART + 400, PART // 8 - 1)):
            store.fail_once("GET", "/image/", 1 + cut % 3, cut=cut, resets=resets)
            answer = c.request("GET", url)
            assert answer.status == 200 and answer.body == content, cut


def received(daemon, url):
    """Returns the bytes of an answer that ends too early, with its header."""
    with daemon.client() as c:
        c.send(c.head("GET", url))
        data = b""
        while piece := c.socket.recv(1 << 16):
            data += piece
        return data


def check_cut(daemon, url, content, reason):
    """The answer ends before the part that is wrong, and the daemon tells why."""
    before = len(daemon.log)
    head, _, body = received(daemon, url).partition(b"\r\n\r\n")
    assert b"\r\nContent-Length: %d" % len(content) in head
    assert len(body) < len(content) and content.startswith(body)
    assert daemon.says(lambda log: f"{reason}; closing the connection" in log[before:])


@pytest.mark.parametrize("at", [PART + 99, -1])
def test_damage_behind_the_first_part_is_not_served_as_sound(large, at):
    """The first parts have been sent by then. The last one is not."""
    daemon, store, url, content = large
    image, changed = {"id": url.split("/")[-2]}, bytearray(content)
    changed[at] ^= 1
    whole = stored(store)[image["id"]]
    change(store, image, lambda _: whole.replace(content, bytes(changed)))
    check_cut(daemon, url, bytes(changed), "Bad message")
    change(store, image, lambda _: whole)
    assert daemon.get(url).body == content


def answers_other_parts(headers, body):
    """A part that is not the one that was asked for."""
    return {**headers, "Content-Range": "bytes 0-9/10"}, body[:10]


def ignores_the_range(headers, body):
    return {key: value for key, value in headers.items() if key != "Content-Range"}, body


def has_another_tag(headers, body):
    return {**headers, "ETag": '"0"'}, body


WRONG = [dict(change=answers_other_parts), dict(change=has_another_tag), dict(status=404, code="NoSuchKey"),
         dict(status=416, code="InvalidRange"), dict(status=200, code="a page"),
         dict(status=500, code="InternalError"), dict(cut=5, resets=True)]


@pytest.mark.parametrize("fault", WRONG, ids=name_of)
def test_part_that_cannot_be_read_ends_the_answer(large, fault):
    daemon, store, url, content = large
    count = [0]

    def third(method, key):
        count[0] += "/image/" in key
        return Fault(**fault) if count[0] > 2 and "/image/" in key else None

    store.fault = third
    head, _, body = received(daemon, url).partition(b"\r\n\r\n")
    assert body == content[:THIRD]
    store.fault = None
    assert eventually(lambda: daemon.get(url).status == 200)
    assert daemon.get(url).body == content


def test_content_that_has_changed_is_not_mixed(large):
    """Another object has the name after the first part."""
    daemon, store, url, content = large
    image = {"id": url.split("/")[-2]}
    ident = daemon.image(pictures.photo_jpeg(2400, 1800, 3, quality=100))["id"]
    other = stored(store)[ident]
    count = [0]

    def replace(method, asked):
        count[0] += 1
        if count[0] == 2:
            change(store, image, lambda _: other)

    store.fault = replace
    assert received(daemon, url).partition(b"\r\n\r\n")[2] == content[:PART]


def parts_held(daemon):
    """Returns the bytes of each file in memory that the daemon has open."""
    directory, parts = f"/proc/{daemon.process.pid}/fd", []
    for name in os.listdir(directory):
        with contextlib.suppress(FileNotFoundError):  # it was closed meanwhile
            if "memfd:s3" in os.readlink(f"{directory}/{name}"):
                parts.append(os.stat(f"{directory}/{name}").st_size)
    return parts


def test_readers_that_are_slow_hold_no_connection(begin, store):
    daemon = begin("experiment.s3_connections=1", *HUGE)
    image = daemon.image(PHOTO)
    url, length = image["variants"]["huge"]["url"], image["variants"]["huge"]["bytes"]
    with daemon.client(receive_buffer=4096) as c:
        c.send(c.head("GET", url))
        assert select.select([c.socket], [], [], slow(20))[0]
        assert eventually(lambda: len(parts_held(daemon)) == 1)  # the next one may have begun
        check_stored(daemon, image)
        assert len(c.answer().body) == length


def test_many_readers_take_bounded_memory(begin, store):
    """Each client reads until its answer has come to the second part."""
    # Each client waits for the others before it.
    daemon = begin(*HUGE, "limits.connections_per_client=0", "limits.body_timeout=1h")
    image = daemon.image(PHOTO)
    url, length = image["variants"]["huge"]["url"], image["variants"]["huge"]["bytes"]
    before = daemon.resident_bytes("VmHWM")
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(daemon.client(receive_buffer=4096)) for _ in range(LARGE_PARTS + 8)]
        for c in clients:
            c.send(c.head("GET", url))
        for i, c in enumerate(clients):
            while len(c.buffer) < PART or \
                    parts_held(daemon).count(LARGE) <= i and len(c.buffer) < PART + 9999:
                data = c.socket.recv(1 << 12)
                assert data, f"client {i} was cut off"
                c.buffer += data
        assert parts_held(daemon).count(LARGE) == LARGE_PARTS
        assert sum(parts_held(daemon)) <= LARGE_PARTS * LARGE + 8 * PART
        for c in clients:
            assert len(c.answer().body) == length
    assert not parts_held(daemon)
    if not IS_SANITIZED:  # a sanitizer takes memory of its own
        assert daemon.resident_bytes("VmHWM") - before < 5 * length


def test_clients_that_leave_lose_nothing(large):
    daemon, store, url, content = large
    for i in range(40):
        with daemon.client(receive_buffer=4096) as c:
            c.send(c.head("GET", url))
            if i % 2:
                c.socket.recv(1000)
            c.reset()
    assert eventually(lambda: not parts_held(daemon) and figures(daemon)["in_flight"] == 0)
    assert daemon.get(url).body == content
