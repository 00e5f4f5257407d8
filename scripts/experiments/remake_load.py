"""What a remake of stored images does to uploads at half of the capacity: response times with and
without it, in interleaved rounds. Prints the paired intervals, and writes one JSON line per run.
Runs by itself:

    /usr/bin/python3 scripts/experiments/remake_load.py --work /dev/shm/remake --out build/remake

All runs use one store of images with their originals. Each run with a remake has another size of
one variant, so that all images lack it."""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import time
import urllib.request

import machine
import paired
import run
import worktree

CONFIG = machine.ROOT / "conf" / "darkroomd.ini"
BINARY = machine.ROOT / "build" / "darkroomd"
SAMPLE = machine.LAKE
SIZES = (300, 280)
GOAL = (0.0001, 1.1)  # the ratio of the 99th percentiles


class Daemon:
    """A daemon on the store, for the duration of a block."""

    def __init__(self, store, size, durability):
        self.words = [BINARY, "-c", CONFIG]
        for setting in (f"server.root={store}", "server.user=root", "server.listen=127.0.0.1:0",
                        "server.keep_originals=yes", "log.access=no", "overload.controller=off",
                        f"server.durability={durability}",
                        f"variant.medium.operations=scale {size}x{size} inside"):
            self.words += ["-o", setting]
        self.words = [str(word) for word in self.words]
        self.log = store.parent / "log"

    def __enter__(self):
        with self.log.open("w") as log:
            self.process = subprocess.Popen(self.words, stderr=log)
        while not (found := run.READY.search(self.log.read_text())):
            if self.process.poll() is not None:
                raise run.Failed(self.log.read_text())
            time.sleep(0.01)
        self.url = found[1]
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(60)

    def load(self, *arguments):
        done = subprocess.run([str(word) for word in (
            machine.ROOT / "build" / "darkroom-load", "--json", "-q", *arguments,
            self.url + "/images", SAMPLE)], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    def counters(self):
        done = subprocess.run([*self.words, "ctl", "remake"], capture_output=True, text=True,
                              check=True)
        return json.loads(done.stdout)

    def in_flight(self):
        with urllib.request.urlopen(self.url + "/stats", timeout=10) as answer:
            return json.load(answer)["images"]["in_flight"]


def measure(store, size, remakes, rate, options, seed):
    """Measures uploads on a fresh daemon. Returns the line of the result."""
    with Daemon(store, size, options.durability) as daemon:
        daemon.load("-c", 4, "-d", "1s")
        before = machine.busy_s()
        client = subprocess.Popen([*daemon.words, "store", "remake"],
                                  stderr=subprocess.DEVNULL) if remakes else None
        while client and not daemon.counters()["made"]:
            time.sleep(0.01)
        made = daemon.counters()["made"]
        report = daemon.load("--rate", f"{rate:g}", "--poisson", "-d", f"{options.seconds:g}s",
                             "--seed", seed)
        after = daemon.counters()
        if client:
            if client.poll() is not None:
                raise run.Failed("the remake has ended before the uploads: more --images")
            client.kill()
            client.wait()
        for entry in (store / ".remake").iterdir():
            entry.unlink()
        while daemon.in_flight():
            time.sleep(0.01)
    times = report["response_time_ms"]
    return {"kind": "remake", "remakes": remakes, "rate": rate, "seconds": options.seconds,
            "uploads": sum(report["statuses"].values()), "statuses": report["statuses"],
            "remade": after["made"] - made, "busy_s": machine.busy_s() - before,
            **{f"{key}_ms": times[key] for key in ("mean", "p50", "p90", "p99", "max")}}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    add("--images", type=int, default=4000, help="in the store (4000)")
    add("--seconds", type=float, default=10, help="of each run (10)")
    add("--rounds", type=int, default=10, help="pairs of runs (10)")
    add("--share", type=float, default=0.5, help="of the capacity (0.5)")
    add("--durability", default="process")
    add("--work", type=pathlib.Path, help="directory for the store (in --out)")
    add("--out", type=pathlib.Path, default=machine.ROOT / "build" / "remake")
    options = parser.parse_args()
    work = options.work or options.out / "work"
    work.mkdir(parents=True, exist_ok=True)
    options.out.mkdir(parents=True, exist_ok=True)
    store = work / "store"
    with Daemon(store, SIZES[1], options.durability) as daemon:
        daemon.load("-c", 4, "-d", "1s")
        report = daemon.load("-c", 4, "-n", options.images)
        capacity = options.images / report["makespan_s"]
    lines, ratios = [], {key: [] for key in ("p50_ms", "p90_ms", "p99_ms", "mean_ms")}
    with worktree.results(options.out / "raw.jsonl") as raw:
        for number in range(options.rounds):
            size, pair = SIZES[number % 2], {}
            for remakes in (False, True) if number % 2 else (True, False):
                pair[remakes] = measure(store, size, remakes, capacity * options.share, options,
                                        number + 1)
                raw.write(json.dumps({"round": number, "capacity": capacity,
                                      "time": time.time(), **pair[remakes]}) + "\n")
                raw.flush()
                print(remakes, {k: v for k, v in pair[remakes].items() if k.endswith("_ms")},
                      pair[remakes]["remade"], flush=True)
            lines.append(pair)
            for key, values in ratios.items():
                values.append(pair[True][key] / pair[False][key])
    print(f"capacity {capacity:.0f} images/s, {options.rounds} rounds")
    for key, values in ratios.items():
        found = paired.Pairs(values).interval()
        print(f"{key} with : without a remake: {found.ratio:.3f} "
              f"({found.low:.3f} to {found.high:.3f})")
    print("p99 moves less than 10 %:", paired.decide(paired.Pairs(ratios["p99_ms"]).interval(), GOAL))
    shutil.rmtree(work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
