"""More is uploaded than the daemon may process: refusals before the body, waiting, and requests that
overload does not concern. An image stays in flight for as long as a test needs, because its file is
written to a disk that is slow."""

import contextlib
import select
import socket
import threading

import pytest

import pictures
from client import chunked
from darkroom import TooLate, attempts, eventually, run
from uploads import JPEG, TINY, in_parallel

HUGE = pictures.photo_jpeg(5000, 4000, 4)
LARGE = pictures.photo_jpeg(1600, 1200, 3)
SMALL = pictures.photo_jpeg(320, 240, 2)


def stats(daemon):
    return daemon.get("/stats").json()


def overload(daemon, name="other"):
    """Returns the figures of a class."""
    classes = stats(daemon)["overload"]["classes"]
    return next(figures for figures in classes if figures["name"] == name)


def full(daemon, disk, count=1, delay_ms=300):
    """Returns clients whose uploads are in flight for several operations of the disk, or until
    disk.delay_all(0)."""
    disk.delay_all(delay_ms)
    clients = []
    for _ in range(count):
        c = daemon.client()
        c.send(c.head("POST", "/images", SMALL, [JPEG]) + SMALL)
        clients.append(c)
    assert eventually(lambda: stats(daemon)["images"]["in_flight"] == count)
    return clients


def begin(daemon, length, *headers):
    """Returns a client that has announced a body, and sent none of it."""
    c = daemon.client()
    c.send(c.head("POST", "/images", None, [JPEG, ("Content-Length", str(length)), *headers]))
    return c


def finish(disk, clients):
    disk.delay_all(0)
    for c in clients:
        assert c.answer().status == 201
        c.close()


# ---- before the body ----

@pytest.mark.also_with("seda", "thread-per-connection")
def test_refusal_comes_before_the_body(start, disk):
    daemon = start("limits.images_in_flight=1", environ=disk.environ)
    first = full(daemon, disk)
    with begin(daemon, 1 << 20) as c:
        answer = c.answer()
        assert (answer.status, answer.slug) == (503, "overloaded")
        assert 1 <= int(answer["retry-after"]) <= 60
        assert answer.json()["limit"] == "limits.images_in_flight"
        assert answer.closes and c.is_closed()
    assert overload(daemon)["refused"] == 1
    finish(disk, first)


def test_expectation_is_answered_by_the_refusal(start, disk):
    daemon = start("limits.images_in_flight=1", environ=disk.environ)
    first = full(daemon, disk)
    with begin(daemon, 100, ("Expect", "100-continue")) as c:
        assert c.answer().status == 503
        assert c.interim == []
    finish(disk, first)
    with begin(daemon, len(SMALL), ("Expect", "100-continue")) as c:
        assert c.wait_interim() == 100
        c.send(SMALL)
        assert c.answer().status == 201


def test_connection_survives_the_refusal_of_a_small_body(start, disk):
    daemon = start("limits.images_in_flight=1", environ=disk.environ)
    first = full(daemon, disk)
    with daemon.client() as c:
        for _ in range(3):
            answer = c.request("POST", "/images", bytes(256 << 10), [JPEG])
            assert answer.status == 503 and not answer.closes
        finish(disk, first)
        assert c.request("POST", "/images", SMALL, [JPEG]).status == 201


def test_refused_client_that_stops_within_a_small_body_is_cut(start, disk):
    daemon = start("limits.images_in_flight=1", "limits.body_timeout=300ms", environ=disk.environ)
    first = full(daemon, disk)
    with begin(daemon, 100 << 10) as c:
        answer = c.answer()
        assert answer.status == 503 and not answer.closes
        c.send(bytes(1 << 10))
        assert c.is_closed()
    finish(disk, first)


def test_refused_client_need_not_send_its_body(start, disk):
    """It closes the connection when it has the answer. The daemon has read one buffer at most."""
    daemon = start("limits.images_in_flight=1", environ=disk.environ)
    first = full(daemon, disk)
    before = stats(daemon)["http"]["received_bytes"]
    with begin(daemon, 8 << 20) as c:
        c.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 32 << 10)
        c.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
            while not select.select([c.socket], [], [], 0)[0]:
                c.socket.send(bytes(64 << 10))
        c.socket.setblocking(True)
        assert c.answer().status == 503
    assert eventually(lambda: stats(daemon)["http"]["connections"] == 2)
    assert stats(daemon)["http"]["received_bytes"] - before < 400 << 10
    finish(disk, first)


