"""Demsky's model of what an architecture costs a server (2001, 4.1, 4.8 and 4.9): its CPU time is an
architecture-independent part and the sum of its events, each at the cost that a microbenchmark gives it
(tests/bench/costs model). The model is as good as the independent part is equal among architectures:
the measure is the coefficient of variation of its means. Five nested models tell which events matter.

A row is one run:

    {"architecture": "drain", "workload": "GET", "connections": "short", "requests": 5000,
     "cpu_ns": 200000000, "events": {"poll": 800, ...}, "threads": 7}

Measures the rows and prints the tables, or makes them again of the rows of an earlier run. Runs by
itself:

    /usr/bin/python3 scripts/experiments/cost_model.py --out build/cost-model
    /usr/bin/python3 scripts/experiments/cost_model.py --out build/cost-model --report

Threads of the kernel are made at the start, but for one architecture. An inflation is memory that is
taken when something is first used, which here is a fault of a page. His synchronisation is all by which threads meet: hand-overs in a queue, wake-ups, and
switches of both kinds of threads. What user-level threads cost when they are made is measured, but not
counted: a core makes 16 at most."""

import argparse
import contextlib
import functools
import io
import json
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import time

import PIL.Image

import machine
import plan
import plots
import results
import run
import worktree
from markdown import table as markdown_table

CREATION, INFLATION, SYNCHRONISATION, SELECT = "creation", "inflation", "synchronisation", "select"
EVENTS = {CREATION: ("kernel_thread",), INFLATION: ("page",),
          SYNCHRONISATION: ("hand_over", "hand_over_far", "wake", "user_switch", "kernel_switch"),
          SELECT: ("poll", "poll_ready")}
# Each model has the events of those before it.
MODELS = {"none": (), "creation": (CREATION,), "inflation": (CREATION, INFLATION),
          "complete": (CREATION, INFLATION, SYNCHRONISATION),
          "with select": (CREATION, INFLATION, SYNCHRONISATION, SELECT)}
RESAMPLES = 400  # for intervals

NEW_THREADS = "new-threads"
ARCHITECTURES = {
    "event-loop": ("experiments/event-loop", (f"stage.accept_read.threads={machine.cores()}",)),
    "amped": ("experiments/amped", (f"stage.accept_read.threads={machine.cores()}",)),
    "drain": ("drain", ()),
    "user-threads": ("experiments/user-threads", ()),
    plan.POOLS_FOR_CORES: ("seda", plan.pools_for(machine.cores())),
    "one-pool": ("experiments/one-pool", ()),
    "thread-per-connection": ("thread-per-connection", ("scheduler.threads=50",)),
    NEW_THREADS: ("experiments/new-threads", ("scheduler.threads=50",))}
OPTIONS = ("server.respond_after=store", "server.durability=none", "experiment.fair_clients=no",
           "limits.images_in_flight=65536")
COSTS = "build/plain/tests/bench/costs"
CLIENTS = 50
GET, HEALTH, TINY, PICTURES = "GET", "/healthz", "400-byte JPEG", "data/sample"
LONG, SHORT = "long", "short"
CELLS = [(workload, kind) for workload in (GET, HEALTH, TINY) for kind in (SHORT, LONG)] \
    + [(PICTURES, LONG)]  # where pixels cost all
WARM_UP_S = 0.3


# ---- the model ----

def _overhead_ns(row, costs, parts):
    """Returns the time of the run's events of these parts. costs: (median, low, high) by event."""
    return sum(row["events"].get(name, 0) * costs[name][0] for part in parts
               for name in EVENTS[part])


def independent_ns(row, costs, model):
    """Returns the time of a request that the model does not explain by the architecture."""
    unknown = row["events"].keys() - {name for names in EVENTS.values() for name in names}
    if unknown:
        raise ValueError(f"no model has the event {min(unknown)}")
    return (row["cpu_ns"] - _overhead_ns(row, costs, MODELS[model])) / row["requests"]


def _times(rows, costs, model):
    """Returns the times of the repetitions, by architecture."""
    out = {}
    for row in rows:
        out.setdefault(row["architecture"], []).append(independent_ns(row, costs, model))
    return out


def _coefficient(times):
    means = [statistics.fmean(own) for own in times]
    return statistics.stdev(means) / statistics.fmean(means)


