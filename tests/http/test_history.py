"""Several nodes on one object store, whose clients remember everything. Nodes are killed, stopped for
longer than any time limit, and replaced one by one. The store goes away, and does requests late,
twice, or without an answer. With libfaketime, the clocks of the nodes differ by three minutes.
Afterwards the history must be one that a single store could have (history.py).

DARKROOM_HISTORY=KILLS,PAUSES,OUTAGES is for each of four runs: with the stand-in and with Ceph's
gateway, without and with a spool. DARKROOM_SEED repeats the order of a run. With it, nodes of a
former version are upgraded as well, which are built from the repository's history."""

import collections
import contextlib
import os
import pathlib
import random
import signal
import subprocess
import threading
import time

import pytest

import pictures
import s3_gateway
from client import Closed, form
from darkroom import BINARY, CONFIG, IS_SANITIZED, ROOT, Daemon, command, eventually, overrides
from history import NO_ANSWER, History, Operation, extra_images
from s3_stand_in import Fault, Store
from uploads import in_parallel

IS_LONG = "DARKROOM_HISTORY" in os.environ
KILLS, PAUSES, OUTAGES = map(int, os.environ.get("DARKROOM_HISTORY", "2,1,1").split(","))
SEED = int(os.environ.get("DARKROOM_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 30)
NODES, CLIENTS = 3, 6
PAUSE_S = 14  # more than a node waits for another one's upload, and than any request may take
SKEW_S = 90
FORMER = "b1038aafc04e8e529f26af4f654e0b08285da6f2"  # its nodes store an image as several objects
FAKETIME = pathlib.Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
PICTURE = pictures.photo_jpeg(320, 240, 2)


# ---- the checks themselves ----

def op(kind, begin, end, status, **others):
    return Operation(kind, begin, end, status, **others)


MADE = op("upload", 0, 1, 201, ident="A", name="a", key="k")
WRONG = {
    "lost": [MADE, op("get", 2, 3, 404, ident="A")],
    "served by": [MADE, op("delete", 2, 3, 204, ident="A"), op("get", 4, 5, 200, ident="A")],
    "served by node 1": [MADE, op("delete", 2, 9, NO_ANSWER, ident="A"),
                         op("get", 3, 4, 404, ident="A"), op("get", 5, 6, 304, ident="A", node=1)],
    "listed": [MADE, op("delete", 2, 3, 404, ident="A"), op("list", 4, 5, 200, found=("A",))],
    "never stored": [op("upload", 0, 1, 202, ident="A"), op("get", 2, 3, 404, ident="A")],
    "2 images were": [MADE, op("upload", 2, 3, 201, ident="B", name="a", key="k")],
    "2 uploads": [MADE, op("upload", 2, 3, 201, ident="A", name="b")],
    "other bytes": [MADE, op("get", 2, 3, 200, ident="A", variant="thumb", body=b"1"),
                    op("get", 4, 5, 200, ident="A", variant="thumb", body=b"2")],
}
RIGHT = [
    [MADE, op("get", 0.5, 3, 404, ident="A"), op("get", 2, 3, 503, ident="A")],
    [MADE, op("delete", 2, 4, NO_ANSWER, ident="A"), op("get", 3, 4, 404, ident="A")],
    [MADE, op("delete", 2, 4, 204, ident="A"), op("get", 3, 9, 200, ident="A")],
    [op("upload", 0, 1, 202, ident="A"), op("get", 2, 3, 404, ident="A"),
     op("get", 4, 5, 200, ident="A")],
    [MADE, op("upload", 2, 3, 201, ident="A", name="a", key="k")],
]


def history_of(operations):
    history = History()
    history.operations = list(operations)
    return history


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_history_is_found(what):
    (found,) = history_of(WRONG[what]).violations()
    assert what in found


@pytest.mark.parametrize("operations", RIGHT)
def test_a_right_history_is_accepted(operations):
    assert history_of(operations).violations() == []


def test_a_second_image_of_a_key_is_found():
    history = history_of([MADE, op("upload", 2, 3, 503, name="b", key="l")])
    assert extra_images(history, [("A", "a"), ("C", "b"), ("X", "x"), ("Y", "x")]) == []
    assert extra_images(history, [("B", "a")]) == ["key k: 2 images are stored"]
    assert extra_images(history, [("C", "b"), ("D", "b")]) == ["key l: 2 images are stored"]


# ---- clients ----

class Client(threading.Thread):
    """Uploads, reads, removes and lists at random nodes until it is told to end."""

    def __init__(self, cluster, number):
        super().__init__(daemon=True)
        self.cluster, self.number, self.rng = cluster, number, random.Random(f"{SEED} {number}")
        self.is_over, self.failure, self.sent = threading.Event(), None, 0
        self.is_writing = False
        self.start()

    def run(self):
        try:
            while not self.is_over.wait(self.rng.uniform(0, 0.1)):
                self.step()
        except BaseException as failure:  # noqa: B902 - told by the test
            self.failure = failure
            raise

    def step(self):
        what = self.rng.random()
        self.is_writing = True
        if self.cluster.only_reads:
            self.is_writing = False
            self.read(self.rng.choice(self.cluster.images[-40:]))
        elif what < 0.3 or not self.cluster.images:
            self.upload()
        elif what < 0.85:
            self.read(self.rng.choice(self.cluster.images[-40:]))
        elif what < 0.97:
            self.remove(self.rng.choice(self.cluster.images[-40:]))
        else:
            self.cluster.list(self.rng.randrange(NODES))

    def upload(self):
        self.sent += 1
        name, has_key = f"{self.number}-{self.sent}", self.rng.random() < 0.6
        for attempt in range(30 if has_key else 1):
            status = self.cluster.upload(self.rng.randrange(NODES), name, name if has_key else "")
            if status == 201 and self.rng.random() < 0.8:
                break  # otherwise again, as if the answer had been lost
            if self.is_over.wait(0.2 if attempt else 0) or self.cluster.only_reads:
                break

    def read(self, image):
        node, variant = self.rng.randrange(NODES), self.rng.choice(["", *pictures.VARIANTS])
        self.cluster.get(node, image["id"], variant)

    def remove(self, image):
        for _ in range(self.rng.randrange(1, 4)):
            node = self.rng.randrange(NODES)
            if self.cluster.delete(node, image["id"]) in (204, 404):
                return


class Cluster:
    """Nodes, and operations at them, which are remembered."""

    def __init__(self, store, directory, *settings):
        self.directory = directory
        self.settings = [*store.settings(directory, s3_timeout="1s"), "server.public_list=yes",
                         "limits.connections_per_client=0", *settings]
        self.is_early = "store.s3_spool=file" in settings
        self.binary, self.has_skew, self.only_reads = BINARY, FAKETIME.exists(), False
        self.history, self.images, self.nodes = History(), [], [None] * NODES
        self.all = []

    def start(self, number):
        skew = {}
        if self.has_skew and number < 2:
            skew = {"LD_PRELOAD": str(FAKETIME), "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                    "DONT_FAKE_MONOTONIC": "1", "FAKETIME": f"{(-SKEW_S, SKEW_S)[number]:+d}"}
        self.nodes[number] = Daemon(self.directory / f"node{number}", *self.settings, environ=skew,
                                    binary=self.binary)
        self.all.append(self.nodes[number])

    def ask(self, node, method, path, body=None, headers=()):
        """Returns (begin, end, answer), and no answer after 20 s."""
        begin = time.monotonic()
        try:
            with self.nodes[node].client(timeout=20) as c:
                answer = c.request(method, path, body, headers)
        except (OSError, Closed):
            answer = None
        return begin, time.monotonic(), answer

    def note(self, kind, node, asked, **others):
        begin, end, answer = asked
        self.history.add(Operation(kind, begin, end, answer.status if answer else NO_ANSWER, node,
                                   **others))
        return answer.status if answer else NO_ANSWER

    def upload(self, node, name, key):
        content_type, body = form([("f", f"{name}.jpg", "image/jpeg", PICTURE)])
        headers = [("Content-Type", content_type)]
        if self.is_early:
            headers.append(("Prefer", "respond-async"))
        if key:
            headers.append(("Idempotency-Key", f'"{key}"'))
        asked = self.ask(node, "POST", "/images", body, headers)
        ident = ""
        if asked[2] and asked[2].status in (201, 202):
            (image,) = asked[2].json()["images"]
            ident = image["id"]
            if image.get("status") != "removed":
                self.images.append(image)
        return self.note("upload", node, asked, ident=ident, name=f"{name}.jpg", key=key)

    def get(self, node, ident, variant=""):
        path = f"/images/{ident}" + (f"/{variant}.jpg" if variant else "")
        asked = self.ask(node, "GET", path)
        body = asked[2].body if asked[2] and asked[2].status == 200 else b""
        return self.note("get", node, asked, ident=ident, variant=variant, body=body)

    def delete(self, node, ident):
        return self.note("delete", node, self.ask(node, "DELETE", f"/images/{ident}"), ident=ident)

    def list(self, node):
        """Returns [(id, name)] of all images, or None without an answer."""
        begin, found, url = time.monotonic(), [], "/images?limit=100"
        while url:
            _, end, answer = self.ask(node, "GET", url)
            if not answer or answer.status != 200:
                return None
            document = answer.json()
            found += [(image["id"], image.get("filename", "")) for image in document["images"]]
            url = document.get("next")
        self.history.add(Operation("list", begin, end, 200, node,
                                   found=tuple(ident for ident, _ in found)))
        return found


# ---- what happens to them ----

def late_and_repeated(rng):
    """Faults of the stand-in: requests that are done late, twice, or without an answer."""
    def fault(method, key):
        what = rng.random()
        if method == "GET":
            return Fault(delays=rng.uniform(0, 3)) if what < 0.01 else None
        if what < 0.03:
            return Fault(delays=rng.uniform(1, 8))
        if what < 0.06:
            return Fault(again=rng.uniform(0, 8))
        if what < 0.09:
            return Fault(is_lost=True)
        return Fault(status=503, code="SlowDown") if what < 0.1 else None
    return fault


class Nemesis:
    def __init__(self, cluster, store):
        self.cluster, self.store, self.rng = cluster, store, random.Random(SEED)
        self.done = collections.Counter()

    def kill(self):
        number = self.rng.randrange(NODES)
        self.cluster.nodes[number].kill()
        time.sleep(self.rng.uniform(0, 0.5))
        self.cluster.start(number)

    def pause(self):
        node = self.cluster.nodes[self.rng.randrange(NODES)]
        node.signal(signal.SIGSTOP)
        time.sleep(self.rng.choice([1, 4, PAUSE_S]) if IS_LONG else PAUSE_S)
        node.signal(signal.SIGCONT)

    def outage(self):
        """Ends the store, or, if it is a process, stops it in some cases: then it does late what it
        was asked."""
        gateway = getattr(self.store, "parts", {}).get("rgw")
        if gateway and self.rng.random() < 0.5:
            gateway.send_signal(signal.SIGSTOP)
            time.sleep(self.rng.uniform(2, 8))
            gateway.send_signal(signal.SIGCONT)
            return
        self.store.go_away()
        time.sleep(self.rng.uniform(0.2, 4))
        self.store.come_back()

    def upgrade(self):
        for number in range(NODES):
            self.cluster.nodes[number].stop()
            self.cluster.start(number)

    def run(self):
        """Does all of it in a random order, with time for the clients in between."""
        plan = ["kill"] * KILLS + ["pause"] * PAUSES + ["outage"] * OUTAGES + ["upgrade"]
        self.rng.shuffle(plan)
        for what in plan:
            time.sleep(self.rng.uniform(0.2, 1.5))
            getattr(self, what)()
            self.done[what] += 1


@contextlib.contextmanager
def made_store(kind, directory):
    if kind == "gateway":
        (directory / "gateway").mkdir()
    store = Store() if kind == "stand-in" else s3_gateway.Gateway(directory / "gateway")
    try:
        yield store
    finally:
        store.stop()


GATEWAY = pytest.param("gateway", marks=pytest.mark.skipif(
    not IS_LONG or bool(s3_gateway.missing()),
    reason=f"only with DARKROOM_HISTORY; not installed: {s3_gateway.missing()}"))


def finish(cluster):
    """Asks every node for every image, until each has said something about it."""
    history = cluster.history
    idents = {o.ident for o in history.operations if o.ident}
    asked = {o.ident for o in history.of("delete")}
    for ident in history.early() - asked:
        assert eventually(lambda: cluster.get(0, ident) == 200, 60), ident  # noqa: B023

    def ask(node):
        for ident in idents:
            for variant in ("", *pictures.VARIANTS):
                assert eventually(lambda: cluster.get(node, ident, variant)  # noqa: B023
                                  in (200, 404), 60)
    in_parallel(NODES, ask)
    return [eventually(lambda: cluster.list(node), 60) for node in range(NODES)]  # noqa: B023


@pytest.mark.skipif(IS_SANITIZED, reason="too slow, and a library must be the first")
@pytest.mark.parametrize("spool", ["none", pytest.param("file", marks=pytest.mark.skipif(
    not IS_LONG, reason="only with DARKROOM_HISTORY"))])
@pytest.mark.parametrize("kind", ["stand-in", GATEWAY])
def test_history_of_nodes_that_fail(kind, spool, tmp_path):
    print(f"DARKROOM_SEED={SEED}")
    with made_store(kind, tmp_path) as store:
        cluster = Cluster(store, tmp_path, f"store.s3_spool={spool}")
        try:
            in_parallel(NODES, cluster.start)
            if kind == "stand-in":
                store.fault = late_and_repeated(random.Random(SEED))
            clients = [Client(cluster, number) for number in range(CLIENTS)]
            nemesis = Nemesis(cluster, store)
            nemesis.run()
            for client in clients:
                client.is_over.set()
            for client in clients:
                client.join()
                assert not client.failure, client.failure
            if kind == "stand-in":
                store.release()
                time.sleep(1)  # for what was late
            lists = finish(cluster)
        finally:
            in_parallel(len(cluster.all), lambda i: cluster.all[i].stop())
    violations = cluster.history.violations()
    violations += extra_images(cluster.history, lists[0])
    counts = collections.Counter((o.kind, o.status) for o in cluster.history.operations)
    print(dict(nemesis.done), {f"{kind} {status}": n for (kind, status), n in sorted(counts.items())})
    assert all(sorted(found) == sorted(lists[0]) for found in lists), "the nodes list other images"
    assert counts["upload", 201] > 5 and counts["delete", 204] > 0 and counts["get", 200] > 0
    assert not violations, "\n".join(violations)


def former_binary(directory):
    """Builds the former version, unless DARKROOM_FORMER has its binary."""
    if "DARKROOM_FORMER" in os.environ:
        return pathlib.Path(os.environ["DARKROOM_FORMER"])
    git = ["git", "-C", str(ROOT)]
    if subprocess.run([*git, "cat-file", "-e", FORMER + "^{commit}"], capture_output=True).returncode:
        pytest.skip(f"the repository has no history, or not {FORMER}")
    source = subprocess.run([*git, "archive", FORMER], stdout=subprocess.PIPE, check=True).stdout
    subprocess.run(["tar", "-x", "-C", directory], input=source, check=True)
    subprocess.run(["make", "-s", f"-j{os.cpu_count()}", "-C", directory, "build/darkroomd"], check=True)
    return directory / "build" / "darkroomd"


@pytest.mark.skipif(not IS_LONG or IS_SANITIZED, reason="only with DARKROOM_HISTORY")
@pytest.mark.parametrize("kind", ["stand-in", GATEWAY])
def test_history_of_an_upgrade(kind, tmp_path):
    """As CHANGES.md says: clients only read until the last node of the former version has ended."""
    print(f"DARKROOM_SEED={SEED}")
    (tmp_path / "former").mkdir()
    with made_store(kind, tmp_path) as store:
        cluster = Cluster(store, tmp_path)
        cluster.has_skew = False  # which the former version does not survive
        cluster.binary = former_binary(tmp_path / "former")
        try:
            in_parallel(NODES, cluster.start)
            clients = [Client(cluster, number) for number in range(CLIENTS)]

            def count(kind, status):
                return sum((o.kind, o.status) == (kind, status) for o in cluster.history.operations)
            assert eventually(lambda: count("upload", 201) > 100 and count("delete", 204) > 20, 300)
            cluster.only_reads = True
            assert eventually(lambda: not any(client.is_writing for client in clients), 60)
            cluster.binary = BINARY
            Nemesis(cluster, store).upgrade()
            cluster.only_reads, before = False, count("upload", 201)
            gone = {o.ident for o in cluster.history.of("delete") if o.status == 204}
            keys = {o.key: o.name.removesuffix(".jpg") for o in cluster.history.of("upload")
                    if o.key and o.status == 201 and o.ident in gone}
            # Their images must not come back. A node waits before it takes an upload over.
            assert keys and all(in_parallel(4, lambda i: all(eventually(
                lambda: cluster.upload(i % NODES, keys[key], key) not in (409, 503, NO_ANSWER), 60)
                for key in list(keys)[i:8:4])))  # noqa: B023
            assert eventually(lambda: count("upload", 201) > before + 50, 300)
            for client in clients:
                client.is_over.set()
            for client in clients:
                client.join()
                assert not client.failure, client.failure
            words = overrides(*cluster.settings, f"server.root={tmp_path / 'node0'}")
            subprocess.run(command("-c", CONFIG, *words, "store", "migrate"), check=True, timeout=300)
            lists = finish(cluster)
        finally:
            in_parallel(len(cluster.all), lambda i: cluster.all[i].stop())
    violations = cluster.history.violations() + extra_images(cluster.history, lists[0])
    assert all(sorted(found) == sorted(lists[0]) for found in lists), "the nodes list other images"
    assert not violations, "\n".join(violations)
