"""With durability = power, a loss of power at any moment loses no acknowledged image, restores no
image whose removal was acknowledged, and shows no incomplete image. A recorder logs the file
operations of the daemon, and every moment is checked. DARKROOM_CRASH_STATES is the number of states
on which a daemon is started (6 for each policy)."""

import copy
import json
import os
import pathlib
import random
import re
import threading

import pytest

import crash_states
import pictures
from darkroom import IS_SANITIZED, ROOT, Daemon, eventually
from store_files import check_same, files_of, made_by

RECORDER = pathlib.Path(os.environ.get(
    "DARKROOM_RECORDER", ROOT / "build" / "plain" / "tests" / "tools" / "power_recorder.so"))
JPEG = ("Content-Type", "image/jpeg")
ASYNC = ("Prefer", "respond-async")
ID = re.compile(rb"Location: /images/([0-9A-Z]{26})")

pytestmark = pytest.mark.skipif(IS_SANITIZED,
                                reason="the recorder cannot be loaded before the sanitizer")

STATES = int(os.environ.get("DARKROOM_CRASH_STATES", 6))
SOURCES = [pictures.photo_jpeg(w, h, s) for w, h, s in (
    (160, 120, 1), (60, 90, 2), (100, 100, 3), (900, 700, 4), (333, 16, 5))]
FILES = {"image.json", "original.jpg", *(f"{v}.jpg" for v in pictures.VARIANTS)}


def record(tmp_path, monkeypatch, durability, connections=6, uploads=5):
    """Records a daemon during synchronous and asynchronous uploads and removals. Returns (path of
    the record, inode of the root)."""
    assert RECORDER.exists(), f"{RECORDER} does not exist: run make, or set DARKROOM_RECORDER"
    store, path = tmp_path / "store", tmp_path / "record"
    store.mkdir()
    monkeypatch.setenv("LD_PRELOAD", str(RECORDER))
    monkeypatch.setenv("DARKROOM_RECORD", str(path))
    daemon = Daemon(store, f"server.durability={durability}", "server.keep_originals=yes")
    monkeypatch.delenv("LD_PRELOAD")
    failures = []

    def work(index):
        try:
            with daemon.client() as c, open(path, "ab", buffering=0) as marks:
                for i in range(uploads):
                    early = (index + i) % 2 == 1
                    answer = c.request("POST", "/images", SOURCES[i % len(SOURCES)],
                                       [JPEG, ASYNC] if early else [JPEG])
                    assert answer.status == (202 if early else 201), answer
                    if i % 3 == 2:
                        url = answer["location"]
                        ident = url.rpartition("/")[2]
                        marks.write(b"going %b\n" % ident.encode())
                        assert c.request("DELETE", url).status == 204
                        marks.write(b"gone %b\n" % ident.encode())
        except Exception as failure:  # pylint: disable=broad-except
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(connections)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    daemon.stop()
    assert not failures, failures
    return path, store.stat().st_ino


class Judge:
    """The conditions on each state."""

    def __init__(self, replay):
        self.replay = replay
        self.whole = {}  # id -> {file: content} when the image becomes visible
        self.acknowledged, self.gone = set(), set()

    def learn(self, words, data):
        """Applies a record, which the replay has already applied."""
        if words[0] == "answer":
            if found := ID.search(data):
                self.acknowledged.add(found[1].decode())
        elif words[0] == "going":
            self.acknowledged.discard(words[1])
        elif words[0] == "gone":
            self.gone.add(words[1])
        elif words[0] == "rename":
            now, ident = self.replay.now, words[4].split("/")[-1]
            if directory := self.images(now).get(ident):
                self.whole[ident] = {n: now.content(f) for n, f in now.list(directory).items()}

    def images(self, state):
        """Returns {id: directory} of the visible images."""
        found = {}
        for span, shards in state.list(self.replay.root).items():
            if not span.startswith("."):
                for directory in state.list(shards).values():
                    found.update(state.list(directory))
        return found

    def check(self, state):
        """Yields the faults of this state as text."""
        images, spool = self.images(state), state.list(state.find(self.replay.root, ".spool"))
        for ident, directory in images.items():
            files = {n: state.content(f) for n, f in state.list(directory).items()}
            if files != self.whole[ident]:
                yield f"part of image {ident}: { {n: len(d) for n, d in files.items()} }"
        for ident in self.acknowledged - images.keys():
            files = {n: state.content(f) for n, f in state.list(spool.get(ident)).items()}
            note = files.get("note", b"")
            if files.get("original.jpg") not in SOURCES or not note.startswith(b"0\n"):
                yield f"image {ident} is lost; spooled: { {n: len(d) for n, d in files.items()} }"
        for ident in self.gone & (images.keys() | spool.keys()):
            yield f"image {ident} is back"


