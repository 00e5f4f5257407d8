#!/usr/bin/python3
"""Makes records for tests/bench/synthetic: what the daemon's stages need for each picture, one picture
at a time on one worker, from a trace of its visits.

    scripts/experiments/records.py FILES OUT

A line is: name, bytes, pixels, and the CPU time in microseconds of decoding, scaling, blurring and
encoding. `synthetic POLICY 4 ... records=OUT` draws from them.
"""

import itertools
import pathlib
import sys
import tempfile

import PIL.Image

import run
from machine import ROOT

sys.path.insert(0, str(ROOT / "scripts" / "traces"))
import trace_file  # noqa: E402

STAGES = "jpeg_decode", "scale", "blur", "jpeg_encode"


def of_trace(trace):
    """Returns for each picture the CPU time of each stage in us. A picture begins with a visit to
    its decoding after another stage."""
    out, last = [], None
    for visit in trace.records():
        stage = trace.stages[visit.stage]
        if stage not in STAGES or not visit.events:
            continue
        if stage == STAGES[0] != last:
            out.append(dict.fromkeys(STAGES, 0))
        out[-1][stage] += visit.cpu / 1e3
        last = stage
    return out


def measure(files, work):
    """Returns [(path, CPU times)]. The second of two passes counts."""
    file = pathlib.Path(work) / "trace"
    options = ("scheduler.threads=1", "experiment.scale.pass_through=no",
               "server.respond_after=store")
    bench = run.Bench(files, pathlib.Path(work))
    with bench.daemon(ROOT / "conf" / "drain.ini", options,
                      wrapper=("sh", "-c", f'exec "$@" --trace {file}', "sh")) as daemon:
        bench.load(daemon, "-c", 1)
        _, rows = bench.load(daemon, "-c", 1)
    found = of_trace(trace_file.read(file))
    if len(found) != 2 * len(rows):
        raise run.Failed(f"the trace has {len(found)} pictures of {2 * len(rows)}")
    rows.sort(key=lambda row: float(row["start"]))
    return list(zip((pathlib.Path(row["file"]) for row in rows), found[len(rows):]))


def line_of(path, times):
    with PIL.Image.open(path) as picture:
        pixels = picture.width * picture.height
    return " ".join([path.name, str(path.stat().st_size), str(pixels),
                     *(f"{times[stage]:.1f}" for stage in STAGES)])


def main():
    files, out = map(pathlib.Path, sys.argv[1:])
    with tempfile.TemporaryDirectory() as work:
        lines = sorted(itertools.starmap(line_of, measure(files, work)))
    out.write_text("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    main()
