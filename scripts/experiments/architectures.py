"""Architectures side by side on one program: the same handlers, sockets and pictures under threads,
events, pools and stages. Closed loops by connections, an open loop by load, memory for each
connection, and scarce memory with and without the order by resources.

The generator shares the machine, so the CPU time of a request is the figure that counts: it depends
least on what the generator leaves. Files are in memory: nothing waits for a disk.
"""

import argparse
import functools
import math
import pathlib
import resource
import socket
import statistics
import time
import urllib.parse

import invariants
import results as r
import run
import slowdown
from job import Job, linked, sample
from machine import LAKE, ROOT
from markdown import table
from paired import Pairs
from plan import POOLS_FOR_CORES, configurations
from refusals import cpu_ns

PART = "architectures"
EVENT_LOOP, AMPED, USER_THREADS, PER_CONNECTION = (
    "event-loop", "amped", "user-threads", "thread-per-connection")
NAMES = ("drain", "cohort", "staged-db", POOLS_FOR_CORES, "one-pool", EVENT_LOOP, AMPED,
         PER_CONNECTION, USER_THREADS)
# Requests, and the connections of each.
HEALTH, VARIANT, TINY, DATASET = "GET /healthz", "GET of a variant", "400-byte JPEG", "dataset"
WORKLOADS = {HEALTH: (1, 100), VARIANT: (100, 10000), TINY: (1, 100, 1000, 10000),
             DATASET: (1, 10, 100)}
LOADS = (0.1, 0.5, 0.9, 2.0)  # of the dataset, as shares of the capacity
FILES = 100                   # of the dataset; the generator reads them before each run
THREADS = 64                  # of thread-per-connection
IDLE, ACTIVE = 10000, 1000    # connections whose memory is measured
SCARCE = ("drain", "cohort", USER_THREADS)
SCARCE_S, BUDGET = 3, "32M"   # its largest pictures wait for memory
# All answer when the files are stored, none refuses, and no idle connection makes room.
SERVER = ("server.respond_after=store", "server.durability=process", "experiment.fair_clients=no",
          "limits.images_in_flight=65536", f"limits.connections={3 * IDLE // 2}",
          f"limits.body_timeout={run.LONG}", f"limits.header_timeout={run.LONG}")
FEW = 16                      # connections of a warm-up
# Of the options, if no other part is measured: then all ends within 25 minutes.
DEFAULTS = {"rounds": 4, "run_s": 0.7, "warm_up": 0.2, "scale": 0.05}


# ---- runs ----

def jobs(options, bench, number):
    out = []

    def add(name, workload, measure, guess_s):
        out.append(Job(PART, name, workload, number, measure, guess_s))

    for of in configurations(options.configurations or NAMES):
        settings = settings_of(of, bench.server_cores())
        for workload, counts in WORKLOADS.items():
            for count in counts:
                if count <= most_connections(of):
                    add(f"{of.name}, {workload}", count, functools.partial(
                        closed, options, bench, of, settings, workload, count),
                        _seconds(options, count) + options.warm_up + 0.6 + count / 5000)
        for load in LOADS:
            add(f"{of.name}, load {load:g}", 0, functools.partial(
                by_load, options, bench, of, settings, load, number),
                _load_seconds(options, load) * max(1, load) + options.warm_up + 0.6)
        add(f"{of.name}, memory", 0, functools.partial(memory, bench, of, settings), 3)
        if of.name in SCARCE:
            for is_aware in ("no", "yes"):
                add(f"{of.name}, scarce memory, {is_aware}", 0, functools.partial(
                    scarce, bench, of, is_aware), SCARCE_S + 2)
    return out


def _seconds(options, connections):
    """Many connections need their time to be accepted."""
    return (3 if connections == IDLE else 1) * (options.run_s or DEFAULTS["run_s"])


def _load_seconds(options, load):
    """Little load needs its time for a 99th percentile."""
    return (3 if load < 1 else 2) * (options.run_s or DEFAULTS["run_s"])


def settings_of(configuration, cores):
    """Returns the settings of an architecture: as many event loops as cores, and as many threads for
    connections as there may be."""
    own = {EVENT_LOOP: f"stage.accept_read.threads={cores}",
           AMPED: f"stage.accept_read.threads={cores}",
           PER_CONNECTION: f"scheduler.threads={THREADS}"}.get(configuration.name)
    return (*SERVER, *configuration.options, *([own] if own else []))


