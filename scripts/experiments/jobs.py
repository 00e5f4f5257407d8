"""The parts of the experiment. A job is one measurement, and gives one line of the raw results. The
line has the kind, name, workload (connections) and round of the job."""

import collections
import pathlib
import subprocess
import tempfile
import time

import run
import visits
from machine import ROOT
from plan import PRELOADS, configurations, rotated

Job = collections.namedtuple("Job", "kind name workload round measure guess_s")

PARTS = ("policies", "batching", "layouts", "overload", "baseline")

# Claim 6 compares cohort scheduling with full batches and with batches of one event.
BATCHING = {"batches": (),
            "single events": ("scheduler.service=n-gated", "scheduler.service_events=1")}

# Claim 5 compares these layouts under cohort scheduling. Replicas get requests in turns, as in the
# paper, and by load. Parts are computed from a profile of the same pictures.
SHARED, REPLICAS, PARTITIONS, BY_LOAD = "shared", "replicas", "partitions", "replicas by load"
SHARES = (2, 4, 8)
STAGES = 4  # that the main threads visit, and so the most parts

# Claim 7: the load is OVERLOAD times the capacity, and the admitted images take TARGET_S to
# process.
OVERLOAD, TARGET_S = 1.5, 0.25
NO_LIMIT = 65536  # the largest limits.images_in_flight
OPEN_CONNECTIONS = 1000


def key(job):
    return job.kind, job.name, job.workload, job.round


def jobs(options, bench):
    """Returns all jobs, round by round."""
    out = []
    for number in range(options.rounds):
        if "policies" in options.parts:
            out += rotated(_policies(options, bench, number), number, options.rounds)
        if "batching" in options.parts:
            out += rotated(_batching(options, bench, number), number, options.rounds)
        if "layouts" in options.parts:
            out += rotated(_layouts(options, bench, number), number, options.rounds)
        if "overload" in options.parts:
            out.append(_overload(options, bench, number))
        if "baseline" in options.parts:
            out.append(_baseline(options, bench, number))
    return out


def _closed(bench, name, path, connections, number, options=(), preload=""):
    """Sends each file once in a closed loop. Returns the results of the run."""
    with bench.daemon(path, options, run.preload_path(preload)) as daemon:
        report, rows = bench.load(daemon, "-c", connections, "--seed", number + 1)
        stats = daemon.stats()
    return {"configuration": name, "connections": connections,
            **run.summary(report, rows, bench.server_cores()), **run.stage_counters(stats),
            "layout": stats["layout"], "visits": visits.of(stats)}


def _policies(options, bench, number):
    cases = [configuration.case(workload) for workload in options.connections
             for configuration in configurations(options.configurations)]
    return [Job("policies", case.name, case.workload, number,
                lambda case=case: _measure_policy(bench, case, number), 5)
            for case in cases if case]


def _measure_policy(bench, case, number):
    return {"policy": case.policy,
            **_closed(bench, case.name, case.path, case.connections, number, case.options,
                      PRELOADS.get(case.name, ""))}


def _batching(options, bench, number):
    path, workload = ROOT / "conf" / "cohort.ini", max(options.connections)
    return [Job("batching", name, workload, number,
                lambda name=name, extra=extra: _closed(
                    bench, name, path, workload, number, ("scheduler.counters=yes", *extra)), 5)
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
                    options, bench, name, extra, workload, number), 5)
            for name, extra in out.items()]


def _profile(options, bench, workload):
    """Returns the path of a profile. It is measured once, in a separate run, and stored with the
    results."""
    path = (options.out / "profile.ini").resolve()
    if not path.exists():
        with bench.daemon(ROOT / "conf" / "cohort.ini", profile=path) as daemon:
            bench.load(daemon, "-c", workload, "--seed", 1)
    return path


def _measure_layout(options, bench, name, extra, workload, number):
    if PARTITIONS in name:
        extra += (f"layout.profile={_profile(options, bench, workload)}",)
    return _closed(bench, name, ROOT / "conf" / "cohort.ini", workload, number, extra)


# ---- the script that the paper's server replaced ----