@pytest.mark.parametrize("body", [bytes(1 << 20), chunked(bytes(1 << 20))], ids=["whole", "chunked"])
def test_client_that_sends_all_before_it_reads_gets_the_answer(start, disk, body):
    daemon = start("limits.images_in_flight=1", environ=disk.environ)
    first = full(daemon, disk)
    length = ("Content-Length", str(len(body))) if body[0] == 0 else ("Transfer-Encoding", "chunked")
    with daemon.client() as c:
        c.send(c.head("POST", "/images", None, [JPEG, length]))
        c.send(body)
        assert c.answer().status == 503
    finish(disk, first)


def test_refused_connection_ends_although_its_client_stays(start, disk):
    daemon = start("limits.images_in_flight=1", environ=disk.environ)
    first = full(daemon, disk)
    with begin(daemon, 128 << 20) as c:
        assert c.answer().status == 503
        assert c.is_closed()
        assert eventually(lambda: stats(daemon)["http"]["connections"] == 2)
    finish(disk, first)


# ---- waiting ----

@pytest.mark.also_with("seda", "thread-per-connection")
def test_upload_waits_with_its_body_unread(start, disk):
    daemon = start("limits.images_in_flight=1", "overload.when_full=wait", environ=disk.environ)
    first = full(daemon, disk)
    waiting = []
    for _ in range(3):
        c = daemon.client()
        c.send(c.head("POST", "/images", SMALL, [JPEG]))
        assert eventually(lambda: daemon.has_read(c))
        c.send(SMALL)
        waiting.append(c)
    assert eventually(lambda: stats(daemon)["overload"]["waiting"] == 3)
    assert not any(daemon.has_read(c) for c in waiting)
    assert all(c.is_silent() for c in waiting)
    waiting.pop().close()  # it is forgotten
    assert eventually(lambda: stats(daemon)["overload"]["waiting"] == 2)
    finish(disk, first + waiting)
    assert overload(daemon)["refused"] == 0


def test_waiting_ends_after_the_timeout(start, disk):
    daemon = start("limits.images_in_flight=1", "overload.when_full=wait",
                   "limits.body_timeout=300ms", environ=disk.environ)
    first = full(daemon, disk)
    with begin(daemon, 1000) as c:
        answer = c.answer()
        assert (answer.status, answer.slug) == (503, "overloaded")
    finish(disk, first)
    assert overload(daemon)["refused"] == 1


def test_waiting_uploads_do_not_hold_up_a_stop(start, disk):
    daemon = start("limits.images_in_flight=1", "overload.when_full=wait",
                   environ=disk.environ)
    first = full(daemon, disk)
    waiting = begin(daemon, len(SMALL))
    assert eventually(lambda: stats(daemon)["overload"]["waiting"] == 1)
    daemon.signal(15)
    waiting.send(SMALL)
    finish(disk, first + [waiting])
    assert daemon.wait_exit() == 0


# ---- the controller ----

@pytest.mark.parametrize("controller", ["backlog", "welsh", "rate"])
def test_controller_refuses_what_would_take_too_long(start, disk, controller):
    """The disk ends about three images a second for each of its threads, and the target is a tenth
    of a second."""
    daemon = start(f"overload.controller={controller}", "overload.target_p90=100ms",
                   "experiment.welsh_rate_max=1", environ=disk.environ)
    disk.delay_all(20)

    def refused_of_many():
        """The first ones show how slow the machine is."""
        before = overload(daemon)["refused"]
        answers = in_parallel(60, lambda _: daemon.upload(TINY))
        refused = [a for a in answers if a.status == 503]
        assert {a.status for a in answers} <= {201, 503} and len(refused) < len(answers)
        assert overload(daemon)["refused"] - before == len(refused)
        return refused if len(refused) > 10 else None
    refused = eventually(refused_of_many, 60)
    assert refused
    assert {a.slug for a in refused} == {"overloaded"}
    assert all("being processed" in a.json()["detail"] for a in refused)
    disk.delay_all(0)
    assert eventually(lambda: daemon.upload(TINY).status == 201)


