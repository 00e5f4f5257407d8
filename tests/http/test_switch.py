"""Changes while the daemon runs: by SIGHUP and by darkroomd ctl, with uploads going on all the time. DARKROOM_SWITCH_S:
how many seconds the long test takes."""

import os
import pathlib
import random
import re
import resource
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time

import pytest

import pictures
from darkroom import CONFIG, LEAST_THREADS, PER_CONNECTION, POLICY, SETTINGS, Daemon, eventually, overrides, run, slow

JPEG = [("Content-Type", "image/jpeg")]
SMALL = pictures.photo_jpeg(320, 240, 2)
SIZES = [SMALL, pictures.photo_jpeg(1000, 750, 1), pictures.photo_jpeg(640, 480, 3, progressive=True)]
POLICIES = re.search(r"Policies: *(.*)", run("--help").stdout)[1].split(", ")
# Two threads with a connection each would let the load's other connections wait for ever.
FIRST = "cohort" if PER_CONNECTION else POLICY or "drain"
OTHER = "dbr" if FIRST == "srpt" else "srpt"
SECONDS = float(os.environ.get("DARKROOM_SWITCH_S", "5"))
EVERY = 0.2

# The tests go through all policies, from each to others: it matters little with which the daemon begins, but for its kind of threads.
pytestmark = pytest.mark.skipif(POLICY not in ("", "drain", "seda", "thread-per-connection") and not SETTINGS,
                                reason="the tests choose the policies")


class Site:
    """A daemon with a configuration file that can be edited; the policy is in that, not on the command line."""

    def __init__(self, start, directory, *settings, **options):
        self.path = directory / "site.ini"
        self.write(FIRST)
        self.daemon = start(*settings, config=self.path, policy="", **options)

    def write(self, policy, *edits):
        text = re.sub(r"(?m)^policy = .*", f"policy = {policy}", CONFIG.read_text())
        for old, new in edits:
            assert old in text
            text = text.replace(old, new)
        self.path.write_text(text)

    def reload(self):
        """SIGHUP; the lines that it brought to the log."""
        before = self.daemon.log.count("SIGHUP: reloading")
        self.daemon.signal(signal.SIGHUP)

        def lines():
            parts = self.daemon.log.split("SIGHUP: reloading")
            return parts[-1] if len(parts) == before + 2 else ""

        assert eventually(lambda: re.search("active: policy|configuration: .*; it stays unchanged$", lines(), re.M), 60)
        return lines()

    def policy(self):
        return self.daemon.get("/stats").json()["scheduler"]["policy"]


@pytest.fixture
def site(start, tmp_path):
    return Site(start, tmp_path)


def socket_of(daemon):
    return daemon.store / "control.sock"


def command(daemon, line):
    """Speaks to the control socket as darkroomd ctl does: (status, text)."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(socket_of(daemon)))  # with a timeout, it would not wait for its turn
        s.settimeout(slow(60))
        s.sendall(line.encode() + b"\n")
        answer = b"".join(iter(lambda: s.recv(65536), b"")).decode()
    return int(answer[0]), answer[2:]


def ctl(daemon, *words, settings=()):
    """The program itself, addressed by the daemon's root."""
    return run(*overrides(f"server.root={daemon.store}", *settings), "ctl", *words)


class Load:
    """Closed loop: each connection stays open and uploads as soon as it has its answer. Any failure counts."""

    def __init__(self, daemon, connections=16):
        self.daemon, self.over = daemon, threading.Event()
        self.times, self.failures = [], []
        self.threads = [threading.Thread(target=self._run, args=(i,)) for i in range(connections)]

    def _run(self, seed):
        rng = random.Random(seed)
        try:
            with self.daemon.client(timeout=slow(60)) as c:
                while not self.over.is_set():
                    began = time.monotonic()
                    answer = c.request("POST", "/images", rng.choice(SIZES), JPEG)
                    if answer.status != 201:
                        self.failures.append(answer)
                    self.times.append(time.monotonic() - began)
        except Exception as failure:  # a broken connection, a timeout, an answer that is none
            self.failures.append(failure)

    def __enter__(self):
        for t in self.threads:
            t.start()
        assert eventually(lambda: len(self.times) >= len(self.threads), 60)
        return self

    def __exit__(self, *_):
        self.over.set()
        for t in self.threads:
            t.join()

    def check(self):
        """After the end: nothing failed, and what was answered is what was stored."""
        assert not self.failures, self.failures[:3]

        def images():
            said = self.daemon.get("/stats").json()["images"]
            return said["stored"], said["failed"], said["in_flight"]
        assert eventually(lambda: images() == (len(self.times), 0, 0)), images()
        assert len(self.daemon.stored()) == len(self.times) and eventually(lambda: not self.daemon.leftovers())
        return sorted(self.times)


