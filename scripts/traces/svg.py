"""A timeline of each core as SVG, coloured by stage, and the lengths of the queues below it.

A visit is a box. What it calls directly is within the box, and lower by a step for each level.
Visits that are narrower than a pixel share columns: the height of a colour is its share of the
time. Visits that found nothing are marks below the boxes. Visits of several threads on one core
overlap if one thread was preempted; they are below each other."""

import math
from xml.sax.saxutils import escape

import summary
import trace_file

COLOURS = ["#8c8c8c", "#bdbdbd", "#bcbd22", "#0072b2", "#e69f00", "#009e73", "#d55e00", "#7fc4ee",
           "#cc79a7", "#8c564b", "#5b3a8c", "#f0e442", "#17becf", "#444444", "#a6d854", "#e7298a"]
LEFT, RIGHT, TOP, LANE, GAP, MARKS = 110, 24, 92, 26, 12, 6
THIN = 1.5  # px; narrower boxes share columns
QUEUE_HEIGHT = 90
COLUMNS = 4  # of the legend


class Canvas:
    def __init__(self, width):
        self.width, self.height, self.parts = width, TOP, []

    def rect(self, x, y, w, h, colour, title="", extra=""):
        head = f'<rect x="{x:.2f}" y="{y:.2f}" width="{w:.2f}" height="{h:.2f}" fill="{colour}"'
        if title:
            self.parts.append(f"{head}{extra}><title>{escape(title)}</title></rect>")
        else:
            self.parts.append(f"{head}{extra}/>")

    def line(self, x1, y1, x2, y2, colour="#ccc", extra=""):
        self.parts.append(f'<line x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" y2="{y2:.2f}" '
                          f'stroke="{colour}"{extra}/>')

    def text(self, x, y, text, anchor="start", size=12, colour="#222", weight=""):
        weight = f' font-weight="{weight}"' if weight else ""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" '
                          f'font-size="{size}"{weight}>{escape(text)}</text>')

    def write(self, out):
        print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" '
              f'height="{self.height:.0f}" viewBox="0 0 {self.width} {self.height:.0f}" '
              'font-family="Helvetica, Arial, sans-serif">', file=out)
        print('<rect width="100%" height="100%" fill="#fff"/>', *self.parts, "</svg>", sep="\n",
              file=out)


class Axis:
    """Time in ns to pixels."""

    def __init__(self, trace, begin, end, width):
        self.zero, self.begin, self.end, self.width = trace.begin, begin, end, width
        self.scale = (width - LEFT - RIGHT) / max(1, end - begin)

    def x(self, time):
        return LEFT + (min(max(time, self.begin), self.end) - self.begin) * self.scale

    def ticks(self):
        """Returns (time, label) at round numbers of ms since the begin of the trace, at least 70 px
        apart."""
        least = 70 / self.scale / 1e6
        power = 10 ** math.floor(math.log10(least))
        step = next(power * k for k in (1, 2, 5, 10) if power * k >= least * 0.999)
        digits = max(0, -math.floor(math.log10(step) + 1e-9))
        first, last = ((time - self.zero) / 1e6 / step for time in (self.begin, self.end))
        return [(self.zero + i * step * 1e6, f"{i * step:,.{digits}f}".replace(",", " "))
                for i in range(math.ceil(first - 1e-9), math.floor(last + 1e-9) + 1)]


# ---- lanes ----

def _lanes(records):
    """Divides the visits of a core among lanes, so that those of one lane do not overlap. Returns a
    list of lists of (record, depth)."""
    lanes, ends = [], []
    for record in records:
        i = next((i for i, end in enumerate(ends) if end <= record.begin), len(ends))
        if i == len(ends):
            lanes.append([])
            ends.append(0)
        lanes[i].append(record)
        ends[i] = record.end
    return lanes


