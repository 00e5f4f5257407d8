"""Several daemons behind the sample configurations for several nodes, conf/proxy/*-nodes.*: rolling
restarts, weights of the agent-check, and repeated uploads."""

import concurrent.futures
import configparser
import contextlib
import http.client
import json
import re
import shutil
import socket
import ssl
import threading

import pytest

import pictures
from darkroom import IS_SANITIZED, ROOT, Daemon, eventually
from nodes import HOST, edited, free_port, haproxy_column, launch_proxy
from test_proxy import certificate, check_hidden  # noqa: F401

PICTURE = pictures.photo_jpeg(300, 200, 1)
ADDRESSES = ("10.0.0.11", "10.0.0.12", "10.0.0.13")
PAUSE_S = 0.04  # of a client, which leaves the processor to others


def ask_agent(port, question=b""):
    with socket.create_connection(("127.0.0.1", port), timeout=20) as s:
        s.sendall(question)
        return b"".join(iter(lambda: s.recv(100), b"")).decode()


# ---- the agent alone ----

def test_agent_answers_the_free_share_of_the_room(start):
    port = free_port()
    daemon = start(f"server.agent_listen=127.0.0.1:{port}", "limits.images_in_flight=4",
                   "overload.controller=off", "scheduler.threads=1")
    assert f"agent-check on 127.0.0.1:{port}" in daemon.log
    assert ask_agent(port) == "up 100%\n"
    assert ask_agent(port, b"hello, one\n") == "up 100%\n"
    seen = set()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        uploads = [pool.submit(daemon.upload, pictures.photo_jpeg(2000, 1500, 1))
                   for _ in range(4)]
        while not all(upload.done() for upload in uploads):
            seen.add(ask_agent(port))
    assert seen <= {"up 1%\n", "up 25%\n", "up 50%\n", "up 75%\n", "up 100%\n"}
    assert min(int(answer[3:-2]) for answer in seen) < 100
    assert ask_agent(port) == "up 100%\n"


def test_agent_answers_0_while_the_daemon_announces_its_end(start):
    port = free_port()
    daemon = start(f"server.agent_listen=127.0.0.1:{port}", "server.drain_delay=1h",
                   "server.drain_timeout=1s")
    daemon.signal(15)
    assert eventually(lambda: ask_agent(port) == "up 0%\n")
    assert daemon.get("/readyz").status == 503 and daemon.upload(PICTURE).status == 201
    daemon.signal_until_exit(15)


def test_agent_answers_0_while_the_store_is_gone(start):
    """The agent does not look at the disk. Each sweep does."""
    port = free_port()
    daemon = start(f"server.agent_listen=127.0.0.1:{port}", "store.sweep_interval=100ms")
    shutil.rmtree(daemon.store)
    assert eventually(lambda: ask_agent(port) == "up 0%\n")


def test_agent_serves_many_clients_and_those_that_never_read(start):
    port = free_port()
    daemon = start(f"server.agent_listen=127.0.0.1:{port}")
    with contextlib.ExitStack() as stack:
        for _ in range(200):
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        assert ask_agent(port) == "up 100%\n"
    assert daemon.upload(PICTURE).status == 201