def test_burst_is_admitted_by_an_idle_daemon(start):
    """The capacity is not known yet."""
    daemon = start("overload.target_p90=5s")
    answers = in_parallel(40, lambda _: daemon.upload(TINY))
    assert {a.status for a in answers} == {201}
    assert overload(daemon)["admitted"] == 40


# ---- classes ----

@pytest.mark.parametrize("term, headers", [
    ("net:127.0.0.0/8", []), ("net:127.0.0.1", []), ("net:0.0.0.0/0", []),
    ("header:X-Tier=gold", [("x-tier", "gold")])])
def test_requests_are_in_the_class_of_a_term(start, term, headers):
    daemon = start(f"overload.classes=first net:10.0.0.0/8, gold target:2s {term}, last net:::1")
    assert daemon.upload(TINY, headers=headers).status == 201
    assert [overload(daemon, name)["admitted"] for name in ("first", "gold", "last", "other")] == [
        0, 1, 0, 0]
    assert overload(daemon, "gold")["target_s"] == 2


@pytest.mark.parametrize("term", ["net:127.0.0.2", "net:128.0.0.0/1", "net:::1",
                                  "header:X-Tier=gold", "header:X-Tier=silve", "token:partner"])
def test_other_requests_are_in_the_lowest_class(start, term):
    daemon = start(f"overload.classes=gold {term}")
    assert daemon.upload(TINY, headers=[("X-Tier", "silver")]).status == 201
    assert overload(daemon)["admitted"] == 1 and overload(daemon, "gold")["admitted"] == 0


def test_token_has_a_class(start, tmp_path):
    tokens = tmp_path / "tokens"
    made = {name: run("token", name).stdout.splitlines() for name in ("partner", "guest")}
    tokens.write_text("".join(line + "\n" for _, line in made.values()))
    tokens.chmod(0o600)
    daemon = start(f"access.tokens_file={tokens}", "overload.classes=gold token:partner")
    for name in made:
        header = ("Authorization", f"Bearer {made[name][0]}")
        assert daemon.upload(TINY, headers=[header]).status == 201
    assert overload(daemon, "gold")["admitted"] == overload(daemon)["admitted"] == 1


# ---- work that is no longer wanted ----

def occupied(daemon):
    """Returns a client whose large image keeps the only core busy."""
    c = daemon.client()
    c.send(c.head("POST", "/images", HUGE, [JPEG]) + HUGE)
    if not eventually(lambda: stats(daemon)["images"]["in_flight"] or daemon.stored(), 2):
        raise TooLate("the first image had to wait too long itself")
    return c


@pytest.mark.also_with("seda")
def test_deadline_of_a_request_ends_its_work(start):
    daemon = start("scheduler.threads=1", policy="cohort")
    assert daemon.upload(SMALL, headers=[("X-Request-Deadline", "100000")]).status == 201
    answer = daemon.upload(SMALL, headers=[("X-Request-Deadline", "0")])
    assert (answer.status, answer.slug) == (503, "too-late")
    assert answer["retry-after"]
    assert stats(daemon)["overload"]["too_late"] == 1
    assert len(daemon.stored()) == 1


@pytest.mark.parametrize("value", ["", "-1", "1s", "1.5", "1000000000", "1 2"])
def test_malformed_deadline_is_refused(daemon, value):
    answer = daemon.upload(SMALL, headers=[("X-Request-Deadline", value)])
    assert (answer.status, answer.slug) == (400, "malformed-request")


@attempts(10)
def test_image_that_has_waited_too_long_is_dropped(start):
    daemon = start("scheduler.threads=1", "overload.max_queue_time=10ms",
                   "experiment.jpeg_decode.discipline=fcfs", policy="cohort")
    first = occupied(daemon)
    answer = daemon.upload(HUGE)
    answer_of_first = first.answer()
    first.close()
    if answer_of_first.status != 201 or answer.status == 201:
        raise TooLate("the first image had to wait, or ended before the second arrived")
    assert (answer.status, answer.slug) == (503, "too-late")


