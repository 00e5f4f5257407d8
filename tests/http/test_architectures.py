"""The configurations of conf/experiments: other architectures of servers, on the same stages."""

import contextlib
import pathlib

import pytest

from control import ctl
from darkroom import ROOT, SETTINGS, eventually
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
        {"amped", "event-loop", "new-threads", "one-pool", "staged-db", "user-threads"}


def test_an_event_loop_calls_all_stages(start, daemon):
    stats, visited = serve(start, daemon, "event-loop")
    assert threads(stats)["io"] == 2 and not visited & {*IMAGE_STAGES, "disk_write"}


def test_amped_has_threads_for_the_disk_alone(start, daemon):
    stats, visited = serve(start, daemon, "amped")
    assert threads(stats)["io"] == 2 and not visited & IMAGE_STAGES and "disk_write" in visited


def test_one_pool_visits_all_stages(start, daemon):
    stats, visited = serve(start, daemon, "one-pool")
    assert threads(stats)["main"] == 16 and visited >= {*IMAGE_STAGES, "http_parse", "form_decode"}


def io_threads(daemon):
    """Returns the threads that serve connections, by the time of their start."""
    found = {}
    for task in pathlib.Path(f"/proc/{daemon.pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            stat = (task / "stat").read_text()
            if "(io/" in stat:
                found[task.name] = stat.rsplit(")", 1)[1].split()[19]
    return found


def test_new_threads_serve_uploads(start, daemon):
    stats, visited = serve(start, daemon, "new-threads", "scheduler.threads=8")
    assert threads(stats)["io"] == 8 and not visited & IMAGE_STAGES


def test_each_connection_has_a_new_thread(start):
    """The thread of a connection ends with it, and another one waits for the next. A connection keeps
    its thread."""
    other = start("scheduler.threads=1", config=FOLDER / "new-threads.ini", policy="")
    before = [io_threads(other)]
    for _ in range(5):
        with other.client() as c:
            assert c.request("GET", "/healthz").status == 200
            assert io_threads(other) == before[-1]
            assert c.request("GET", "/healthz").status == 200
        assert eventually(lambda: len(now := io_threads(other)) == 1 and now != before[-1])
        before.append(io_threads(other))
    assert len({str(each) for each in before}) == 6


def test_a_switch_keeps_the_thread(start):
    """Without the key, and under another policy, no thread ends."""
    other = start("scheduler.threads=1", config=FOLDER / "new-threads.ini", policy="")
    assert ctl(other, "set", "experiment.new_threads", "no").returncode == 0
    before = io_threads(other)
    for _ in range(3):
        assert other.get("/healthz").status == 200
    assert io_threads(other) == before
    for policy in ("drain", "thread-per-connection"):
        assert ctl(other, "policy", policy).returncode == 0
        assert other.get("/healthz").status == 200
    assert ctl(other, "set", "experiment.new_threads", "yes").returncode == 0
    for _ in range(3):
        assert other.get("/healthz").status == 200
    assert eventually(lambda: not before.items() & io_threads(other).items())


def test_cores_visit_stages(start, daemon):
    """A decode is parked at its cutoff, which is short here, and goes on at a later visit."""
    stats, visited = serve(start, daemon, "staged-db", "experiment.cutoff=100us")
    events = {stage["name"]: stage["events"] for stage in stats["stages"]}
    assert stats["scheduler"]["policy"] == "cohort" and visited >= IMAGE_STAGES
    assert events["jpeg_decode"] > events["disk_write"]


def test_user_threads_enter_all_stages(start, daemon):
    stats, visited = serve(start, daemon, "user-threads")
    assert stats["scheduler"]["policy"] == "user-threads" and visited >= IMAGE_STAGES
