"""What one hostile client can do to an honest one: each attack of a list, against the shipped
configuration, while the honest client uploads small pictures. Prints a table, and writes one JSON
line per attack. Runs by itself:

    /usr/bin/python3 scripts/experiments/attacks.py --seconds 60 --out build/attacks

Honest uploads must all succeed, with a p90 below twice that without an attack plus the time of one
large picture. Both clients come from addresses of this machine, for which the daemon has no limit
of connections, because they may be a proxy: so the attacks are those through a proxy. The attacker
gets only the cores that others leave idle (SCHED_IDLE), and the honest client runs before all other
threads (SCHED_FIFO), if that is permitted, because they would be on other machines."""

import argparse
import contextlib
import http.client
import json
import multiprocessing
import os
import pathlib
import resource
import selectors
import socket
import sys
import threading
import time
import urllib.parse

import machine
import run
import worktree
from fairness import LARGE_SIZE, SMALL, large_file, large_picture, percentile_ms

sys.path.append(str(machine.ROOT / "tests" / "http"))

import jpegfile  # noqa: E402
from slow_disk import SlowDisk  # noqa: E402

HOSTILE, HONEST = "127.0.0.2", "127.0.0.3"
HOSTILE_POLICY = os.SCHED_IDLE
CRLF = b"\r\n"


def post(length, kind="image/jpeg"):
    return (f"POST /images HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
            f"Content-Length: {length}\r\n\r\n").encode()


def form(*parts):
    """Returns a request with a form of these files."""
    body = b"".join(b"--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f.jpg\"\r\n"
                    b"Content-Type: image/jpeg\r\n\r\n" + part + CRLF for part in parts) + b"--x--\r\n"
    return post(len(body), "multipart/form-data; boundary=x") + body


# ---- attacks ----
# Each is (connections, what each sends at once, bytes that it sends then in each second, whether it
# reads answers and sends again). A connection that ends is opened again.

def announced():
    """Bodies of 256 MB are announced, and one byte of each comes."""
    return 16, post(256 << 20) + b"\xff", 0, False


def trickled():
    """Bodies of 1 MB come with 10 bytes in a second."""
    return 64, post(1 << 20) + b"\xff\xd8", 10, False


def silent():
    """As many connections as limits.connections send nothing."""
    return 1024, b"", 0, False


def headers():
    """Headers never end."""
    return 1024, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ", 1, False


def scans():
    """Files of 4 KB whose scans claim to change 64 megapixels a hundred times."""
    bomb = jpegfile.scan_bomb(8000, 8000, [(1, 0)] * 99)
    return 16, post(len(bomb)) + bomb, 0, True


def complete_scans():
    """The same with complete DC scans, so that no pixel is missing."""
    bomb = jpegfile.scan_bomb(8000, 8000, [(0, 0)] * 99, dc=True)
    return 16, post(len(bomb)) + bomb, 0, True


def form_of_scans():
    """Forms of 64 such files."""
    return 16, form(*[jpegfile.scan_bomb(8000, 8000, [(1, 0)] * 99)] * 64), 0, True


def form_of_complete_scans():
    """Forms of 64 files of 126 KB with eight scans, which are complete and are decoded: 19 s of CPU
    time."""
    steps = [(0, 6), *((low + 1, low) for low in range(5, -1, -1))]
    return 4, form(*[jpegfile.scan_bomb(8000, 8000, steps, dc=True)] * 64), 0, True


def most_scans():
    """The largest progressive files with as many scans as are allowed, which are decoded."""
    bomb = jpegfile.many_scans(30, 2000, 2000)
    return 16, post(len(bomb)) + bomb, 0, True


def boundaries():
    """Forms of 60 MB that nearly are boundaries."""
    return 4, form(b"\r\n--" * (15 << 20)), 0, True


def bad_parts():
    """Forms of 64 bad parts, whose answers are not read."""
    return 64, form(*[b"no picture"] * 64) * 50, 0, False


def unread():
    """Requests for a page in a pipeline, whose answers are not read."""
    return 64, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2000, 0, False


def large():
    """Large pictures, as fast as they are taken."""
    data = large_picture()
    return 30, post(len(data)) + data, 0, True


def cold_files():
    """GETs of a stored picture, while each read of a file takes 20 ms as on a slow disk."""
    return 32, b"GET VARIANT HTTP/1.1\r\nHost: localhost\r\n\r\n", 0, True