class Sample:
    """A random choice of the states, with what must hold for each."""

    def __init__(self, size, rng):
        self.size, self.rng, self.seen, self.kept = size, rng, 0, []

    def offer(self, state, the_judge):
        self.seen += 1
        at = len(self.kept) if len(self.kept) < self.size else self.rng.randrange(self.seen)
        if at < self.size:
            self.kept[at:at + 1] = [(state.copy(), copy.copy(the_judge.acknowledged),
                                     copy.copy(the_judge.gone))]


def judge(path, root_inode, sample=None):
    """Checks a recording. Returns (faults, number of states, acknowledged images, judge)."""
    rng = random.Random(7)
    replay = crash_states.Replay(root_inode)
    the_judge = Judge(replay)
    faults, states, acknowledged = [], 0, set()
    for words, data in crash_states.records(path):
        replay.step(words, data)
        the_judge.learn(words, data)
        acknowledged |= the_judge.acknowledged
        for state in (*replay.states(), *(replay.random_state(rng) for _ in range(2))):
            states += 1
            if sample:
                sample.offer(state, the_judge)
            faults += [f"{' '.join(words)[:60]}: {fault}" for fault in the_judge.check(state)]
        if len(faults) > 100:
            break
    return faults, states, acknowledged, the_judge


def test_power_loss_at_any_moment_loses_nothing(tmp_path, monkeypatch):
    faults, states, acknowledged, the_judge = judge(*record(tmp_path, monkeypatch, "power"))
    print(f"{states} states, {len(acknowledged)} images")
    assert not faults, "\n".join(faults[:20])
    assert len(acknowledged) == 30 and states > 1000
    for files in the_judge.whole.values():
        assert files.keys() == FILES
        for name, (box, _, _) in pictures.VARIANTS.items():
            size = pictures.size(files["original.jpg"])
            assert pictures.size(files[f"{name}.jpg"]) == pictures.fit(*size, box)


def test_judge_finds_faults_without_flushes(tmp_path, monkeypatch):
    """durability = process has no such promise. The judge must find its faults."""
    faults, *_ = judge(*record(tmp_path, monkeypatch, "process", connections=1, uploads=2))
    assert any("is lost" in fault for fault in faults)
    assert any("part of" in fault for fault in faults)


def check_recovery(store, policy, expected, acknowledged, gone):
    """Starts a daemon on the store. It serves every acknowledged image, and no image in part."""
    by_size = {pictures.size(source): i for i, source in enumerate(SOURCES)}
    daemon = Daemon(store, "server.durability=power", "server.keep_originals=yes", policy=policy)
    try:
        assert eventually(lambda: not any((store / ".spool").iterdir()), 60), daemon.log
        assert not any((store / ".quarantine").iterdir()), daemon.log
        stored = set(daemon.stored())
        assert acknowledged <= stored and not gone & stored
        for ident in stored:
            files = files_of(store, ident)
            document = json.loads(files["image.json"])
            i = by_size[document["width"], document["height"]]
            check_same(files, expected[i], SOURCES[i], True)
            for name, data in expected[i].items():
                answer = daemon.get(f"/images/{ident}/{name}")
                assert (answer.status, answer.body) == (200, data)
        for ident in gone:
            assert daemon.get(f"/images/{ident}").status == 404
    finally:
        daemon.stop()
    assert not daemon.leftovers()


def test_a_daemon_recovers_from_a_power_loss(tmp_path, monkeypatch):
    reference = Daemon(tmp_path / "reference")
    expected = [made_by(reference, source) for source in SOURCES]
    reference.stop()
    sample = Sample(2 * STATES, random.Random(11))
    faults, _, _, the_judge = judge(*record(tmp_path, monkeypatch, "power"), sample)
    assert not faults and len(sample.kept) == 2 * STATES
    root = the_judge.replay.root
    assert any(state.list(state.find(root, ".spool")) for state, _, _ in sample.kept)
    for i, (state, acknowledged, gone) in enumerate(sample.kept):
        store = tmp_path / f"state{i}"
        crash_states.write(state, root, store)
        check_recovery(store, ("drain", "seda")[i % 2], expected, acknowledged, gone)
