"""The clients of a soak test: good, bad, slow and aborted ones. Each kind has an address of its
own, so that limits per client are those of different clients."""

import random
import socket
import threading
import time

import pictures
from client import Client, Closed, chunked, form_files

JPEG = ("Content-Type", "image/jpeg")
ASYNC = ("Prefer", "respond-async")
SOURCES = [pictures.photo_jpeg(w, h, s)
           for w, h, s in ((640, 480, 1), (200, 300, 2), (1000, 700, 3), (90, 60, 4))]
SOURCES.append(pictures.photo_jpeg(500, 400, 5, progressive=True))
LIVE_MAX = 300  # images; the good clients delete the others
BROKEN = Closed, OSError, AssertionError


class From(Client):
    """A client with an address of 127.0.0.0/8."""

    def __init__(self, daemon, address, timeout=60, receive_buffer=0):
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(timeout)
        self.socket.bind((address, 0))
        self.socket.connect((daemon.host, daemon.port))
        self.host = f"{daemon.host}:{daemon.port}"
        self.buffer = bytearray()
        self.interim = []


class Shared:
    """What all clients of a test know. `lock` guards the images."""

    def __init__(self):
        self.lock = threading.Lock()
        self.daemon = None  # None while it restarts
        self.disturbed_until = 0.0  # a fault is being made: requests may fail until then
        self.images = {}  # acknowledged and not deleted: {id: index of the source}
        self.deleted = set()
        self.unknown = set()  # deleted, perhaps
        self.counts = {}
        self.failures = []
        self.over, self.paused = threading.Event(), threading.Event()
        self.at_work = 0

    def count(self, what):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + 1

    def disturb(self, seconds):
        self.disturbed_until = max(self.disturbed_until, time.monotonic() + seconds)

    def is_disturbed(self, since):
        """Returns whether a fault may have met a request that began at this time."""
        return since < self.disturbed_until

    def fail(self, what):
        with self.lock:
            self.failures.append(what)

    def add(self, image, source):
        with self.lock:
            self.images[image["id"]] = source

    def pick(self, rng):
        """Returns (id, index of the source) of an image, or None."""
        with self.lock:
            return rng.choice(list(self.images.items())) if self.images else None

    def take_surplus(self, rng):
        """Removes an image from the list if there are too many. Returns its id, or None."""
        with self.lock:
            if len(self.images) <= LIVE_MAX:
                return None
            ident = rng.choice(list(self.images))
            del self.images[ident]
            self.unknown.add(ident)
            return ident


class Actor(threading.Thread):
    """Repeats act() until the end. Waits while the test is paused or the daemon restarts."""

    def __init__(self, shared, seed):
        super().__init__(daemon=True)
        self.shared, self.rng = shared, random.Random(f"{type(self).__name__} {seed}")
        self.start()

    def run(self):
        shared = self.shared
        while not shared.over.is_set():
            daemon = shared.daemon
            if daemon is None or shared.paused.is_set():
                shared.over.wait(0.02)
                continue
            with shared.lock:
                shared.at_work += 1
            began = time.monotonic()
            try:
                self.act(daemon)
            except BROKEN as failure:
                self.broken(began, failure)
            finally:
                with shared.lock:
                    shared.at_work -= 1

    def broken(self, began, failure):
        """An exchange did not end as a client expects."""


class Good(Actor):
    """Uploads, fetches and deletes. Each request must succeed unless a fault is being made."""

    def act(self, daemon):
        with From(daemon, "127.0.0.2") as c:
            for _ in range(self.rng.randrange(1, 30)):
                if self.shared.paused.is_set() or self.shared.over.is_set():
                    return
                self.exchange(c)

    def broken(self, began, failure):
        if not self.shared.is_disturbed(began) and self.shared.daemon is not None:
            self.shared.fail(f"a good request failed: {failure!r}")

    def exchange(self, c):
        began, kind = time.monotonic(), "fetch"
        if self.rng.randrange(3):
            kind = "delete" if len(self.shared.images) > LIVE_MAX else "upload"
        answer, expected = getattr(self, kind)(c)
        if answer is None or answer.status in expected:
            self.shared.count(kind)
        elif answer.status in (503, 507) and self.shared.is_disturbed(began):
            self.shared.count("refused")
        else:
            self.shared.fail(f"{kind}: {answer}")

    def upload(self, c):
        source = self.rng.randrange(len(SOURCES))
        data, headers = SOURCES[source], [JPEG]
        form = self.rng.randrange(4)
        if form == 0:
            content_type, data = form_files(data)
            headers = [("Content-Type", content_type)]
        elif form == 1:
            headers.append(("Transfer-Encoding", "chunked"))
            data = chunked(data, self.rng.randrange(100, 50000))
        if self.rng.randrange(4) == 0:
            headers.append(ASYNC)
        answer = c.request("POST", "/images", data, headers)
        if answer.status in (201, 202):
            for image in answer.json()["images"]:
                self.shared.add(image, source)
        return answer, (201, 202)

    def fetch(self, c):
        image = self.shared.pick(self.rng)
        if not image:
            return None, ()
        variant = self.rng.choice(list(pictures.VARIANTS))
        answer = c.request("GET", f"/images/{image[0]}/{variant}.jpg")
        with self.shared.lock:
            is_known = image[0] in self.shared.images
        # Another client may have deleted it, or it may wait for its turn after a restart.
        return answer, (200, 503) if is_known else (200, 404, 503)

    def delete(self, c):
        ident = self.shared.take_surplus(self.rng)
        if not ident:
            return None, ()
        answer = c.request("DELETE", f"/images/{ident}")
        if answer.status in (204, 404):
            with self.shared.lock:
                self.shared.unknown.discard(ident)
                self.shared.deleted.add(ident)
        return answer, (204,)


