"""The sandbox, which takes root, new privileges, files and system calls away. It is on in all other
tests as well, except with a sanitizer, whose runtime needs more."""

import ctypes
import os
import pathlib
import pwd
import re
import shutil
import signal
import tempfile

import pytest

import pictures
from darkroom import CONFIG, IS_SANITIZED, run

pytestmark = pytest.mark.also_with("thread-per-connection")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
needs_sandbox = pytest.mark.skipif(
    IS_SANITIZED, reason="the sanitizer's runtime needs more, so the sandbox is off")

SMALL = pictures.photo_jpeg(320, 240, 2)


def status_of(daemon):
    """Returns /proc/PID/status of every thread, as dictionaries."""
    return [dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines()
                 if ":\t" in line) for task in pathlib.Path(f"/proc/{daemon.pid}/task").iterdir()]


def landlock_version():
    """Returns what the kernel itself offers; 0 if it has no Landlock."""
    return max(0, ctypes.CDLL(None).syscall(444, None, 0, 1))  # landlock_create_ruleset


# ---- reports ----

def test_check_reports_the_sandbox():
    line = run("-t", "-c", CONFIG).stderr.splitlines()[-1]
    assert line.startswith("sandbox: ")
    assert ("off" in line) == IS_SANITIZED
    if not IS_SANITIZED:
        assert "no new privileges" in line and "seccomp" in line
        assert ("Landlock, version" in line) == (landlock_version() > 0)
    assert run("-t", "-c", CONFIG, "-o", "server.sandbox=off").stderr.splitlines()[-1] == (
        "sandbox: off (this build has a sanitizer)" if IS_SANITIZED
        else "sandbox: off (server.sandbox = off)")


def test_log_reports_the_sandbox(start):
    assert re.search(r"^<5>sandbox: (off|no new privileges)", start().log, re.M)
    assert "sandbox: off" in start("server.sandbox=off").log


# ---- effects ----

@needs_sandbox
def test_every_thread_is_in_the_sandbox(start):
    daemon = start()
    assert daemon.upload(SMALL).status == 201
    threads = status_of(daemon)
    assert len(threads) > 2
    for status in threads:
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")


def test_sandbox_can_be_switched_off(start):
    daemon = start("server.sandbox=off")
    assert daemon.upload(SMALL).status == 201
    assert all((s["NoNewPrivs"], s["Seccomp"]) == ("0", "0") for s in status_of(daemon))


def hand(daemon, image, target):
    """Replaces the directory of an image by a link. Returns the answer to a GET of a variant."""
    directory = daemon.store / image["id"][-2:] / image["id"]
    shutil.rmtree(directory)
    directory.symlink_to(target)
    return daemon.get(image["variants"]["medium"]["url"])


def test_links_out_of_the_store_are_not_followed(start, tmp_path):
    """Another program may have put a link into the store."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "medium.jpg").write_bytes(b"secret")
    daemon = start("server.sandbox=off")
    assert hand(daemon, daemon.image(SMALL), outside).status == 200, "the link does not work"
    daemon = start()
    answer = hand(daemon, daemon.image(SMALL), outside)
    if landlock_version() > 0:
        assert answer.status != 200 and b"secret" not in answer.body
    assert daemon.upload(SMALL).status == 201


def test_replaced_configuration_can_be_reloaded(start, tmp_path):
    directory = tmp_path / "conf"
    directory.mkdir()
    path = directory / "site.ini"
    path.write_text(CONFIG.read_text())
    daemon = start(config=path)
    (directory / "new").write_text(CONFIG.read_text().replace("cutoff = 5ms", "cutoff = 7ms"))
    (directory / "new").rename(path)
    daemon.signal(signal.SIGHUP)
    assert daemon.says("scheduler.cutoff = 7ms"), daemon.log


# ---- users ----

@needs_root
def test_running_as_root_must_be_configured(tmp_path):
    done = run("-c", CONFIG, "-o", f"server.root={tmp_path}/store", "-o",
               "server.listen=127.0.0.1:0")
    assert done.returncode == 78 and "server.user" in done.stderr
    assert not (tmp_path / "store").exists()


@needs_root
def test_another_user_owns_everything(start):
    """Files, threads and groups belong to this user, without a way back."""
    nobody = pwd.getpwnam("nobody")
    # Other users cannot enter pytest's own directories.
    root = pathlib.Path(tempfile.mkdtemp(prefix="darkroom-", dir="/tmp"))
    os.chown(root, nobody.pw_uid, nobody.pw_gid)
    config = root / "site.ini"
    config.write_text(CONFIG.read_text())
    try:
        daemon = start("server.user=nobody", store=root / "store", config=config)
        image = daemon.image(SMALL)
        directory = daemon.store / image["id"][-2:] / image["id"]
        assert all(p.stat().st_uid == nobody.pw_uid
                   for p in (daemon.store, directory, directory / "medium.jpg"))
        for status in status_of(daemon):
            assert status["Uid"].split() == [str(nobody.pw_uid)] * 4
            assert "0" not in status["Groups"].split()
            assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0
        daemon.signal(signal.SIGHUP)
        assert daemon.says("active: policy"), daemon.log
        daemon.stop()
    finally:
        shutil.rmtree(root)


@needs_root
@pytest.mark.parametrize("user", ["nobody-knows-me", "-x", "a b", "x" * 40])
def test_unknown_user_is_reported(tmp_path, user):
    done = run("-c", CONFIG, "-o", f"server.root={tmp_path}/store", "-o",
               "server.listen=127.0.0.1:0", "-o", f"server.user={user}")
    assert done.returncode == 78 and user in done.stderr
