"""The scheduler in virtual time: one seed has one execution, and nothing escapes the virtual machine."""

import hashlib
import os
import pathlib
import re
import subprocess
import xml.etree.ElementTree

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORLD = ROOT / "build/plain/world"
# The other builds of scripts/test.
VARIANTS = {"asan": ["SAN=address,undefined"], "tsan": ["SAN=thread"],
            "clang-plain": ["CC=clang", "OPT=-O0"]}
POLICIES = "drain", "cohort", "mg1", "srpt", "dbr", "color", "seda", "user-threads"
TESTS = "test_graph", "test_schedule_switch", "test_stage_groups"


def make(*settings):
    subprocess.run(["make", "-s", f"-j{os.cpu_count()}", *settings, "world"], cwd=ROOT, check=True)


@pytest.fixture(scope="module", autouse=True)
def built():
    make()


def run(program, *arguments, filter=None, **world):
    """Runs a program in the world. Returns it when it has ended."""
    environ = dict(os.environ, WORLD=" ".join(f"{k}={v}" for k, v in world.items()),
                   **({"WORLD_TESTS": filter} if filter else {}))
    return subprocess.run(["setarch", "-R", program, *arguments], env=environ, timeout=300,
                          capture_output=True, text=True, check=False)


def trace(file, policy, *, world=WORLD, threads=4, pool=2, seconds=0.2, random=1, **settings):
    """Runs a ring of five stages with 16 events. Returns the hash of its trace."""
    done = run(world / "synthetic", policy, "5", "0", str(threads), str(pool), "16", "100", "50",
               str(seconds), f"random={random}", f"trace={file}", **settings)
    assert done.returncode == 0 and "Sanitizer" not in done.stderr, done.stderr
    data = file.read_bytes()
    assert len(data) > 10000
    return hashlib.sha256(data).hexdigest()


def test_costs_take_the_time_that_is_set(tmp_path):
    """An event that goes round alone: twice the cost of a visit lengthens each hand-over by it."""
    def hop_ns(**costs):
        done = run(WORLD / "synthetic", "drain", "5", "0", "1", "1", "1", "0", "0", "0.05",
                   cpus=1, away=0, **costs)
        return 1e9 / 5 / float(re.search(r'"rounds_per_s":([\d.]+)', done.stdout)[1])
    assert hop_ns(visit=1000) - hop_ns(visit=0) == pytest.approx(1000, rel=0.01)


@pytest.mark.parametrize("cost, wakes", [("doze_wake", 2), ("wake", 0), ("nap", 0.5)])
def test_a_rare_event_meets_cpus_that_doze(cost, wakes):
    """The generator and a worker wake up. A nap has a half of its cost after it."""
    def p50_us(us):
        done = run(WORLD / "synthetic", "drain", "5", "0", "1", "1", "10", "100", "50", "0.5",
                   "random=1", "rate=100", cpus=2, **{cost: 1000 * us})
        return float(re.search(r'"p50_us":([\d.]+)', done.stdout)[1])
    assert p50_us(200) - p50_us(100) == pytest.approx(100 * wakes, abs=5)


@pytest.mark.parametrize("policy, cpus", [*((policy, 16) for policy in POLICIES), ("drain", 64)])
def test_looks_in_vain_are_skipped_without_a_difference(policy, cpus):
    """At half load, where workers search most of the time. On 64 cores many of them see a push, and
    each is late by its own time. No CPU dozes: then each execution has its own percentiles."""
    def times(skip):
        done = run(WORLD / "synthetic", policy, "5", "0", str(cpus), "3", "4000", "400", "150",
                   "0.1" if cpus == 16 else "0.02", "random=1", "clocked=1", f"rate={500 * cpus}",
                   cpus=cpus, skip=skip, doze=10**9, report=1)
        assert done.returncode == 0, done.stderr
        return [float(re.search(rf'"{name}":([\d.]+)', done.stdout)[1])
                for name in ("rounds_per_s", "p50_us", "p99_us")], calls(done)["idle_found"]
    (figures, found), (expected, expected_found) = times(1), times(0)
    assert figures == pytest.approx(expected, rel=0.05)
    assert found == pytest.approx(expected_found, rel=0.2)


