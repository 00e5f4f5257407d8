"""Requests allocate nothing once the daemon has warmed up. Memory comes from the pool, and
libjpeg's objects are reused. A connection allocates only when it starts. tests/tools/faults.c
counts allocations by call site."""

import time

import pytest
from PIL import ImageCms

import pictures
from client import chunked, form
from darkroom import IS_SANITIZED, Daemon, eventually
from faults import ALLOCATORS, Faults

pytestmark = pytest.mark.skipif(IS_SANITIZED,
                                reason="faults.so cannot be loaded before the sanitizer")

REQUESTS = 40
STRAY = 4  # allowed in a round: a thread may need a buffer of a new size
PER_SECOND = 2  # of threads that look for other work: a directory stream
ROUNDS = 8  # allowed until each thread has its buffers
PER_REQUEST = {
    "asynchronous": 1,  # removal from the spool uses readdir(), which allocates a stream
    "statistics": 1, "metrics": 1,  # the document, which a flood of requests shares
}

PLAIN = pictures.photo_jpeg(240, 180, 1)
PROGRESSIVE = pictures.photo_jpeg(180, 240, 2, progressive=True)
GREY = pictures.jpeg(pictures.photo(120, 120, 3).convert("L"))
SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
WITH_PROFILE = pictures.jpeg(pictures.photo(200, 150, 4), icc_profile=SRGB)
JPEG = ("Content-Type", "image/jpeg")
FORM = form([("file", "a.jpg", "image/jpeg", PLAIN), ("file", "b.png", "image/png", b"\x89PNG"),
             ("file", "c.jpg", "image/jpeg", GREY)])


def post(body, *headers, content_type="image/jpeg"):
    return "POST", "/images", body, [("Content-Type", content_type), *headers]


# name: (status, request)
UPLOADS = {
    "baseline": (201, post(PLAIN)),
    "progressive": (201, post(PROGRESSIVE)),
    "grey": (201, post(GREY)),
    "profile": (201, post(WITH_PROFILE)),
    "form": (201, post(FORM[1], content_type=FORM[0])),
    "chunks": (201, post(chunked(PLAIN), ("Transfer-Encoding", "chunked"))),
    "asynchronous": (202, post(PLAIN, ("Prefer", "respond-async"))),
    "no JPEG": (415, post(b"GIF89a")),
    "damaged": (422, post(PLAIN[:700])),
}
READS = {
    "metadata": (200, ("GET", "{image}")),
    "variant": (200, ("GET", "{image}/thumb.jpg")),
    "head": (200, ("HEAD", "{image}/thumb.jpg")),
    "range": (206, ("GET", "{image}/thumb.jpg", None, [("Range", "bytes=5-50")])),
    "not modified": (304, ("GET", "{image}/thumb.jpg", None, [("If-None-Match", "*")])),
    "not found": (404, ("GET", "/images/01JD0000000000000000000000")),
    "no such path": (404, ("GET", "/nowhere")),
    "statistics": (200, ("GET", "/stats")),
    "metrics": (200, ("GET", "/metrics")),
    "health": (200, ("GET", "/healthz")),
}


def is_at_rest(faults):
    """Returns whether nothing allocates for a while. After the start, threads look for other work."""
    before = allocations(faults)
    time.sleep(0.3)
    return allocations(faults) == before


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """Returns a connection to a daemon, the path of an image in it, and its call sites."""
    faults = Faults(tmp_path_factory.mktemp("faults") / "control")
    daemon = Daemon(tmp_path_factory.mktemp("counted"), "limits.images_per_client=100",
                    environ=faults.environ)
    with daemon.client() as client:
        url = daemon.image(PLAIN)["url"]
        assert eventually(lambda: is_at_rest(faults), 60)
        yield client, url, faults
    daemon.stop()


def allocations(faults):
    return {name: calls for name, function, _, calls in faults.sites().values()
            if function in ALLOCATORS}


def round_of(counted, status, request):
    """Makes REQUESTS requests. Returns their allocations by call site."""
    client, image, faults = counted
    method, path, *rest = request
    before = allocations(faults)
    for _ in range(REQUESTS):
        answer = client.request(method, path.format(image=image), *rest)
        assert answer.status == status, answer
    return {name: calls - before.get(name, 0) for name, calls in allocations(faults).items()
            if calls > before.get(name, 0)}


@pytest.mark.parametrize("name", [*UPLOADS, *READS])
def test_requests_allocate_nothing(counted, name):
    status, request = {**UPLOADS, **READS}[name]
    for _ in range(ROUNDS):
        begin = time.monotonic()
        made = round_of(counted, status, request)
        others = STRAY + PER_SECOND * int(time.monotonic() - begin)
        if sum(made.values()) <= others + REQUESTS * PER_REQUEST.get(name, 0):
            return
    pytest.fail(f"{REQUESTS} requests made {sum(made.values())} allocations: {made}")


def test_connection_allocates_three_objects(counted):
    """One object of the connection, and two of the event loop. This also shows that the counter
    counts."""
    daemon_host, _, faults = counted
    before = sum(allocations(faults).values())
    for _ in range(REQUESTS):
        with type(daemon_host)(*daemon_host.socket.getpeername(), timeout=20) as client:
            assert client.request("GET", "/healthz").status == 200
    made = sum(allocations(faults).values()) - before
    assert 3 * REQUESTS <= made <= 3 * REQUESTS + STRAY, made
