"""The parts of the experiment, and the parts that compare configurations in a closed loop."""

import math

import addresses
import architectures
import bursts
import caches
import cutoff
import overload
import simulation
import slowdown
import synthetic
from job import Job, closed
from machine import ROOT
from plan import NOT_TUNED, NOT_TUNED_ROUNDS, PRELOADS, configurations, place

# Claim 6 compares cohort scheduling with full batches and with batches of one event.
BATCHING = {"batches": (),
            "single events": ("scheduler.service=n-gated", "experiment.service_events=1")}

# Claim 5 compares these layouts under cohort scheduling. Replicas get requests in turns, as in the
# paper, and by load. Parts are computed from a profile of the same pictures.
SHARED, REPLICAS, PARTITIONS, BY_LOAD = "shared", "replicas", "partitions", "replicas by load"
SHARES = (2, 4, 8)
COHORTS = {"1": 1, "4": 4, "10": 10, "20": 20, "all": None}
# --brief: these parts, of some only the runs that a claim needs.
BRIEF_PARTS = "policies", "batching", "layouts", "overload", "cohorts"
BRIEF = {"cohorts": ("1", "all"), "layouts": (f"2 {REPLICAS}", f"2 {PARTITIONS}")}
STAGES = 4  # that the main threads visit, and so the most parts


def _policies(options, bench, number):
    cases = [configuration.case(workload, bool(options.configurations))
             for workload in options.connections
             for configuration in configurations(options.configurations)]
    return [Job("policies", case.name, case.workload, number,
                lambda case=case: _measure_policy(bench, case, number), bench.guess_s)
            for case in cases if case and (number < NOT_TUNED_ROUNDS
                                           or case.name not in NOT_TUNED)]


def _measure_policy(bench, case, number):
    return {"policy": case.policy,
            **closed(bench, case.name, case.path, case.workload, number, case.options,
                     PRELOADS.get(case.name, ""))}


def _batching(options, bench, number):
    path, workload = ROOT / "conf" / "cohort.ini", max(options.connections)
    return [Job("batching", name, workload, number,
                lambda name=name, extra=extra: closed(
                    bench, name, path, workload, number, ("experiment.counters=yes", *extra)),
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
        out[f"{count} {REPLICAS}"] = (*replicas, "experiment.distribution=round-robin")
        out[f"{count} {BY_LOAD}"] = (*replicas, "experiment.distribution=least-loaded")
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


# ---- cohorts ----

def _cohorts(options, bench, number):
    """Returns a run of each size of a cohort, a largest number of events of a visit (Larus 5.2)."""
    workload = max(options.connections)
    return [Job("cohorts", size, workload, number,
                lambda events=events: closed(
                    bench, "cohort", ROOT / "conf" / "cohort.ini", workload, number,
                    () if events is None else ("scheduler.service=n-gated",
                                               f"experiment.service_events={events}")),
                bench.guess_s) for size, events in COHORTS.items()]


# ---- all parts ----

# name: a function that returns the jobs of a round, and the most rounds that it needs.
PARTS = {"policies": (_policies, math.inf), "batching": (_batching, math.inf),
         "layouts": (_layouts, math.inf), "overload": (overload.jobs, 6),
         "cohorts": (_cohorts, math.inf), "slowdown": (slowdown.jobs, slowdown.ROUNDS),
         "cutoff": (cutoff.jobs, cutoff.ROUNDS), "bursts": (bursts.jobs, bursts.ROUNDS),
         "bottleneck": (synthetic.bottleneck, math.inf),
         "gates": (synthetic.gates, math.inf),
         "ring": (synthetic.ring, synthetic.ROUNDS),
         "threads": (synthetic.threads, synthetic.ROUNDS),
         "addresses": (addresses.jobs, addresses.ROUNDS),
         "architectures": (architectures.jobs, math.inf),
         "caches": (caches.jobs, caches.ROUNDS),
         "simulation": (simulation.jobs, simulation.ROUNDS),
         "cores": (simulation.cores_jobs, simulation.MANY_ROUNDS)}
COMPARED = "policies", "batching", "layouts"
# Measured by themselves: the caches are simulated, and need no night; the controllers need one.
OTHER_PARTS = "addresses", "architectures", "caches", "simulation", "cores"
USUAL_PARTS = tuple(name for name in PARTS if name not in OTHER_PARTS)


def jobs(options, bench, seed):
    """Returns all jobs, round by round, each part in random order. --quick has one round of most
    parts."""
    out = []
    for number in range(options.rounds):
        for name in options.parts:
            of_round, rounds = PARTS[name]
            if number < (1 if options.quick and name not in COMPARED else rounds):
                chosen = [each for each in of_round(options, bench, number)
                          if not options.brief or each.name in BRIEF.get(name, (each.name,))]
                out += sorted(chosen, key=lambda each: place(
                    seed, each.kind, each.name, each.workload, number))
    return out