def _nested(trace, outer):
    """Returns {id(visit): [(record, depth)]} of the calls and interrupting visits within visits."""
    within = {}
    for items in trace.workers.values():
        mine = sorted((r for r in items if isinstance(r, trace_file.Record) and r.events),
                      key=lambda r: (r.begin, -r.wall))
        stack = []
        for record in mine:
            while stack and record.begin >= stack[-1].end:
                stack.pop()
            if stack:
                within.setdefault(id(stack[0]), []).append((record, len(stack)))
            stack.append(record)
    return {key: value for key, value in within.items() if key in outer}


def _title(trace, record):
    text = f"{trace.stages[record.stage]}: {record.wall / 1e6:.3f} ms"
    if record.type == trace_file.CALL:
        return text + ", called directly"
    return (f"{text} ({record.cpu / 1e6:.3f} ms CPU), {record.events} events of {record.queued} "
            f"waiting, {trace.name((record.group, record.worker))}")


class Lane:
    """Boxes of one lane; the narrow ones are collected in columns of a pixel."""

    def __init__(self, canvas, trace, axis, y, height):
        self.canvas, self.trace, self.axis, self.y, self.height = canvas, trace, axis, y, height
        self.columns = {}  # pixel -> {stage: ns}

    def add(self, record, depth=0):
        axis = self.axis
        if record.end < axis.begin or record.begin > axis.end:
            return
        x, w = axis.x(record.begin), axis.x(record.end) - axis.x(record.begin)
        if w < THIN:
            if depth == 0:
                column = self.columns.setdefault(int(x), {})
                column[record.stage] = column.get(record.stage, 0) + record.wall
            return
        inset = min(depth * 5, self.height - 5)
        edge = ' stroke="#fff" stroke-width="0.6"' if w > 4 else ""
        self.canvas.rect(x, self.y + inset, w, self.height - inset, COLOURS[record.stage],
                         _title(self.trace, record), edge)

    def close(self):
        pixel = 1 / self.axis.scale
        for x, column in sorted(self.columns.items()):
            bottom = self.y + self.height
            for stage, ns in sorted(column.items()):
                h = max(0.8, self.height * min(1, ns / pixel))
                bottom -= h
                self.canvas.rect(x, max(self.y, bottom), 1, h, COLOURS[stage])


def _marks(canvas, axis, y, empty):
    """Draws visits that found nothing: one mark for each pixel and stage."""
    for x, stage in sorted({(int(axis.x(r.begin)), r.stage) for r in empty}):
        canvas.rect(x, y, 1, MARKS - 2, COLOURS[stage])


def _core(canvas, trace, axis, core, records, nested):
    """Draws one core below what is there."""
    top = canvas.height
    found = [r for r in records if r.events and not r.flags & trace_file.INTERRUPTING]
    first = trace.main_group()
    is_main = {True: [], False: []}
    for record in found:
        is_main[trace.groups[record.group] == first].append(record)
    heights = {True: LANE, False: LANE / 2}
    for main in (True, False):
        for records_of_lane in _lanes(is_main[main]) or ([[]] if main else []):
            lane = Lane(canvas, trace, axis, canvas.height, heights[main])
            canvas.rect(LEFT, lane.y, axis.width - LEFT - RIGHT, lane.height, "#f4f4f4")
            canvas.text(LEFT - 8, lane.y + lane.height / 2 + 4, first if main else "others",
                        "end", 11, "#555")
            for record in records_of_lane:
                lane.add(record)
                for inner, depth in nested.get(id(record), []):
                    lane.add(inner, depth)
            lane.close()
            canvas.height += lane.height + 2
    _marks(canvas, axis, canvas.height, [r for r in records if not r.events])
    canvas.height += MARKS
    canvas.text(LEFT - 56, top + LANE / 2 + 4, f"core {core}", "end", 13, weight="bold")
    canvas.height += GAP


# ---- what is around them ----

