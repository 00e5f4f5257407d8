"""A memory budget for a few images at a time, with and without experiment.resource_aware: goodput,
response times and memory of a closed loop. Each round measures both, on fresh daemons. Prints a
table, and writes one JSON line per run. Runs by itself:

    /usr/bin/python3 scripts/experiments/scarce_memory.py --out build/scarce
"""

import argparse
import json
import pathlib
import statistics
import sys
import threading

import PIL.Image

import machine
import paired
import run
import worktree
import shedding

POLICIES = ("drain", "cohort", "srpt", "dbr", "color", "user-threads")
SAMPLE = machine.LAKE
SIZES = ((2400, 1600), (1200, 800), (600, 400))
CONNECTIONS = 32
FIGURES = (("responses per s", "goodput"), ("p50 s", "p50_s"), ("p90 s", "p90_s"),
           ("peak RSS", "rss"), ("peak of buffers", "pool"))


def make_files(directory):
    """Makes progressive files, which need memory for all coefficients."""
    directory.mkdir(parents=True, exist_ok=True)
    for size in SIZES:
        PIL.Image.open(SAMPLE).resize(size).save(directory / f"{size[0]}.jpg", quality=85,
                                                 progressive=True)
    return directory


class Peak:
    """The most bytes of buffers in use during a block, as /stats has them."""

    def __init__(self, daemon):
        self.daemon, self.most, self.ended = daemon, 0, threading.Event()

    def __enter__(self):
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()
        return self

    def _watch(self):
        while not self.ended.wait(0.02):
            self.most = max(self.most, self.daemon.stats()["memory"]["pool_used_bytes"])

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


def measure(bench, config, policy, is_aware, options):
    settings = [f"scheduler.policy={policy}", f"experiment.resource_aware={is_aware}",
                f"limits.memory_budget={options.budget}", "limits.body_bytes=8M"]
    with bench.daemon(config, settings) as daemon, Peak(daemon) as peak, \
            shedding.ResidentMemory(daemon.process.pid) as memory:
        bench.load(daemon, "-c", CONNECTIONS, "-d", 1, "--seed", 99)
        report, rows = bench.load(daemon, "-c", CONNECTIONS, "-d", options.seconds)
        stats = daemon.stats()
    times = [float(row["done"]) - float(row["start"]) for row in rows if row["status"] == "201"]
    group = next(g for g in stats["scheduler"]["groups"] if g["name"] == "main")
    return {"kind": "scarce", "name": policy, "resource_aware": is_aware,
            "seconds": options.seconds, "budget": options.budget, "connections": CONNECTIONS,
            "goodput": report["responses_per_s"], "p50_s": shedding.percentile(times, 0.5),
            "p90_s": shedding.percentile(times, 0.9), "rss": memory.most, "pool": peak.most,
            "cpu_s": report["cpu_s"], "others_cpu_s": report["others_cpu_s"],
            "waited": stats["memory"]["waited"], "by_resource": group["by_resource"],
            "shortages": stats["scheduler"]["shortages"]["memory"]}


def table(lines):
    """Returns the ratios of the rounds, on : off, with their 95 % intervals."""
    text = ["| policy | " + " | ".join(title for title, _ in FIGURES) + " | waits off, on |",
            "|---|" + "---|" * (len(FIGURES) + 1)]
    for policy in dict.fromkeys(line["name"] for line in lines):
        own = {is_aware: [line for line in lines if line["name"] == policy and
                          line["resource_aware"] == is_aware] for is_aware in ("no", "yes")}
        cells = []
        for _, key in FIGURES:
            ratios = paired.Pairs([on[key] / off[key] for off, on in zip(own["no"], own["yes"])])
            one = ratios.interval()
            cells.append(f"{one.ratio:.3f} ({one.low:.3f} to {one.high:.3f})")
        waits = [statistics.median(line["waited"] for line in own[key]) for key in ("no", "yes")]
        text.append(f"| {policy} | " + " | ".join(cells) + f" | {waits[0]:.0f}, {waits[1]:.0f} |")
    return "\n".join(text)


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    add("--seconds", type=float, default=4, help="duration of each run (4)")
    add("--rounds", type=int, default=8, help="pairs of runs of each policy (8)")
    add("--budget", default="64M", help="limits.memory_budget (64M)")
    add("--policies", default=",".join(POLICIES))
    add("--config", type=pathlib.Path, default=machine.ROOT / "conf" / "drain.ini")
    add("--work", type=pathlib.Path, help="directory for stores (in --out)")
    add("--out", type=pathlib.Path, default=machine.ROOT / "build" / "scarce")
    return parser.parse_args(arguments)


def main():
    options = parse(sys.argv[1:])
    work = (options.work or options.out).resolve() / "work"
    work.mkdir(parents=True, exist_ok=True)
    options.out.mkdir(parents=True, exist_ok=True)
    bench = run.Bench(make_files(work.parent / "scarce-files"), work)
    lines = []
    with worktree.results(options.out / "raw.jsonl") as raw:
        raw.write(json.dumps(machine.describe()) + "\n")
        for number in range(options.rounds):
            for policy in options.policies.split(","):
                for is_aware in ("no", "yes") if number % 2 else ("yes", "no"):
                    lines.append({"round": number,
                                  **measure(bench, options.config, policy, is_aware, options)})
                    raw.write(json.dumps(lines[-1]) + "\n")
                    raw.flush()
            bench.sweep(is_over=True)
    print(table(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
