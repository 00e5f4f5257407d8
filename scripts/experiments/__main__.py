"""Measures the configurations. scripts/experiment --help has the options."""

import json
import os
import secrets
import shutil
import sys
import time

import job
import jobs
import machine
import options as command_line
import plots
import progress
import quiet
import readme
import report
import results
import run
import worktree

BUSY = 0.5  # load average per core


def make_dataset(options):
    print(f"The dataset is {options.dataset}.", file=sys.stderr)
    run.make_dataset(options.dataset, options.scale, sys.stderr.fileno())


def begin(options, bench, path, command):
    """Opens the raw results for appending. Returns the file and the lines of an interrupted run."""
    files = [file for file in options.files.rglob("*") if file.suffix in (".jpg", ".jpeg")]
    if not files:
        raise ValueError(f"{options.files}: no JPEG files found")
    # seed, requests: those of the first start.
    header = machine.describe() | {"seed": options.seed, "requests": 0, "files": len(files),
                                   "file_bytes": sum(file.stat().st_size for file in files),
                                   "options": options.option, "command": command}
    lines = results.read(path) if path.exists() else []
    if lines:
        results.check_order(lines)
        for key in ("cpu", "cores", "commit", "files", "file_bytes", "options",
                    *(["seed"] if options.seed is not None else [])):
            if lines[0].get(key) != header[key]:
                raise ValueError(f"{path} has results of another experiment "
                                 f"({key}: {lines[0].get(key)!r}, now {header[key]!r}): "
                                 "remove it, or set another --out")
    else:
        if header["load_average"] > BUSY * header["cores"]:
            print(f"This machine is busy (load average {header['load_average']}): the results "
                  "will be noisy.", file=sys.stderr)
        lines = [header | {"seed": secrets.randbelow(10**6) if options.seed is None
                           else options.seed}]
        bench.calibrate(machine.ROOT / "conf" / "drain.ini")
        lines[0]["requests"] = bench.requests
    bench.requests = lines[0].get("requests", 0)
    # The file is rewritten without the unfinished line of an interrupted run.
    temporary = path.with_suffix(".new")
    temporary.write_text("".join(json.dumps(line) + "\n" for line in lines))
    os.replace(temporary, path)
    return path.open("a"), lines


def new_bench(options):
    return run.Bench(options.files, options.work, options.option, options.server_cpus,
                     options.load_cpus, options.warm_up, options.run_s)


def measure(options, path, end_s, command):
    """Measures until all is done, or the time of time.monotonic() is reached. Returns the number
    of measurements that are left."""
    bench = new_bench(options)
    out, lines = begin(options, bench, path, command)
    done = {(line["kind"], line["name"], line["workload"], line["round"])
            for line in lines if "round" in line}
    left = [each for each in jobs.jobs(options, bench, lines[0]["seed"])
            if job.key(each) not in done]
    try:
        results.check_order(lines + [dict(zip(("kind", "name", "workload", "round"), job.key(each)))
                                     for each in left])
    except ValueError as error:
        raise ValueError(f"{path} was begun with fewer runs: {error}; set another --out") from None
    if done:
        print(f"{path} already has {len(done)} measurements; {len(left)} left.", file=sys.stderr)
    shown = progress.Progress(left)
    if left:
        print(f"{progress.plan(left)}\nInterrupt and repeat the command at will: it continues.",
              file=sys.stderr)
    at_round = None
    with out:
        for number, each in enumerate(left):
            if time.monotonic() + shown.expected(each) > end_s:
                return len(left) - number
            bench.sweep(is_over=each.round != at_round)
            at_round = each.round
            for line in quiet.lines(each, shown.run, options.others / 100):
                out.write(json.dumps(line) + "\n")
                out.flush()
            shown.end(each)
    return 0


def unfinished(options, left, usage):
    state = (f"load average {machine.load_average():.1f}; other programs used "
             f"{100 * usage.of_others():.0f} % of the CPUs")
    if options.quick:
        return (f"this machine is too busy for --quick: after {options.within:g} minutes {left} "
                f"measurements are left ({state}). The report has what was measured.")
    return (f"{left} measurements are left after {options.within:g} minutes ({state}). The same "
            "command continues.")


def main():
    options = command_line.parse(sys.argv[1:])
    command = " ".join(["scripts/experiment", *sys.argv[1:]])
    if options.plan:
        print(progress.plan(jobs.jobs(options, new_bench(options), options.seed)))
        return 0
    left, usage = 0, machine.Usage()
    end_s = time.monotonic() + 60 * options.within
    path = options.out / "raw.jsonl"
    if refusal := worktree.refusal([path, options.out / "report.md"]):
        print(f"scripts/experiment: {refusal}", file=sys.stderr)
        return 1
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        if not options.report:
            shutil.rmtree(options.work, ignore_errors=True)
            options.work.mkdir(parents=True)
            if options.dataset:
                make_dataset(options)
            left = measure(options, path, end_s, command)
        verdicts = report.write(results.Results(results.read(path)), options.out, command)
        if options.out.resolve().parent == readme.RESULTS:
            readme.update()
    except KeyboardInterrupt:
        print(f"\nInterrupted. The measurements are in {path}; the same command continues.",
              file=sys.stderr)
        return 1
    except (run.Failed, plots.Failed, OSError, ValueError) as error:
        print(f"scripts/experiment: {error}", file=sys.stderr)
        return 1
    finally:
        if not options.report:
            shutil.rmtree(options.work, ignore_errors=True)
    for number, verdict in enumerate(verdicts, 1):
        print(f"{number}. {verdict.claim} {verdict.verdict.upper()}")
    print(f"\nTables, numbers and plots: {options.out / 'report.md'}")
    if left:
        print(f"scripts/experiment: {unfinished(options, left, usage)}", file=sys.stderr)
    return 1 if left else 0


sys.exit(main())
