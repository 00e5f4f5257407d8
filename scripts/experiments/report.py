"""The report: tables, plots and verdicts in a Markdown document."""

import statistics

import claims
import machine
import plots
import tables
import visits

MUCH = 5  # per cent of the CPUs used by other programs


def write(results, directory, command):
    """Draws the plots and writes report.md. Returns the verdicts."""
    verdicts = claims.verdicts(results)
    text = [f"# Configurations compared\n\n`{command}` on {machine.sentence(results.machine)}.\n",
            f"{results.machine['files']} files, {results.machine['file_bytes'] / 1e6:.0f} MB. "
            f"{results.rounds(None)} rounds. Each round has every configuration once, in rotated "
            "order, with a fresh daemon and an empty store, and sends every file once in a closed "
            "loop. Server and load generator are on the same machine. Values are medians, with the "
            "range over the rounds in parentheses. The raw results are in raw.jsonl.\n"]
    others = [run["others_cpu_use"] for run in results.of("policies")]
    if others:
        median = statistics.median(others)
        advice = " **That is much: repeat the experiment on a quiet machine.**"
        text.append(f"Other programs used {median:.1f} % of the CPUs (median of the runs, at most "
                    f"{max(others):.1f} %).{advice if median > MUCH else ''}\n")
    for workload in results.workloads():
        text.append(f"## {workload} connections\n\nThroughput, as in the paper's table 4.4. The "
                    "last column is the paper's, relative to its best.\n\n"
                    f"{tables.throughput(results, workload)}\n\nClients, as in table 4.5.\n\n"
                    f"{tables.clients(results, workload)}\n\nThe server, as in table 4.6. Traffic "
                    "is that of the busiest second (of a tenth of it in short runs).\n\n"
                    f"{tables.server(results, workload)}\n")
        if found := visits.table(results, workload):
            text.append("Visits to stages by the threads that serve images, in the order of "
                        f"throughput. Maxima are since the start of a run.\n\n{found}\n")
        has_others = len(results.ranking(workload, tables.r.RATE)) > 1
        if results.runs("policies", "drain", workload) and has_others:
            text.append("darkroom's default relative to each other configuration, round by round: "
                        "above 1 is better in throughput, below 1 is better in times.\n\n"
                        f"{tables.drain(results, workload)}\n")
    for workload in results.workloads("layouts"):
        text.append("## Replicas and partitions\n\n"
                    f"Cohort scheduling, {workload} connections.\n\n"
                    f"{tables.layouts(results, workload)}\n")
    if results.of("baseline"):
        first = results.of("baseline")[0]
        text.append("## The script that the paper's server replaced\n\n"
                    f"The same {first['images']} files ({first['sample_bytes'] / 1e6:.0f} MB) and "
                    f"the same variants.\n\n{tables.baseline(results)}\n")
    text.append("## Verdicts\n")
    text += [
        f"{number}. **{verdict.claim}** {verdict.verdict.capitalize()}. {' '.join(verdict.numbers)}"
        for number, verdict in enumerate(verdicts, 1)]
    text.append("\n## Plots\n")
    text += [f"![{title}]({name})" for name, title in plots.draw(results, directory)]
    (directory / "report.md").write_text("\n".join(text) + "\n")
    return verdicts