# ---- under load ----

def test_policies_switched_by_ctl_under_load(site):
    """Through all policies, one every 200 ms: no request fails, none is lost."""
    daemon, switches, waits = site.daemon, 0, []
    with daemon.client() as watch, Load(daemon) as load:
        assert watch.request("GET", "/healthz").status == 200
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            policy = POLICIES[switches % len(POLICIES)]
            began = time.monotonic()
            assert command(daemon, f"policy {policy}") == (0, f"active: policy {policy}\n")
            waits.append(time.monotonic() - began)
            assert watch.request("GET", "/stats").json()["scheduler"]["policy"] == policy
            switches += 1
            time.sleep(max(0, EVERY - (time.monotonic() - began)))
    command(daemon, "policy cohort")
    times = load.check()
    print(f"\n{switches} switches (the longest took {max(waits) * 1000:.0f} ms), {len(times)} uploads, {len(load.failures)} failed, "
          f"p50 {times[len(times) // 2] * 1000:.0f} ms, p99 {times[len(times) * 99 // 100] * 1000:.0f} ms, longest {times[-1] * 1000:.0f} ms")


def test_policies_switched_by_hangup_under_load(site):
    with Load(site.daemon) as load:
        for policy in POLICIES + ["cohort"]:
            site.write(policy)
            assert f"active: policy {policy}\n" in site.reload()
            time.sleep(EVERY / 2)
    load.check()


def test_everything_live_switched_under_load(site):
    """Regimes, disciplines, threads, thresholds and direct calls, in any order."""
    rng = random.Random(5)
    choices = {"scheduler.policy": POLICIES, "scheduler.threads": [str(LEAST_THREADS), "2", "3", "6", "auto"],
               "scheduler.service": ["exhaustive", "gated", "n-gated", "time-gated", "cutoff", "auto"],
               "scheduler.discipline": ["fcfs", "lcfs", "srpt", "auto"], "scheduler.idle": ["wake", "backoff"],
               "stage.disk_write.threads": ["1", "2", "4"], "stage.jpeg_decode.threads": ["1", "3"],
               "stage.jpeg_encode.threshold_events": ["0", "2"], "stage.scale.pass_through": ["yes", "no"],
               "stage.blur.service": ["gated", "auto"], "scheduler.counters": ["yes", "no"],
               "layout.steal": ["yes", "no"], "layout.distribution": ["round-robin", "least-loaded"]}
    with Load(site.daemon) as load:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            key = rng.choice(list(choices))
            status, text = command(site.daemon, f"set {key} {rng.choice(choices[key])}")
            assert status == 0, text
            time.sleep(0.02)
    assert command(site.daemon, "reload")[0] == 0
    load.check()


# ---- reload ----

def test_reload_changes_the_policy(site):
    for policy in POLICIES:
        site.write(policy)
        assert f"active: policy {policy}\n" in site.reload()
        assert site.policy() == policy
        assert site.daemon.upload(SMALL).status == 201


def test_reload_of_a_wrong_file_changes_nothing(site):
    before = site.policy()
    site.write(OTHER, ("wait_timeout = 10s", "wait_timeout = ten"), ("[limits]", "[limitz]"))
    said = site.reload()
    lines = site.path.read_text().splitlines()
    for text in ("wait_timeout = ten", "[limitz]"):
        assert f"<3>{site.path}:{lines.index(text) + 1}: " in said, said
    assert "did you mean limits" in said and "active:" not in said
    assert site.policy() == before and site.daemon.upload(SMALL).status == 201
    site.path.unlink()
    assert str(site.path) in site.reload()
    assert site.policy() == before
    site.write(OTHER)
    site.reload()
    assert site.policy() == OTHER


