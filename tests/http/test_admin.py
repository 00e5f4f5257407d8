"""The administrative listener: where /stats and /metrics are served, also when the public listener
is full or closed."""

import os
import signal
import socket
import threading

import pytest

import pictures
from client import Client, Closed
from darkroom import POLICY, Daemon, eventually, slow

pytestmark = pytest.mark.also_with("thread-per-connection")

SMALL = pictures.photo_jpeg(320, 240, 2)
OWN = "server.admin_listen=127.0.0.1:0", "server.admin_on_public=no"
PROBES = "/healthz", "/readyz"
ADMIN = "/stats", "/metrics"


def statuses(make_client, paths=PROBES + ADMIN):
    with make_client() as c:
        return [c.request("GET", path).status for path in paths]


def test_public_listener_on_loopback_serves_admin_paths(daemon):
    assert statuses(daemon.client) == [200, 200, 200, 200]
    assert "administration on" not in daemon.log


def test_own_listener_serves_admin_paths_only_there(start):
    daemon = start(*OWN, "server.allow_origin=*")
    image = daemon.image(SMALL)
    assert statuses(daemon.client) == [200, 200, 404, 404]
    with daemon.admin() as c:
        assert [c.request("GET", path).status for path in PROBES + ADMIN] == [200, 200, 200, 200]
        assert c.request("GET", "/stats")["access-control-allow-origin"] is None, (
            "admin paths have no CORS")
        assert c.request("OPTIONS", "/stats")["access-control-allow-methods"] is None
        assert (c.request("GET", image["url"]).status
                == c.request("GET", image["url"] + "/medium.jpg").status == 404)
        assert c.request("POST", "/images", SMALL, [("Content-Type", "image/jpeg")]).status == 404
        assert c.request("DELETE", image["url"]).status == 404
        # Admin connections are not counted.
        assert eventually(lambda: c.request("GET", "/stats").json()["http"]["connections"] == 0)
    assert daemon.get(image["url"]).status == 200


def test_admin_paths_are_not_public_behind_a_known_proxy(start):
    """The requests of a proxy come from a loopback address, whoever has sent them."""
    daemon = start("server.admin_listen=127.0.0.1:0", "server.trusted_proxies=192.0.2.1")
    assert statuses(daemon.client) == [200, 200, 404, 404]
    assert statuses(daemon.admin) == [200, 200, 200, 200]


def test_admin_paths_can_be_served_on_both_listeners(start):
    daemon = start("server.admin_listen=127.0.0.1:0", "server.admin_on_public=yes")
    assert statuses(daemon.client) == statuses(daemon.admin) == [200, 200, 200, 200]


def test_admin_paths_can_be_served_nowhere(start):
    daemon = start("server.admin_listen=no", "server.admin_on_public=no")
    assert statuses(daemon.client) == [200, 200, 404, 404]
    assert "/stats and /metrics are served nowhere" in daemon.log


@pytest.fixture
def default_port():
    """Reserves the default port for one run of the tests on this machine, until its daemons have
    ended."""
    with socket.socket(socket.AF_UNIX) as lock:
        def is_ours():
            try:
                lock.bind("\0darkroom-tests-8081")
                return True
            except OSError:
                return False
        assert eventually(is_ours, 120)
        yield


def test_auto_starts_without_a_listener_if_its_port_is_taken(default_port, start):
    """Either the first of these daemons or another program has the port."""
    both = start("server.admin_on_public=no"), start("server.admin_on_public=no")
    assert ("administration on http://127.0.0.1:8081" in both[0].log
            or "admin_listen = 127.0.0.1:8081: " in both[0].log)
    assert "server.admin_listen = 127.0.0.1:8081: Address already in use" in both[1].log
    assert statuses(both[1].client) == [200, 200, 404, 404]


