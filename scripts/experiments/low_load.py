"""What it costs that cores sleep and wake at low load: response times, sleeps and CPU time per image
of several programs in turns, in open loops at small shares of the capacity. Prints a table of ratios
to the first program, and writes one JSON line per run. Runs by itself:

    /usr/bin/python3 scripts/experiments/low_load.py --program old=/tmp/old --program new=build/darkroomd
"""

import argparse
import json
import pathlib
import sys

import machine
import paired
import run
import worktree
from shedding_plots import percentile

FIGURES = (("p50", "p50_s"), ("p90", "p90_s"), ("CPU time per image", "cpu_ms_per_image"),
           ("sleeps per image", "sleeps_per_image"))


def sleeps(stats):
    """Returns how often the threads that process images slept."""
    return sum(group["sleeps"] for group in stats["scheduler"]["groups"] if group["name"] == "main")


def measure(program, options, policy, rate):
    """Returns the figures of one run."""
    settings = [f"scheduler.policy={policy}"]
    if options.threads:
        settings.append(f"scheduler.threads={options.threads}")
    bench = run.Bench(options.files, options.work)
    with run.Daemon(options.config, options.work, settings, program=program) as daemon:
        words = ("--rate", f"{rate:.3f}", "--poisson")
        bench.load(daemon, *words, "-d", 1, "--seed", 99)
        before = daemon.stats()
        report, rows = bench.load(daemon, *words, "-d", options.seconds)
        slept = sleeps(daemon.stats()) - sleeps(before)
    times = [float(row["done"]) - float(row["intended"]) for row in rows]
    return {"kind": "low load", "policy": policy, "rate_per_s": rate, "images": len(rows),
            "p50_s": percentile(times, 0.5), "p90_s": percentile(times, 0.9),
            "cpu_ms_per_image": 1000 * report["cpu_s"] / len(rows),
            "sleeps_per_image": slept / len(rows), "others_cpu_s": report["others_cpu_s"]}


def table(lines, names):
    """Returns the ratios of the rounds to the first program, with their 95 % intervals."""
    text = ["| policy | images/s | program | " + " | ".join(title for title, _ in FIGURES) + " |",
            "|---|---:|---|" + "---|" * len(FIGURES)]
    for policy, rate in dict.fromkeys((line["policy"], line["rate_per_s"]) for line in lines):
        own = {name: [line for line in lines if line["program"] == name and
                      (line["policy"], line["rate_per_s"]) == (policy, rate)] for name in names}
        for name in names[1:]:
            cells = []
            for _, key in FIGURES:
                one = paired.Pairs([new[key] / old[key] for old, new in
                                    zip(own[names[0]], own[name])]).interval()
                cells.append(f"{one.ratio:.3f} ({one.low:.3f} to {one.high:.3f})")
            text.append(f"| {policy} | {rate:g} | {name} : {names[0]} | " + " | ".join(cells) + " |")
    return "\n".join(text)


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    add("--program", action="append", required=True, help="NAME=FILE of a daemon; two or more")
    add("--rounds", type=int, default=12, help="runs of each program, policy and rate (12)")
    add("--seconds", type=float, default=6, help="duration of each run (6)")
    add("--rates", default="20,60", help="images per second (20,60)")
    add("--policies", default="drain,cohort")
    add("--threads", type=int, help="scheduler.threads (one per core)")
    add("--files", type=pathlib.Path, default=machine.ROOT / "data" / "sample",
        help="JPEG files to send (data/sample)")
    add("--config", type=pathlib.Path, default=machine.ROOT / "conf" / "drain.ini")
    add("--work", type=pathlib.Path, help="directory for stores (in --out)")
    add("--out", type=pathlib.Path, default=machine.ROOT / "build" / "low-load")
    return parser.parse_args(arguments)


def main():
    options = parse(sys.argv[1:])
    programs = [word.split("=", 1) for word in options.program]
    options.work = (options.work or options.out).resolve() / "work"
    options.work.mkdir(parents=True, exist_ok=True)
    options.out.mkdir(parents=True, exist_ok=True)
    bench = run.Bench(options.files, options.work)
    cases = [(policy, float(rate)) for policy in options.policies.split(",")
             for rate in options.rates.split(",")]
    lines = []
    with worktree.results(options.out / "runs.jsonl") as raw:
        for number in range(options.rounds):
            for policy, rate in cases:
                for name, path in programs if number % 2 else programs[::-1]:
                    lines.append({"program": name, "round": number, "cores": machine.cores(),
                                  **measure(pathlib.Path(path).resolve(), options, policy, rate)})
                    raw.write(json.dumps(lines[-1]) + "\n")
                    raw.flush()
            bench.sweep(is_over=True)
            print(f"{number + 1} of {options.rounds} rounds", file=sys.stderr, flush=True)
    print(table(lines, [name for name, _ in programs]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
