"""A machine for the commands of the manual: with files of its own in /etc, /var/lib, /srv and /tmp,
and a network of its own, so that they run as printed beside everything else. Needs the right to
make namespaces."""

import os
import pathlib
import shlex
import signal
import subprocess
import threading

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIG = "/etc/darkroom/darkroomd.ini"
STORE = "/var/lib/darkroom"
TREE, HOME = "/mnt/tree", "/mnt/home"
PROGRAMS = ("darkroomd", "darkroom-decode", "darkroom-load", "darkroom-dataset")
LOOPBACK = ("import fcntl, socket, struct; fcntl.ioctl(socket.socket(), 0x8914, "
            "struct.pack('16sh14x', b'lo', 0x41))")  # SIOCSIFFLAGS: up and running
SETUP = f"""set -e
mkdir -p {shlex.quote(str(ROOT))}/build/store
mount -t tmpfs -o mode=755 tmpfs /mnt
mkdir -m 755 {TREE} /mnt/bin /mnt/etc
mkdir -m 777 {HOME}
mount --bind {shlex.quote(str(ROOT))} {TREE}
mount -t tmpfs tmpfs {TREE}/build/store
cp {" ".join(f"{TREE}/build/{name}" for name in PROGRAMS)} /mnt/bin
cp -a /etc/. /mnt/etc
rm -rf /mnt/etc/darkroom
mkdir -m 755 /mnt/etc/darkroom
mount --bind /mnt/etc /etc
mkdir -p /var/lib/dpkg /mnt/dpkg
mount --bind /var/lib/dpkg /mnt/dpkg
mount -o remount,bind,ro /mnt/dpkg
mount -t tmpfs -o mode=755 tmpfs /var/lib
mkdir /var/lib/dpkg
mount --bind /mnt/dpkg /var/lib/dpkg
install -d -o nobody -g nogroup -m 700 {STORE}
mount -t tmpfs -o mode=755 tmpfs /srv
mount -t tmpfs -o mode=1777 tmpfs /tmp
/usr/bin/python3 -c "{LOOPBACK}"
cp {TREE}/data/sample/*.jpg {HOME}
cp -r {TREE}/scripts {HOME}
cp {HOME}/lake.jpg {HOME}/photo.jpg
cp {HOME}/lake.jpg {HOME}/fog.jpg
echo done
exec sleep infinity
"""


class Machine:
    """Commands are lines of a shell in the machine."""

    def __init__(self):
        self.running = []
        self.holder = subprocess.Popen(["unshare", "--mount", "--net", "sh", "-c", SETUP],
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        said = ""
        while not said.endswith("done\n"):
            line = self.holder.stdout.readline()
            if not line:
                self.holder.wait()
                pytest.skip(f"no machine: {said}")
            said += line

    def close(self):
        self.stop()
        self.holder.terminate()
        self.holder.communicate(timeout=60)

    def popen(self, command, user="root", cwd=HOME, tty=False, **variables):
        words = ["sh", "-exc", f"cd {cwd}; {command}"]
        if tty:
            words = ["script", "-qec", shlex.join(words), "/dev/null"]
        if user != "root":
            words = ["setpriv", f"--reuid={user}", "--regid=nogroup", "--clear-groups", *words]
        return subprocess.Popen(
            ["nsenter", "-t", str(self.holder.pid), "-m", "-n", *words], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
            env={**os.environ, "PATH": f"/mnt/bin:{os.environ['PATH']}", "LC_ALL": "C.UTF-8",
                 "HOME": HOME, **variables})

    def run(self, command, status=0, given="", **options):
        """Returns (standard output, standard error without the commands)."""
        process = self.popen(command, **options)
        said, complaints = process.communicate(given, timeout=300)
        assert process.returncode == status, (
            f"status {process.returncode}: {command}\n{said[-2000:]}\n{complaints[-4000:]}")
        return said, "".join(line for line in complaints.splitlines(True)
                             if not line.startswith("+ "))

    def start(self, command, **options):
        """Starts a daemon, and waits until it serves where all documents expect it."""
        process = self.popen(command, **options)
        log = ""
        while " ready on http://127.0.0.1:8080 " not in log:
            line = process.stderr.readline()
            assert line, f"{command}: {log}"
            log += line
        drain = threading.Thread(target=process.stderr.read, daemon=True)
        drain.start()
        self.running.append(process)

    def stop(self):
        """Ends the daemons as Ctrl-C does."""
        while self.running:
            process = self.running.pop()
            os.killpg(process.pid, signal.SIGINT)
            assert process.wait(60) in (0, -signal.SIGINT, 130)

    def serve(self, *words):
        """Restarts the daemon of CONFIG."""
        self.stop()
        self.start(f"exec darkroomd -c {CONFIG} {' '.join(words)}")

    def read(self, path):
        return self.run(f"cat {path}")[0]

    def write(self, path, text):
        self.run(f"cat >{path}; chmod 644 {path}", given=text)
