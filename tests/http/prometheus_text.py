"""A strict parser of Prometheus' text exposition format 0.0.4. It rejects everything that `promtool
check metrics` rejects, and more that could confuse a scraper or a reader. The rules are in
https://prometheus.io/docs/instrumenting/exposition_formats/ and
https://prometheus.io/docs/practices/naming/"""

import collections
import math
import re

NAME = r"[a-zA-Z_][a-zA-Z0-9_]*"  # colons are reserved for recording rules
HELP = re.compile(rf"# HELP ({NAME}) ((?:[^\\\n]|\\\\|\\n)+)\Z")
TYPE = re.compile(rf"# TYPE ({NAME}) (counter|gauge|histogram)\Z")
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (\S+)\Z")
LABEL = re.compile(rf'({NAME})="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(,|\Z)')
VALUE = re.compile(r"[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?\Z|\+Inf\Z")
OTHER_UNITS = {"milliseconds", "microseconds", "nanoseconds", "minutes", "hours", "days", "ms",
               "us", "ns", "kilobytes", "megabytes", "kb", "mb", "bits", "percent", "celsius"}
TYPES = {"counter", "gauge", "histogram", "summary", "metric"}


class Malformed(Exception):
    """A violation of the format."""


def need(condition, *what):
    if not condition:
        raise Malformed(*what)


class Family:
    def __init__(self, name, text):
        self.name, self.help, self.type = name, text, None
        self.samples = {}  # {(suffix, labels as a sorted tuple of pairs): value}

    def series(self):
        """Returns {labels without le: {suffix: ...}} of a histogram."""
        found = collections.defaultdict(lambda: {"_bucket": [], "_sum": None, "_count": None})
        for (suffix, labels), value in self.samples.items():
            rest = tuple(pair for pair in labels if pair[0] != "le")
            if suffix == "_bucket":
                need(len(rest) + 1 == len(labels), "a bucket without le", self.name)
                found[rest]["_bucket"].append((float(dict(labels)["le"]), value))
            else:
                need(rest == labels, "le where there is no bucket", self.name)
                found[rest][suffix] = value
        return found


def parse_labels(text):
    labels, at = [], 0
    while at < len(text):
        found = LABEL.match(text, at)
        need(found, "labels", text)
        need(found[3] == "" or found.end() < len(text), "a comma after the last label", text)
        labels.append((found[1], re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), found[2])))
        need(not found[1].startswith("__"), "a reserved label", text)
        at = found.end()
    need(len(dict(labels)) == len(labels), "a label twice", text)
    return tuple(sorted(labels))


def check_name(family):
    words = family.name.split("_")
    need(family.name == family.name.lower(), "capitals", family.name)
    need(not OTHER_UNITS & set(words), "no base unit", family.name)
    need(not TYPES & set(words), "the type in the name", family.name)
    need((family.type == "counter") == (words[-1] == "total"),
         "_total is for counters, and all of them", family.name)
    need(words[-1] not in ("sum", "count", "bucket"), "an ending that histograms use", family.name)
    for unit in {"seconds", "bytes"} & set(words):
        need(words[-1] == unit or words[-2:] == [unit, "total"] or words[-1] == "limit",
             "the unit comes last", family.name)


def check_histogram(family):
    for labels, parts in family.series().items():
        limits = [limit for limit, _ in parts["_bucket"]]
        counts = [count for _, count in parts["_bucket"]]
        need(limits and limits == sorted(set(limits)) and limits[-1] == math.inf, "limits",
             family.name, labels, limits)
        need(counts == sorted(counts), "buckets are not cumulative", family.name, labels, counts)
        need(parts["_count"] == counts[-1], "+Inf is not the count", family.name, labels)
        need(parts["_sum"] is not None, "no sum", family.name, labels)


def check_family(family):
    need(family.type, "no TYPE", family.name)
    need(family.samples, "no samples", family.name)
    check_name(family)
    if family.type == "histogram":
        check_histogram(family)
    names = {tuple(name for name, _ in labels if name != "le") for _, labels in family.samples}
    need(len(names) == 1, "samples differ in their labels", family.name, names)


def add_sample(family, line):
    found = SAMPLE.match(line)
    need(found, "no sample", line)
    need(family and family.type, "a sample before HELP and TYPE", line)
    suffix = found[1][len(family.name):]
    need(found[1].startswith(family.name)
         and suffix in (("_bucket", "_sum", "_count") if family.type == "histogram" else ("",)),
         "a sample of another family", line)
    need(VALUE.match(found[3]), "a value", line)
    need(found[2] != "", "braces without labels", line)
    key = suffix, parse_labels(found[2] or "")
    need(key not in family.samples, "a series twice", line)
    need(suffix == "_bucket" or not any(name == "le" for name, _ in key[1]),
         "le where there is no bucket", line)
    family.samples[key] = float(found[3])


def parse(data):
    """Returns {name: Family} of a document. Raises Malformed if it breaks a rule."""
    text = data.decode("utf-8")
    need(text.endswith("\n"), "the last line has no line feed")
    families, family = {}, None
    for line in text[:-1].split("\n"):
        if found := HELP.match(line):
            need(found[1] not in families, "a family twice", line)
            family = families[found[1]] = Family(found[1], found[2])
        elif found := TYPE.match(line):
            need(family and family.name == found[1] and not family.type,
                 "TYPE does not follow its HELP", line)
            family.type = found[2]
        else:
            add_sample(family, line)
    for family in families.values():
        check_family(family)
    return families


class Metrics:
    """A scrape. metrics("darkroom_ready"), metrics("darkroom_http_responses_total", code="201")"""

    def __init__(self, data):
        self.families = parse(data)

    def __call__(self, name, **labels):
        suffix = ""
        if name not in self.families:
            name, suffix = re.match(r"(.*)(_sum|_count|_bucket)\Z", name).groups()
        return self.families[name].samples[suffix, tuple(sorted(labels.items()))]

    def counters(self):
        """Returns all values that must never decrease."""
        return {(family.name, *key): value for family in self.families.values()
                if family.type != "gauge" for key, value in family.samples.items()}
