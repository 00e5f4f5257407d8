"""Alert rules of Prometheus over the scrapes of a daemon: the part of PromQL that
conf/monitoring/alerts.yml needs, and `for`. The clock is the test's, so that an hour takes no time.
install/test_monitoring.py compares the verdicts with those of promtool."""

import collections
import math
import re

import prometheus_text
from darkroom import ROOT

RULES = ROOT / "conf/monitoring/alerts.yml"
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
TOKEN = re.compile(r'\s*("[^"]*"|\[\w+\]|=~|<=|>=|==|[\w.]+|\S)')
COMPARE = {"==": lambda a, b: a == b, "<": lambda a, b: a < b, ">": lambda a, b: a > b}


def seconds(text):
    number, unit = re.fullmatch(r"(\d+)([smhd])", text).groups()
    return int(number) * UNITS[unit]


def rules():
    """Returns {name: (expression, seconds for which it must hold)}."""
    found = {}
    for part in RULES.read_text().split("- alert: ")[1:]:
        expression = re.search(r"expr:\s*(?:>\n)?(.*?)\n +(?:for|labels):", part, re.S)[1]
        wait = re.search(r"^ +for: (\w+)$", part, re.M)
        found[part.split("\n", 1)[0]] = expression, seconds(wait[1]) if wait else 0
    return found


def increase_of(samples):
    """The growth of a counter, which is 0 after a restart."""
    values = [value for _, value in samples]
    return sum(b - a if b >= a else b for a, b in zip(values, values[1:]))


def rate_of(samples):
    return increase_of(samples) / (samples[-1][0] - samples[0][0])


def predict(samples, now, ahead):
    """A line by least squares (predict_linear)."""
    x = [t - now for t, _ in samples]
    y = [value for _, value in samples]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    slope = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y)) / sum(
        (a - mean_x) ** 2 for a in x)
    return mean_y + slope * (ahead - mean_x)


def quantile(q, buckets):
    """buckets: [(upper bound, cumulative count)] with +Inf. Linear within a bucket."""
    buckets = sorted(buckets)
    if not buckets[-1][1]:
        return math.nan
    rank, below, start = q * buckets[-1][1], 0, 0
    for bound, count in buckets:
        if count >= rank:
            return start if bound == math.inf else start + (bound - start) * (rank - below) / (
                count - below)
        below, start = count, bound
    raise AssertionError(buckets)


class Series:
    """Samples by series. now: the time of the last scrape, in seconds."""

    def __init__(self):
        self.now = 0
        self.samples = collections.defaultdict(list)  # {(name, labels as a sorted tuple): [(t, v)]}

    def add(self, name, labels, value):
        self.samples[name, tuple(sorted(labels.items()))].append((self.now, value))


