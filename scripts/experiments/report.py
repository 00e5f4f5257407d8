"""The report in Markdown: first the verdicts with their plots, then the tables behind them."""

import re
import statistics

import architectures
import claims
import cutoff
import machine
import plots
import quiet
import results as r
import simulation
import synthetic
import tables
import visits

MUCH = 5  # per cent of the CPUs used by other programs
WITHOUT_DAEMON = {*synthetic.PARTS, *simulation.PARTS}


def _order(machine_line):
    seed = machine_line.get("seed")
    return "rotated order" if seed is None else f"an order drawn at random from the seed {seed}"


def _requests(machine_line):
    count = machine_line.get("requests")
    return f"{count} requests" if count else "every file once"


def _rounds(results):
    """Returns how the rounds were measured. Only some parts have a daemon."""
    line = results.machine
    kinds = {row["kind"] for row in results.lines} - {"machine", "disturbed"}
    without = kinds & WITHOUT_DAEMON
    rounds = (f"{results.rounds(None)} rounds. Each round has every configuration once, in "
              f"{_order(line)}")
    if without == kinds:
        return f"{rounds}. There is no daemon, and no files are sent."
    text = (f"{line['files']} files, {line['file_bytes'] / 1e6:.0f} MB. {rounds}, with a fresh daemon "
            f"and an empty store, and sends {_requests(line)} in a closed loop. Server and load "
            "generator are on the same machine.")
    return text + (f" These parts have no daemon: {', '.join(sorted(without))}." if without else "")


def _head(results, command):
    text = [f"# Configurations compared\n\n`{command}` on {machine.sentence(results.machine)}.\n",
            f"{_rounds(results)} Values are medians, with the range over the rounds in parentheses. "
            "Ratios have intervals. The raw results are in raw.jsonl.\n"]
    others = [100 * line["others_cpu_share"] for line in results.lines
              if "others_cpu_share" in line and line["kind"] not in {*quiet.INSENSITIVE, "disturbed"}]
    if others:
        median = statistics.median(others)
        advice = (" **The machine was busy: the times say little. Repeat the experiment on a quiet "
                  "one.**")
        text.append(f"Other programs used {median:.1f} % of the CPUs (median of the runs, at most "
                    f"{max(others):.1f} %).{advice if median > MUCH else ''}\n")
    if disturbed := results.of("disturbed"):
        text.append(f"{len(disturbed)} runs were disturbed by other programs and repeated; they do "
                    "not count.\n")
    return text


def _policies(results, workload):
    text = [f"## {workload} connections\n\nThroughput, as in the paper's table 4.4. The "
            "last column is the paper's, relative to its best.\n\n"
            f"{tables.throughput(results, workload)}\n\n{tables.design(results, workload)}\n\n"
            f"Clients, as in table 4.5.\n\n{tables.clients(results, workload)}\n\n"
            f"The server, as in table 4.6.\n\n{tables.server(results, workload)}\n"]
    if found := visits.table(results, workload):
        text.append("Visits to stages by the threads that serve images, in the order of "
                    f"throughput. Maxima are since the start of a run.\n\n{found}\n")
    has_others = len(results.ranking(workload, tables.r.RATE)) > 1
    if results.runs("policies", "drain", workload) and has_others:
        text.append("darkroom's default relative to each other configuration: above 1 is better in "
                    "throughput, below 1 is better in times. Intervals of 95 %, each by itself."
                    f"\n\n{tables.drain(results, workload)}\n")
    return text


