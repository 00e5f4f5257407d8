"""The plots, drawn by gnuplot as SVG: the runs of each configuration as points, as in the paper's
figures 4.2 to 4.11, and lines by load or time."""

import math
import statistics
import subprocess

import architectures
import cutoff
import results as r
import simulation
import slowdown as slowdowns
import synthetic
from plan import PER_CONNECTION, PER_CORE, POOLS, class_of

COLOURS = {PER_CORE: "#3b76af", POOLS: "#d9822b", PER_CONNECTION: "#7d7d7d"}
# Of the nine policies and two oracles.
LINES = ("#1f4e79", "#3b76af", "#7aa6d6", "#2a9d8f", "#8ab17d", "#6a4c93", "#d9822b", "#7d7d7d",
         "#b5838d", "#000000", "#c1121f")
POINTS = (r.THROUGHPUT, r.P90, r.CPU_USE)

STYLE = """set terminal svg size {width},{height} dynamic noenhanced \
    background rgb 'white' font 'sans-serif,13'
set output '{path}'
set title '{title}' font ',15'
set border 3 lc rgb '#555555'
set tics nomirror
set grid ytics lc rgb '#dddddd' lt 1
set key {key}
"""


class Failed(Exception):
    pass


def gnuplot(script):
    """Runs a script of gnuplot, which must have no complaint."""
    try:
        done = subprocess.run(["gnuplot"], input=script, capture_output=True, text=True)
    except FileNotFoundError:
        raise Failed("gnuplot is not installed (scripts/setup experiment)") from None
    if done.returncode != 0 or done.stderr:
        raise Failed(f"gnuplot: {done.stderr}")


def quote(text):
    """Escapes a text for single quotation marks."""
    return str(text).replace("'", "''")


def points(results, workload, metric, path):
    """Draws one point for each run and a line at the median, by configuration, in the order of the
    throughput table."""
    blocks, names, medians = {colour: [] for colour in COLOURS}, [], []
    top = 0
    order = results.ranking(workload, r.THROUGHPUT)[::-1]
    for y, name in enumerate(order):
        values = results.values("policies", name, workload, metric)
        policy = results.runs("policies", name, workload)[0]["policy"]
        blocks[class_of(policy)] += [f"{value:.6g} {y}" for value in values]
        medians.append(f"{statistics.median(values):.6g} {y}")
        names.append(f"'{quote(_label(results, workload, name))}' {y}")
        top = max(top, *values)
    drawn = [(kind, "$" + kind.replace("-", "_").replace(" ", "_"), COLOURS[kind])
             for kind, rows in blocks.items() if rows]
    data = "".join(f"{block} << EOD\n" + "\n".join(blocks[kind]) + "\nEOD\n"
                   for kind, block, _ in drawn) + "$medians << EOD\n" + "\n".join(medians) \
        + "\nEOD\n"
    plots = ", ".join(f"{block} using 1:2 with points pt 7 ps 0.6 lc rgb '{colour}' title '{kind}'"
                      for kind, block, colour in drawn)
    plots += (", $medians using 1:($2-0.3):(0):(0.6) with vectors nohead lw 3 lc rgb '#222222' "
              "title 'median'")
    title = f"{metric.title}, {workload} connections, {results.rounds()} runs each"
    gnuplot(STYLE.format(width=900, height=140 + 26 * len(order), path=quote(path),
                          title=quote(title), key="outside bottom center horizontal")
             + f"set xlabel '{quote(metric.title)} ({quote(metric.unit)})'\n"
             + f"set xrange [0:{1.05 * top:.6g}]\nset yrange [-0.7:{len(order) - 0.3}]\n"
             + f"set grid xtics lc rgb '#dddddd' lt 1\nset ytics ({', '.join(names)})\n"
             + data + "plot " + plots + "\n")


