"""conf/container in use: the image is built and run as darkroomd(8) writes, and the compose file
with its proxy. Needs root, podman, buildah and Debian's packages. Only with DARKROOM_SYSTEM: see
podman.py."""

import concurrent.futures
import contextlib
import hashlib
import http.client
import io
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import pytest
from PIL import Image

from darkroom import overrides
from nspawn import ROOT, eventually, run, succeed
from podman import DEBIAN, add_image, debian, end, needs_podman, podman, use_own_storage
from s3_stand_in import Store

pytestmark = needs_podman

FOLDER = ROOT / "conf/container"
PICTURE = (ROOT / "data/sample/lake.jpg").read_bytes()
TOKEN = "a-token"
LINE = f"test {hashlib.sha256(TOKEN.encode()).hexdigest()} upload\n"  # of the file of tokens
JPEG = {"Content-Type": "image/jpeg", "Authorization": f"Bearer {TOKEN}"}
# For a client that is not this machine: addresses for documentation (RFC 5737).
OUTSIDE, HERE = "198.51.100.2", "198.51.100.1"


def manual():
    """Returns the words of the two commands of the manual."""
    page = (ROOT / "src/daemon/darkroomd.8").read_text()
    block = page.split(".Ss Container\n")[1].split(".Bd")[1].split(".Ed")[0]
    commands = re.split(r"^\$ ", block.replace("\\e\n", ""), flags=re.M)[1:]
    return [shlex.split(command) for command in commands]


@pytest.fixture(scope="module")
def image():
    """Builds the image by the manual's command. Returns the command that runs it, with a token."""
    build, command = manual()
    place = pathlib.Path(tempfile.mkdtemp(prefix="podman-", dir="/var/tmp"))
    use_own_storage(place)
    try:
        add_image(DEBIAN, debian())
        begun = time.monotonic()
        # Only the network differs: that of the machine, as a bridge may lead nowhere.
        succeed(*build[:2], "--network=host", *build[2:], cwd=ROOT)
        print(f"built in {time.monotonic() - begun:.0f} s")
        (place / "tokens").write_text(LINE)
        yield [w.replace("./conf/container/tokens:", f"{place}/tokens:") for w in command]
    finally:
        end(place)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Client:
    """Of a port of this machine."""

    def __init__(self, port):
        self.port = port

    def request(self, *args):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            connection.request(*args)
            answer = connection.getresponse()
            return answer.status, answer.read()

    def upload(self, picture=PICTURE):
        status, body = self.request("POST", "/images", picture, JPEG)
        assert status == 201, body
        return json.loads(body)["images"][0]["id"]

    def is_served(self, ident):
        return self.request("GET", f"/images/{ident}/thumb.jpg")[0] == 200

    def refuses(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), 5).close()
        except OSError:
            return True
        return False


class Container(Client):
    """A running image."""

    def __init__(self, command):
        super().__init__(free_port())
        words = [f"127.0.0.1:{self.port}:8080" if w == "8080:8080" else w for w in command]
        assert words[:2] == ["podman", "run"] and words != command
        self.name = podman(*words[1:2], "--detach", *words[2:])
        assert eventually(self.is_healthy), podman("logs", self.name)

    def is_healthy(self):
        return run("podman", "healthcheck", "run", self.name).returncode == 0


@pytest.fixture(scope="module")
def container(image):
    return Container(image)


def test_image_keeps_user_health_check_and_volume(image):
    config = json.loads(podman("image", "inspect", image[-1]))[0]
    assert config["Config"]["User"] == "darkroom"
    assert config["Healthcheck"]["Test"][:2] == ["CMD", "/usr/bin/darkroomd"], config
    assert list(config["Config"]["Volumes"]) == ["/var/lib/darkroom"]
    assert not podman("run", "--rm", "--network=none", "--entrypoint=/bin/sh", image[-1], "-c",
                      "command -v gcc make || true")


def test_an_upload_is_stored_on_the_volume(container):
    ident = container.upload()
    volume = pathlib.Path(podman("volume", "inspect", "--format", "{{.Mountpoint}}", "images"))
    assert list(volume.glob(f"*/*/{ident}/thumb.jpg")) and container.is_served(ident)


def test_other_formats_are_decoded(container):
    for kind in ("png", "webp"):
        picture = io.BytesIO()
        with Image.open(io.BytesIO(PICTURE)) as image:
            image.save(picture, kind)
        assert container.is_served(container.upload(picture.getvalue()))


def test_it_is_no_root_and_changes_nothing_but_the_volume(container):
    pid = podman("inspect", "--format", "{{.State.Pid}}", container.name)
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    assert re.search(r"^Uid:\t900\t900\t", status, re.M) and "\nCapBnd:\t0000000000000000" in status
    done = run("podman", "exec", container.name, "touch", "/etc/x")
    assert done.returncode != 0 and "Read-only file system" in done.stderr
    assert " error: " not in podman("logs", container.name)


def test_health_check_fails_while_nothing_answers(container):
    """podman 4.3 does not apply the check's own timeout: timeout(1) ends it here, with 124."""
    pid = int(podman("inspect", "--format", "{{.State.Pid}}", container.name))
    os.kill(pid, signal.SIGSTOP)
    try:
        done = run("timeout", "10", "podman", "healthcheck", "run", container.name)
        assert done.returncode in (1, 124)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert eventually(container.is_healthy)


