"""The daemon as a service: what it tells the service manager, the watchdog, sockets that it is given, restarts, and the end
that load balancers can see coming. The manager is a stand-in that speaks sd_notify(3)'s and sd_listen_fds(3)'s protocols."""

import os
import re
import select
import signal
import socket
import threading
import time

import pytest

import pictures
from client import Closed
from darkroom import CONFIG, IS_SANITIZED, POLICY, Daemon, eventually, load, slow

# Ports take connections in one of two ways, and images are worked on in two kinds of threads: more policies would say no more.
pytestmark = pytest.mark.skipif(POLICY not in ("", "drain", "thread-per-connection"), reason="the policy does not matter")

SMALL = pictures.photo_jpeg(320, 240, 2)
RESTARTS = int(os.environ.get("DARKROOM_RESTARTS", "10"))
WATCHDOG_S = 1 if IS_SANITIZED else 0.4


class Manager:
    """Hears what a service says."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path if path[0] == "/" else "\0" + path[1:])
        self.environ = {"NOTIFY_SOCKET": path}
        self.heard = []  # (time, {variable: value})

    def hear(self, timeout):
        """The next message, or None."""
        if not select.select([self.socket], [], [], timeout)[0]:
            return None
        lines = self.socket.recv(4096).decode().split("\n")
        message = dict(line.split("=", 1) for line in lines if line)
        self.heard.append((time.monotonic(), message))
        return message

    def wait_for(self, variable, timeout=60.0):
        """The first message from now on that has the variable; what comes before it is dropped."""
        end = time.monotonic() + slow(timeout)
        while (left := end - time.monotonic()) > 0:
            message = self.hear(left)
            if message and variable in message:
                return message
        raise AssertionError(f"no {variable}: {self.heard[-20:]}")

    def count(self, variable, seconds):
        """How often it is said within a time."""
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
    made = Manager(str(tmp_path / "notify") if request.param == "path" else f"@darkroom-test-{os.getpid()}-{time.monotonic_ns()}")
    yield made
    made.socket.close()


@pytest.fixture
def path_manager(tmp_path):
    made = Manager(str(tmp_path / "notify"))
    yield made
    made.socket.close()


def watched(manager, seconds):
    return {**manager.environ, "WATCHDOG_USEC": str(int(seconds * 1e6))}


# ---- what it says ----

def test_life_of_a_service(start, tmp_path, manager):
    config = tmp_path / "site.ini"
    config.write_text(CONFIG.read_text())
    daemon = start(config=config, environ=watched(manager, slow(1)), wait=False)
    message = manager.wait_for("READY")
    assert message["READY"] == "1" and f"policy {POLICY or 'drain'}" in message["STATUS"]
    assert "serving: 0 images in flight" in message["STATUS"] and " MiB" in message["STATUS"]
    daemon.wait_ready()
    assert daemon.get("/readyz").status == 200, "it accepted before it said so"

    before = time.clock_gettime(time.CLOCK_MONOTONIC) * 1e6
    daemon.signal(signal.SIGHUP)
    message = manager.wait_for("RELOADING")
    assert message["RELOADING"] == "1"
    assert before - 1 <= int(message["MONOTONIC_USEC"]) <= time.clock_gettime(time.CLOCK_MONOTONIC) * 1e6
    assert "READY" not in message
    assert manager.wait_for("READY") == {"READY": "1", "STATUS": "reloaded"}

    config.write_text("[server]\nnonsense = 1\n")
    daemon.signal(signal.SIGHUP)
    manager.wait_for("RELOADING")
    message = manager.wait_for("READY")
    assert re.match(r"reload failed, .*site\.ini:2: .*nonsense", message["STATUS"]), message
    assert "the last reload failed" in manager.wait_for("STATUS")["STATUS"], "it is not forgotten"

    daemon.signal(signal.SIGTERM)
    message = manager.wait_for("STOPPING")
    assert message["STOPPING"] == "1" and int(message["EXTEND_TIMEOUT_USEC"]) >= 30_000_000
    assert daemon.wait_exit() == 0
    daemon.assert_no_alarm()


def test_status_says_what_is_going_on(start, path_manager):
    daemon = start(environ=watched(path_manager, 0.2))
    path_manager.wait_for("READY")
    with daemon.client() as c:
        c.send(c.head("POST", "/images", SMALL, [("Content-Type", "image/jpeg")]) + SMALL[:1000])
        assert eventually(lambda: " 1 connections" in path_manager.wait_for("STATUS")["STATUS"])
    assert eventually(lambda: " 0 connections" in path_manager.wait_for("STATUS")["STATUS"])


@pytest.mark.parametrize("name", ["/nowhere/at/all", "relative", "/" + 200 * "x", "@"])
def test_manager_that_does_not_listen(start, name):
    daemon = start(environ={"NOTIFY_SOCKET": name})
    assert daemon.upload(SMALL).status == 201
    assert "service manager" in daemon.log


# ---- watchdog ----

def test_watchdog_is_fed_when_idle_and_when_busy(start, path_manager):
    """At least twice as often as it must be, on a machine that lets it."""
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


def test_watchdog_is_not_fed_when_a_worker_hangs(start, path_manager):
    """A file of the store that never ends to be opened holds up whoever opens it."""
    limit = WATCHDOG_S
    daemon = start(environ=watched(path_manager, limit))
    image = daemon.image(SMALL)
    stuck = re.compile(r"worker \w+/\d+: stuck")
    path = daemon.store / image["id"][-2:] / image["id"] / "medium.jpg"
    path.unlink()
    os.mkfifo(path)
    path_manager.forget()
    path_manager.wait_for("WATCHDOG")
    said = len(daemon.log)  # perhaps it was stuck in the upload, on a busy machine
    with daemon.client() as c:
        c.send(c.head("GET", image["variants"]["medium"]["url"]))
        assert daemon.says(lambda log: stuck.search(log, said))
        path_manager.forget()
        # Not at the first time if it was somebody else who held it up before it came there.
        assert eventually(lambda: path_manager.count("WATCHDOG", 2 * limit) == 0)
        with open(path, "wb"):
            assert c.answer().status == 404
    path_manager.wait_for("WATCHDOG")


@pytest.mark.parametrize("variables", [{"WATCHDOG_USEC": "many"}, {"WATCHDOG_USEC": "0"}, {"WATCHDOG_USEC": "99999999999999999999"},
                                       {"WATCHDOG_USEC": "200000", "WATCHDOG_PID": "1"}])
def test_watchdog_that_is_not_meant_for_us(start, path_manager, variables):
    start(environ={**path_manager.environ, **variables})
    path_manager.wait_for("READY")
    assert path_manager.count("WATCHDOG", 0.3) == 0


# ---- sockets that are given ----

def listener(family=socket.AF_INET, address="127.0.0.1"):
    s = socket.socket(family)
    s.bind((address, 0))
    s.listen(1024)
    return s


@pytest.mark.parametrize("names", [None, "http", "darkroomd.socket", ""])
def test_socket_activation(start, names):
    with listener() as s:
        daemon = start(sockets=[s], names=names)
        assert daemon.port == s.getsockname()[1]
        assert daemon.upload(SMALL).status == 201


def test_socket_activation_with_two_sockets(start):
    with listener() as a, listener() as b:
        daemon = start(sockets=[a, b], names="http:http")
        for s in (a, b):
            daemon.port = s.getsockname()[1]
            assert daemon.upload(SMALL).status == 201


def test_sockets_meant_for_somebody_else(start):
    daemon = start(environ={"LISTEN_FDS": "1", "LISTEN_PID": "1"})
    assert daemon.upload(SMALL).status == 201


@pytest.mark.parametrize("make, names", [
    (lambda: listener(), "metrics"), (lambda: socket.socket(), "http"), (lambda: socket.socket(type=socket.SOCK_DGRAM), "http"),
    (lambda: socket.socket(socket.AF_UNIX), "http"), (lambda: open("/dev/null"), "http"),
])
def test_socket_that_cannot_be_served(tmp_path, make, names):
    with make() as s:
        daemon = Daemon(tmp_path / "store", sockets=[s], names=names, wait=False)
        assert daemon.wait_exit() == 1
        assert "expected" in daemon.log and names in daemon.log
        daemon.assert_no_alarm()


def keep_asking(port, stop, done, failures):
    """Asks again and again, each time on a connection of its own."""
    from client import Client
    while not stop.is_set():
        try:
            with Client("127.0.0.1", port, timeout=slow(60)) as c:
                if len(done) % 4:
                    status = c.request("GET", "/healthz", headers=[("Connection", "close")]).status
                else:
                    status = c.request("POST", "/images", SMALL, [("Content-Type", "image/jpeg"), ("Connection", "close")]).status
            done.append(status)
            if status not in (200, 201):
                failures.append(status)
        except (OSError, Closed) as failure:
            failures.append(repr(failure))


def test_restarts_under_load(tmp_path):
    """The manager holds the socket: nobody is refused, nothing that was begun is lost."""
    stop, done, failures = threading.Event(), [], []
    with listener() as s:
        clients = [threading.Thread(target=keep_asking, args=(s.getsockname()[1], stop, done, failures)) for _ in range(4)]
        for c in clients:
            c.start()
        try:
            for _ in range(load(RESTARTS, 3)):
                before = len(done)
                daemon = Daemon(tmp_path / "store", sockets=[s])
                assert eventually(lambda: len(done) > before + 5, 20), failures
                daemon.stop()
            daemon = Daemon(tmp_path / "store", sockets=[s])  # for those that wait
        finally:
            stop.set()
            for c in clients:
                c.join()
        daemon.stop()
    assert not failures, failures[:10]
    assert daemon.stored() and not daemon.leftovers()


# ---- the end ----

def test_drain_delay(start):
    """First /readyz says no, and new connections are served on; then no more."""
    daemon = start("server.drain_delay=1h")
    with daemon.client() as kept:
        assert kept.request("GET", "/readyz").status == 200
        daemon.signal(signal.SIGTERM)
        assert eventually(lambda: daemon.get("/readyz").status == 503)
        answer = kept.request("GET", "/readyz")
        assert (answer.status, answer.slug) == (503, "draining")
        assert daemon.upload(SMALL).status == 201
        assert kept.request("GET", "/healthz").status == 200
    assert daemon.says("drain_delay")
    daemon.signal(signal.SIGTERM)  # a second one ends it
    assert daemon.wait_exit() == 1


def test_drain_delay_has_an_end(start):
    daemon = start("server.drain_delay=300ms")
    started = time.monotonic()
    daemon.signal(signal.SIGTERM)
    assert daemon.wait_exit() == 0
    assert time.monotonic() - started >= 0.3
    daemon.assert_no_alarm()