ATTACKS = (announced, trickled, silent, headers, scans, complete_scans, form_of_scans,
           form_of_complete_scans, most_scans, boundaries, bad_parts, unread, large, cold_files)


class Hostile:
    """One connection of an attack."""

    def __init__(self, selector, address, data, rate, reads):
        self.selector, self.address, self.data = selector, address, data
        self.rate, self.reads, self.socket = rate, reads, None
        self.sent = self.opened = self.answers = 0

    def open(self):
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.bind((HOSTILE, 0))
        with contextlib.suppress(BlockingIOError):
            self.socket.connect(self.address)
        self.sent, self.opened = 0, self.opened + 1
        self.selector.register(self.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, self)

    def close(self):
        self.selector.unregister(self.socket)
        self.socket.close()
        self.socket = None

    def on_event(self, events):
        try:
            if events & selectors.EVENT_WRITE and self.sent < len(self.data):
                self.sent += self.socket.send(self.data[self.sent:self.sent + (1 << 18)])
            if self.sent >= len(self.data) or events & selectors.EVENT_READ:
                self.selector.modify(self.socket, selectors.EVENT_READ, self)
            if events & selectors.EVENT_READ and (self.reads or not self.data):
                self.read()
        except OSError:
            self.close()

    def read(self):
        got = self.socket.recv(1 << 16)
        if not got:
            raise OSError
        self.answers += got.count(b"HTTP/1.1 ")
        if self.sent >= len(self.data) and self.data and b"HTTP/1.1 " in got:
            self.sent = 0
            self.selector.modify(self.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, self)

    def trickle(self):
        if self.rate and self.socket and self.sent >= len(self.data):
            try:
                self.socket.send(b"x" * self.rate)
            except OSError:
                self.close()


