"""The summary of a trace, as tables in Markdown: visits by stage, by core and by worker."""

import trace_file


class Sum:
    """What some visits have in common."""

    def __init__(self):
        self.visits = self.found = self.events = self.wall = self.cpu = self.outside = 0
        self.most_events = self.most_queued = 0

    def add(self, visit):
        self.visits += 1
        self.found += visit.events > 0
        self.events += visit.events
        self.outside += bool(visit.flags & trace_file.SOURCE)
        # A nested visit is within the time of another one.
        if not visit.flags & trace_file.INTERRUPTING:
            self.wall += visit.wall
            self.cpu += visit.cpu
        self.most_events = max(self.most_events, visit.events)
        self.most_queued = max(self.most_queued, visit.queued)

    @property
    def success(self):
        """The visit success rate (Gordon 2010, 4.3.6): visits that found work / all visits. Work
        from outside does not count: a thread that waits for the network is not polling."""
        visits = self.visits - self.outside
        return (self.found - self.outside) / visits if visits else None

    @property
    def per_visit(self):
        return self.events / self.found if self.found else 0


HEAD = ["visits", "success", "events", "events per visit", "most", "most queued", "busy, ms",
        "CPU, ms", "CPU, %"]


def percent(share):
    return "" if share is None else f"{100 * share:.1f} %"


def sums(visits, key):
    """Returns {key(visit): Sum}, in the order of the keys."""
    found = {}
    for visit in visits:
        found.setdefault(key(visit), Sum()).add(visit)
    return dict(sorted(found.items()))


def _row(name, of, span):
    return [name, str(of.visits), percent(of.success), str(of.events),
            f"{of.per_visit:.2f}", str(of.most_events), str(of.most_queued), f"{of.wall / 1e6:.1f}",
            f"{of.cpu / 1e6:.1f}", f"{100 * of.cpu / span:.1f}"]


def _table(title, rows):
    table = [[title, *HEAD], *rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(HEAD) + 1)]

    def line(row):
        cells = [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:]))]
        return "| " + " | ".join(cells) + " |"

    rule = "|" + "|".join("-" * (w + 1) + (":" if i else "-") for i, w in enumerate(widths)) + "|"
    return "\n".join([line(table[0]), rule, *map(line, rows)])


def policies(trace):
    """Returns the policies, in the order of their use."""
    found = [item for key, items in trace.workers.items() if trace.groups[key[0]] == trace.main_group()
             for item in items if isinstance(item, trace_file.Schedule)]
    names = [item.policy for item in sorted(found, key=lambda item: item.begin)]
    return [name for i, name in enumerate(names) if i == 0 or names[i - 1] != name]


def describe(trace):
    """Returns one line on the whole trace."""
    visits = len(trace.records())
    text = (f"{(trace.end - trace.begin) / 1e9:.3f} s, policy {', '.join(policies(trace)) or '?'}, "
            f"{len(trace.workers)} workers, {visits} visits")
    if trace.lost:
        text += f", {trace.lost} records lost"
    if not trace.is_complete:
        text += ", not complete"
    return text


def write(trace, begin, end, out):
    """Writes the tables of the visits that began between two times in ns."""
    visits, span = trace.records(begin=begin, end=end), end - begin
    total = Sum()
    for visit in visits:
        total.add(visit)
    print(describe(trace), file=out)
    print(f"visit success rate {percent(total.success)}\n", file=out)
    for title, key, name in (
            ("stage", lambda v: v.stage, lambda k: trace.stages[k]),
            ("core", lambda v: v.core, str),
            ("worker", lambda v: (v.group, v.worker), trace.name),
            ("core and stage", lambda v: (v.core, v.stage),
             lambda k: f"{k[0]} {trace.stages[k[1]]}")):
        rows = [_row(name(k), of, span) for k, of in sums(visits, key).items()]
        print(_table(title, rows), end="\n\n", file=out)
    calls = sums(trace.records(trace_file.CALL, begin, end), lambda v: v.stage)
    for stage, of in calls.items():
        print(f"called directly: {trace.stages[stage]} {of.visits} times, "
              f"{of.wall / 1e6:.1f} ms", file=out)