def most_connections(configuration):
    """A thread for each connection cannot serve more connections than threads."""
    return THREADS if configuration.policy == PER_CONNECTION else IDLE


def row(of, measured, **figures):
    return {"architecture": of.name, "measured": measured, **figures}


def closed(options, bench, of, settings, workload, connections):
    """Sends requests in a closed loop for the time of a run, after a warm-up."""
    # 10,000 at once are more than the kernel's queue of new connections, and some are reset.
    words, resets = ["-c", connections, "-d", _seconds(options, connections)], connections // 100
    warm_up = ["-c", min(FEW, connections), "-d", options.warm_up, "--seed", 99]
    with bench.daemon(of.path, settings) as daemon:
        load = _load(bench, daemon, workload, resets)
        load(*warm_up)
        before, begun = cpu_ns(daemon.process.pid), time.monotonic()
        report = load(*words)
        used = cpu_ns(daemon.process.pid) - before
        passed = time.monotonic() - begun  # with the ends of the connections
    invariants.check_cpu(used / 1e9, passed, bench.server_cores())
    return row(of, "closed", requests=workload, connections=connections,
               answered=sum(report["statuses"].values()), seconds=report["makespan_s"], cpu_ns=used,
               **{f"{key}_ms": report["response_time_ms"][key] for key in ("p50", "p99")},
               resets=report["errors"]["reset"], peak_rss_bytes=report["server"]["peak_rss_bytes"],
               generator_cpu_s=report["generator"]["cpu_s"])


def _load(bench, daemon, workload, resets):
    """Returns a function that runs the load generator with these arguments, and returns its report.
    resets: the most connections that may be reset."""
    if workload in (TINY, DATASET):
        files = _tiny(bench) if workload == TINY else _dataset(bench)
        return lambda *words: bench.load(daemon, *words, files=files, resets=resets)[0]
    path = "/healthz"
    if workload == VARIANT:
        path = daemon.upload(LAKE.read_bytes())["variants"]["thumb"]["url"]
    return lambda *words: bench.generate(daemon, "--get", *words, daemon.url + path, resets=resets)


def _dataset(bench):
    """Returns a directory with a sample of the dataset."""
    directory = bench.work / "dataset"
    if not directory.exists():
        linked(bench, sample(bench.files, FILES)).rename(directory)
    return directory


def _tiny(bench):
    """Returns a directory with a JPEG of about 400 bytes."""
    import cost_model  # scripts/experiment --help needs no Pillow
    directory = bench.work / "tiny"
    if not directory.exists():
        directory.mkdir()
        (directory / "tiny.jpg").write_bytes(cost_model.tiny_jpeg())
    return directory


def by_load(options, bench, of, settings, load, number):
    """Returns the slowdown of an open loop, as the part slowdown has it, of all pictures."""
    own = slowdown.measure(options, bench, of, "poisson", load, number, graph=settings,
                           seconds=_load_seconds(options, load))
    return row(of, "load", load=load, **{key: own[key] for key in (
        "rate_per_s", "cpu_ms_per_image", "all")}, uploads=own["requests"])


# ---- memory ----

