"""At low load, image work stays on few cores, so that the others sleep deeply (Gordon 2010, 7.1)."""

import pytest

from uploads import TINY

UPLOADS = 40


def image_threads(daemon):
    """Returns the group of the cores' threads."""
    groups = daemon.get("/stats").json()["scheduler"]["groups"]
    return next(group for group in groups if group["name"] == "main")


def decoded(group):
    return [worker["stages"].get("jpeg_decode", {"events": 0})["events"]
            for worker in group["workers"]]


@pytest.mark.also_with("cohort", "mg1", "color")
def test_small_uploads_one_by_one_use_one_core(start):
    """The first sleeping core is woken, so the others sleep on."""
    daemon = start("scheduler.threads=2")
    before = image_threads(daemon)
    for _ in range(UPLOADS):
        assert daemon.upload(TINY).status == 201
    after = image_threads(daemon)
    first, *others = (new - old for old, new in zip(decoded(before), decoded(after)))
    assert first + sum(others) == UPLOADS
    assert first > UPLOADS / 2, (first, others)  # a core that is late is passed over
    assert after["sleeps"] - before["sleeps"] < 3 * UPLOADS
