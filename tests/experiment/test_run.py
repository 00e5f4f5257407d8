"""The clock and the invariants of a run, with a real daemon and with a stand-in that has faults."""

import pathlib
import time

import invariants
import pytest
import run

ROOT = pathlib.Path(__file__).resolve().parents[2]
STAND_IN = pathlib.Path(__file__).with_name("stand_in.py")
TICK_S = 0.02  # a file system's times are older by up to a tick of the kernel


def daemon(tmp_path, fault):
    return run.Daemon(ROOT / "conf" / "drain.ini", tmp_path, program=STAND_IN,
                      environ={"STAND_IN": fault})


def upload(tmp_path, daemon_, requests):
    return run.Bench(ROOT / "data" / "sample", tmp_path).load(daemon_, "-c", 4, "-n", requests)


def test_a_run_ends_when_the_last_image_is_stored(tmp_path):
    """The answers come earlier. The time is the daemon's, and the files have the same one."""
    with run.Daemon(ROOT / "conf" / "cohort.ini", tmp_path, ["server.respond_after=decode"]) as own:
        for _ in range(2):
            time.sleep(2 * TICK_S)  # else an earlier image could pass for this one
            begun = time.monotonic()
            report, rows = upload(tmp_path, own, 6)
            last = report["start_monotonic_ns"] / 1e9 + report["stored_s"]
            assert begun < last < time.monotonic() and len(rows) == 6
            assert begun - TICK_S <= invariants.last_change_s(own.store.root) <= last


@pytest.mark.parametrize("is_in_memory", [True, False])
def test_stores_in_memory_do_not_wait_for_the_end_of_a_round(tmp_path, monkeypatch, is_in_memory):
    assert run.is_in_memory(pathlib.Path("/dev/shm"))
    monkeypatch.setattr(run, "is_in_memory", lambda path: is_in_memory)
    (tmp_path / "store").mkdir()
    run.Bench(ROOT / "data" / "sample", tmp_path).sweep(is_over=False)
    assert (tmp_path / "store").exists() != is_in_memory


def test_a_run_whose_images_are_all_stored_is_valid(tmp_path):
    with daemon(tmp_path, "") as own:
        assert len(upload(tmp_path, own, 120)[1]) == 120


@pytest.mark.parametrize("fault, message", [
    ("old", "is too old: /stats does not say when the last image was stored"),
    ("clock", "s after the end of the run: the clock of the run is wrong"),
    ("lost", "120 images were acknowledged, and the daemon has stored 119"),
    ("dropped", "1 acknowledged images are not in the store, such as 0*100"),
    ("cut", "thumb.jpg has 50 bytes, not 100"),
    ("foreign", "the store has 121 images, and the daemon has stored 120"),
])
def test_a_planted_fault_fails_the_run(tmp_path, fault, message):
    with pytest.raises(run.Failed, match=message), daemon(tmp_path, fault) as own:
        upload(tmp_path, own, 120)


def test_a_run_that_uses_more_than_the_machine_fails():
    """1.128 of the machine was measured with a clock that stopped at the last answer."""
    invariants.check_cpu(20.0, 10, 2)
    with pytest.raises(run.Failed, match="22.56 s of CPU time in a run of 10.00 s on 2 cores"):
        invariants.check_cpu(22.56, 10, 2)


def test_every_load_is_checked(tmp_path, monkeypatch):
    monkeypatch.setattr(invariants, "CPU_SLACK_S", -1e6)
    with pytest.raises(run.Failed, match="of CPU time in a run"), daemon(tmp_path, "") as own:
        upload(tmp_path, own, 4)


def test_requests_without_a_whole_answer_may_be_stored(tmp_path):
    rows = [{"id": "1", "status": "202", "error": ""}, {"id": "", "status": "", "error": "timeout"},
            {"id": "", "status": "", "error": "unsent"}]
    for stored, is_valid in ((0, False), (1, True), (2, True), (3, False)):
        stats = {"images": {"stored": stored}, "store": {"s3": {}}}
        try:
            invariants.Store(tmp_path).check(rows, stats, 0)
        except invariants.Failed:
            assert not is_valid
        else:
            assert is_valid


@pytest.mark.parametrize("most, changes, is_right", [
    (2, {}, True), (1, {}, False), (0, {"errors": {"reset": 0, "timeout": 0}}, False),
    (2, {"errors": {"reset": 1, "timeout": 1}}, False), (2, {"unexpected": 1}, False),
    (2, {"interrupted": True}, False), (2, {"aborted": 1}, False), (2, {"doubled": 1}, False)])
def test_only_resets_are_forgiven_and_few(most, changes, is_right):
    """Without a reset something else has failed, which the report may not name."""
    report = {"errors": {"reset": 2, "timeout": 0}, "unexpected": 0, "interrupted": False,
              "aborted": 0} | changes
    assert run._only_resets(report, most) == is_right
