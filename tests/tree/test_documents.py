"""The documents point at files and functions that exist."""

import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests" / folder) for folder in ("install", "http")]

import test_commands  # noqa: E402 (after the path)

DOCUMENTS = [path for path in sorted(ROOT.rglob("*.md"))
             if not {"build", ".pytest_cache"} & set(path.relative_to(ROOT).parts)]
MAN_PAGES = [path for path in sorted(ROOT.rglob("darkroom*.[1578]"))
             if "build" not in path.relative_to(ROOT).parts]
CELL = re.compile(r"`([^`]+)`")


def name(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_links_lead_to_files(document):
    targets = re.findall(r"\]\(([^)#\s]+)\)", document.read_text())
    missing = [target for target in targets
               if "://" not in target and not (document.parent / target).exists()]
    assert not missing


def rows():
    """Returns (files, functions) of each step of the trace in src/README.md."""
    text = (ROOT / "src" / "README.md").read_text()
    lines = [line.split("|") for line in text.splitlines() if re.match(r"\| \d+ \|", line)]
    return [(CELL.findall(line[3]), CELL.findall(line[4])) for line in lines]


def test_trace_of_an_upload_names_functions_in_their_files():
    steps = rows()
    assert len(steps) >= 20
    for files, functions in steps:
        text = "".join((ROOT / file).read_text() for file in files)
        for function in functions:
            assert re.search(rf"^[a-z][^;\n]*\b{function}\([^;]*?\)\n{{", text, re.M | re.S), (
                function, files)


def test_readme_is_short():
    assert (ROOT / "README.md").stat().st_size <= 9 * 1024


def test_manual_has_its_pages():
    """README.md lists every man page that is in the tree."""
    readme = (ROOT / "README.md").read_text()
    assert MAN_PAGES and all(name(page) in readme for page in MAN_PAGES)


def test_every_command_of_a_document_has_a_class():
    """install/test_commands.py runs them."""
    looked_at = {*test_commands.PAGES, *test_commands.READMES}
    assert not {name(path) for path in (*DOCUMENTS, *MAN_PAGES)
                if not name(path).startswith("data/results/")} - looked_at
    test_commands.check_table(test_commands.all_blocks())
