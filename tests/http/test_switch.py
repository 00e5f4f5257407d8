"""Live changes by SIGHUP and by darkroomd ctl, during uploads. DARKROOM_SWITCH_S is the duration of
the long tests in seconds (1.5)."""

import os
import pathlib
import random
import re
import resource
import threading
import time

import pytest

import pictures
from control import FIRST, OTHER, Site, command
from darkroom import IS_SANITIZED, LEAST_THREADS, SETTINGS, eventually, run, slow

JPEG = [("Content-Type", "image/jpeg")]
SMALL = pictures.photo_jpeg(320, 240, 2)
SIZES = [SMALL, pictures.photo_jpeg(1000, 750, 1),
         pictures.photo_jpeg(640, 480, 3, progressive=True)]
POLICIES = re.search(r"Policies: *(.*)", run("--help").stdout)[1].split(", ")
if SETTINGS:  # a layout, which that policy does not have
    POLICIES.remove("thread-per-connection")
SECONDS = float(os.environ.get("DARKROOM_SWITCH_S", "1.5"))
EVERY = 0.1

# The tests use all policies. The first one matters only for its kind of threads.
pytestmark = pytest.mark.also_with("seda", "thread-per-connection")


@pytest.fixture
def site(start, tmp_path):
    return Site(start, tmp_path)


class Load:
    """A closed loop: each connection sends its next upload after the last response. Counts all
    failures. A sanitizer is so slow that more than two uploads for each core would be refused."""

    def __init__(self, daemon, connections=4 if IS_SANITIZED else 16):
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
        except Exception as failure:  # a broken connection, a timeout, a malformed answer
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
        """Checks after the end that no upload failed, and that all acknowledged images are
        stored."""
        assert not self.failures, self.failures[:3]

        def images():
            said = self.daemon.get("/stats").json()["images"]
            return said["stored"], said["failed"], said["in_flight"]
        assert eventually(lambda: images() == (len(self.times), 0, 0)), images()
        assert len(self.daemon.stored()) == len(self.times)
        assert eventually(lambda: not self.daemon.leftovers())
        return sorted(self.times)


# ---- under load ----

