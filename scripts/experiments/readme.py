"""The parts of data/results/README.md that are generated from the raw results: each is between a
line "<!-- NAME FOLDER -->" and a line "<!-- end -->". A folder without results has a sentence."""

import re

import claims
import results as r
import tables
from machine import ROOT

RESULTS = ROOT / "data" / "results"
PATH = RESULTS / "README.md"
BLOCK = re.compile(r"<!-- (verdicts|throughput|caches) (\S+)(?: (\d+))? -->\n.*?<!-- end -->\n",
                   re.DOTALL)


def verdicts(results, _):
    return "\n".join(f"- {verdict.claim} **{verdict.verdict.capitalize()}.**"
                     for verdict in claims.verdicts(results))


def throughput(results, workload):
    return tables.throughput(results, int(workload)) + "\n\n" + tables.design(results,
                                                                            int(workload))


def caches(results, _):
    return tables.cache_misses(results)


MAKE = {"verdicts": verdicts, "throughput": throughput, "caches": caches}


NOT_MEASURED = "Not measured yet."


def generated(text, root=RESULTS):
    """Returns the text with all of its generated parts made from the raw results."""
    def replace(found):
        name, folder, workload = found.groups()
        path = root / folder / "raw.jsonl"
        body = MAKE[name](r.Results(r.read(path)), workload) if path.exists() else NOT_MEASURED
        head = found[0].split("\n", 1)[0]
        return f"{head}\n{body}\n<!-- end -->\n"
    return BLOCK.sub(replace, text)


def update():
    PATH.write_text(generated(PATH.read_text()))