class Bad(Actor):
    """Sends what no client should. Each answer must be an error, or none."""

    def act(self, daemon):
        time.sleep(self.rng.uniform(0, 0.05))
        with From(daemon, "127.0.0.3") as c:
            data = bytearray(self.rng.choice(SOURCES))
            kind = self.rng.randrange(4)
            if kind == 0:  # damaged: most of these are refused, and none may do harm
                for _ in range(self.rng.randrange(1, 20)):
                    data[self.rng.randrange(2, len(data))] = self.rng.randrange(256)
                answer = c.request("POST", "/images", bytes(data), [JPEG])
                if answer.status == 201:
                    for image in answer.json()["images"]:
                        c.request("DELETE", image["url"])
            elif kind == 1:
                c.send(self.rng.randbytes(self.rng.randrange(1, 5000)) + b"\r\n\r\n")
                c.finish_sending()
                assert c.answer().status >= 400
            elif kind == 2:
                answer = c.request("POST", "/images", bytes(data[:len(data) // 2]), [JPEG])
                assert answer.status >= 400
            else:
                answer = c.request("GET", "/images/" + "x" * self.rng.randrange(30000))
                assert answer.status in (404, 414)
            self.shared.count("bad")


class Slow(Actor):
    """Sends or reads slowly, over some seconds."""

    def act(self, daemon):
        if self.rng.randrange(2):
            self.send_slowly(daemon)
        else:
            self.read_slowly(daemon)
        self.shared.count("slow")

    def send_slowly(self, daemon):
        data = self.rng.choice(SOURCES)
        with From(daemon, "127.0.0.4") as c:
            c.send(c.head("POST", "/images", data, [JPEG]))
            step = len(data) // 20 + 1
            for i in range(0, len(data), step):
                if self.shared.over.is_set() or self.shared.paused.is_set():
                    return
                c.send(data[i:i + step])
                time.sleep(self.rng.uniform(0, 0.2))
            answer = c.answer()
            if answer.status == 201:
                for image in answer.json()["images"]:
                    self.shared.add(image, SOURCES.index(data))

    def read_slowly(self, daemon):
        image = self.shared.pick(self.rng)
        if not image:
            return
        with From(daemon, "127.0.0.4", timeout=2, receive_buffer=4096) as c:
            for _ in range(5):
                c.send(c.head("GET", f"/images/{image[0]}/medium.jpg"))
            for _ in range(20):
                if self.shared.over.is_set() or self.shared.paused.is_set():
                    return
                if not c.socket.recv(4096):
                    return
                time.sleep(self.rng.uniform(0, 0.2))


class Aborted(Actor):
    """Ends its connection in the middle of a request or an answer."""

    def act(self, daemon):
        time.sleep(self.rng.uniform(0, 0.05))
        c = From(daemon, "127.0.0.5")
        data = self.rng.choice(SOURCES)
        head = c.head("POST", "/images", data, [JPEG])
        whole = head + data
        c.send(whole[:self.rng.randrange(1, len(whole))])
        if self.rng.randrange(2):
            c.reset()
        else:
            c.close()
        self.shared.count("aborted")


def start_all(shared):
    kinds = [Good] * 6 + [Bad] * 2 + [Slow] * 4 + [Aborted] * 2
    return [kind(shared, i) for i, kind in enumerate(kinds)]
