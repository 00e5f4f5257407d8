"""What the refusal of an upload costs: CPU time of the daemon, on new connections and on kept ones.
One upload is admitted and sends no body, so all others are answered 503 before theirs. Several
programs are measured in turns. Prints a table, and writes one JSON line per run. Runs by itself:

    /usr/bin/python3 scripts/experiments/refusals.py --program old=/tmp/old --program new=build/darkroomd
"""

import argparse
import contextlib
import json
import pathlib
import socket
import statistics
import sys
import time
import urllib.parse

import machine
import run
import worktree

CONNECTIONS = 8
WARM_UP = 500
SETTINGS = ("limits.images_in_flight=1", "limits.body_timeout=1h", "limits.connections=4096")


def cpu_ns(pid):
    """Returns the CPU time of all threads (Documentation/scheduler/sched-stats.rst)."""
    return sum(int(path.read_text().split()[0])
               for path in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"))


@contextlib.contextmanager
def occupied(daemon):
    """The only place for an image is taken by an upload whose body never comes."""
    address = urllib.parse.urlsplit(daemon.url)
    with socket.create_connection((address.hostname, address.port)) as s:
        s.sendall(b"POST /images HTTP/1.1\r\nHost: localhost\r\nContent-Type: image/jpeg\r\n"
                  b"Content-Length: 1000\r\n\r\n")
        while daemon.stats()["overload"]["classes"][-1]["admitted"] < 1:
            time.sleep(0.01)
        yield


def refuse(daemon, directory, count, is_kept):
    """Has uploads refused by a load generator, whose report it returns."""
    words = [] if is_kept else ["--requests-per-connection", 1]
    return run.generate("-c", CONNECTIONS, "-n", count, "--expect", 503, *words,
                        daemon.url + "/images", directory)


def measure(program, work, size, is_kept, count):
    """Returns the microseconds of CPU time of a refusal, and the bytes read for it."""
    directory = work / f"files-{size}"
    directory.mkdir(exist_ok=True)
    (directory / "body.jpg").write_bytes(bytes(size))
    config = machine.ROOT / "conf" / "drain.ini"
    with run.Daemon(config, work, SETTINGS, program=program) as daemon, occupied(daemon):
        refuse(daemon, directory, WARM_UP, is_kept)
        before, received = cpu_ns(daemon.process.pid), daemon.stats()["http"]["received_bytes"]
        refuse(daemon, directory, count, is_kept)
        while daemon.stats()["http"]["connections"] > 2:  # the occupying one, and this
            time.sleep(0.01)
        used = cpu_ns(daemon.process.pid) - before
        received = daemon.stats()["http"]["received_bytes"] - received
    return used / count / 1000, received / count


def interval(values):
    """Returns the median, and the bounds of a 95 % interval of it, by order statistics."""
    values, n = sorted(values), len(values)
    cut = max(0, round(n / 2 - 0.98 * n ** 0.5) - 1)
    return statistics.median(values), values[cut], values[n - 1 - cut]


def print_table(lines):
    print("\n| connection | bytes | program | us per refusal | 95 % | bytes read |")
    print("|---|---:|---|---:|---|---:|")
    for key in dict.fromkeys((line["kept"], line["size"], line["program"]) for line in lines):
        own = [line for line in lines if (line["kept"], line["size"], line["program"]) == key]
        middle, low, high = interval([line["us"] for line in own])
        print(f"| {'kept' if key[0] else 'new'} | {key[1]} | {key[2]} | {middle:.1f} | {low:.1f} to "
              f"{high:.1f} | {statistics.median(line['received'] for line in own):.0f} |")


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    add("--program", action="append", help="NAME=FILE of a daemon; may be given several times "
        "(new=build/darkroomd)")
    add("--rounds", type=int, default=12)
    add("--count", type=int, default=3000, help="refusals of a run (3000)")
    add("--sizes", default="1000,64000,210000", help="bytes of the bodies")
    add("--new-only", action="store_true", help="no runs on kept connections")
    add("--out", type=pathlib.Path, default=machine.ROOT / "build" / "refusals")
    return parser.parse_args(arguments)


def main():
    options = parse(sys.argv[1:])
    programs = [word.split("=", 1) for word in options.program or ["new=build/darkroomd"]]
    work = options.out.resolve() / "work"
    work.mkdir(parents=True, exist_ok=True)
    cases = [(int(size), is_kept) for is_kept in ([False] if options.new_only else [False, True])
             for size in options.sizes.split(",")]
    lines = []
    with worktree.results(options.out / "raw.jsonl") as raw:
        for number in range(options.rounds):
            for size, is_kept in cases:
                for name, path in programs if number % 2 else programs[::-1]:
                    us, received = measure(pathlib.Path(path).resolve(), work, size, is_kept,
                                           options.count)
                    lines.append({"kind": "refusals", "round": number, "program": name,
                                  "size": size, "kept": is_kept, "us": us, "received": received})
                    raw.write(json.dumps(lines[-1]) + "\n")
                    raw.flush()
    print_table(lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