def test_agent_port_in_use_is_reported(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        daemon = Daemon(tmp_path / "store", f"server.agent_listen=127.0.0.1:{port}", wait=False)
        assert daemon.wait_exit() != 0
    assert f"server.agent_listen = 127.0.0.1:{port}: Address already in use" in daemon.log


# ---- behind a proxy ----

def test_a_proxy_on_another_machine_may_have_all_connections():
    """It has one address, which limits.connections_per_client would give a quarter of them."""
    head = re.findall(r"^#\t(.*)$", (ROOT / "conf/proxy/haproxy-nodes.cfg").read_text(), re.M)
    for text in ("\n".join(head), *((ROOT / f"conf/{folder}/darkroomd.ini").read_text()
                                    for folder in ("container", "kubernetes"))):
        ini = configparser.ConfigParser()
        ini.read_string(text)
        assert not ini["server"]["trusted_proxies"].startswith("127.")
        assert ini["limits"]["connections_per_client"] == "0"


class Nodes:
    """Three daemons with stores of their own, and a proxy in front of them."""

    def __init__(self, start, directory, certificate_file, delay):
        self.start, self.directory, self.certificate = start, directory, certificate_file
        self.context = ssl.create_default_context(cafile=certificate_file)
        self.delay = delay
        self.ports = [(free_port(), free_port()) for _ in ADDRESSES]
        self.daemons = [self.start_node(i) for i in range(len(ADDRESSES))]
        self.port, self.control = free_port(), directory / "control"
        self.log = directory / "log"
        self.process = None

    def start_node(self, number):
        port, agent = self.ports[number]
        return self.start(f"server.agent_listen=127.0.0.1:{agent}", f"server.hosts={HOST}",
                          f"server.drain_delay={self.delay}", listen=f"127.0.0.1:{port}",
                          store=self.directory / f"store{number}")

    def replace(self, number):
        """Stops a node, and starts it once more."""
        self.daemons[number].stop()
        self.daemons[number] = self.start_node(number)

    def run(self, name):
        config = self.directory / name
        edits = [(f"{address}:8080", f"127.0.0.1:{self.ports[i][0]}")
                 for i, address in enumerate(ADDRESSES)]
        if name.startswith("nginx"):
            text = edited(name, *edits, ("/run/darkroom-nginx.pid", f"{self.directory}/pid"),
                          ("/var/log/nginx/darkroom-error.log", f"{self.directory}/errors"),
                          ("/var/log/nginx/darkroom-access.log", f"{self.directory}/access"),
                          ("listen 443 ssl", f"listen 127.0.0.1:{self.port} ssl"),
                          ("/etc/ssl/certs/images.example.org.pem", str(self.certificate)),
                          ("/etc/ssl/private/images.example.org.key", str(self.certificate)))
            words = ["nginx", "-c", config, "-p", self.directory, "-e",
                     self.directory / "errors", "-g", "daemon off;"]
        else:
            agents = [(f"127.0.0.1:{port}\n", f"127.0.0.1:{port} agent-port {agent}\n")
                      for port, agent in self.ports]
            text = edited(name, *edits, *agents, ("inter 1s", "inter 300ms"),
                          ("log /dev/log local0", "log stdout format raw local0\n"
                           f"\tstats socket {self.control} mode 600"),
                          ("bind :443", f"bind 127.0.0.1:{self.port}"),
                          ("/etc/ssl/private/images.example.org.pem", str(self.certificate)))
            words = ["haproxy", "-f", config]
        config.write_text(text)
        self.process = launch_proxy(words, self.directory, self.log)
        assert eventually(self.is_up, 30), self.log.read_text()

    def is_up(self):
        assert self.process.poll() is None, self.log.read_text()
        try:
            return self.request("GET", "/images/01ARZ3NDEKTSV4RRFFQ69G5FAV")[0] == 404
        except OSError:
            return False

    def connect(self, source="127.0.0.1"):
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=60, context=self.context,
                                           source_address=(source, 0))

    def request(self, *args, **options):
        with contextlib.closing(self.connect()) as connection:
            connection.request(*args, **options)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()

    def haproxy(self, column):
        """Returns a column of HAProxy's figures, by backend/server."""
        return haproxy_column(self.control, column)

    def stored(self):
        return [len(daemon.stored()) for daemon in self.daemons]


@pytest.fixture
def start_nodes(start, tmp_path, certificate):  # noqa: F811
    made = []

    def start_them(name, delay="0"):
        made.append(Nodes(start, tmp_path, certificate, delay))
        made[-1].run(name)
        return made[-1]

    yield start_them
    for nodes in made:
        nodes.process.terminate()
        nodes.process.wait(60)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(lambda daemon: daemon.stop(), nodes.daemons))