def test_reload_of_a_variant_that_cannot_be(site):
    site.write(OTHER, ("operations = scale 160x160 inside", "operations = turn 90"))
    assert "turn" in site.reload() and site.policy() == FIRST


def test_reload_names_what_needs_a_restart(site):
    site.write("dbr", ("memory_budget = 1G", "memory_budget = 2G"), ("sandbox = auto", "sandbox = off"))
    said = site.reload()
    waiting = re.findall(r"<4>(\S+) needs a restart", said)
    assert sorted(waiting) == ["limits.memory_budget", "server.sandbox"]
    assert site.policy() == "dbr"


def test_what_the_command_line_says_stays_on_top(start, tmp_path):
    site = Site(start, tmp_path, "scheduler.policy=srpt", "scheduler.service=gated")
    site.write("dbr")
    assert "active: policy srpt, scheduler.service = gated\n" in site.reload()
    assert site.policy() == "srpt"


def test_reload_forgets_what_ctl_has_set(site):
    assert command(site.daemon, "policy dbr")[0] == 0
    assert site.policy() == "dbr"
    site.write("mg1")
    site.reload()
    assert site.policy() == "mg1"


def test_threads_that_cannot_be_started(start):
    """For want of descriptors: of its eventfd, of its event loop's. Nothing changes, and when there are some again it can be done."""
    daemon = start("scheduler.threads=2", policy="thread-per-connection")
    limits = resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
    for left in range(3, 12):
        used = max(int(fd.name) for fd in pathlib.Path(f"/proc/{daemon.pid}/fd").iterdir()) + 1
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (used + left, limits[1]))
        status, said = command(daemon, "set scheduler.threads=64")
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, limits)
        assert status == 1 and "cannot apply the change: Too many open files; it stays unchanged" in said
    assert daemon.image(SMALL)
    assert command(daemon, "set scheduler.threads=64")[0] == 0
    assert daemon.image(SMALL)


def test_log_level_changes(site):
    assert command(site.daemon, "set log.level error")[0] == 0
    assert command(site.daemon, "policy srpt")[0] == 0
    assert command(site.daemon, "set log.level notice")[0] == 0
    last = "active: policy srpt, log.level = notice\n"
    assert site.daemon.says(last), site.daemon.log
    assert "set log.level error" in site.daemon.log and "active:" not in site.daemon.log.replace(last, "")


# ---- ctl ----

