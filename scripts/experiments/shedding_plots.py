"""Plots of shedding.py, as in Welsh 2002, figures 53 to 57: response times of the admitted, goodput
and refusals over the offered load, and over time while the load is a spike. One column for each
controller."""

import statistics

import plots

COLOUR = "#3b76af"
LOAD = (("p50 of the admitted, s", "admitted_p50_s", 1),
        ("p90 of the admitted, s", "admitted_p90_s", 1),
        ("p99 of the admitted, s", "admitted_p99_s", 1), ("goodput per s", "goodput_per_s", 1),
        ("refused, %", "refused_share", 100))
TIME = (("p90 of the admitted, s", "p90_s"), ("admitted per s", "admitted"),
        ("refused per s", "refused"))


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
    for title, key, factor in LOAD:
        for name in _controllers(lines):
            runs = {}
            for line in lines:
                if line["name"] == name and line[key] is not None:
                    runs.setdefault(line["workload"], []).append(factor * line[key])
            panels.append((f"{name}: {title}", COLOUR,
                           [(load, statistics.median(runs[load])) for load in sorted(runs)]))
    return panels


def time_panels(lines):
    """Returns the panels of the first round's spikes."""
    first = [line for line in lines if line["round"] == min(line["round"] for line in lines)]
    return [(f"{line['name']}: {title}", COLOUR,
             [(second["s"], second[key]) for second in line["over_time"]])
            for title, key in TIME for line in first]


def draw(lines, directory):
    """Draws what the lines have. Returns [(file name, title)]."""
    loads = [line for line in lines if not line.get("spike")]
    spikes = [line for line in lines if line.get("spike")]
    drawn = []
    if loads:
        drawn.append(("load.svg", "Response times, goodput and refusals over the load"))
        plots.small_multiples(drawn[-1][1], load_panels(loads), directory / drawn[-1][0], "",
                              own_y=True, columns=len(_controllers(loads)),
                              xlabel="times the capacity")
    if spikes:
        drawn.append(("spike.svg", f"A spike of {spikes[0]['spike']:g} times the rate, over time"))
        plots.small_multiples(drawn[-1][1], time_panels(spikes), directory / drawn[-1][0], "",
                              own_y=True, columns=len(_controllers(spikes)))
    return drawn
