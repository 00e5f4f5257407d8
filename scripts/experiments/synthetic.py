"""The scheduler without images (tests/bench/synthetic), and threads without a scheduler
(tests/bench/threads): one bottleneck among many idle stages (Gordon 4.3), the cost of a hand-over
(Welsh 5.8.2), and the degradation of threads (Welsh, figure 3)."""

import json
import subprocess

import run
from job import Job
from machine import ROOT

PROGRAMS = ROOT / "build" / "plain" / "tests" / "bench"
WIDE = ROOT / "build" / "wide" / "tests" / "bench"  # for graphs of up to 100 stages

# Gordon's search engine: 15 stages, of which the middle one has most of the work.
STAGES, EVENTS, BOTTLENECK_US, IDLE_US = 15, 32, 200, 1
NORMAL, UNDERTHREADED, OVERTHREADED = "normal", "underthreaded", "overthreaded"
POLICIES = ("drain", "cohort", "mg1", "srpt", "dbr", "color", "seda")

RING = (1, 2, 3, 5, 8, 15, 30, 50, 100)  # stages
THREADS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
ROUNDS = 6  # of the ring and the threads


def _run(program, *arguments, folder=PROGRAMS):
    done = subprocess.run([folder / program, *map(str, arguments)], capture_output=True,
                          text=True)
    if done.returncode != 0:
        raise run.Failed(f"{program} ended with status {done.returncode}: {done.stderr}")
    report = json.loads(done.stdout)
    if not report.get("rounds", 1) or not report.get("tasks", 1):
        raise run.Failed(f"{program} has done nothing: the machine is too busy")
    return report


def cases():
    """Yields (name, policy, mode). Pools of one thread for all but the bottleneck are normal; with
    a thread per core for each they are overthreaded. Underthreaded, the stages with little work
    are called directly."""
    for policy in POLICIES:
        for mode in (NORMAL, UNDERTHREADED, *([OVERTHREADED] if policy == "seda" else [])):
            yield f"{policy}, {mode}", policy, mode


def bottleneck(options, bench, number):
    cores = bench.server_cores()
    return [Job("bottleneck", name, EVENTS, number,
                lambda policy=policy, mode=mode: {"policy": policy, "mode": mode} | _run(
                    "synthetic", policy, STAGES, int(mode == UNDERTHREADED), cores,
                    cores if mode == OVERTHREADED else 1, EVENTS, BOTTLENECK_US, IDLE_US,
                    options.synthetic_s), 1.3 * options.synthetic_s + 0.3)
            for name, policy, mode in cases()
            if not options.configurations or policy in options.configurations]


def ring(options, bench, number):
    """One event on one core: CPU time per hand-over."""
    seconds = min(1, options.synthetic_s)
    return [Job("ring", f"cohort, {stages} stages", 1, number,
                lambda stages=stages: {"stages": stages} | _run(
                    "synthetic", "cohort", stages, 0, 1, 1, 1, 0, 0, seconds, folder=WIDE),
                1.3 * seconds + 0.3) for stages in RING]


def threads(options, bench, number):
    seconds = min(2, options.synthetic_s)
    return [Job("threads", f"{count} threads", count, number,
                lambda count=count: _run("threads", count, seconds,
                                         ROOT / "data" / "sample" / "lake.jpg"),
                1.3 * seconds + 0.2) for count in THREADS]