def test_taken_address_prevents_the_start(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as s:
        daemon = Daemon(tmp_path / "store",
                        f"server.admin_listen=127.0.0.1:{s.getsockname()[1]}", wait=False)
        assert daemon.wait_exit() == 1
    assert "server.admin_listen" in daemon.log and "Address already in use" in daemon.log


def test_unix_socket_serves_admin_paths(start, tmp_path):
    path = tmp_path / "admin.sock"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    mask = os.umask(0o027)
    os.umask(mask)
    daemon = start(f"server.admin_listen={path}", "server.admin_on_public=no")
    assert path.stat().st_mode & 0o777 == 0o660 & ~mask
    assert f"administration on unix:{path}" in daemon.log
    assert statuses(daemon.admin) == [200, 200, 200, 200]
    assert "TCP_NODELAY" not in daemon.log


def test_unix_socket_stays_open_after_a_body_that_nobody_wants(start, tmp_path):
    """Its bytes cannot be thrown away as TCP's can."""
    daemon = start(f"server.admin_listen={tmp_path / 'admin.sock'}")
    with daemon.admin() as c:
        c.send(c.head("GET", "/healthz", bytes(40000)))
        assert c.answer().status == 200
        c.send(bytes(40000) + c.head("GET", "/readyz", None))
        assert c.answer().status == 200


def test_admin_listener_works_when_all_client_connections_are_used(start):
    """limits.connections is for clients. More than 32 admin connections wait for each other and
    delay no client."""
    daemon = start(*OWN, "limits.connections=2")
    clients = [daemon.client() for _ in range(2)]
    for c in clients:  # idle ones would make room
        c.send(c.head("POST", "/images", None, [("Content-Length", "1000"),
                                                ("Content-Type", "image/jpeg")]) + b"\xff")
    assert eventually(lambda: all(daemon.has_read(c) for c in clients))
    with daemon.client() as c:
        assert c.answer().status == 503  # before the client sends a request
    assert statuses(daemon.admin) == [200, 200, 200, 200]
    if POLICY != "thread-per-connection":
        admins = [daemon.admin() for _ in range(40)]
        assert all(c.is_open() for c in admins[:32])
        late = admins[32]
        late.send(late.head("GET", "/stats"))
        assert all(c.is_open() for c in admins[:32])
        assert late.is_silent()
        admins[0].close()
        assert late.answer().status == 200
        for c in admins:
            c.close()
    for c in clients:
        c.close()

    def is_served():
        try:
            return daemon.get("/healthz").status == 200
        except (Closed, OSError):
            return False
    assert eventually(is_served)


def test_admin_listener_serves_during_a_drain(start):
    """Requests in flight are finished, and the administrative listener reports the drain."""
    daemon = start(*OWN)
    idle = daemon.admin()
    assert idle.is_open()
    with daemon.client() as c:
        c.send(c.head("POST", "/images", SMALL, [("Content-Type", "image/jpeg")]) + SMALL[:1000])
        assert eventually(lambda: daemon.has_read(c))
        daemon.signal(signal.SIGTERM)
        assert eventually(lambda: refused(daemon))
        with daemon.admin() as admin:
            answer = admin.request("GET", "/readyz")
            assert (answer.status, answer.slug, answer.closes) == (503, "draining", True)
        assert eventually(lambda: b"darkroom_http_connections 1\n"
                          in daemon.admin().request("GET", "/metrics").body)
        hanging = daemon.admin()  # sends nothing, and does not delay the end
        c.send(SMALL[1000:])
        assert c.answer().status == 201
        assert daemon.wait_exit() == 0
    hanging.close()
    idle.close()
    daemon.assert_no_alarm()


def scrape_until_it_ends(daemon, count):
    while daemon.is_alive():
        try:
            with daemon.admin() as c:
                while True:
                    c.request("GET", "/healthz")
                    count[0] += 1
        except (Closed, OSError):
            pass  # during a drain each connection gets one response


@pytest.mark.parametrize("settings", [(), ("experiment.http_parse.pass_through=no",)])
def test_scrapes_do_not_delay_the_end(start, settings):
    """No request is in progress when the threads stop, at any rate of scrapes."""
    if settings and POLICY == "thread-per-connection":
        pytest.skip("it calls all stages directly")
    for _ in range(4):
        daemon = start(*OWN, *settings)
        count = [0]
        clients = [threading.Thread(target=scrape_until_it_ends, args=(daemon, count))
                   for _ in range(4)]
        for c in clients:
            c.start()
        assert eventually(lambda: count[0] > 50)
        daemon.stop()
        for c in clients:
            c.join()


def refused(daemon):
    try:
        return daemon.get("/healthz") is None
    except (OSError, Closed):
        return True


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_admin_socket_can_be_passed_by_the_service_manager(start, tmp_path, kind):
    path = str(tmp_path / "passed.sock")
    with socket.create_server(("127.0.0.1", 0)) as public, socket.socket(socket.AF_UNIX) as unix, \
            socket.create_server(("127.0.0.1", 0)) as tcp:
        if kind == "unix":
            unix.bind(path)
            unix.listen()
        daemon = start("server.admin_on_public=no",
                       sockets=[unix if kind == "unix" else tcp, public], names="admin:http")
        admin = (lambda: Client(path, 0, timeout=slow(60))) if kind == "unix" else daemon.admin
        daemon.port = public.getsockname()[1]
        assert statuses(daemon.client) == [200, 200, 404, 404]
        assert statuses(admin) == [200, 200, 200, 200]
        daemon.stop()


def test_admin_socket_can_be_the_only_one_passed(start):
    with socket.create_server(("127.0.0.1", 0)) as tcp:
        daemon = start("server.admin_on_public=no", sockets=[tcp], names="admin")
        assert statuses(daemon.client) == [200, 200, 404, 404]
        assert statuses(daemon.admin) == [200, 200, 200, 200]
        daemon.stop()


def test_second_admin_socket_is_refused(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as a, socket.create_server(("127.0.0.1", 0)) as b:
        daemon = Daemon(tmp_path / "store", sockets=[a, b], names="admin:admin", wait=False)
        assert daemon.wait_exit() == 1
    assert "expected only one with this name" in daemon.log
