"""What is run: the configurations in conf/, how many connections each gets, and in which order."""

import collections
import re

from machine import ROOT, cores

PER_CORE, POOLS, PER_CONNECTION = "thread-per-core", "thread pool per stage", "thread-per-connection"
CLASSES = {"seda": POOLS, "thread-per-connection": PER_CONNECTION}

# The malloc that has the place of the paper's Hoard: conf/seda-malloc.ini says how it is run.
PRELOADS = {"seda-malloc": "libjemalloc.so.2"}

# Mean throughput in the paper's table 4.4, relative to its best. There seven configurations met 16 connections, and
# thread-per-connection as many as it had threads.
PAPER = {
    "mg1": 1.0, "cohort": 0.999, "srpt": 0.999, "cohort-stacks": 0.983, "seda-malloc": 0.871, "seda": 0.762,
    "seda-overthreaded": 0.602, "thread-per-connection-4": 0.492, "seda-underthreaded": 0.477,
    "thread-per-connection-8": 0.469, "thread-per-connection-16": 0.376,
}

# name: of the file; workload: how many connections those of its table have; connections: its own.
Case = collections.namedtuple("Case", "name path policy workload connections options")


class Configuration:
    def __init__(self, path):
        text = path.read_text()
        self.name, self.path = path.stem, path
        self.policy = self._value(text, "policy")
        threads = self._value(text, "threads")
        self.threads = int(threads) if threads and threads.isdigit() else cores()

    @staticmethod
    def _value(text, key):
        found = re.search(rf"^{key}\s*=\s*(\S+)", text, re.MULTILINE)
        return found and found[1]

    def case(self, workload, options=()):
        """None if that many connections are too few for it: a thread beyond them has nothing to do."""
        connections = workload
        if self.policy == "thread-per-connection":
            if self.threads > workload:
                return None
            connections = self.threads
        return Case(self.name, self.path, self.policy, workload, connections, tuple(options))


def configurations(names=()):
    """Those in conf/, or of these names, in the file names' order; the shipped one is that of policy drain once more."""
    found = {path.stem: path for path in sorted((ROOT / "conf").glob("*.ini")) if path.stem != "darkroomd"}
    unknown = [name for name in names if name not in found]
    if unknown:
        raise ValueError(f"--configurations: no conf/{unknown[0]}.ini; there are {', '.join(found)}")
    return [Configuration(path) for name, path in found.items() if not names or name in names]


def rotated(items, number, rounds):
    """The order of a round. A machine changes while it is measured; no item shall always be first, last, or after the same."""
    start = len(items) * number // rounds
    items = items[start:] + items[:start]
    return items[::-1] if number % 2 else items


def class_of(policy):
    return CLASSES.get(policy, PER_CORE)
