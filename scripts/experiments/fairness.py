"""What a flood of uploads does to others: the response times of GETs of a stored variant, and of
the small uploads of another client. Prints a table, and writes one JSON line per run. Runs by
itself:

    /usr/bin/python3 scripts/experiments/fairness.py --out build/fairness

The measuring client runs before all other threads of the machine (SCHED_FIFO) if it may, so that
its times are the daemon's."""

import argparse
import functools
import http.client
import io
import json
import os
import pathlib
import subprocess
import sys
import time
import urllib.parse

import PIL.Image

import machine
import run
import worktree

POLICIES = ("drain", "cohort", "mg1", "srpt", "dbr", "color", "seda", "thread-per-connection",
            "user-threads")
FLOOD, VICTIM = "192.0.2.2", "192.0.2.3"  # clients, as a trusted proxy names them
CONNECTIONS = 30
SMALL = machine.LAKE
LARGE_SIZE = 4000, 2667


@functools.cache
def large_picture():
    """Returns the bytes of a large file."""
    picture = io.BytesIO()
    PIL.Image.open(SMALL).resize(LARGE_SIZE).save(picture, "jpeg", quality=85)
    return picture.getvalue()


def large_file(directory):
    """Makes a large file of a small one. Returns the directory that has only this file."""
    path = directory / "large" / "large.jpg"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(large_picture())
    return path.parent


def percentile_ms(seconds, share):
    return 1000 * sorted(seconds)[min(len(seconds) - 1, int(share * len(seconds)))]


def times(connection, request, seconds, pause):
    """Sends the request again and again. Returns the times of its answers."""
    found, end = [], time.monotonic() + seconds
    while time.monotonic() < end or not found:
        started = time.perf_counter()
        connection.request(*request)
        answer = connection.getresponse()
        answer.read()
        found.append(time.perf_counter() - started)
        if answer.status not in (200, 201):
            raise run.Failed(f"{request[0]} {request[1]}: {answer.status} {answer.reason}")
        time.sleep(pause)
    return found


def connect(daemon, timeout_s=60):
    address = urllib.parse.urlsplit(daemon.url)
    return http.client.HTTPConnection(address.hostname, address.port, timeout=timeout_s)


def post(data, client):
    return "POST", "/images", data, {"Content-Type": "image/jpeg", "X-Forwarded-For": client}


def measure_both(connection, url, seconds):
    """Returns the times of GETs, and of small uploads."""
    gets = times(connection, ("GET", url), seconds, 0.002)
    return gets, times(connection, post(SMALL.read_bytes(), VICTIM), seconds, 0.02)


def flood(daemon, files, seconds):
    command = [machine.ROOT / "build" / "darkroom-load", "-q", "-c", CONNECTIONS, "-d",
               f"{seconds:g}", "-H", f"X-Forwarded-For: {FLOOD}", daemon.url + "/images", files]
    return subprocess.Popen([str(word) for word in command])


def begin_flood(daemon, files, seconds):
    """Returns the flood when its images are in flight."""
    process = flood(daemon, files, seconds)
    while daemon.stats()["images"]["in_flight"] < CONNECTIONS // 2:
        if process.poll() is not None:
            raise run.Failed("the flood has ended before it began")
        time.sleep(0.05)
    return process


def measure(bench, config, policy, large, seconds):
    """Measures one policy on a fresh daemon."""
    options = [f"scheduler.policy={policy}", "overload.controller=backlog",
               "overload.target_p90=1m", "server.trusted_proxies=127.0.0.1",
               "server.admin_on_public=yes"]
    if policy == "thread-per-connection":
        options.append(f"scheduler.threads={CONNECTIONS + 4}")
    with bench.daemon(config, options) as daemon:
        connection = connect(daemon)
        connection.request(*post(SMALL.read_bytes(), VICTIM))
        url = json.load(connection.getresponse())["images"][0]["variants"]["thumb"]["url"]
        whole = (large / "large.jpg").read_bytes()
        large_s = sorted(times(connection, post(whole, VICTIM), seconds / 4, 0))
        gets, uploads = measure_both(connection, url, seconds)
        process = begin_flood(daemon, large, 2 * seconds + 2)
        cpu_s, began = daemon.cpu_s(), time.monotonic()
        flooded_gets, flooded = measure_both(connection, url, seconds)
        use = (daemon.cpu_s() - cpu_s) / (time.monotonic() - began) / machine.cores()
        if process.wait(120) != 0:
            raise run.Failed(f"the flood ended with status {process.returncode}")
    allowed = 2 * percentile_ms(uploads, 0.9) + 1000 * large_s[len(large_s) // 2]
    return {"kind": "fairness", "name": policy, "connections": CONNECTIONS, "seconds": seconds,
            "cpu_use": use, "gets": len(flooded_gets), "uploads": len(flooded),
            "large_ms": 1000 * large_s[len(large_s) // 2],
            **{f"{name}_{key}_ms": percentile_ms(values, share)
               for name, values in (("get", gets), ("flooded_get", flooded_gets),
                                    ("upload", uploads), ("flooded_upload", flooded))
               for key, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))},
            "allowed_upload_p90_ms": allowed}


HEAD = ("policy", "GET p50 ms", "p99", "in the flood p50", "p99", "upload p90 ms",
        "in the flood p50", "p90", "allowed p90", "CPU use")


def row(line):
    names = ("get_p50", "get_p99", "flooded_get_p50", "flooded_get_p99", "upload_p90",
             "flooded_upload_p50", "flooded_upload_p90", "allowed_upload_p90")
    return (line["name"], *(f"{line[name + '_ms']:.2f}" for name in names),
            f"{100 * line['cpu_use']:.0f} %")


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    add("--seconds", type=float, default=5, help="duration of each measurement (5)")
    add("--rounds", type=int, default=1, help="runs of each policy (1)")
    add("--policies", default=",".join(POLICIES))
    add("--config", type=pathlib.Path, default=machine.ROOT / "conf" / "drain.ini")
    add("--work", type=pathlib.Path, help="directory for stores (in --out)")
    add("--out", type=pathlib.Path, default=machine.ROOT / "build" / "fairness")
    return parser.parse_args(arguments)


def main():
    options = parse(sys.argv[1:])
    work = options.work or options.out / "work"
    work.mkdir(parents=True, exist_ok=True)
    large = large_file(options.out)
    bench = run.Bench(large, work)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    except PermissionError:
        print("without SCHED_FIFO: times include those in which this client waits for a core\n")
    print(f"{machine.cores()} cores, {LARGE_SIZE[0]}x{LARGE_SIZE[1]} pixels\n")
    print("| " + " | ".join(HEAD) + " |\n|" + "---|" * len(HEAD))
    with worktree.results(options.out / "raw.jsonl") as raw:
        for number in range(options.rounds):
            for policy in options.policies.split(","):
                line = measure(bench, options.config, policy, large, options.seconds)
                raw.write(json.dumps({"round": number, "time": time.time(), **line}) + "\n")
                raw.flush()
                print("| " + " | ".join(row(line)) + " |", flush=True)
                bench.sweep(is_over=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
