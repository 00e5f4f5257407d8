"""Overload by many clients with small and large pictures: refusals, percentiles and goodput by
size, for each controller, number of clients, load and way to come back; and the recovery from a
jump.

Clients are named by X-Forwarded-For. Work is the time of the whole machine that a picture takes, as
measured with pictures of one size alone. The generator shares the machine with the daemon, and runs
before all other threads if it may (SCHED_FIFO), so that its times are the daemon's.

The speed of a virtual machine changes within minutes. So each run has a closed loop before and after
it. The first one tells the capacity, of which the load is a multiple. Goodput is the share of the
work of both that was reached, in the time that the generator left to the daemon."""

import functools
import io
import os
import pathlib
import statistics

import machine
import quiet
import run
import shedding
import shedding_cases
from job import Job
from shedding_plots import percentile

CONTROLLERS = ("backlog", "welsh", "rate", "codel", "dagor", "off")
CLIENTS, FACTORS = (1, 20, 600), (0.7, 0.95, 1.2, 2, 4, 10)
OFF_MOST = 2  # times the capacity; without a controller, more leaves no descriptor
SIZES = {"small": (1000, 750), "large": (4000, 3000)}
FILES = {"small": 38, "large": 2}  # 5 % are large
TARGET_S, WARM_UP_S, LEAST_S = 1, 4, 0.05
# Connections of the closed loop that tells the capacity, when it is counted from, and until.
ALONE, ALONE_FROM_S, ALONE_S = 8, 0.25, 1.75
ROUNDS = 3
CONNECTIONS = 600  # of a closed loop
# What a client of a closed loop does after an answer.
CLOSED = {"think": ("--think", 1000), "heed": ("--heed-retry-after",), "at once": ()}
JUMP_FROM, JUMP_TO = 0.7, 1.4
RARE, RARE_PER_S = "198.19.0.1", 0.2  # a client that asks for about a 600th of the machine
WINDOW_S = 0.25
SETTINGS = ("server.trusted_proxies=127.0.0.1", "server.admin_on_public=yes",
            "limits.images_per_client=0", "limits.connections_per_client=0",
            f"overload.target_p90={TARGET_S}s", f"limits.body_timeout={run.LONG}")


def jobs(options, bench, number):
    """Returns the jobs of the controllers and loops that --configurations names, or all."""
    def job(controller, loop, clients, factor, measure):
        return Job("addresses", f"{controller}, {loop}, {factor:g}", clients, number,
                   lambda: {"controller": controller, "loop": loop, "factor": factor,
                            **measure(options, bench, controller, clients, number)},
                   options.overload_s + 2 * ALONE_S + 4)
    out = []
    for controller in CONTROLLERS:
        for clients in CLIENTS:
            out += [job(controller, "open", clients, factor, functools.partial(_open, factor))
                    for factor in FACTORS if controller != "off" or factor <= OFF_MOST]
            out += [job(controller, loop, clients, 0, functools.partial(_closed, words))
                    for loop, words in CLOSED.items()]
        out.append(job(controller, "jump", CLIENTS[-1], JUMP_TO, _jump))
    def names(job):
        words = [*job.name.replace("at once", "at-once").split(", "), str(job.workload)]
        return {"-".join(words[:count]) for count in (1, 2, 3, 4)}
    chosen = set(options.configurations)
    return [job for job in out if not chosen or chosen & names(job)]


# ---- files and capacity ----

def files(work):
    """Makes the pictures once. Returns the directory of each size, and of all."""
    import PIL.Image  # the other parts, --help and --plan do not need it
    directory = pathlib.Path(work) / "sizes"
    sources = sorted((machine.ROOT / "data" / "sample").glob("*.jpg"))
    for size, shape in SIZES.items():
        for number in range(FILES[size]):
            path = directory / size / f"{size}-{number}.jpg"
            if path.exists():
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            data = io.BytesIO()
            picture = PIL.Image.open(sources[number % len(sources)]).convert("RGB").resize(shape)
            picture.save(data, "jpeg", quality=85)
            path.write_bytes(data.getvalue())
    return directory


