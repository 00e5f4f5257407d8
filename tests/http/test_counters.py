"""Performance counters of a running daemon. /stats has those that this machine offers, for each
stage. The log names the missing ones."""

import contextlib
import ctypes
import os
import pathlib
import re
import resource
import struct

import pytest

import pictures
from darkroom import IS_SANITIZED, eventually, run

PROCESSOR = ["cycles", "instructions", "l1d_read_misses", "l1i_read_misses", "llc_read_misses"]
NAMES = PROCESSOR + ["task_clock_ns", "page_faults", "context_switches"]
ON = "experiment.counters=yes"


def stats(daemon):
    return daemon.get("/stats").json()


def threads(daemon):
    return sum(group["threads"] for group in stats(daemon)["scheduler"]["groups"])


def turn(daemon, value):
    done = run("-o", f"server.root={daemon.store}", "ctl", "set", "experiment.counters", value)
    assert done.returncode == 0, done.stderr


def open_counters(daemon):
    """Returns the number of open counters of the daemon."""
    count = 0
    for fd in pathlib.Path(f"/proc/{daemon.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed in the meantime
            count += "perf_event" in os.readlink(fd)
    return count


@pytest.fixture(scope="module")
def offered():
    """Whether this process may count page faults of user mode. Sandboxes forbid it, and kernels can
    be configured to."""
    number = {"x86_64": 298, "aarch64": 241}.get(os.uname().machine)
    software, page_faults, exclude_kernel_hv, size = 1, 2, 0x60, 64
    attr = struct.pack("=IIQQQQQ16x", software, size, page_faults, 0, 0, 0, exclude_kernel_hv)
    fd = ctypes.CDLL(None).syscall(number, attr, 0, -1, -1, 0) if number else -1
    if fd >= 0:
        os.close(fd)
    return fd >= 0


def test_stages_count_what_the_machine_offers(start, offered):
    daemon = start(ON)
    for seed in range(4):
        daemon.image(pictures.photo_jpeg(1000, 750, seed))
    cpu_ns = daemon.cpu_seconds() * 1e9
    said = stats(daemon)
    counters = said["scheduler"]["counters"]
    available, missing = counters["available"], counters["missing"]
    assert sorted(available + list(missing)) == sorted(NAMES)
    line, = [line for line in daemon.lines if "performance counters: " in line]
    for name, reason in missing.items():
        assert re.search(rf"missing: [^(]*\b{name}\b[^(]*\({re.escape(reason)}\)", line), line
        assert re.search("not offered by this (machine|kernel)|not permitted", reason), reason
    for name in available:
        assert re.search(rf"performance counters: [^;]*\b{name}\b", line), line
    stages = {stage["name"]: stage["counters"] for stage in said["stages"]}
    assert all(set(counts) <= set(available) for counts in stages.values())
    if not offered:
        pytest.skip("this machine offers no counters")
    assert {"page_faults", "task_clock_ns"} <= set(available)
    assert all({"page_faults", "task_clock_ns"} <= set(counts) for counts in stages.values())
    assert counters["threads"] == threads(daemon)
    # The first pictures of new threads use new memory.
    assert stages["jpeg_decode"]["page_faults"] > 10
    # Each moment is counted once, for one stage. Responses to /stats add to the sum.
    busy_ns = sum(counts["task_clock_ns"] for counts in stages.values())
    assert 0.2 * cpu_ns < busy_ns < 1.05 * cpu_ns + 5e6, (busy_ns, cpu_ns)
    assert stages["jpeg_decode"]["task_clock_ns"] > stages["http_parse"]["task_clock_ns"] > 0


def test_counters_can_be_switched_while_it_runs(start):
    daemon = start("server.sandbox=off")
    picture = pictures.photo_jpeg(320, 240, 1)
    daemon.image(picture)
    said = stats(daemon)
    assert "counters" not in said["scheduler"]
    assert not any("counters" in stage for stage in said["stages"])
    assert open_counters(daemon) == 0 and "performance counters" not in daemon.log_until_now()
    for _ in range(2):
        turn(daemon, "yes")
        available = stats(daemon)["scheduler"]["counters"]["available"]
        daemon.image(picture)
        assert eventually(lambda: open_counters(daemon) == threads(daemon) * len(available))
        turn(daemon, "no")
        daemon.image(picture)
        assert eventually(lambda: open_counters(daemon) == 0)
        assert "counters" not in stats(daemon)["scheduler"]
    assert daemon.says(lambda log: log.count("performance counters: ") == 2)


@pytest.mark.skipif(IS_SANITIZED, reason="the sandbox is off: the sanitizer's runtime needs more")
def test_sandbox_forbids_counters_that_were_off_at_the_start(start):
    daemon = start()
    turn(daemon, "yes")
    assert stats(daemon)["scheduler"]["counters"]["available"] == [] and open_counters(daemon) == 0
    assert daemon.says("sandbox forbids it")
    daemon.image(pictures.photo_jpeg(320, 240, 1))


def test_threads_work_without_counters_if_descriptors_are_missing(start, offered):
    if not offered:
        pytest.skip("this machine offers no counters")
    daemon = start("server.sandbox=off")
    picture = pictures.photo_jpeg(320, 240, 1)
    daemon.image(picture)
    limits = resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
    used = max(int(fd.name) for fd in pathlib.Path(f"/proc/{daemon.pid}/fd").iterdir()) + 1
    # Enough for the command and for the first counters, but not for every thread.
    resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (used + 8, limits[1]))
    turn(daemon, "yes")
    resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, limits)
    assert daemon.says("cannot open performance counters: Too many open files")
    daemon.image(picture)
    counters = stats(daemon)["scheduler"]["counters"]
    assert counters["threads"] < threads(daemon)
    assert eventually(lambda: open_counters(daemon)
                      == counters["threads"] * len(counters["available"]))
    turn(daemon, "no")
    turn(daemon, "yes")
    assert eventually(lambda: stats(daemon)["scheduler"]["counters"]["threads"] == threads(daemon))
    daemon.image(picture)
