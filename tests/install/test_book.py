"""What the books say about adding a policy, a stage, an operation and a key is true word by word.

A copy of the tree gets the files and the rows that src/README.md and stages/README.md show. It is
built once, and its daemon uses all of them.
"""

import io
import os
import pathlib
import re
import shutil
import subprocess

import pytest
from PIL import Image, ImageChops, ImageOps, ImageStat

import darkroom
import openapi
import pictures
from control import ctl

ROOT = pathlib.Path(__file__).resolve().parents[2]
VARIANTS = ["variant.plain.operations=scale 64x64 inside",
            "variant.turned.operations=scale 64x64 inside, negative"]

BLOCK = re.compile(r"```c\n(.*?)```\n", re.S)
FILE = re.compile(r"file is\s+`([^`]+)`:\s*$")
FIRST = re.compile(r"first of\s+`([^`]+)`\s+in\s+`([^`]+)`:\s*$")
PLACE = re.compile(r"(behind|in\s+front\s+of)\s+`([^`]+)`\s+in\s+`([^`]+)`:\s*$")


def chapter(book, title):
    text = (ROOT / book).read_text()
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", text, re.M | re.S)[1]


def insert(path, mark, code, is_behind):
    """Inserts lines behind or in front of the one line that has the mark."""
    lines = path.read_text().splitlines(keepends=True)
    (at,) = [i for i, line in enumerate(lines) if mark in line]
    lines.insert(at + is_behind, code)
    path.write_text("".join(lines))


def follow(tree, text):
    """Does what a chapter says. Returns the number of new files and of inserted pieces."""
    files = pieces = 0
    for block in BLOCK.finditer(text):
        before, code = text[:block.start()], block[1]
        if found := FILE.search(before):
            assert not (tree / found[1]).exists()
            (tree / found[1]).write_text(code)
            files += 1
            continue
        if found := FIRST.search(before):
            name, path = found[1], tree / found[2]
            mark = f"#define {name}(X)" if name.startswith("EACH_") else f"{name} ="
            insert(path, mark, code, True)
        else:
            found = PLACE.search(before)
            assert found, before[-200:]
            insert(tree / found[3], found[2], code, found[1] == "behind")
        pieces += 1
    return files, pieces


def copy_tree(tree):
    for name in "Makefile", "src", "stages", "conf":
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name)
        else:
            shutil.copy(source, tree / name)


@pytest.fixture(scope="module")
def binary(tmp_path_factory):
    tree = tmp_path_factory.mktemp("book")
    copy_tree(tree)
    assert follow(tree, chapter("src/README.md", "Adding a policy")) == (1, 1)
    assert follow(tree, chapter("src/README.md", "Adding a key")) == (0, 2)  # row and use
    assert follow(tree, chapter("stages/README.md", "Adding a stage")) == (1, 1)
    assert follow(tree, chapter("stages/README.md", "Adding an operation")) == (1, 1)
    done = subprocess.run(["make", "-s", f"-j{os.cpu_count()}", "OPT=-O0", "build/plain/darkroomd"],
                          cwd=tree, capture_output=True, text=True, timeout=darkroom.slow(600))
    assert done.returncode == 0, done.stderr
    for name in "backward.c", "tidy.c", "operation_negative.c", "conf_rows.h", "respond.c":
        assert f"{name}:" not in done.stderr  # no warning
    return tree / "build/plain/darkroomd"


@pytest.fixture(scope="module")
def daemon(binary, tmp_path_factory):
    """A daemon that uses everything that was added."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(openapi, "COMMON_FIELDS", {*openapi.COMMON_FIELDS, "x-robots-tag"})
        daemon = darkroom.Daemon(tmp_path_factory.mktemp("store"), *VARIANTS,
                                 "stage.tidy.queue_max=7", "server.robots=noindex",
                                 policy="backward", binary=binary)
        yield daemon
        daemon.stop()


def test_a_policy_by_the_book_serves(daemon):
    daemon.image(pictures.photo_jpeg(200, 100, 1))
    assert daemon.get("/stats").json()["scheduler"]["policy"] == "backward"


def test_an_operation_by_the_book_makes_its_picture(daemon):
    image = daemon.image(pictures.photo_jpeg(200, 100, 2))
    plain, turned = (Image.open(io.BytesIO(daemon.fetch(image, name)))
                     for name in ("plain", "turned"))
    assert turned.size == plain.size == (64, 32)
    error = ImageStat.Stat(ImageChops.difference(ImageOps.invert(plain), turned)).mean
    assert max(error) < 4, error


def test_a_key_by_the_book_has_its_effect(daemon):
    assert daemon.get("/healthz")["x-robots-tag"] == "noindex"
    done = ctl(daemon, "set", "server.robots", "nofollow")
    assert done.returncode == 0, done
    assert daemon.get("/healthz")["x-robots-tag"] == "nofollow"


def test_a_stage_by_the_book_has_its_section_and_its_statistics(daemon):
    stages = {stage["name"] for stage in daemon.get("/stats").json()["stages"]}
    assert "tidy" in stages


def test_what_was_added_is_in_the_help(binary):
    def says(option):
        return subprocess.run([binary, option], capture_output=True, text=True, check=True).stdout
    assert "backward" in says("--help")
    keys = says("--keys")
    for line in ("disk_write tidy stats", "negative                   each sample", "robots ="):
        assert line in keys, line
