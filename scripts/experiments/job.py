"""A job is one measurement, and gives one line of the raw results. The line has the kind, name,
workload (connections) and round of the job, and the load of the machine."""

import collections
import pathlib
import tempfile

import run
import visits

# guess_s: its duration, until one of its kind was measured.
Job = collections.namedtuple("Job", "kind name workload round measure guess_s")


def key(job):
    return job.kind, job.name, job.workload, job.round


def closed(bench, name, path, connections, number, options=(), preload=""):
    """Sends each file once, or the requests of a run, in a closed loop after a warm-up. Returns the
    results of the run."""
    with bench.daemon(path, options, run.preload_path(preload)) as daemon:
        bench.warm_up(daemon, connections)
        before = daemon.stats()
        report, _ = bench.load(daemon, "-c", connections, "--seed", number + 1, *bench.of_run())
        stats = daemon.stats()
    return {"configuration": name, "connections": connections,
            **run.summary(report, bench.server_cores()),
            **run.stage_counters(stats, before), "layout": stats["layout"],
            "visits": visits.of(stats)}


def sample(files, count):
    """Returns a sample of the files with the same distribution of sizes."""
    by_size = sorted(files.rglob("*.jpg"), key=lambda path: (path.stat().st_size, path.name))
    step = len(by_size) / min(count, len(by_size))
    return [by_size[int((i + 0.5) * step)] for i in range(min(count, len(by_size)))]


def linked(bench, files):
    """Returns a new directory with links to the files."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="files-", dir=bench.work))
    for path in files:
        (directory / path.name).symlink_to(path.resolve())
    return directory
