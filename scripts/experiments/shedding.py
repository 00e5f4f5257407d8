"""Overload with and without control: open loops at several multiples of the capacity, as in Welsh
2002, figures 52 to 57, and a spike in the middle of a run. Prints a table, and writes one JSON line
per run and a report with plots. Runs by itself:

    /usr/bin/python3 scripts/experiments/shedding.py --seconds 60 --out build/shedding"""

import argparse
import functools
import json
import pathlib
import resource
import sys
import threading
import time

import machine
import plots
import run
import worktree
import shedding_cases
import shedding_plots
from shedding_plots import percentile

FACTORS = (0.5, 0.9, 1.2, 2, 5, 10)
CONTROLLERS = ("backlog", "welsh", "off")
FILES_LEFT = 200  # of the limit, for everything but connections
SPIKE, SPIKE_BASE = 10, 0.5  # for a third of the run, the rate is SPIKE * SPIKE_BASE * capacity


def files_max():
    """Returns how many connections the limit on open files allows to one process."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1] - FILES_LEFT


def connections(rate, seconds, target_s):
    """Returns a number of connections with which every due request is sent: those of the admitted,
    for as long as they may take, and those that are refused meanwhile. They are fewer than the
    daemon may have: above nine tenths it closes idle ones, and who sends just then is reset."""
    return min(int(0.85 * files_max()), max(256, int(rate * min(seconds, 4 * target_s + 1))))


class ResidentMemory:
    """The largest resident memory of a process during a block."""

    def __init__(self, pid):
        self.path, self.most, self.ended = pathlib.Path(f"/proc/{pid}/status"), 0, threading.Event()

    def __enter__(self):
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()
        return self

    def _watch(self):
        while not self.ended.wait(0.05):
            lines = self.path.read_text().splitlines()
            self.most = max([self.most] + [int(line.split()[1]) * 1024
                                           for line in lines if line.startswith("VmRSS")])

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


def capacity(bench, config, seconds):
    with bench.daemon(config) as daemon:
        report, _ = bench.load(daemon, "-c", 4 * machine.cores(), "-d", max(2, seconds / 4))
    return report["responses_per_s"]


def summary(rows, report, seconds):
    """Returns the figures of a run. Times of admitted uploads count from when they were due, those of
    refusals from when they were sent: the generator shares the machine."""
    begin = min((float(row["intended"]) for row in rows), default=0)
    warm_up = min(shedding_cases.WARM_UP_S, seconds / 3)
    late = [row for row in rows if float(row["intended"]) - begin >= warm_up]
    good = [row for row in late if row["status"] == "201"]
    refused = [row for row in late if row["status"] == "503"]
    admitted_s = [float(row["done"]) - float(row["intended"]) for row in good]
    refusal_s = [float(row["done"]) - float(row["start"]) for row in refused]
    in_time = [row for row in rows if row["status"] == "201" and
               warm_up <= float(row["done"]) - begin <= seconds]
    return {"sent": len(rows), "unsent": report["unsent"], "errors": report["errors"],
            "goodput_per_s": len(in_time) / (seconds - warm_up),
            "refused_share": len(refused) / max(1, len(good) + len(refused)),
            **{f"admitted_p{int(100 * share)}_s": percentile(admitted_s, share)
               for share in (0.5, 0.9, 0.99)},
            "refusal_p50_s": percentile(refusal_s, 0.5),
            "refusal_p99_s": percentile(refusal_s, 0.99)}


def measure(bench, config, controller, factor, rate, seconds, target_s, number, spike=0):
    """Measures one open loop on a fresh daemon. spike multiplies the rate for a third of it."""
    count = connections(rate * (spike or 1), seconds, target_s)
    words = ["--spike", f"{spike:g}:{1000 * seconds / 3:.0f}@{seconds / 3:.2f}"] if spike else []
    extra = [f"overload.controller={controller}", f"overload.target_p90={int(target_s * 1000)}ms",
             f"limits.connections={min(files_max(), 2 * count)}", f"limits.body_timeout={run.LONG}"]
    if controller == "off":
        extra.append("limits.images_in_flight=65536")
    with bench.daemon(config, extra) as daemon, ResidentMemory(daemon.process.pid) as memory:
        report, rows = bench.load(daemon, "-c", count, "--rate", f"{rate:.3f}", "--poisson", "-d",
                                  seconds, "--timeout", run.LONG, "--expect", "201,503", "--seed",
                                  number + 1, *words)
        stats = daemon.stats()
    return {"kind": "shedding", "name": controller, "workload": factor, "round": number,
            "rate_per_s": rate, "seconds": seconds, "target_s": target_s, "connections": count,
            "peak_rss_bytes": memory.most, "cpu_s": report["server"]["cpu_s"],
            "spike": spike, "over_time": shedding_plots.by_second(rows),
            "received_bytes": stats["http"]["received_bytes"],
            "controller": stats["overload"], **summary(rows, report, seconds)}


HEAD = ("control", "load", "goodput/s", "refused", "p50 s", "p90 s", "p99 s", "refusal p50 ms",
        "p99 ms", "RSS MB", "unsent")


def write_report(directory):
    """Writes the report of all runs in raw.jsonl."""
    lines = [json.loads(text) for text in (directory / "raw.jsonl").read_text().splitlines()]
    text = ["# Overload", "", f"{lines[0].get('cores', machine.cores())} cores, capacity "
            f"{lines[0]['capacity_per_s']:.0f} uploads per second, target "
            f"{lines[0]['target_s']:g} s, {lines[0]['seconds']:g} s per run.", "",
            "| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    text += ["| " + " | ".join(row(line)) + " |" for line in lines]
    text += [f"\n![{title}]({name})" for name, title in shedding_plots.draw(lines, directory)]
    (directory / "report.md").write_text("\n".join(text) + "\n")


def row(line):
    def number(value, factor=1, digits=2):
        return "-" if value is None else f"{factor * value:.{digits}f}"
    load = f"{line['workload']:g}" + (f", spike of {line['spike']:g}" if line.get("spike") else "")
    return (line["name"], load, number(line["goodput_per_s"], 1, 0),
            f"{100 * line['refused_share']:.0f} %", number(line["admitted_p50_s"]),
            number(line["admitted_p90_s"]), number(line["admitted_p99_s"]),
            number(line["refusal_p50_s"], 1000, 1), number(line["refusal_p99_s"], 1000, 1),
            number(line["peak_rss_bytes"], 1e-6, 0), str(line["unsent"]))


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    add("--seconds", type=float, default=60, help="duration of each run (60)")
    add("--rounds", type=int, default=1, help="runs of each load (1)")
    add("--target", type=float, default=1, help="overload.target_p90 in seconds (1)")
    add("--factors", default=",".join(f"{factor:g}" for factor in FACTORS),
        help="multiples of the capacity")
    add("--controllers", default=",".join(CONTROLLERS), help="values of overload.controller")
    add("--spike", type=float, default=SPIKE,
        help="factor of the rate in the middle third of one more run; 0: no such run (10)")
    add("--classes", action="store_true",
        help="only measure two classes of clients at twice the capacity")
    add("--slow", action="store_true",
        help="only measure a service time that doubles in the middle of the run")
    add("--crowd", metavar="MS",
        help="only measure 3 clients in a closed loop that become 1,000 in the middle third, and wait "
        "MS after each answer; several numbers with commas")
    add("--report", action="store_true", help="only write the report of an earlier run again")
    add("--files", type=pathlib.Path, default=machine.ROOT / "data" / "sample",
        help="JPEG files to send (data/sample)")
    add("--config", type=pathlib.Path, default=machine.ROOT / "conf" / "drain.ini")
    add("--option", action="append", default=[], metavar="SECTION.KEY=VALUE",
        help="setting of all daemons; repeatable")
    add("--capacity", type=float, help="uploads per second (measured)")
    add("--work", type=pathlib.Path, help="directory for stores (in --out)")
    add("--out", type=pathlib.Path, default=machine.ROOT / "build" / "shedding")
    return parser.parse_args(arguments)


def measure_cases(options, bench, base):
    """Measures the cases that the options name, and prints and writes their figures."""
    count = connections(shedding_cases.FACTOR * base, options.seconds, options.target)
    chosen = [functools.partial(case, connections=count // 2) for case, is_on in (
        (shedding_cases.classes, options.classes), (shedding_cases.slower, options.slow)) if is_on]
    chosen += [functools.partial(shedding_cases.crowd, connections=files_max(), think_ms=int(ms))
               for ms in (options.crowd or "").split(",") if ms]
    with worktree.results(options.out / "cases.jsonl") as raw:
        for number in range(options.rounds):
            for case in chosen:
                line = {"capacity_per_s": base, "time": time.time(), "round": number,
                        "cores": machine.cores(),
                        **case(bench, options.config, base, options.seconds, options.target)}
                raw.write(json.dumps(line) + "\n")
                raw.flush()
                print(shedding_cases.text_of(line), flush=True)
                bench.sweep(is_over=True)


def main():
    options = parse(sys.argv[1:])
    if options.report:
        write_report(options.out)
        return 0
    work = (options.work or options.out).resolve() / "work"
    work.mkdir(parents=True, exist_ok=True)
    options.out.mkdir(parents=True, exist_ok=True)
    bench = run.Bench(options.files, work, options.option)
    base = options.capacity or capacity(bench, options.config, options.seconds)
    if options.classes or options.slow or options.crowd:
        measure_cases(options, bench, base)
        return 0
    loads = [(float(factor), 0) for factor in options.factors.split(",")]
    loads += [(SPIKE_BASE, options.spike)] if options.spike else []
    print(f"{machine.cores()} cores, capacity {base:.0f}/s, target {options.target:g} s\n")
    print("| " + " | ".join(HEAD) + " |\n|" + "---|" * len(HEAD))
    with worktree.results(options.out / "raw.jsonl") as raw:
        for number in range(options.rounds):
            for controller in options.controllers.split(","):
                for factor, spike in loads:
                    line = measure(bench, options.config, controller, factor, factor * base,
                                   options.seconds, options.target, number, spike)
                    raw.write(json.dumps({"capacity_per_s": base, "time": time.time(),
                                          "cores": machine.cores(), **line}) + "\n")
                    raw.flush()
                    print("| " + " | ".join(row(line)) + " |", flush=True)
                    bench.sweep(is_over=True)
    try:
        write_report(options.out)
    except plots.Failed as failure:
        print(f"no report: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
