"""scripts/experiment as a whole on a few small pictures, with real daemons and plots."""

import json
import os
import pathlib
import re
import runpy
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree

import claims
import jobs
import options as command_line
import plan
import pytest
import quiet
import recompute
import run

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUN = "--rounds", "1", "--parts", "policies,batching,layouts,overload", "--seed", "7"
EXPERIMENT = ROOT / "scripts" / "experiment"


def command(tmp_path, *arguments):
    """Without the build, which `finished` has made."""
    return ["/usr/bin/python3", ROOT / "scripts" / "experiments", "--files",
            ROOT / "data" / "sample", "--out", tmp_path / "out", "--work", tmp_path,
            "--configurations", "drain,seda,thread-per-connection-4", "--connections", "4",
            "--overload-seconds", "2", "--warm-up", "0.2", "--run-seconds", "0", "--others", "100",
            *arguments]


def experiment(tmp_path, *arguments):
    return subprocess.run(command(tmp_path, *arguments), capture_output=True, text=True,
                          timeout=600)


def raw(tmp_path):
    return [json.loads(line) for line in (tmp_path / "out" / "raw.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module", autouse=True)
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("experiment")
    done = subprocess.run([EXPERIMENT, *command(path, *RUN)[2:]], capture_output=True, text=True,
                          timeout=1200)
    assert done.returncode == 0, done.stderr
    return path, done


def test_every_part_has_results(finished):
    path, _ = finished
    machine, *lines = raw(path)
    assert machine["files"] == 6 and machine["cores"] >= 1
    assert sorted(line["name"] for line in lines if line["kind"] == "policies") == [
        "drain", "seda", "thread-per-connection-4"]
    for line in lines:
        if line["kind"] in ("policies", "batching", "layouts"):
            assert line["images"] == 6 and line["cpu_s"] > 0
            assert line["p50_ms"] <= line["p90_ms"] <= line["p99_ms"]
            assert 0 < line["answered_s"] <= line["makespan_s"] and 0 < line["cpu_use"]
            assert line["input_bytes_per_s"] * line["makespan_s"] == pytest.approx(
                machine["file_bytes"])
    assert {line["kind"] for line in lines} == {"policies", "batching", "layouts", "overload"}
    layouts = {line["name"]: line["layout"] for line in lines if line["kind"] == "layouts"}
    assert layouts["shared"] == {"mode": "shared"} and len(layouts["2 replicas"]["replicas"]) == 2
    assert layouts["2 partitions"]["imbalance"] >= 1 and len(layouts["2 partitions"]["parts"]) == 2


def test_report_names_its_plots_and_they_are_pictures(finished):
    path, done = finished
    report = (path / "out" / "report.md").read_text()
    for name in ("input-bytes-per-s", "p90-ms", "cpu-use"):
        name = f"4-connections-{name}"
        assert f"({name}.svg)" in report
        root = xml.etree.ElementTree.parse(path / "out" / f"{name}.svg").getroot()
        assert root.tag.endswith("svg")
        assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) > 5
    assert report.count("| seda |") >= 3 and "never sent" in report
    assert "CANNOT BE TOLD" in done.stdout and str(path / "out" / "report.md") in done.stdout


def test_the_load_of_the_machine_is_recorded_with_each_result(finished):
    _, *lines = raw(finished[0])
    assert all(line["load_average"] >= 0 and 0 <= line["others_cpu_share"] <= 1 for line in lines)
    assert [line["begun"] for line in lines] == sorted(line["begun"] for line in lines)


def test_cache_misses_are_counted_by_stage(tmp_path):
    done = experiment(tmp_path, "--rounds", "1", "--parts", "caches", "--cache-files", "2",
                      "--configurations", "drain")
    assert done.returncode == 0, done.stderr
    line, = raw(tmp_path)[1:]
    stages = line["misses"]
    assert list(stages) == ["jpeg_decode", "scale", "blur", "jpeg_encode", "all"]
    for kind in ("instructions", "l1i", "l1d", "l2i", "l2d"):
        parts = sum(stages[name][kind] for name in stages if name != "all")
        # HTTP and the store have the rest.
        assert 0 < parts < stages["all"][kind]
    assert stages["jpeg_decode"]["instructions"] > 1e6
    assert stages["all"]["l2d"] < stages["all"]["l1d"]
    assert line["events_per_visit"]["jpeg_encode"] > 1
    assert not recompute.check(tmp_path / "out")[0]


