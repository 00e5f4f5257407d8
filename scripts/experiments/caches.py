"""Misses of the caches by stage, simulated by callgrind: they need no counters of the processor,
and do not depend on what other programs do.

One worker runs on simulated caches of one core. The kernels are those for AVX2, because valgrind
has no AVX-512. There is no prefetcher, and no other core.
"""

import pathlib
import re
import subprocess
import tempfile

import job
import run
from machine import ROOT

# Sizes, ways and lines of an L1 for instructions, one for data, and the core's own L2 (Cascade
# Lake with its server L2; the L2 takes the place of callgrind's last level).
CACHES = {"I1": "32768,8,64", "D1": "49152,12,64", "LL": "2097152,16,64"}
STAGES = ("jpeg_decode", "scale", "blur", "jpeg_encode")
# Each name has the misses of these events of callgrind.
MISSES = {"instructions": ("Ir",), "l1i": ("I1mr",), "l1d": ("D1mr", "D1mw"), "l2i": ("ILmr",),
          "l2d": ("DLmr", "DLmw")}
WARM_UP = 8       # pictures before the counts are set to 0
CONNECTIONS = 16
ROUNDS = 4

BATCHES, SINGLE = "cohort", "cohort, single events"
# name: the configuration and its settings. A pool has one thread, as everything here has one core.
# thread-per-connection serves one connection at a time.
CASES = {
    BATCHES: ("cohort", ()),
    SINGLE: ("cohort", ("scheduler.service=n-gated", "experiment.service_events=1")),
    "drain": ("drain", ()),
    "cohort-stacks": ("cohort-stacks", ()),
    "mg1": ("mg1", ()),
    "srpt": ("srpt", ()),
    "dbr": ("dbr", ()),
    "color": ("color", ()),
    "seda": ("seda-underthreaded", ()),
    "thread-per-connection": ("thread-per-connection", ()),
}
# The daemon's own graph: forms are decoded by a call, and scaling has a queue.
GRAPH = ("experiment.form_decode.pass_through=yes", "experiment.scale.pass_through=no",
         "server.respond_after=store")
VALGRIND = ("scheduler.threads=1", "server.sandbox=off", "experiment.core_dumps=yes",
            "server.control=", f"limits.body_timeout={run.LONG}", f"limits.header_timeout={run.LONG}")


def jobs(options, bench, number):
    return [job.Job("caches", name, 1 if name == "thread-per-connection" else CONNECTIONS, number,
                    lambda name=name: _measure(options, bench, name, number),
                    15 + 0.7 * options.cache_files)
            for name, (configuration, _) in CASES.items()
            if not options.configurations or configuration in options.configurations]


def _control(daemon, *arguments):
    done = subprocess.run(["callgrind_control", *arguments, str(daemon.process.pid)],
                          capture_output=True, text=True)
    if done.returncode != 0 or "OK." not in done.stdout:
        raise run.Failed(f"callgrind_control: {done.stdout}{done.stderr}")


def _measure(options, bench, name, number):
    configuration, extra = CASES[name]
    connections = 1 if configuration == "thread-per-connection" else CONNECTIONS
    files = job.linked(bench, job.sample(options.files, options.cache_files))
    warm = job.linked(bench, job.sample(options.files, WARM_UP))
    dump = pathlib.Path(tempfile.mkdtemp(prefix="callgrind-", dir=bench.work)) / "out"
    valgrind = ["valgrind", "--tool=callgrind", "--cache-sim=yes", f"--callgrind-out-file={dump}",
                *(f"--{cache}={size}" for cache, size in CACHES.items())]
    with bench.daemon(ROOT / "conf" / f"{configuration}.ini", (*GRAPH, *extra, *VALGRIND),
                      wrapper=valgrind) as daemon:
        bench.load(daemon, "-c", connections, "--timeout", run.LONG, files=warm)
        before = daemon.stats()
        _control(daemon, "-z")
        bench.load(daemon, "-c", connections, "--timeout", run.LONG, "--seed", number + 1,
                   files=files)
        after = daemon.stats()
        _control(daemon, "-d", "load")
        counts = by_stage(dump.with_name(dump.name + ".1").read_text())
    images = len(list(files.iterdir()))
    return {"configuration": configuration, "connections": connections, "images": images,
            "sizes": CACHES, "events_per_visit": _events_per_visit(before, after),
            # thread-per-connection calls one stage within the other.
            "misses": {stage: {kind: sum(values.get(event, 0) for event in events) / images
                               for kind, events in MISSES.items()}
                       for stage, values in counts.items()
                       if stage == "all" or configuration != "thread-per-connection"}}


def _events_per_visit(before, after):
    """Returns the mean batch of each stage, or None without visits."""
    out = {}
    for old, new in zip(before["stages"], after["stages"]):
        visits = new["visits"] - old["visits"]
        if new["name"] in STAGES:
            out[new["name"]] = (new["events"] - old["events"]) / visits if visits else None
    return out


# ---- callgrind's files ----

FUNCTION = re.compile(r"fn=\((\d+)\)(?: (.*))?")
COSTS = re.compile(r"[+*\-\d]\S*((?: \d+)*)$")


def by_stage(text):
    """Returns {stage: {event: count}} with what the stages' handlers and all that they call have
    cost, and "all" for the whole program. A function's own lines and the lines of its calls add up
    to what it and its callees have cost."""
    events, names, stage = [], {}, None
    handlers = {f"{name}_handle": name for name in STAGES}
    out = {name: {} for name in (*STAGES, "all")}
    is_call = False
    for line in text.splitlines():
        if line.startswith("events:"):
            events = line.split()[1:]
        elif line.startswith("fn="):
            number, name = FUNCTION.match(line).groups()
            names[number] = name or names[number]
            stage = handlers.get(names[number].partition("'")[0])
        elif line.startswith("calls="):
            is_call = True
        elif line.startswith("totals:"):
            continue
        elif found := COSTS.match(line):
            costs = dict(zip(events, map(int, found[1].split())))
            # Only own lines count in the whole, because each callee has its own.
            for name in [*([stage] if stage else []), *([] if is_call else ["all"])]:
                for event, count in costs.items():
                    out[name][event] = out[name].get(event, 0) + count
            is_call = False
        elif number := re.match(r"cfn=\((\d+)\) (.*)", line):
            names[number[1]] = number[2]
    return out
