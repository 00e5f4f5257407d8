"""System calls and allocations fail at every call site that a small workload reaches: no crash, no leak, no wrong answer, and
the service goes on. DARKROOM_FAULT_SITES=all: every site with every error that fits, once and for 200 ms, and all sites of the
start and the end; without it a part of them, in turn, that takes some seconds."""

import contextlib
import errno
import itertools
import os
import pathlib
import re
import shutil
import signal
import socket
import tempfile
import time

import pytest

import pictures
from client import Closed, chunked, form
from darkroom import IS_SANITIZED, LEAST_THREADS, POLICY, Daemon, eventually
from faults import ALLOCATORS, ERRORS, Faults, name_of
from test_crash import spool

pytestmark = [
    pytest.mark.skipif(POLICY not in ("", "drain"), reason="the policy does not matter"),
    pytest.mark.skipif(IS_SANITIZED, reason="faults.so cannot be loaded before the sanitizer"),
]

IS_FULL = os.environ.get("DARKROOM_FAULT_SITES") == "all"
SOURCES = [pictures.photo_jpeg(96, 64, 1), pictures.photo_jpeg(64, 96, 2, progressive=True)]
SETTINGS = ("server.durability=power", "server.keep_originals=yes", "limits.body_timeout=2s")
GONE = (Closed, ConnectionError, BrokenPipeError)
WINDOW_S = 0.2
# Allocations that count at the start: hwloc, libseccomp, iniparser and the dynamic linker end the process by themselves.
OURS = re.compile(r"^\S+( libc\S+)* (darkroomd|libevent)")
# iniparser does not look whether it got the memory of its dictionary, neither at the start nor at a reload.
INIPARSER = re.compile(r"^\S+( libc\S+)* libiniparser")
JPEG = ("Content-Type", "image/jpeg")
VARIANT_FILES = {f"{v}.jpg" for v in pictures.VARIANTS}


@pytest.fixture
def directory(tmp_path):
    """In memory if that is possible: flushes of a disk take their time, and others' data with them."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else tmp_path) as path:
        yield pathlib.Path(path)


class Wrong(Exception):
    """What must not be, whatever fails."""


def control(daemon, line):
    """The answer of the control socket; nothing if there is none."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(10)
        try:
            s.connect(str(daemon.store / "control.sock"))
            s.sendall(line.encode() + b"\n")
            return b"".join(iter(lambda: s.recv(1 << 16), b"")).decode()
        except ConnectionError:
            return ""


