"""The configurations of conf/experiments: other architectures of servers, on the same stages."""

import pytest

from darkroom import ROOT, SETTINGS
from uploads import check_files, files_of, sources

FOLDER = ROOT / "conf" / "experiments"
IMAGE_STAGES = {"jpeg_decode", "scale", "blur", "jpeg_encode"}

pytestmark = pytest.mark.skipif(bool(SETTINGS), reason="one of them needs the shared layout")


def serve(start, daemon, name, *options):
    """Uploads under a configuration. Its files must be those of the shipped one, which has the same
    variants. Returns the statistics and the names of the stages that were visited."""
    inputs = sources()
    other = start(*options, config=FOLDER / f"{name}.ini", policy="")
    check_files(other, inputs, files_of(daemon, inputs), 4)
    stats = other.get("/stats").json()
    assert all(stage["events"] for stage in stats["stages"] if stage["name"] in IMAGE_STAGES)
    return stats, {stage["name"] for stage in stats["stages"] if stage["visits"]}


def threads(stats):
    return {group["name"]: len(group["workers"]) for group in stats["scheduler"]["groups"]}


def test_every_configuration_has_a_test():
    assert {path.stem for path in FOLDER.glob("*.ini")} == \
        {"amped", "event-loop", "one-pool", "staged-db", "user-threads"}


def test_an_event_loop_calls_all_stages(start, daemon):
    stats, visited = serve(start, daemon, "event-loop")
    assert threads(stats)["io"] == 2 and not visited & {*IMAGE_STAGES, "disk_write"}


def test_amped_has_threads_for_the_disk_alone(start, daemon):
    stats, visited = serve(start, daemon, "amped")
    assert threads(stats)["io"] == 2 and not visited & IMAGE_STAGES and "disk_write" in visited


def test_one_pool_visits_all_stages(start, daemon):
    stats, visited = serve(start, daemon, "one-pool")
    assert threads(stats)["main"] == 16 and visited >= {*IMAGE_STAGES, "http_parse", "form_decode"}


def test_cores_visit_stages(start, daemon):
    """A decode is parked at its cutoff, which is short here, and goes on at a later visit."""
    stats, visited = serve(start, daemon, "staged-db", "experiment.cutoff=100us")
    events = {stage["name"]: stage["events"] for stage in stats["stages"]}
    assert stats["scheduler"]["policy"] == "cohort" and visited >= IMAGE_STAGES
    assert events["jpeg_decode"] > events["disk_write"]


def test_user_threads_enter_all_stages(start, daemon):
    stats, visited = serve(start, daemon, "user-threads")
    assert stats["scheduler"]["policy"] == "user-threads" and visited >= IMAGE_STAGES