def _sample(files, count):
    """Returns a sample of the files with the same distribution of sizes."""
    by_size = sorted(files.rglob("*.jpg"), key=lambda path: (path.stat().st_size, path.name))
    step = len(by_size) / min(count, len(by_size))
    return [by_size[int((i + 0.5) * step)] for i in range(min(count, len(by_size)))]


def _baseline(options, bench, number):
    return Job("baseline", "imagemagick", 0, number,
               lambda: _measure_baseline(options, bench, number), 30)


def _measure_baseline(options, bench, number):
    """Measures the script, and the daemon with one connection, on the same sample."""
    work = pathlib.Path(tempfile.mkdtemp(prefix="baseline-", dir=bench.work))
    sample = work / "sample"
    sample.mkdir()
    for path in _sample(options.files, options.baseline):
        (sample / path.name).symlink_to(path.resolve())
    files = sorted(sample.iterdir())
    size = sum(path.stat().st_size for path in files)
    before, start = run.children_cpu_s(), time.monotonic()
    done = subprocess.run([ROOT / "scripts" / "experiments" / "imagemagick.sh", work / "out",
                           *files], capture_output=True, text=True)
    seconds, cpu = time.monotonic() - start, run.children_cpu_s() - before
    if done.returncode != 0:
        raise run.Failed(f"imagemagick.sh: {done.stderr}")
    with bench.daemon(ROOT / "conf" / "drain.ini") as daemon:
        report, rows = bench.load(daemon, "-c", 1, "--seed", number + 1, files=sample)
    ours = run.summary(report, rows, bench.server_cores())
    return {"images": len(files), "sample_bytes": size, "makespan_s": seconds,
            "responses_per_s": len(files) / seconds, "input_bytes_per_s": size / seconds,
            "cpu_s": cpu, "cpu_ms_per_image": 1000 * cpu / len(files),
            "daemon": {name: ours[name]
                       for name in ("responses_per_s", "input_bytes_per_s", "cpu_ms_per_image")}}


# ---- overload ----

def _overload(options, bench, number):
    return Job("overload", "drain", max(options.connections), number,
               lambda: _measure_overload(options, bench, number), 2 * options.overload_s + 10)


def _measure_overload(options, bench, number):
    """Measures the capacity of the server, and then OVERLOAD times that rate with and without a
    limit of images in flight."""
    path = ROOT / "conf" / "drain.ini"
    with bench.daemon(path) as daemon:
        report, _ = bench.load(daemon, "-c", max(options.connections), "-d",
                               max(2, options.overload_s / 4))
    capacity = report["responses_per_s"]
    admitted = max(4, round(capacity * TARGET_S))
    out = {"capacity_per_s": capacity, "rate_per_s": OVERLOAD * capacity, "target_s": TARGET_S,
           "admitted": admitted}
    for name, limit in (("limited", admitted), ("unlimited", NO_LIMIT)):
        extra = [f"limits.images_in_flight={limit}", f"limits.connections={2 * OPEN_CONNECTIONS}",
                 "limits.body_timeout=10m"]
        with bench.daemon(path, extra) as daemon:
            _, rows = bench.load(daemon, "-c", OPEN_CONNECTIONS,
                                 "--rate", f"{OVERLOAD * capacity:.3f}", "--poisson", "-d",
                                 options.overload_s, "--timeout", "10m", "--expect", "201,503",
                                 "--seed", number + 1)
        out[name] = _by_quarter(rows, options.overload_s)
    return out


def _by_quarter(rows, seconds):
    """Returns response times of accepted uploads since they were due, by the quarter of the run in
    which they were due."""
    begin = min(float(row["intended"]) for row in rows)
    quarters = [[] for _ in range(4)]
    for row in rows:
        if row["status"] == "201":
            due = float(row["intended"])
            quarters[min(3, int(4 * (due - begin) / seconds))].append(float(row["done"]) - due)
    return {"requests": len(rows), "answered": sum(len(times) for times in quarters),
            "p50_s": [_percentile(times, 0.5) for times in quarters],
            "p90_s": [_percentile(times, 0.9) for times in quarters]}


def _percentile(values, share):
    """Returns None without values."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else None
