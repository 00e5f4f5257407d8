"""A loss of power at any moment of a remake leaves each image with its former files or its new ones,
and one of an import leaves each image whole or absent. What was said to be done stays done. See
test_power_loss.py."""

import random
import shutil
import subprocess

import pytest

import crash_states
import pictures
from darkroom import IS_SANITIZED, Daemon, command, eventually, slow
from store_files import files_of
from test_power_loss import RECORDER

KEEP = ("server.keep_originals=yes", "server.durability=power")
SMALLER = "variant.medium.operations=scale 50x50 inside"
SOURCES = [pictures.photo_jpeg(w, h, s) for w, h, s in ((120, 90, 1), (60, 100, 2))]

pytestmark = pytest.mark.skipif(IS_SANITIZED,
                                reason="the recorder cannot be loaded before the sanitizer")


def images_of(state, root):
    """Returns {id: {name: content}} of the visible images."""
    found = {}
    for span, shards in state.list(root).items():
        if not span.startswith("."):
            for directory in state.list(shards).values():
                for ident, image in state.list(directory).items():
                    found[ident] = {n: state.content(f) for n, f in state.list(image).items()}
    return found


def judge(path, root_inode, check):
    """Replays a recording. check(replay, state, words) yields the faults of a state. Returns (faults,
    number of states, kinds of the records)."""
    rng, replay = random.Random(5), crash_states.Replay(root_inode)
    faults, states, kinds = [], 0, set()
    for words, data in crash_states.records(path):
        kinds.add(words[0])
        has_changed = replay.step(words, data)
        if not has_changed and words[0] not in ("begin", "done", "exited"):
            continue
        for state in (*replay.states(), *(replay.random_state(rng) for _ in range(2))):
            states += 1
            faults += check(replay, state, words)
        assert len(faults) < 100, faults[:20]
    return faults, states, kinds


def mark(path, text):
    with path.open("ab") as f:
        f.write(text.encode() + b"\n")


def recorded(monkeypatch, path, make):
    """Calls make() with the recorder for the programs that it starts."""
    assert RECORDER.exists(), f"{RECORDER} does not exist: run make, or set DARKROOM_RECORDER"
    with monkeypatch.context() as m:
        m.setenv("LD_PRELOAD", str(RECORDER))
        m.setenv("DARKROOM_RECORD", str(path))
        return make()


def record_remake(tmp_path, monkeypatch, durability):
    """Records uploads, and then a daemon that remakes the images. Returns (path, inode of the root,
    {id: (former files, new files)})."""
    store, path = tmp_path / "store", tmp_path / "record"
    store.mkdir()
    settings = (*KEEP, f"server.durability={durability}")
    daemon = recorded(monkeypatch, path, lambda: Daemon(store, *settings))
    images = [daemon.image(SOURCES[i % 2])["id"] for i in range(6)]
    daemon.stop()
    former = {i: files_of(store, i) for i in images}
    for ident in images:
        (store / ".remake" / ident).write_text("0a\n")
    mark(path, "begin")
    daemon = recorded(monkeypatch, path, lambda: Daemon(store, SMALLER, *settings))
    assert eventually(lambda: not list((store / ".remake").iterdir()), 60)
    daemon.stop()
    mark(path, "done")
    new = {i: files_of(store, i) for i in images}
    assert all(new[i]["medium.jpg"] != former[i]["medium.jpg"] for i in images)
    return path, store.stat().st_ino, {i: (former[i], new[i]) for i in images}


class RemakeJudge:
    """The conditions during a remake."""

    def __init__(self, expected):
        self.expected, self.has_begun, self.made = expected, False, set()

    def check(self, replay, state, words):
        self.has_begun |= words[0] == "begin"
        if not self.has_begun:
            return
        if words[0] == "unlink" and words[2].startswith(".remake/"):
            self.made.add(words[2].partition("/")[2])  # it has left the queue
        if words[0] == "done":
            self.made |= self.expected.keys()
        images = images_of(state, replay.root)
        for ident, (former, new) in self.expected.items():
            files = images.get(ident)
            if files not in (former, new):
                sizes = {n: len(d) for n, d in (files or {}).items()}
                yield f"{' '.join(words)[:60]}: image {ident} is neither: {sizes}"
            elif ident in self.made and files != new:
                yield f"{' '.join(words)[:60]}: image {ident} is as before, and not in the queue"


def test_power_loss_during_a_remake_leaves_former_or_new_files(tmp_path, monkeypatch):
    path, inode, expected = record_remake(tmp_path, monkeypatch, "power")
    faults, states, kinds = judge(path, inode, RemakeJudge(expected).check)
    assert not faults, "\n".join(faults[:20])
    assert {"exchange", "link", "create", "syncfs"} <= kinds and states > 500


def test_judge_finds_faults_of_a_remake_without_flushes(tmp_path, monkeypatch):
    """durability = process has no such promise, so the judge must find its faults."""
    path, inode, expected = record_remake(tmp_path, monkeypatch, "process")
    try:
        faults, *_ = judge(path, inode, RemakeJudge(expected).check)
    except AssertionError as many:
        faults = [str(many)]
    assert any("neither" in fault for fault in faults)


# ---- import ----

def record_import(tmp_path, monkeypatch):
    """Records an import. Returns (path, inode of the root, {id: files})."""
    daemon = Daemon(tmp_path / "source", *KEEP)
    images = [daemon.image(SOURCES[i % 2], headers=[("X-Expires-After", "3600")] if i < 2 else [])
              ["id"] for i in range(5)]
    archive = subprocess.run(command("-o", f"server.root={daemon.store}", "store", "export"),
                             capture_output=True, check=True, timeout=slow(60)).stdout
    daemon.stop()
    other, path = Daemon(tmp_path / "store"), tmp_path / "record"
    other.stop()
    shutil.rmtree(other.store / ".expiry")  # the replay has only what the import makes
    done = recorded(monkeypatch, path, lambda: subprocess.run(
        command("-o", f"server.root={other.store}", "store", "import"), input=archive,
        capture_output=True, check=False, timeout=slow(60)))
    assert done.returncode == 0, done.stderr
    mark(path, "exited")
    expected = {i: files_of(daemon.store, i) for i in images}
    assert {i: files_of(other.store, i) for i in images} == expected
    return path, other.store.stat().st_ino, expected


def test_power_loss_during_an_import_leaves_whole_images(tmp_path, monkeypatch):
    path, inode, expected = record_import(tmp_path, monkeypatch)
    seen = set()

    def check(replay, state, words):
        images = images_of(state, replay.root)
        seen.update(images)
        for ident, files in images.items():
            if files != expected[ident]:
                yield f"{' '.join(words)[:60]}: part of image {ident}"
        if words[0] == "exited" and images.keys() != expected.keys():
            yield f"images are lost: {expected.keys() - images.keys()}"
        notes = state.find(replay.root, ".expiry")
        noted = {n.partition(".")[2] for hour in state.list(notes).values() for n in state.list(hour)}
        for ident in images:
            if b'"expires"' in images[ident]["image.json"] and ident not in noted:
                yield f"{' '.join(words)[:60]}: image {ident} never ends"

    faults, states, _ = judge(path, inode, check)
    assert not faults, "\n".join(faults[:20])
    assert seen == expected.keys() and states > 200
