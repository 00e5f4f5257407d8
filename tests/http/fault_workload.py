"""A small workload for a daemon whose calls fail, and conditions that hold with any fault."""

import contextlib
import itertools
import os
import pathlib
import re
import socket

import pictures
from client import Closed, chunked, form
from darkroom import LEAST_THREADS, Daemon, eventually
from store_files import directory_of

SOURCES = [pictures.photo_jpeg(96, 64, 1), pictures.photo_jpeg(64, 96, 2, progressive=True)]
SETTINGS = ("server.durability=power", "server.keep_originals=yes", "limits.body_timeout=2s")
GONE = (Closed, ConnectionError, BrokenPipeError)
JPEG = ("Content-Type", "image/jpeg")


class Wrong(Exception):
    """A violation of a condition that must hold with any fault."""


def control(daemon, line):
    """Sends a line to the control socket. Returns the answer, or an empty text without a socket."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(10)
        try:
            s.connect(str(daemon.store / "control.sock"))
            s.sendall(line.encode() + b"\n")
            return b"".join(iter(lambda: s.recv(1 << 16), b"")).decode()
        except ConnectionError:
            return ""


class Site:
    """A daemon under faults, and the expected contents of its store."""

    def __init__(self, store, environ):
        self.daemon = Daemon(store, *SETTINGS, environ=environ)
        self.c = self.daemon.client()
        memory = self.c.request("GET", "/stats").json()["memory"]
        self.used_bytes = memory["pool_used_bytes"]  # of this connection, before all others
        self.references = {}  # source -> {variant: file}
        self.acknowledged, self.removed = [], []  # (id, source); id
        for source in SOURCES:
            image = self.daemon.image(source)
            self.references[source] = {v: self.daemon.fetch(image, v) for v in pictures.VARIANTS}
            self.remove(image["id"])
        self.kept = self.daemon.image(SOURCES[0])["id"]
        self.kept_tag = self.daemon.get(f"/images/{self.kept}/thumb.jpg")["etag"]
        self.turn = itertools.count()
        self.outcomes = {}

    # ---- the workload: a request may fail, but its answer must be true

    def request(self, client, method, path, *args, allowed=(), **options):
        """Returns an allowed answer. Returns None if the connection broke, or the answer reports a
        failure."""
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
                raise Wrong("GET: wrong file")
            self.request(client, "GET", f"{url}/thumb.jpg",
                         headers=[("If-None-Match", self.kept_tag)], allowed=(304,))
            self.request(client, "GET", url, allowed=(200,))
            self.request(client, "HEAD", f"{url}/blurred.jpg", allowed=(200,))
            self.request(client, "GET", "/stats", allowed=(200,))

    def write(self, client):
        self.note(self.request(client, "POST", "/images", SOURCES[0], headers=[JPEG],
                               allowed=(201,)), SOURCES[:1])
        parts = [("a", "a.jpg", "image/jpeg", SOURCES[0]),
                 ("b", "b.txt", "text/plain", b"no picture"),
                 ("c", "c.jpg", "image/jpeg", SOURCES[1])]
        content_type, body = form(parts)
        self.note(self.request(client, "POST", "/images", body,
                               headers=[("Content-Type", content_type)], allowed=(201,)), SOURCES)

    def write_early(self, client):
        self.note(self.request(client, "POST", "/images", chunked(SOURCES[1]), allowed=(202,),
                               headers=[JPEG, ("Prefer", "respond-async"),
                                        ("Transfer-Encoding", "chunked")]), SOURCES[1:])

    def note(self, answer, sources):
        """Remembers acknowledged images. Their sizes identify the source."""
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
        """Runs the whole workload once, which takes about 20 ms."""
        self.connected(self.read)
        self.connected(self.write)
        self.connected(self.write_early)
        self.connected(self.abandon)
        for line in (f"set scheduler.threads {LEAST_THREADS + next(self.turn) % 2}", "reload"):
            said = control(self.daemon, line)
            if said and not said.startswith(("0\n", "1\n")):
                raise Wrong(f"ctl: {said}")

    # ---- conditions afterwards

    def check_image(self, ident, source):
        for variant, file in self.references[source].items():
            answer = self.c.request("GET", f"/images/{ident}/{variant}.jpg")
            if answer.status == 503 and eventually(
                    lambda: self.c.request("GET", f"/images/{ident}").status == 200, 20):
                answer = self.c.request("GET", f"/images/{ident}/{variant}.jpg")
            if answer.status != 200 or answer.body != file:
                raise Wrong(f"acknowledged image {ident}, {variant}: {answer}")

    def check_unacknowledged(self, ident):
        """Checks an image whose answer was lost: if it is stored, it must be complete."""
        directory = directory_of(self.daemon.store, ident)
        found = {p.name: p.read_bytes() for p in directory.iterdir()}
        expected = {f"{v}.jpg": f
                    for v, f in self.references.get(found.get("original.jpg"), {}).items()}
        names = {"image.json", "original.jpg", *expected}
        if not expected or found.keys() != names or expected.items() - found.items():
            raise Wrong(f"image {ident} is incomplete: {found.keys()}")

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
            raise Wrong("the daemon has ended")
        self.daemon.assert_no_alarm()
        try:
            alive = self.c.is_open()
        except TimeoutError:
            raise Wrong("an open connection is no longer served") from None
        if not alive:
            self.c.close()
            self.c = self.daemon.client()
        if not eventually(self.is_calm, 30):
            raise Wrong(f"not at rest: {self.calm}, {self.used_bytes} bytes used before")
        for ident, source in self.acknowledged:
            self.check_image(ident, source)
        for ident in set(self.daemon.stored()) - set(self.removed):
            if ident not in (self.kept, *(i for i, _ in self.acknowledged)):
                self.check_unacknowledged(ident)
            if ident != self.kept:
                self.remove(ident)
        self.acknowledged.clear()
        if back := set(self.removed) & set(self.daemon.stored()):
            raise Wrong(f"removed, but stored: {back}")
        self.removed.clear()
        if (left := self.daemon.leftovers()) and not eventually(self.is_tidy, 20, 0.3):
            raise Wrong(f"left behind: {left}")
        if any((self.daemon.store / ".quarantine").iterdir()):
            raise Wrong("an acknowledged image is in the quarantine")

    def is_tidy(self):
        """Returns whether nothing is left. A failed removal is retried with the next one, after a
        second."""
        self.remove(self.daemon.image(SOURCES[0])["id"])
        return not self.daemon.leftovers()

    def descriptors(self):
        directory = pathlib.Path(f"/proc/{self.daemon.pid}/fd")
        names = []
        for path in directory.iterdir():
            with contextlib.suppress(FileNotFoundError):  # it was closed meanwhile
                names.append(re.sub(r"\d+", "N", os.readlink(path)))
        return sorted(names)

    def rest(self):
        """Runs the workload without faults. Everything must succeed."""
        before = dict(self.outcomes)
        self.work()
        self.check()
        failed = {k: n - before.get(k, 0) for k, n in self.outcomes.items()
                  if k in ("closed", 500, 503, 507)}
        if any(failed.values()):
            raise Wrong(f"without a fault: {failed}")