def with_proxy(name):
    program = name.partition("-")[0]
    is_there = shutil.which(program, path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    return pytest.param(name, marks=pytest.mark.skipif(
        IS_SANITIZED or not is_there, reason=f"{program} is not installed, or not needed"))


BOTH = [with_proxy("haproxy-nodes.cfg"), with_proxy("nginx-nodes.conf")]


@pytest.mark.parametrize("name", BOTH)
def test_proxy_of_several_nodes_hides_admin_paths(start_nodes, name):
    check_hidden(start_nodes(name))


class Client(threading.Thread):
    """Uploads until it is told to stop, on connections of several requests."""

    def __init__(self, nodes, number):
        super().__init__(daemon=True)
        self.nodes, self.number, self.is_over = nodes, number, threading.Event()
        self.images, self.failures = [], []
        self.start()

    def run(self):
        while not self.is_over.is_set():
            with contextlib.closing(self.nodes.connect()) as connection:
                for _ in range(10):
                    self.upload(connection)
                    self.is_over.wait(PAUSE_S)

    def upload(self, connection):
        headers = {"Content-Type": "image/jpeg"}
        if self.number % 2:
            headers["Idempotency-Key"] = f'"{self.number}-{len(self.images)}"'
        try:
            connection.request("POST", "/images", PICTURE, headers)
            answer = connection.getresponse()
            body = answer.read()
        except (OSError, http.client.HTTPException) as failure:
            self.failures.append(repr(failure))
            connection.close()
            return
        if answer.status == 201:
            self.images += [image["id"] for image in json.loads(body)["images"]]
        else:
            self.failures.append((answer.status, body))


@pytest.mark.parametrize("name", BOTH)
def test_a_rolling_restart_under_load_fails_no_request(start_nodes, name):
    nodes = start_nodes(name, "1500ms")
    clients = [Client(nodes, i) for i in range(4)]
    for number in range(len(ADDRESSES)):
        before = sum(len(client.images) for client in clients)
        assert eventually(lambda: sum(len(c.images) for c in clients) > before + 5)
        if name.startswith("haproxy"):  # a restart begins when the last one is over
            assert eventually(lambda: all(
                state.startswith("UP") for server, state in nodes.haproxy("status").items()
                if server.startswith("darkrooms/") and "BACKEND" not in server))
        nodes.replace(number)
    done = sum(len(client.images) for client in clients)
    assert eventually(lambda: sum(len(c.images) for c in clients) > done + 5)
    for client in clients:
        client.is_over.set()
    for client in clients:
        client.join()
    assert [client.failures for client in clients] == [[]] * 4
    images = [image for client in clients for image in client.images]
    assert len(set(images)) == len(images) == sum(nodes.stored())
    assert min(nodes.stored()) > 0


@pytest.mark.parametrize("name", BOTH)
def test_a_repeated_upload_comes_to_the_same_node(start_nodes, name):
    """With 30 keys, chance leaves no node without a key."""
    nodes = start_nodes(name)
    for i in range(30):
        headers = {"Content-Type": "image/jpeg", "Idempotency-Key": f'"k{i}"'}
        (_, _, first), (status, again, second) = (
            nodes.request("POST", "/images", PICTURE, headers) for _ in range(2))
        assert status == 201 and again["Idempotent-Replayed"] == "true"
        assert json.loads(first) == json.loads(second)
    assert sum(nodes.stored()) == 30 and min(nodes.stored()) > 0


@pytest.mark.parametrize("name", BOTH[1:])
def test_nginx_finds_an_image_on_any_node(start_nodes, name):
    nodes = start_nodes(name)
    made = []
    for _ in range(9):
        status, headers, _ = nodes.request("POST", "/images", PICTURE,
                                           {"Content-Type": "image/jpeg"})
        assert status == 201
        made.append(headers["Location"])
    assert min(nodes.stored()) > 0
    assert all(nodes.request("GET", f"{url}/thumb.jpg")[0] == 200 for url in made for _ in "ab")
    assert nodes.request("DELETE", made[0])[0] == 204
    assert nodes.request("GET", made[0])[0] == 404


@pytest.mark.parametrize("name", BOTH[:1])
def test_haproxy_takes_the_weight_from_the_daemon(start_nodes, name):
    """An announced end makes it 0."""
    nodes = start_nodes(name, "1500ms")

    def weights():
        return [nodes.haproxy("weight")[f"darkrooms/{name}"] for name in ("one", "two", "three")]

    assert eventually(lambda: weights() == ["100", "100", "100"]), weights()
    nodes.daemons[1].signal(15)
    assert eventually(lambda: weights()[1] == "0", 1.4), weights()
    nodes.daemons[1].stop()
