"""Policy seda with dynamic = yes: thread pools grow under load and shrink afterwards, as /stats and
the log report."""

import os
import re
import threading

import pytest

import pictures
from client import form
from darkroom import SETTINGS, eventually, overrides, run, slow

SEDA = ("scheduler.policy=seda", "experiment.dynamic=yes", "log.level=debug")
# Set by the environment; each replica has a pool.
REPLICAS = 2 if "layout.mode=replicate" in SETTINGS else 1
FORMS = 8 * REPLICAS
IMAGES = 30  # of a form


def stages(daemon):
    return {stage["name"]: stage for stage in daemon.get("/stats").json()["stages"]}


def threads(daemon, stage):
    return stages(daemon)[stage]["threads"]


def switches(daemon):
    """Returns how often the main thread, which runs the controllers, has gone to sleep."""
    with open(f"/proc/{daemon.pid}/task/{daemon.pid}/status", encoding="ascii") as status:
        return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status.read(), re.M)[1])


def sleeps_without_end(daemon):
    """Returns whether the main thread is in a poll(2) without a timeout. On arm64 that is a
    ppoll(2)."""
    try:
        with open(f"/proc/{daemon.pid}/task/{daemon.pid}/syscall", encoding="ascii") as file:
            number, *arguments = file.read().split()
    except PermissionError:
        pytest.skip("needs the right to read /proc/PID/syscall")
    call = {"x86_64": ("7", "0xffffffff"), "aarch64": ("73", "0x0")}.get(os.uname().machine)
    return (number, arguments[2]) == call


class Uploads:
    """Uploads forms of many images on several connections until the block ends."""

    def __init__(self, daemon, body, content_type):
        self.daemon, self.body, self.content_type = daemon, body, content_type
        self.over, self.failures = threading.Event(), []
        self.threads = [threading.Thread(target=self.run) for _ in range(FORMS)]

    def run(self):
        with self.daemon.client(timeout=slow(120)) as c:
            while not self.over.is_set():
                answer = c.request("POST", "/images", self.body,
                                   [("Content-Type", self.content_type)])
                if answer.status != 201 or len(answer.json()["images"]) != IMAGES:
                    self.failures.append(answer)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()
        assert not self.failures, self.failures[:3]


def test_pools_grow_and_shrink(start):
    """One thread decodes, and images arrive without end. One thread a second is added. Added
    threads end five seconds after the last image, or earlier if another program uses the cores."""
    # However slow the machine is, more than 100 images wait.
    daemon = start(*SEDA, "stage.jpeg_decode.threads=1", "experiment.jpeg_decode.threads_max=3",
                   "overload.controller=off")
    data = pictures.photo_jpeg(1000, 750, 1)
    content_type, body = form([("f", f"{i}.jpg", "image/jpeg", data) for i in range(IMAGES)])
    assert threads(daemon, "jpeg_decode") == REPLICAS
    assert stages(daemon)["jpeg_encode"]["batch"] == 16
    with Uploads(daemon, body, content_type):
        assert eventually(lambda: threads(daemon, "jpeg_decode") > REPLICAS, 60, step=0.1)
        assert threads(daemon, "jpeg_decode") <= 3 * REPLICAS
    assert eventually(lambda: threads(daemon, "jpeg_decode") == REPLICAS, 15, step=0.2)

    def logged():
        return re.findall(r"stage jpeg_decode(?:, replica \d)?: a pool of (\d) threads instead of "
                          r"(\d) \(\d+ events wait", daemon.log)

    # It is logged after the change.
    assert eventually(lambda: logged() and logged()[-1][0] == "1"), logged()
    changes = logged()
    assert changes[0] == ("2", "1"), changes
    assert all(int(to) - int(before) <= 1 for to, before in changes), changes
    assert daemon.says(re.compile(r"stage \w+: batches of 13 events instead of 16 ").search)


def test_pools_do_not_change_without_load(start):
    """With one image at a time the pools keep their size."""
    daemon = start(*SEDA)
    before = {name: stage["threads"] for name, stage in stages(daemon).items()}
    for seed in range(3):
        daemon.image(pictures.photo_jpeg(640, 480, seed))
        count = switches(daemon)
        assert eventually(lambda: switches(daemon) > count), "the controllers run once a second"
    assert {name: stage["threads"] for name, stage in stages(daemon).items()} == before
    assert before["jpeg_decode"] == 2 * REPLICAS and "a pool of" not in daemon.log_until_now()


def test_controllers_sleep_under_other_policies(start):
    """The main thread sleeps without a timeout."""
    daemon = start("scheduler.policy=cohort", "experiment.dynamic=yes")
    assert daemon.get("/stats").json()["scheduler"]["dynamic"] is False

    assert eventually(lambda: sleeps_without_end(daemon))
    daemon = start(*SEDA)
    daemon.image(pictures.photo_jpeg(640, 480, 1))
    assert not sleeps_without_end(daemon), "this test could not fail"


def test_pool_that_starts_above_its_maximum_is_refused():
    done = run("-t", *overrides(*SEDA, "stage.blur.threads=21"))
    assert done.returncode == os.EX_CONFIG
    assert "stage.blur.threads = 21 is more than its experiment.blur.threads_max = 20" in done.stderr
    done = run("-t", *overrides(*SEDA, "stage.blur.threads=21", "experiment.blur.threads_max=21"))
    assert done.returncode == 0
