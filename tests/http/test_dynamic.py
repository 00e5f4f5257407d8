"""Policy seda with dynamic = yes: pools of threads grow under load and shrink after it, and nobody notices but /stats and
the log."""

import os
import re
import time


import pictures
from client import form
from darkroom import IS_SANITIZED, SETTINGS, eventually, overrides, run, slow
from uploads import in_parallel

SEDA = ("scheduler.policy=seda", "scheduler.dynamic=yes", "log.level=debug")
REPLICAS = 2 if "layout.mode=replicate" in SETTINGS else 1  # that the environment asks for: each has a pool
FORMS = 4 * REPLICAS
IMAGES = 60  # of a form; a form may have 64 parts


def stages(daemon):
    return {stage["name"]: stage for stage in daemon.get("/stats").json()["stages"]}


def threads(daemon, stage):
    return stages(daemon)[stage]["threads"]


def watch(daemon, stage, is_over, timeout):
    """The pool's sizes until it is over, without repetitions."""
    sizes, end = [], time.monotonic() + slow(timeout)
    while not is_over() and time.monotonic() < end:
        size = threads(daemon, stage)
        if sizes[-1:] != [size]:
            sizes.append(size)
        time.sleep(0.1)
    return sizes


def test_pools_grow_and_shrink(start):
    """One thread decodes hundreds of images: more come, one a second. Those go five seconds after the last image, or
    earlier, by a step back, if another program takes the cores away."""
    daemon = start(*SEDA, "stage.jpeg_decode.threads=1", "stage.jpeg_decode.threads_max=3")
    data = pictures.photo_jpeg(*((1000, 750) if IS_SANITIZED else (2000, 1500)), 1)
    content_type, body = form([("f", f"{i}.jpg", "image/jpeg", data) for i in range(IMAGES)])
    assert threads(daemon, "jpeg_decode") == REPLICAS and stages(daemon)["jpeg_decode"]["batch"] == 1000
    answered = []

    def upload(i):
        with daemon.client(timeout=slow(120)) as c:
            answer = c.request("POST", "/images", body, [("Content-Type", content_type)])
            assert answer.status == 201 and len(answer.json()["images"]) == IMAGES, answer
            answered.append(i)

    def work(i):
        return watch(daemon, "jpeg_decode", lambda: len(answered) == FORMS, 120) if i == FORMS else upload(i)

    sizes = in_parallel(FORMS + 1, work)[FORMS]
    assert REPLICAS < max(sizes) <= 3 * REPLICAS, sizes
    assert eventually(lambda: threads(daemon, "jpeg_decode") == REPLICAS, 15, step=0.2)

    def logged():
        return re.findall(r"stage jpeg_decode(?:, replica \d)?: a pool of (\d) threads instead of (\d) \(\d+ events wait", daemon.log)

    assert eventually(lambda: logged() and logged()[-1][0] == "1"), logged()  # it is logged after it is done
    changes = logged()
    assert changes[0] == ("2", "1"), changes
    assert all(int(to) - int(before) <= 1 for to, before in changes), changes
    assert daemon.says(re.compile(r"stage \w+: batches of 833 events instead of 1000 ").search)


def test_no_pool_is_touched_without_need(start):
    """An image at a time: pools stay, and so do those of the same policy without controllers, however long the queue."""
    daemon = start(*SEDA)
    before = {name: stage["threads"] for name, stage in stages(daemon).items()}
    for seed in range(3):
        daemon.image(pictures.photo_jpeg(640, 480, seed))
        time.sleep(1)
    assert {name: stage["threads"] for name, stage in stages(daemon).items()} == before
    assert before["jpeg_decode"] == 2 * REPLICAS and "a pool of" not in daemon.log_until_now()


def test_the_controllers_sleep_under_other_policies(start):
    """Not even a wake-up a second."""
    daemon = start("scheduler.policy=cohort", "scheduler.dynamic=yes")
    assert daemon.get("/stats").json()["scheduler"]["dynamic"] is False

    def switches():
        with open(f"/proc/{daemon.pid}/task/{daemon.pid}/status", encoding="ascii") as status:
            return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status.read(), re.M)[1])

    def sleeps_through(seconds):
        before = switches()
        time.sleep(seconds)
        return switches() == before

    assert eventually(lambda: sleeps_through(0.2))  # the start is over
    assert sleeps_through(2.5)


def test_a_pool_that_begins_above_its_maximum_is_refused():
    done = run("-t", *overrides(*SEDA, "stage.blur.threads=21"))
    assert done.returncode == os.EX_CONFIG
    assert "stage.blur.threads = 21 is more than its threads_max = 20" in done.stderr
    assert run("-t", *overrides(*SEDA, "stage.blur.threads=21", "stage.blur.threads_max=21")).returncode == 0