class Site:
    """A daemon under faults, and what is known to be true of its store."""

    def __init__(self, store, environ):
        self.daemon = Daemon(store, *SETTINGS, environ=environ)
        self.c = self.daemon.client()
        self.used_bytes = self.c.request("GET", "/stats").json()["memory"]["pool_used_bytes"]  # of this connection, before all others
        self.references = {}  # source -> {variant: file}
        self.acknowledged, self.removed = [], []  # (id, source); id
        for source in SOURCES:
            image = self.daemon.image(source)
            self.references[source] = {v: self.daemon.fetch(image, v) for v in pictures.VARIANTS}
            self.remove(image["id"])
        self.kept = self.daemon.image(SOURCES[0])["id"]
        self.turn = itertools.count()
        self.outcomes = {}

    # ---- the workload: any request may fail, but none may be answered wrongly

    def request(self, client, method, path, *args, allowed=(), **options):
        """An answer that is allowed, or None: the connection broke, or it says that something failed."""
        try:
            answer = client.request(method, path, *args, **options)
        except GONE:
            self.count("closed")
            return None
        self.count(answer.status)
        if answer.status in (500, 503, 507):
            return None
        if answer.status not in allowed:
            raise Wrong(f"{method} {path}: {answer}")
        return answer

    def count(self, what):
        self.outcomes[what] = self.outcomes.get(what, 0) + 1

    def connected(self, work, *args):
        try:
            with self.daemon.client(timeout=20) as client:
                work(client, *args)
        except GONE:
            self.count("closed")

    def read(self, client):
        url = f"/images/{self.kept}"
        if answer := self.request(client, "GET", f"{url}/medium.jpg", allowed=(200,)):
            if answer.body != self.references[SOURCES[0]]["medium"]:
                raise Wrong("GET: another file")
            self.request(client, "GET", f"{url}/thumb.jpg", headers=[("If-None-Match", f'"{self.kept}/thumb"')], allowed=(304,))
            self.request(client, "GET", url, allowed=(200,))
            self.request(client, "HEAD", f"{url}/blurred.jpg", allowed=(200,))
            self.request(client, "GET", "/stats", allowed=(200,))

    def write(self, client):
        self.note(self.request(client, "POST", "/images", SOURCES[0], headers=[JPEG], allowed=(201,)), SOURCES[:1])
        parts = [("a", "a.jpg", "image/jpeg", SOURCES[0]), ("b", "b.txt", "text/plain", b"no picture"),
                 ("c", "c.jpg", "image/jpeg", SOURCES[1])]
        content_type, body = form(parts)
        self.note(self.request(client, "POST", "/images", body, headers=[("Content-Type", content_type)], allowed=(201,)), SOURCES)

    def write_early(self, client):
        self.note(self.request(client, "POST", "/images", chunked(SOURCES[1]), allowed=(202,), headers=[
            JPEG, ("Prefer", "respond-async"), ("Transfer-Encoding", "chunked")]), SOURCES[1:])

    def note(self, answer, sources):
        """Remembers what was acknowledged; the variants' sizes tell which is which."""
        for image in answer.json()["images"] if answer else ():
            size = image["width"], image["height"]
            (source,) = (s for s in sources if pictures.size(s) == size)
            self.acknowledged.append((image["id"], source))
        for problem in (answer.json().get("errors", ()) if answer else ()):
            if problem["status"] < 500 and problem.get("filename") != "b.txt":
                raise Wrong(f"POST: {problem}")

    def remove(self, ident):
        answer = self.c.request("DELETE", f"/images/{ident}")
        assert answer.status == 204, answer

    def remove_under_fault(self, client, ident):
        if answer := self.request(client, "DELETE", f"/images/{ident}", allowed=(204, 404)):
            if answer.status == 404:
                raise Wrong(f"DELETE: {answer}")
            self.removed.append(ident)

    def abandon(self, client):
        client.send(client.head("POST", "/images", SOURCES[0], [JPEG]) + SOURCES[0][:100])
        client.reset()

    def work(self):
        """All of it once; about 20 ms."""
        self.connected(self.read)
        self.connected(self.write)
        self.connected(self.write_early)
        self.connected(self.abandon)
        for line in (f"set scheduler.threads {LEAST_THREADS + next(self.turn) % 2}", "reload"):
            said = control(self.daemon, line)
            if said and not said.startswith(("0\n", "1\n")):
                raise Wrong(f"ctl: {said}")

    # ---- what must hold afterwards

    def check_image(self, ident, source):
        for variant, file in self.references[source].items():
            answer = self.c.request("GET", f"/images/{ident}/{variant}.jpg")
            if answer.status == 503 and eventually(lambda: self.c.request("GET", f"/images/{ident}").status == 200, 20):
                answer = self.c.request("GET", f"/images/{ident}/{variant}.jpg")
            if answer.status != 200 or answer.body != file:
                raise Wrong(f"acknowledged image {ident}, {variant}: {answer}")

    def check_unacknowledged(self, ident):
        """Its answer was lost: it may be there, but as a whole."""
        directory = self.daemon.store / ident[-2:] / ident
        found = {p.name: p.read_bytes() for p in directory.iterdir()}
        expected = {f"{v}.jpg": f for v, f in self.references.get(found.get("original.jpg"), {}).items()}
        if not expected or found.keys() != {"image.json", "original.jpg", *expected} or expected.items() - found.items():
            raise Wrong(f"image {ident} is there in part: {found.keys()}")

    def is_calm(self):
        stats = self.c.request("GET", "/stats").json()
        memory, images = stats["memory"], stats["images"]
        spooled = [p.name for p in (self.daemon.store / ".spool").iterdir()]
        self.calm = images["in_flight"], stats["http"]["connections"], memory, spooled
        return images["in_flight"] == 0 and stats["http"]["connections"] == 1 and not spooled \
            and memory["reserved_body_bytes"] == memory["reserved_image_bytes"] == 0 \
            and memory["pool_used_bytes"] == self.used_bytes

    def check(self):
        if not self.daemon.is_alive():
            raise Wrong("the daemon is dead")
        self.daemon.assert_no_alarm()
        try:
            alive = self.c.is_open()
        except TimeoutError:
            raise Wrong("a connection that was there before is not served any more") from None
        if not alive:
            self.c.close()
            self.c = self.daemon.client()
        if not eventually(self.is_calm, 30):
            raise Wrong(f"does not come to rest: {self.calm}, {self.used_bytes} bytes used before")
        for ident, source in self.acknowledged:
            self.check_image(ident, source)
        for ident in set(self.daemon.stored()) - set(self.removed):
            if ident not in (self.kept, *(i for i, _ in self.acknowledged)):
                self.check_unacknowledged(ident)
            if ident != self.kept:
                self.remove(ident)
        self.acknowledged.clear()
        if back := set(self.removed) & set(self.daemon.stored()):
            raise Wrong(f"removed, and there: {back}")
        self.removed.clear()
        if (left := self.daemon.leftovers()) and not eventually(self.is_tidy, 20, 0.3):
            raise Wrong(f"left behind: {left}")
        if any((self.daemon.store / ".quarantine").iterdir()):
            raise Wrong("an acknowledged image was given up")

    def is_tidy(self):
        """What could not be removed is when something else is, a second later."""
        self.remove(self.daemon.image(SOURCES[0])["id"])
        return not self.daemon.leftovers()

    def descriptors(self):
        directory = pathlib.Path(f"/proc/{self.daemon.pid}/fd")
        names = []
        for path in directory.iterdir():
            with contextlib.suppress(FileNotFoundError): # closed just now
                names.append(re.sub(r"\d+", "N", os.readlink(path)))
        return sorted(names)

    def rest(self):
        """Works without faults, and everything must succeed."""
        before = dict(self.outcomes)
        self.work()
        self.check()
        failed = {k: n - before.get(k, 0) for k, n in self.outcomes.items() if k in ("closed", 500, 503, 507)}
        if any(failed.values()):
            raise Wrong(f"without a fault: {failed}")


