"""The configurations in conf/, their numbers of connections, and the order of the runs."""

import collections
import re

from machine import ROOT, cores

PER_CORE, POOLS = "thread-per-core", "thread pool per stage"
PER_CONNECTION = "thread-per-connection"
CLASSES = {"seda": POOLS, "thread-per-connection": PER_CONNECTION}

# The allocator that replaces the paper's Hoard. conf/seda-malloc.ini shows how to use it.
PRELOADS = {"seda-malloc": "libjemalloc.so.2"}

# Mean throughput in the paper's table 4.4, relative to its best. There seven configurations had 16
# connections, and thread-per-connection as many as its threads.
PAPER = {"mg1": 1.0, "cohort": 0.999, "srpt": 0.999, "cohort-stacks": 0.983, "seda-malloc": 0.871,
         "seda": 0.762, "seda-overthreaded": 0.602, "thread-per-connection-4": 0.492,
         "seda-underthreaded": 0.477, "thread-per-connection-8": 0.469,
         "thread-per-connection-16": 0.376}

# name: of the file; workload: number of connections in its table; connections: its own number.
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
        """Returns None if the configuration has more threads than connections."""
        connections = workload
        if self.policy == "thread-per-connection":
            if self.threads > workload:
                return None
            connections = self.threads
        return Case(self.name, self.path, self.policy, workload, connections, tuple(options))


def configurations(names=()):
    """Returns the configurations in conf/, or those of these names, in the order of file names.
    darkroomd.ini is left out, since it equals drain.ini."""
    found = {path.stem: path for path in sorted((ROOT / "conf").glob("*.ini"))
             if path.stem != "darkroomd"}
    unknown = [name for name in names if name not in found]
    if unknown:
        raise ValueError(f"--configurations: no conf/{unknown[0]}.ini; expected {', '.join(found)}")
    return [Configuration(path) for name, path in found.items() if not names or name in names]


def rotated(items, number, rounds):
    """Returns the order of a round. The machine may change during a measurement, so no item is
    always first, last, or after the same one."""
    start = len(items) * number // rounds
    items = items[start:] + items[:start]
    return items[::-1] if number % 2 else items


def class_of(policy):
    return CLASSES.get(policy, PER_CORE)
