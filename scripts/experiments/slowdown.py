"""Slowdown, the response time of a request over its time alone on an idle server, by load: an open
loop at shares of the capacity, with Poisson arrivals and with bursts.

Two oracles serve the same arrivals in a simulation without any overhead: SRPT knows the work of
each request and serves the least remaining first; processor sharing divides the cores equally. The
work of a request is its time alone, scaled so that the capacity is the one measured.
"""

import pathlib
import statistics

import quiet
import run
from job import Job
from machine import ROOT
from oracles import ORACLES
from plan import PAPER_SERVER, configurations

POLICIES = ("drain", "cohort", "mg1", "srpt", "dbr", "color", "seda", "thread-per-connection",
            "user-threads")
LOADS = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 1.0, 1.2, 1.4)
BURST_LOADS = (0.5, 0.7, 0.9, 1.2)  # those of LOADS that are measured with bursts too
ROUNDS = 3
CONNECTIONS, THREADS = 4000, 64  # THREADS: of thread-per-connection
GRAPH = (*PAPER_SERVER, "server.respond_after=store")
# The queue may grow for the whole run. Near its limit of connections the daemon closes idle ones.
PATIENT = [f"limits.connections={2 * CONNECTIONS}",
           *(f"limits.{name}_timeout={run.LONG}" for name in ("header", "body", "idle"))]
PASSES = 3                       # over all files, alone
LEAST = 1000                     # requests that tell the capacity
AT_ONCE = 256                    # connections that do: a queue's memory costs CPU time, too
BURST = (4, 0.1, 1.0)            # of bursts: factor of the rate, length and period in seconds
ARRIVALS = ("poisson", "bursts")
CLASSES = {"small half": (0, 0.5), "middle": (0.5, 0.9), "largest tenth": (0.9, 1)}  # by time alone
PERCENTILES = {"p50": 0.5, "p99": 0.99, "p99_9": 0.999}
KEYS = dict(zip(ORACLES, ("srpt", "ps")))  # of the raw results


# ---- measuring ----

def jobs(options, bench, number):
    chosen = [name for name in (POLICIES[:2] if options.quick else POLICIES)
              if not options.configurations or name in options.configurations]
    return [Job("slowdown", f"{configuration.name}, {arrivals}, {load:g}", 0, number,
                lambda configuration=configuration, arrivals=arrivals, load=load: measure(
                    options, bench, configuration, arrivals, load, number),
                bench.guess_s) for configuration in configurations(chosen)
            for arrivals in ARRIVALS for load in options.loads
            if arrivals == "poisson" or load in BURST_LOADS]


def _alone(options, bench):
    """Returns the capacity and the time alone of each file. They are measured once, undisturbed,
    and stored with the results."""
    found = quiet.once(options.out / "slowdown.json", "alone", lambda: _measure_alone(bench),
                       options.others / 100)
    return found["capacity_per_s"], found["alone_s"]


def _measure_alone(bench):
    with bench.daemon(ROOT / "conf" / "drain.ini", GRAPH) as daemon:
        bench.warm_up(daemon, AT_ONCE)
        report, _ = bench.load(daemon, "-c", AT_ONCE, "-n", max(bench.requests, LEAST))
        passes = [bench.load(daemon, "-c", 1, "--seed", seed)[1] for seed in range(PASSES)]
    times = {}
    for row in (row for rows in passes for row in rows):
        times.setdefault(pathlib.Path(row["file"]).name, []).append(
            float(row["done"]) - float(row["start"]))
    return {"capacity_per_s": run.summary(report, bench.server_cores())["responses_per_s"],
            "alone_s": {name: statistics.median(own) for name, own in sorted(times.items())}}


def _arguments(arrivals, rate, seconds):
    """Returns arguments of darkroom-load for this mean rate."""
    factor, length, period = BURST
    spikes = max(1, round(seconds / period)) if arrivals == "bursts" else 0
    base = rate / (1 + (factor - 1) * spikes * length / seconds)
    return ["--rate", f"{base:.3f}", "--poisson", *(
        word for i in range(spikes)
        for word in ("--spike", f"{factor}:{1000 * length:.0f}@{(i + 0.5) * period:.3f}s"))]