def trial(site, faults, key, error, window):
    """One fault; how often it happened."""
    doomed = site.daemon.image(SOURCES[0])["id"]
    if window:
        faults.arm(key, error, -1, seconds=WINDOW_S)
    else:
        faults.arm(key, error)
    try:
        site.work()
        site.connected(site.remove_under_fault, doomed)
        while time.monotonic_ns() < faults.control.until_ns and window:
            time.sleep(WINDOW_S / 10)
    finally:
        fired = faults.disarm()
    site.check()
    return fired


def tried(name, function, error, window):
    return f"{name_of(error)}{' for a while' if window else ''} at {name}"


def test_while_it_serves(directory, request):
    faults = Faults(directory / "faults")
    site = Site(directory / "store", faults.environ)
    request.addfinalizer(site.daemon.kill)
    before = {k: calls for k, (_, _, _, calls) in faults.sites().items()}
    for _ in range(6):
        site.rest()
    trial(site, faults, 1, errno.EIO, False)
    sites = {k: s for k, s in faults.sites().items() if s[3] > before.get(k, 0) and not (
        s[1] in ALLOCATORS and INIPARSER.search(s[0]))}
    descriptors, allocations = site.descriptors(), faults.control.allocations
    trials = fired = 0
    failures = []
    end = time.monotonic() + (3600 if IS_FULL else 8)
    plan = [(k, e, w) for k, (_, f, _, _) in sorted(sites.items()) for e in ERRORS[f] for w in (False, True)]
    if not IS_FULL: # of each site something first
        plan.sort(key=lambda t: (t[2], (ERRORS[sites[t[0]][1]].index(t[1]) + t[0]) % len(ERRORS[sites[t[0]][1]]), t[0]))
    for key, error, window in plan:
        if time.monotonic() > end or len(failures) > 20:
            break
        trials += 1
        what = tried(*sites[key][:2], error, window)
        try:
            fired += trial(site, faults, key, error, window) > 0
            if len(site.descriptors()) > len(descriptors):
                eventually(lambda: len(site.descriptors()) <= len(descriptors), 10)
            if len(site.descriptors()) > len(descriptors):
                raise Wrong(f"{site.descriptors()}\nthere were {descriptors}")
        except Exception as failure:  # pylint: disable=broad-except
            failures.append(f"{what}: {type(failure).__name__} {failure}")
            if not site.daemon.is_alive():
                failures.append(site.daemon.log[-2000:])
                break
            descriptors = site.descriptors()
            site.acknowledged.clear()
            for left in (*site.daemon.leftovers(), *(site.daemon.store / ".spool").iterdir()):
                shutil.rmtree(left, ignore_errors=True)
    faults.disarm()
    print(f"{len(sites)} sites, {trials} faults tried, {fired} happened, outcomes {site.outcomes}")
    assert not failures, "\n".join(failures)
    site.rest()
    assert faults.control.allocations < allocations + 300, (allocations, faults.control.allocations)
    site.c.close()
    site.daemon.stop()


