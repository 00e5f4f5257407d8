"""What an operator sees when something goes wrong: rows of darkroomd(8) that no other test plays.
tests/tree/test_troubles.py has the list."""

import contextlib
import os
import pathlib
import pwd
import socket
import subprocess
import tempfile

import pytest

import pictures
from darkroom import Daemon, command, eventually, run, slow

PICTURE = pictures.photo_jpeg(64, 48, 1)
VARIANT = "[variant.a]\noperations = blur 1\n"
IS_ROOT = os.geteuid() == 0
UNPRIVILEGED = pathlib.Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")


@pytest.fixture
def place():
    """A directory that every user can reach, unlike tmp_path."""
    with tempfile.TemporaryDirectory() as path:
        os.chmod(path, 0o755)
        yield pathlib.Path(path)


def start_with(place, server, rest, user):
    """Starts the daemon with a file until it exits. Returns its exit status, its messages and the file."""
    site = place / "site.ini"
    listen = "" if "listen" in server else "listen = 127.0.0.1:0\n"
    root = "" if "root =" in server else f"root = {place}/store\n"
    site.write_text(f"[server]\n{server}{listen}{root}"
                    + (f"user = {user}\n" if user and IS_ROOT else "") + rest + VARIANT)
    site.chmod(0o644)
    done = run("-c", site)
    return done.returncode, done.stderr, site


@contextlib.contextmanager
def nothing(_):
    yield ""


@contextlib.contextmanager
def busy_port(_):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"listen = 127.0.0.1:{listener.getsockname()[1]}\n"


@contextlib.contextmanager
def foreign_store(tmp_path):
    (tmp_path / "root's").mkdir(mode=0o755)
    yield f"root = {tmp_path}/root's\n"


@contextlib.contextmanager
def second_daemon(tmp_path):
    first = Daemon(tmp_path / "store")
    yield f"root = {tmp_path}/store\n"
    first.stop()


@contextlib.contextmanager
def missing_mount(tmp_path):
    yield f"root = {tmp_path}/mnt/store\n"


@contextlib.contextmanager
def low_port(_):
    if not UNPRIVILEGED.exists() or int(UNPRIVILEGED.read_text()) <= 80:
        pytest.skip("every user may listen on port 80 here")
    yield "listen = 127.0.0.1:80\n"


@contextlib.contextmanager
def secret_tokens(tmp_path):
    (tmp_path / "tokens").touch(0o600)
    yield ""


def has_line(site, key, text, said):
    """Whether the message names the line of the key."""
    lines = site.read_text().splitlines()
    number = next(i for i, line in enumerate(lines, 1) if line.startswith(f"{key} = "))
    return f"{site}:{number}: " in said and text in said


@pytest.mark.parametrize("row, prepare, rest, user, status, key, said", [
    ("root", nothing, "", "", 78, None, "running as root: expected server.user"),
    ("user", nothing, "", "nobody-at-all", 78, "user", "server.user = nobody-at-all: unknown user"),
    ("mount", missing_mount, "", "root", 1, "root", "; the directory above it must exist"),
    ("rights", foreign_store, "", "nobody", 1, "root",
     "; under systemd the unit needs ReadWritePaths="),
    ("second", second_daemon, "", "root", 1, "root", "another darkroomd uses this store"),
    ("port", busy_port, "", "root", 1, "listen",
     "server.listen = {address}: Address already in use"),
    ("privileged", low_port, "", "nobody", 1, "listen",
     "; a port below 1024 needs darkroomd.socket"),
    ("log", nothing, "[log]\naccess_file = /nonexistent/log\n", "root", 1, "access_file",
     "log.access_file = /nonexistent/log: No such file or directory"),
    ("tokens", secret_tokens, "[access]\ntokens_file = {}/tokens\n", "nobody", 1, "tokens_file",
     "access.tokens_file = {place}/tokens: Permission denied")],
    ids=lambda value: value if isinstance(value, str) else "")
def test_start_says_what_is_wrong(place, row, prepare, rest, user, status, key, said):
    """The message names file and line, and what to do."""
    if not IS_ROOT and user != "root":
        pytest.skip("only root can become another user")
    with prepare(place) as server:
        if row in ("privileged", "tokens"):
            (place / "store").mkdir()
            os.chown(place / "store", 65534, 65534)
        code, messages, site = start_with(place, server, rest.format(place), user)
    said = said.format(place=place, address=server.removeprefix("listen = ").strip())
    assert code == status and said in messages, messages
    assert key is None or has_line(site, key, said, messages), messages


def test_too_few_descriptors_are_reported(tmp_path):
    """The limit of the parent process holds for the daemon."""
    (tmp_path / "site.ini").write_text(f"[server]\nlisten = 127.0.0.1:0\nroot = {tmp_path}/store\n"
                                       f"user = {pwd.getpwuid(os.geteuid()).pw_name}\n"
                                       "[limits]\nconnections = 1000\n" + VARIANT)
    process = subprocess.Popen(["bash", "-c", 'ulimit -n 500; exec "$@"', "bash",
                                *command("-c", tmp_path / "site.ini")], stderr=subprocess.PIPE,
                               text=True)
    said = ""
    while "ready on" not in said:
        said += (line := process.stderr.readline())
        assert line, said
    process.terminate()
    process.communicate(timeout=slow(60))
    assert (f"{tmp_path}/site.ini:6: limits.connections = 1000: expected a limit of 2256 open files"
            in said), said


def test_full_disk_of_the_access_log_stops_no_request(start, small_disk):
    disk = small_disk("size=64k")
    daemon = start("log.access=text", f"log.access_file={disk}/log", "server.sandbox=off")
    with daemon.client() as c:
        def is_reported():
            assert c.request("GET", "/healthz").status == 200
            return "log.access_file: cannot write: No space left on device" in daemon.log
        assert eventually(is_reported, step=0)
    assert daemon.upload(PICTURE).status == 201
    daemon.stop()
