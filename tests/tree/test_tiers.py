"""The tiers of scripts/test: which share a commit draws, that shares are complete, and that each step
names something that exists. Nothing of them is run."""

import collections
import hashlib
import pathlib
import re
import shlex
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()
PART = re.compile(r", (\d+)/(\d+)$")


def script(*words):
    done = subprocess.run([ROOT / "scripts" / "test", *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def shares(*words):
    """Returns the names of the shares of a tier, by number."""
    found = [re.match(r"share (\d+) of \d+: (.*)", line) for line in script("--list", *words)]
    return {int(match[1]): match[2] for match in found if match}


def steps(*words):
    """Returns the commands of a tier, by the names of its steps."""
    lines = [line.rpartition(": ") for line in script("--list", *words) if not line.startswith("share ")]
    found = {name: [word for word in shlex.split(command) if not word.startswith("--basetemp=")]
             for name, _, command in lines if name}
    assert "build: gcc" in found
    return found


@pytest.fixture(scope="module")
def full():
    return steps("full")


def ids(count):
    return [hashlib.sha1(b"%d" % i).hexdigest() for i in range(count)]


def test_commits_draw_every_share_equally_often():
    """Two shares a commit, and the same ones each time."""
    every, commits = shares("full"), ids(2000)
    drawn = script("--draw", *commits)
    assert drawn == script("--draw", *commits)
    counts = collections.Counter(int(number) for line in drawn for number in line.split())
    assert sorted(counts) == sorted(every) and counts.total() == 2 * len(commits)
    for half in (True, False):
        some = [n for number, n in counts.items() if ("sanitizer" in every[number]) == half]
        assert min(some) > max(some) / 2


def test_the_default_tier_has_the_shares_of_its_commit():
    head = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True)
    if head.returncode:
        pytest.skip("the tree is no repository")
    (line,) = script("--draw", head.stdout.strip())
    assert [str(number) for number in shares()] == line.split()
    assert steps() == steps("quick") | steps(*line.split())


def test_quick_and_the_shares_are_the_full_tier(full):
    assert steps("quick") | steps(*map(str, shares("full"))) == full


def test_parts_are_complete(full):
    parts = collections.defaultdict(list)
    for name in full:
        if found := PART.search(name):
            parts[name.removesuffix(found[0])].append(found[0])
    assert len(parts) == 6
    for name, some in parts.items():
        assert set(some) == {f", {i}/{len(some)}" for i in range(1, len(some) + 1)}, name


def test_parts_of_the_experiment_are_complete(full):
    some = [word for i in "12" for word in full[f"experiment, {i}/2"] if word.startswith("tests/")]
    assert sorted(some) == sorted(str(path.relative_to(ROOT))
                                  for path in ROOT.glob("tests/experiment/test_*.py"))


def test_parts_of_the_unit_tests_are_complete():
    def programs(*settings):
        done = subprocess.run(["make", "-n", "check", *settings], cwd=ROOT, capture_output=True, text=True,
                              check=True)
        return re.search(r"^scripts/check-units (.*)", done.stdout, re.M)[1].split()
    some = programs("TESTS_PART=1~2") + programs("TESTS_PART=2~2")
    assert sorted(some) == sorted(programs()) and len(set(some)) == len(some) > 150


def test_every_policy_has_its_turn(full):
    rows = re.findall(r"^\tX\((\w+)\)", (ROOT / "src/policy/policies.h").read_text(), re.M)
    policies = {match[1] for name in full
                if (match := re.match(r"end to end: build/darkroomd, ([a-z0-9-]+)", name))}
    assert policies == {row.replace("_", "-") for row in rows}


def test_every_folder_of_python_tests_is_in_a_tier(full):
    tested = {pathlib.Path(word).parts[1] for tier in (full, steps("nightly")) for words in tier.values()
              for word in words if word.startswith("tests/")}
    assert {path.parent.name for path in ROOT.glob("tests/*/test_*.py")} <= tested


@pytest.mark.parametrize("tier", ["full", "nightly"])
def test_steps_name_what_exists(tier):
    for name, words in steps(tier).items():
        while words[0] == "env" or "=" in words[0] or words[0] == "setarch":
            words = words[3:] if words[0] == "setarch" else words[1:]
        program, *arguments = words
        assert shutil.which(program) or (ROOT / program).is_file(), (name, program)
        if program == "make":
            for target in [word for word in arguments if re.fullmatch("[a-z-]{4,}", word)]:
                assert re.search(rf"^{target}:", MAKEFILE, re.M), (name, target)
        for path in [word for word in arguments if word.startswith("tests/")]:
            assert (ROOT / path).exists(), (name, path)