def test_arrivals_and_work_do_not_depend_on_the_policy(tmp_path):
    """An open loop below its capacity: the same number of events, and the same CPU time."""
    records = tmp_path / "records"
    records.write_text("12 lake.jpg 100 200 300 200 100\n34 sea.jpg 10 20 30 20.5 10\n")
    seen = set()
    for policy in POLICIES:
        done = run(WORLD / "synthetic", policy, "5", "0", "4", "2", "4000", "0", "0", "0.5",
                   "random=1", "clocked=1", "rate=2000", f"records={records}")
        assert done.returncode == 0 and '"refused":0,' in done.stdout
        seen.add(int(re.search(r'"rounds":(\d+)', done.stdout)[1]))
        assert float(re.search(r'"p50_us":([\d.]+)', done.stdout)[1]) < 2000
    assert max(seen) - min(seen) < 10 and 950 < min(seen) < 1050


def test_arrivals_from_several_threads_are_as_many():
    """At half load, in all layouts. The workers of each part and group are enough for it."""
    for settings in ["sources=1"], ["sources=4"], ["sources=4", "replicas=2"], ["groups=1"]:
        done = run(WORLD / "synthetic", "cohort", "5", "0", "8", "1", "4000", "100", "100", "0.5",
                   "random=1", "rate=8000", *settings, cpus=8)
        assert 3800 < int(re.search(r'"rounds":(\d+)', done.stdout)[1]) < 4200, settings
        assert '"refused":0,' in done.stdout


@pytest.mark.parametrize("settings, is_paid", [((), True), (("replicas=2",), False),
                                               (("replicas=2", "steal=1"), True)])
def test_an_event_waits_for_its_data_on_another_node(settings, is_paid):
    done = run(WORLD / "synthetic", "cohort", "5", "0", "4", "1", "6", "100", "50", "0.1",
               "random=1", *settings, cpus=4, nodes=2, far=1000, report=1)
    assert (float(re.search(r"^cost far \S+ (\S+)", done.stderr, re.M)[1]) > 0) == is_paid


def seams(*files):
    sources = "".join(path.read_text() for file in files or ["seams_*.c"]
                      for path in ROOT.glob(f"tests/world/{file}"))
    return set(re.findall(r"^SEAM\([^,]*,\s*(\w+),", sources, re.M))


def calls(done):
    return {name: int(count) for name, count in
            re.findall(r"^seam (\w+) (\d+)$", done.stderr, re.M)}


@pytest.mark.parametrize("policy", POLICIES)
def test_a_seed_has_one_execution(policy, tmp_path):
    first = trace(tmp_path / "a", policy, jitter=100)
    assert trace(tmp_path / "b", policy, jitter=100) == first
    assert trace(tmp_path / "b", policy, jitter=100, seed=2) != first
    assert trace(tmp_path / "b", policy, jitter=100, random=2) != first


def test_a_seed_of_the_daemon_has_one_execution():
    """Each message has its time, also those of the daemon's own log."""
    def messages(seed):
        done = subprocess.run([WORLD / "daemon", "--seed", str(seed), "--count", "1", "--loud"], timeout=300,
                              capture_output=True, text=True, check=True)
        return done.stderr
    first = messages(5)
    assert len(first.splitlines()) > 30
    assert messages(5) == first
    assert messages(6) != first


@pytest.mark.parametrize("variant", VARIANTS)
def test_compilers_and_sanitizers_have_the_same_execution(variant, tmp_path):
    """But for user-threads: how many stages a thread passes depends on the stack that it has left."""
    make(*VARIANTS[variant])
    other = ROOT / "build" / variant / "world"
    for policy in POLICIES[:-1]:
        # More threads than CPUs, so that the kernel's part is compared as well.
        expected = trace(tmp_path / "a", policy, threads=6, cpus=4, jitter=100)
        assert trace(tmp_path / "b", policy, world=other, threads=6, cpus=4,
                     jitter=100) == expected, policy


@pytest.mark.parametrize("policy", ["drain", "cohort", "mg1", "srpt", "dbr", "seda"])
def test_policies_have_the_order_of_their_paper(policy, tmp_path):
    """The check of each policy also rejects the trace of another one."""
    for chosen, holds in ((policy, True), ("srpt" if policy == "cohort" else "cohort", False)):
        file = tmp_path / chosen
        trace(file, chosen, threads=1, pool=1, cpus=1, seconds=3)
        pools = ["5" if chosen == "seda" else "1", "5"] if policy == "seda" else []
        done = subprocess.run([WORLD / "orders", policy, file, *pools], check=False)
        assert (done.returncode == 0) == holds


