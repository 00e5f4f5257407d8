"""A program in a pseudo-terminal, and what its screen shows (python3-pyte, which knows what a
terminal of the type linux does)."""

import fcntl
import os
import struct
import subprocess
import termios
import threading

from darkroom import eventually, slow

try:
    import pyte
except ImportError:  # test_top.py skips what needs it
    pyte = None


class Terminal:
    """environ: variables that are added."""

    def __init__(self, words, columns=80, rows=24, environ=None):
        self.master, self.slave = os.openpty()
        self.open = [self.slave, self.master]
        self._set_size(columns, rows)
        self.before = termios.tcgetattr(self.slave)
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.raw, self.lock = bytearray(), threading.Lock()
        self.process = subprocess.Popen(
            words, stdin=self.slave, stdout=self.slave, stderr=self.slave, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env={**os.environ, "TERM": "linux", "LC_ALL": "C.UTF-8", **(environ or {})})
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.hang_up()

    def hang_up(self):
        """Closes the terminal, as a connection that breaks."""
        while self.open:
            os.close(self.open.pop())

    def _set_size(self, columns, rows):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _read(self):
        try:
            while (data := os.read(self.master, 65536)):
                with self.lock:
                    self.raw += data
                    self.stream.feed(data)
        except OSError:
            pass  # closed

    def resize(self, columns, rows):
        """The kernel tells the program by SIGWINCH."""
        with self.lock:
            self.screen.resize(rows, columns)
        self._set_size(columns, rows)

    def type(self, keys):
        os.write(self.master, keys.encode())

    @property
    def lines(self):
        with self.lock:
            return [line.rstrip() for line in self.screen.display]

    @property
    def text(self):
        return "\n".join(self.lines)

    def shows(self, what, timeout=20):
        """Waits until the screen has a text, or satisfies a predicate."""
        return eventually(lambda: what(self.lines) if callable(what) else what in self.text,
                          timeout, step=0.05)

    def ends(self):
        """Returns the exit status, and whether the terminal is as it was."""
        status = self.process.wait(slow(20))
        return status, termios.tcgetattr(self.slave) == self.before