def _legend(canvas, trace, visits, calls):
    canvas.text(LEFT, 24, summary.describe(trace), size=15, weight="bold")
    sums = summary.sums(visits, lambda r: r.stage)
    used = sorted(set(sums) | {r.stage for r in calls})
    step = (canvas.width - LEFT - RIGHT) / max(1, min(COLUMNS, len(used)))
    for i, stage in enumerate(used):
        x, y = LEFT + i % COLUMNS * step, 48 + i // COLUMNS * 20
        canvas.rect(x, y - 11, 13, 13, COLOURS[stage])
        if stage in sums:
            of = sums[stage]
            success = "" if of.success is None else f", {100 * of.success:.0f} % found work"
            text = f"{trace.stages[stage]}: {of.visits} visits{success}"
        else:
            text = f"{trace.stages[stage]}: called directly"
        canvas.text(x + 18, y, text)
    canvas.height = 48 + max(0, len(used) - 1) // COLUMNS * 20 + 40


def _grid(canvas, axis, top, bottom):
    for time, label in axis.ticks():
        canvas.line(axis.x(time), top - 6, axis.x(time), bottom, "#dcdcdc")
        canvas.text(axis.x(time), top - 10, label, "middle", 11, "#555")
    canvas.text(LEFT - 40, top - 10, "ms", "end", 11, "#555")


def _switches(canvas, trace, axis, top, bottom):
    """Marks where the main group has changed its policy."""
    found = sorted((item.begin, item.policy) for key, items in trace.workers.items()
                   if trace.groups[key[0]] == trace.main_group()
                   for item in items if isinstance(item, trace_file.Schedule))
    before = None
    for begin, policy in found:
        if before not in (None, policy) and axis.begin <= begin <= axis.end:
            canvas.line(axis.x(begin), top - 6, axis.x(begin), bottom, "#000",
                        ' stroke-dasharray="4 3"')
            canvas.text(axis.x(begin) + 4, bottom + 12, policy, size=11)
        before = policy


def _queues(canvas, axis, visits):
    """Draws how many events visits found waiting: a dot for each two pixels, stage and number."""
    top, most = canvas.height + 6, max((r.queued for r in visits), default=0)
    if not most:
        return
    canvas.rect(LEFT, top, axis.width - LEFT - RIGHT, QUEUE_HEIGHT, "#fafafa")
    for value in sorted({most, round(most / 2), 0}):
        y = top + QUEUE_HEIGHT * (1 - value / most)
        canvas.line(LEFT, y, axis.width - RIGHT, y, "#e4e4e4")
        canvas.text(LEFT - 8, y + 4, str(value), "end", 11, "#555")
    canvas.text(LEFT - 36, top + QUEUE_HEIGHT / 2 - 3, "found", "end", 11)
    canvas.text(LEFT - 36, top + QUEUE_HEIGHT / 2 + 10, "waiting", "end", 11)
    for x, n, stage in sorted({(int(axis.x(r.begin)) // 2 * 2, r.queued, r.stage)
                               for r in visits if r.queued}):
        y = top + QUEUE_HEIGHT * (1 - n / most)
        canvas.parts.append(f'<circle cx="{x}" cy="{y:.1f}" r="2" fill="{COLOURS[stage]}"/>')
    canvas.height = top + QUEUE_HEIGHT + 12


def write(trace, begin, end, width, out):
    """Writes the visits between two times in ns."""
    canvas, axis = Canvas(width), Axis(trace, begin, end, width)
    visits = [r for r in trace.records() if r.end >= begin and r.begin < end]
    calls = [r for r in trace.records(trace_file.CALL) if r.end >= begin and r.begin < end]
    _legend(canvas, trace, visits, calls)
    top, cores = canvas.height, {}
    for record in visits:
        cores.setdefault(record.core, []).append(record)
    nested = _nested(trace, {id(r) for r in visits})
    grid = len(canvas.parts)
    for core, records in sorted(cores.items()):
        _core(canvas, trace, axis, core, records, nested)
    _queues(canvas, axis, visits)
    shapes, canvas.parts = canvas.parts[grid:], canvas.parts[:grid]
    _grid(canvas, axis, top, canvas.height)
    canvas.parts += shapes
    _switches(canvas, trace, axis, top, canvas.height - 12)
    canvas.height += 8
    canvas.write(out)