def per_s(options, bench):
    """Returns how many pictures of each size the machine ends in a second. They are measured once,
    undisturbed, and stored with the results."""
    found = quiet.once(options.out / "addresses.json", "sizes",
                       lambda: {size: _of_size(bench, options, size) for size in SIZES},
                       options.others / 100)
    return {size: found[size] for size in SIZES}


def _of_size(bench, options, size):
    with bench.daemon(machine.ROOT / "conf" / "drain.ini", SETTINGS) as daemon:
        return _alone(daemon, files(options.out) / size, dict.fromkeys(SIZES, 1))["work"]


def _alone(daemon, directory, rates):
    """Returns the work that the machine does in a second in a closed loop, and the share of its time
    that the generator takes."""
    cpu_s = run.children_cpu_s()
    rows = shedding_cases.rows_of(_start(daemon, directory, "alone", ALONE, ALONE_S))
    return {"work": work_per_s(rows, rates, ALONE_FROM_S, ALONE_S),
            "load_share": (run.children_cpu_s() - cpu_s) / ALONE_S / machine.cores()}


def capacity(rates):
    """Returns the pictures of the mix that the machine ends in a second."""
    count = sum(FILES.values())
    return 1 / sum(FILES[size] / count / rates[size] for size in SIZES)


# ---- measuring ----