def _parts(results):
    text = []
    for workload in results.workloads("layouts"):
        text.append("## Replicas and partitions\n\n"
                    f"Cohort scheduling, {workload} connections.\n\n"
                    f"{tables.layouts(results, workload)}\n")
    if results.of("overload"):
        text.append("## Overload\n\nAn open loop. The 90th percentile is of accepted uploads, "
                    "since they were due; one that was never sent counts as the latest.\n\n"
                    f"{tables.overload(results)}\n")
    for kind, title, words, make in (
            ("cohorts", "Sizes of cohorts",
             "Policy cohort with a largest number of events of a visit (Larus 5.2).",
             tables.cohorts),
            ("slowdown", "Slowdown by load",
             "Response time since a request was due, over its time alone on an idle server, in an "
             "open loop. A load of 1 is what drain answers in a closed loop. Requests are classed "
             "by their time alone. The oracles serve the same arrivals without overhead: SRPT with "
             "the least remaining work first, and processor sharing. Geometric means of the "
             "rounds, with intervals of 95 %.", tables.slowdown),
            ("cutoff", "Preemption",
             f"Policy cohort in an open loop at a load of {cutoff.LOAD:g}: a decode that takes longer "
             "than the cutoff is parked, and the next image is decoded.", cutoff.table),
            ("bursts", "Controllers under bursts",
             "SEDA with fixed pools and with its controllers: an open loop of half the capacity, "
             "and twice the capacity within two bursts.", tables.bursts),
            ("addresses", "Overload by many clients",
             "19 of 20 pictures are small. Open loops have Poisson arrivals at a multiple of the "
             "capacity. The 600 connections of a closed loop wait a second after each answer, heed "
             "Retry-After, or come back at once. A jump is from 0.7 to 1.4 times the capacity. "
             "Before and after each run a closed loop of 8 connections tells the capacity; the load is "
             "a multiple of the first one. Goodput is work, as a share of the capacity in the time "
             "that the generator left; with the clients elsewhere, its time would make pictures too. "
             "The ratio is of the rates of refusal. The rare client asks for "
             "about a 600th of the machine. The target is 1 s.",
             tables.addresses),
            ("architectures", "Architectures side by side",
             "One program with the same stages, sockets and pictures under each architecture, which "
             "answers when the files are stored. The file of each is in conf or conf/experiments. A "
             f"thread for each connection serves at most {architectures.THREADS} of them, so it has "
             "no figures beyond. Closed loops end by time, not after a number of requests. Server and "
             "generator share the cores: requests/s say how much both can do, and CPU time is the "
             "server's alone, with that of accepting the connections. The dataset is a sample of at most "
             f"{architectures.FILES} pictures. Slowdown is since a request was due, over its time alone "
             "on an idle server; a load of 1 is what drain answers in a closed loop. An idle connection "
             "has had one answer; of an upload half has come. Memory is RssAnon, so that of the kernel's "
             "sockets is not in it. The last table has a memory "
             f"budget of {architectures.BUDGET}B, and ratios with the order by resources to without. It cannot be told "
             "here what waiting for a disk changes, since all files are in memory, nor what more than "
             f"{results.machine.get('cores')} cores change.",
             architectures.tables),
            ("bottleneck", "One bottleneck on one of three paths",
             "Gordon's search engine (4.3, tables 4.9 to 4.11) without its pages: 15 stages that spin, "
             f"of which the one that combines the sets of several terms takes "
             f"{synthetic.BOTTLENECK_US} us, and {synthetic.EVENTS} requests in a closed loop. Of ten "
             "requests six are titles, two have one term, and two have several. A round is a "
             "request; the best interval is a twentieth of the run.", tables.bottleneck),
            ("gates", "Cohorts of up to 1,000 events",
             f"Policy cohort on one core, {synthetic.COHORT_EVENTS} events in a ring of "
             f"{synthetic.COHORT_STAGES} stages that each read a table of {synthetic.TABLE_KB} KB.",
             tables.gates),
            ("ring", "Cost of a hand-over",
             "One event goes round stages that do nothing: on one thread with the policy cohort, "
             "and with a pool of one thread for each stage, as in Welsh 5.8.2.", tables.ring),
            ("threads", "Degradation of threads",
             "Each task reads 8 KB of a cached file on a thread of its own (Welsh, figure 3).",
             tables.threads),
            ("simulation", "Two virtual cores beside two real ones",
             f"A ring of {simulation.STAGES} stages; an event needs {simulation.WORK_US / 1000:g} ms of "
             "CPU time, with exponential distributions. Closed loops, and Poisson arrivals at shares "
             "of the capacity. Both sides have the same arrivals and work. Inside is throughput "
             "within 5 % and a percentile within 10 %, or an interval that has 1.",
             simulation.table),
            ("cores", "More cores than this machine has",
             "The same ring in virtual time, which is simulated and not measured: every core has its "
             "own speed, and only the costs of the scheduler and the kernel are there. Efficiency is "
             "the throughput over that of cores without any overhead, and slowdown the time of an "
             "event over its CPU time. Each round has another seed. A group has at most "
             f"{simulation.THREADS_MAX} workers, so there are no results for more cores. Layouts are "
             "compared by ratios within a round, with intervals of 95 %. On nodes, an event whose data "
             f"another node has needs {simulation.FAR_US} us more, a share of "
             f"{100 * simulation.FAR_US / simulation.WORK_US:g} %: an assumption.",
             simulation.cores_table)):
        if results.of(kind):
            text.append(f"## {title}\n\n{words}\n\n{make(results)}\n")
    if results.of("caches"):
        first = results.of("caches")[0]
        sizes = ", ".join(f"{name} {size}" for name, size in first["sizes"].items())
        text.append(f"## Simulated caches\n\n{first['images']} pictures, one worker, callgrind "
                    f"({sizes}; LL is the core's L2). Means of the rounds. Other programs do not "
                    "change these counts.\n\n"
                    f"{tables.cache_misses(results)}\n")
    return text


def verdict_lines(verdicts):
    return [f"{number}. **{verdict.claim}** {verdict.verdict.capitalize()}. "
            f"{f'The paper: {verdict.expected}. ' if verdict.expected else ''}"
            f"{' '.join(verdict.numbers)}" for number, verdict in enumerate(verdicts, 1)]


def text(results, command):
    """Returns the verdicts and the lines of the report."""
    r.check_order(results.lines)
    verdicts = claims.verdicts(results)
    lines = _head(results, command)
    if verdicts:
        lines.append("## Verdicts\n\nA claim holds if the interval of 95 % of each ratio is within "
                     "the bounds. It does not hold if one ratio is outside after Holm's correction "
                     "for their number. After a ratio: \"?\" it is not decided, \"no\" it is "
                     "outside.\n")
        lines += [*verdict_lines(verdicts), ""]
    if pictures := plots.names(results):
        lines.append("## Plots\n")
        lines += [*(f"![{title}]({name})" for name, title in pictures), ""]
    for workload in results.workloads():
        lines += _policies(results, workload)
    lines += _parts(results)
    return verdicts, "\n".join(lines) + "\n"


def command_of(results, directory, command):
    """Returns the command that has measured: that of the raw results, or of the old report."""
    path = directory / "report.md"
    found = re.search(r"^`([^`]+)` on ", path.read_text(), re.MULTILINE) if path.exists() else None
    return results.machine.get("command") or (found[1] if found else command)


def write(results, directory, command):
    """Draws the plots and writes report.md. Returns the verdicts."""
    verdicts, body = text(results, command_of(results, directory, command))
    plots.draw(results, directory)
    (directory / "report.md").write_text(body)
    return verdicts