def memory(bench, of, settings):
    """Returns the bytes of memory that a connection takes after a request, and one whose upload has
    come in half."""
    request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    picture = (_tiny(bench) / "tiny.jpg").read_bytes()
    upload = (b"POST /images HTTP/1.1\r\nHost: localhost\r\nContent-Type: image/jpeg\r\n"
              b"Content-Length: %d\r\n\r\n" % len(picture)) + picture[:len(picture) // 2]
    most = most_connections(of) - 4
    out = {}
    for key, count, data in (("idle", min(IDLE, most), request),
                             ("active", min(ACTIVE, most), upload)):
        with bench.daemon(of.path, settings) as daemon:
            daemon.upload(LAKE.read_bytes())
            before = anonymous_bytes(daemon.process.pid)
            sockets = hold(daemon, count, data, is_answered=data is request)
            out[key] = {"connections": count,
                        "bytes": anonymous_bytes(daemon.process.pid) - before}
            for each in sockets:
                each.close()
    return row(of, "memory", **out)


def hold(daemon, count, data, is_answered):
    """Returns that many connections that have sent this, after the daemon has read it."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    url = urllib.parse.urlsplit(daemon.url)
    received = daemon.stats()["http"]["received_bytes"]
    sockets = []
    for _ in range(count):
        sockets.append(socket.create_connection((url.hostname, url.port), 60))
        sockets[-1].sendall(data)
        if is_answered and not sockets[-1].recv(4096):
            raise run.Failed("the daemon has closed an idle connection")
    deadline = time.monotonic() + 60
    while daemon.stats()["http"]["received_bytes"] - received < count * len(data):
        if time.monotonic() > deadline:
            raise run.Failed(f"the daemon has not read what {count} connections have sent")
        time.sleep(0.05)
    return sockets


def anonymous_bytes(pid):
    """Returns the resident memory that is not of files (proc_pid_status(5))."""
    line = next(line for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
                if line.startswith("RssAnon"))
    return 1024 * int(line.split()[1])


def scarce(bench, of, is_aware):
    """Returns the figures of a memory budget for a few images at a time (scarce_memory.py)."""
    import scarce_memory  # its pictures need Pillow
    of_scarce = run.Bench(scarce_memory.make_files(bench.work / "scarce-files"), bench.work)
    own = scarce_memory.measure(of_scarce, ROOT / "conf" / "drain.ini", of.policy, is_aware,
                                argparse.Namespace(seconds=SCARCE_S, budget=BUDGET))
    return row(of, "scarce", is_aware=is_aware, **{key: own[key] for key in (
        "goodput", "p50_s", "p90_s", "rss", "pool", "waited", "by_resource", "shortages")})


# ---- figures ----

def rate(line):
    return line["answered"] / line["seconds"]


def cpu(line):
    return line["cpu_ns"] / line["answered"]


def held_kb(line, key="idle"):
    return line[key]["bytes"] / line[key]["connections"] / 1024


# Title: the figure of a closed loop, and digits.
FIGURES = {"Requests/s": (rate, 0), "CPU us per request": (lambda line: cpu(line) / 1e3, 1),
           "p99, ms": (lambda line: line["p99_ms"], 2)}
SCARCE_FIGURES = {"goodput": "goodput", "p50": "p50_s", "p90": "p90_s", "peak RSS": "rss",
                  "peak of buffers": "pool"}


def names(results):
    measured = {line["architecture"] for line in results.of(PART)}
    return [*(name for name in NAMES if name in measured), *sorted(measured - {*NAMES})]


def scarce_pairs(results, name, of):
    """Returns the ratios with the order by resources to without."""
    return results.pairs(*(f"{name}, scarce memory, {is_aware}" for is_aware in ("yes", "no")), 0, of,
                         PART)


def slowdown_values(results, name, load, key):
    """Returns a percentile of each round, or [] if one of them has none."""
    found = [line["all"][key] for line in results.runs(PART, f"{name}, load {load:g}", 0)]
    return [] if None in found else found


# ---- tables ----

def tables(results):
    return "\n\n".join([*_closed_tables(results), *_load_tables(results), _memory_table(results),
                        _scarce_table(results)])


def _closed_tables(results):
    for title, (of, digits) in FIGURES.items():
        for workload, counts in WORKLOADS.items():
            cells = [[name, *(_spread(results.runs(PART, f"{name}, {workload}", count), of, digits)
                              for count in counts)] for name in names(results)]
            yield table([f"{title}, {workload}, connections", *map(str, counts)], cells)


def _spread(lines, of, digits):
    return r.spread([of(line) for line in lines], digits) if lines else ""


def _load_tables(results):
    for key in ("p50", "p99"):
        yield table([f"Slowdown, {key}, load", *(f"{load:g}" for load in LOADS)],
                    [[name, *(r.ratio_text(Pairs(values).interval()) if values else ""
                              for values in (slowdown_values(results, name, load, key)
                                             for load in LOADS))] for name in names(results)])


def _memory_table(results):
    rows = []
    for name in names(results):
        lines = results.runs(PART, f"{name}, memory", 0)
        rows.append([name, *(text for key in ("idle", "active") for text in (
            str(lines[0][key]["connections"]) if lines else "",
            _spread(lines, functools.partial(held_kb, key=key), 2)))])
    return table(["Memory", "idle connections", "KB each", "uploads", "KB each"], rows)


def _scarce_table(results):
    rows = []
    for name in names(results):
        ratios = [scarce_pairs(results, name, lambda line, key=key: line[key])
                  for key in SCARCE_FIGURES.values()]
        waits = [_spread(results.runs(PART, f"{name}, scarce memory, {is_aware}", 0),
                         lambda line: line["waited"], 0) for is_aware in ("no", "yes")]
        if any(ratios):
            rows.append([name, *(r.ratio_text(each.interval()) if each else "" for each in ratios),
                         *waits])
    return table(["Order by resources", *SCARCE_FIGURES, "waits without", "with"], rows)


# ---- claims ----

MATCHES, NO_LESS = (0.98, math.inf), (0.8, math.inf)
WITHIN_5, WITHIN_1 = (0.95, 1 / 0.95), (0.99, 1 / 0.99)
MORE, LESS = (1, math.inf), (0, 1)
IDLE_KB = 3


def claims(results):
    """Yields the claims: a text, its comparisons, notes, and what a paper says."""
    def pairs(a, b, workload, count, of=rate):
        return results.pairs(f"{a}, {workload}", f"{b}, {workload}", count, of, PART)

    yield ("At 100 connections user-level threads answer as many requests as an event loop.",
           [(workload, pairs(USER_THREADS, EVENT_LOOP, workload, 100), MATCHES)
            for workload in WORKLOADS], [], "a match (von Behren et al. 2003)")
    yield ("Where all files are in memory AMPED answers as many requests as an event loop.",
           [(f"{count} connections", pairs(AMPED, EVENT_LOOP, VARIANT, count), MATCHES)
            for count in WORKLOADS[VARIANT]], [], "a match (Pai et al. 1999)")
    others = [name for name in names(results) if name != "drain"]
    for workload, count in ((HEALTH, 100), (TINY, 100), (DATASET, 10)):
        yield (f"The CPU time of a request is within 5 % of that of drain under each architecture, at "
               f"{count} connections: {workload}.",
               [(f"{name} : drain", pairs(name, "drain", workload, count, cpu), WITHIN_5)
                for name in others], [], "")
    yield ("User-level threads need the CPU time of drain for the dataset, within 1 %.",
           [(f"{count} connections", pairs(USER_THREADS, "drain", DATASET, count, cpu), WITHIN_1)
            for count in WORKLOADS[DATASET]], [], "")
    yield ("With 10,000 connections each architecture answers at least 0.8 of the requests that it "
           "answers with 100.",
           [(f"{name}, {workload}", _of_many(results, name, workload), NO_LESS)
            for name in names(results) for workload in (VARIANT, TINY)], [],
           "no loss with stages (Welsh, 5.8)")
    yield (f"An idle connection under user-threads takes at most {IDLE_KB} KB more than under drain.",
           [(f"user-threads : drain and {IDLE_KB} KB", _of_idle(results), LESS)], [], "")
    yield ("At loads of 0.1 and 2 drain has the lowest median slowdown (darkroom's own claim).",
           [(f"{name} : drain at {load:g}", results.pairs(
               f"{name}, load {load:g}", f"drain, load {load:g}", 0,
               lambda line: line["all"]["p50"], PART), MORE)
            for name in others for load in (LOADS[0], LOADS[-1])], [], "")
    yield ("With scarce memory the order by resources raises the goodput.",
           [(name, scarce_pairs(results, name, lambda line: line["goodput"]), MORE)
            for name in SCARCE], [], "overload is sustained (von Behren et al. 2003)")


def _of_many(results, name, workload):
    many, few = (_by_round(results.runs(PART, f"{name}, {workload}", count)) for count in (10000, 100))
    ratios = [rate(many[number]) / rate(few[number]) for number in many if number in few]
    return Pairs(ratios) if ratios else None


def _of_idle(results):
    own, drain = (_by_round(results.runs(PART, f"{name}, memory", 0))
                  for name in (USER_THREADS, "drain"))
    ratios = [held_kb(own[number]) / (held_kb(drain[number]) + IDLE_KB) for number in own
              if number in drain]
    return Pairs(ratios) if ratios else None


def _by_round(lines):
    return {line["round"]: line for line in lines}


# ---- plots ----

def panels(results, colours):
    """Returns the panels of two plots: the CPU time of a request by connections, and the slowdown by
    load."""
    shown = [*zip(names(results), colours)]
    of, _ = FIGURES["CPU us per request"]

    def line(found):
        return [(x, statistics.median(values)) for x, values in found if values]

    closed_loops = [(workload, True, None, [(name, colour, line(
        (count, [of(run) for run in results.runs(PART, f"{name}, {workload}", count)])
        for count in counts)) for name, colour in shown]) for workload, counts in WORKLOADS.items()]
    loads = [(key, True, None, [(name, colour, line(
        (load, slowdown_values(results, name, load, key)) for load in LOADS))
        for name, colour in shown]) for key in ("p50", "p99")]
    return closed_loops, loads