def test_a_seed_is_drawn_by_the_commands_of_the_book(tmp_path):
    """Each of the eight simulated cores has a lane, and each stage its colour."""
    book = (ROOT / "src/sched/darkroom-scheduling.7").read_text()
    commands = re.search(r'^\$ (WORLD=".*?)^\.Ed', book, re.M | re.S)[1]
    commands = commands.replace("\\e\n", "\\\n").replace("\n$ ", "\n")
    for file in "seed.trace", "seed.svg":
        commands = commands.replace(file, str(tmp_path / file))
    done = subprocess.run(["sh", "-ec", commands], cwd=ROOT, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    drawn = xml.etree.ElementTree.parse(tmp_path / "seed.svg")
    texts = [text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert {f"core {i}" for i in range(8)} <= set(texts)
    assert len([text for text in texts if re.match(r"s10\d: \d+ visits", text)]) == 5


@pytest.mark.parametrize("policy, holds", [("user-threads", True), ("drain", False)])
def test_a_user_thread_stays_on_its_core(policy, holds, tmp_path):
    trace(tmp_path / policy, policy)
    done = subprocess.run([WORLD / "orders", "user-threads", tmp_path / policy], check=False)
    assert (done.returncode == 0) == holds


def test_more_cores_do_more_work(tmp_path):
    """Work of 300 us in a round: a core does at most 3,333 rounds in a second."""
    for cpus, seconds in (1, "0.5"), (4, "0.5"), (16, "0.5"), (256, "0.05"):
        done = run(WORLD / "synthetic", "drain", "5", "0", str(cpus), "1",
                   str(max(64, 4 * cpus)), "100", "50", seconds,
                   "random=1", cpus=cpus)
        rate = float(re.search(r'"rounds_per_s":([\d.]+)', done.stdout)[1])
        assert 0.9 * cpus / 300e-6 < rate < 1.05 * cpus / 300e-6


def test_each_seam_is_called(tmp_path):
    """Otherwise a function has moved or become static, and costs nothing any more."""
    declared, seen = seams(), set()
    for policy in POLICIES:
        done = run(WORLD / "synthetic", policy, "5", "0", "4", "2", "16", "100", "50", "0.05",
                   "clocked=1", f"trace={tmp_path / 'trace'}", report=1)
        seen |= {name for name, count in calls(done).items() if count}
    done = run(WORLD / "test_stage_groups", report=1, atomic=20, pct=1000)
    assert done.returncode == 0, done.stdout + done.stderr
    seen |= {name for name, count in calls(done).items() if count}
    assert set(calls(done)) == declared
    assert declared - seen == set()


def plain(symbol):
    """Returns the name in the source: without versions, and without checks of bounds."""
    name = re.sub(r"@.*|^__isoc\d+_", "", symbol)
    return re.sub(r"^__(\w+)_chk$", r"\1", name)


def allowed_symbols(file):
    lines = (ROOT / "tests/world" / file).read_text().splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def undefined(program):
    done = subprocess.run(["nm", "-D", "--undefined-only", WORLD / program], check=True,
                          capture_output=True, text=True)
    return {plain(line.split()[1]) for line in done.stdout.splitlines()}


def test_no_other_function_of_libc_is_called():
    """A new call of libc may wait or take time: then it needs a seam."""
    used = set.union(*(undefined(program) for program in ("synthetic", *TESTS)))
    assert used - allowed_symbols("allowed_symbols") - seams() == set()


def test_the_daemon_calls_no_other_function():
    """As above. A function that is not called any more is not allowed any more."""
    own = allowed_symbols("allowed_symbols_of_daemon")
    used = undefined("daemon") - allowed_symbols("allowed_symbols") - seams("*.c")
    assert used == own


def test_the_store_calls_no_other_function_of_libc():
    """A new call may reach a file: then the disk in memory needs it."""
    def symbols(files, kinds):
        done = subprocess.run(["nm", "-A", *files], check=True, capture_output=True, text=True)
        return {line.split()[-1] for line in done.stdout.splitlines() if line.split()[-2] in kinds}

    objects = sorted((ROOT / "build/plain/stages/store").glob("*.o"))
    used = symbols(objects, "U") - symbols([ROOT / "build/plain/libdarkroom.a"], "TDBRV")
    assert {plain(name) for name in used - seams("*_seams.c", "seams_descriptors.c")} == allowed_symbols(
        "allowed_symbols_of_store")
