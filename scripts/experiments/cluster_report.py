"""The raw figures, the table and the picture of cluster.py."""

import json
import math

import machine
import plots

STATUSES = (("201", "#3b76af"), ("503", "#d9822b"), ("others", "#b03a48"))
NODES = ("#3b76af", "#d9822b", "#4f9d69", "#8a63a8", "#7d7d7d", "#c2a83e", "#b03a48", "#51a3a3")
HEAD = ("phase", "sent", "ok", "503", "other answers", "closed", "retried", "late", "doubled", "lost",
        "p50 ms", "p90 ms", "p99 ms")


def write_raw(directory, head, phases, events, answers):
    """Writes one JSON document per line: the run, its phases with their uploads, the events, and
    HAProxy's answers by second."""
    lines = [head, *phases, {"events": events}, {"answers": by_second(answers)}]
    (directory / "phases.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def read_raw(directory):
    """Returns the run, its phases, the events and the answers."""
    head, *phases, events, answers = map(
        json.loads, (directory / "phases.jsonl").read_text().splitlines())
    return head, phases, events["events"], answers["answers"]


def by_second(answers):
    """Returns the number of answers for each second with some, by status and by node."""
    seconds = {}
    for answer in answers:
        found = seconds.setdefault(math.floor(answer["s"]), {"statuses": {}, "nodes": {}})
        for key, value in (("statuses", answer["status"]), ("nodes", answer["node"])):
            if key == "statuses" or answer["status"] == "201":
                found[key][value] = found[key].get(value, 0) + 1
    return [{"s": second, **found} for second, found in sorted(seconds.items())]


def row(phase, answers):
    """Returns the cells of a phase. A request whose connection was closed has no line in HAProxy's
    log, so closed ones are the failed ones without such a line."""
    report = phase["report"]
    retries, times = report["retries"], report["since_due_ms"]
    statuses = {}
    for second in answers:
        if math.floor(phase["begin_s"]) < second["s"] + 1 <= math.ceil(phase["end_s"]):
            for status, count in second["statuses"].items():
                statuses[status] = statuses.get(status, 0) + count
    away = statuses.get("503", 0)
    others = sum(statuses.values()) - away - statuses.get("201", 0)
    closed = max(0, retries["repeated"] + retries["lost"] - away - others)
    return (phase["phase"], len(phase["uploads"]), report["statuses"].get("201", 0), away, others,
            closed, retries["repeated"], retries["late"], retries["doubled"], retries["lost"],
            *(f"{times[key]:.0f}" for key in ("p50", "p90", "p99")))


def p90_by_second(phases):
    """Returns (second, 90th percentile of the ms from when an upload was due) of each second."""
    seconds = {}
    for phase in phases:
        for upload in phase["uploads"]:
            if upload["status"] == "201":
                seconds.setdefault(math.floor(upload["due_s"]), []).append(
                    1000 * (upload["done_s"] - upload["due_s"]))
    return [(second + 0.5, sorted(times)[int(0.9 * len(times))] if times else 0)
            for second in range(min(seconds, default=0), max(seconds, default=0) + 1)
            for times in [seconds.get(second)]]


def rates(answers, key, of):
    """Returns (second, answers) for every second, where of(name) selects the names."""
    last = answers[-1]["s"] if answers else 0
    found = {line["s"]: sum(count for name, count in line[key].items() if of(name))
             for line in answers}
    return [(second + 0.5, found.get(second, 0)) for second in range(answers[0]["s"] if answers
                                                                     else 0, last + 1)]


def panels(phases, answers):
    """Returns (title, is logarithmic, [(name, colour, [(x, y)])]) of each panel."""
    known = [name for name, _ in STATUSES]
    by_status = [(name, colour, rates(answers, "statuses", lambda status, name=name:
                                      status == name if name != "others" else status not in known))
                 for name, colour in STATUSES]
    nodes = sorted({name for line in answers for name in line["nodes"]})
    by_node = [(name, NODES[i % len(NODES)], rates(answers, "nodes", lambda node, name=name:
                                                   node == name))
               for i, name in enumerate(nodes)]
    return [("answers per second, by status", True, by_status),
            ("p90 of the uploads that were due in a second, ms, with repetitions", True,
             [("p90", "#3b76af", p90_by_second(phases))]),
            ("uploads stored per second, by node", False, by_node)]


def draw(phases, events, answers, path):
    """Draws the panels over time, with a vertical line for each event. Of events that are close
    together, only the first is named."""
    shown = panels(phases, answers)
    end = max(phase["end_s"] for phase in phases)
    begin = phases[0]["begin_s"]
    script = plots.STYLE.format(width=1100, height=900, path=plots.quote(path), title="",
                                key="outside right top font ',11'") \
        + "unset title\n" \
        + f"set xrange [{begin:.6g}:{end:.6g}]\nset lmargin 9\nset rmargin 14\n" \
        + "set multiplot\n"
    for number, (title, is_logarithmic, lines) in enumerate(shown):
        top = 0.83 - 0.27 * number
        script += f"set tmargin at screen {top - 0.01:.3f}\nset bmargin at screen {top - 0.21:.3f}\n"
        script += "unset arrow\nunset label\n"
        named = -math.inf
        for i, event in enumerate(events, 1):
            script += f"set arrow {i} from {event['s']:.6g}, graph 0 to {event['s']:.6g}, " \
                "graph 1 nohead dt 2 lc rgb '#888888'\n"
            if number == 0 and event["s"] > named + 0.013 * (end - begin):
                named = event["s"]
                script += f"set label {i} '{plots.quote(event['what'])}' at {event['s']:.6g}, " \
                    "graph 1.1 rotate by 60 font ',11'\n"
        script += f"set label 100 '{plots.quote(title)}' at graph 0.005, graph 1.05 font ',12'\n"
        script += "set logscale y\nset yrange [0.5:*]\n" if is_logarithmic \
            else "unset logscale y\nset yrange [0:*]\n"
        script += f"set xlabel '{'s' if number == len(shown) - 1 else ''}'\n"
        for i, (_, _, points) in enumerate(lines):
            data = [f"{x:.6g} {y:.6g}" if y > 0 or not is_logarithmic else f"{x:.6g} NaN"
                    for x, y in points]
            script += f"$panel_{number}_{i} << EOD\n" + "\n".join(data or ["0 NaN"]) + "\nEOD\n"
        script += "plot " + ", ".join(
            f"$panel_{number}_{i} using 1:2 with linespoints lw 2 pt 7 ps 0.35 lc rgb '{colour}' "
            f"title '{plots.quote(name)}'" for i, (name, colour, _) in enumerate(lines)) + "\n"
    plots.gnuplot(script + "unset multiplot\n")


def text(head, phases, events, answers):
    """Returns the report."""
    rows = [row(phase, answers) for phase in phases]
    acknowledged = sum(cells[2] for cells in rows)
    doubled = sum(cells[8] for cells in rows)
    lines = ["# Many nodes", "", f"{machine.sentence(head)}.", "",
             f"{head['nodes']} nodes, HAProxy and the store ({head['store']}) on one machine; "
             f"{head['rate_per_s']:g} uploads per second at random times, repeated with their keys for "
             f"up to {head['retry']}; {head['connections']} connections.", "",
             "| " + " | ".join(HEAD) + " |", "|---|" + "---:|" * (len(HEAD) - 1)]
    lines += ["| " + " | ".join(map(str, cells)) + " |" for cells in rows]
    lines += ["", "Times count from when an upload was due, until its final answer. 503 and other "
              "answers are HAProxy's, with those to repetitions.", "",
              f"The store has {head['stored']} images; {acknowledged} uploads were answered 201, and "
              f"{doubled} of them made a second image when their key was repeated.", "",
              "| s | event |", "|---:|---|"]
    lines += [f"| {event['s']:.1f} | {event['what']} |" for event in events]
    return "\n".join([*lines, "", "![answers, p90 and nodes over time](cluster.svg)", ""])


def write(directory):
    """Writes the report and the picture of the raw figures. Returns the report."""
    head, phases, events, answers = read_raw(directory)
    draw(phases, events, answers, directory / "cluster.svg")
    report = text(head, phases, events, answers)
    (directory / "report.md").write_text(report)
    return report
