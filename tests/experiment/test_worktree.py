"""Committed results come from a committed tree."""

import os
import shutil
import subprocess

import pytest
import worktree


@pytest.fixture
def tree(tmp_path):
    """A repository with one commit and a directory for results."""
    (tmp_path / "program.c").write_text("int main(void) { return 0; }\n")
    (tmp_path / "data" / "results").mkdir(parents=True)
    for command in (["init", "-q"], ["add", "."],
                    ["-c", "user.name=n", "-c", "user.email=e@localhost", "commit", "-qm", "one"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    return tmp_path


def results(tree):
    return [tree / "data" / "results" / "raw.jsonl"]


def test_a_clean_tree_may_write_results(tree):
    assert worktree.refusal(results(tree), tree) == ""


@pytest.mark.parametrize("name", ["program.c", "new file.c"])
def test_changed_and_untracked_files_prevent_results(tree, name):
    (tree / name).write_text("changed\n")
    start = f"refusing to write data/results/raw.jsonl: uncommitted changes in {name};"
    assert worktree.refusal(results(tree), tree).startswith(start)


def test_files_elsewhere_may_be_written_any_time(tree):
    (tree / "program.c").write_text("changed\n")
    assert worktree.refusal([tree / "raw.jsonl", "/dev/null"], tree) == ""


def test_results_of_the_same_run_do_not_count(tree):
    results(tree)[0].write_text("{}\n")
    assert worktree.refusal(results(tree), tree) == ""


def test_many_changes_are_shortened(tree):
    for i in range(5):
        (tree / f"{i}.c").write_text("changed\n")
    assert "0.c, 1.c, 2.c and 2 more;" in worktree.refusal(results(tree), tree)


def test_the_experiment_writes_no_results_of_a_changed_tree(tree):
    """It refuses before it measures, or makes a report of old measurements."""
    experiment = tree / "scripts" / "experiments"
    shutil.copytree(worktree.ROOT / "scripts" / "experiments", experiment,
                    ignore=shutil.ignore_patterns("__pycache__"))
    out = tree / "data" / "results" / "new"
    done = subprocess.run(["/usr/bin/python3", experiment, "--report", "--out", out],
                          capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    assert done.returncode == 1
    assert done.stderr.startswith(
        "scripts/experiment: refusing to write data/results/new/raw.jsonl: uncommitted changes in ")
    assert not out.exists()


def test_results_end_a_program_in_a_changed_tree(tree):
    with worktree.results(results(tree)[0], tree) as file:
        file.write("1\n")
    (tree / "program.c").write_text("changed\n")
    with pytest.raises(SystemExit, match="refusing to write"):
        worktree.results(results(tree)[0], tree)
    assert results(tree)[0].read_text() == "1\n"


def test_every_experiment_opens_its_results_so():
    """scripts/experiment itself keeps earlier lines, and asks refusal()."""
    directory = worktree.ROOT / "scripts" / "experiments"
    own = {"worktree.py", "__main__.py"}
    for path in directory.glob("*.py"):
        assert path.name in own or '.open("a")' not in path.read_text(), path.name
    assert "worktree.refusal" in (directory / "__main__.py").read_text()
