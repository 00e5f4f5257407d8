"""The command line."""

import argparse
import pathlib

from jobs import PARTS
from machine import ROOT

DESCRIPTION = """
Measures every configuration in conf/ against the others, and the claims of Gordon's dissertation (2010, chapter 4), of Larus
and Parkes (2002) and of Welsh (2002) against what is seen. In every round each configuration gets a fresh daemon and the whole
dataset once, in rotated order. Writes into the output directory: raw.jsonl, report.md and plots (SVG). After an interruption
the same command with the same --out goes on.
"""
EPILOG = """
For example: scripts/experiment --quick
             scripts/experiment --rounds 10 --out results
             scripts/experiment --connections 16 --configurations drain,cohort,mg1 --parts policies
Exit status: 0 done, whatever the verdicts; 1 a measurement failed, or interrupted; 2 wrong usage.
"""


def _names(text):
    return [name for name in text.split(",") if name]


def counts(text):
    numbers = [int(part) for part in _names(text)]
    if not numbers or min(numbers) < 1:
        raise ValueError
    return sorted(set(numbers), reverse=True)


def positive(text):
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def _cpus(text):
    """0-3,8 as a set."""
    out = set()
    for part in _names(text):
        first, _, last = part.partition("-")
        out |= set(range(int(first), int(last or first) + 1))
    return out


def parse(arguments):
    parser = argparse.ArgumentParser(prog="scripts/experiment", description=DESCRIPTION, epilog=EPILOG,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--quick", action="store_true", help="under 5 minutes: a tenth of the dataset, 3 rounds, 16 connections only")
    add("--rounds", type=positive, metavar="N", help="runs of each configuration (5; --quick: 3)")
    add("--connections", type=counts, metavar="N,...", help="at a time; thread-per-connection meets at most as many as it has "
        "threads (16,4; --quick: 16)")
    add("--configurations", type=_names, default=[], metavar="NAME,...", help="of conf/NAME.ini (all but darkroomd.ini)")
    add("--parts", type=_names, default=list(PARTS), metavar="NAME,...", help=f"what is measured ({','.join(PARTS)})")
    add("--files", type=pathlib.Path, metavar="DIR", help="JPEGs to send, instead of the dataset")
    add("--scale", type=float, metavar="F", help="so many times the files of the dataset (1; --quick: 0.1)")
    add("--out", type=pathlib.Path, metavar="DIR", help="for the results (build/experiment/full or .../quick)")
    add("--work", type=pathlib.Path, metavar="DIR", help="the daemons' stores are made in DIR/darkroom-experiment, which is removed (build/experiment)")
    add("--option", action="append", default=[], metavar="SECTION.KEY=VALUE", help="for every daemon; may be given several times")
    add("--server-cpus", type=_cpus, default=set(), metavar="LIST", help="the daemon runs on these only, like 0-11")
    add("--load-cpus", type=_cpus, default=set(), metavar="LIST", help="... the generator on these")
    add("--baseline", type=positive, metavar="N", help="files for the ImageMagick script (60; --quick: 10)")
    add("--overload-seconds", type=positive, dest="overload_s", metavar="N", help="of each overload (20; --quick: 6)")
    add("--report", action="store_true", help="measure nothing: write the report of the results in --out anew")
    options = parser.parse_args(arguments)
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"--parts: {unknown[0]} is none of {', '.join(PARTS)}")
    defaults = dict(rounds=3, connections=[16], scale=0.1, baseline=10, overload_s=6) if options.quick \
        else dict(rounds=5, connections=[16, 4], scale=1, baseline=60, overload_s=20)
    for name, value in defaults.items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    build = ROOT / "build" / "experiment"
    options.out = options.out or build / ("quick" if options.quick else "full")
    options.work = (options.work or build) / "darkroom-experiment"
    options.dataset = None if options.files else build / f"dataset-{options.scale:g}"
    options.files = options.files or options.dataset
    return options
