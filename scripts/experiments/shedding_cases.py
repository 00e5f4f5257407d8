"""Cases of overload for shedding.py: two classes of clients at twice the capacity, a service time that
doubles in the middle of a run, and a crowd of clients in a closed loop. All begin with a daemon that
does not know its capacity."""

import csv
import pathlib
import re
import statistics
import struct
import subprocess

import machine
import run
import shedding_plots

GOLD_SHARE = 0.25  # of a load of twice the capacity; the rest is of the lower class
FACTOR = 2
SETTLED_S = 3  # seconds in a row that keep the target
SETTLED_FACTOR = 1.2  # of the target
FEW, MANY = 3, 1000  # clients in a closed loop, as in Welsh 2002, section 5.4
WARM_UP_S = 5  # the controller may search for as long
SLOW = machine.ROOT / "build" / "plain" / "tests" / "tools" / "slow_encoder.so"


def settings(target_s):
    return ["overload.controller=backlog", f"overload.target_p90={int(target_s * 1000)}ms",
            f"limits.body_timeout={run.LONG}"]


def start_load(daemon, files, name, connections, seconds, *words):
    """Starts a load. Returns its process, and the file of its requests."""
    rows = daemon.directory / f"{name}.csv"
    command = [machine.ROOT / "build" / "darkroom-load", "--quiet", "--csv", rows, "-c", connections,
               "-d", f"{seconds:g}", "--timeout", run.LONG, "--expect", "201,503", *words,
               daemon.url + "/images", files]
    return subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL), rows


def at_rate(rate):
    """Returns the words for an open loop."""
    return "--rate", f"{rate:.3f}", "--poisson"


def rows_of(load):
    process, path = load
    if process.wait() != 0:
        raise run.Failed(f"darkroom-load ended with status {process.returncode}")
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def refused_share(rows):
    return sum(row["status"] == "503" for row in rows) / max(1, len(rows))


def settled_after(seconds, since, until, target_s):
    """Returns how long after `since` the uploads of SETTLED_S seconds in a row keep the target,
    nearly. None: they do not until then."""
    kept = 0
    for second in (second for second in seconds if since <= second["s"] < until):
        kept = kept + 1 if second["admitted"] and second["p90_s"] <= SETTLED_FACTOR * target_s else 0
        if kept == SETTLED_S:
            return second["s"] + 1 - SETTLED_S - since
    return None


def classes(bench, config, capacity, seconds, target_s, connections):
    """Measures two classes. The higher one may be refused 5 % at most."""
    words = [*settings(target_s), "overload.classes=gold header:X-Tier=gold"]
    with bench.daemon(config, words) as daemon:
        load = FACTOR * capacity
        gold = start_load(daemon, bench.files, "gold", connections, seconds,
                          *at_rate(GOLD_SHARE * load), "-H", "X-Tier: gold")
        other = start_load(daemon, bench.files, "other", connections, seconds,
                           *at_rate((1 - GOLD_SHARE) * load), "--seed", 2)
        rows = {"gold": rows_of(gold), "other": rows_of(other)}
    return {"kind": "classes", "seconds": seconds, "target_s": target_s,
            **{f"{name}_{key}": value for name, own in rows.items() for key, value in (
                ("sent", len(own)), ("refused_share", refused_share(own)),
                ("over_time", shedding_plots.by_second(own)))}}


def slower(bench, config, capacity, seconds, target_s, connections):
    """Measures twice the capacity, with files that take twice the time from the middle on. The
    target must be kept 10 s after each change, and after the start."""
    control = bench.work / "slow-encoder" / "delay"
    control.parent.mkdir(exist_ok=True)
    control.write_bytes(bytes(4))
    with bench.daemon(config, settings(target_s), wrapper=[
            "env", f"LD_PRELOAD={SLOW}", f"DARKROOM_SLOW_ENCODER={control}"]) as daemon:
        load = start_load(daemon, bench.files, "all", connections, seconds,
                          *at_rate(FACTOR * capacity))
        try:
            load[0].wait(seconds / 2)
        except subprocess.TimeoutExpired:
            stats = daemon.stats()
        else:
            raise run.Failed("darkroom-load ended in the middle of the run")
        files = next(s["events"] for s in stats["stages"] if s["name"] == "jpeg_encode")
        of_image = files / max(1, stats["images"]["stored"])
        extra_us = int(1e6 * machine.cores() / capacity / of_image)
        with control.open("r+b") as file:
            file.write(struct.pack("I", extra_us))
        rows = rows_of(load)
    by_second = shedding_plots.by_second(rows)
    middle = seconds // 2
    return {"kind": "slower", "seconds": seconds, "target_s": target_s, "extra_us": extra_us,
            "settled_after_start_s": settled_after(by_second, 0, middle, target_s),
            "settled_after_change_s": settled_after(by_second, middle, seconds, target_s),
            "over_time": by_second}


