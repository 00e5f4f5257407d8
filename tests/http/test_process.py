"""The daemon as a process: its start, signals and end, and its costs while idle."""

import contextlib
import json
import os
import pathlib
import re
import resource
import signal
import threading
import time

import pytest

import pictures
from control import ctl
from darkroom import IS_SANITIZED, POLICY, Daemon, eventually, slow
from store_files import directory_of

SMALL = pictures.photo_jpeg(320, 240, 2)
LARGE = pictures.photo_jpeg(2600, 2000, 1)
JPEG = ("Content-Type", "image/jpeg")


# ---- start ----

def test_second_daemon_on_the_same_port_fails(start, tmp_path):
    first = start()
    second = Daemon(tmp_path / "other", listen=f"127.0.0.1:{first.port}", wait=False)
    assert second.wait_exit() not in (0, 2), "it shares the port without an error"
    second.assert_no_alarm()
    assert str(first.port) in second.log and "ready on" not in second.log
    assert first.upload(SMALL).status == 201


def test_second_daemon_on_the_same_store_fails(start):
    first = start()
    second = Daemon(first.store, wait=False)
    assert second.wait_exit() not in (0, 2)
    second.assert_no_alarm()
    assert str(first.store) in second.log and "ready on" not in second.log
    assert first.upload(SMALL).status == 201


def test_unusable_store_is_reported(tmp_path):
    (tmp_path / "file").write_text("x")
    for root in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / "no" / "parent"):
        daemon = Daemon(root, wait=False)
        assert daemon.wait_exit() not in (0, 2)
        daemon.assert_no_alarm()
        assert str(root) in daemon.log


def test_foreign_address_is_reported(tmp_path):
    daemon = Daemon(tmp_path / "store", listen="203.0.113.1:0", wait=False)
    assert daemon.wait_exit() not in (0, 2)
    assert "203.0.113.1" in daemon.log


def test_ready_line_has_the_address(start):
    daemon = start()
    line = next(line for line in daemon.lines if "ready on" in line)
    assert re.match(r"<[56]>", line), "no priority for the journal"
    assert daemon.port > 0
    assert all(re.match(r"<[3-7]>", line) for line in daemon.lines), daemon.log


def test_debug_lines_have_priorities(start):
    daemon = start("log.level=debug")
    assert daemon.upload(SMALL).status == 201 and daemon.upload(b"text").status == 415
    assert all(re.match(r"<[3-7]>", line) for line in daemon.lines), daemon.log


@pytest.mark.skipif(IS_SANITIZED, reason="sanitizers cost time")
def test_start_takes_less_than_100_ms_of_cpu_time(start):
    """The test measures CPU time, since other programs delay the start."""
    def cpu_seconds(_):
        return start().cpu_seconds()
    assert min(map(cpu_seconds, range(5))) < 0.1


# ---- stop ----

