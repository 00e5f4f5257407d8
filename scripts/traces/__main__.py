"""Draws a trace of visits: see scripts/trace-draw."""

import argparse
import os
import sys

import perfetto
import summary
import svg
import trace_file


def options():
    parser = argparse.ArgumentParser(
        prog="scripts/trace-draw", description="Draws a trace of visits that darkroomd --trace FILE "
        "or darkroomd ctl trace SECONDS has written.")
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--format", choices=("summary", "svg", "json"), default="summary",
                        help="summary: tables; svg: a timeline of each core; json: for Perfetto and "
                        "chrome://tracing (default: summary)")
    parser.add_argument("--from", dest="begin", type=float, default=0, metavar="MS",
                        help="begin that many ms after the begin of the trace")
    parser.add_argument("--to", dest="end", type=float, metavar="MS",
                        help="end that many ms after the begin of the trace")
    parser.add_argument("--width", type=int, default=1400, help="of the SVG, in pixels (1400)")
    parser.add_argument("--empty", action="store_true",
                        help="json: with visits that found nothing")
    parser.add_argument("-o", "--output", metavar="FILE", help="default: standard output")
    return parser.parse_args()


def draw(chosen, trace, out):
    begin = trace.begin + int(chosen.begin * 1e6)
    end = trace.begin + int(chosen.end * 1e6) if chosen.end else trace.end
    if begin >= end:
        sys.exit(f"trace-draw: nothing between --from and --to: the trace has "
                 f"{(trace.end - trace.begin) / 1e6:.0f} ms")
    if chosen.format == "svg":
        svg.write(trace, begin, end, chosen.width, out)
    elif chosen.format == "json":
        perfetto.write(trace, begin, end, chosen.empty, out)
    else:
        summary.write(trace, begin, end, out)


def main():
    chosen = options()
    try:
        trace = trace_file.read(chosen.file)
        if chosen.output:
            with open(chosen.output, "w", encoding="utf-8") as out:
                draw(chosen, trace, out)
        else:
            draw(chosen, trace, sys.stdout)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the reader has had enough
    except (OSError, trace_file.Malformed) as error:
        sys.exit(f"trace-draw: {chosen.file}: {error}")


main()