@attempts(3)
def test_work_for_a_client_that_has_gone_is_dropped(start):
    daemon = start("scheduler.threads=1", "experiment.jpeg_decode.discipline=fcfs", policy="cohort")
    first = occupied(daemon)
    second = daemon.client()
    second.send(second.head("POST", "/images", HUGE, [JPEG]) + HUGE)
    if not eventually(lambda: stats(daemon)["images"]["in_flight"] == 2, 2):
        raise TooLate("the first image has ended before the second arrived")
    second.reset()
    assert first.answer().status == 201
    first.close()
    assert eventually(lambda: stats(daemon)["images"]["in_flight"] == 0)
    assert stats(daemon)["overload"]["client_gone"] > 0
    assert len(daemon.stored()) == 1


def waits_for_the_disk(daemon, disk, headers=()):
    """Returns a client whose image occupies the only disk thread, and one whose image is made, but
    not written."""
    first, = full(daemon, disk)
    assert eventually(lambda: busy(daemon, "jpeg_encode") == 3)
    second = daemon.client()
    second.send(second.head("POST", "/images", SMALL, [JPEG, *headers]) + SMALL)
    assert eventually(lambda: busy(daemon, "jpeg_encode") == 6)
    return first, second


def busy(daemon, stage):
    """Returns how many events the stage has served."""
    return next(s["events"] for s in stats(daemon)["stages"] if s["name"] == stage)


@pytest.mark.also_with("seda")
def test_finished_image_of_a_client_that_has_gone_is_not_written(start, disk):
    daemon = start("stage.disk_write.threads=1", environ=disk.environ)
    first, second = waits_for_the_disk(daemon, disk)
    second.reset()
    for _ in range(20):  # each I/O thread answers behind the reset, which it then has seen
        assert daemon.get("/healthz").status == 200
    finish(disk, [first])
    assert eventually(lambda: stats(daemon)["images"]["in_flight"] == 0)
    assert stats(daemon)["overload"]["client_gone"] == 1
    assert len(daemon.stored()) == 1 and not daemon.leftovers()


def test_finished_image_is_not_written_after_its_deadline(start, disk):
    daemon = start("stage.disk_write.threads=1", environ=disk.environ)
    first, second = waits_for_the_disk(daemon, disk, [("X-Request-Deadline", "1500")])
    answer = second.answer()
    second.close()
    assert (answer.status, answer.slug) == (503, "too-late")
    finish(disk, [first])
    assert len(daemon.stored()) == 1


def test_acknowledged_image_is_written_although_its_client_has_gone(start, disk):
    daemon = start("stage.disk_write.threads=1", environ=disk.environ)
    with daemon.client() as c:
        c.send(c.head("POST", "/images", SMALL, [JPEG, ("Prefer", "respond-async")]) + SMALL)
        assert c.answer().status == 202
        disk.delay_all(100)
        c.reset()
    disk.delay_all(0)
    assert eventually(lambda: len(daemon.stored()) == 1)
    assert stats(daemon)["overload"]["client_gone"] == 0


def test_client_that_ends_its_side_gets_the_answer(start):
    daemon = start()
    with daemon.client() as c:
        c.send(c.head("POST", "/images", LARGE, [JPEG]) + LARGE)
        c.finish_sending()
        assert c.answer().status == 201
    assert stats(daemon)["overload"]["client_gone"] == 0


# ---- what overload does not concern ----

@pytest.mark.every_policy
def test_other_requests_are_served_while_uploads_saturate_the_daemon(start):
    """Uploads are refused, but no request for a stored variant, a probe or a figure is."""
    daemon = start("limits.images_in_flight=2")
    image = daemon.image(SMALL)
    paths = ["/healthz", "/readyz", "/stats", "/metrics", image["url"],
             image["variants"]["thumb"]["url"]]
    statuses, stop = [], threading.Event()

    def upload(_):
        while not stop.is_set():
            statuses.append(daemon.upload(LARGE).status)
    uploaders = [threading.Thread(target=upload, args=(i,)) for i in range(6)]
    for thread in uploaders:
        thread.start()
    try:
        assert eventually(lambda: 503 in statuses)
        count, answers = len(statuses), []
        with daemon.client() as c:
            while len(answers) < 20 * len(paths) or 503 not in statuses[count:]:
                answers += [c.request("GET", path).status for path in paths]
    finally:
        stop.set()
        for thread in uploaders:
            thread.join()
    assert set(answers) == {200}
    assert set(statuses) <= {201, 503} and 201 in statuses