class Parser:
    """Evaluates an expression. A vector is {labels as a sorted tuple: value}."""

    def __init__(self, series, text):
        self.series, self.tokens = series, TOKEN.findall(text)

    def take(self, *expected):
        token = self.tokens.pop(0)
        assert not expected or token in expected, (token, expected)
        return token

    def sees(self, *tokens):
        return bool(self.tokens) and self.tokens[0] in tokens

    def value(self):
        left = self.product()
        if not self.sees(*COMPARE):
            return left
        compare, limit = COMPARE[self.take()], float(self.take())
        return {labels: value for labels, value in left.items() if compare(value, limit)}

    def product(self):
        left = self.term()
        while self.sees("*", "/"):
            operation, right = self.take(), self.term()
            if isinstance(left, float):
                left = left * right if operation == "*" else left / right
            else:  # 0 / 0 is no number, and no comparison holds for it
                assert operation == "/"
                left = {labels: value / right[labels] if right[labels] else math.nan
                        for labels, value in left.items() if labels in right}
        return left

    def term(self):
        if self.sees("("):
            self.take("(")
            found = self.value()
            self.take(")")
            return found
        word = self.take()
        if re.fullmatch(r"[\d.]+", word):
            return float(word)
        if word == "sum":
            return self.sum()
        if self.sees("("):
            self.take("(")
            arguments = [self.value()]
            while self.sees(","):
                self.take(",")
                arguments.append(self.value())
            self.take(")")
            return getattr(self, word)(*arguments)
        return self.selector(word)

    def sum(self):
        self.take("by")
        self.take("(")
        kept = set()
        while not self.sees(")"):
            kept.add(self.take())
        self.take(")")
        found = collections.defaultdict(float)
        for labels, value in self.term().items():
            found[tuple(pair for pair in labels if pair[0] in kept)] += value
        return dict(found)

    def selector(self, name):
        """Returns the values of the last scrape, or the samples of a range."""
        wanted = []
        if self.sees("{"):
            while self.take("{", ",", "}") != "}":
                wanted.append((self.take(), self.take("=", "=~"), self.take()[1:-1]))
        found = {labels: samples for (other, labels), samples in self.series.samples.items()
                 if other == name and all(
                     re.fullmatch(pattern if how == "=~" else re.escape(pattern),
                                  dict(labels).get(label, "")) for label, how, pattern in wanted)}
        now = self.series.now
        if not (self.tokens and self.tokens[0].startswith("[")):
            return {labels: samples[-1][1] for labels, samples in found.items()
                    if samples[-1][0] == now}
        begin = now - seconds(self.take()[1:-1])
        found = {labels: [s for s in samples if s[0] > begin] for labels, samples in found.items()}
        return {labels: samples for labels, samples in found.items() if len(samples) > 1}

    def rate(self, ranges):
        return {labels: rate_of(samples) for labels, samples in ranges.items()}

    increase = rate  # its expressions ask whether there was any

    def changes(self, ranges):
        return {labels: float(sum(a[1] != b[1] for a, b in zip(samples, samples[1:])))
                for labels, samples in ranges.items()}

    def predict_linear(self, ranges, ahead):
        return {labels: predict(samples, self.series.now, ahead)
                for labels, samples in ranges.items()}

    def histogram_quantile(self, q, vector):
        buckets = collections.defaultdict(list)
        for labels, value in vector.items():
            rest = tuple(pair for pair in labels if pair[0] != "le")
            buckets[rest].append((float(dict(labels)["le"]), value))
        return {labels: quantile(q, parts) for labels, parts in buckets.items()}


class Rules:
    """All rules over one set of series. tick() evaluates them at series.now."""

    def __init__(self):
        self.series, self.rules = Series(), rules()
        self.since = {}  # by name: since when its expression holds

    def tick(self):
        for name, (expression, _) in self.rules.items():
            parser = Parser(self.series, expression)
            holds = parser.value()
            assert not parser.tokens, (expression, parser.tokens)
            if holds:
                self.since.setdefault(name, self.series.now)
            else:
                self.since.pop(name, None)

    def firing(self):
        return {name.removeprefix("Darkroom") for name, begin in self.since.items()
                if self.series.now - begin >= self.rules[name][1]}


class Watch(Rules):
    """Scrapes a daemon once a minute of the test's clock."""

    def __init__(self, daemon):
        super().__init__()
        self.daemon = daemon
        self.scrape()

    def scrape(self):
        target = {"job": "darkroom", "instance": "a"}
        try:
            families = prometheus_text.parse(self.daemon.get("/metrics").body)
        except ConnectionRefusedError:
            families = {}
        self.series.add("up", target, float(bool(families)))
        for family in families.values():
            for (suffix, labels), value in family.samples.items():
                self.series.add(family.name + suffix, {**dict(labels), **target}, value)
        self.tick()

    def minutes(self, count, each=lambda: None, step=60):
        """Lets time pass, and calls each() in every minute. Returns the alerts that fire then."""
        for _ in range(count):
            each()
            self.series.now += step
            self.scrape()
        return self.firing()
