"""The sample configurations in conf/proxy, with nginx and HAProxy on loopback, TLS and a test
certificate. Only addresses, paths and the body limit differ from the files."""

import contextlib
import http.client
import json
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import threading

import pytest

import pictures
from client import form_files
from darkroom import IS_SANITIZED, eventually
from nodes import edited, free_port, launch_proxy

pytestmark = pytest.mark.skipif(IS_SANITIZED,
                                reason="the configurations do not depend on sanitizers")

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT = 1 << 20
PICTURE = pictures.photo_jpeg(400, 300, 1)
GIVEN = "given-by-the-client.1"


class Proxy:
    """nginx or HAProxy in front of 127.0.0.1:upstream."""

    def __init__(self, name, directory, certificate, upstream, *edits):
        self.port = free_port()
        self.context = ssl.create_default_context(cafile=certificate)
        self.log = directory / "log"
        config = directory / name
        if name == "nginx.conf":
            config.write_text(edited(name, ("/run/darkroom-nginx.pid", f"{directory}/pid"),
                                     ("/var/log/nginx/darkroom-error.log", f"{directory}/errors"),
                                     ("/var/log/nginx/darkroom-access.log", str(self.log)),
                                     ("listen 443 ssl", f"listen 127.0.0.1:{self.port} ssl"),
                                     ("/etc/ssl/certs/images.example.org.pem", str(certificate)),
                                     ("/etc/ssl/private/images.example.org.key", str(certificate)),
                                     ("127.0.0.1:8080", f"127.0.0.1:{upstream}"),
                                     ("client_max_body_size 256m", "client_max_body_size 1m")))
            words = ["nginx", "-c", config, "-p", directory, "-e", directory / "errors", "-g",
                     "daemon off;"]
        else:
            config.write_text(edited(name, *edits,
                                     ("log /dev/log local0", "log stdout format raw local0"),
                                     ("bind :443", f"bind 127.0.0.1:{self.port}"),
                                     ("/etc/ssl/private/images.example.org.pem", str(certificate)),
                                     ("127.0.0.1:8080", f"127.0.0.1:{upstream}")))
            words = ["haproxy", "-f", config]
        self.process = launch_proxy(words, directory, self.log)

    def connect(self, source="127.0.0.1"):
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=60, context=self.context,
                                           source_address=(source, 0))

    def request(self, *args, **options):
        """Makes a request on a new connection. Returns (status, headers, body)."""
        connection = self.connect()
        try:
            connection.request(*args, **options)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def is_up(self):
        assert self.process.poll() is None, self.log.read_text()
        try:
            return self.request("GET", "/healthz")[0] == 200
        except OSError:
            return False

    def stop(self):
        self.process.terminate()
        self.process.wait(60)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec",
                    "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1", "-subj",
                    "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", path,
                    "-out", f"{path}.crt"], check=True, capture_output=True, timeout=20)
    with open(path, "ab") as both:
        both.write((path.parent / "both.pem.crt").read_bytes())
    return path


