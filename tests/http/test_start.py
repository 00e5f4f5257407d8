"""The start takes the same time for any number of stored images. DARKROOM_STORED is the number of
images (20000)."""

import os
import pathlib
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
