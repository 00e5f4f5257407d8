"""At low load, image work stays on few cores, so that the others sleep deeply (Gordon 2010, 7.1)."""

import pathlib

import pytest

from darkroom import eventually
from uploads import TINY

UPLOADS = 40


def image_threads(daemon):
    """Returns the group of the cores' threads."""
    groups = daemon.get("/stats").json()["scheduler"]["groups"]
    return next(group for group in groups if group["name"] == "main")


def decoded(group):
    return [worker["stages"].get("jpeg_decode", {"events": 0})["events"]
            for worker in group["workers"]]


def is_asleep(daemon):
    """Returns whether no thread of the daemon runs or is ready to run."""
    tasks = pathlib.Path(f"/proc/{daemon.pid}/task").iterdir()
    return all((task / "stat").read_text().rpartition(")")[2].split()[0] == "S" for task in tasks)


def upload_one_by_one(daemon):
    """Returns the decoded images of each thread, and how often all threads slept per upload."""
    before = image_threads(daemon)
    for _ in range(UPLOADS):
        assert eventually(lambda: is_asleep(daemon))  # so none is late, however slow the machine is
        assert daemon.upload(TINY).status == 201
    after = image_threads(daemon)
    counts = [new - old for old, new in zip(decoded(before), decoded(after))]
    assert sum(counts) == UPLOADS
    return counts, (after["sleeps"] - before["sleeps"]) / UPLOADS


@pytest.mark.also_with("cohort", "mg1", "color")
def test_small_uploads_one_by_one_use_one_core(start):
    """The first sleeping core is woken, so the others sleep on."""
    (first, *others), sleeps = upload_one_by_one(start("scheduler.threads=2"))
    assert first > 0.9 * UPLOADS, (first, others)
    assert sleeps < 3


def test_more_threads_sleep_on(start):
    """They are woken for work that the first does not do next. Woken for each event, eight threads
    sleep seven times per upload."""
    _, sleeps = upload_one_by_one(start("scheduler.threads=8"))
    assert sleeps < 6