def _step(top):
    """Returns a round distance that makes two to five tics."""
    power = 10 ** math.floor(math.log10(top or 1))
    return f"{power * (0.5 if top / power < 2 else 1 if top / power < 4 else 2):g}"


def _label(results, workload, name):
    """Returns the name, with the number of connections if it is not that of the plot."""
    count = results.runs("policies", name, workload)[0]["connections"]
    return name if count == workload else f"{name} ({count} connections)"


def small_multiples(title, panels, path, ylabel, own_y=False, columns=3, xlabel="s"):
    """Draws panels over seconds, each (name, colour, [(x, y)]), with the same axes. own_y: each
    row has its own scale."""
    rows = -(-len(panels) // columns)
    talls = [max((y for _, _, line in panels[start:end] for _, y in line), default=1) or 1
             for start, end in ([(i, i + columns) for i in range(0, len(panels), columns)]
                                if own_y else [(0, len(panels))] * rows)]
    long = max((x for _, _, line in panels for x, _ in line), default=1)
    script = STYLE.format(width=960, height=60 + 150 * rows, path=quote(path), title="",
                          key="off") \
        + f"set multiplot layout {rows},{columns} title '{quote(title)}' font ',15'\n" \
        + f"set xrange [0:{long or 1:.6g}]\nset tics font ',10'\n"
    for number, (name, colour, line) in enumerate(panels):
        data = "\n".join(f"{x:.6g} {y:.6g}" for x, y in line) or "0 0"
        script += f"$panel_{number} << EOD\n{data}\nEOD\n" \
            + f"set title '{quote(name)}' font ',12'\n" \
            + f"set yrange [0:{1.05 * talls[number // columns]:.6g}]\n" \
            + f"set ytics {_step(talls[number // columns])}\n" \
            + f"set ylabel '{quote(ylabel) if number % columns == 0 else ''}' font ',10'\n" \
            + f"set xlabel '{quote(xlabel) if number >= len(panels) - columns else ''}'\n" \
            + f"plot $panel_{number} using 1:2 with lines lw 2 lc rgb '{colour}'\n"
    gnuplot(script + "unset multiplot\n")


def _y_axis(is_logarithmic, values):
    if not is_logarithmic:
        return f"unset logscale y\nset yrange [0:{1.05 * max(values, default=0) or 1:.6g}]\n"
    logarithms = [math.log10(y) for y in values if y > 0] or [0]
    low, high = math.floor(min(logarithms)), math.ceil(max(logarithms))
    return f"set logscale y\nset yrange [1e{low}:1e{high if high > low else low + 1}]\n"


def overlays(title, panels, path, xlabel, key, xtics=(), columns=2):
    """Draws panels that each have some lines, [(title, is_logarithmic, level, lines)] with lines as
    [(name, colour, [(x, y)])]. level: a dashed horizontal line, or None. xtics: the values of a
    logarithmic x axis; without them it is linear. key: the number of the panel that has the key,
    and its place."""
    rows = -(-len(panels) // columns)
    script = STYLE.format(width=960, height=70 + 230 * rows, path=quote(path), title="",
                          key="off") \
        + f"set multiplot layout {rows},{columns} title '{quote(title)}' font ',15'\n" \
        + f"set tics font ',10'\nset xlabel '{quote(xlabel)}' font ',11'\n"
    if xtics:
        script += "set logscale x\nset xtics (" + ", ".join(f"{x:g}" for x in xtics) + ")\n" \
            + f"set xrange [{0.9 * min(xtics):g}:{1.1 * max(xtics):g}]\n"
    else:
        script += "set xrange [0:{:g}]\n".format(1.05 * max(
            (x for panel in panels for _, _, line in panel[3] for x, _ in line), default=1))
    for number, (name, is_logarithmic, level, lines) in enumerate(panels):
        script += f"set title '{quote(name)}' font ',12'\n" \
            + _y_axis(is_logarithmic, [y for _, _, line in lines for _, y in line]
                      + ([level] if level is not None else [])) \
            + (f"set key {key[1]} font ',10'\n" if number == key[0] else "set key off\n")
        drawn = []
        for index, (label, colour, line) in enumerate(lines):
            block = f"$lines_{number}_{index}"
            data = [(x, y) for x, y in line if y > 0 or not is_logarithmic]
            if data:
                script += f"{block} << EOD\n" + "\n".join(f"{x:.6g} {y:.6g}" for x, y in data) \
                    + "\nEOD\n"
            drawn.append(f"{f'{block} using 1:2' if data else 'NaN'} with linespoints lw 2 pt 7 "
                         f"ps 0.5 lc rgb '{colour}' title '{quote(label)}'")
        if level is not None:
            drawn.append(f"{level:g} with lines dt 2 lc rgb '#555555' title 'target'")
        script += "plot " + ", ".join(drawn or ["0 notitle"]) + "\n"
    gnuplot(script + "unset multiplot\n")


def slowdown(results, arrivals, path):
    """Draws the slowdown by load, in a panel for each class and percentile."""
    lines = [line for line in results.of("slowdown") if line["arrivals"] == arrivals]
    loads = sorted({line["load"] for line in lines})
    panels = []
    for of_class in slowdowns.CLASSES:
        for key in slowdowns.PERCENTILES:
            drawn = []
            for name, colour in zip(slowdowns.names(lines), LINES):
                found = [(load, slowdowns.values(lines, name, arrivals, load, of_class, key))
                         for load in loads]
                drawn.append((name, colour, [(load, statistics.geometric_mean(own))
                                             for load, own in found if own]))
            panels.append((f"{key.replace('_', '.')}, {of_class}", True, None, drawn))
    overlays(f"Slowdown, {arrivals}", panels, path, "load",
             (len(panels) - 1, "center maxrows 10 spacing 0.75 samplen 1"),
             columns=3)  # the key is where the fewest requests are


def quantum(results, path):
    """Draws the slowdown and the CPU time of an image by the cutoff, which is last if there is
    none."""
    names = [name for name in cutoff.CUTOFFS if name != cutoff.NONE]
    ms = [float(name.split()[0]) for name in names] + [10 * max(
        float(name.split()[0]) for name in names)]
    runs = [results.runs("cutoff", name, 0) for name in (*names, cutoff.NONE)]

    def line(of):
        found = [(x, [of(run) for run in own]) for x, own in zip(ms, runs)]
        return sorted((x, statistics.geometric_mean(own)) for x, own in found
                      if own and None not in own)

    panels = [("p99 of the slowdown", True, None, [
        (of_class, colour, line(lambda run, of_class=of_class: cutoff.p99(run, of_class)))
        for of_class, colour in zip(slowdowns.CLASSES, LINES[::3])]),
        ("CPU time of an image, ms", False, None, [
            ("cohort", LINES[0], line(lambda run: run["cpu_ms_per_image"]))])]
    overlays(f"Preemption, load {cutoff.LOAD:g}", panels, path,
             f"cutoff, ms ({max(ms):g}: none)", (0, "top left"), sorted(ms))


def gates(results, path):
    """Draws the CPU time of an event in a stage, and the throughput, by the events of a visit."""
    runs = [(gate, results.runs("gates", str(gate), synthetic.COHORT_EVENTS))
            for gate in synthetic.GATES]

    def line(of):
        return [(gate, statistics.median(map(of, own))) for gate, own in runs if own]

    overlays("Cohorts", [
        ("CPU ns per event and stage", False, None, [("cohort", LINES[0], line(
            lambda run: run["cpu_ns"] / run["rounds"] / synthetic.COHORT_STAGES))]),
        ("rounds/s", False, None, [("cohort", LINES[0], line(lambda run: run["rounds_per_s"]))])],
        path, "most events of a visit", (0, "bottom right"), synthetic.GATES)


def cores(results, path):
    """Draws the p99 of the slowdown by load, in a panel for each number of virtual cores."""
    loads = {name: simulation.MANY_WORKLOADS[name] for name in simulation.OPEN}
    oracles = simulation.measured_oracles(results)
    names_ = (*simulation.POLICIES, *oracles)
    colours = LINES[:len(simulation.POLICIES)] + LINES[len(LINES) - len(oracles):]
    panels = [(f"{count} virtual cores", True, None, [
        (name, colour, [(load, statistics.median(line["slowdown_p99"] for line in runs))
                        for workload, load in loads.items()
                        if (runs := results.runs("cores", f"{name}, {workload}", count))])
        for name, colour in zip(names_, colours)]) for count in simulation.MANY
        if results.runs("cores", f"{simulation.POLICIES[0]}, load 0.5", count)]
    overlays("p99 of the slowdown, simulated", panels, path, "load",
             (0, "top left Left reverse maxrows 9 spacing 0.75 samplen 1"), columns=3)


def of_architectures(results, by, path):
    """Draws the CPU time of a request by connections, or the slowdown by load."""
    by_connections, by_load = architectures.panels(results, LINES)
    if by == "load":
        overlays("Slowdown", by_load, path, "load",
                 (0, "bottom right maxrows 5 spacing 0.75 samplen 1"))
    else:
        overlays("CPU us per request", by_connections, path, "connections",
                 (len(by_connections) - 1, "center right"), (1, 10, 100, 1000, 10000))


def controllers(results, name, path):
    """Draws queue, threads and batch of the first round over time, in a panel each."""
    line = min((line for line in results.of("bursts") if line["name"] == name),
               key=lambda line: line["round"])
    panels = []
    for key in ("queued", "threads", "batch"):
        for stage in ("jpeg_decode", "blur", "jpeg_encode"):
            points_ = [(sample["s"], sample["stages"][stage].get(key, 0))
                       for sample in line["samples"] if stage in sample["stages"]]
            panels.append((f"{stage}: {key}", COLOURS[POOLS], points_))
    small_multiples(f"{name}, {line['unsent']} requests never sent", panels, path, "", own_y=True)


def _plots(results):
    """Yields (file name, title, function that draws it to a path)."""
    for workload in results.workloads():
        for metric in POINTS:
            yield (f"{workload}-connections-{metric.key.replace('_', '-')}.svg",
                   f"{metric.title}, {workload} connections",
                   lambda path, workload=workload, metric=metric: points(results, workload, metric,
                                                                         path))
    for arrivals in sorted({line["arrivals"] for line in results.of("slowdown")}):
        yield (f"slowdown-{arrivals}.svg", f"Slowdown by load, {arrivals}",
               lambda path, arrivals=arrivals: slowdown(results, arrivals, path))
    if results.of("cutoff"):
        yield ("cutoff.svg", "Preemption by cutoff", lambda path: quantum(results, path))
    if results.of("gates"):
        yield "gates.svg", "Cohorts of up to 1,000 events", lambda path: gates(results, path)
    if simulation.has_policies(results):
        yield "cores.svg", "Slowdown on virtual cores", lambda path: cores(results, path)
    if results.of(architectures.PART):
        for by, title in (("connections", "CPU time of a request"), ("load", "Slowdown")):
            yield (f"architectures-{by}.svg", f"{title} by {by}, by architecture",
                   lambda path, by=by: of_architectures(results, by, path))
    for name in sorted({line["name"] for line in results.of("bursts")}):
        yield (f"bursts-{name.replace(' ', '-')}.svg", f"Queues and pools under bursts, {name}",
               lambda path, name=name: controllers(results, name, path))


def names(results):
    """Returns [(file name, title)] of all plots."""
    return [(name, title) for name, title, _ in _plots(results)]


def draw(results, directory):
    for name, _, plot in _plots(results):
        plot(directory / name)
