"""One run: a fresh daemon with an empty store, the load generator, and the reports of both."""

import csv
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request

import invariants
from invariants import Failed
from machine import ROOT, busy_s, cores

READY = re.compile(r"ready on (http://\S+)")
START_TIMEOUT, IDLE_TIMEOUT, STOP_TIMEOUT = 60, 300, 60
LONG = "10m"  # a timeout of the daemon or of darkroom-load that ends nothing

# Removing a store may slow the following runs: ext4 without a journal skips all inodes that were
# deleted within the last minutes, one by one (recently_deleted() in fs/ext4/ialloc.c). Stores are
# therefore removed between rounds, or if there is less space than this. A tmpfs (--work /dev/shm)
# has no such delay, and its files fill the memory: there they are removed before each run.
SPACE_BYTES = 4 << 30

BYTES_PER_CORE_S = 30e6  # uploaded bytes that a core processes, for estimates of durations


class Daemon:
    """A darkroomd on a free port of the loopback interface, with a new store, for the duration of a
    block. wrapper: a program that runs the daemon. program: the daemon. environ: variables for it."""

    def __init__(self, config, work, options=(), preload="", cpus=(), wrapper=(),
                 program=ROOT / "build" / "darkroomd", environ=None):
        self.config, self.options = config, options
        self.environ = {**({"LD_PRELOAD": preload} if preload else {}), **(environ or {})}
        self.cpus, self.wrapper = cpus, wrapper
        self.program = program
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="daemon-", dir=work))
        self.log = self.directory / "log"
        self.store = invariants.Store(self.directory / "store")

    def __enter__(self):
        self.store.root.mkdir()
        command = [*self.wrapper, self.program, "-c", self.config, "-o",
                   "server.listen=127.0.0.1:0", "-o", "log.access=no", "-o", f"server.root={self.store.root}",
                   "-o", "overload.controller=off",  # a refusal would end an upload early
                   "-o", "server.keep_originals=no",  # the other servers store only variants
                   *(["-o", "server.user=root"] if os.geteuid() == 0 else [])]
        for option in self.options:
            command += ["-o", option]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, env={**os.environ, **self.environ},
                                            preexec_fn=self._bind if self.cpus else None)
        self.url = self._wait()
        return self

    def _bind(self):
        os.sched_setaffinity(0, self.cpus)

    def _wait(self):
        deadline = time.monotonic() + START_TIMEOUT
        while time.monotonic() < deadline and self.process.poll() is None:
            found = READY.search(self.log.read_text())
            if found:
                return found[1]
            time.sleep(0.01)
        self._end(signal.SIGKILL)
        raise self._failed("did not start")

    def _failed(self, what):
        return Failed(f"darkroomd -c {self.config} {what}:\n{self.log.read_text()}")

    def stats(self):
        with urllib.request.urlopen(self.url + "/stats", timeout=10) as answer:
            return json.load(answer)

    def upload(self, data, kind="image/jpeg"):
        """Uploads a picture. Returns the image of the answer."""
        request = urllib.request.Request(self.url + "/images", data, {"Content-Type": kind})
        with urllib.request.urlopen(request, timeout=IDLE_TIMEOUT) as answer:
            return json.load(answer)["images"][0]

    def profile(self):
        """Returns the costs of the stages since the start, for layout.profile."""
        return subprocess.run([self.program, "-c", self.config, "-o",
                               f"server.root={self.store.root}", "ctl", "profile"],
                              check=True, capture_output=True, text=True).stdout

    def cpu_s(self):
        """Returns the CPU time of the daemon since its start."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1]
        return sum(map(int, fields.split()[11:13])) / os.sysconf("SC_CLK_TCK")

    def wait_until_idle(self):
        """Waits until all images that were answered early are stored. Returns /stats."""
        deadline = time.monotonic() + IDLE_TIMEOUT
        while (stats := self.stats())["images"]["in_flight"]:
            if time.monotonic() > deadline:
                raise self._failed("has images in flight after the load has ended")
            time.sleep(0.02)
        if "last_stored_ns" not in stats["images"]:
            raise self._failed("is too old: /stats does not say when the last image was stored")
        return stats

    def _end(self, number):
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(STOP_TIMEOUT)

    def __exit__(self, kind, error, trace):
        status = self._end(signal.SIGTERM if kind is None else signal.SIGKILL)
        if kind is None and status != 0:
            raise self._failed(f"ended with status {status}")


def is_in_memory(path):
    """Returns whether the path is in a tmpfs."""
    mounts = [line.split()[1:3] for line in pathlib.Path("/proc/mounts").read_text().splitlines()]
    return max((mount for mount in mounts if path.resolve().is_relative_to(mount[0])),
               key=lambda mount: len(mount[0]))[1] == "tmpfs"


class Bench:
    """The common settings of all runs. work: a directory for stores. cpus, load_cpus: empty for all
    cores. run_s: about the duration of a run. requests: of a run; 0: each file once."""

    def __init__(self, files, work, options=(), cpus=(), load_cpus=(), warm_up_s=0, run_s=0):
        self.files, self.work, self.options = files, work, tuple(options)
        self.cpus, self.load_cpus, self.warm_up_s = cpus, load_cpus, warm_up_s
        file_bytes = sum(path.stat().st_size for path in files.rglob("*.jpg"))
        self.requests, self.run_s = 0, run_s
        self.guess_s = 2.5 + warm_up_s + (
            1.2 * run_s or file_bytes / BYTES_PER_CORE_S / self.server_cores())

    def calibrate(self, config):
        """Sets the requests of a run, so that it takes run_s with this configuration."""
        if self.run_s:
            with self.daemon(config) as daemon:
                self.warm_up(daemon, 16)
                report, _ = self.load(daemon, "-c", 16, "-d", min(5, self.run_s))
            per_s = summary(report, self.server_cores())["responses_per_s"]
            self.requests = max(1, round(self.run_s * per_s))

    def of_run(self):
        """Returns arguments of darkroom-load for the requests of a run."""
        return ["-n", self.requests] if self.requests else []

    def sweep(self, is_over):
        """Removes the stores of earlier runs after a round, or if space is short."""
        if (is_over or is_in_memory(self.work) or
                shutil.disk_usage(self.work).free <= SPACE_BYTES):
            for directory in self.work.iterdir():
                shutil.rmtree(directory)

    def daemon(self, config, options=(), preload="", wrapper=()):
        return Daemon(config, self.work, self.options + tuple(options), preload, self.cpus, wrapper)

    def warm_up(self, daemon, connections):
        """Loads the daemon until its buffers are there and its policy has measured the stages."""
        if self.warm_up_s:
            self.load(daemon, "-c", connections, "-d", f"{self.warm_up_s:g}", "--seed", 99)

    def load(self, daemon, *arguments, files=None, resets=0):
        """Runs the load generator. Returns its report, with the CPU time of other programs, and one
        row for each request. Fails as generate() does, or if the run breaks an invariant."""
        rows = daemon.directory / "requests.csv"
        stored = daemon.stats()["images"]["stored"]
        before, cpu_s = busy_s() - children_cpu_s(), daemon.cpu_s()
        report = self.generate(daemon, "--csv", rows, *arguments, daemon.url + "/images",
                               files or self.files, resets=resets)
        stats = daemon.wait_until_idle()
        report["stored_s"] = 1e-9 * (stats["images"]["last_stored_ns"]
                                     - report["start_monotonic_ns"])
        report["cpu_s"] = daemon.cpu_s() - cpu_s
        report["others_cpu_s"] = busy_s() - children_cpu_s() - before - report["cpu_s"]
        with rows.open(newline="") as file:
            rows = list(csv.DictReader(file))
        daemon.store.check(rows, stats, stored)
        invariants.check_cpu(report["cpu_s"], max(report["makespan_s"], report["stored_s"]),
                             self.server_cores())
        return report, rows

    def generate(self, daemon, *arguments, resets=0):
        """Runs the load generator on its cores. The report has the daemon's CPU time and memory."""
        bind = (lambda: os.sched_setaffinity(0, self.load_cpus)) if self.load_cpus else None
        return generate("--server-pid", daemon.process.pid, *arguments, bind=bind, resets=resets)

    def server_cores(self):
        return len(self.cpus) or cores()