def attack(name, address, variant, end, pipe):
    """Runs an attack until the end. variant: the path of a stored file. Sends how often it connected,
    and the answers that it read."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, HOSTILE_POLICY, os.sched_param(0))
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    count, data, *words = next(found for found in ATTACKS if found.__name__ == name)()
    data = data.replace(b"VARIANT", variant.encode()) if name == "cold_files" else data
    selector, tick = selectors.DefaultSelector(), time.monotonic()
    clients = [Hostile(selector, address, data, *words) for _ in range(count)]
    while time.monotonic() < end:
        for c in clients:
            if not c.socket:
                with contextlib.suppress(OSError):
                    c.open()
        for key, events in selector.select(0.1):
            if key.data.socket:
                key.data.on_event(events)
        if time.monotonic() > tick + 1:
            tick += 1
            for c in clients:
                c.trickle()
    pipe.send((sum(c.opened for c in clients), sum(c.answers for c in clients)))


# ---- the honest client ----

class Honest:
    """Uploads over one connection, and opens it again if the daemon has ended it."""

    def __init__(self, address):
        self.address, self.connection, self.failures = address, None, []
        self.body = b""  # of the last answer

    def request(self, method, target, body=None, headers=None):
        """Returns the seconds until the answer, also of one that failed."""
        started = time.perf_counter()
        try:
            if not self.connection:
                self.connection = http.client.HTTPConnection(*self.address, timeout=60,
                                                             source_address=(HONEST, 0))
            self.connection.request(method, target, body, headers or {})
            answer = self.connection.getresponse()
            self.body = answer.read()
            if answer.status not in (200, 201):
                self.failures.append(f"{method}: {answer.status}")
        except (OSError, http.client.HTTPException) as error:
            self.failures.append(f"{method}: {error!r}")
            self.connection = None
        return time.perf_counter() - started

    def upload(self, data):
        return self.request("POST", "/images", data, {"Content-Type": "image/jpeg"})

    def uploads(self, end, pause=0.05):
        data, times = SMALL.read_bytes(), []
        while time.monotonic() < end:
            times.append(self.upload(data))
            time.sleep(pause)
        return times


def measure(config, work, name, seconds):
    """Returns the figures of an attack on a fresh daemon."""
    options = ["overload.controller=backlog", "server.admin_listen=no",
               f"server.drain_timeout={run.LONG}"]
    disk = SlowDisk(work.parent / "delay")
    if name == "cold_files":
        disk.delay_reads(20)
    with run.Daemon(config, work, options, environ=disk.environ) as daemon:
        parts = urllib.parse.urlsplit(daemon.url)
        address = parts.hostname, parts.port
        honest = Honest(address)
        whole = large_picture()
        honest.upload(whole)
        large_s = sorted(honest.upload(whole) for _ in range(5))[2]
        variant = json.loads(honest.body)["images"][0]["variants"]["medium"]["url"]
        alone = honest.uploads(time.monotonic() + min(seconds, 10))
        end = time.monotonic() + seconds
        here, there = multiprocessing.Pipe()
        hostile = multiprocessing.Process(target=attack, args=(name, address, variant, end, there))
        hostile.start()
        time.sleep(0.5)
        probes, watcher = [], Honest(address)

        def watch():
            while time.monotonic() < end:
                probes.append(watcher.request("GET", "/healthz"))
                time.sleep(0.1)

        thread = threading.Thread(target=watch)
        thread.start()
        attacked = honest.uploads(end)
        thread.join()
        opened, answers = here.recv()
        hostile.join()
        resident = int(next(line for line in pathlib.Path(f"/proc/{daemon.process.pid}/status")
                            .read_text().splitlines() if line.startswith("VmHWM")).split()[1]) >> 10
    return {"kind": "attack", "name": name, "seconds": seconds, "cores": machine.cores(),
            "uploads": len(attacked), "failures": honest.failures + watcher.failures,
            "alone_p90_ms": percentile_ms(alone, 0.9), "large_ms": 1000 * large_s,
            "attacked_p50_ms": percentile_ms(attacked, 0.5),
            "attacked_p90_ms": percentile_ms(attacked, 0.9),
            "attacked_max_ms": 1000 * max(attacked), "healthz_p99_ms": percentile_ms(probes, 0.99),
            "allowed_p90_ms": 2 * percentile_ms(alone, 0.9) + 1000 * large_s,
            "resident_mb": resident, "hostile_connections": opened, "hostile_answers": answers}


HEAD = ("attack", "uploads", "failed", "p90 alone ms", "p50 attacked", "p90", "highest",
        "allowed p90", "/healthz p99", "memory MB", "its connections", "its answers")


def row(line):
    times = ("alone_p90", "attacked_p50", "attacked_p90", "attacked_max", "allowed_p90",
             "healthz_p99")
    return (line["name"], line["uploads"], len(line["failures"]),
            *(f"{line[name + '_ms']:.1f}" for name in times), line["resident_mb"],
            line["hostile_connections"], line["hostile_answers"])


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    add("--seconds", type=float, default=60, help="duration of each attack (60)")
    add("--attacks", default=",".join(found.__name__ for found in ATTACKS),
        help="names, separated by commas (all)")
    add("--config", type=pathlib.Path, default=machine.ROOT / "conf" / "darkroomd.ini")
    add("--work", type=pathlib.Path, help="directory for stores (in --out)")
    add("--out", type=pathlib.Path, default=machine.ROOT / "build" / "attacks")
    options = parser.parse_args(arguments)
    unknown = set(options.attacks.split(",")) - {found.__name__ for found in ATTACKS}
    if unknown:
        parser.error(f"no attack {', '.join(unknown)}")
    return options


def main():
    options = parse(sys.argv[1:])
    work = (options.work or options.out).resolve() / "work"
    work.mkdir(parents=True, exist_ok=True)
    bench = run.Bench(large_file(options.out), work)
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    print(f"{machine.cores()} cores; a large picture has {LARGE_SIZE[0]}x{LARGE_SIZE[1]} pixels\n")
    print("| " + " | ".join(HEAD) + " |\n|---|" + "---:|" * (len(HEAD) - 1), flush=True)
    is_safe = True
    with worktree.results(options.out / "raw.jsonl") as raw:
        for name in options.attacks.split(","):
            line = measure(options.config, work, name, options.seconds)
            raw.write(json.dumps({"time": time.time(), **line}) + "\n")
            raw.flush()
            print("| " + " | ".join(map(str, row(line))) + " |", flush=True)
            is_safe &= not line["failures"] and line["attacked_p90_ms"] <= line["allowed_p90_ms"]
            bench.sweep(is_over=True)
    return 0 if is_safe else 1


if __name__ == "__main__":
    sys.exit(main())