def most_resident(daemon):
    """Returns the largest resident memory of the daemon until now."""
    text = pathlib.Path(f"/proc/{daemon.process.pid}/status").read_text()
    return 1024 * int(re.search(r"VmHWM:\s+(\d+)", text)[1])


def crowd_summary(few, many, begin, seconds):
    """Returns the figures of a crowd's stay, which begins `begin` after the first row of the few. Times
    are those of rows that were sent WARM_UP_S after it came, and later."""
    start = min(float(row["start"]) for row in few)
    late = [row for row in few if WARM_UP_S <= float(row["start"]) - start - begin < seconds]
    late += [row for row in many if float(row["start"]) >= WARM_UP_S]
    good = [float(row["done"]) - float(row["start"]) for row in late if row["status"] == "201"]
    refused = [float(row["done"]) - float(row["start"]) for row in late if row["status"] == "503"]
    before = [second["p90_s"] for second in shedding_plots.by_second(few) if second["s"] < begin]
    normal_s = 2 * statistics.median(before) + 0.01
    normal = [second["s"] for second in shedding_plots.by_second(few)
              if second["s"] >= begin + seconds and second["admitted"] and not second["refused"]
              and second["p90_s"] <= normal_s]
    return {"goodput_per_s": len(good) / (seconds - WARM_UP_S), "refused": len(refused),
            "admitted_p90_s": shedding_plots.percentile(good, 0.9),
            "refusal_p99_s": shedding_plots.percentile(refused, 0.99),
            "normal_p90_s": statistics.median(before),
            "normal_after_s": normal[0] + 1 - begin - seconds if normal else None}


def crowd(bench, config, capacity, seconds, target_s, connections, think_ms):
    """Measures few clients in a closed loop, to which a crowd comes for the middle third. All wait
    think_ms after each answer."""
    third, words = seconds / 3, [*settings(target_s), f"limits.connections={connections}"]
    think = ("--think", think_ms)
    with bench.daemon(config, words) as daemon:
        few = start_load(daemon, bench.files, "few", FEW, seconds, *think)
        try:
            few[0].wait(third)
        except subprocess.TimeoutExpired:
            many = start_load(daemon, bench.files, "many", MANY - FEW, third, *think, "--seed", 2)
        else:
            raise run.Failed("darkroom-load ended before the crowd came")
        rows = {"many": rows_of(many), "few": rows_of(few)}
        resident = most_resident(daemon)
    return {"kind": "crowd", "seconds": seconds, "target_s": target_s, "think_ms": think_ms,
            "peak_rss_bytes": resident, **crowd_summary(rows["few"], rows["many"], third, third),
            **{f"{name}_over_time": shedding_plots.by_second(own) for name, own in rows.items()}}


def crowd_text(line, capacity):
    def ms(seconds):
        return "none" if seconds is None else f"{1000 * seconds:.1f} ms"
    return (f"from {FEW} to {MANY} clients that wait {line['think_ms']} ms: "
            f"{line['goodput_per_s']:.0f} images/s are {line['goodput_per_s'] / capacity:.2f} of the "
            f"capacity (bound 0.9), p90 {ms(line['admitted_p90_s'])} "
            f"(bound {1200 * line['target_s']:.0f}), {line['refused']} refusals with a p99 of "
            f"{ms(line['refusal_p99_s'])} (bound 10), {line['peak_rss_bytes'] / 1e6:.0f} MB, normal "
            f"service after {line['normal_after_s']} s (bound 3)")


def text_of(line):
    """Returns the figures of a case as a line of text."""
    if line["kind"] == "crowd":
        return crowd_text(line, line["capacity_per_s"])
    if line["kind"] == "classes":
        return (f"classes at {FACTOR} x capacity: refused {100 * line['gold_refused_share']:.1f} % of "
                f"{line['gold_sent']} uploads of the higher class (bound 5 %), "
                f"{100 * line['other_refused_share']:.1f} % of {line['other_sent']} of the lower")
    return (f"twice the service time at {FACTOR} x capacity: the target is kept "
            f"{line['settled_after_start_s']} s after the start and "
            f"{line['settled_after_change_s']} s after the change (bound 10 s; None: never)")