def generate(*arguments, bind=None, resets=0):
    """Runs the load generator. Returns its report. Fails if a request fails. At most `resets`
    connections may be reset. bind: called in the generator's process before the program."""
    command = [ROOT / "build" / "darkroom-load", "--json", "--quiet", *arguments]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                          preexec_fn=bind)
    report = json.loads(done.stdout) if done.stdout else {}
    if done.returncode != 0 and not (report and _only_resets(report, resets)):
        raise Failed(f"darkroom-load ended with status {done.returncode}: "
                     f"{done.stderr}{done.stdout[:2000]}")
    return report


def _only_resets(report, most):
    """Returns whether resets of connections, and not too many, are all that went wrong."""
    errors = report["errors"]
    others = any(report.get(key) for key in ("unexpected", "interrupted", "aborted", "doubled"))
    return not others and 0 < sum(errors.values()) == errors["reset"] <= most


def children_cpu_s():
    """Returns the CPU time of ended child processes."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def make_dataset(directory, scale, output):
    """Makes the missing files of the dataset. darkroom-dataset writes its messages to output."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    command = [ROOT / "build" / "darkroom-dataset", "--scale", f"{scale:g}", directory]
    if subprocess.run(command, stdout=output).returncode != 0:
        raise Failed("darkroom-dataset failed")


