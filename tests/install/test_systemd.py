"""The Debian package on a small system of its own, with systemd as its first process. The steps
follow darkroomd(8). Needs root, debootstrap, systemd-nspawn and Debian's packages; only with
DARKROOM_SYSTEM, a directory that keeps the downloaded system."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SYSTEM = os.environ.get("DARKROOM_SYSTEM")
PACKAGES = "systemd,systemd-sysv,dbus,curl,logrotate,python3-minimal"
UNIT = "/etc/systemd/system/darkroomd.service.d/local.conf"
CONFIG = "/etc/darkroom/darkroomd.ini"
TOKENS = "/etc/darkroom/tokens"
UPLOAD = "curl -sS -o /answer -w '%{http_code}' -F file=@/lake.jpg http://127.0.0.1:8080/images"
MACHINE = "darkroom-test"

pytestmark = pytest.mark.skipif(not SYSTEM, reason="DARKROOM_SYSTEM names no directory")


def run(*words, **options):
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=900,
                          **options)


def succeed(*words):
    done = run(*words)
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


def eventually(question, timeout=60):
    end = time.monotonic() + timeout
    while not (answer := question()) and time.monotonic() < end:
        time.sleep(0.1)
    return answer


class System:
    """A running system. Commands are lines of a shell in it."""

    def __init__(self, tree):
        self.tree = tree
        self.nspawn = subprocess.Popen(
            ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--private-network",
             f"--machine={MACHINE}", f"--directory={tree}", "--boot"], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        assert eventually(lambda: self.is_booted()), "systemd does not start"

    def is_booted(self):
        children = run("pgrep", "-P", str(self.nspawn.pid)).stdout.split()
        if not children:
            return False
        self.init = children[0]
        return self.sh("systemctl is-system-running").stdout.strip() in ("running", "degraded")

    def sh(self, line):
        return run("nsenter", "-t", self.init, "-m", "-u", "-i", "-n", "-p", "--", "sh", "-c", line)

    def succeed(self, line):
        done = self.sh(line)
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}{self.journal()}"
        return done.stdout.strip()

    def journal(self):
        return self.sh("journalctl -o cat -u darkroomd | tail -n 30").stdout

    def write(self, path, text):
        file = self.tree / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def configure(self, text="", unit=""):
        """Replaces what the site adds to the configuration and to the unit."""
        shipped = (ROOT / "conf/darkroomd.ini").read_text()
        for line in text.splitlines():
            key = line.split("=")[0].strip()
            shipped, n = re.subn(rf"^;?{key} =.*$", line, shipped, count=1, flags=re.M)
            assert n == 1, line  # the examples of groups have the same keys behind it
        self.write(CONFIG, shipped)
        self.write(UNIT, f"[Service]\n{unit}")
        self.succeed("systemctl daemon-reload")

    def restart(self):
        self.succeed("systemctl restart darkroomd")

    def upload(self):
        return self.sh(UPLOAD).stdout

    def is_active(self):
        return self.sh("systemctl is-active darkroomd").stdout.strip() == "active"

    def stop(self):
        self.nspawn.send_signal(signal.SIGTERM)
        try:
            self.nspawn.wait(60)
        except subprocess.TimeoutExpired:
            self.nspawn.kill()
            self.nspawn.wait()


@pytest.fixture(scope="module")
def package():
    succeed("make", "-s", "-C", ROOT, "deb")
    return next((ROOT / "build/deb").glob("darkroom_*.deb"))


@pytest.fixture(scope="module")
def system(package, tmp_path_factory):
    base = pathlib.Path(SYSTEM).resolve() / "base"
    if not (base / "etc/os-release").exists():
        base.parent.mkdir(parents=True, exist_ok=True)
        succeed("debootstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", base)
    tree = tmp_path_factory.mktemp("system") / "tree"
    succeed("cp", "-a", "--reflink=auto", base, tree)
    shutil.copy(package, tree / "darkroom.deb")
    shutil.copy(ROOT / "data/sample/lake.jpg", tree / "lake.jpg")
    succeed("chroot", tree, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "install",
            "-y", "--no-install-recommends", "/darkroom.deb")
    running = System(tree)
    yield running
    running.stop()


def test_the_installed_service_runs(system):
    assert eventually(system.is_active)
    assert system.upload() == "201"
    assert "ready on" in system.journal()


def test_reload_applies_a_file(system):
    system.configure("policy = cohort")
    system.succeed("systemctl reload darkroomd")
    assert system.succeed("darkroomd -c /etc/darkroom/darkroomd.ini ctl policy") == "cohort"


def test_reload_refuses_a_wrong_file(system):
    system.configure("policy = fastest")
    assert system.sh("systemctl reload darkroomd").returncode != 0
    status = system.succeed("systemctl -l status darkroomd")
    assert 'darkroomd.ini:' in status and 'scheduler.policy = "fastest": expected' in status
    assert system.upload() == "201"
    system.configure()
    system.succeed("systemctl reload darkroomd")


def make_token(system, name):
    """Returns a token, whose line is added to the file."""
    token, line = system.succeed(f"darkroomd token {name}").splitlines()
    system.succeed(f"echo '{line}' >> {TOKENS}")
    return token


def upload_with(system, token):
    return system.sh(f"{UPLOAD} -H 'Authorization: Bearer {token}'").stdout


def test_tokens_by_credential_can_be_reloaded(system):
    system.succeed(f"rm -f {TOKENS}; umask 077; touch {TOKENS}")
    token = make_token(system, "camera")
    system.configure("tokens_file = /run/credentials/darkroomd.service/tokens",
                     f"LoadCredential=tokens:{TOKENS}")
    system.restart()
    assert system.upload() == "401" and upload_with(system, token) == "201"
    system.succeed("systemctl reload darkroomd")
    assert upload_with(system, token) == "201"


def test_tokens_of_a_group_change_at_once(system):
    system.succeed(f"groupadd --system darkroom-tokens; chgrp darkroom-tokens {TOKENS}; "
                   f"chmod 640 {TOKENS}")
    system.configure(f"tokens_file = {TOKENS}", "SupplementaryGroups=darkroom-tokens")
    system.restart()
    token = make_token(system, "phone")
    assert eventually(lambda: upload_with(system, token) == "201")
    assert system.upload() == "401"


def test_store_moves_to_another_directory(system):
    """MOVING THE STORE in darkroomd(8)."""
    system.configure()
    system.restart()
    assert system.upload() == "201"
    url = "http://127.0.0.1:8080/images/" + re.search(
        r'"id":"([0-9A-Z]{26})"', (system.tree / "answer").read_text())[1]
    system.succeed("systemctl stop darkroomd")
    system.succeed("useradd --system --home-dir /nonexistent --shell /usr/sbin/nologin darkroom")
    system.succeed("mkdir -p /srv/images; cp -a /var/lib/darkroom/. /srv/images; "
                   "chown -R darkroom: /srv/images")
    system.configure("root = /srv/images",
                     "DynamicUser=no\nUser=darkroom\nReadWritePaths=/srv/images\n")
    system.succeed("systemctl start darkroomd")
    system.succeed(f"curl -sSf {url} -o /dev/null")
    assert system.upload() == "201"


def test_a_missing_right_to_write_is_explained(system):
    system.configure("root = /srv/images")
    assert system.sh("systemctl restart darkroomd").returncode != 0
    assert "ReadWritePaths=" in system.journal()
    system.configure()
    assert eventually(system.is_active), system.journal()


def test_busy_port_is_retried_for_ever(system):
    """systemd gives up after five failures in ten seconds by default."""
    system.succeed("systemctl stop darkroomd")
    holder = ("import socket, time; s = socket.create_server(('127.0.0.1', 8080)); "
              "time.sleep(1000)")
    system.succeed(f'systemd-run --unit=holder python3 -c "{holder}"')
    system.sh("systemctl start darkroomd")
    restarts = "systemctl show -p NRestarts --value darkroomd"
    assert eventually(lambda: int(system.succeed(restarts)) > 6), system.journal()
    assert not system.is_active()
    system.succeed("systemctl stop holder")
    assert eventually(system.is_active), system.journal()


def test_killed_daemon_is_restarted(system):
    before = system.succeed("systemctl show -p MainPID --value darkroomd")
    assert before != "0"
    system.succeed(f"kill -9 {before}")
    assert eventually(lambda: system.is_active() and before != system.succeed(
        "systemctl show -p MainPID --value darkroomd"))
    assert system.upload() == "201"


def test_wrong_configuration_is_not_retried(system):
    system.configure("policy = fastest")
    assert system.sh("systemctl restart darkroomd").returncode != 0
    assert system.succeed("systemctl show -p NRestarts --value darkroomd") == "0"
    assert system.sh("systemctl is-failed darkroomd").stdout.strip() == "failed"
    system.configure()
    system.restart()


def test_log_rotation_loses_no_line(system):
    log = "/var/log/darkroom/access.log"
    system.configure(f"access = text\naccess_file = {log}")
    system.restart()
    for _ in range(3):
        assert system.upload() == "201"
        system.succeed("logrotate --force /etc/logrotate.d/darkroom")
        assert eventually(lambda: system.sh(f"test -e {log}").returncode == 0)
    assert system.upload() == "201"
    assert eventually(lambda: system.succeed(
        f"zcat -f {log} {log}.* | grep -c 'method=POST path=/images status=201'") == "4")


def test_socket_is_enabled_as_the_manual_says(system):
    system.configure()
    system.succeed("systemctl stop darkroomd; systemctl enable --now darkroomd.socket; "
                   "systemctl start darkroomd")
    assert system.upload() == "201"
    system.restart()
    assert system.upload() == "201"


def test_removal_leaves_only_the_store(system):
    for step, configured in (("remove", True), ("purge", False)):
        system.succeed(f"DEBIAN_FRONTEND=noninteractive apt-get -q -y {step} darkroom")
        units = system.succeed("systemctl list-units --all --plain --no-legend 'darkroomd*'")
        assert "listening" not in units and "running" not in units, units
        assert system.sh("curl -sS http://127.0.0.1:8080/healthz").returncode == 7
        assert system.sh(f"test -e {CONFIG}").returncode == (0 if configured else 1)
        assert system.sh("ls /var/lib/private/darkroom/*/??/*/image.json").returncode == 0
