"""Files that are on a slow disk and not in memory: what waits for them, and what does not."""

import contextlib
import platform

import pytest

import pictures
from darkroom import IS_SANITIZED, PER_CONNECTION, TooLate, attempts, eventually
from slow_disk import SlowDisk

pytestmark = pytest.mark.skipif(IS_SANITIZED, reason="the library must come before the runtime")
SMALL = pictures.photo_jpeg(320, 240, 1)
LARGE = pictures.photo_jpeg(1600, 1200, 3, quality=98)
PIECE = 256 << 10
NEEDS_CACHED_OPEN = pytest.mark.skipif(
    tuple(int(n) for n in platform.release().split(".")[:2]) < (5, 12),
    reason="the kernel cannot open only what is in memory")


@pytest.fixture
def slow(start, tmp_path):
    """Returns start(*settings) for daemons on a slow disk, which is fast at first."""
    disk = SlowDisk(tmp_path / "delay")

    def start_slow(*settings):
        return start(*settings, environ=disk.environ), disk

    yield start_slow
    disk.delay_reads(0)


def stats(daemon):
    return daemon.get("/stats").json()


def disk_events(daemon):
    """Returns how often disk_read was visited with a job."""
    stage = next(s for s in stats(daemon)["stages"] if s["name"] == "disk_read")
    return stage["events"]


def ask(stack, daemon, paths):
    """Sends a GET on a connection of its own for each path. Returns the clients."""
    clients = [stack.enter_context(daemon.client()) for _ in paths]
    for client in clients:
        assert client.request("GET", "/healthz").status == 200
    for client, path in zip(clients, paths):
        client.send(client.head("GET", path))
    return clients


# ---- who waits ----

@pytest.mark.also_with("seda")
def test_files_on_a_slow_disk_delay_neither_probes_nor_uploads(slow):
    daemon, disk = slow()
    image = daemon.image(SMALL)
    paths = [v["url"] for v in image["variants"].values()] * 8
    with contextlib.ExitStack() as stack:
        probe = stack.enter_context(daemon.client())
        assert probe.request("GET", "/healthz").status == 200
        disk.delay_reads(30)
        clients = ask(stack, daemon, paths)
        # What comes last is answered while most files are still on the disk.
        assert probe.request("GET", "/healthz").status == 200
        assert probe.request("POST", "/images", SMALL,
                             [("Content-Type", "image/jpeg")]).status == 201
        waiting = sum(client.is_silent() for client in clients)
        assert waiting > len(clients) / 2, waiting
        for client, path in zip(clients, paths):
            answer = client.answer()
            name = path.partition("?")[0].rsplit("/", 1)[1].removesuffix(".jpg")
            assert answer.status == 200
            assert len(answer.body) == image["variants"][name]["bytes"]


def writes(daemon):
    """Returns whether the thread of disk_write has taken what was sent to it."""
    figures = stats(daemon)
    sent = sum(edge["events"] for edge in figures["edges"] if edge["to"] == "disk_write")
    return sent > 1 and next(s for s in figures["stages"] if s["name"] == "disk_write")["queued"] == 0


def test_a_get_does_not_wait_behind_an_upload(slow):
    daemon, disk = slow("stage.disk_write.threads=1")
    url = daemon.image(SMALL)["variants"]["thumb"]["url"]
    disk.delay_all(1000)  # an upload writes more than a GET reads
    with daemon.client() as uploads, daemon.client() as asks:
        head = uploads.head("POST", "/images", SMALL, [("Content-Type", "image/jpeg")])
        uploads.send(head + SMALL)
        assert eventually(lambda: writes(daemon))
        assert asks.request("GET", url).status == 200
        assert uploads.is_silent()
        disk.delay_all(0)
        assert uploads.answer().status == 201


@NEEDS_CACHED_OPEN
@pytest.mark.skipif(PER_CONNECTION, reason="it asks for the visits of a disk thread")
@attempts(5)
def test_files_in_memory_need_no_disk_thread(start):
    daemon = start("variant.medium.quality=100", "variant.medium.operations=scale 1600x1200 inside")
    image = daemon.image(LARGE)
    assert image["variants"]["medium"]["bytes"] > 2 * PIECE
    assert daemon.fetch(image, "medium")  # the first time it is compared with its checksum
    before = disk_events(daemon)
    for variant in image["variants"].values():
        assert len(daemon.get(variant["url"]).body) == variant["bytes"]
    assert daemon.get(image["url"]).status == 200
    if disk_events(daemon) != before:
        raise TooLate("a rename elsewhere made the kernel give up, or memory was short")