def preload_path(library):
    """Returns the path of a library for LD_PRELOAD, or an empty text for none. The library must
    exist, since the loader would only warn."""
    if not library:
        return ""
    for directory in ("/usr/lib/" + os.uname().machine + "-linux-gnu", "/usr/lib64", "/usr/lib",
                      "/usr/local/lib"):
        path = pathlib.Path(directory, library)
        if path.exists():
            return str(path)
    raise Failed(f"{library} is not installed (scripts/setup experiment)")


def summary(report, server_cores):
    """Returns the results of a closed-loop run. Response times are in milliseconds, and those of
    the client. The makespan ends when the last image is stored."""
    times, server = report["response_time_ms"], report["server"]
    images = sum(count for status, count in report["statuses"].items() if status[0] == "2")
    if not images:
        raise Failed(f"darkroom-load: no upload has succeeded: {report['statuses']}, "
                     f"{report['errors']}")
    makespan_s, cpu_s = max(report["makespan_s"], report["stored_s"]), report["cpu_s"]
    return {
        "makespan_s": makespan_s,
        "answered_s": report["makespan_s"],
        "responses_per_s": images / makespan_s,
        "input_bytes_per_s": report["input_bytes"] / makespan_s,
        **{f"{key}_ms": times[key] for key in ("mean", "p50", "p90", "p99", "max")},
        "cpu_s": cpu_s,
        "cpu_ms_per_image": 1000 * cpu_s / images,
        "cpu_use": 100 * cpu_s / makespan_s / server_cores,
        "peak_rss_bytes": server["peak_rss_bytes"],
        "images": images,
        "generator_cpu_s": report["generator"]["cpu_s"],
    }


def stage_counters(stats, before):
    """Returns what was added to the sums of performance counters over all stages, and the missing
    counters."""
    sums = {}
    for stage, old in zip(stats["stages"], before["stages"]):
        for name, value in stage.get("counters", {}).items():
            sums[name] = sums.get(name, 0) + value - old["counters"].get(name, 0)
    return {"counters": sums,
            "counters_missing": stats["scheduler"].get("counters", {}).get("missing", {})}
