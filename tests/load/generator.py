"""Runs of darkroom-load, the paths of the programs, and servers in Python.

Environment: DARKROOM_LOAD and ANSWER_SERVER (binaries), and the variables of the daemon's tests."""

import contextlib
import http.server
import json
import os
import pathlib
import pty
import re
import subprocess
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "http"))

from darkroom import ALARMS, slow  # noqa: E402 (after the path is set)

BUILD = ROOT / "build"
LOAD = pathlib.Path(os.environ.get("DARKROOM_LOAD", BUILD / "darkroom-load")).resolve()
SERVER = pathlib.Path(
    os.environ.get("ANSWER_SERVER", BUILD / "plain/tests/tools/answer_server")).resolve()


class Run:
    """One run of darkroom-load to its end."""

    def __init__(self, *arguments, timeout=90):
        done = subprocess.run([LOAD, *map(str, arguments)], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=slow(timeout))
        self.status, self.output, self.errors = done.returncode, done.stdout, done.stderr
        for alarm in ALARMS:
            assert alarm not in self.errors, self.errors

    @property
    def report(self):
        assert self.errors == "", self.errors
        return json.loads(self.output)


class Watched:
    """A run whose standard error is a terminal, which shows its progress."""

    def __init__(self, *arguments):
        self.terminal, theirs = pty.openpty()
        self.process = subprocess.Popen([LOAD, *map(str, arguments)], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=theirs, text=True)
        os.close(theirs)
        self.shown = ""

    def _read(self):
        try:
            piece = os.read(self.terminal, 4096).decode()
        except OSError:
            piece = ""  # the end of a terminal
        self.shown += piece
        return piece != ""

    def wait_for_answers(self):
        """Returns when the progress line shows answers."""
        while not re.search(r" s  [1-9]", self.shown):
            assert self._read(), self.shown

    def finish(self):
        """Reads to the end. Returns the exit status and the standard output."""
        while self._read():
            pass
        os.close(self.terminal)
        output, _ = self.process.communicate(timeout=slow(60))
        return self.process.returncode, output


class Handler(http.server.BaseHTTPRequestHandler):
    """A subclass has do_POST(), for what the answer server cannot do."""

    protocol_version = "HTTP/1.1"

    def read_body(self):
        self.rfile.read(int(self.headers["Content-Length"]))

    def answer(self, status, *headers):
        self.send_response(status)
        for name, value in [*headers, ("Content-Length", "0")]:
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serving(handler, **state):
    """Runs a server, whose attributes are the state of its handlers, and url that of its images."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        vars(server).update(state, url=f"http://127.0.0.1:{server.server_port}/images")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()