# ---- what is sent ----

@pytest.mark.also_with("thread-per-connection")
def test_cold_files_are_answered_as_warm_ones(slow):
    daemon, disk = slow("variant.medium.quality=100", "variant.medium.operations=scale 1600x1200 inside")
    image = daemon.image(LARGE)
    medium, thumb = (image["variants"][name] for name in ("medium", "thumb"))
    assert medium["bytes"] > 2 * PIECE
    requests = [("GET", medium["url"], ()), ("GET", thumb["url"], ()), ("GET", image["url"], ()),
                ("HEAD", medium["url"], ()),
                ("GET", medium["url"], [("Range", f"bytes={PIECE - 10}-{2 * PIECE + 5}")]),
                ("GET", medium["url"], [("Range", "bytes=-7")]),
                ("GET", medium["url"], [("Range", f"bytes={medium['bytes']}-")]),
                ("GET", thumb["url"], [("If-None-Match", "*")]),
                ("GET", thumb["url"], [("If-Match", '"x"')]),
                ("DELETE", image["url"], [("If-Match", '"x"')]),
                ("DELETE", image["url"][:-1] + "!", ()),
                ("GET", thumb["url"].replace("thumb", "none"), ())]
    hidden = {"date", "x-request-id"}

    def answers():
        with daemon.client() as client:
            got = [client.request(method, path, headers=headers)
                   for method, path, headers in requests]
        return [(a.status, {n: v for n, v in a.headers.items() if n not in hidden},
                 a.body if a.status < 400 else a.slug if a.body else None) for a in got]

    warm = answers()
    disk.delay_reads(2)
    cold = answers()
    assert [a[0] for a in warm] == [200, 200, 200, 200, 206, 206, 416, 304, 412, 412, 404, 404]
    for one, other in zip(cold, warm):
        one[1].pop("content-length", None), other[1].pop("content-length", None)
        assert one == other


def test_images_that_do_not_exist_are_looked_for_on_the_disk(slow):
    daemon, disk = slow()
    image = daemon.image(SMALL)
    absent = image["url"][:-4] + "0000"
    disk.delay_reads(2)
    for method, path in (("GET", absent), ("GET", absent + "/thumb.jpg"), ("DELETE", absent)):
        with daemon.client() as client:
            assert client.request(method, path).slug == "not-found"
            answer = client.request(method, path, headers=[("If-Match", '"x"')])
            assert answer.slug == "not-found"


# ---- the line ----

def test_a_client_that_goes_away_gives_up_its_place_in_the_line_for_the_disk(slow):
    daemon, disk = slow()
    image = daemon.image(SMALL)
    before = disk_events(daemon)
    disk.delay_reads(700)
    with contextlib.ExitStack() as stack:
        for client in ask(stack, daemon, [image["variants"]["thumb"]["url"]] * 12):
            client.reset()
    assert eventually(lambda: stats(daemon)["http"]["connections"] == 1)
    assert disk_events(daemon) - before < 8


def test_a_file_that_is_not_read_in_time_is_refused(slow):
    daemon, disk = slow("server.wait_timeout=300ms")
    image = daemon.image(SMALL)
    disk.delay_reads(1500)
    with contextlib.ExitStack() as stack:
        clients = ask(stack, daemon, [image["variants"]["thumb"]["url"]] * 6)
        answers = [client.answer() for client in reversed(clients)][::-1]
    refused = [answer for answer in answers if answer.status != 200]
    assert refused and len(refused) < len(answers)
    for answer in refused:
        assert answer.slug == "overloaded" and answer["retry-after"] == "1"
        assert answer.json()["detail"] == "the file was not read within server.wait_timeout"


@attempts(5)
def test_a_client_that_waits_for_an_image_and_leaves_is_forgotten_at_once(slow):
    """The image is still being written then."""
    daemon, disk = slow()
    disk.delay_all(200)
    answer = daemon.upload(SMALL, headers=[("Prefer", "respond-async")])
    assert answer.status == 202
    path = answer.json()["images"][0]["url"] + "/thumb.jpg"
    with daemon.client() as stays, daemon.client() as leaves:
        for client in (stays, leaves):
            client.send(client.head("GET", path))
        assert eventually(lambda: stats(daemon)["http"]["connections"] == 3)
        leaves.reset()
        assert eventually(lambda: stats(daemon)["http"]["connections"] == 2)
        if stats(daemon)["images"]["in_flight"] == 0:
            raise TooLate("the image was stored before")
        assert stays.is_silent()
        disk.delay_all(0)
        assert stays.answer().status == 200
