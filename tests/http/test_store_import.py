"""darkroomd store import DIR --map FILE: the JPEGs of a directory become images of the running
daemon. DARKROOM_KILLS is the number of kills (6)."""

import json
import os
import random
import subprocess
import time

import pytest

import pictures
from darkroom import command, eventually, load, run, slow
from store_files import check_same, files_of, made_by

SOURCES = [pictures.photo_jpeg(w, h, s) for w, h, s in ((120, 90, 5), (64, 200, 6), (33, 17, 7))]
KILLS = int(os.environ.get("DARKROOM_KILLS", load(6, 2)))


def tool(daemon, directory, table, *options):
    return run(*options, "-o", f"server.root={daemon.store}", "store", "import", directory, "--map",
               table)


def read_map(table):
    """Returns {path: id}."""
    lines = [json.loads(line) for line in table.read_text().splitlines()]
    assert len({line["path"] for line in lines}) == len(lines)
    return {line["path"]: line["id"] for line in lines}


@pytest.fixture
def pile(tmp_path):
    """A directory with JPEGs at several depths, and other files."""
    directory = tmp_path / "pile"
    (directory / "a" / "b").mkdir(parents=True)
    for n, name in enumerate(("1.jpg", "a/2.JPEG", "a/b/3.Jpg", 'a/quo"te\\ ü.jpg')):
        (directory / name).write_bytes(SOURCES[n % 3])
    (directory / "a" / "notes.txt").write_text("x")
    (directory / "link.jpg").symlink_to("1.jpg")
    return directory


def test_a_directory_becomes_images(start, pile, tmp_path):
    daemon, table = start("server.keep_originals=yes"), tmp_path / "map.jsonl"
    expected = [made_by(daemon, source) for source in SOURCES]
    for ident in daemon.stored():
        with daemon.client() as c:
            c.request("DELETE", f"/images/{ident}")
    done = tool(daemon, pile, table)
    assert done.returncode == 0, done.stderr
    assert "4 images made, 0 were in the map already, 0 failed; 2 files are not" in done.stderr
    ids = read_map(table)
    assert set(ids) == {"1.jpg", "a/2.JPEG", "a/b/3.Jpg", 'a/quo"te\\ ü.jpg'}
    assert daemon.stored() == sorted(ids.values())
    for n, path in enumerate(("1.jpg", "a/2.JPEG", "a/b/3.Jpg", 'a/quo"te\\ ü.jpg')):
        check_same(files_of(daemon.store, ids[path]), expected[n % 3], SOURCES[n % 3], True)
        image = daemon.get(f"/images/{ids[path]}").json()
        assert image["filename"] == os.path.basename(path)
    assert not (tmp_path / "map.jsonl.begun").exists()
    # once more: nothing is to do but the new file
    (pile / "4.jpg").write_bytes(SOURCES[0])
    done = tool(daemon, str(pile) + "/", table)
    assert done.returncode == 0 and "1 images made, 4 were in the map already" in done.stderr
    assert read_map(table).items() >= ids.items() and len(read_map(table)) == 5
    assert not list((daemon.store / ".spool").iterdir())
    assert eventually(lambda: not daemon.leftovers())
    assert not (daemon.store / ".import").exists()


def test_a_file_that_is_refused_is_named_and_leaves_nothing(start, pile, tmp_path):
    daemon, table = start(), tmp_path / "map.jsonl"
    (pile / "bad.jpg").write_bytes(b"no picture")
    (pile / "empty.jpg").write_bytes(b"")
    (pile / "large.jpg").write_bytes(bytes(70000))
    os.rename(pile / "1.jpg", os.fsencode(pile) + b"/\xff.jpg")
    done = run("-o", "limits.body_bytes=64K", "-o", f"server.root={daemon.store}", "store",
               "import", pile, "--map", table)
    assert done.returncode == 1
    assert "bad.jpg: not imported: " in done.stderr and "JPEG" in done.stderr and "?.jpg: not" in done.stderr
    assert "empty.jpg: not imported: it is empty" in done.stderr
    assert "large.jpg: not imported: it is larger than limits.body_bytes" in done.stderr
    assert "not imported: its path is not UTF-8" in done.stderr
    assert "3 images made, 0 were in the map already, 4 failed" in done.stderr
    assert daemon.stored() == sorted(read_map(table).values()) and len(daemon.stored()) == 3
    for name in (".spool", ".quarantine"):
        assert not list((daemon.store / name).iterdir())
    (pile / "bad.jpg").write_bytes(SOURCES[1])
    assert "1 images made, 3 were in the map already, 3 failed" in tool(
        daemon, pile, table, "-o", "limits.body_bytes=64K").stderr


def test_wrong_use_is_refused(start, pile, tmp_path):
    daemon, table = start(), tmp_path / "map.jsonl"

    def status(*words):
        return run("-o", f"server.root={daemon.store}", "store", "import", *words).returncode

    assert status(pile) == status("--map", table) == status(pile, pile, "--map", table) == 2
    assert status(tmp_path / "absent", "--map", table) == 1
    table.write_text('{"path":"1.jpg"}\n')
    assert status(pile, "--map", table) == 2 and table.read_text() == '{"path":"1.jpg"}\n'
    table.unlink()
    daemon.stop()
    done = tool(daemon, pile, table)
    assert done.returncode == 1 and "the daemon does not answer" in done.stderr
    assert table.read_text() == ""


def test_an_import_that_is_killed_makes_no_image_twice(start, tmp_path):
    """The command and the daemon are killed at random moments."""
    daemon, pile, table = start(), tmp_path / "pile", tmp_path / "map.jsonl"
    pile.mkdir()
    for n in range(60):
        (pile / f"{n}.jpg").write_bytes(SOURCES[n % 3])
    (pile / "bad.jpg").write_bytes(b"no picture")
    rng, store = random.Random(4), daemon.store
    for n in range(KILLS):
        client = subprocess.Popen(command("-o", f"server.root={store}", "store", "import", pile,
                                          "--map", table), stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0, 0.15))  # the moment is random
        if n % 3 == 2:
            daemon.kill()
            client.kill()
            daemon = start(store=store)
        client.kill()
        client.wait(slow(60))
    done = tool(daemon, pile, table)
    assert done.returncode == 1 and "1 failed" in done.stderr, done.stderr
    ids = read_map(table)
    assert len(ids) == 60
    assert eventually(lambda: not list((store / ".spool").iterdir()))
    assert daemon.stored() == sorted(ids.values()) and not list(store.glob(".quarantine/*"))
    assert run("-o", f"server.root={store}", "store", "check").returncode == 0