def test_parts_without_images(tmp_path):
    done = experiment(tmp_path, "--rounds", "1", "--parts", "bottleneck,gates,ring",
                      "--synthetic-seconds", "0.3", "--configurations", "cohort,seda")
    assert done.returncode == 0, done.stderr
    lines = raw(tmp_path)[1:]
    found = {line["name"]: line for line in lines if line["kind"] == "bottleneck"}
    assert set(found) == {"cohort, normal", "cohort, underthreaded", "seda, normal",
                          "seda, underthreaded", "seda, overthreaded", "cohort, at most 0.2 ms",
                          "cohort, at most 1 ms", "cohort, at most 5 ms"}
    assert found["cohort, at most 0.2 ms"]["visits"] / found["cohort, at most 0.2 ms"]["rounds"] > \
        2 * found["cohort, normal"]["visits"] / found["cohort, normal"]["rounds"]
    for line in found.values():
        assert line["rounds"] > 0 and line["cpu_ns"] > 0 and line["p50_us"] <= line["p99_us"]
        titles, term, terms = (path["rounds"] for path in line["paths"])
        assert titles > term and titles > terms
        assert len(line["rounds_per_s_by_interval"]) == 20
        assert max(line["rounds_per_s_by_interval"]) == line["most_per_s"]
    assert found["cohort, underthreaded"]["visits"] > 0
    ring = {line["name"]: line["cpu_ns"] / line["rounds"] for line in lines
            if line["kind"] == "ring"}
    assert len(ring) == 14 and ring["cohort, 100 stages"] > ring["cohort, 1 stages"]
    visits = {line["name"]: line["visits"] / line["rounds"] for line in lines
              if line["kind"] == "gates"}
    assert visits["1"] > 7 and visits["1000"] < visits["1"] / 50
    report = (tmp_path / "out" / "report.md").read_text()
    assert "| cohort, underthreaded |" in report and "](gates.svg)" in report
    assert "<path" in (tmp_path / "out" / "gates.svg").read_text()
    assert not recompute.check(tmp_path / "out")[0]


def test_the_paths_of_the_search_engine():
    """Gordon's figure 4.16: a title visits 6 stages, one term 11, several terms 13."""
    program = ROOT / "build" / "plain" / "tests" / "bench" / "synthetic"
    subprocess.run(["make", "-s", "-C", ROOT, "synthetic"], check=True)
    usual = ["cohort", "15", "0", "1", "1", "8", "0", "0", "0.2"]
    done = subprocess.run([program, *usual, "paths=1", "gate=1"], capture_output=True, text=True,
                          check=True)
    report = json.loads(done.stdout)
    visits = sum(length * path["rounds"] for length, path in zip((6, 11, 13), report["paths"]))
    assert report["rounds"] > 1000 and report["visits"] == pytest.approx(visits, rel=0.01)
    for arguments in (["nosuch", *usual[1:]], ["cohort", "16", *usual[2:]], [*usual, "gate=x"],
                      ["cohort", "9", *usual[2:], "paths=1"], [*usual, "gates=1"], usual[1:]):
        assert subprocess.run([program, *arguments], capture_output=True).returncode == 2


def test_threads_without_a_scheduler():
    program = ROOT / "build" / "plain" / "tests" / "bench" / "threads"
    subprocess.run(["make", "-s", "-C", ROOT, "synthetic"], check=True)
    done = subprocess.run([program, "32", "0.05", ROOT / "data" / "sample" / "lake.jpg"],
                          capture_output=True, text=True, check=True)
    report = json.loads(done.stdout)
    assert report["threads"] == 32 and report["tasks"] > 0 and report["cpu_ns"] > 0
    assert report["p50_us"] <= report["p99_us"]
    for arguments in (["0", "1", "x"], ["1025", "1", "x"], ["1", "0", "x"], ["1"]):
        assert subprocess.run([program, *arguments], capture_output=True).returncode == 2


def test_slowdown_cohorts_and_bursts(tmp_path):
    done = experiment(tmp_path, "--rounds", "1", "--parts", "slowdown,cohorts,bursts", "--loads",
                      "0.5", "--burst-seconds", "2", "--configurations", "drain", "--run-seconds",
                      "0.3", "--seed", "3")
    assert done.returncode == 0, done.stderr
    machine, *lines = raw(tmp_path)
    # A run has as many requests as drain answers in that time.
    assert machine["requests"] > 0 and machine["seed"] == 3
    assert {line["images"] for line in lines if line["kind"] == "cohorts"} == {machine["requests"]}
    found = {line["arrivals"]: line for line in lines if line["kind"] == "slowdown"}
    assert set(found) == {"poisson", "bursts"}
    for line in found.values():
        assert line["load"] == 0.5 and line["policy"] == "drain"
        for key in ("slowdown", "srpt", "ps"):
            assert sum(of["n"] for of in line[key].values()) == line["requests"]
        assert all(of["p50"] > 0.999 for key in ("srpt", "ps") for of in line[key].values()
                   if of["p50"])
    alone = json.loads((tmp_path / "out" / "slowdown.json").read_text())
    assert len(alone["alone_s"]) == machine["files"] and alone["capacity_per_s"] > 0
    names = ["1", "4", "10", "20", "all"]
    workload = next(line["workload"] for line in lines if line["kind"] == "cohorts")
    assert [line["name"] for line in lines if line["kind"] == "cohorts"] == sorted(
        names, key=lambda name: plan.place(3, "cohorts", name, workload, 0))
    bursts = {line["name"]: line for line in lines if line["kind"] == "bursts"}
    assert all(line["unsent"] >= 0 and line["samples"] for line in bursts.values())
    assert "batch" in bursts["controllers"]["samples"][-1]["stages"]["blur"]
    names = {path.name for path in (tmp_path / "out").glob("*.svg")}
    assert not recompute.check(tmp_path / "out")[0]
    assert names == {"slowdown-poisson.svg", "slowdown-bursts.svg", "bursts-controllers.svg",
                     "bursts-fixed-pools.svg"}


