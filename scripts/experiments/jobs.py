"""The parts of the experiment, and the parts that compare configurations in a closed loop."""

import math
import subprocess
import time

import bursts
import caches
import curves
import overload
import run
import synthetic
from job import Job, closed, linked, sample
from machine import ROOT
from plan import PRELOADS, configurations, place

# Claim 6 compares cohort scheduling with full batches and with batches of one event.
BATCHING = {"batches": (),
            "single events": ("scheduler.service=n-gated", "experiment.service_events=1")}

# Claim 5 compares these layouts under cohort scheduling. Replicas get requests in turns, as in the
# paper, and by load. Parts are computed from a profile of the same pictures.
SHARED, REPLICAS, PARTITIONS, BY_LOAD = "shared", "replicas", "partitions", "replicas by load"
SHARES = (2, 4, 8)
STAGES = 4  # that the main threads visit, and so the most parts


def _policies(options, bench, number):
    cases = [configuration.case(workload, bool(options.configurations))
             for workload in options.connections
             for configuration in configurations(options.configurations)]
    return [Job("policies", case.name, case.workload, number,
                lambda case=case: _measure_policy(bench, case, number), bench.guess_s)
            for case in cases if case]


def _measure_policy(bench, case, number):
    return {"policy": case.policy,
            **closed(bench, case.name, case.path, case.workload, number, case.options,
                     PRELOADS.get(case.name, ""))}


def _batching(options, bench, number):
    path, workload = ROOT / "conf" / "cohort.ini", max(options.connections)
    return [Job("batching", name, workload, number,
                lambda name=name, extra=extra: closed(
                    bench, name, path, workload, number, ("scheduler.counters=yes", *extra)),
                bench.guess_s)
            for name, extra in BATCHING.items()]


# ---- layouts ----

def _layouts(options, bench, number):
    """Returns jobs for the shared layout, and for replicas and parts on up to all cores, at least
    two."""
    workload, out = max(options.connections), {SHARED: ()}
    for count in SHARES:
        if count > max(2, bench.server_cores()):
            continue
        replicas = ("layout.mode=replicate", f"layout.replicas={count}")
        out[f"{count} {REPLICAS}"] = (*replicas, "layout.distribution=round-robin")
        out[f"{count} {BY_LOAD}"] = (*replicas, "layout.distribution=least-loaded")
        if count <= STAGES:
            out[f"{count} {PARTITIONS}"] = ("layout.mode=partition", f"layout.parts={count}")
    return [Job("layouts", name, workload, number,
                lambda name=name, extra=extra: _measure_layout(
                    options, bench, name, extra, workload, number), bench.guess_s)
            for name, extra in out.items()]


def _profile(options, bench, workload):
    """Returns the path of a profile. It is measured once, in a separate run, and stored with the
    results."""
    path = (options.out / "profile.ini").resolve()
    if not path.exists():
        with bench.daemon(ROOT / "conf" / "cohort.ini") as daemon:
            bench.load(daemon, "-c", workload, "--seed", 1)
            path.write_text(daemon.profile())
    return path


def _measure_layout(options, bench, name, extra, workload, number):
    if PARTITIONS in name:
        extra += (f"layout.profile={_profile(options, bench, workload)}",)
    return closed(bench, name, ROOT / "conf" / "cohort.ini", workload, number, extra)


# ---- the script that the paper's server replaced ----

def _baseline(options, bench, number):
    return [Job("baseline", "imagemagick", 0, number,
                lambda: _measure_baseline(options, bench, number), 0.7 * options.baseline)]


def _measure_baseline(options, bench, number):
    """Measures the script, and the daemon with one connection, on the same sample."""
    directory = linked(bench, sample(options.files, options.baseline))
    files = sorted(directory.iterdir())
    size = sum(path.stat().st_size for path in files)
    before, start = run.children_cpu_s(), time.monotonic()
    done = subprocess.run([ROOT / "scripts" / "experiments" / "imagemagick.sh",
                           linked(bench, []) / "out", *files], capture_output=True, text=True)
    seconds, cpu = time.monotonic() - start, run.children_cpu_s() - before
    if done.returncode != 0:
        raise run.Failed(f"imagemagick.sh: {done.stderr}")
    with bench.daemon(ROOT / "conf" / "drain.ini") as daemon:
        report, rows = bench.load(daemon, "-c", 1, "--seed", number + 1, files=directory)
    ours = run.summary(report, rows, bench.server_cores())
    return {"images": len(files), "sample_bytes": size, "makespan_s": seconds,
            "responses_per_s": len(files) / seconds, "input_bytes_per_s": size / seconds,
            "cpu_s": cpu, "cpu_ms_per_image": 1000 * cpu / len(files),
            "daemon": {name: ours[name]
                       for name in ("responses_per_s", "input_bytes_per_s", "cpu_ms_per_image")}}


# ---- all parts ----

# name: a function that returns the jobs of a round, and the most rounds that it needs.
PARTS = {"policies": (_policies, math.inf), "batching": (_batching, math.inf),
         "layouts": (_layouts, math.inf), "overload": (overload.jobs, 6),
         "baseline": (_baseline, 4), "cohorts": (curves.cohorts, math.inf),
         "curves": (curves.curves, curves.ROUNDS), "bursts": (bursts.jobs, bursts.ROUNDS),
         "bottleneck": (synthetic.bottleneck, math.inf),
         "ring": (synthetic.ring, synthetic.ROUNDS),
         "threads": (synthetic.threads, synthetic.ROUNDS),
         "caches": (caches.jobs, caches.ROUNDS)}
COMPARED = "policies", "batching", "layouts"
QUICK_PARTS = tuple(name for name in PARTS if name != "caches")


def jobs(options, bench, seed):
    """Returns all jobs, round by round, each part in random order. --quick has one round of most
    parts."""
    out = []
    for number in range(options.rounds):
        for name in options.parts:
            of_round, rounds = PARTS[name]
            if number < (1 if options.quick and name not in COMPARED else rounds):
                out += sorted(of_round(options, bench, number), key=lambda each: place(
                    seed, each.kind, each.name, each.workload, number))
    return out
