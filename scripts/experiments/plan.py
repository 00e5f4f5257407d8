"""The configurations in conf/, their numbers of connections, and the order of the runs."""

import collections
import hashlib
import math
import re

from machine import ROOT, cores

PER_CORE, POOLS = "thread-per-core", "thread pool per stage"
PER_CONNECTION = "thread-per-connection"
CLASSES = {"seda": POOLS, "thread-per-connection": PER_CONNECTION}

# The allocator that replaces the paper's Hoard. conf/seda-malloc.ini shows how to use it.
PRELOADS = {"seda-malloc": "libjemalloc.so.2"}

# Mean throughput in the paper's table 4.4, relative to its best. There seven configurations had 16
# connections, and thread-per-connection as many as its threads.
PAPER = {name: per_s / 12450.92 for name, per_s in {
    "mg1": 12450.92, "cohort": 12441.45, "srpt": 12433.82, "cohort-stacks": 12240.10,
    "seda-malloc": 10843.27, "seda": 9490.45, "seda-overthreaded": 7494.73,
    "thread-per-connection-4": 6120.20, "seda-underthreaded": 5943.91,
    "thread-per-connection-8": 5845.49, "thread-per-connection-16": 4677.09}.items()}

# Every configuration runs the paper's server: it answers when decoded, stores nothing that must
# survive, and has a stage for forms but none for scaling. The limit is that no upload is refused.
# Clients take no turns (experiment.fair_clients): the policy alone orders the work.
PAPER_SERVER = ("experiment.fair_clients=no", "server.respond_after=decode",
                "server.durability=none", "experiment.form_decode.pass_through=no",
                "experiment.scale.pass_through=yes", "limits.images_in_flight=65536")

# The paper's pools were for 4 cores. This row has them for the cores of this machine.
POOLS_FOR_CORES, POOL_CORES = "seda-cores", 4
POOL_THREADS = {"jpeg_decode": 3, "blur": 2, "jpeg_encode": 3}

# The claims on throughput are about the paper's 16 connections. Fewer are measured for claim 4, the
# lowest response times, and only for these.
PAPER_CONNECTIONS = 16
AT_EVERY = ("drain", "cohort", "srpt", POOLS_FOR_CORES)

# Configurations that the paper made too large or too small on purpose: they decide no claim, so
# they have fewer rounds.
NOT_TUNED, NOT_TUNED_ROUNDS = {"seda-overthreaded", "seda-underthreaded"}, 3

# --brief measures these alone: the paper's classes, its four policies, and darkroom's own.
BRIEF = ("cohort", "cohort-stacks", "drain", "mg1", "seda", "seda-malloc", "srpt",
         "thread-per-connection-16")

# name: of the row; path: the file; workload: the number of connections.
Case = collections.namedtuple("Case", "name path policy workload options")


class Configuration:
    def __init__(self, path, name="", options=()):
        text = path.read_text()
        self.name, self.path, self.options = name or path.stem, path, tuple(options)
        self.policy = self._value(text, "policy")
        threads = self._value(text, "threads")
        self.threads = int(threads) if threads and threads.isdigit() else cores()

    @staticmethod
    def _value(text, key):
        found = re.search(rf"^{key}\s*=\s*(\S+)", text, re.MULTILINE)
        return found and found[1]

    def case(self, workload, is_named=False):
        """Returns None if the configuration is not measured with that many connections. With
        thread-per-connection each connection needs a thread, and with more connections than
        threads some starve."""
        if self.policy == "thread-per-connection":
            if self.threads != workload:
                return None
        elif workload != PAPER_CONNECTIONS and self.name not in AT_EVERY and not is_named:
            return None
        return Case(self.name, self.path, self.policy, workload, (*PAPER_SERVER, *self.options))


def pools_for(count):
    """Returns the settings of the paper's pools for this number of cores."""
    return [f"stage.{stage}.threads={max(1, math.ceil(threads * count / POOL_CORES))}"
            for stage, threads in POOL_THREADS.items()]


def configurations(names=()):
    """Returns the configurations in conf/, or those of these names there and in conf/experiments/,
    in the order of file names. darkroomd.ini is left out, since it equals drain.ini."""
    found = {path.stem: Configuration(path) for path in (ROOT / "conf").glob("*.ini")
             if path.stem != "darkroomd"}
    found |= {path.stem: Configuration(path) for path in (ROOT / "conf" / "experiments").glob("*.ini")
              if path.stem in names}
    found[POOLS_FOR_CORES] = Configuration(ROOT / "conf" / "seda.ini", POOLS_FOR_CORES,
                                           pools_for(cores()))
    unknown = [name for name in names if name not in found]
    if unknown:
        raise ValueError(f"--configurations: no conf/{unknown[0]}.ini; expected {', '.join(found)}")
    return [found[name] for name in sorted(found) if not names or name in names]


def place(seed, kind, name, workload, number):
    """Returns the place of a run in the random order of its round. Each set of runs has an order,
    so that an interrupted round continues in it."""
    return hashlib.sha256(f"{seed} {kind} {number} {name} {workload}".encode()).digest()


def class_of(policy):
    return CLASSES.get(policy, PER_CORE)
