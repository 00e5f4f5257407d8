"""darkroomd store check: it finds every damaged, missing and stray file, and no other."""

import json
import os
import pathlib
import random
import signal
import subprocess
import tempfile

import pytest

import pictures
from client import form_files
from darkroom import command, eventually, load, slow
from store_files import directory_of, move_to_old_place
from test_record import TAG, has_attributes
from test_store_tool import tool
from uploads import coming_and_going

SMALL = pictures.photo_jpeg(48, 36, 5)
FLIPS = load(1000, 100)


def upload(daemon, count):
    """Uploads images in forms of 50. Returns their ids."""
    made = []
    while len(made) < count:
        content_type, body = form_files(*[SMALL] * min(50, count - len(made)))
        answer = daemon.upload(body, content_type)
        assert answer.status == 201
        made += [image["id"] for image in answer.json()["images"]]
    return made


def check(store, *words):
    """Returns the exit status and {path: problem}."""
    done = tool(store, "check", "--json", "--rate", "10G", *words)
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return done.returncode, {f"{p['id']}/{p['file']}": p["problem"] for p in found}


def flip(path, rng):
    """Flips one bit, as a disk does: size, time and attributes stay."""
    data, before = bytearray(path.read_bytes()), path.stat()
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.fixture
def in_memory(tmp_path):
    """A directory in memory if there is one: a check reads from the disk, 3 ms for each file."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        yield pathlib.Path(directory)


def test_every_flipped_bit_is_found_and_nothing_else(start, in_memory):
    daemon = start("server.keep_originals=yes", store=in_memory / "store")
    images = upload(daemon, FLIPS // 3)
    assert check(daemon.store) == (0, {})
    rng = random.Random(7)
    files = [(ident, path) for ident in images for path in directory_of(daemon.store, ident).iterdir()]
    if not has_attributes(files[0][1]):  # then files beside a damaged image.json have no checksum
        files = [f for f in files if f[1].name != "image.json"]
    chosen = rng.sample(sorted(files), FLIPS)
    for _, path in chosen:
        flip(path, rng)
    expected = {f"{ident}/{path.name}": "rotten" for ident, path in chosen}
    assert check(daemon.store) == (1, expected)
    assert check(daemon.store, "--repair") == (1, expected)
    for ident, path in chosen:
        assert not path.exists() and (daemon.store / ".quarantine" / ident / path.name).is_file()
    assert set(check(daemon.store)[1].values()) == {"missing"}


def test_missing_truncated_and_stray_files_are_named(start):
    daemon = start()
    ids = upload(daemon, 6)
    first, second, third, fourth, fifth, _ = (directory_of(daemon.store, i) for i in ids)
    (first / "thumb.jpg").unlink()
    with open(second / "medium.jpg", "r+b") as f:
        f.truncate(100)
    (third / "notes.txt").write_text("mine")
    (third / "large.jpg").write_bytes((third / "thumb.jpg").read_bytes())
    (fourth / "image.json").unlink()
    (fifth / "blurred.jpg").unlink()
    (fifth / "blurred.jpg").symlink_to(fifth / "medium.jpg")
    expected = {f"{ids[0]}/thumb.jpg": "missing", f"{ids[1]}/medium.jpg": "truncated",
                f"{ids[2]}/notes.txt": "stray", f"{ids[2]}/large.jpg": "stray",
                f"{ids[3]}/image.json": "missing", f"{ids[4]}/blurred.jpg": "unreadable"}
    assert check(daemon.store) == (1, expected)
    assert check(daemon.store, ids[0], ids[5]) == (1, {f"{ids[0]}/thumb.jpg": "missing"})
    assert check(daemon.store, ids[5]) == (0, {})
    for path in ("lake.jpg", "01K0/lake", f"{ids[0][:4]}/00/{ids[0]}/x"):
        (daemon.store / path).parent.mkdir(parents=True, exist_ok=True)
        (daemon.store / path).write_text("x")
    said = tool(daemon.store, "check").stdout.splitlines()
    assert {line for line in said if ids[0] not in line or "00/" in line} >= {
        "lake.jpg: stray", "01K0/lake: stray", f"{ids[0][:4]}/00/{ids[0]}: stray"}
    strays = daemon.store / ".quarantine" / "strays"
    strays.mkdir(parents=True)
    (strays / "lake.jpg").write_text("older")
    said = tool(daemon.store, "check", "--repair", "--json").stdout.splitlines()
    moved = {p["file"]: p["quarantined"] for p in map(json.loads, said) if not p["id"]}
    assert moved == {"lake.jpg": False, "01K0/lake": True, f"{ids[0][:4]}/00/{ids[0]}": True}
    assert (strays / "01K0+lake").read_text() == "x" and (daemon.store / "lake.jpg").exists()
    assert (strays / f"{ids[0][:4]}+00+{ids[0]}" / "x").exists()


def test_images_of_an_earlier_version_are_checked_by_size(start):
    daemon = start()
    ids = upload(daemon, 2)
    for ident in ids:
        directory = move_to_old_place(daemon.store, ident)
        document = json.loads((directory / "image.json").read_bytes())
        del document["record"]
        (directory / "image.json").write_text(json.dumps(document) + "\n")
        for file in directory.iterdir():
            if has_attributes(file):
                os.removexattr(file, TAG)
    done = tool(daemon.store, "check")
    assert done.returncode == 0 and "10 files without a checksum" in done.stderr
    with open(daemon.store / ids[0][-2:] / ids[0] / "medium.jpg", "ab") as f:
        f.write(b"x")
    assert check(daemon.store) == (1, {f"{ids[0]}/medium.jpg": "rotten"})


def test_a_copy_without_attributes_is_checked_by_image_json(start, tmp_path):
    daemon = start()
    ids = upload(daemon, 3)
    subprocess.run(["cp", "-r", "--no-preserve=all", daemon.store, tmp_path / "copy"], check=True)
    assert check(tmp_path / "copy") == (0, {})
    flip(directory_of(tmp_path / "copy", ids[1]) / "thumb.jpg", random.Random(1))
    assert check(tmp_path / "copy") == (1, {f"{ids[1]}/thumb.jpg": "rotten"})


def sleeps(pid):
    """Returns whether the process waits, and not for a disk."""
    return "State:\tS" in pathlib.Path(f"/proc/{pid}/status").read_text()


def test_a_check_goes_on_where_it_was_interrupted(start):
    daemon = start()
    bad = f"{min(ids := upload(daemon, 20))}/thumb.jpg"
    flip(directory_of(daemon.store, min(ids)) / "thumb.jpg", random.Random(3))
    process = subprocess.Popen(command("-o", f"server.root={daemon.store}", "store", "check",
                                       "--rate", "20K"), stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    try:  # it waits after the first file: at this rate the whole takes seconds
        assert eventually(lambda: sleeps(process.pid))
        process.send_signal(signal.SIGTERM)
        said, report = process.communicate(timeout=slow(20))
    finally:
        process.kill()
    assert process.returncode == 1 and f"{bad}: rotten" in said
    assert "interrupted" in report and (daemon.store / ".check").exists()
    rest = tool(daemon.store, "check")
    assert rest.returncode == 0 and "continuing behind" in rest.stderr and not rest.stdout
    assert not (daemon.store / ".check").exists()
    assert check(daemon.store) == (1, {bad: "rotten"})


def test_a_check_beside_uploads_and_removals_finds_nothing(start):
    daemon = start()
    upload(daemon, 20)
    with coming_and_going(daemon, SMALL, 3):
        results = [check(daemon.store) for _ in range(4)]
    assert results == [(0, {})] * 4


def test_the_original_of_an_earlier_version_is_not_a_stray(start, in_memory):
    daemon = start("server.keep_originals=yes", store=in_memory / "store")
    (ident,) = upload(daemon, 1)
    document = directory_of(daemon.store, ident) / "image.json"
    text = document.read_text()
    document.unlink()
    document.write_text(text[:text.index(',"record"')] + "}\n")
    assert check(daemon.store) == (0, {})
