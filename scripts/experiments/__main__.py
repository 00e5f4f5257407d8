"""Measures the configurations. scripts/experiment --help has the options."""

import json
import os
import shutil
import sys
import time

import job
import jobs
import machine
import options as command_line
import plots
import progress
import readme
import report
import results
import run
import worktree

BUSY = 0.5  # load average per core


def make_dataset(options):
    print(f"The dataset is {options.dataset}.", file=sys.stderr)
    run.make_dataset(options.dataset, options.scale, sys.stderr.fileno())


def begin(options, path, command):
    """Opens the raw results for appending. Returns the file and the lines of an interrupted run."""
    files = [file for file in options.files.rglob("*") if file.suffix in (".jpg", ".jpeg")]
    if not files:
        raise ValueError(f"{options.files}: no JPEG files found")
    header = machine.describe() | {"files": len(files),
                                   "file_bytes": sum(file.stat().st_size for file in files),
                                   "options": options.option, "command": command}
    lines = results.read(path) if path.exists() else []
    if lines:
        for key in ("cpu", "cores", "commit", "files", "file_bytes", "options"):
            if lines[0].get(key) != header[key]:
                raise ValueError(f"{path} has results of another experiment "
                                 f"({key}: {lines[0].get(key)!r}, now {header[key]!r}): "
                                 "remove it, or set another --out")
    else:
        if header["load_average"] > BUSY * header["cores"]:
            print(f"This machine is busy (load average {header['load_average']}): the results "
                  "will be noisy.", file=sys.stderr)
        lines = [header]
    # The file is rewritten without the unfinished line of an interrupted run.
    temporary = path.with_suffix(".new")
    temporary.write_text("".join(json.dumps(line) + "\n" for line in lines))
    os.replace(temporary, path)
    return path.open("a"), lines


def measure(options, path, end_s, command):
    """Measures until all is done, or the time of time.monotonic() is reached. Returns the number
    of measurements that are left."""
    out, lines = begin(options, path, command)
    bench = run.Bench(options.files, options.work, options.option, options.server_cpus,
                      options.load_cpus, options.warm_up)
    done = {(line["kind"], line["name"], line["workload"], line["round"])
            for line in lines if "round" in line}
    left = [each for each in jobs.jobs(options, bench) if job.key(each) not in done]
    if done:
        print(f"{path} already has {len(done)} measurements; {len(left)} left.", file=sys.stderr)
    shown = progress.Progress(left)
    if left:
        print(f"{len(left)} measurements take about {progress.duration(shown.remaining())}, until "
              f"{progress.clock(shown.remaining())}. Interrupt and repeat the command at will: it "
              "continues.", file=sys.stderr)
    at_round = None
    with out:
        for number, each in enumerate(left):
            if time.monotonic() + shown.expected(each) > end_s:
                return len(left) - number
            bench.sweep(is_over=each.round != at_round)
            at_round = each.round
            line = dict(zip(("kind", "name", "workload", "round"), job.key(each)))
            load, usage = round(machine.load_average(), 2), machine.Usage()
            line |= shown.run(each)
            line |= {"load_average": load, "others_cpu_share": usage.of_others()}
            out.write(json.dumps(line) + "\n")
            out.flush()
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
