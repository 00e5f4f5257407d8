"""Ways to change a running daemon: its configuration file with SIGHUP, its control socket, and
darkroomd ctl."""

import re
import signal
import socket

from darkroom import PER_CONNECTION, POLICY, eventually, every_key, overrides, run, slow

# With one connection for each of two threads, the other connections of a load would wait forever.
FIRST = "cohort" if PER_CONNECTION else POLICY or "drain"
OTHER = "dbr" if FIRST == "srpt" else "srpt"


class Site:
    """A daemon with a configuration file that can be edited. The file also sets the policy."""

    def __init__(self, start, directory, *settings, edits=(), **options):
        self.path = directory / "site.ini"
        self.write(FIRST, *edits)
        # The status names settings that differ from their defaults.
        self.daemon = start("server.hosts=", "overload.target_p90=5s", *settings, config=self.path,
                            policy="", **options)

    def write(self, policy, *edits):
        text = re.sub(r"(?m)^policy = .*", f"policy = {policy}", every_key())
        for old, new in edits:
            assert old in text
            text = text.replace(old, new)
        self.path.write_text(text)

    def reload(self):
        """Sends SIGHUP. Returns the lines that the daemon logged because of it."""
        before = self.daemon.log.count("SIGHUP: reloading")
        self.daemon.signal(signal.SIGHUP)

        def lines():
            parts = self.daemon.log.split("SIGHUP: reloading")
            return parts[-1] if len(parts) == before + 2 else ""

        end = "active: policy|configuration: .*; it stays unchanged$"
        assert eventually(lambda: re.search(end, lines(), re.M), 60)
        return lines()

    def policy(self):
        return self.daemon.get("/stats").json()["scheduler"]["policy"]


def socket_of(daemon):
    return daemon.store / "control.sock"


def command(daemon, line):
    """Sends a line to the control socket as darkroomd ctl does. Returns (status, text)."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(socket_of(daemon)))  # a timeout would not wait for its turn
        s.settimeout(slow(60))
        s.sendall(line.encode() + b"\n")
        answer = b"".join(iter(lambda: s.recv(65536), b"")).decode()
    return int(answer[0]), answer[2:]


def ctl(daemon, *words, settings=()):
    """Runs darkroomd ctl, which finds the daemon by its root."""
    return run(*overrides(f"server.root={daemon.store}", *settings), "ctl", *words)
