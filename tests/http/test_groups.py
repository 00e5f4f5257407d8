"""Groups of stages with policies and threads of their own, side by side."""

import pathlib
import re

import pytest

import pictures
from control import command
from darkroom import SETTINGS, overrides, run
from uploads import check_files, files_of, sources

pytestmark = pytest.mark.skipif(bool(SETTINGS), reason="groups need the shared layout")
EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "conf/groups.ini"
GROUPS = ("group.decode.stages=jpeg_decode", "group.decode.policy=cohort", "group.decode.threads=1",
          "group.pixels.stages=scale blur", "group.pixels.policy=seda", "stage.blur.threads=1",
          "scheduler.policy=mg1", "scheduler.threads=2")


def stages(daemon):
    return {stage["name"]: stage for stage in daemon.get("/stats").json()["stages"]}


def test_groups_of_different_policies_make_the_same_files(start, daemon):
    inputs = sources()
    grouped = start(*GROUPS, policy="")
    check_files(grouped, inputs, files_of(daemon, inputs), 8)
    # disk_read has work only if a file is not in memory.
    assert all(stage["events"] > 0 for name, stage in stages(grouped).items()
               if name != "disk_read")


def test_groups_are_reported(start):
    """/stats, /metrics, ctl status and --topology name each group, its policy and its threads."""
    daemon = start(*GROUPS, policy="")
    daemon.image(pictures.photo_jpeg(300, 200))
    found = daemon.get("/stats").json()["scheduler"]["stage_groups"]
    assert found == [
        {"name": "main", "policy": "mg1", "threads": 2,
         "stages": ["http_parse", "form_decode", "jpeg_encode", "stats"]},
        {"name": "decode", "policy": "cohort", "threads": 1, "stages": ["jpeg_decode"]},
        {"name": "pixels", "policy": "seda", "threads": 3, "stages": ["scale", "blur"]}]
    said = stages(daemon)
    assert [said[name]["group"] for name in ("accept_read", "scale", "jpeg_encode")] == \
        ["io", "pixels", "main"]
    assert [said[name]["threads"] for name in ("jpeg_decode", "scale", "blur")] == [1, 2, 1]
    metrics = daemon.get("/metrics").body.decode()
    assert 'darkroom_scheduler_info{group="pixels",policy="seda"} 1\n' in metrics
    # Each stage is visited under the policy of its group.
    assert re.search(r'darkroom_stage_visits_total{stage="jpeg_decode",policy="cohort",'
                     r'found="event"} [1-9]', metrics)
    status, answer = command(daemon, "status")
    assert status == 0 and "group.decode.stages = jpeg_decode, group.decode.policy = cohort, " \
        "group.decode.threads = 1, group.pixels.stages = scale blur" in answer
    topology = run("--topology", *overrides(*GROUPS)).stdout
    assert "Group main, policy mg1, workers 2: jpeg_encode\n" in topology
    assert "Group pixels, policy seda, workers 3: scale blur\n" in topology


def test_wrong_groups_are_refused(start):
    daemon = start("group.pixels.stages=scale blur", policy="")
    for setting, expected in (
            ("group.pixels.stages scale nonsense", "nonsense is not a stage"),
            ("group.more.policy mg1", "has no stages"),
            ("scheduler.policy thread-per-connection", "expected another policy"),
            ("group.pixels.threads 256", "more than 256 threads together")):
        status, answer = command(daemon, f"set {setting}")
        assert status != 0 and expected in answer, answer
    daemon.image(pictures.photo_jpeg(300, 200))
    # Stages that the group loses are in the main group.
    assert command(daemon, "set group.pixels.stages blur")[0] == 0
    assert stages(daemon)["scale"]["group"] == "main"
    daemon.image(pictures.photo_jpeg(300, 200))


def test_the_example_is_right():
    done = run("-t", "-c", EXAMPLE)
    assert done.returncode == 0, done.stderr
