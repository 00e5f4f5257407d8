"""The scheduler without images (tests/bench/synthetic), and threads without a scheduler
(tests/bench/threads): Gordon's search engine with one bottleneck on one of three paths (4.3), cohorts
of up to 1,000 events (Larus and Parkes), the cost of a hand-over (Welsh 5.8.2), and the degradation
of threads (Welsh, figure 3)."""

import json
import subprocess

import run
from job import Job
from machine import LAKE, ROOT

PROGRAMS = ROOT / "build" / "plain" / "tests" / "bench"
WIDE = ROOT / "build" / "wide" / "tests" / "bench"  # for graphs of up to 100 stages

PARTS = "bottleneck", "gates", "ring", "threads"
# Gordon's search engine has 15 stages, of which the one that combines sets has most of the work.
STAGES, EVENTS, BOTTLENECK_US, IDLE_US = 15, 256, 200, 1
NORMAL, UNDERTHREADED, OVERTHREADED = "normal", "underthreaded", "overthreaded"
POLICIES = ("drain", "cohort", "mg1", "srpt", "dbr", "color", "user-threads", "seda")
QUANTA_US = (200, 1000, 5000)  # of a visit, with cohort: each stage gets its turn after that
TITLE, TERM, TERMS = range(3)  # his paths; the last one meets the bottleneck

# Cohorts: events of a visit. Each stage reads a table as large as a cache of the first level.
GATES = (1, 4, 10, 40, 100, 400, 1000)
COHORT_STAGES, COHORT_EVENTS, TABLE_KB = 8, 1000, 32

RING = {"cohort": (1, 2, 3, 5, 8, 15, 30, 50, 100),  # stages, all on one thread
        "seda": (2, 5, 10, 30, 50)}                  # with a pool of one thread for each
THREADS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
ROUNDS = 6  # of the ring and the threads


def program(name, *arguments, folder=PROGRAMS):
    done = subprocess.run([folder / name, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        raise run.Failed(f"{name} ended with status {done.returncode}: {done.stderr}")
    report = json.loads(done.stdout)
    if not report.get("rounds", 1) or not report.get("tasks", 1):
        raise run.Failed(f"{name} has done nothing: the machine is too busy")
    return report


def _synthetic(policy, stages, seconds, passed=0, threads=1, pool=1, events=1, bottleneck_us=0,
               idle_us=0, folder=PROGRAMS, **more):
    return program("synthetic", policy, stages, passed, threads, pool, events, bottleneck_us,
                   idle_us, seconds, *(f"{name}={value}" for name, value in more.items() if value),
                   folder=folder)


def cases():
    """Yields (name, policy, mode, quantum_us). Pools of one thread for all but the bottleneck are
    normal; with a thread per core for each they are overthreaded. Underthreaded, the stages with
    little work are called directly. With a quantum no stage keeps a core for longer, which shares
    the cores among the stages that have work in equal parts."""
    for policy in POLICIES:
        for mode in (NORMAL, UNDERTHREADED, *([OVERTHREADED] if policy == "seda" else [])):
            yield f"{policy}, {mode}", policy, mode, 0
    for quantum_us in QUANTA_US:
        yield quantum(quantum_us), "cohort", NORMAL, quantum_us


def quantum(us):
    return f"cohort, at most {us / 1000:g} ms"


def bottleneck(options, bench, number):
    cores = bench.server_cores()
    return [Job("bottleneck", name, EVENTS, number,
                lambda policy=policy, mode=mode, us=us: {"policy": policy, "mode": mode}
                | _synthetic(policy, STAGES, options.synthetic_s, int(mode == UNDERTHREADED), cores,
                             cores if mode == OVERTHREADED else 1, EVENTS, BOTTLENECK_US, IDLE_US,
                             paths=1, quantum_us=us),
                1.3 * options.synthetic_s + 0.3)
            for name, policy, mode, us in cases()
            if not options.configurations or policy in options.configurations]


def gates(options, bench, number):
    """Policy cohort on one core: CPU time per event by the largest number of events of a visit."""
    seconds = min(2, options.synthetic_s)
    return [Job("gates", str(gate), COHORT_EVENTS, number,
                lambda gate=gate: _synthetic(
                    "cohort", COHORT_STAGES, seconds, events=COHORT_EVENTS, gate=gate,
                    table_kb=TABLE_KB), 1.3 * seconds + 0.3) for gate in GATES]


def ring(options, bench, number):
    """One event: CPU time and time per hand-over."""
    seconds = min(1, options.synthetic_s)
    return [Job("ring", f"{policy}, {stages} stages", 1, number,
                lambda policy=policy, stages=stages: {"policy": policy, "stages": stages}
                | _synthetic(policy, stages, seconds, folder=WIDE),
                1.3 * seconds + 0.3) for policy, sizes in RING.items() for stages in sizes]


def threads(options, bench, number):
    seconds = min(2, options.synthetic_s)
    return [Job("threads", f"{count} threads", count, number,
                lambda count=count: program("threads", count, seconds, LAKE),
                1.3 * seconds + 0.2) for count in THREADS]
