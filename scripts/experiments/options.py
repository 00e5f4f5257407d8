"""The command line."""

import argparse
import math
import pathlib

import architectures
from jobs import BRIEF_PARTS, OTHER_PARTS, PARTS, USUAL_PARTS
from machine import ROOT, cores
import plan
from slowdown import LOADS

DESCRIPTION = """
Compares all configurations in conf/, and checks the claims of Gordon's dissertation (2010, chapter
4), of Larus and Parkes (2002) and of Welsh (2002). In each round each configuration gets a fresh
daemon, a warm-up and the same requests, in an order drawn at random for the round. A run that other
programs disturbed is repeated. Writes raw.jsonl, report.md and plots (SVG) into the output
directory. After an interruption the same command with the same --out continues.
"""
EPILOG = """
Examples: scripts/experiment --quick
          scripts/experiment --brief --out data/results/brief
          scripts/experiment --rounds 10 --out results
          scripts/experiment --connections 16 --configurations drain,cohort,mg1 --parts policies
Exit status: 0 done, with any verdicts; 1 a measurement failed or was interrupted; 2 wrong usage.
"""


def _names(text):
    return [name for name in text.split(",") if name]


def counts(text):
    numbers = [int(part) for part in _names(text)]
    if not numbers or min(numbers) < 1:
        raise ValueError
    return sorted(set(numbers), reverse=True)


def shares(text):
    numbers = [float(part) for part in _names(text)]
    if not numbers or min(numbers) <= 0:
        raise ValueError
    return numbers


def positive(text):
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def _cpus(text):
    """Returns the set of a list like 0-3,8."""
    out = set()
    for part in _names(text):
        first, _, last = part.partition("-")
        out |= set(range(int(first), int(last or first) + 1))
    return out


def parse(arguments):
    parser = argparse.ArgumentParser(prog="scripts/experiment",
                                     description=DESCRIPTION, epilog=EPILOG,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--quick", action="store_true",
        help="a twentieth of the dataset, 2 rounds: ends within 5 minutes")
    add("--brief", action="store_true",
        help="only the runs that decide the paper's claims on throughput and overload, 4 rounds: 25 minutes")
    add("--plan", action="store_true", help="print the runs and their time, and measure nothing")
    add("--rounds", type=positive, metavar="N",
        help="runs of each configuration (8; --brief: 4; --quick: 2)")
    add("--run-seconds", type=float, dest="run_s", metavar="S",
        help="duration of each run in a closed loop; 0: each file once (15; --quick: 0)")
    add("--seed", type=int, metavar="N",
        help="of the order of the runs (random, and stored with the results)")
    add("--others", type=float, metavar="PERCENT",
        help="repeat a run in which other programs used more of the CPUs (5; --quick: 100)")
    add("--connections", type=counts, metavar="N,...",
        help="connections; thread-per-connection is measured where it has as many threads "
        "(16, 4 and one per core; --brief: 16; --quick: 16 and one per core)")
    add("--configurations", type=_names, default=[], metavar="NAME,...",
        help="configurations conf/NAME.ini (all but darkroomd.ini); of the part addresses: "
        "controllers, or some of their runs such as backlog-open, backlog-open-10 or "
        "backlog-open-10-600")
    add("--parts", type=_names, metavar="NAME,...",
        help=f"parts to measure ({','.join(USUAL_PARTS)}; --brief: {','.join(BRIEF_PARTS)}; also "
        f"{','.join(OTHER_PARTS)})")
    add("--files", type=pathlib.Path, metavar="DIR",
        help="JPEG files to send instead of the dataset")
    add("--scale", type=float, metavar="F",
        help="size of the dataset relative to its default (1; --quick: 0.05)")
    add("--out", type=pathlib.Path, metavar="DIR",
        help="output directory (build/experiment/full, .../brief or .../quick)")
    add("--work", type=pathlib.Path, metavar="DIR",
        help="directory for stores in DIR/darkroom-experiment, which is removed "
        "(build/experiment; /dev/shm for the part architectures alone)")
    add("--option", action="append", default=[], metavar="SECTION.KEY=VALUE",
        help="setting of all daemons; repeatable")
    add("--server-cpus", type=_cpus, default=set(), metavar="LIST",
        help="cores of the daemon, for example 0-11")
    add("--load-cpus", type=_cpus, default=set(), metavar="LIST",
        help="cores of the load generator")
    add("--overload-seconds", type=positive, dest="overload_s", metavar="N",
        help="duration of each overload (20; --brief: 16; --quick: 4)")
    add("--cache-files", type=positive, metavar="N",
        help="pictures of each run of the part caches (47; --quick: 12)")
    add("--loads", type=shares, metavar="F,...",
        help="loads of the part slowdown, as shares of the capacity "
        f"({','.join(f'{load:g}' for load in LOADS)}; --quick: 0.7)")
    add("--burst-seconds", type=float, dest="burst_s", metavar="S",
        help="duration of each run of the part bursts (60; --quick: 5)")
    add("--synthetic-seconds", type=float, dest="synthetic_s", metavar="S",
        help="duration of each run without images (4; --quick: 0.4)")
    add("--warm-up", type=float, metavar="S",
        help="seconds of load before each measured run (4; --brief: 2.5; --quick: 0.5)")
    add("--within", type=float, metavar="MINUTES",
        help="start no measurement that would end later (no limit; --quick: 4.7)")
    add("--report", action="store_true",
        help="measure nothing, and rewrite the report of the results in --out")
    options = parser.parse_args(arguments)
    if options.brief and options.quick:
        parser.error("--brief: expected without --quick")
    options.parts = options.parts or list(BRIEF_PARTS if options.brief else USUAL_PARTS)
    if options.brief and not options.configurations:
        options.configurations = list(plan.BRIEF)
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"--parts: {unknown[0]}: expected one of {', '.join(PARTS)}")
    defaults = dict(rounds=8, run_s=15, others=5, connections=counts(f"16,4,{cores()}"),
                    scale=1,
                    overload_s=20, warm_up=4, cache_files=47, loads=list(LOADS), burst_s=60,
                    synthetic_s=4, within=math.inf)
    if options.brief:
        defaults |= dict(rounds=4, connections=[16], warm_up=2.5, overload_s=16)
    if options.quick:
        defaults = dict(rounds=2, run_s=0, others=100, connections=counts(f"16,{cores()}"),
                        scale=0.05,
                        overload_s=4, warm_up=0.5, cache_files=12, loads=[0.7], burst_s=5,
                        synthetic_s=0.4, within=4.7)
    if options.parts == [architectures.PART]:
        defaults |= architectures.DEFAULTS
        options.work = options.work or pathlib.Path("/dev/shm")
    for name, value in defaults.items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    build = ROOT / "build" / "experiment"
    options.out = options.out or build / (
        "quick" if options.quick else "brief" if options.brief else "full")
    options.work = (options.work or build) / "darkroom-experiment"
    options.dataset = None if options.files else build / f"dataset-{options.scale:g}"
    options.files = options.files or options.dataset
    return options
