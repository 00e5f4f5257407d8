"""The clock of a run, with a real daemon."""

import pathlib
import time
import urllib.request

import run

ROOT = pathlib.Path(__file__).resolve().parents[2]
TICK_S = 0.02  # a file system's times are older by up to a tick of the kernel


def test_a_run_ends_when_the_last_image_is_stored(tmp_path):
    picture = min((ROOT / "data" / "sample").rglob("*.jpg"), key=lambda path: path.stat().st_size)
    with run.Daemon(ROOT / "conf" / "drain.ini", tmp_path) as daemon:
        for _ in range(3):
            time.sleep(2 * TICK_S)  # else an earlier image could pass for this one
            begun = time.monotonic()
            request = urllib.request.Request(daemon.url + "/images", picture.read_bytes(),
                                             {"Content-Type": "image/jpeg"})
            with urllib.request.urlopen(request, timeout=60) as answer:
                assert answer.status == 201
            assert begun - TICK_S <= daemon.wait_until_idle() <= time.monotonic()
