"""A real daemon under test, on a free port and with its own store. A sanitizer reports through the
exit status and standard error, so each stop also checks for leaks and races.

Environment: DARKROOMD is the binary, DARKROOM_POLICY the policy, DARKROOM_SETTINGS more settings
(SECTION.KEY=VALUE, separated by spaces), and DARKROOM_SLOW a factor for all timeouts.
DARKROOM_SCOPE=scheduling selects the tests that depend on scheduling, and DARKROOM_SHARD=2/3 the
second third of the modules."""

import functools
import itertools
import os
import pathlib
import re
import signal
import subprocess
import threading
import time

from client import Client

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("DARKROOMD", ROOT / "build" / "darkroomd")).resolve()
CONFIG = ROOT / "conf" / "darkroomd.ini"
POLICY = os.environ.get("DARKROOM_POLICY", "")
SETTINGS = os.environ.get("DARKROOM_SETTINGS", "").split()
SCOPE = os.environ.get("DARKROOM_SCOPE", "")
SHARD = [int(number) for number in os.environ.get("DARKROOM_SHARD", "1/1").split("/")]
PER_CONNECTION = POLICY == "thread-per-connection"
# Least value of scheduler.threads: each of the two replicas or parts of DARKROOM_SETTINGS needs
# one.
LEAST_THREADS = 2 if any(setting.startswith("layout.") for setting in SETTINGS) else 1

_code = BINARY.read_bytes() if BINARY.exists() else b""
IS_TSAN = b"__tsan_init" in _code
IS_SANITIZED = IS_TSAN or b"__asan_init" in _code or b"__ubsan_handle" in _code
SLOW = float(os.environ.get("DARKROOM_SLOW", "10" if IS_SANITIZED else "1"))
del _code

READY = re.compile(r"ready on (http://(127\.0\.0\.\d+):(\d+))")
ALARMS = ("ERROR: AddressSanitizer", "ERROR: LeakSanitizer", "runtime error:",
          "WARNING: ThreadSanitizer", "Assertion")


def slow(seconds):
    """Returns a time limit for this build."""
    return seconds * SLOW


def load(count, least=1):
    """Returns the number of repetitions in a load test for this build."""
    return max(least, int(count / max(1.0, SLOW)))


def command(*arguments, binary=BINARY):
    """Returns the command line of a binary. ThreadSanitizer needs addresses without
    randomisation."""
    return (["setarch", "x86_64", "-R"] if IS_TSAN and os.uname().machine == "x86_64" else []) \
        + [str(binary), *map(str, arguments)]


def run(*arguments, timeout=180):
    """Runs the binary until it exits. The timeout allows for a disk that others flush all the time."""
    done = subprocess.run(command(*arguments), capture_output=True, text=True,
                          timeout=slow(timeout))
    for alarm in ALARMS:
        assert alarm not in done.stderr, done.stderr
    return done


@functools.cache
def every_key():
    """Returns a configuration that sets every key, to its default."""
    return run("--keys").stdout


def overrides(*settings):
    """Returns -o for each setting."""
    return [word for setting in settings for word in ("-o", setting)]


def activated(words, sockets, names):
    """Returns a command line that passes the sockets as a service manager does, as descriptors
    3..."""
    redirections = " ".join(f"{3 + i}<&{s.fileno()}" for i, s in enumerate(sockets))
    script = f'export LISTEN_PID=$$; exec "$@" {redirections}'
    variables = [f"LISTEN_FDS={len(sockets)}"]
    if names is not None:
        variables.append(f"LISTEN_FDNAMES={names}")
    return ["env", *variables, "bash", "-c", script, "bash", *words]


