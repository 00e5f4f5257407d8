"""Runs a daemon for a long time under load and faults. scripts/soak has the description."""

import argparse
import collections
import contextlib
import itertools
import json
import os
import pathlib
import random
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "http"), str(ROOT / "tests" / "soak")]

import pictures  # noqa: E402
from clients import JPEG, SOURCES, From, Shared, start_all  # noqa: E402
from control import command  # noqa: E402
from darkroom import BINARY, CONFIG, Daemon, eventually, run  # noqa: E402
from store_files import check_stored, files_of  # noqa: E402

DISK_BYTES = 512 << 20
SLOW_DISK = BINARY.parent / "plain" / "tests" / "tools" / "slow_disk.so"
MEMORY_DRIFT_BYTES = 48 << 20  # beyond a quarter: free buffers, whose sizes vary
LATENCY_DRIFT = 2.0
PROBES = 40


def check_whole(store, ident):
    """Checks an image that no response may have reported: it has all files, of the right sizes."""
    files = files_of(store, ident)
    variants = json.loads(files["image.json"])["variants"]
    assert files.keys() == {"image.json", "original.jpg",
                            *(f"{name}.jpg" for name in pictures.VARIANTS)}, ident
    for name, variant in variants.items():
        data = files[f"{name}.jpg"]
        assert len(data) == variant["bytes"], (ident, name)
        assert pictures.size(data) == (variant["width"], variant["height"]), (ident, name)


def policies():
    names = re.search(r"Policies: *(.*)", run("--help").stdout)[1].split(", ")
    # With few threads, its slow clients would keep out the others.
    return [name for name in names if name != "thread-per-connection"]


class Soak:
    def __init__(self, directory, store, can_fill, seed):
        self.directory, self.store, self.can_fill = directory, store, can_fill
        self.rng = random.Random(seed)
        self.shared = Shared()
        self.policies = policies()
        self.config = directory / "soak.ini"
        self.ballast = store.parent / "ballast"
        self.delay = directory / "delay"
        self.delay.write_bytes(struct.pack("I", 0))
        self.generation = itertools.count(60)
        self.made = {}
        self.write_config()
        self.start()

    # ---- the daemon ----

    def write_config(self):
        """Writes the configuration, with another quality of a variant each time."""
        quality = 60 + next(self.generation) % 35
        text = CONFIG.read_text()
        assert "quality = 75" in text
        self.config.write_text(text.replace("quality = 75", f"quality = {quality}"))

    def start(self):
        settings = ["log.level=notice", "log.access=no", "limits.free_bytes=1M"]
        environ = {"DARKROOM_SLOW_DISK": str(self.delay), "LD_PRELOAD": str(SLOW_DISK)}
        self.daemon = Daemon(self.store, *settings, config=self.config, environ=environ)
        self.shared.daemon = self.daemon

    def check_log(self):
        self.daemon.assert_no_alarm()
        for line in self.daemon.lines:
            assert "stuck" not in line and "aborting" not in line, line

    # ---- faults ----

    def reload(self):
        self.write_config()
        status, said = command(self.daemon, "reload")
        assert status == 0, said

    def switch(self):
        status, said = command(self.daemon, f"policy {self.rng.choice(self.policies)}")
        assert status == 0, said

    def kill(self):
        self.shared.disturb(30)
        self.shared.daemon = None
        self.daemon.kill()
        self.check_log()
        self.start()
        self.shared.disturbed_until = time.monotonic() + 2

    def full_disk(self):
        """Fills the file system for a second."""
        self.shared.disturb(30)
        size = os.statvfs(self.store).f_bavail * os.statvfs(self.store).f_frsize
        with open(self.ballast, "wb") as file, contextlib.suppress(OSError):
            os.posix_fallocate(file.fileno(), 0, max(size - (1 << 20), 1))
        time.sleep(1)
        self.ballast.unlink()
        self.shared.disturbed_until = time.monotonic() + 2

    def slow_disk(self):
        """Delays each operation on files by 10 ms, for a second."""
        with open(self.delay, "r+b") as file:
            file.write(struct.pack("I", 10000))
            file.flush()
            time.sleep(1)
            file.seek(0)
            file.write(struct.pack("I", 0))

    def make_fault(self, may_kill):
        kinds = [self.reload, self.switch, self.slow_disk]
        if may_kill:
            kinds.append(self.kill)
        if self.can_fill:
            kinds.append(self.full_disk)
        kind = self.rng.choice(kinds)
        kind()
        self.made[kind.__name__] = self.made.get(kind.__name__, 0) + 1

    # ---- measurements ----

    def measure(self):
        """Pauses the clients. Returns the daemon's memory, its descriptors, and the median time of
        an upload."""
        shared = self.shared
        shared.paused.set()
        assert eventually(lambda: shared.at_work == 0, 120), "clients do not end"

        def stats():
            said = self.daemon.get("/stats").json()["images"]
            return said["in_flight"]
        assert eventually(lambda: stats() == 0, 60), "images stay in flight"
        times = []
        with From(self.daemon, "127.0.0.2") as c:
            for _ in range(PROBES):
                began = time.monotonic()
                answer = c.request("POST", "/images", SOURCES[0], [JPEG])
                assert answer.status == 201, answer
                times.append(time.monotonic() - began)
                shared.add(answer.json()["images"][0], 0)
        # Connections that clients have aborted may end some seconds later on a busy machine.
        least = min((self.descriptors() for _ in range(100) if not time.sleep(0.1)),
                    key=lambda kinds: kinds.total())
        result = self.daemon.resident_bytes(), least, statistics.median(times)
        shared.paused.clear()
        return result

    def descriptors(self):
        """Returns how many descriptors the daemon has, by what they are, without one for each
        thread: a policy that needs more workers starts them once, and each has an eventfd."""
        directory, kinds = pathlib.Path(f"/proc/{self.daemon.pid}"), collections.Counter()
        for name in os.listdir(directory / "fd"):
            with contextlib.suppress(FileNotFoundError):  # it was closed meanwhile
                kinds[re.sub(r"\[\d+\]", "", os.readlink(directory / "fd" / name))] += 1
        kinds["anon_inode:[eventfd]"] -= len(os.listdir(directory / "task"))
        return kinds

    # ---- the end ----

    def check_store(self):
        """Checks each acknowledged image, and that nothing unfinished is left."""
        store, shared = self.store, self.shared
        assert eventually(lambda: not list((store / ".spool").iterdir()), 60), "in the spool"
        assert eventually(lambda: not self.daemon.leftovers(), 60), self.daemon.leftovers()
        assert not list((store / ".quarantine").iterdir()), "an image is in quarantine"
        stored = set(self.daemon.stored())
        assert shared.images and shared.deleted, shared.counts
        lost = shared.images.keys() - stored
        assert not lost, f"{len(lost)} acknowledged images are lost: {sorted(lost)[:5]}"
        back = shared.deleted & stored
        assert not back, f"{len(back)} deleted images are back: {sorted(back)[:5]}"
        for ident, source in shared.images.items():
            check_stored(store, ident, SOURCES[source])
        for ident in stored - shared.images.keys():
            check_whole(store, ident)
        return len(stored)