def variation(rows, costs, model):
    """Returns the coefficient of variation among the architectures of the rows (Demsky 4.9: the
    standard deviation of their times over the average of these), and an interval of 95 % by drawing
    repetitions again. None with less than two architectures."""
    times = list(_times(rows, costs, model).values())
    if len(times) < 2:
        return None
    drawn, chance = [], random.Random(0)
    for _ in range(RESAMPLES):
        drawn.append(_coefficient([chance.choices(own, k=len(own)) for own in times]))
    drawn.sort()
    return _coefficient(times), drawn[RESAMPLES // 40], drawn[-1 - RESAMPLES // 40]


def _cells(rows):
    return list(dict.fromkeys((row["workload"], row["connections"]) for row in rows))


def _of(rows, cell):
    return [row for row in rows if (row["workload"], row["connections"]) == cell]


def _costs_table(costs):
    return markdown_table(["Event", "cost, ns", "95 %"], [
        [name, f"{middle:.0f}", f"{low:.0f}..{high:.0f}"]
        for name, (middle, low, high) in costs.items()])


def _variations_table(rows, costs):
    out = []
    for cell in _cells(rows):
        found = [variation(_of(rows, cell), costs, model) for model in MODELS]
        out.append([", ".join(cell), *("" if each is None else
                                       f"{each[0]:.3f} ({each[1]:.3f}..{each[2]:.3f})"
                                       for each in found)])
    return markdown_table(["Coefficient of variation", *MODELS], out)


def _architectures_table(rows, costs):
    """What each part costs a request, and what is left."""
    out = []
    for cell in _cells(rows):
        for name in dict.fromkeys(row["architecture"] for row in _of(rows, cell)):
            own = [row for row in _of(rows, cell) if row["architecture"] == name]

            def us(of, own=own):
                return [of(row) / 1e3 for row in own]
            parts = [us(lambda row, part=part: _overhead_ns(row, costs, [part]) / row["requests"])
                     for part in EVENTS]
            out.append([f"{', '.join(cell)}: {name}", str(own[0]["threads"]), str(len(own)),
                        results.spread(us(lambda row: row["cpu_ns"] / row["requests"]), 1),
                        *(f"{statistics.fmean(part):.2f}" for part in parts),
                        results.spread(us(lambda row: independent_ns(row, costs, "with select")), 1)])
    return markdown_table(["CPU us per request", "threads", "runs", "all", *EVENTS, "independent"],
                          out)


def _events_table(rows):
    names = [name for names in EVENTS.values() for name in names]
    out = []
    for cell in _cells(rows):
        for name in dict.fromkeys(row["architecture"] for row in _of(rows, cell)):
            own = [row for row in _of(rows, cell) if row["architecture"] == name]
            out.append([f"{', '.join(cell)}: {name}", *(
                f"{statistics.fmean(row['events'].get(event, 0) / row['requests'] for row in own):.3f}"
                for event in names)])
    return markdown_table(["Events per request", *names], out)


def table(rows, costs):
    """Returns the tables in Markdown: the variation of each workload under each model, the parts of
    each architecture's time, its events, and the costs of these."""
    return "\n\n".join((_variations_table(rows, costs), _architectures_table(rows, costs),
                        _events_table(rows), _costs_table(costs)))


def report(about, rows):
    """Returns the report of the machine's line and the rows."""
    return f"{machine.sentence(about)}\n\n{table(rows, about['costs'])}\n"


def draw(rows, costs, path):
    """Draws the variation by model, with a panel for each kind of connections."""
    numbers = range(1, len(MODELS) + 1)
    panels = []
    for kind in dict.fromkeys(row["connections"] for row in rows):
        lines = []
        for cell, colour in zip([cell for cell in _cells(rows) if cell[1] == kind],
                                plots.LINES[::3]):
            found = [variation(_of(rows, cell), costs, model) for model in MODELS]
            lines.append((cell[0], colour, [(x, each[0]) for x, each in zip(numbers, found) if each]))
        panels.append((f"{kind} connections", False, None, lines))
    words = ", ".join(f"{x} {name}" for x, name in zip(numbers, MODELS))
    plots.overlays("Coefficient of variation among architectures", panels, path, words,
                   (0, "top right"))


# ---- the events of a run ----

def _process(pid):
    """Returns the CPU time, the switches and the threads of a process, and its faults of pages."""
    folder = pathlib.Path(f"/proc/{pid}")
    out = {"cpu_ns": time.clock_gettime_ns((~pid << 3) | 2),  # clock_getcpuclockid(3): all threads
           "page": int((folder / "stat").read_text().rsplit(")", 1)[1].split()[7]),
           "kernel_switch": 0, "threads": set()}
    for task in (folder / "task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            out["kernel_switch"] += sum(int(line.split()[1]) for line in
                                        (task / "status").read_text().splitlines()
                                        if "ctxt_switches" in line)
            out["threads"].add(task.name)
    return out


def snapshot(daemon, is_end=False):
    """Returns what events() needs of a run.Daemon, before a run and at its end. What the statistics
    themselves cost is outside of the run."""
    process = _process(daemon.process.pid) if is_end else {}
    return {"stats": daemon.stats(), **(process or _process(daemon.process.pid))}


def accepted(of):
    """Returns the connections of a snapshot."""
    return of["stats"]["http"]["connections_accepted"]


def _where(stats):
    """Returns the groups whose threads execute each stage: a stage that is called directly has those
    of its callers."""
    groups = {stage["name"]: set() if stage["pass_through"] else {stage["group"]}
              for stage in stats["stages"]}
    called = {stage["name"] for stage in stats["stages"] if stage["pass_through"]}
    for _ in groups:
        for edge in stats["edges"]:
            if edge["to"] in called and edge["events"]:
                groups[edge["to"]] |= groups[edge["from"]]
    return groups


def _hand_overs(before, after):
    """Returns the events that were taken from queues, by whether the threads of another group had
    put them there. Each pool of policy seda is a group. Under user-threads what a thread itself
    carries on is in no queue."""
    where, policy = _where(after), after["scheduler"]["policy"]
    sent = {(edge["from"], edge["to"]): edge["events"] for edge in after["edges"]}
    for edge in before["edges"]:
        sent[edge["from"], edge["to"]] -= edge["events"]
    near = far = 0
    for was, stage in zip(before["stages"], after["stages"]):
        taken = stage["wait"]["count"] - was["wait"]["count"]
        is_pool = policy == "seda" and where[stage["name"]] == {"main"}
        outside = sum(count for (source, to), count in sent.items() if to == stage["name"]
                      and (is_pool or where[source] != where[to]))
        far += min(taken, outside)
        if policy != "user-threads" or where[stage["name"]] != {"main"}:
            near += max(0, taken - outside)
    return near, far


def events(before, after):
    """Returns the events of a run between two snapshots, and the CPU time of the process in ns."""
    was, now = before["stats"], after["stats"]
    groups = {one["name"]: {key: one[key] - other[key] for key in
                            ("sleeps", "wakes_sent", "visits", "visits_empty")}
              for other, one in zip(was["scheduler"]["groups"], now["scheduler"]["groups"])}
    stage = {one["name"]: (one["events"] - other["events"], one["visits"] - other["visits"],
                           one["wait"]["count"] - other["wait"]["count"])
             for other, one in zip(was["stages"], now["stages"])}
    handled, visits, queued = stage["accept_read"]
    near, far = _hand_overs(was, now)
    runs = groups["main"]["visits"] + groups["main"]["visits_empty"]
    return {"kernel_thread": len(after["threads"] - before["threads"]), "page": after["page"] - before["page"],
            "hand_over": near, "hand_over_far": far,
            "wake": sum(group["wakes_sent"] for group in groups.values()),
            "user_switch": 2 * runs if now["scheduler"]["policy"] == "user-threads" else 0,
            # The kernel forgets those of threads that have ended: each sleep was one.
            "kernel_switch": max(after["kernel_switch"] - before["kernel_switch"],
                                 sum(group["sleeps"] for group in groups.values())),
            # An event loop polls when it goes to sleep, and after each visit to its queue.
            "poll": groups["io"]["sleeps"] + visits,
            "poll_ready": max(0, handled - queued)}, after["cpu_ns"] - before["cpu_ns"]


@functools.cache
def measured_costs():
    """Returns (median, low, high) in ns of each event, of the microbenchmarks."""
    subprocess.run(["make", "-s", COSTS], cwd=machine.ROOT, check=True)
    return json.loads(subprocess.run([machine.ROOT / COSTS, "model"], check=True,
                                     capture_output=True, text=True).stdout)


# ---- measuring ----

def tiny_jpeg():
    """Returns a JPEG of about 400 bytes."""
    data, picture = io.BytesIO(), PIL.Image.radial_gradient("L").resize((24, 16)).convert("RGB")
    picture.save(data, "jpeg", quality=95, optimize=True)
    return data.getvalue()


def load(daemon, workload, connections, seconds, work, variant):
    """Sends requests of the workload for that time. variant: the path of a stored file, for GET.
    Returns the number of answers, all of which were right."""
    command = ["-c", CLIENTS, "-d", f"{1000 * seconds:.0f}ms"]
    if connections == SHORT:
        command += ["--requests-per-connection", 1]
    if workload in (GET, HEALTH):
        command += ["--get", daemon.url + (variant if workload == GET else HEALTH)]
    else:
        command += [daemon.url + "/images",
                    work / "tiny" if workload == TINY else machine.ROOT / PICTURES]
    return run.generate(*command)["responses"]


def measure(name, seconds, work, cells=CELLS):
    """Yields the rows of one architecture, on a fresh daemon after a warm-up."""
    path, options = ARCHITECTURES[name]
    (work / "tiny").mkdir(parents=True, exist_ok=True)
    (work / "tiny" / "tiny.jpg").write_bytes(tiny_jpeg())
    with run.Daemon(machine.ROOT / "conf" / f"{path}.ini", work, (*OPTIONS, *options)) as daemon:
        variant = daemon.upload(machine.LAKE.read_bytes())["variants"]["thumb"]["url"]
        load(daemon, TINY, LONG, WARM_UP_S, work, variant)
        for workload, connections in cells:
            before = snapshot(daemon)
            requests = load(daemon, workload, connections, seconds, work, variant)
            after = snapshot(daemon, is_end=True)
            counted, cpu_ns = events(before, after)
            if name == NEW_THREADS:  # as in Demsky's 4.6: by the pattern of connections
                counted["kernel_thread"] = accepted(after) - accepted(before)
            yield {"kind": "cost model", "architecture": name, "workload": workload,
                   "connections": connections, "requests": requests, "cpu_ns": cpu_ns,
                   "events": counted, "threads": len(after["threads"])}
    shutil.rmtree(daemon.directory)


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    add("--rounds", type=int, default=30, help="runs of each architecture and workload (30)")
    add("--seconds", type=float, default=0.3, help="duration of each run (0.3)")
    add("--minutes", type=float, default=25, help="begin no round that would end later (25)")
    add("--architectures", default=",".join(ARCHITECTURES))
    add("--report", action="store_true", help="measure nothing: the tables of the rows in --out")
    add("--work", type=pathlib.Path, default=pathlib.Path("/dev/shm/darkroom-cost-model"),
        help="directory for stores, which is removed")
    add("--out", type=pathlib.Path, default=machine.ROOT / "build" / "cost-model")
    return parser.parse_args(arguments)


def _measure_all(options, raw):
    begun_s, rounds = time.monotonic(), 0
    names = options.architectures.split(",")
    raw.write(json.dumps(machine.describe() | {"costs": measured_costs()}) + "\n")
    while rounds < options.rounds and (rounds == 0 or (time.monotonic() - begun_s)
                                       * (rounds + 1) / rounds < 60 * options.minutes):
        for name in sorted(names, key=lambda name: plan.place(0, "cost model", name, 0, rounds)):
            for row in measure(name, options.seconds, options.work):
                raw.write(json.dumps(row | {"round": rounds}) + "\n")
            raw.flush()
        rounds += 1
        print(f"{rounds} of {options.rounds} rounds, {time.monotonic() - begun_s:.0f} s",
              file=sys.stderr, flush=True)


def main():
    options = parse(sys.argv[1:])
    path = options.out / "raw.jsonl"
    if not options.report:
        options.out.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(options.work, ignore_errors=True)
        options.work.mkdir(parents=True)
        path.unlink(missing_ok=True)
        try:
            with worktree.results(path) as raw:
                _measure_all(options, raw)
        finally:
            shutil.rmtree(options.work, ignore_errors=True)
    about, *rows = results.read(path)
    text = report(about, rows)
    (options.out / "report.md").write_text(text)
    draw(rows, about["costs"], options.out / "variation.svg")
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
