"""The sandbox, which takes root, new privileges, files and system calls away. It is on in all other
tests as well, except with a sanitizer, whose runtime needs more."""

import ctypes
import os
import pathlib
import pwd
import re
import resource
import shutil
import signal
import subprocess
import tempfile

import pytest

import pictures
from darkroom import CONFIG, IS_SANITIZED, ROOT, eventually, every_key, run
from store_files import directory_of

pytestmark = pytest.mark.also_with("thread-per-connection")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
needs_sandbox = pytest.mark.skipif(
    IS_SANITIZED, reason="the sanitizer's runtime needs more, so the sandbox is off")

SMALL = pictures.photo_jpeg(320, 240, 2)
ESCAPES = ROOT / "build" / "plain" / "tests" / "tools" / "sandbox_escapes"
# The numbers of this system call are the same on all machines but alpha.
LANDLOCK = ctypes.CDLL(None).syscall(444, None, 0, 1)
needs_landlock = pytest.mark.skipif(
    IS_SANITIZED or LANDLOCK < 2, reason="needs a sandbox and a kernel with Landlock, version 2")


def status_of(daemon):
    """Returns /proc/PID/status of every thread, as dictionaries."""
    return [dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines()
                 if ":\t" in line) for task in pathlib.Path(f"/proc/{daemon.pid}/task").iterdir()]


# ---- reports ----

def test_check_reports_the_sandbox():
    line = run("-t", "-c", CONFIG).stderr.splitlines()[-1]
    assert line.startswith("sandbox: ")
    assert ("off" in line) == IS_SANITIZED
    if not IS_SANITIZED:
        assert "no new privileges" in line and "seccomp: only" in line
        assert (f"Landlock, version {LANDLOCK}: only the store" if LANDLOCK >= 2
                else "no Landlock") in line
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
    directory = directory_of(daemon.store, image["id"])
    if directory.is_symlink():
        directory.unlink()
    else:
        shutil.rmtree(directory)
    directory.symlink_to(target)
    return daemon.get(image["variants"]["medium"]["url"])


@pytest.mark.parametrize("sandbox", ["off", "auto"])
def test_links_out_of_the_store_are_not_followed(start, tmp_path, sandbox):
    """Another program may have put a link into the store."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "medium.jpg").write_bytes(b"secret")
    daemon = start(f"server.sandbox={sandbox}")
    image = daemon.image(SMALL)
    assert hand(daemon, image, outside).status == 404
    outside.rename(directory_of(daemon.store, image["id"]).with_name("there"))
    assert hand(daemon, image, "there").status == 404  # within the store, too
    assert daemon.upload(SMALL).status == 201


@pytest.mark.skipif(IS_SANITIZED or resource.getrlimit(resource.RLIMIT_CORE)[1] == 0,
                    reason="the sanitizer or this session leaves no core dumps")
@pytest.mark.parametrize("value", ["no", "yes"])
def test_core_dumps_are_off_by_default(start, value):
    before = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (before[1], before[1]))
    try:
        daemon = start(*(["experiment.core_dumps=yes"] if value == "yes" else []))
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, before)
    limits = pathlib.Path(f"/proc/{daemon.pid}/limits").read_text()
    soft, hard = re.search(r"^Max core file size +(\S+) +(\S+)", limits, re.M).groups()
    assert soft == hard and (soft == "0") == (value == "no"), limits


# ---- files outside of the store ----

def helpers(daemon):
    """Returns the processes that the daemon has started to open files."""
    return [int(pid) for task in pathlib.Path(f"/proc/{daemon.pid}/task").iterdir()
            for pid in (task / "children").read_text().split()
            if pathlib.Path(f"/proc/{pid}/comm").read_text() == "darkroomd-open\n"]


def replace(path, text):
    """Puts a new file at the path, as editors do."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.rename(path)


def test_replaced_configuration_can_be_reloaded(start, tmp_path):
    path = tmp_path / "site.ini"
    path.write_text(every_key())
    daemon = start(config=path)
    for value in (7, 8):
        replace(path, every_key().replace("wait_timeout = 10s", f"wait_timeout = {value}s"))
        daemon.signal(signal.SIGHUP)
        assert daemon.says(f"server.wait_timeout = {value}s"), daemon.log
    path.unlink()
    daemon.signal(signal.SIGHUP)
    assert daemon.says(f"{path}: cannot be read: No such file or directory"), daemon.log