def measure(options, bench, configuration, arrivals, load, number, extra=(), graph=GRAPH,
            seconds=0):
    """Returns the slowdown of one run, and that of the oracles. extra, graph: settings of the
    daemon. seconds: of the run; 0 for that of the options."""
    capacity, alone = _alone(options, bench)
    rate, seconds = load * capacity, seconds or options.run_s or 2
    settings, connections = [*graph, *PATIENT, *extra], CONNECTIONS
    if configuration.policy == "thread-per-connection":
        settings.append(f"scheduler.threads={THREADS}")
        connections = THREADS
    with bench.daemon(configuration.path, settings) as daemon:
        bench.warm_up(daemon, min(16, connections))
        before = _events(daemon)
        report, rows = bench.load(daemon, "-c", connections, *_arguments(arrivals, rate, seconds),
                                  "-n", max(10, round(rate * seconds)), "--timeout", run.LONG,
                                  "--seed", number + 1)
        events = _events(daemon) - before
    if any(row["error"] for row in rows):
        raise run.Failed(f"{configuration.name} has not answered all requests at load {load:g}")
    due = [float(row["intended"]) for row in rows]
    services = [alone[pathlib.Path(row["file"]).name] for row in rows]
    times = [float(row["done"]) - at for row, at in zip(rows, due)]
    slowdowns = [time / service for time, service in zip(times, services)]
    bounds = class_bounds(alone.values())
    cores = bench.server_cores()
    scale = cores / capacity / (sum(alone.values()) / len(alone))
    work = [scale * service for service in services]
    return {"policy": configuration.policy, "arrivals": arrivals, "load": load,
            "rate_per_s": rate, "requests": len(rows), "bounds_ms": [1e3 * x for x in bounds],
            "cpu_ms_per_image": 1e3 * report["cpu_s"] / len(rows),
            "events_per_image": events / len(rows),
            "slowdown": by_class(slowdowns, services, bounds), "all": percentiles(slowdowns),
            **{key: by_class([(end - at) / own for end, at, own in zip(
                ORACLES[name](due, work, cores), due, work)], services, bounds)
               for name, key in KEYS.items()}}


def _events(daemon):
    """Returns the events that the stages of the main threads have handled. An event that is parked
    at a cutoff counts again when it goes on."""
    return sum(stage["events"] for stage in daemon.stats()["stages"] if stage["group"] == "main")


# ---- percentiles ----

def class_bounds(times):
    """Returns the times alone that bound the classes, but for the first and the last."""
    order = sorted(times)
    return [order[min(len(order) - 1, int(high * len(order)))]
            for _, high in list(CLASSES.values())[:-1]]


def by_class(slowdowns, services, bounds):
    """Returns the number and the percentiles of each class."""
    return {name: percentiles(value for value, service in zip(slowdowns, services)
                              if sum(service >= bound for bound in bounds) == place)
            for place, name in enumerate(CLASSES)}


def percentiles(slowdowns):
    """Returns the number and the percentiles. A percentile without a request beyond it is None: the
    99.9th needs 1,000 requests."""
    own = sorted(slowdowns)
    return {"n": len(own), **{
        key: own[int(share * len(own))] if len(own) * (1 - share) >= 1 else None
        for key, share in PERCENTILES.items()}}


def names(lines):
    """Returns the policies of these rows, and the oracles."""
    measured = {line["policy"] for line in lines}
    return [name for name in POLICIES if name in measured] + list(ORACLES)


def values(lines, name, arrivals, load, of_class, key):
    """Returns a percentile of each round, or [] if one of them has none. The oracles serve the
    arrivals of a round, which all policies had."""
    own = [line for line in lines if (line["arrivals"], line["load"]) == (arrivals, load)]
    first = min((line["policy"] for line in own), key=POLICIES.index, default=None)
    own = [line[KEYS.get(name, "slowdown")][of_class][key] for line in own
           if line["policy"] == (first if name in ORACLES else name)]
    return [] if None in own else own