def show(soak, started, seconds, is_terminal):
    passed = time.monotonic() - started
    counts = {**soak.shared.counts, **soak.made}
    line = f"[{passed:.0f}/{seconds:.0f} s] " + ", ".join(
        f"{count} {name}" for name, count in sorted(counts.items()))
    line += f"; {max(0, seconds - passed):.0f} s left"
    print(f"\r\033[K{line[:200]}" if is_terminal else line, end="" if is_terminal else "\n",
          file=sys.stderr, flush=True)


def soak_for(soak, seconds):
    """Runs the clients and the faults. Returns the measurements of the last third: before and
    after."""
    is_terminal, started = sys.stderr.isatty(), time.monotonic()
    next_line, before = 0.0, None
    while (passed := time.monotonic() - started) < seconds and not soak.shared.failures:
        if passed >= next_line:
            show(soak, started, seconds, is_terminal)
            next_line = passed + (1 if is_terminal else 15)
        soak.shared.over.wait(soak.rng.uniform(0.2, 1.5))
        if before is None and passed > seconds * 2 / 3:
            soak.kill()
            warm_until = time.monotonic() + min(20, seconds / 10)
            soak.shared.over.wait(warm_until - time.monotonic())
            before = soak.measure()
        soak.make_fault(may_kill=before is None)
    show(soak, started, seconds, False)
    assert not soak.shared.failures, "\n".join(map(str, soak.shared.failures[:5]))
    return before, soak.measure()


def judge(before, after):
    """Prints the measurements. Returns what is wrong."""
    names = "resident bytes", "descriptors beyond one per thread", "seconds for an upload"
    more = after[1] - before[1]
    before, after = ((memory, kinds.total(), s) for memory, kinds, s in (before, after))
    for name, old, new in zip(names, before, after):
        print(f"{name}: {old:.6g} before, {new:.6g} after")
    wrong = []
    if after[0] > before[0] * 1.25 + MEMORY_DRIFT_BYTES:
        wrong.append("the memory has grown")
    if after[1] > before[1]:
        wrong.append(f"descriptors are lost: {dict(more)}")
    if after[2] > before[2] * LATENCY_DRIFT + 0.01:
        wrong.append("uploads have become slower")
    return wrong


@contextlib.contextmanager
def disk(directory):
    """Mounts a file system in memory. Yields a directory for the store, and whether it may be
    filled."""
    place = directory / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(place)]
    is_own = os.geteuid() == 0 and not subprocess.run(mount, capture_output=True).returncode
    if not is_own:
        print("not root: the disk will not be full", file=sys.stderr)
    try:
        yield place / "store", is_own
    finally:
        if is_own:
            subprocess.run(["umount", "-l", str(place)], check=True)


def main():
    parser = argparse.ArgumentParser(prog="scripts/soak", description=__doc__)
    parser.add_argument("seconds", nargs="?", type=float, default=180)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, disk(pathlib.Path(directory)) as (store, full):
        soak = Soak(pathlib.Path(directory), store, full, options.seed)
        actors = start_all(soak.shared)
        try:
            before, after = soak_for(soak, options.seconds)
            soak.shared.over.set()
            for actor in actors:
                actor.join(120)
                assert not actor.is_alive(), actor
            count = soak.check_store()
            soak.check_log()
            soak.daemon.stop()
        finally:
            soak.shared.over.set()
            if not soak.daemon.stopped:
                soak.daemon.kill()
        wrong = judge(before, after)
        print(f"{count} images in the store; faults: {soak.made}; clients: {soak.shared.counts}")
    if wrong:
        sys.exit("soak: " + "; ".join(wrong))
    print("soak: passed")


main()
