"""The start takes the same time for any number of stored images. DARKROOM_STORED is the number of
images (20000)."""

import os
import pathlib
import re
import shutil
import statistics
import tempfile
import time

import pytest

import pictures
from darkroom import IS_SANITIZED, Daemon, eventually
from faults import Faults

COUNT = int(os.environ.get("DARKROOM_STORED", "20000"))
LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
FILES = ("open", "openat", "__openat_2", "readdir", "fdopendir", "fstat", "lstat", "faccessat",
         "unlinkat", "read")


def fill(store, count, model):
    """Writes this number of stored images, each a directory with a description."""
    for shard in (a + b for a in LETTERS for b in LETTERS):
        os.makedirs(store / shard, exist_ok=True)
    for i in range(count):
        shard = LETTERS[i % 32] + LETTERS[i // 32 % 32]
        directory = os.open(store / shard, os.O_RDONLY)
        name = f"01K{i:021d}{shard}"
        os.mkdir(name, dir_fd=directory)
        os.link(model / f"image{i % 32}.json", f"{name}/image.json", dst_dir_fd=directory)
        os.close(directory)


def models(directory):
    """Makes 32 files, since file systems limit the links to one file."""
    directory.mkdir()
    for i in range(32):
        (directory / f"image{i}.json").write_text('{"id":"of a test"}\n')
    return directory


def starts(store, times):
    """Returns [(seconds, CPU seconds)] of several starts."""
    took = []
    for _ in range(times):
        daemon = Daemon(store)
        took.append((daemon.ready_time, daemon.cpu_seconds()))
        daemon.stop()
    return took


def file_calls(store, path):
    """Returns the file system calls of a start, by function."""
    faults = Faults(path)
    daemon = Daemon(store, environ=faults.environ)

    def calls():
        return {name: count for name, function, module, count in faults.sites().values()
                if function in FILES and module == "darkroomd"}

    def have_ended():
        before = calls()
        time.sleep(0.2)
        return calls() == before
    assert eventually(have_ended)  # the recovery starts after the ready line
    daemon.stop()
    return calls()


@pytest.fixture
def place():
    """A directory in memory, which has enough inodes and does not depend on a disk."""
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=parent) as path:
        yield pathlib.Path(path)


def test_start_does_not_depend_on_the_number_of_images(place, tmp_path):
    empty, full = place / "empty", place / "full"
    empty.mkdir()
    full.mkdir()
    fill(full, COUNT, models(place / "models"))
    fill(empty, 0, place / "models")
    few, many = starts(empty, 5), starts(full, 5)
    few_ms, many_ms = (1000 * statistics.median(seconds for seconds, _ in times)
                       for times in (few, many))
    print(f"\nready after {few_ms:.0f} ms without images, {many_ms:.0f} ms with {COUNT}")
    assert min(cpu for _, cpu in many) < 1 or IS_SANITIZED, many
    if not IS_SANITIZED:
        assert eventually(lambda: file_calls(empty, tmp_path / "faults0")
                          == file_calls(full, tmp_path / "faults1"))
    daemon = Daemon(full)
    assert daemon.image(pictures.photo_jpeg(60, 60))["id"]
    daemon.stop()
    shutil.rmtree(full)


FOREIGN = ["notes.txt", "backup/of/mine", ".DS_Store", "01K0", "01K1/notes", "01K1/mine/x",
           *(f"{d}/{name}" for d in (".incoming", ".trash", ".spool", ".remake", ".expiry", ".keys",
                                     ".import") for name in ("notes.txt", "mine/x")),
           ".keys/ab/notes.txt", ".quarantine/notes.txt", "lost+found/#123"]
UNNAMED = {".keys/ab/notes.txt", ".quarantine/notes.txt", "lost+found/#123"}


def test_a_start_leaves_what_it_did_not_make(start, tmp_path):
    """Files and directories of others at every place, and what an earlier version has left."""
    store, old = tmp_path / "store", "01K2000000000000000000000A"
    for name in FOREIGN:
        (store / name).parent.mkdir(parents=True, exist_ok=True)
        (store / name).write_text(name)
        os.utime(store / name, (1, 1))
    for name in (f".incoming/{old}/a.jpg", f".trash/{old}.3/a.jpg"):
        (store / name).parent.mkdir(parents=True)
        (store / name).write_text("left")
    key = store / ".keys/ab" / ("c" * 62)
    key.write_text("old")
    os.utime(key, (1, 1))
    daemon = start("store.max_age=1d", "store.sweep_interval=100ms", store=store)
    image = daemon.image(pictures.photo_jpeg(64, 48, 1))
    with daemon.client() as c:
        assert c.request("DELETE", image["url"]).status == 204
    assert eventually(lambda: (store / ".expiry/swept").is_dir() and not key.exists())  # swept
    daemon.stop()
    again = start(store=store)
    for name in FOREIGN:
        assert (store / name).read_text() == name
    assert not list(store.glob(f".*/{old}*"))
    named = re.findall(r"store: (\S+): darkroomd did not make it; it stays", again.log_until_now())
    expected = {name.split("/mine")[0] + "/mine" if "/mine" in name else name for name in FOREIGN}
    expected = {"backup" if name.startswith("backup") else name for name in expected - UNNAMED}
    assert sorted(named) == sorted(expected)
