"""Runs that other programs disturb are repeated."""

import multiprocessing
import os
import time

import job
import machine
import pytest
import quiet
import run


class Usages:
    """Stands in for machine.Usage: these shares one after the other."""

    def __init__(self, *shares):
        self.shares = list(shares)

    def __call__(self):
        return self

    def of_others(self):
        return self.shares.pop(0)


def lines(usage, kind="policies", waits=lambda most: None):
    runs = iter(range(100))
    one = job.Job(kind, "drain", 16, 3, lambda: {"cpu_s": next(runs)}, 1)
    return list(quiet.lines(one, lambda each: each.measure(), 0.05, waits, usage))


def test_a_disturbed_run_is_repeated_and_does_not_count():
    waited = []
    first, second, third = lines(Usages(0.25, 0.06, 0.05), waits=waited.append)
    assert [first["kind"], second["kind"], third["kind"]] == ["disturbed", "disturbed", "policies"]
    assert first["part"] == "policies" and first["others_cpu_share"] == 0.25
    assert third["cpu_s"] == 2 and third["others_cpu_share"] == 0.05 and third["round"] == 3
    assert waited == [0.05, 0.05]


def test_a_machine_that_is_never_quiet_ends_the_experiment():
    with pytest.raises(run.Failed, match="disturbed 6 times: other programs used more than 5 %"):
        lines(Usages(*[0.06] * 6))
    slept = []
    with pytest.raises(run.Failed, match="for 10 minutes; the same command continues"):
        quiet.wait(0.05, slept.append, Usages(*[0.06] * 120))
    assert sum(slept) == 600


def test_the_next_run_waits_until_the_neighbour_has_gone():
    slept = []
    quiet.wait(0.05, slept.append, Usages(0.25, 0.25, 0.04, 0.25))
    assert sum(slept) == 15


def test_simulated_caches_are_not_disturbed():
    assert [line["kind"] for line in lines(Usages(0.9), "caches")] == ["caches"]


def test_kernel_threads_and_interrupts_are_no_other_programs(tmp_path):
    (tmp_path / "stat").write_text("cpu  1000 200 400 9 9 50 60 30 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n")
    for pid, name, parent, user, system in (
            (2, "kthreadd", 0, 0, 1), (7, "kworker/0:1 (a)", 2, 3, 100), (8, "darkroomd", 1, 6, 9)):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "stat").write_text(
            f"{pid} ({name}) S {parent} 0 0 0 -1 0 0 0 0 0 {user} {system} 0 0 20 0 1 0 5\n")
    (tmp_path / "900").mkdir()  # has ended
    (tmp_path / "900" / "stat").symlink_to(tmp_path / "nothing")
    assert machine.busy_s(tmp_path) * os.sysconf("SC_CLK_TCK") == pytest.approx(1630 - 103)


def half_a_core(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        begun = time.thread_time()
        while time.thread_time() - begun < 0.01:
            pass
        time.sleep(0.01)


def test_a_neighbour_that_takes_half_a_core_is_noticed():
    """A quarter of a machine of two cores; a run may be disturbed by a twentieth."""
    neighbour = multiprocessing.Process(target=half_a_core, args=(60,))
    usage, most = machine.Usage(), 0.2 / os.cpu_count()  # two fifths of what it takes
    neighbour.start()
    try:
        deadline = time.monotonic() + 30
        while usage.of_others() < most and time.monotonic() < deadline:
            time.sleep(0.1)  # it starts
        one = job.Job("policies", "drain", 16, 0, lambda: time.sleep(0.5) or {}, 1)
        line = next(quiet.lines(one, lambda each: each.measure(), most))
        assert line["kind"] == "disturbed" and line["others_cpu_share"] > most
    finally:
        neighbour.kill()
        neighbour.join()