@pytest.mark.parametrize("words", ["experiment --help", "experiment --quick --plan", "run --help",
                                   "cluster --help", "soak --help", "partition --help"])
def test_help_and_the_plan_need_no_packages_and_no_build(tmp_path, words):
    for name in ("make", "dpkg-query", "apt-cache", "apt-get", "sudo"):
        (tmp_path / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / name).chmod(0o700)
    (tmp_path / "PIL.py").write_text("raise ImportError")
    script, *arguments = words.split()
    done = subprocess.run([EXPERIMENT.with_name(script), *arguments], capture_output=True, text=True,
                          env=dict(os.environ, PATH=f"{tmp_path}:{os.environ['PATH']}",
                                   PYTHONPATH=str(tmp_path)))
    assert (done.returncode, done.stderr) == (0, "") and len(done.stdout) > 200, done


def test_the_plan_of_the_whole_experiment_fits_a_night():
    done = subprocess.run([EXPERIMENT, "--plan"], capture_output=True, text=True, check=True)
    rows = [line.split() for line in done.stdout.splitlines()]
    assert rows[0] == ["part", "rounds", "runs", "time"]
    assert ["policies", "8"] in [row[:2] for row in rows]
    last = done.stdout.splitlines()[-1]
    hours, minutes = re.match(r"all +\d+ +(\d+) h (\d+) min, until ", last).groups()
    assert 3 < int(hours) + int(minutes) / 60 < 7


def test_the_brief_experiment_has_what_the_claims_need_within_25_minutes():
    done = subprocess.run(["/usr/bin/python3", ROOT / "scripts" / "experiments", "--plan",
                           "--brief"], capture_output=True, text=True, check=True)
    minutes = re.search(r"^all +\d+ +(\d+) min \d\d s, until ", done.stdout, re.MULTILINE)[1]
    assert int(minutes) < 25
    options = command_line.parse(["--brief"])
    names = {(job.kind, job.name) for job in jobs.jobs(options, run.Bench(ROOT, ROOT), 1)}
    assert {("cohorts", "1"), ("cohorts", "all")} == {one for one in names if one[0] == "cohorts"}
    for classes in (claims.PER_CORE, claims.POOLS, claims.PER_CONNECTION):
        wanted = {name for name in plan.PAPER if name not in plan.NOT_TUNED
                  and claims.class_of(name.partition("-16")[0].partition("-malloc")[0]) == classes
                  and not name.endswith(("connection-4", "connection-8"))}
        assert wanted and {("policies", name) for name in wanted} <= names


def test_the_architectures_end_within_25_minutes():
    done = subprocess.run(["/usr/bin/python3", ROOT / "scripts" / "experiments", "--plan", "--parts",
                           "architectures"], capture_output=True, text=True, check=True)
    assert int(re.search(r"^all +\d+ +(\d+) min \d\d s, until ", done.stdout, re.M)[1]) < 25


def test_what_decides_no_claim_has_fewer_rounds():
    rounds, options = {}, command_line.parse(["--parts", "policies,slowdown", "--connections", "16"])
    for job in jobs.jobs(options, run.Bench(ROOT, ROOT), 1):
        rounds.setdefault((job.kind, job.name), []).append(job.round)
    assert rounds["policies", "seda"] == list(range(8))
    assert rounds["policies", "seda-overthreaded"] == [0, 1, 2]
    assert ("slowdown", "drain, poisson, 1.4") in rounds
    assert ("slowdown", "drain, bursts, 1.4") not in rounds
    assert len(rounds["slowdown", "drain, bursts, 0.7"]) == 3


@pytest.mark.parametrize("arguments", [
    "policies --connections 16", "slowdown --rounds 1", "batching", "layouts",
    "overload", "addresses --configurations backlog --rounds 3", "cohorts",
    "architectures", "cutoff", "bursts",
    "bottleneck", "gates", "ring", "threads", "caches"])