class Daemon:
    """environ: additional variables. extra: additional words of the command line. sockets, names:
    listeners that are passed to the daemon, and their names. binary: that of a former version."""

    def __init__(self, store, *settings, config=CONFIG, listen="127.0.0.1:0", policy=POLICY,
                 wait=True, environ=None, extra=(), sockets=(), names=None, binary=BINARY):
        self.store = pathlib.Path(store)
        # Many tests write "Host: x". test_sites.py has the tests of hosts.
        defaults = [f"server.listen={listen}", f"server.root={self.store}", "server.hosts=x"]
        # Nothing is refused because the machine is busy. test_overload.py has the tests of that.
        defaults.append("overload.target_p90=1h")
        if os.geteuid() == 0:
            defaults.append("server.user=root")
        else:  # otherwise only root can see the daemon's files in /proc
            defaults.append("experiment.core_dumps=yes")
        if policy:
            defaults.append(f"scheduler.policy={policy}")
        defaults += SETTINGS
        if policy == "thread-per-connection":
            defaults.append("scheduler.threads=32")
        self.stopped = False
        self.lines = []
        self.marks = itertools.count()
        self.ready = threading.Event()
        self.url = self.host = self.port = None
        self.start_time = time.monotonic()
        self.ready_time = None
        words = command(*(["-c", config] if config else []), *overrides(*defaults, *settings),
                        *extra, binary=binary)
        self.process = subprocess.Popen(activated(words, sockets, names) if sockets else words,
                                        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        cwd="/", env={**os.environ, "JOURNAL_STREAM": "0:0",
                                             **(environ or {})},
                                        pass_fds=[s.fileno() for s in sockets])
        self.reader = threading.Thread(target=self._drain, daemon=True)
        self.reader.start()
        if wait:
            self.wait_ready()

    def _drain(self):
        for line in self.process.stderr:
            text = line.decode("utf-8", "replace")
            self.lines.append(text)
            found = READY.search(text)
            if found and not self.ready.is_set():
                self.ready_time = time.monotonic() - self.start_time
                self.url, self.host, self.port = found[1], found[2], int(found[3])
                self.ready.set()
        self.ready.set()

    @property
    def log(self):
        """The part of the log that has been read so far. A line may arrive later than the effect
        that it reports. To test that a line is in the log, use says(). To test that it is not, use
        log_until_now(). The log of the start is complete once the daemon is ready, and the whole
        log is complete once it has stopped."""
        return "".join(self.lines)

    def says(self, what, timeout=20.0):
        """Waits until the log contains a text, or satisfies a predicate. Returns whether it did."""
        return eventually(lambda: what(self.log) if callable(what) else what in self.log, timeout)

    def log_until_now(self):
        """Returns the log with all lines that any thread logged before this call. Lines are written
        in the order in which they were logged, so the line of another request comes after them.
        Needs log.access, and log.level = info."""
        ident = f"now-{next(self.marks)}"
        assert self.get("/healthz", headers=[("X-Request-Id", ident)])["x-request-id"] == ident
        assert self.says(f"id={ident} "), self.log
        return self.log

    @property
    def pid(self):
        return self.process.pid

    def wait_ready(self):
        self.ready.wait(slow(60))
        if self.url is None:
            self.process.kill()
            self.reader.join(5)
            raise AssertionError(
                f"no ready line; exit status {self.process.wait()}, log:\n{self.log}")

    def client(self, **options):
        return Client(self.host, self.port, timeout=options.pop("timeout", slow(60)), **options)

    def admin(self, **options):
        """Returns a client of the administrative listener."""
        where = re.search(r"administration on (?:http://(.*):(\d+)|unix:(.*))", self.log)
        return Client(where[1] or where[3], int(where[2] or 0),
                      timeout=options.pop("timeout", slow(60)), **options)

    def get(self, path, **options):
        """Makes one GET on a new connection."""
        with self.client() as c:
            return c.request("GET", path, **options)

    def upload(self, data, content_type="image/jpeg", headers=()):
        """POSTs a body on a new connection. Returns the answer with any status."""
        with self.client() as c:
            return c.request("POST", "/images", data, [("Content-Type", content_type), *headers])

    def image(self, data, headers=()):
        """Uploads one JPEG, which must be accepted. Returns its JSON object."""
        answer = self.upload(data, headers=headers)
        assert answer.status == 201, answer
        (image,) = answer.json()["images"]
        return image

    def fetch(self, image, variant):
        """Returns the file of a variant."""
        answer = self.get(image["variants"][variant]["url"] if "variants" in image
                          else f"{image['url']}/{variant}.jpg")
        assert answer.status == 200, answer
        return answer.body

    def kept_bytes(self, client):
        """Returns the bytes that the kernel holds for a connection, as {end: (to send, to read)}.
        The ends are "client" and "daemon"."""
        kept, port = {}, client.socket.getsockname()[1]
        for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
            _, ours, theirs, _, queues = line.split()[:5]
            ports = int(ours.split(":")[1], 16), int(theirs.split(":")[1], 16)
            if ports in ((port, self.port), (self.port, port)):
                kept["client" if ports[0] == port else "daemon"] = tuple(
                    int(count, 16) for count in queues.split(":"))
        return kept

    def has_read(self, client):
        """Returns whether the daemon has read everything that this client sent. A drain closes a
        connection of which nothing was read, since it is idle."""
        kept = self.kept_bytes(client)
        return len(kept) == 2 and kept["client"][0] == kept["daemon"][1] == 0

    def is_held_up_by(self, client):
        """Returns whether the daemon has bytes to send that this client has not read."""
        return self.kept_bytes(client).get("daemon", (0, 0))[0] > 0

    def refuses_connections(self):
        try:
            self.client().close()
        except ConnectionRefusedError:
            return True
        except ConnectionResetError:
            pass  # the listener was shut down during the connection
        return False

    def is_alive(self):
        return self.process.poll() is None

    def signal(self, number):
        self.process.send_signal(number)

    def signal_until_exit(self, number):
        """Sends the signal again and again: it counts as a second one only after half a second."""
        def has_ended():
            self.signal(number)
            return self.process.poll() is not None
        assert eventually(has_ended, step=0.05)
        return self.wait_exit()

    def wait_exit(self, timeout=60):
        status = self.process.wait(slow(timeout))
        self.stopped = True
        self.reader.join(slow(20))
        return status

    def assert_no_alarm(self):
        for alarm in ALARMS:
            assert alarm not in self.log, self.log[-20000:]

    def stop(self, timeout=60):
        """Drains the daemon. Fails if a sanitizer has found anything."""
        if self.stopped:
            self.assert_no_alarm()
            return
        self.signal(signal.SIGTERM)
        try:
            status = self.wait_exit(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            self.stopped = True
            raise AssertionError(
                f"did not stop within {slow(timeout)} s after SIGTERM; log:\n{self.log[-4000:]}")
        self.assert_no_alarm()
        assert status == 0, f"exit status {status}; log:\n{self.log[-20000:]}"

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.stopped = True

    def threads(self, group):
        """Returns /proc/PID/task/TID of each thread of a group, in the order of the threads."""
        names = {task: (task / "comm").read_text().strip()
                 for task in pathlib.Path(f"/proc/{self.pid}/task").iterdir()}
        return sorted((task for task, name in names.items() if name.startswith(f"{group}/")),
                      key=lambda task: int(names[task].partition("/")[2]))

    def cpu_seconds(self):
        """Returns the CPU time of all threads, in seconds with a resolution of nanoseconds."""
        total = 0
        for task in pathlib.Path(f"/proc/{self.pid}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[0])
        return total / 1e9

    def resident_bytes(self, field="VmRSS"):
        """Returns the resident memory, or with VmHWM its maximum so far."""
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(rf"{field}:\s+(\d+) kB", status)[1]) * 1024

    def stored(self):
        """Returns the ids of the images in the store, by its documented layout."""
        return sorted(p.name for p in self.store.glob("[0-9A-Z]*/[0-9A-Z][0-9A-Z]/*"))

    def leftovers(self):
        """Returns the paths of unfinished and removed images."""
        return [p for name in (".incoming", ".trash") for p in (self.store / name).glob("*")]


def eventually(question, timeout=20.0, step=None):
    """Polls until the result is true or the time is over. Returns the last result. The timeout
    allows for a busy machine. Without a step, polls are seldom when the wait is long."""
    begin = time.monotonic()
    while True:
        # This process may have been suspended, so it polls once more after the end.
        waited = time.monotonic() - begin
        answer = question()
        if answer or waited > slow(timeout):
            return answer
        time.sleep(min(max(0.01, waited / 20), 0.1) if step is None else step)


class TooLate(Exception):
    """The machine was too slow or too fast for this attempt to show anything."""


def attempts(count):
    """Repeats a test that raises TooLate, up to this number of times. For tests that need something
    to happen in time. Each attempt must satisfy all assertions, and begins with a fast disk."""
    def decorate(test):
        @functools.wraps(test)
        def attempt(*arguments, **options):
            for _ in range(count):
                try:
                    return test(*arguments, **options)
                except TooLate as reason:
                    print(f"again: {reason}")
                    last = reason
                    if "disk" in options:
                        options["disk"].delay_all(0)
            raise AssertionError(f"in {count} attempts: {last}")
        return attempt
    return decorate