ACKNOWLEDGED = "01K6Z0000000000000000000AA"


def prepare(store):
    """What a daemon that was killed leaves: an acknowledged image, a part of another, and part of a removed one."""
    spool(store, ACKNOWLEDGED, SOURCES[1])
    for name in (".incoming/01K6Z0000000000000000000BB", ".trash/01K6Z0000000000000000000CC.1"):
        (store / name).mkdir(parents=True)
        (store / name / "thumb.jpg").write_bytes(b"part")


def left_to_do(store):
    """What the next start has to see to."""
    return [p for name in (".spool", ".incoming", ".trash") for p in (store / name).glob("*")]


def life(store, environ):
    """A whole life of a daemon: start, recovery, an upload, end. (exit status, log, URL)"""
    try:
        daemon = Daemon(store, *SETTINGS, environ=environ, wait=False)
        daemon.ready.wait(3)
        if not daemon.url and daemon.is_alive(): # the line that says so was lost
            daemon.signal(signal.SIGTERM)
        if daemon.url:
            try:
                answer = daemon.upload(SOURCES[0])
                if answer.status == 201:
                    image = answer.json()["images"][0]
                    assert daemon.get(image["variants"]["thumb"]["url"]).status in (200, 500, 503)
                assert answer.status in (201, 500, 503, 507), answer
            except GONE:
                pass
            # With a fault it may stay there for good.
            eventually(lambda: not any((store / ".spool").iterdir()), 1.5 if environ else 60)
            daemon.signal(signal.SIGTERM)
        return daemon.wait_exit(), daemon.log, daemon.url
    finally:
        if daemon.is_alive():
            daemon.kill()


def judge_life(status, log, url):
    """What is wrong with how it went; nothing if it ended well, or said why it could not start."""
    if status < 0:
        return f"ended by {signal.Signals(-status).name}"
    if status and url:
        return f"served, and then exit status {status}"
    if status not in (0, 1, 78):
        return f"exit status {status}"
    if status and not re.search(r"^<3>|: ", log, re.M):
        return f"exit status {status}, and nothing said"
    return None


def judge_store(store):
    """What a last life, without a fault, has not put right."""
    if left_to_do(store):
        status, log, _ = life(store, None)
        if status:
            return f"the next start has exit status {status}: {log[-400:]}"
    directory = store / ACKNOWLEDGED[-2:] / ACKNOWLEDGED
    if left := left_to_do(store):
        return f"left behind: {left}"
    if not directory.is_dir() or {p.name for p in directory.iterdir()} != {"image.json", "original.jpg", *VARIANT_FILES}:
        return "the acknowledged image is not there"
    return None


def test_while_it_starts_and_ends(directory):
    faults = Faults(directory / "faults")
    prepare(directory / "store")
    assert life(directory / "store", faults.environ)[0] == 0 and not judge_store(directory / "store")
    sites = faults.sites()
    plan = [(k, e) for k, (n, f, _, _) in sorted(sites.items()) if f not in ALLOCATORS or OURS.search(n) for e in ERRORS[f]]
    if not IS_FULL:
        plan.sort(key=lambda t: ((ERRORS[sites[t[0]][1]].index(t[1]) + t[0]) % len(ERRORS[sites[t[0]][1]]), t[0]))
    end = time.monotonic() + (3600 if IS_FULL else 4)
    outcomes, failures = {}, []
    for i, (key, error) in enumerate(plan):
        if time.monotonic() > end or len(failures) > 20:
            break
        store = directory / f"store{i}"
        prepare(store)
        faults.arm(key, error)
        try:
            result = life(store, faults.environ)
            faults.disarm()
            wrong = judge_life(*result) or judge_store(store)
            outcomes[result[0]] = outcomes.get(result[0], 0) + 1
        except Exception as failure:  # pylint: disable=broad-except
            wrong, result = f"{type(failure).__name__} {failure}", (None, "", None)
        if wrong:
            failures.append(f"{tried(*sites[key][:2], error, False)}: {wrong}\n{result[1][-400:]}")
        shutil.rmtree(store, ignore_errors=True)
    print(f"{len(sites)} sites, {i + 1} faults tried, exit statuses {outcomes}")
    assert not failures, "\n".join(failures)