def test_configuration_is_found_through_links_and_from_the_directory_of_the_start(start, tmp_path):
    """The file may be a link to another directory, and its path relative: the test starts
    daemons in /."""
    (tmp_path / "etc").mkdir()
    path = tmp_path / "etc" / "site.ini"
    path.write_text(every_key())
    (tmp_path / "link.ini").symlink_to(path)
    daemon = start(config=str(tmp_path / "link.ini").lstrip("/"))
    replace(path, every_key().replace("wait_timeout = 10s", "wait_timeout = 7s"))
    daemon.signal(signal.SIGHUP)
    assert daemon.says("server.wait_timeout = 7s"), daemon.log


@needs_landlock
def test_process_that_opens_files_has_nothing_else(start):
    """It has neither the store nor a listener nor the log, and ends with the daemon."""
    daemon = start()
    helper, = helpers(daemon)
    links = [os.readlink(fd) for fd in pathlib.Path(f"/proc/{helper}/fd").iterdir()]
    assert len(links) == 1 and links[0].startswith("socket:")
    daemon.signal(signal.SIGHUP)
    assert daemon.says("active: policy"), daemon.log
    daemon.kill()
    assert eventually(lambda: not pathlib.Path(f"/proc/{helper}/fd").exists()
                      or not os.listdir(f"/proc/{helper}/fd"))


@needs_landlock
def test_reload_without_the_process_that_opens_files_is_refused(start):
    daemon = start()
    helper, = helpers(daemon)
    os.kill(helper, signal.SIGKILL)
    daemon.signal(signal.SIGHUP)
    assert daemon.says("configuration: the file is wrong; it stays unchanged"), daemon.log
    assert daemon.upload(SMALL).status == 201


# ---- escapes ----

def escape(mode, attempt, directory):
    """Tries to escape from a part of the sandbox. Returns what happened."""
    done = subprocess.run([ESCAPES, mode, attempt, directory], capture_output=True, text=True,
                          timeout=60)
    if done.returncode == -signal.SIGSYS:
        return "killed"
    assert done.returncode in (0, 1), done.stderr
    # A program that an attempt has started ends with 1 without a word.
    return done.stdout.strip() or "escaped"


ATTEMPTS = (subprocess.run([ESCAPES, "--list"], capture_output=True, text=True).stdout.split()
            if ESCAPES.exists() else [])
# All that Landlock refuses by itself, by the version that brought it.
BY_LANDLOCK = {
    2: ["read_neighbour", "read_configuration", "read_passwd", "read_memory", "list_root",
        "read_secret_from_store", "write_outside", "create_outside", "make_directory_outside",
        "remove_outside", "rename_outside", "rename_inside", "link_outside", "link_inside",
        "make_symlink", "make_fifo", "make_device", "make_socket", "trace", "read_process"],
    3: ["truncate_outside"],
    4: ["connect_tcp", "bind_tcp"],
    6: ["signal_thread", "signal_process", "signal_queue", "send_to_abstract_name",
        "send_message_to_abstract_name"],
}


def test_escapes_are_listed():
    assert len(ATTEMPTS) > 70 and len(set(ATTEMPTS)) == len(ATTEMPTS)
    assert {name for names in BY_LANDLOCK.values() for name in names} <= set(ATTEMPTS)


@needs_landlock
@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_escape_fails(tmp_path, attempt):
    """Without the sandbox each attempt works, unless the kernel or another sandbox around this test
    refuses it."""
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    kills = attempt in ("run_program", "run_program_at")
    refusals = ("killed",) if kills else ("refused: EPERM", "refused: EACCES", "refused: EXDEV",
                                          "refused: ENOSYS")
    assert escape("all", attempt, tmp_path / "in") in refusals
    free = escape("none", attempt, tmp_path / "out")
    if free != "escaped":
        pytest.skip(f"cannot be shown here: it fails without the sandbox ({free})")


@needs_landlock
@pytest.mark.parametrize("attempt", [name for version, names in BY_LANDLOCK.items()
                                     if version <= LANDLOCK for name in names])
def test_escape_from_landlock_fails(tmp_path, attempt):
    """The two parts of the sandbox do not rely on each other."""
    assert escape("files", attempt, tmp_path).startswith("refused: E")


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
    config.write_text(every_key())
    try:
        daemon = start("server.user=nobody", store=root / "store", config=config)
        image = daemon.image(SMALL)
        directory = directory_of(daemon.store, image["id"])
        assert all(p.stat().st_uid == nobody.pw_uid
                   for p in (daemon.store, directory, directory / "medium.jpg"))
        for status in status_of(daemon):
            assert status["Uid"].split() == [str(nobody.pw_uid)] * 4
            assert "0" not in status["Groups"].split()
            assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0
        # The kernel gives /proc/PID of a process without core dumps to root.
        assert os.stat(f"/proc/{daemon.pid}/environ").st_uid == 0
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