def test_stop_drains_and_a_restart_keeps_images(container):
    """The body of an upload ends after the stop has begun, and its image is stored."""
    kept = [container.upload() for _ in range(3)]
    with socket.create_connection(("127.0.0.1", container.port), 60) as s:
        s.sendall(b"POST /images HTTP/1.1\r\nHost: x\r\nContent-Type: image/jpeg\r\n"
                  b"Authorization: Bearer " + TOKEN.encode() + b"\r\n"
                  b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(PICTURE))
        assert s.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"  # it has begun
        s.sendall(PICTURE[:1000])
        stop = subprocess.Popen(["podman", "stop", "--time", "45", container.name],
                                stdout=subprocess.DEVNULL)
        assert eventually(container.refuses)
        s.sendall(PICTURE[1000:])
        answer = s.recv(65536).decode()
    assert answer.startswith("HTTP/1.1 201 "), answer
    kept.append(re.search(r'"id":"([^"]+)"', answer)[1])
    assert stop.wait(60) == 0
    assert podman("inspect", "--format", "{{.State.ExitCode}}", container.name) == "0"
    podman("start", container.name)
    assert eventually(container.is_healthy)
    assert all(map(container.is_served, kept))
    podman("rm", "--force", "--time", "45", container.name)


def test_images_are_objects_of_an_s3_store(image, tmp_path):
    """The library that this needs is in the image. The store is on this machine's loopback."""
    store, port = Store(), free_port()
    settings = store.settings(tmp_path, s3_credentials="/keys")
    (tmp_path / "s3-keys").chmod(0o644)  # the daemon's user is another one
    name = podman("run", "--detach", "--read-only", "--cap-drop=all", "--network=host",
                  f"--volume={tmp_path}/s3-keys:/keys:ro",
                  *(f"--volume={w}" for w in image if w.endswith("/tokens:ro")), image[-1], "-o",
                  f"server.listen=127.0.0.1:{port}",
                  *overrides(*settings))
    try:
        client = Client(port)
        assert eventually(lambda: not client.refuses()), podman("logs", name)
        ident = client.upload()
        assert client.is_served(ident) and store.keys(f"file/{ident}/thumb.jpg")
    finally:
        podman("rm", "--force", "--time", "0", name)
        store.stop()


@contextlib.contextmanager
def outside():
    """A client that is not this machine. Yields a function that runs a command there."""
    name, link = "darkroom-client", "darkroom0"
    succeed("ip", "netns", "add", name)
    try:
        succeed("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", name)
        succeed("ip", "address", "add", f"{HERE}/24", "dev", link)
        succeed("ip", "link", "set", link, "up")
        succeed("ip", "-n", name, "address", "add", f"{OUTSIDE}/24", "dev", "eth0")
        succeed("ip", "-n", name, "link", "set", "eth0", "up")
        yield lambda *words: run("ip", "netns", "exec", name, *words)
    finally:
        run("ip", "netns", "delete", name)


@pytest.fixture
def compose(image, tmp_path):
    """The compose file, with the image that is built already, and Debian's Caddy."""
    tag = re.search(r"docker.io/library/caddy:\S+", (FOLDER / "compose.yaml").read_text())[0]
    add_image(tag, debian(("caddy",)), "--env", "XDG_DATA_HOME=/data",
              "--cmd", "caddy run --config /etc/caddy/Caddyfile --adapter caddyfile")
    podman("tag", image[-1], "container_darkroom")
    folder = tmp_path / "container"  # its name is that of the project
    shutil.copytree(FOLDER, folder)
    (folder / "tokens").write_text(LINE)
    text = (folder / "compose.yaml").read_text()
    succeed(*shlex.split(re.search(r"^# +(podman network create .*)$", text, re.M)[1]))
    words = ["podman-compose", "-f", folder / "compose.yaml"]
    done = run(*words, "up", "--no-build", "-d")
    assert done.returncode == 0, done.stdout + done.stderr
    yield lambda service, *command: run("podman", "exec", f"container_{service}_1", *command)
    run(*words, "down")


def test_compose_serves_by_tls_and_sees_the_clients(compose, tmp_path):
    """Caddy makes a certificate for localhost itself."""
    authority = "/data/caddy/pki/authorities/local/root.crt"
    assert eventually(lambda: compose("proxy", "test", "-s", authority).returncode == 0)
    certificate = tmp_path / "root.crt"
    certificate.write_text(compose("proxy", "cat", authority).stdout)
    with outside() as client:
        def curl(*words):
            return client("curl", "-sS", "--cacert", certificate, "--connect-to",
                          f"localhost:443:{HERE}:443", *words, "https://localhost/images")
        upload = ("-H", f"Authorization: Bearer {TOKEN}", "-F",
                  f"file=@{ROOT / 'data/sample/lake.jpg'}")
        assert eventually(lambda: curl(*upload).stdout.startswith('{"images"')), curl(*upload)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda _: curl(*upload, "-o", "/dev/null", "-w",
                                                   "%{http_code}").stdout, range(8)))
        assert answers == ["201"] * 8
    log = run("podman", "logs", "container_darkroom_1")
    clients = re.findall(r"client=(\S+) .*method=POST .*status=201", log.stdout + log.stderr)
    assert len(clients) >= 9 and set(clients) == {OUTSIDE}
