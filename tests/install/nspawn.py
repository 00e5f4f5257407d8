"""A small Debian system with a systemd of its own, in systemd-nspawn. Needs root, debootstrap and
Debian's packages. DARKROOM_SYSTEM is a directory that keeps the downloaded system."""

import json
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
PACKAGES = ("systemd,systemd-sysv,dbus,curl,logrotate,python3-minimal,"
            "libaom3,libdav1d6,libpng16-16,libwebp7")
UNIT = "/etc/systemd/system/darkroomd.service.d/local.conf"
CONFIG = "/etc/darkroom/darkroomd.ini"
URL = "http://127.0.0.1:8080"
UPLOAD = f"curl -sS -o /answer -w '%{{http_code}}' -F file=@/lake.jpg {URL}/images"

needs_system = pytest.mark.skipif(not SYSTEM, reason="DARKROOM_SYSTEM names no directory")


def run(*words, **options):
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=900,
                          **options)


def succeed(*words, **options):
    done = run(*words, **options)
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
             f"--machine=darkroom-{os.getpid()}", f"--directory={tree}", "--boot"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        assert eventually(self.is_booted), "systemd does not start"

    def is_booted(self):
        children = run("pgrep", "-P", str(self.nspawn.pid)).stdout.split()
        if not children:
            return False
        self.enter = ["nsenter", "-t", children[0], "-m", "-u", "-i", "-n", "-p", "--", "sh", "-c"]
        return self.sh("systemctl is-system-running").stdout.strip() in ("running", "degraded")

    def sh(self, line):
        return run(*self.enter, line)

    def begin(self, line):
        """Starts a command beside others."""
        return subprocess.Popen([*self.enter, line], text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

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

    def read(self, path):
        return (self.tree / path.lstrip("/")).read_text()

    def set_keys(self, text):
        """Changes keys of the configuration, as an editor would."""
        config = self.read(CONFIG)
        for line in text.splitlines():
            key = line.split("=")[0].strip()
            config, n = re.subn(rf"^;?{key} =.*$", line, config, count=1, flags=re.M)
            if n == 0:
                before = self.succeed("darkroomd --keys").split(f"\n{key} =")[0]
                head = re.findall(r"^\[.*\]$", before, re.M)[-1]
                if f"\n{head}\n" not in config:
                    config += f"\n{head}\n"
                config = config.replace(f"\n{head}\n", f"\n{head}\n{line}\n")
        self.write(CONFIG, config)

    def configure(self, text="", unit=""):
        """Replaces what the site adds to the configuration and to the unit."""
        self.write(CONFIG, (ROOT / "conf/darkroomd.ini").read_text())
        self.set_keys(text)
        self.write(UNIT, f"[Service]\n{unit}")
        self.succeed("systemctl daemon-reload")

    def restart(self):
        self.succeed("systemctl restart darkroomd")

    def install(self, package, options=""):
        """Installs a package, or replaces it by another version."""
        shutil.copy(package, self.tree / "darkroom.deb")
        return self.succeed("DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends "
                            f"{options} install /darkroom.deb </dev/null")

    def upload(self):
        """Returns the status. The answer is in /answer."""
        return self.sh(UPLOAD).stdout

    def upload_id(self):
        assert self.upload() == "201", self.read("/answer") + self.journal()
        return json.loads(self.read("/answer"))["images"][0]["id"]

    def status(self, path):
        return self.sh(f"curl -sS -o /dev/null -w '%{{http_code}}' {URL}{path}").stdout

    def is_active(self):
        return self.sh("systemctl is-active darkroomd").stdout.strip() == "active"

    def stop(self):
        self.nspawn.send_signal(signal.SIGTERM)
        try:
            self.nspawn.wait(60)
        except subprocess.TimeoutExpired:
            self.nspawn.kill()
            self.nspawn.wait()


def clean_tree(place):
    """Returns a copy of the system as Debian installs it."""
    base = pathlib.Path(SYSTEM).resolve() / "base"
    made = base.parent / "packages"
    if not made.exists() or made.read_text() != PACKAGES:
        shutil.rmtree(base, ignore_errors=True)
        base.parent.mkdir(parents=True, exist_ok=True)
        succeed("debootstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", base)
        made.write_text(PACKAGES)
    tree = place / "tree"
    succeed("cp", "-a", "--reflink=auto", base, tree)
    shutil.copy(ROOT / "data/sample/lake.jpg", tree / "lake.jpg")
    return tree


def install_in(tree, package):
    """Installs the package before the system runs: what runs has no network."""
    shutil.copy(package, tree / "darkroom.deb")
    succeed("chroot", tree, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "install",
            "-y", "--no-install-recommends", "/darkroom.deb")
