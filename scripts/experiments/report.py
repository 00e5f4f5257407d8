"""The report: tables, plots and verdicts in one Markdown document."""

import statistics

import claims
import machine
import plots
import tables

MUCH = 5  # per cent of the CPUs, taken by other programs


def write(results, directory, command):
    """Draws the plots and writes report.md. Returns the verdicts."""
    verdicts = claims.verdicts(results)
    text = [f"# Configurations compared\n\n`{command}` on {machine.sentence(results.machine)}.\n",
            f"{results.machine['files']} files, {results.machine['file_bytes'] / 1e6:.0f} MB; {results.rounds(None)} rounds, in "
            "each every configuration once, in rotated order, with a fresh daemon and an empty store; every file once, in closed "
            "loop. Server and generator are on the same machine. Medians, in parentheses the range over the rounds; "
            "raw results: raw.jsonl.\n"]
    others = [run["others_cpu_use"] for run in results.of("policies")]
    if others:
        text.append(f"Other programs took {statistics.median(others):.1f} % of the CPUs (median of the runs; at most "
                    f"{max(others):.1f} %){'; **that is much: repeat it on a quiet machine**' if statistics.median(others) > MUCH else ''}.\n")
    for workload in results.workloads():
        text.append(f"## {workload} connections\n\nThroughput, like the paper's table 4.4 (its column: relative to its best).\n\n"
                    f"{tables.throughput(results, workload)}\n\nWhat clients see, like table 4.5.\n\n"
                    f"{tables.clients(results, workload)}\n\nThe server, like table 4.6. Traffic is the busiest "
                    f"second (or tenth of one, in short runs).\n\n{tables.server(results, workload)}\n")
        if results.runs("policies", "drain", workload) and len(results.ranking(workload, tables.r.RATE)) > 1:
            text.append(f"darkroom's default against every other, round by round: above 1 is better in throughput, below 1 in "
                        f"times.\n\n{tables.drain(results, workload)}\n")
    for workload in results.workloads("layouts"):
        text.append(f"## Replicas and partitions\n\nCohort scheduling, {workload} connections.\n\n{tables.layouts(results, workload)}\n")
    if results.of("baseline"):
        first = results.of("baseline")[0]
        text.append(f"## What the paper's server replaced\n\nThe same {first['images']} files ({first['sample_bytes'] / 1e6:.0f} MB) "
                    f"and the same variants.\n\n{tables.baseline(results)}\n")
    text.append("## Verdicts\n")
    text += [f"{number}. **{verdict.claim}** {verdict.verdict.capitalize()}. {' '.join(verdict.numbers)}"
             for number, verdict in enumerate(verdicts, 1)]
    text.append("\n## Plots\n")
    text += [f"![{title}]({name})" for name, title in plots.draw(results, directory)]
    (directory / "report.md").write_text("\n".join(text) + "\n")
    return verdicts