def drain_under_load(daemon, number):
    """Sends a signal during eight uploads, of which one is completed only afterwards. Returns the
    answers."""
    clients = [daemon.client(timeout=slow(60)) for _ in range(8)]
    for c in clients:
        assert c.request("GET", "/healthz").status == 200
    for c in clients[:7]:
        c.send(c.head("POST", "/images", LARGE, [JPEG]) + LARGE)
    last = clients[7].head("POST", "/images", SMALL, [JPEG]) + SMALL
    clients[7].send(last[:len(last) // 2])
    assert eventually(lambda: all(daemon.has_read(c) for c in clients))
    daemon.signal(number)
    assert eventually(daemon.refuses_connections)
    clients[7].send(last[len(last) // 2:])
    answers = [c.answer() for c in clients]
    for c in clients:
        assert c.is_closed()
        c.close()
    assert answers[7].closes
    return answers


@pytest.mark.parametrize("number", [
    pytest.param(signal.SIGTERM, marks=pytest.mark.every_policy), signal.SIGINT])
def test_drain_finishes_requests_in_flight(start, number):
    daemon = start(f"server.drain_timeout={slow(120):g}s")  # for a busy machine
    for answer in drain_under_load(daemon, number):
        assert answer.status == 201, answer
        (image,) = answer.json()["images"]
        for name, variant in image["variants"].items():
            data = (directory_of(daemon.store, image["id"]) / f"{name}.jpg").read_bytes()
            assert len(data) == variant["bytes"]
            pictures.decode(data)
    assert daemon.wait_exit() == 0
    with pytest.raises(ConnectionRefusedError):
        daemon.client()
    assert not daemon.leftovers()
    daemon.assert_no_alarm()


@pytest.mark.every_policy
def test_drain_stores_images_that_were_acknowledged_early(start):
    """Uploads with status 202 are stored before the daemon exits."""
    daemon = start()
    ids = [daemon.upload(LARGE, headers=[("Prefer", "respond-async")]).json()["images"][0]["id"]
           for _ in range(4)]
    daemon.stop(30)
    for ident in ids:
        directory = directory_of(daemon.store, ident)
        image = json.loads((directory / "image.json").read_text())
        assert all((directory / f"{n}.jpg").stat().st_size == v["bytes"]
                   for n, v in image["variants"].items())


@pytest.mark.also_with("thread-per-connection")
def test_drain_with_idle_connections_is_quick(start):
    daemon = start()
    clients = [daemon.client() for _ in range(10)]
    for c in clients[:5]:
        assert c.request("GET", "/healthz").status == 200
    started = time.monotonic()
    daemon.stop()
    assert time.monotonic() - started < slow(15)  # the timeout is 30 s
    for c in clients:
        c.close()


@pytest.mark.every_policy
def test_drain_refuses_new_work(start):
    """An upload keeps the daemon alive. Meanwhile it accepts no connections and reports that it is
    not ready."""
    daemon = start()
    busy, other = daemon.client(), daemon.client()
    assert other.request("GET", "/readyz").status == 200
    busy.send(busy.head("POST", "/images", SMALL, [JPEG]) + SMALL[:1000])
    other.send(b"GET /readyz HTTP/1.1\r\nHost: x\r\n")
    assert eventually(lambda: daemon.has_read(busy) and daemon.has_read(other))
    daemon.signal(signal.SIGTERM)
    assert eventually(daemon.refuses_connections)
    other.send(b"\r\n")
    answer = other.answer()
    assert (answer.status, answer.slug) == (503, "draining") and answer.closes
    assert daemon.is_alive()
    busy.send(SMALL[1000:])
    answer = busy.answer()
    assert answer.status == 201 and answer.closes
    assert daemon.wait_exit() == 0


@pytest.mark.also_with("thread-per-connection")
def test_drain_ends_at_its_timeout(start):
    daemon = start("server.drain_timeout=300ms")
    with daemon.client() as c:
        c.send(c.head("POST", "/images", SMALL, [JPEG]) + SMALL[:1000])
        assert eventually(lambda: daemon.has_read(c))
        started = time.monotonic()
        daemon.signal(signal.SIGTERM)
        assert daemon.wait_exit() == 1
        assert 0.25 < time.monotonic() - started < slow(15)
    assert "drain_timeout: the drain has not finished: " in daemon.log
    daemon.assert_no_alarm()


@pytest.mark.also_with("thread-per-connection")
@pytest.mark.parametrize("first, second",
                         [(signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGTERM)])
def test_second_signal_ends_the_drain(start, first, second):
    daemon = start()
    with daemon.client() as c:
        c.send(c.head("POST", "/images", SMALL, [JPEG]) + SMALL[:1000])
        assert eventually(lambda: daemon.has_read(c))
        daemon.signal(first)
        assert eventually(daemon.refuses_connections)
        c.send(SMALL[1000:2000])
        assert eventually(lambda: daemon.has_read(c)), "the upload was abandoned"
        started = time.monotonic()
        assert daemon.signal_until_exit(second) == 1
        assert time.monotonic() - started < slow(15)  # it would wait for 30 s
    assert "second signal: ending at once" in daemon.log


@pytest.mark.also_with("thread-per-connection")
def test_two_signals_at_once_are_one(start):
    """`timeout -s INT` sends its signal to the process and to its group."""
    daemon = start()
    with daemon.client() as c:
        c.send(c.head("POST", "/images", SMALL, [JPEG]) + SMALL[:1000])
        assert eventually(lambda: daemon.has_read(c))
        daemon.signal(signal.SIGTERM)
        daemon.signal(signal.SIGINT)
        assert eventually(daemon.refuses_connections)
        c.send(SMALL[1000:])
        assert c.answer().status == 201
    assert daemon.wait_exit() == 0


@pytest.mark.every_policy
def test_signal_during_the_start_ends_it(tmp_path):
    """A signal at any moment of the start leads to a clean end or the default action, but never to
    a hang."""
    first = Daemon(tmp_path / "first")
    first.stop()
    for share in (0, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1):
        daemon = Daemon(tmp_path / f"store{share}", wait=False)
        daemon.ready.wait(share * first.ready_time)
        daemon.signal(signal.SIGTERM)
        assert daemon.wait_exit() in (0, -signal.SIGTERM)
        daemon.assert_no_alarm()


def test_sigpipe_is_ignored(start):
    daemon = start()
    status = pathlib.Path(f"/proc/{daemon.pid}/status").read_text()
    ignored = int(re.search(r"(?m)^SigIgn:\s+(\w+)", status)[1], 16)
    assert ignored >> signal.SIGPIPE - 1 & 1
    daemon.signal(signal.SIGPIPE)
    assert daemon.upload(SMALL).status == 201


# ---- idle costs ----

def has_slices():
    """Returns whether the kernel grants time slices, and reports them."""
    version = tuple(int(number) for number in re.findall(r"\d+", os.uname().release)[:2])
    try:
        return version >= (6, 12) and "se.slice" in pathlib.Path("/proc/self/sched").read_text()
    except OSError:
        return False


@pytest.mark.skipif(not has_slices(), reason="needs Linux 6.12 with CONFIG_SCHED_DEBUG")
def test_io_and_disk_threads_have_short_time_slices(start):
    """They run soon after they were woken, although all cores work on images. The sandbox allows it."""
    daemon = start()

    def slices(group):
        return {int(re.search(r"^se.slice +: +(\d+)", (task / "sched").read_text(), re.M)[1])
                for task in daemon.threads(group)}

    # A thread gives itself its name and its slice, perhaps after the daemon is ready.
    assert eventually(lambda: slices("io") == slices("disk") == {100000})
    assert min(slices("main")) > 100000


def may_be_nice():
    """Returns whether the process has CAP_SYS_NICE, which is 23."""
    status = pathlib.Path("/proc/self/status").read_text()
    return int(re.search(r"^CapEff:\s+(\w+)", status, re.M)[1], 16) >> 23 & 1


@pytest.mark.skipif(not may_be_nice(), reason="needs CAP_SYS_NICE")
def test_io_threads_go_before_the_image_work(start):
    """Not so under thread-per-connection, whose io threads do it."""
    daemon, own = start(policy="drain"), os.getpriority(os.PRIO_PROCESS, 0)

    def niceness(group):
        return {os.getpriority(os.PRIO_PROCESS, int(task.name)) for task in daemon.threads(group)}

    below = max(own - 5, -20)
    assert eventually(lambda: niceness("io") == {below})
    assert niceness("main") == niceness("disk") == {own}
    assert ctl(daemon, "policy", "thread-per-connection").returncode == 0
    assert eventually(lambda: niceness("io") == {own})
    assert ctl(daemon, "policy", "drain").returncode == 0
    assert eventually(lambda: niceness("io") == {below})


@pytest.mark.every_policy
@pytest.mark.skipif(IS_SANITIZED, reason="sanitizers cost time")
def test_idle_costs_nothing(start):
    """Idle daemons use less than 0.1 % of a core: a fresh one, one after uploads, and one with open
    connections."""
    daemons = [start(), start(), start()]
    for daemon in daemons[1:]:
        threads = [threading.Thread(target=lambda d=daemon: [d.image(SMALL) for _ in range(10)])
                   for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    kept = [daemons[2].client() for _ in range(4)]
    assert all(c.request("GET", "/healthz").status == 200 for c in kept)

    def spend(seconds):
        before = [d.cpu_seconds() for d in daemons]
        time.sleep(seconds)
        return [d.cpu_seconds() - b for d, b in zip(daemons, before)]

    assert eventually(lambda: not any(spend(0.2))), "the uploads are not finished"
    spent = spend(3)
    for c in kept:
        c.close()
    assert max(spent) < 3 * 0.001, (
        f"CPU seconds in 3 idle seconds: fresh, after uploads, with connections: {spent}")


def test_a_connection_that_cannot_be_accepted_costs_nothing_while_it_waits(start):
    """Without descriptors, an I/O thread looks ten times a second. It would otherwise spin."""
    daemon = start()
    assert daemon.get("/healthz").status == 200
    limits = resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (3, limits[1]))
    with daemon.client() as waiting:
        assert daemon.says("accept: cannot accept connections: Too many open files")
        before = daemon.cpu_seconds()
        time.sleep(1)
        spent = daemon.cpu_seconds() - before
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, limits)
        assert waiting.request("GET", "/healthz").status == 200
    assert spent < 0.1, f"{spent} CPU seconds in one second"


@pytest.mark.every_policy
def test_threads_do_not_grow(start):
    """Work does not create threads."""
    daemon = start()

    def count():
        return int(re.search(r"Threads:\s+(\d+)", open(f"/proc/{daemon.pid}/status").read())[1])
    before = count()
    threads = [threading.Thread(target=daemon.image, args=(SMALL,)) for _ in range(20)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert count() == before


@pytest.mark.every_policy
def test_policy_is_the_configured_one(start):
    daemon = start()
    assert daemon.get("/stats").json()["scheduler"]["policy"] == (POLICY or "drain")


def test_daemon_does_not_fork(start):
    """Except for the process that opens files for its sandbox, and the one that has others decode
    PNG and WebP. Both are started before it serves."""
    daemon = start()
    assert daemon.upload(SMALL).status == 201
    parents, children = [], []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # that process has ended
            name, _, rest = path.read_text().partition("(")[2].rpartition(")")
            parents.append(int(rest.split()[1]))
            if parents[-1] == daemon.pid:
                children.append(name)
    assert os.getpid() in parents
    assert sorted(children) in (["darkroom-decode"], ["darkroom-decode", "darkroomd-open"])