@pytest.fixture(params=["nginx.conf", "haproxy.cfg"])
def start_proxy(request, tmp_path, certificate):
    program = request.param.partition(".")[0]
    if not shutil.which(program, path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin"):
        pytest.skip(f"{program} is not installed")
    started = []

    def start_it(upstream, *edits):
        directory = tmp_path / "proxy"
        directory.mkdir()
        started.append(Proxy(request.param, directory, certificate, upstream, *edits))
        return started[-1]

    yield start_it
    for proxy in started:
        proxy.stop()


def test_headers_without_bodies_refuse_no_upload_behind_a_proxy(start, start_proxy):
    """All clients have the proxy's address. 280 of them announce a body, and send none."""
    daemon = start("limits.body_timeout=10m")
    proxy = start_proxy(daemon.port)
    assert eventually(proxy.is_up, 30), proxy.log.read_text()

    def admitted():
        return daemon.get("/stats").json()["overload"]["classes"][0]["admitted"]
    with contextlib.ExitStack() as stack:
        for _ in range(280):
            silent = stack.enter_context(contextlib.closing(proxy.connect()))
            silent.putrequest("POST", "/images")
            silent.putheader("Content-Type", "image/jpeg")
            silent.putheader("Content-Length", LIMIT)
            silent.endheaders()
        assert eventually(lambda: admitted() == 280)
        for _ in range(3):
            assert proxy.request("POST", "/images", PICTURE, {"Content-Type": "image/jpeg"})[0] == 201


def test_proxy_passes_uploads_and_files(start, start_proxy):
    daemon = start(f"limits.body_bytes={LIMIT}")
    proxy = start_proxy(daemon.port)
    assert eventually(proxy.is_up, 30), proxy.log.read_text()
    content_type, body = form_files(PICTURE, PICTURE)
    status, _, answer = proxy.request("POST", "/images", body,
                                      {"Content-Type": content_type, "X-Request-Id": GIVEN})
    images = json.loads(answer)["images"]
    assert status == 201 and len(images) == 2
    url = images[0]["variants"]["thumb"]["url"]
    status, headers, file = proxy.request("GET", url)
    assert status == 200 and file == daemon.fetch(images[0], "thumb")
    assert proxy.request("GET", url, headers={"If-None-Match": headers["ETag"]})[0] == 304
    status, _, part = proxy.request("GET", url, headers={"Range": "bytes=0-99"})
    assert status == 206 and part == file[:100]
    status, headers, _ = proxy.request("POST", "/images", iter([PICTURE[:1000], PICTURE[1000:]]),
                                       {"Content-Type": "image/jpeg"}, encode_chunked=True)
    assert status == 201 and proxy.request("DELETE", headers["Location"])[0] == 204
    assert eventually(lambda: GIVEN in proxy.log.read_text()), proxy.log.read_text()


def test_proxy_passes_every_host_and_the_pages_of_its_own(start, start_proxy):
    """The shipped configuration of the daemon has no server.hosts."""
    daemon = start("server.hosts=")
    proxy = start_proxy(daemon.port)
    assert eventually(proxy.is_up, 30), proxy.log.read_text()
    host = "images.example.org"
    for headers, status in (({"Origin": f"https://{host}"}, 201),
                            ({"Origin": f"https://{host}", "Sec-Fetch-Site": "same-origin"}, 201),
                            ({"Origin": "https://localhost"}, 403),
                            ({"Origin": "https://evil.example",
                              "X-Forwarded-Host": "evil.example"}, 403),
                            ({"Sec-Fetch-Site": "cross-site"}, 403)):
        headers = {"Host": host, "Content-Type": "image/jpeg", **headers}
        assert proxy.request("POST", "/images", PICTURE, headers)[0] == status, headers
    host = f"127.0.0.1:{proxy.port}"
    assert proxy.request("POST", "/images", PICTURE, {"Origin": f"https://{host}",
                                                      "Content-Type": "image/jpeg"})[0] == 201


def admin_paths():
    """Returns the paths that only operators may have: the program's rows that are not for clients."""
    routes = (ROOT / "stages/conn/route.c").read_text()
    rows = re.findall(r"\[ROUTE_\w+\] = \{(.*?)\},\n", re.sub(r"\n\t +", " ", routes))
    files = (ROOT / "stages/page/page_files.c").read_text()
    paths = {path for row in rows if "ROUTE_ADMIN" in row and "ROUTE_PUBLIC" not in row
             for path in re.findall(r'"(/\S*)"', row)}
    paths |= set(re.findall(r'\{ "(/\S*)", .*, PAGE_FOR_OPERATORS \}', files))
    described = json.loads((ROOT / "stages/http/openapi.json").read_text())["paths"]
    assert paths - {"/"} == {path for path, methods in described.items() if any(
        "administration" in of.get("tags", ()) for of in methods.values() if isinstance(of, dict))}
    return sorted(paths | {"/healthz", "/readyz"})


def status_for_a_stranger(proxy, path):
    connection = proxy.connect(source="127.0.0.2")
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


def check_hidden(proxy):
    """No administrative path of the program is served to strangers, nor one of a later version: the
    proxy has a list of what is public."""
    for path in admin_paths():
        encoded = f"/%{ord(path[1]):x}{path[2:]}"
        for spelling in (path, f"{path}?", f"{path}/", f"/{path}", f"/.{path}", f"/images/..{path}",
                         f"https://localhost{path}", encoded, f"/images/%2e%2e{path}"):
            status = status_for_a_stranger(proxy, spelling)
            assert status in (400, 403, 404), (spelling, status)
    assert status_for_a_stranger(proxy, "/later") in (403, 404)


def test_proxy_hides_admin_paths(start, start_proxy):
    """Only this machine's own address may use them, with any spelling of the path."""
    daemon = start("server.hosts=")
    proxy = start_proxy(daemon.port)
    assert eventually(proxy.is_up, 30), proxy.log.read_text()
    for path in ("/stats", "/metrics", "/healthz", "/readyz", "/graph", "/operator"):
        assert proxy.request("GET", path)[0] == 200, path
    check_hidden(proxy)
    assert "/later" not in daemon.log


def test_proxy_shows_the_page_to_strangers(start, start_proxy):
    daemon = start("server.hosts=", "server.page=yes", "server.public_list=yes")
    proxy = start_proxy(daemon.port)
    assert eventually(proxy.is_up, 30), proxy.log.read_text()
    for path in ("/", "/images", "/page.js", "/page.css", "/page.svg", "/openapi.json"):
        assert status_for_a_stranger(proxy, path) == 200, path
    url = json.loads(proxy.request("POST", "/images", PICTURE, {"Content-Type": "image/jpeg"})[2])[
        "images"][0]["url"]
    assert status_for_a_stranger(proxy, url) == 200


def check_problem(headers, body, status):
    assert headers["Content-Type"] == "application/problem+json"
    assert json.loads(body)["status"] == status


def test_clients_behind_the_proxy_are_told_apart(start, start_proxy):
    """server.trusted_proxies: the log and the limits see the client."""
    daemon = start("server.trusted_proxies=127.0.0.1", "log.access=text",
                   "limits.images_per_client=1")
    proxy = start_proxy(daemon.port)
    assert eventually(proxy.is_up, 30), proxy.log.read_text()
    for source in ("127.0.0.5", "127.0.0.6"):
        connection = proxy.connect(source=source)
        connection.request("POST", "/images", PICTURE, {"Content-Type": "image/jpeg"})
        assert connection.getresponse().status == 201
        connection.close()
        assert daemon.says(f"client={source} ")


def test_haproxy_names_clients_by_the_proxy_protocol(start, start_proxy, request):
    """The server line of the file that is a comment."""
    if "haproxy.cfg" not in request.node.name:
        pytest.skip("nginx cannot send the header to a server of HTTP")
    daemon = start("server.trusted_proxies=127.0.0.1", "server.proxy_protocol=yes",
                   "log.access=text")
    proxy = start_proxy(daemon.port, ("\tserver one", "\t#server one"),
                        ("\t# server one", "\tserver one"))
    assert eventually(proxy.is_up, 30), proxy.log.read_text()
    for source in ("127.0.0.5", "127.0.0.6"):
        connection = proxy.connect(source=source)
        connection.request("POST", "/images", PICTURE, {"Content-Type": "image/jpeg",
                                                        "X-Forwarded-For": "192.0.2.1"})
        assert connection.getresponse().status == 201
        connection.close()
        assert daemon.says(f"client={source} ")
    daemon.stop()
    assert "client=192.0.2.1" not in daemon.log and "no header" not in daemon.log


def test_proxy_has_the_daemons_body_limit(start, start_proxy):
    """A body of exactly the limit passes. The proxy or the daemon refuses larger ones, and also a
    client that first sends all of it gets the answer."""
    daemon = start(f"limits.body_bytes={LIMIT}")
    proxy = start_proxy(daemon.port)
    assert eventually(proxy.is_up, 30), proxy.log.read_text()
    whole = PICTURE + bytes(LIMIT - len(PICTURE))
    assert proxy.request("POST", "/images", whole, {"Content-Type": "image/jpeg"})[0] == 201
    for more in (1, 24 << 20, 24 << 20):
        status, headers, body = proxy.request("POST", "/images", whole + bytes(more),
                                              {"Content-Type": "image/jpeg"})
        assert status == 413
        check_problem(headers, body, 413)
    assert len(daemon.stored()) == 1


def test_proxy_streams_bodies(start, start_proxy):
    daemon = start(f"limits.body_bytes={LIMIT}")
    proxy = start_proxy(daemon.port)
    assert eventually(proxy.is_up, 30), proxy.log.read_text()
    connection = proxy.connect()
    connection.putrequest("POST", "/images")
    connection.putheader("Content-Type", "image/jpeg")
    connection.putheader("Content-Length", str(len(PICTURE)))
    connection.endheaders(PICTURE[:len(PICTURE) // 2])
    assert eventually(lambda: daemon.get("/stats").json()["memory"]["reserved_body_bytes"] > 0)
    connection.send(PICTURE[len(PICTURE) // 2:])
    assert connection.getresponse().status == 201
    connection.close()


def test_proxy_holds_300_uploads_at_a_time(start, start_proxy):
    # Before it has measured its capacity, the controller admits 256 uploads in a second.
    daemon = start(f"limits.body_bytes={LIMIT}", "overload.controller=off")
    proxy = start_proxy(daemon.port)
    assert eventually(proxy.is_up, 30), proxy.log.read_text()
    with contextlib.ExitStack() as stack:
        for _ in range(300):
            connection = stack.enter_context(contextlib.closing(proxy.connect()))
            connection.putrequest("POST", "/images")
            connection.putheader("Content-Type", "image/jpeg")
            connection.putheader("Content-Length", str(len(PICTURE)))
            connection.endheaders(PICTURE[:1000])
        connection.send(PICTURE[1000:])
        assert connection.getresponse().status == 201


def serve_once(listener, heads):
    """Serves HTTP: collects the heads of requests and responds with 200."""
    while True:
        try:
            peer, _ = listener.accept()
        except OSError:
            return
        with peer:
            peer.settimeout(60)
            heads.append(peer.recv(1 << 16).decode("latin-1"))
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nready\n")


def test_proxy_sets_request_ids(start_proxy):
    """A well-formed id of a client is passed on. Otherwise the proxy makes one."""
    heads = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve_once, args=(listener, heads), daemon=True).start()
        proxy = start_proxy(listener.getsockname()[1])
        assert eventually(proxy.is_up, 30), proxy.log.read_text()
        ids = []
        for number, given in enumerate(((GIVEN,), (), ("a b;c",), ("x" * 65,), (f"{GIVEN},a b;c",),
                                        (GIVEN, "a b;c"))):
            connection = proxy.connect()
            connection.putrequest("GET", f"/images/number-{number}")
            for value in given:
                connection.putheader("X-Request-Id", value)
            connection.endheaders()
            connection.getresponse()
            connection.close()
            (head,) = (h for h in heads if f"number-{number} " in h)
            ids.append(re.findall(r"(?im)^X-Request-Id: ([^\r]*)", head))
            assert "x-forwarded-for: 127.0.0.1" in head.lower()
            assert "x-forwarded-proto: https" in head.lower()
        listener.shutdown(socket.SHUT_RDWR)
    assert ids[0] == [GIVEN]
    for made in ids[1:]:
        assert len(made) == 1 and re.fullmatch(r"[A-Za-z0-9._:-]{8,64}", made[0]), ids


def test_a_full_disk_does_not_hide_images(start, start_proxy, tmp_path):
    log = tmp_path / "access"
    daemon = start()
    url = daemon.image(pictures.photo_jpeg(64, 48, 1))["url"]
    daemon.stop()
    daemon = start("limits.free_bytes=4096G", f"log.access_file={log}",
                   store=daemon.store)
    assert daemon.get("/readyz").status == 503
    proxy = start_proxy(daemon.port)
    assert eventually(proxy.is_up, 30), proxy.log.read_text()
    if "haproxy" in proxy.process.args[0]:  # nginx has no checks
        assert eventually(lambda: log.read_text().count("/readyz") > 4, 60)
    assert proxy.request("GET", url)[0] == 200


def test_proxy_survives_a_restart_of_the_daemon(start, start_proxy):
    """Without a daemon the proxy responds with an error. It uses the next daemon without a
    reload."""
    port = free_port()
    first = start("server.drain_delay=0", listen=f"127.0.0.1:{port}")
    proxy = start_proxy(port)
    assert eventually(proxy.is_up, 30), proxy.log.read_text()
    first.stop()
    for path in ("", "/thumb.jpg"):
        status, headers, body = proxy.request("GET", f"/images/01ARZ3NDEKTSV4RRFFQ69G5FAV{path}")
        assert status in (502, 503) and headers["Retry-After"] == "5"
        check_problem(headers, body, status)
    start(listen=f"127.0.0.1:{port}")
    assert eventually(proxy.is_up, 30)
    assert eventually(lambda: proxy.request("POST", "/images", PICTURE,
                                            {"Content-Type": "image/jpeg"})[0] == 201)