def test_switching_policies_by_ctl_fails_no_request(site):
    """The policy changes every 100 ms. No request fails, and no image is lost."""
    daemon, switches, waits = site.daemon, 0, []
    with daemon.client() as watch, Load(daemon) as load:
        assert watch.request("GET", "/healthz").status == 200
        end = time.monotonic() + SECONDS
        while time.monotonic() < end or switches < len(POLICIES):
            policy = POLICIES[switches % len(POLICIES)]
            began = time.monotonic()
            status, said = command(daemon, f"policy {policy}")  # and threads that are late
            assert (status, said.split("\n")[0]) == (0, f"active: policy {policy}")
            waits.append(time.monotonic() - began)
            assert watch.request("GET", "/stats").json()["scheduler"]["policy"] == policy
            switches += 1
            time.sleep(max(0, EVERY - (time.monotonic() - began)))
    command(daemon, "policy cohort")
    times = load.check()
    p50_ms, p99_ms, longest_ms = (1000 * times[i] for i in
                                  (len(times) // 2, len(times) * 99 // 100, -1))
    print(f"\n{switches} switches (the longest took {max(waits) * 1000:.0f} ms), "
          f"{len(times)} uploads, {len(load.failures)} failed, p50 {p50_ms:.0f} ms, "
          f"p99 {p99_ms:.0f} ms, longest {longest_ms:.0f} ms")


def test_switching_policies_by_hangup_fails_no_request(site):
    with Load(site.daemon) as load:
        for policy in POLICIES + ["cohort"]:
            site.write(policy)
            assert f"active: policy {policy}\n" in site.reload()
            time.sleep(EVERY / 2)
    load.check()


def groups(daemon):
    """Returns {name: (policy, threads, stages)}."""
    return {group["name"]: (group["policy"], group["threads"], " ".join(group["stages"]))
            for group in daemon.get("/stats").json()["scheduler"]["stage_groups"]}


@pytest.mark.skipif(bool(SETTINGS), reason="groups need the shared layout")
def test_switching_groups_fails_no_request(site):
    """A group comes by a reload, changes its policy, threads and stages by ctl, and goes again."""
    daemon = site.daemon
    policies = [policy for policy in POLICIES if policy != "thread-per-connection"]
    with Load(daemon) as load:
        site.write(FIRST, ("[variant.medium]", "[group.pixels]\nstages = scale blur\n"
                                               "policy = mg1\nthreads = 1\n[variant.medium]"))
        assert "group.pixels.policy = mg1" in site.reload()
        assert groups(daemon)["pixels"] == ("mg1", 1, "scale blur")
        for i, policy in enumerate(policies):
            for setting in (f"group.pixels.policy {policy}",
                            f"scheduler.policy {policies[i * 3 % len(policies)]}",
                            f"group.pixels.stages {['scale', 'blur jpeg_encode'][i % 2]}",
                            f"group.pixels.threads {1 + i % 3}"):
                status, answer = command(daemon, f"set {setting}")
                assert status == 0, answer
            assert groups(daemon)["pixels"][0] == policy
            time.sleep(EVERY / 2)
        site.write(FIRST)
        assert "group" not in site.reload()
        assert list(groups(daemon)) == ["main"]
    load.check()


def test_switching_live_keys_fails_no_request(site):
    """Regimes, disciplines, threads, thresholds and direct calls change in random order."""
    rng = random.Random(5)
    choices = {
        "scheduler.policy": POLICIES,
        "scheduler.threads": [str(LEAST_THREADS), "2", "3", "6", "auto"],
        "scheduler.service": ["exhaustive", "gated", "n-gated", "time-gated", "cutoff", "auto"],
        "scheduler.discipline": ["fcfs", "lcfs", "srpt", "auto"],
        "stage.disk_write.threads": ["1", "2", "4"],
        "stage.jpeg_decode.threads": ["1", "3"], "experiment.jpeg_encode.threshold_events": ["0", "2"],
        "experiment.scale.pass_through": ["yes", "no"], "experiment.blur.service": ["gated", "auto"],
        "experiment.counters": ["yes", "no"], "experiment.steal": ["yes", "no"],
        "experiment.distribution": ["round-robin", "least-loaded"]}
    with Load(site.daemon) as load:
        end, changes = time.monotonic() + SECONDS, 0
        while time.monotonic() < end or changes < 60:
            key = rng.choice(list(choices))
            status, text = command(site.daemon, f"set {key} {rng.choice(choices[key])}")
            assert status == 0, text
            changes += 1
            time.sleep(0.01)
    assert command(site.daemon, "reload")[0] == 0
    load.check()


# ---- reload ----

def test_reload_changes_the_policy(site):
    for policy in POLICIES:
        site.write(policy)
        assert f"active: policy {policy}\n" in site.reload()
        assert site.policy() == policy
        assert site.daemon.upload(SMALL).status == 201


def test_reload_of_a_bad_file_changes_nothing(site):
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


def test_reload_of_a_bad_variant_changes_nothing(site):
    site.write(OTHER, ("operations = scale 160x160 inside", "operations = turn 90"))
    assert "turn" in site.reload() and site.policy() == FIRST


def test_reload_names_what_needs_a_restart(site):
    site.write("dbr", ("memory_budget = 1G", "memory_budget = 2G"),
               ("sandbox = auto", "sandbox = off"))
    said = site.reload()
    waiting = re.findall(r"<4>(\S+) needs a restart: it stays unchanged", said)
    assert sorted(waiting) == ["limits.memory_budget", "server.sandbox"]
    assert site.policy() == "dbr"


def test_command_line_overrides_a_reload(start, tmp_path):
    site = Site(start, tmp_path, "scheduler.policy=srpt", "scheduler.service=gated")
    site.write("dbr")
    assert "active: policy srpt, scheduler.service = gated\n" in site.reload()
    assert site.policy() == "srpt"


def test_reload_discards_settings_of_ctl(site):
    assert command(site.daemon, "policy dbr")[0] == 0
    assert site.policy() == "dbr"
    site.write("mg1")
    site.reload()
    assert site.policy() == "mg1"


@pytest.mark.shared_layout
def test_failure_to_start_threads_changes_nothing(start):
    """Descriptors are missing for the eventfd or the event loop of a new thread. Nothing changes,
    and a later attempt succeeds."""
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


@pytest.mark.shared_layout
def test_connections_that_must_wait_for_threads_are_announced(start):
    daemon = start("scheduler.threads=2", "limits.connections=64", policy="thread-per-connection")
    assert daemon.says("thread-per-connection: 2 threads for up to 64 connections")
    assert command(daemon, "set scheduler.threads=64")[0] == 0
    assert command(daemon, "set scheduler.threads=3")[0] == 0
    assert daemon.says("thread-per-connection: 3 threads for up to 64 connections")
    assert daemon.log.count("connections: scheduler.threads is less") == 2


def test_log_level_can_be_switched(site):
    assert command(site.daemon, "set log.level error")[0] == 0
    assert command(site.daemon, "policy srpt")[0] == 0
    assert command(site.daemon, "set log.level notice")[0] == 0
    last = "active: policy srpt, log.level = notice\n"
    assert site.daemon.says(last), site.daemon.log
    assert "set log.level error" in site.daemon.log
    assert "active:" not in site.daemon.log.replace(last, "")
