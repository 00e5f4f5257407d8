"""Plots of shedding.py, as in Welsh 2002, figures 53 to 57: response times of the admitted, goodput
and refusals over the offered load, and over time while the load is a spike. One line for each
controller."""

import statistics

import plots

COLOURS = {"backlog": "#3b76af", "welsh": "#d9822b", "off": "#7d7d7d"}
# title, key, factor, whether it is a time
LOAD = (("p50 of the admitted, s", "admitted_p50_s", 1, True),
        ("p90 of the admitted, s", "admitted_p90_s", 1, True),
        ("p99 of the admitted, s", "admitted_p99_s", 1, True),
        ("goodput per s", "goodput_per_s", 1, False), ("refused, %", "refused_share", 100, False),
        ("p99 of refusals, s", "refusal_p99_s", 1, True))
TIME = (("p90 of the admitted, s", "p90_s", True), ("admitted per s", "admitted", False),
        ("refused per s", "refused", False))


def percentile(values, share):
    """Returns None without values."""
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))] if values else None


def by_second(rows):
    """Returns for each second of a run, by the time at which requests were due: the numbers of
    admitted and refused ones, and the 90th percentile of the admitted ones' response times."""
    begin = min((float(row["intended"]) for row in rows), default=0)
    seconds = {}
    for row in rows:
        bin_ = seconds.setdefault(int(float(row["intended"]) - begin), {"times": [], "refused": 0})
        if row["status"] == "201":
            bin_["times"].append(float(row["done"]) - float(row["intended"]))
        bin_["refused"] += row["status"] == "503"
    return [{"s": second, "admitted": len(bin_["times"]), "refused": bin_["refused"],
             "p90_s": sorted(bin_["times"])[int(0.9 * len(bin_["times"]))] if bin_["times"] else 0}
            for second, bin_ in sorted(seconds.items())]


def _controllers(lines):
    return list(dict.fromkeys(line["name"] for line in lines))


def load_panels(lines):
    """Returns the panels of medians over the rounds, by multiples of the capacity."""
    panels = []
    for title, key, factor, is_time in LOAD:
        curves = []
        for name in _controllers(lines):
            runs = {}
            for line in lines:
                if line["name"] == name and line[key] is not None:
                    runs.setdefault(line["workload"], []).append(factor * line[key])
            curves.append((name, COLOURS[name],
                           [(load, statistics.median(runs[load])) for load in sorted(runs)]))
        level = lines[0]["target_s"] if key.startswith("admitted") else None
        panels.append((title, is_time, level, curves))
    return panels


def time_panels(lines):
    """Returns the panels of the first round's spikes."""
    first = [line for line in lines if line["round"] == min(line["round"] for line in lines)]
    return [(title, is_time, lines[0]["target_s"] if is_time else None,
             [(line["name"], COLOURS[line["name"]],
               [(second["s"], second[key]) for second in line["over_time"]]) for line in first])
            for title, key, is_time in TIME]


def draw(lines, directory):
    """Draws what the lines have. Returns [(file name, title)]."""
    loads = [line for line in lines if not line.get("spike")]
    spikes = [line for line in lines if line.get("spike")]
    drawn = []
    if loads:
        drawn.append(("load.svg", "Response times, goodput and refusals over the load"))
        plots.overlays(drawn[-1][1], load_panels(loads), directory / drawn[-1][0],
                       "times the capacity", (3, "bottom right"),
                       xtics=sorted({line["workload"] for line in loads}))
    if spikes:
        drawn.append(("spike.svg", f"A spike of {spikes[0]['spike']:g} times the rate, over time"))
        plots.overlays(drawn[-1][1], time_panels(spikes), directory / drawn[-1][0], "s",
                       (1, "top right"), columns=1)
    return drawn