def test_ctl(site):
    daemon = site.daemon
    done = ctl(daemon, "policy", "mg1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "active: policy mg1\n", "")
    assert site.policy() == "mg1"
    assert ctl(daemon, "policy").stdout == "mg1\n"
    assert ctl(daemon, "set", "scheduler.threads", "3").stdout == "active: policy mg1, scheduler.threads = 3\n"
    assert ctl(daemon, "set", "stage.blur.discipline=lcfs").returncode == 0
    done = ctl(daemon, "status")
    assert done.returncode == 0 and f"process {daemon.pid}\n" in done.stdout
    assert "active: policy mg1, scheduler.threads = 3, stage.blur.discipline = lcfs\n" in done.stdout
    done = ctl(daemon, "reload")
    assert (done.returncode, done.stdout) == (0, f"active: policy {FIRST}\n")


@pytest.mark.parametrize("words, status, said", [
    (["policy", "best"], 1, "expected one of drain, cohort"), (["set", "scheduler.threads", "0"], 1, "auto or a whole number from 1"),
    (["set", "limits.memory_budget", "64M"], 1, "at most half of limits.memory_budget"),
    (["set", "limits.memory_budget", "2G"], 1, "limits.memory_budget needs a restart"), (["set", "stage.accept_read.threads", "5"], 1, "needs a restart"),
    (["set", "stage.blur.kind", "exclusive"], 1, "needs a restart"), (["set", "scheduler.polixy", "mg1"], 1, "did you mean policy"),
    (["set", "nonsense"], 1, "SECTION.KEY=VALUE"), (["set"], 2, "set SECTION.KEY VALUE"), (["reload", "now"], 2, "expected reload"),
    (["polcy"], 2, "did you mean policy"), ([""], 2, "unknown command"), ([], 2, "expected a command"),
    (["policy", "x" * 2000], 2, "1024"), (["policy", "mg1\npolicy srpt"], 2, "one line"), (["policy", "\x1b[2J\xff"], 1, "expected one of"),
])
def test_ctl_refused(site, words, status, said):
    before = site.policy()
    done = ctl(site.daemon, *words)
    assert done.returncode == status and not done.stdout, done
    assert done.stderr.startswith("darkroomd") and said.lower() in done.stderr.lower()
    assert site.policy() == before


def test_ctl_reload_of_a_wrong_file(site):
    site.write("best")
    done = ctl(site.daemon, "reload")
    assert done.returncode == 1 and not done.stdout
    assert f"{site.path}:" in done.stderr and "expected one of" in done.stderr and "it stays unchanged" in done.stderr
    done = run("-c", site.path, "ctl", "status")
    assert done.returncode == 78 and f"{site.path}:" in done.stderr


def test_ctl_without_a_daemon(tmp_path):
    done = run("-o", f"server.root={tmp_path}", "ctl", "status")
    assert done.returncode == 1 and done.stderr == f"darkroomd ctl: {tmp_path}/control.sock: no daemon listens there\n"
    done = run("-o", "server.control=", "ctl", "status")
    assert done.returncode == 1 and "server.control is empty" in done.stderr
    done = run("-o", f"server.root=/{'long/' * 40}", "ctl", "status")
    assert done.returncode == 1 and "expected a socket's path of at most 107 bytes" in done.stderr


def test_ctl_while_draining(start, tmp_path):
    """An upload keeps it alive; commands are carried out until the end, and another signal still ends it."""
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
    assert stat.S_ISSOCK(mode.st_mode) and stat.S_IMODE(mode.st_mode) == 0o600 and mode.st_uid == os.geteuid()
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


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_socket_refuses_strangers(start, tmp_path):
    """By the path's mode, and, where that has been opened, by who they are."""
    with tempfile.TemporaryDirectory() as directory:  # pytest's own are closed to strangers
        os.chmod(directory, 0o755)
        refuse_strangers(Site(start, tmp_path, f"server.control={directory}/socket"), pathlib.Path(directory, "socket"))


def refuse_strangers(site, path):
    def stranger():
        done = subprocess.run([sys.executable, "-c", STRANGER, path, OTHER], user=65534, group=65534, extra_groups=[],
                              capture_output=True, text=True, timeout=20)
        return done.stdout
    assert stranger().startswith("PermissionError")
    path.chmod(0o666)
    assert "only root and the daemon's own user" in stranger()
    assert site.daemon.says("<4>control socket: rejected uid 65534: only root") and site.policy() == FIRST


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


def test_what_is_no_socket_is_left_alone(start, tmp_path):
    path = tmp_path / "file"
    path.write_text("precious")
    daemon = Daemon(tmp_path / "store", f"server.control={path}", wait=False)
    assert daemon.wait_exit() == 1 and "is not a socket" in daemon.log
    (tmp_path / "store").mkdir(exist_ok=True)
    (tmp_path / "store" / "control.sock").write_text("precious")
    daemon = start(store=tmp_path / "store")
    assert re.search(r"<4>control socket \S+: cannot listen: ", daemon.log) and daemon.upload(SMALL).status == 201
    daemon.stop()
    assert path.read_text() == (tmp_path / "store" / "control.sock").read_text() == "precious"


def test_socket_of_its_own_successor_is_left_alone(start, tmp_path):
    """Whoever has taken the path over keeps it."""
    daemon = start()
    path = socket_of(daemon)
    path.unlink()
    path.write_text("another's")
    daemon.stop()
    assert path.read_text() == "another's"


def test_no_socket(start):
    daemon = start("server.control=")
    assert not socket_of(daemon).exists() and daemon.upload(SMALL).status == 201
    daemon.signal(signal.SIGHUP)
    assert daemon.says("active: policy")


def test_stuck_clients_hinder_nobody(site):
    """Clients that send nothing, half a line, far too much, or do not wait for their answer."""
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
