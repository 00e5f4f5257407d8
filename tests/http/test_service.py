"""The daemon as a service: messages to the service manager, the watchdog, passed sockets, restarts,
and the delay before a drain. The manager is a substitute that implements the protocols of
sd_notify(3) and sd_listen_fds(3)."""

import contextlib
import os
import re
import select
import shutil
import signal
import socket
import threading
import time

import pytest

import pictures
from client import Closed
from darkroom import (IS_SANITIZED, PER_CONNECTION, POLICY, Daemon, eventually, every_key, load,
                      slow)
from uploads import check_stored

# I/O threads accept connections in one of two ways, and these policies have both.
pytestmark = pytest.mark.also_with("thread-per-connection")

SMALL = pictures.photo_jpeg(320, 240, 2)
RESTARTS = int(os.environ.get("DARKROOM_RESTARTS", "10"))
WATCHDOG_S = 1 if IS_SANITIZED else 0.4


class Manager:
    """Receives the messages of a service."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path if path[0] == "/" else "\0" + path[1:])
        self.environ = {"NOTIFY_SOCKET": path}
        self.heard = []  # (time, {variable: value})

    def hear(self, timeout):
        """Returns the next message, or None."""
        if not select.select([self.socket], [], [], timeout)[0]:
            return None
        lines = self.socket.recv(4096).decode().split("\n")
        message = dict(line.split("=", 1) for line in lines if line)
        self.heard.append((time.monotonic(), message))
        return message

    def wait_for(self, variable, timeout=60.0):
        """Returns the next message that has the variable. Drops the messages before it."""
        end = time.monotonic() + slow(timeout)
        while (left := end - time.monotonic()) > 0:
            message = self.hear(left)
            if message and variable in message:
                return message
        raise AssertionError(f"no {variable}: {self.heard[-20:]}")

    def count(self, variable, seconds):
        """Returns the number of messages with the variable within this time."""
        end, count = time.monotonic() + seconds, 0
        while (left := end - time.monotonic()) > 0:
            message = self.hear(left)
            count += message is not None and variable in message
        return count

    def forget(self):
        while self.hear(0):
            pass


@pytest.fixture(params=["path", "abstract"])
def manager(request, tmp_path):
    made = Manager(str(tmp_path / "notify") if request.param == "path"
                   else f"@darkroom-test-{os.getpid()}-{time.monotonic_ns()}")
    yield made
    made.socket.close()


@pytest.fixture
def path_manager(tmp_path):
    made = Manager(str(tmp_path / "notify"))
    yield made
    made.socket.close()


def watched(manager, seconds):
    return {**manager.environ, "WATCHDOG_USEC": str(int(seconds * 1e6))}


# ---- messages ----

def test_service_reports_its_life_to_the_manager(start, tmp_path, manager):
    config = tmp_path / "site.ini"
    config.write_text(every_key())
    daemon = start(config=config, environ=watched(manager, slow(1)), wait=False)
    message = manager.wait_for("READY")
    assert message["READY"] == "1" and f"policy {POLICY or 'drain'}" in message["STATUS"]
    assert "serving: 0 images in flight" in message["STATUS"] and " MiB" in message["STATUS"]
    daemon.wait_ready()
    assert daemon.get("/readyz").status == 200, "not serving when it reported READY"

    before = time.clock_gettime(time.CLOCK_MONOTONIC) * 1e6
    daemon.signal(signal.SIGHUP)
    message = manager.wait_for("RELOADING")
    assert message["RELOADING"] == "1"
    after = time.clock_gettime(time.CLOCK_MONOTONIC) * 1e6
    assert before - 1 <= int(message["MONOTONIC_USEC"]) <= after
    assert "READY" not in message
    assert manager.wait_for("READY") == {"READY": "1", "STATUS": "reloaded"}

    config.write_text("[server]\nnonsense = 1\n")
    daemon.signal(signal.SIGHUP)
    manager.wait_for("RELOADING")
    message = manager.wait_for("READY")
    assert re.match(r"reload failed, .*site\.ini:2: .*nonsense", message["STATUS"]), message
    assert "the last reload failed" in manager.wait_for("STATUS")["STATUS"], (
        "the failure is not in the status")

    # It is valid, but not with the keys that need a restart.
    config.write_text("[limits]\nmemory_budget = 4G\nbody_bytes = 2G\n"
                      "[variant.thumb]\noperations = scale 100x100 inside\n")
    daemon.signal(signal.SIGHUP)
    manager.wait_for("RELOADING")
    message = manager.wait_for("READY")
    assert re.match(r"reload failed, .*limits\.body_bytes", message["STATUS"]), message

    daemon.signal(signal.SIGTERM)
    message = manager.wait_for("STOPPING")
    assert message["STOPPING"] == "1" and int(message["EXTEND_TIMEOUT_USEC"]) >= 30_000_000
    assert daemon.wait_exit() == 0
    daemon.assert_no_alarm()


def test_status_counts_connections(start, path_manager):
    daemon = start(environ=watched(path_manager, 0.2))
    path_manager.wait_for("READY")
    with daemon.client() as c:
        c.send(c.head("POST", "/images", SMALL, [("Content-Type", "image/jpeg")]) + SMALL[:1000])
        assert eventually(lambda: " 1 connection" in path_manager.wait_for("STATUS")["STATUS"])
    assert eventually(lambda: " 0 connections" in path_manager.wait_for("STATUS")["STATUS"])


@pytest.mark.parametrize("name", ["/nowhere/at/all", "relative", "/" + 200 * "x", "@"])
def test_absent_manager_is_reported(start, name):
    daemon = start(environ={"NOTIFY_SOCKET": name})
    assert daemon.upload(SMALL).status == 201
    assert "service manager" in daemon.log


@pytest.mark.skipif(IS_SANITIZED, reason="the daemon has no sandbox")
def test_daemon_fails_for_a_store_that_only_a_restart_can_use(start, path_manager, tmp_path):
    """The sandbox covers the root that was there at the start. The manager starts the daemon again."""
    (tmp_path / "neighbour").mkdir()
    daemon = start(environ=watched(path_manager, 0.2))
    path_manager.wait_for("READY")
    shutil.rmtree(daemon.store)
    assert daemon.get("/readyz").status == 503
    assert path_manager.wait_for("WATCHDOG") and daemon.get("/healthz").status == 200
    daemon.store.mkdir()
    assert daemon.upload(SMALL).slug == "storage-missing"
    path_manager.wait_for("STOPPING")
    assert daemon.wait_exit() == 1
    assert daemon.says("restart: draining, ")
    check_stored(again := start(store=daemon.store), again.image(SMALL))


# ---- watchdog ----

def test_watchdog_is_fed_when_idle_and_when_busy(start, path_manager):
    """It is fed at least twice as often as required, unless the machine is too busy."""
    limit = WATCHDOG_S
    daemon = start(environ=watched(path_manager, limit))
    path_manager.wait_for("READY")

    def is_fed_in_time():
        path_manager.wait_for("WATCHDOG")
        return path_manager.count("WATCHDOG", 2 * limit) >= 4
    assert eventually(is_fed_in_time), "idle"
    over = threading.Event()

    def upload():
        while not over.is_set():
            assert daemon.upload(SMALL).status == 201
    threads = [threading.Thread(target=upload) for _ in range(4)]
    for t in threads:
        t.start()
    try:
        assert eventually(is_fed_in_time), "busy"
    finally:
        over.set()
        for t in threads:
            t.join()


def test_watchdog_is_not_fed_when_a_worker_hangs(start, path_manager, disk):
    """An I/O thread waits for a disk that does not answer, on which /readyz looks for the store."""
    limit = WATCHDOG_S
    daemon = start(environ=watched(path_manager, limit) | disk.environ)
    stuck = re.compile(r"worker \w+/\d+: stuck in one piece of work for \d")
    path_manager.forget()
    path_manager.wait_for("WATCHDOG")
    said = len(daemon.log)  # on a busy machine the upload may have been reported
    disk.delay_all(600_000)
    with daemon.client() as c:
        c.send(c.head("GET", "/readyz"))
        assert daemon.says(lambda log: stuck.search(log, said))
        path_manager.forget()
        # The first report may have been about a delay before that.
        assert eventually(lambda: path_manager.count("WATCHDOG", 2 * limit) == 0)
        disk.delay_all(0)
        assert c.answer().status == 200
    path_manager.wait_for("WATCHDOG")


@pytest.mark.parametrize("variables", [
    {"WATCHDOG_USEC": "many"}, {"WATCHDOG_USEC": "0"}, {"WATCHDOG_USEC": "99999999999999999999"},
    {"WATCHDOG_USEC": "200000", "WATCHDOG_PID": "1"}])
def test_watchdog_of_another_process_is_not_fed(start, path_manager, variables):
    start(environ={**path_manager.environ, **variables})
    path_manager.wait_for("READY")
    assert path_manager.count("WATCHDOG", 0.3) == 0


# ---- passed sockets ----

def listener(family=socket.AF_INET, address="127.0.0.1"):
    s = socket.socket(family)
    s.bind((address, 0))
    s.listen(1024)
    return s


@pytest.mark.parametrize("names", [None, "http", "darkroomd.socket", ""])
def test_passed_socket_is_served(start, names):
    with listener() as s:
        daemon = start(sockets=[s], names=names)
        assert daemon.port == s.getsockname()[1]
        assert daemon.upload(SMALL).status == 201


def test_two_passed_sockets_are_served(start):
    with listener() as a, listener() as b:
        daemon = start(sockets=[a, b], names="http:http")
        for s in (a, b):
            daemon.port = s.getsockname()[1]
            assert daemon.upload(SMALL).status == 201


def test_sockets_of_another_process_are_ignored(start):
    daemon = start(environ={"LISTEN_FDS": "1", "LISTEN_PID": "1"})
    assert daemon.upload(SMALL).status == 201


@pytest.mark.parametrize("make, names", [
    (lambda: listener(), "metrics"),
    (lambda: socket.socket(), "http"), (lambda: socket.socket(type=socket.SOCK_DGRAM), "http"),
    (lambda: socket.socket(socket.AF_UNIX), "http"), (lambda: open("/dev/null"), "http")])
def test_unusable_socket_is_refused(tmp_path, make, names):
    with make() as s:
        daemon = Daemon(tmp_path / "store", sockets=[s], names=names, wait=False)
        assert daemon.wait_exit() == 1
        assert "expected" in daemon.log and names in daemon.log
        daemon.assert_no_alarm()


def keep_asking(port, stop, done, failures):
    """Repeats requests, each on a new connection."""
    from client import Client
    while not stop.is_set():
        try:
            with Client("127.0.0.1", port, timeout=slow(60)) as c:
                if len(done) % 4:
                    status = c.request("GET", "/healthz", headers=[("Connection", "close")]).status
                else:
                    status = c.request("POST", "/images", SMALL, [("Content-Type", "image/jpeg"),
                                                                  ("Connection", "close")]).status
            done.append(status)
            if status not in (200, 201):
                failures.append(status)
        except (OSError, Closed) as failure:
            failures.append(repr(failure))


def test_restarts_under_load_fail_no_request(tmp_path):
    """The manager keeps the socket open, so that no connection is refused and no request is
    lost."""
    stop, done, failures = threading.Event(), [], []
    with listener() as s:
        arguments = s.getsockname()[1], stop, done, failures
        clients = [threading.Thread(target=keep_asking, args=arguments) for _ in range(4)]
        for c in clients:
            c.start()
        try:
            for _ in range(load(RESTARTS, 3)):
                before = len(done)
                daemon = Daemon(tmp_path / "store", sockets=[s])
                assert eventually(lambda: len(done) > before + 5, 20), failures
                daemon.stop()
            daemon = Daemon(tmp_path / "store", sockets=[s])  # for clients that are waiting
        finally:
            stop.set()
            for c in clients:
                c.join()
        daemon.stop()
    assert not failures, failures[:10]
    assert daemon.stored() and not daemon.leftovers()


# ---- the end ----

def test_drain_delay_serves_while_not_ready(start):
    """/readyz returns 503 during the delay, and new connections are still served."""
    daemon = start("server.drain_delay=1h")
    with daemon.client() as kept:
        assert kept.request("GET", "/readyz").status == 200
        daemon.signal(signal.SIGTERM)
        assert eventually(lambda: daemon.get("/readyz").status == 503)
        answer = kept.request("GET", "/readyz")
        assert (answer.status, answer.slug) == (503, "draining")
        # A client that kept its connection until the end could lose its next request.
        assert answer.closes and kept.is_closed()
        answer = daemon.upload(SMALL)
        assert answer.status == 201 and answer.closes
    assert daemon.says("drain_delay")
    assert daemon.signal_until_exit(signal.SIGTERM) == 1


@pytest.mark.skipif(PER_CONNECTION, reason="it has fewer threads than there are connections")
def test_requests_that_have_arrived_before_the_drain_are_answered(start):
    daemon = start("server.drain_delay=0")
    with contextlib.ExitStack() as stack:
        kept = [stack.enter_context(daemon.client()) for _ in range(64)]
        for c in kept:
            assert c.request("GET", "/healthz").status == 200
        daemon.signal(signal.SIGSTOP)
        daemon.signal(signal.SIGTERM)
        for c in kept:
            c.send(c.head("GET", "/healthz"))
        daemon.signal(signal.SIGCONT)
        assert [c.answer().status for c in kept] == [200] * len(kept)
    assert daemon.wait_exit() == 0


def test_drain_delay_ends(start):
    daemon = start("server.drain_delay=300ms")
    started = time.monotonic()
    daemon.signal(signal.SIGTERM)
    assert daemon.wait_exit() == 0
    assert time.monotonic() - started >= 0.3
    daemon.assert_no_alarm()
