"""darkroomd ctl and the control socket: their answers, their users, and the life of the socket."""

import os
import pathlib
import re
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time

import pytest

import pictures
from control import FIRST, OTHER, Site, command, ctl, socket_of
from darkroom import Daemon, eventually, run, slow

JPEG = [("Content-Type", "image/jpeg")]
SMALL = pictures.photo_jpeg(320, 240, 2)


@pytest.fixture
def site(start, tmp_path):
    return Site(start, tmp_path)


# ---- ctl ----

def test_ctl_changes_and_shows_settings(site):
    daemon = site.daemon
    done = ctl(daemon, "policy", "mg1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "active: policy mg1\n", "")
    assert site.policy() == "mg1"
    assert ctl(daemon, "policy").stdout == "mg1\n"
    done = ctl(daemon, "set", "scheduler.threads", "3")
    assert done.stdout == "active: policy mg1, scheduler.threads = 3\n"
    assert ctl(daemon, "set", "experiment.blur.discipline=lcfs").returncode == 0
    done = ctl(daemon, "status")
    assert done.returncode == 0 and f"process {daemon.pid}\n" in done.stdout
    assert ("active: policy mg1, scheduler.threads = 3, experiment.blur.discipline = lcfs\n"
            in done.stdout)
    done = ctl(daemon, "reload")
    assert (done.returncode, done.stdout) == (0, f"active: policy {FIRST}\n")


def test_status_shows_what_differs_from_the_file(site):
    daemon = site.daemon
    same = f"nothing differs from {site.path} and the options -o\n"
    assert same in ctl(daemon, "status").stdout
    assert ctl(daemon, "set", "variant.thumb.quality", "70").returncode == 0
    assert ctl(daemon, "set", "limits.idle_timeout", "7s").returncode == 0
    file_quality = re.search(r"^\[variant.thumb\].*?^quality = (\d+)", ctl(daemon, "dump").stdout,
                             re.M | re.S)[1]
    assert file_quality == "70"
    shown = ctl(daemon, "status").stdout
    assert f"differs from {site.path} and the options -o:\n" in shown
    assert re.search(r"^  variant.thumb.quality = 70 \(file: \d+\)$", shown, re.M)
    assert re.search(r"^  limits.idle_timeout = 7s \(file: \w+\)$", shown, re.M)
    site.path.write_text(site.path.read_text() + "\n[variant.more]\noperations = blur 2\n")
    assert re.search(r"^  no variant.more \(file: it is there\)$", ctl(daemon, "status").stdout,
                     re.M)
    assert ctl(daemon, "reload").returncode == 0
    assert same in ctl(daemon, "status").stdout


def test_status_of_a_daemon_without_a_file(start):
    daemon = start(config=None)
    shown = ctl(daemon, "status").stdout
    assert "\nnothing differs from the defaults and the options -o\n" in shown


def test_dump_is_the_running_configuration(site, tmp_path):
    daemon = site.daemon
    assert ctl(daemon, "set", "variant.thumb.quality", "70").returncode == 0
    (tmp_path / "dumped.ini").write_text(ctl(daemon, "dump").stdout)
    done = run("-c", tmp_path / "dumped.ini", "-T")
    assert done.returncode == 0 and done.stdout == ctl(daemon, "dump").stdout
    assert f"root = {daemon.store}\n" in done.stdout


@pytest.mark.parametrize("words, status, said", [
    (["policy", "best"], 1, "expected one of drain, cohort"),
    (["set", "scheduler.threads", "0"], 1, "auto or a whole number from 1"),
    (["set", "limits.memory_budget", "64M"], 1, "at most half of limits.memory_budget"),
    (["set", "limits.memory_budget", "2G"], 1, "limits.memory_budget needs a restart"),
    (["set", "stage.accept_read.threads", "5"], 1, "needs a restart"),
    (["set", "experiment.blur.kind", "exclusive"], 1, "needs a restart"),
    (["set", "scheduler.polixy", "mg1"], 1, "did you mean policy"),
    (["set", "nonsense"], 1, "SECTION.KEY=VALUE"), (["set"], 2, "set SECTION.KEY VALUE"),
    (["reload", "now"], 2, "expected reload"), (["polcy"], 2, "did you mean policy"),
    ([""], 2, "unknown command"), ([], 2, "expected a command"),
    (["policy", "x" * 2000], 2, "1024"), (["policy", "mg1\npolicy srpt"], 2, "one line"),
    (["policy", "\x1b[2J\xff"], 1, "expected one of")])
def test_ctl_refuses_bad_commands(site, words, status, said):
    before = site.policy()
    done = ctl(site.daemon, *words)
    assert done.returncode == status and not done.stdout, done
    assert done.stderr.startswith("darkroomd") and said.lower() in done.stderr.lower()
    assert site.policy() == before


def test_ctl_reports_errors_of_a_reload(site):
    site.write("best")
    done = ctl(site.daemon, "reload")
    assert done.returncode == 1 and not done.stdout
    assert f"{site.path}:" in done.stderr and "expected one of" in done.stderr
    assert "configuration: the file is wrong; it stays unchanged" in done.stderr
    done = run("-c", site.path, "ctl", "status")
    assert done.returncode == 78 and f"{site.path}:" in done.stderr


def test_ctl_without_a_daemon_fails(tmp_path):
    done = run("-o", f"server.root={tmp_path}", "ctl", "status")
    assert done.returncode == 1
    assert done.stderr == f"darkroomd ctl: {tmp_path}/control.sock: no daemon listens there\n"
    done = run("-o", "server.control=", "ctl", "status")
    assert done.returncode == 1 and "server.control is empty" in done.stderr
    done = run("-o", f"server.root=/{'long/' * 40}", "ctl", "status")
    assert done.returncode == 1 and "expected a socket's path of at most 107 bytes" in done.stderr


def test_ctl_works_while_draining(start, tmp_path):
    """An upload keeps the daemon alive. It executes commands until the end."""
    site = Site(start, tmp_path)
    with site.daemon.client() as c:
        c.send(c.head("POST", "/images", SMALL, JPEG) + SMALL[:100])
        assert eventually(lambda: site.daemon.has_read(c))
        site.daemon.signal(signal.SIGTERM)
        assert site.daemon.says("draining")
        assert command(site.daemon, "policy dbr")[0] == 0
        c.send(SMALL[100:])
        assert c.answer().status == 201
    assert site.daemon.wait_exit() == 0
    assert not socket_of(site.daemon).exists()


# ---- the socket ----

def test_socket_is_private_and_removed(site):
    mode = socket_of(site.daemon).lstat()
    assert stat.S_ISSOCK(mode.st_mode) and stat.S_IMODE(mode.st_mode) == 0o600
    assert mode.st_uid == os.geteuid()
    site.daemon.stop()
    assert not socket_of(site.daemon).exists()


STRANGER = """
import socket, sys
s = socket.socket(socket.AF_UNIX)
try:
    s.connect(sys.argv[1])
    s.sendall(b"policy " + sys.argv[2].encode() + b"\\n")
except OSError as error:
    print(type(error).__name__)
print(s.recv(1000).decode() if s.getpeername() else "")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_socket_refuses_strangers(start, tmp_path):
    """The mode of the path refuses them. If the mode was changed, their user id does."""
    # Other users cannot enter pytest's own directories.
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        refuse_strangers(Site(start, tmp_path, f"server.control={directory}/socket"),
                         pathlib.Path(directory, "socket"))


def refuse_strangers(site, path):
    def stranger():
        done = subprocess.run([sys.executable, "-c", STRANGER, path, OTHER],
                              user=65534, group=65534, extra_groups=[], capture_output=True,
                              text=True, timeout=20)
        return done.stdout
    assert stranger().startswith("PermissionError")
    path.chmod(0o666)
    assert "only root and the daemon's own user" in stranger()
    assert site.daemon.says("<4>control socket: rejected uid 65534: only root")
    assert site.policy() == FIRST


def test_socket_of_a_dead_daemon_is_replaced(start, tmp_path):
    first = start(store=tmp_path / "store")
    first.kill()
    first.stopped = True
    assert socket_of(first).exists()
    second = start(store=tmp_path / "store")
    assert command(second, "status")[0] == 0


def test_socket_of_another_daemon_is_left_alone(start, tmp_path):
    setting = f"server.control={tmp_path}/ctl"
    first = start(setting)
    second = Daemon(tmp_path / "other", setting, wait=False)
    assert second.wait_exit() == 1
    assert f"{tmp_path}/ctl: cannot listen: another daemon listens there" in second.log
    assert f"process {first.pid}\n" in run("-o", setting, "ctl", "status").stdout


def test_file_that_is_not_a_socket_is_left_alone(start, tmp_path):
    path = tmp_path / "file"
    path.write_text("precious")
    daemon = Daemon(tmp_path / "store", f"server.control={path}", wait=False)
    assert daemon.wait_exit() == 1 and "is not a socket" in daemon.log
    (tmp_path / "store").mkdir(exist_ok=True)
    (tmp_path / "store" / "control.sock").write_text("precious")
    daemon = start(store=tmp_path / "store")
    assert re.search(r"<4>control socket \S+: cannot listen: ", daemon.log)
    assert daemon.upload(SMALL).status == 201
    daemon.stop()
    assert path.read_text() == (tmp_path / "store" / "control.sock").read_text() == "precious"


def test_path_that_another_took_over_is_left_alone(start, tmp_path):
    """Another program may have replaced the socket. Its file is kept."""
    daemon = start()
    path = socket_of(daemon)
    path.unlink()
    path.write_text("another's")
    daemon.stop()
    assert path.read_text() == "another's"


def test_empty_path_means_no_socket(start):
    daemon = start("server.control=")
    assert not socket_of(daemon).exists() and daemon.upload(SMALL).status == 201
    daemon.signal(signal.SIGHUP)
    assert daemon.says("active: policy")


def test_a_command_without_an_end_is_refused(site):
    """It has CTL_LINE_MAX bytes. None stays unread, so the answer arrives."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(socket_of(site.daemon)))
        s.settimeout(slow(60))
        s.sendall(b"x" * 1024)
        assert b"".join(iter(lambda: s.recv(4096), b"")) == b"1\nthe command is too long\n"


def test_stuck_clients_do_not_delay_commands(site):
    """Clients send nothing, half a line, far too much, or do not wait for their answer."""
    path, stuck = str(socket_of(site.daemon)), []
    for i in range(40):
        s = socket.socket(socket.AF_UNIX)
        s.connect(path)
        s.settimeout(slow(5))
        try:
            s.sendall([b"", b"stat", b"x" * 5000, b"status\n"][i % 4])
        except (BrokenPipeError, ConnectionResetError):
            pass
        if i % 8 == 7:
            s.close()
        else:
            stuck.append(s)
    began = time.monotonic()
    assert command(site.daemon, "policy dbr") == (0, "active: policy dbr\n")
    assert site.policy() == "dbr" and time.monotonic() - began < slow(10)
    assert len(list(pathlib.Path(f"/proc/{site.daemon.pid}/fd").iterdir())) < 60
    began = time.monotonic()
    site.daemon.stop()
    assert time.monotonic() - began < slow(10)
    for s in stuck:
        s.close()