def test_each_plot_can_be_repeated_within_an_hour(arguments):
    done = subprocess.run(["/usr/bin/python3", ROOT / "scripts" / "experiments", "--plan",
                           "--parts", *arguments.split()], capture_output=True, text=True,
                          check=True)
    assert re.search(r"^all +\d+ +(?:[1-5]?\d min \d\d|\d\d) s, until ", done.stdout, re.MULTILINE)


def test_a_busy_machine_repeats_a_run_and_then_stops(tmp_path, monkeypatch, capsys):
    """Other programs always use more than --others allows, and nobody waits for them."""
    monkeypatch.setattr(quiet, "wait", lambda most: None)
    monkeypatch.setattr(sys, "argv", list(map(str, command(
        tmp_path, "--rounds", "1", "--parts", "ring", "--others", "-1", "--synthetic-seconds",
        "0.01")))[1:])
    with pytest.raises(SystemExit, match="1"):
        runpy.run_path(str(ROOT / "scripts" / "experiments" / "__main__.py"))
    assert "was disturbed 6 times" in capsys.readouterr().err
    assert [line["kind"] for line in raw(tmp_path)] == ["machine"] + ["disturbed"] * 6


def test_too_little_time_is_reported(tmp_path):
    done = experiment(tmp_path, "--rounds", "1", "--parts", "policies", "--within", "0")
    assert done.returncode == 1
    assert "3 measurements are left after 0 minutes (load average " in done.stderr
    assert len(raw(tmp_path)) == 1 and (tmp_path / "out" / "report.md").exists()
    quick = experiment(tmp_path, "--quick", "--parts", "policies", "--within", "0.001")
    assert quick.returncode == 1 and "this machine is too busy for --quick" in quick.stderr


def test_a_second_program_agrees_with_the_report(finished):
    faults, checked = recompute.check(finished[0] / "out")
    assert not faults and checked > 100


def test_nothing_is_left_behind(finished):
    path, _ = finished
    assert not (path / "darkroom-experiment").exists()


def test_interrupted_experiment_continues(finished):
    path, _ = finished
    results = path / "out" / "raw.jsonl"
    before = results.read_text()
    lines = before.splitlines(keepends=True)
    results.write_text("".join(lines[:-1]) + lines[-1][:20])
    again = experiment(path, *RUN)
    assert again.returncode == 0, again.stderr
    assert "; 1 left" in again.stderr
    assert results.read_text().startswith("".join(lines[:-1])) and len(raw(path)) == len(lines)


def test_report_can_be_written_alone(finished):
    path, _ = finished
    (path / "out" / "report.md").unlink()
    before = (path / "out" / "raw.jsonl").read_bytes()
    done = experiment(path, *RUN, "--report")
    assert done.returncode == 0, done.stderr
    assert (path / "out" / "report.md").exists()
    assert (path / "out" / "raw.jsonl").read_bytes() == before


def test_results_of_another_experiment_are_not_mixed_in(finished):
    path, _ = finished
    done = experiment(path, *RUN, "--option", "experiment.spin=10us")
    assert done.returncode == 1 and "has results of another experiment (options: []" in done.stderr


def test_an_experiment_that_was_begun_with_fewer_runs_does_not_continue(finished):
    """The round would not be in the order of its seed."""
    path, before = finished[0], raw(finished[0])
    done = experiment(path, *RUN, "--configurations", ",".join(
        sorted(plan.PAPER)))
    assert done.returncode == 1
    assert "was begun with fewer runs: round 1 of policies is not in the order" in done.stderr
    assert raw(path) == before


def test_interrupted_experiment_keeps_its_results(tmp_path):
    process = subprocess.Popen(command(tmp_path, "--parts", "overload", "--overload-seconds", "30"),
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True, start_new_session=True)
    deadline = time.monotonic() + 300
    # The load has started.
    while not list(tmp_path.glob("darkroom-experiment/daemon-*/requests.csv")):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 1 and "the same command continues" in errors
    assert not (tmp_path / "darkroom-experiment").exists()


@pytest.mark.parametrize("arguments, message", [
    (["--configurations", "cohort,nosuch"], "no conf/nosuch.ini"),
    (["--option", "scheduler.nosuch=1"], "unknown key"),
    (["--files", "/nonexistent"], "no JPEG files found"),
])
def test_errors_name_what_is_wrong(tmp_path, arguments, message):
    done = experiment(tmp_path, "--rounds", "1", "--parts", "policies", *arguments)
    assert done.returncode == 1 and message in done.stderr


@pytest.mark.parametrize("arguments, message", [
    (["--parts", "nosuch"], "nosuch: expected one of"),
    (["--rounds", "0"], "--rounds"),
    (["--connections", "4,x"], "--connections"),
])
def test_wrong_usage_exits_with_2(tmp_path, arguments, message):
    done = experiment(tmp_path, *arguments)
    assert done.returncode == 2 and message in done.stderr
