"""What the daemon gives up: root, new privileges, files, system calls. That it still works with all of it is what every other test
here shows, for it is on unless a sanitizer's runtime needs more."""

import os
import pathlib
import pwd
import re
import shutil
import signal
import tempfile

import pytest

import pictures
from darkroom import CONFIG, IS_SANITIZED, POLICY, eventually, run

pytestmark = pytest.mark.skipif(POLICY not in ("", "drain", "thread-per-connection"), reason="the policy does not matter")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs to be root to become somebody else")
needs_sandbox = pytest.mark.skipif(IS_SANITIZED, reason="the sandbox is off: the sanitizer's runtime needs more")

SMALL = pictures.photo_jpeg(320, 240, 2)


def status_of(daemon):
    """/proc/PID/status of every thread, as dictionaries."""
    return [dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines() if ":\t" in line)
            for task in pathlib.Path(f"/proc/{daemon.pid}/task").iterdir()]


# ---- saying so ----

def test_check_says_what_is_active():
    line = run("-t", "-c", CONFIG).stderr.splitlines()[-1]
    assert line.startswith("sandbox: ")
    assert ("off" in line) == IS_SANITIZED
    if not IS_SANITIZED:
        assert "no new privileges" in line and "Landlock" in line and "seccomp" in line
    assert run("-t", "-c", CONFIG, "-o", "server.sandbox=off").stderr.splitlines()[-1] == (
        "sandbox: off (this build has a sanitizer)" if IS_SANITIZED else "sandbox: off (server.sandbox = off)")


def test_log_says_what_is_active(start):
    assert re.search(r"^<5>sandbox: (off|no new privileges)", start().log, re.M)
    assert "sandbox: off" in start("server.sandbox=off").log


# ---- what is active ----

@needs_sandbox
def test_every_thread_is_inside(start):
    daemon = start()
    assert daemon.upload(SMALL).status == 201
    threads = status_of(daemon)
    assert len(threads) > 2
    for status in threads:
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")


def test_off_is_off(start):
    daemon = start("server.sandbox=off")
    assert daemon.upload(SMALL).status == 201
    assert all((s["NoNewPrivs"], s["Seccomp"]) == ("0", "0") for s in status_of(daemon))


def hand(daemon, image, target):
    """The answer to a request for a variant whose directory leads somewhere else."""
    directory = daemon.store / image["id"][-2:] / image["id"]
    shutil.rmtree(directory)
    directory.symlink_to(target)
    return daemon.get(image["variants"]["medium"]["url"])


def test_nothing_outside_of_the_store_is_read(start, tmp_path):
    """Even if somebody has planted a link in it."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "medium.jpg").write_bytes(b"secret")
    daemon = start("server.sandbox=off")
    assert hand(daemon, daemon.image(SMALL), outside).status == 200, "the trick does not work"
    daemon = start()
    answer = hand(daemon, daemon.image(SMALL), outside)
    if "Landlock, version" in daemon.log:
        assert answer.status != 200 and b"secret" not in answer.body
    assert daemon.upload(SMALL).status == 201


def test_configuration_is_read_again_after_an_editor_replaced_it(start, tmp_path):
    directory = tmp_path / "conf"
    directory.mkdir()
    path = directory / "site.ini"
    path.write_text(CONFIG.read_text())
    daemon = start(config=path)
    (directory / "new").write_text(CONFIG.read_text().replace("cutoff = 5ms", "cutoff = 7ms"))
    (directory / "new").rename(path)
    daemon.signal(signal.SIGHUP)
    assert daemon.says("scheduler.cutoff = 7ms"), daemon.log


# ---- never root ----

@needs_root
def test_root_must_be_told(tmp_path):
    done = run("-c", CONFIG, "-o", f"server.root={tmp_path}/store", "-o", "server.listen=127.0.0.1:0")
    assert done.returncode == 78 and "server.user" in done.stderr
    assert not (tmp_path / "store").exists()


@needs_root
def test_another_user(start):
    """Files, threads and groups are that user's, and there is no way back."""
    nobody = pwd.getpwnam("nobody")
    root = pathlib.Path(tempfile.mkdtemp(prefix="darkroom-", dir="/tmp"))  # pytest's own directories are closed to others
    os.chown(root, nobody.pw_uid, nobody.pw_gid)
    config = root / "site.ini"
    config.write_text(CONFIG.read_text())
    try:
        daemon = start("server.user=nobody", store=root / "store", config=config)
        image = daemon.image(SMALL)
        directory = daemon.store / image["id"][-2:] / image["id"]
        assert all(p.stat().st_uid == nobody.pw_uid for p in (daemon.store, directory, directory / "medium.jpg"))
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
def test_user_that_there_is_not(tmp_path, user):
    done = run("-c", CONFIG, "-o", f"server.root={tmp_path}/store", "-o", "server.listen=127.0.0.1:0", "-o", f"server.user={user}")
    assert done.returncode == 78 and user in done.stderr
