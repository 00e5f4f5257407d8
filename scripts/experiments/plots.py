"""The plots, drawn by gnuplot as SVG: box plots like the paper's figures 4.2 to 4.13, and
throughput over time like figure 4.14."""

import statistics
import subprocess

import results as r
from plan import PER_CONNECTION, PER_CORE, POOLS, class_of

COLOURS = {PER_CORE: "#3b76af", POOLS: "#d9822b", PER_CONNECTION: "#7d7d7d"}
BOXES = (r.THROUGHPUT, r.MAKESPAN, r.RATE, r.P90, r.CPU_USE, r.NET)

STYLE = """set terminal svg size {width},{height} dynamic \
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


def _gnuplot(script):
    try:
        done = subprocess.run(["gnuplot"], input=script, capture_output=True, text=True)
    except FileNotFoundError:
        raise Failed("gnuplot is not installed (scripts/setup experiment)") from None
    if done.returncode != 0 or done.stderr:
        raise Failed(f"gnuplot: {done.stderr}")


def _quote(text):
    """Escapes a text for single quotation marks."""
    return str(text).replace("'", "''")


def quartiles(values):
    """Returns minimum, lower quartile, median, upper quartile, maximum."""
    values = sorted(values)
    if len(values) == 1:
        return values * 5
    lower, middle, upper = statistics.quantiles(values, n=4, method="inclusive")
    return [values[0], lower, middle, upper, values[-1]]


def boxes(results, workload, metric, path):
    """Draws one box for each configuration, in the order of the throughput table."""
    blocks, names = {colour: [] for colour in COLOURS}, []
    top = 0
    for x, name in enumerate(results.ranking(workload, r.THROUGHPUT)):
        five = quartiles(results.values("policies", name, workload, metric))
        policy = results.runs("policies", name, workload)[0]["policy"]
        blocks[class_of(policy)].append(
            f"{x} {five[1]:.6g} {five[0]:.6g} {five[4]:.6g} {five[3]:.6g} {five[2]:.6g}")
        names.append(f"'{_quote(name)}' {x}")
        top = max(top, five[4])
    drawn = [(kind, "$" + kind.replace("-", "_").replace(" ", "_"), COLOURS[kind])
             for kind, rows in blocks.items() if rows]
    data = "".join(f"{block} << EOD\n" + "\n".join(blocks[kind]) + "\nEOD\n"
                   for kind, block, _ in drawn)
    plots = ", ".join(
        f"{block} using 1:2:3:4:5 with candlesticks whiskerbars 0.5 lc rgb '{colour}' "
        f"fs solid 0.35 title '{kind}', "
        f"{block} using 1:6:6:6:6 with candlesticks lc rgb '{colour}' lw 3 notitle"
        for kind, block, colour in drawn)
    title = f"{metric.title}, {workload} connections, {results.rounds()} runs each"
    _gnuplot(STYLE.format(width=900, height=480, path=_quote(path), title=_quote(title),
                          key="outside bottom center horizontal")
             + f"set ylabel '{_quote(metric.title)} ({_quote(metric.unit)})'\n"
             + f"set yrange [0:{1.08 * top:.6g}]\n"
             + f"set xrange [-0.7:{len(names) - 0.3}]\nset boxwidth 0.5\n"
             + f"set xtics rotate by -35 ({', '.join(names)})\n"
             + data + "plot " + plots + "\n")


def _typical(runs):
    """Returns the run with the median makespan."""
    return sorted(runs, key=lambda run: run["makespan_s"])[len(runs) // 2]


def over_time(results, workload, path):
    """Draws the run of median makespan of each configuration. The upper half of the table is above
    the lower half, as in the paper."""
    order = results.ranking(workload, r.THROUGHPUT)
    half = (len(order) + 1) // 2
    title = f"Processed input over time, {workload} connections, single runs"
    script = STYLE.format(width=900, height=760, path=_quote(path), title="",
                          key="outside right top vertical") \
        + f"set multiplot layout 2,1 title '{title}' font ',15'\n" \
        + "set ylabel 'MB/s'\nset xlabel 's'\nset yrange [0:*]\nset rmargin 28\nunset title\n"
    runs = {name: _typical(results.runs("policies", name, workload)) for name in order}
    longest = max(run["makespan_s"] for run in runs.values())
    for names in (order[:half], order[half:]):
        if not names:
            continue
        blocks, plots = "", []
        for number, name in enumerate(names):
            run = runs[name]
            step = run["interval_s"]
            # The end of the run cuts the last interval.
            points = [f"{(i + 0.5) * step:.3f} {1e-6 * n:.3f}"
                      for i, n in enumerate(run["processed"][:-1])]
            block = f"$run_{order.index(name)}"
            blocks += f"{block} << EOD\n" + "\n".join(points or ["0 0"]) + "\nEOD\n"
            plots.append(f"{block} with lines lw 2 lt {number + 1} title '{_quote(name)}'")
        script += blocks + f"set xrange [0:{longest:.3g}]\nplot " + ", ".join(plots) + "\n"
    _gnuplot(script + "unset multiplot\n")


def draw(results, directory):
    """Draws all plots. Returns [(file name, title)]."""
    out = []
    for workload in results.workloads():
        for metric in BOXES:
            name = f"{workload}-{metric.key.replace('_', '-')}.svg"
            boxes(results, workload, metric, directory / name)
            out.append((name, f"{metric.title}, {workload} connections"))
        name = f"{workload}-over-time.svg"
        over_time(results, workload, directory / name)
        out.append((name, f"Processed input over time, {workload} connections"))
    return out
