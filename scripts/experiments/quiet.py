"""Measures only while other programs leave the machine alone. A disturbed run is repeated."""

import json
import time

import machine
from invariants import Failed
from job import Job

REPEATS = 5              # of one measurement
LOOK_S, WAIT_S = 5, 600  # the machine is watched for LOOK_S at a time, until it was busy for WAIT_S
INSENSITIVE = {"caches", "cores"}  # simulated: other programs change nothing


def wait(most, sleep=time.sleep, usage=machine.Usage):
    """Waits until other programs use at most this share of the CPUs."""
    for _ in range(WAIT_S // LOOK_S):
        watched = usage()
        sleep(LOOK_S)
        if watched.of_others() <= most:
            return
    raise Failed(f"other programs have used more than {100 * most:g} % of the CPUs for "
                 f"{WAIT_S // 60} minutes; the same command continues")


def lines(job, measure, most, waits=None, usage=None):
    """Yields what a job has measured, with the load of the machine: at most REPEATS lines of the
    kind "disturbed", and then a good one. most: the share of the CPUs that others may use."""
    for _ in range(REPEATS + 1):
        line = {"kind": job.kind, "name": job.name, "workload": job.workload, "round": job.round,
                "begun": round(time.time(), 3), "load_average": round(machine.load_average(), 2)}
        watched = (usage or machine.Usage)()
        line |= measure(job)
        line["others_cpu_share"] = share = watched.of_others()
        if share <= most or job.kind in INSENSITIVE:
            yield line
            return
        yield line | {"kind": "disturbed", "part": job.kind}
        (waits or wait)(most)
    raise Failed(f"{job.kind}, {job.name} was disturbed {REPEATS + 1} times: other programs used "
                 f"more than {100 * most:g} % of the CPUs; the same command continues")


def once(path, kind, measure, most):
    """Returns what measure() has measured, undisturbed. The file keeps it for the next call."""
    if not path.exists():
        *_, line = lines(Job(kind, "drain", 0, 0, measure, 0), lambda job: job.measure(), most)
        path.write_text(json.dumps(line) + "\n")
    return json.loads(path.read_text())