def _start(*arguments):
    """Starts a load that runs before other threads."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        return shedding_cases.start_load(*arguments)
    try:
        return shedding_cases.start_load(*arguments)
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def _run(options, bench, rates, controller, load_of):
    """Runs a load beside a client that asks rarely. load_of: returns the connections and words of
    the load for a capacity. Returns the rows of both, the share of the machine's time that the
    generators took, and what _alone() measures before and after them."""
    settings = [*SETTINGS, f"overload.controller={controller}",
                f"limits.connections={shedding.files_max()}"]
    if controller == "off":
        settings.append("limits.images_in_flight=65536")
    directory = files(options.out)
    with bench.daemon(machine.ROOT / "conf" / "drain.ini", settings) as daemon:
        before = _alone(daemon, directory, rates)
        connections, words = load_of(before["work"] * capacity(rates))
        rare = _start(
            daemon, directory / "small", "rare", 4, options.overload_s, "--rate", RARE_PER_S,
            "-H", f"X-Forwarded-For: {RARE}")
        cpu_s = run.children_cpu_s()
        load = _start(daemon, directory, "load", connections, options.overload_s, *words)
        rows, rare = shedding_cases.rows_of(load), shedding_cases.rows_of(rare)
        share = (run.children_cpu_s() - cpu_s) / options.overload_s / machine.cores()
        daemon.wait_until_idle()
        return rows, rare, share, (before, _alone(daemon, directory, rates))


def _figures(options, rates, found, since):
    """Returns the figures of a run."""
    rows, rare, share, alone = found
    # Of the whole machine's work, as if there were no generator.
    works = [each["work"] / (1 - each["load_share"]) for each in alone]
    figures = summary(rows, rates, options.overload_s, since)
    return {**figures, "done": figures["goodput"],
            "goodput": figures["goodput"] / statistics.mean(works) / (1 - share),
            "capacity_per_s": alone[0]["work"] * capacity(rates),
            "capacity_after_per_s": alone[1]["work"] * capacity(rates), "load_share": share,
            "load_shares_alone": [each["load_share"] for each in alone],
            "rare_refused_in_a_row": in_a_row(rare)}


def _at_rate(factor, options, clients, number, words, per_s):
    """Returns the connections and words of an open loop, for _run()."""
    rate = factor * per_s
    most = max(factor, JUMP_TO) * per_s
    return shedding.connections(most, options.overload_s, TARGET_S), (
        "--clients", clients, *shedding_cases.at_rate(rate), "--seed", number + 1, *words)


def _open(factor, options, bench, controller, clients, number):
    rates = per_s(options, bench)
    found = _run(options, bench, rates, controller,
                 functools.partial(_at_rate, factor, options, clients, number, ()))
    return _figures(options, rates, found, "intended")


def _closed(words, options, bench, controller, clients, number):
    rates = per_s(options, bench)
    found = _run(options, bench, rates, controller, lambda _: (
        CONNECTIONS, ("--clients", clients, *words, "--seed", number + 1)))
    return _figures(options, rates, found, "start")


def _jump(options, bench, controller, clients, number):
    """The load jumps for the middle third of the run."""
    rates, third = per_s(options, bench), options.overload_s / 3
    spike = "--spike", f"{JUMP_TO / JUMP_FROM:g}:{1000 * third:.0f}@{third:.3f}"
    found = _run(options, bench, rates, controller,
                 functools.partial(_at_rate, JUMP_FROM, options, clients, number, spike))
    rows, recovery = found[0], last_late_s(found[0], third, 2 * third, TARGET_S)
    figures = _figures(options, rates, found, "intended")
    return {"recovery_s": recovery, "recovery_services": recovery * figures["capacity_per_s"],
            "normal_after_s": last_late_s(rows, 2 * third, 3 * third, TARGET_S / 2),
            **figures}


# ---- figures ----

def size_of(row):
    return pathlib.Path(row["file"]).name.split("-")[0]


def work_per_s(rows, rates, from_s, until_s):
    """Returns the work that was answered within this time since the first request, per second. What
    is answered after the end of a load is not of its time."""
    begin = min(float(row["start"]) for row in rows if row["start"])
    return sum(1 / rates[size_of(row)] for row in rows if row["status"] == "201"
               and from_s <= float(row["done"]) - begin <= until_s) / (until_s - from_s)


def summary(rows, rates, seconds, since):
    """Returns the figures after the warm-up. Times of admitted uploads count from `since`, those of
    refusals from when they were sent."""
    warm_up = min(WARM_UP_S, seconds / 3)
    begin = min(float(row["start"]) for row in rows if row["start"])
    late = [row for row in rows if row["done"] and float(row[since]) - begin >= warm_up]
    out, refusals = {}, []
    for size in SIZES:
        own = [row for row in late if size_of(row) == size]
        good = [float(row["done"]) - float(row[since]) for row in own if row["status"] == "201"]
        refused = [float(row["done"]) - float(row["start"]) for row in own if row["status"] == "503"]
        refusals += refused
        out[size] = {"admitted": len(good), "refused": len(refused),
                     "p90_s": percentile(good, 0.9), "refusal_p99_s": percentile(refused, 0.99)}
    return {"seconds": seconds, "target_s": TARGET_S, **out,
            "goodput": work_per_s(rows, rates, warm_up, seconds),
            "others": sum(row["status"] not in ("201", "503") for row in rows),
            "refusal_p99_s": percentile(refusals, 0.99)}


def goodput_elsewhere(line):
    """Returns the goodput as if the clients had other machines: the generator's time would make
    pictures as well. None: the machine may be idle for a part of the time."""
    if line["loop"] != "open" or line["factor"] < 1:
        return None
    return line["goodput"] * (1 - line["load_share"]) + line["load_share"]


def refused_share(line, size):
    own = line[size]
    return own["refused"] / max(1, own["refused"] + own["admitted"])


def refusal_ratio(line):
    """Returns how much more often one size is refused than the other. None: less than 5 % of both
    are refused."""
    low, high = sorted(refused_share(line, size) for size in SIZES)
    return None if high < LEAST_S else high / max(low, 1e-3)


def in_a_row(rows):
    """Returns the most refusals in a row."""
    most = now = 0
    for row in sorted(rows, key=lambda row: float(row["intended"])):
        now = now + 1 if row["status"] == "503" else 0
        most = max(most, now)
    return most


def last_late_s(rows, begin_s, end_s, bound_s):
    """Returns when the last window within this time ends in which nine of ten admitted uploads did
    not keep the bound, since its begin. 0: there is none."""
    start = min(float(row["intended"]) for row in rows)
    windows = {}
    for row in rows:
        at = float(row["intended"]) - start
        if begin_s <= at < end_s and row["status"] == "201":
            windows.setdefault(int((at - begin_s) / WINDOW_S), []).append(
                float(row["done"]) - float(row["intended"]))
    return max(((window + 1) * WINDOW_S for window, times in windows.items()
                if percentile(times, 0.9) > bound_s), default=0)
