"""The part architectures: its runs, and a whole one on a few connections."""

import runpy
import sys

import architectures
import jobs
import options as command_line
import pytest
import recompute
import results
import run
from machine import ROOT

ONE = {architectures.HEALTH: (1,), architectures.VARIANT: (2,), architectures.TINY: (3,),
       architectures.DATASET: (1,)}
SMALL = {"WORKLOADS": ONE, "LOADS": (0.5,), "IDLE": 40, "ACTIVE": 20, "SCARCE_S": 0.5}


def planned(*arguments):
    """Returns the name and the connections of each run."""
    options = command_line.parse(["--parts", "architectures", "--rounds", "1", *arguments])
    return [(job.name, job.workload) for job in jobs.jobs(options, run.Bench(ROOT, ROOT), 1)]


def test_each_architecture_has_each_run_once():
    runs = planned()
    assert len(runs) == len({*runs})
    counts = {name: [count for each, count in runs if each.startswith(f"{name}, ")]
              for name in architectures.NAMES}
    assert all(max(of) == 10000 for name, of in counts.items() if name != "thread-per-connection")
    assert max(counts["thread-per-connection"]) <= architectures.THREADS
    assert {name for name, _ in planned("--configurations", "amped,mg1")} >= {
        "amped, memory", "mg1, load 2", "mg1, dataset"}


def test_the_settings_are_those_of_the_machine():
    of = {each.name: architectures.settings_of(each, 6)
          for each in jobs.configurations(architectures.NAMES)}
    assert "stage.accept_read.threads=6" in of["event-loop"] and \
        "stage.accept_read.threads=6" in of["amped"]
    assert f"scheduler.threads={architectures.THREADS}" in of["thread-per-connection"]
    assert all("server.respond_after=store" in settings for settings in of.values())


def test_a_whole_run(tmp_path, monkeypatch, capsys):
    for name, value in SMALL.items():
        monkeypatch.setattr(architectures, name, value)
    monkeypatch.setattr(sys, "argv", list(map(str, [
        "experiment", "--parts", "architectures", "--rounds", "1", "--configurations",
        "cohort,thread-per-connection", "--run-seconds", "0.2", "--warm-up", "0.1", "--others",
        "100", "--files", ROOT / "data" / "sample", "--out", tmp_path / "out", "--work", tmp_path])))
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / "scripts" / "experiments" / "__main__.py"), run_name="__main__")
    assert ended.value.code == 0, capsys.readouterr().err
    found = results.Results(results.read(tmp_path / "out" / "raw.jsonl"))
    for name, idle in ("cohort", 36), ("thread-per-connection", 40):
        for workload, (count,) in ONE.items():
            one, = found.runs("architectures", f"{name}, {workload}", count)
            assert one["answered"] > 0 and architectures.cpu(one) > 1000
        memory, = found.runs("architectures", f"{name}, memory", 0)
        assert memory["idle"]["connections"] == idle and memory["active"]["connections"] == 20
        assert 0.1 < architectures.held_kb(memory, "active") < 1000
    assert "| cohort | 36 |" in (tmp_path / "out" / "report.md").read_text()
    for is_aware in ("no", "yes"):  # cohort.ini answers before files are stored
        scarce, = found.runs("architectures", f"cohort, scarce memory, {is_aware}", 0)
        assert scarce["p50_s"] > 0
    assert {path.name for path in (tmp_path / "out").glob("*.svg")} == {
        "architectures-connections.svg", "architectures-load.svg"}
    assert recompute.check(tmp_path / "out") == ([], pytest.approx(60, abs=40))
