"""Packages for the tests in this folder."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

sys.dont_write_bytecode = True
sys.path += [os.path.dirname(__file__), os.path.join(os.path.dirname(__file__), "../http")]

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The last commit of version 0.1, whose store has another layout.
OLD = "394fd5bea51cabec79008c5529e1f429d9fe9217"


def in_tree(tree, *words):
    return subprocess.run(words, cwd=tree, capture_output=True, text=True, timeout=1800)


@pytest.fixture(scope="session")
def package():
    done = in_tree(ROOT, "make", "-s", "deb")
    assert done.returncode == 0, done.stdout + done.stderr
    return next((ROOT / "build/deb").glob("darkroom_*.deb"))


@pytest.fixture(scope="session")
def old_package(tmp_path_factory):
    """Returns the package of version 0.1 with the number 0.0.9, as the present one has 0.2.0."""
    tree = tmp_path_factory.mktemp("old")
    archive = subprocess.run(["git", "-C", ROOT, "archive", OLD], capture_output=True, timeout=60)
    if archive.returncode:
        pytest.skip(f"git has no commit {OLD[:12]}")
    subprocess.run(["tar", "-C", tree, "-x"], input=archive.stdout, check=True, timeout=60)
    for name, pattern in (("Makefile", r"^VERSION := .*$"),
                          ("conf/debian/changelog", r"(?<=^darkroom \()[^)]*")):
        text, n = re.subn(pattern, "VERSION := 0.0.9" if name == "Makefile" else "0.0.9",
                          (tree / name).read_text(), count=1, flags=re.M)
        assert n == 1, name
        (tree / name).write_text(text)
    done = in_tree(tree, "make", "-s", "deb")  # lintian of today may find something
    built = list((tree / "build/deb").glob("darkroom_*.deb"))
    assert len(built) == 1, done.stdout + done.stderr
    kept = tmp_path_factory.mktemp("package") / built[0].name
    shutil.move(built[0], kept)
    shutil.rmtree(tree)
    return kept
