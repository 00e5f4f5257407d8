"""The machine and the versions of a measurement."""

import datetime
import os
import pathlib
import platform
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAKE = ROOT / "data" / "sample" / "lake.jpg"  # a small photograph
KTHREADD = "2"  # the parent of all kernel threads


def _output(*command):
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True,
                              check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _field(path, name):
    """Returns the value of the first line "name : value" of a file in /proc."""
    for line in pathlib.Path(path).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return "unknown"


def cores():
    """Returns the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def load_average():
    return os.getloadavg()[0]


def busy_s(proc=pathlib.Path("/proc")):
    """Returns the CPU seconds of all programs since the start of this machine, and those that its
    host took from it (steal). Interrupts and kernel threads do not count: they send and write what
    the programs of a run do, and some of that is in the times of these programs already."""
    user, nice, system, _idle, _iowait, _irq, _softirq, steal = map(
        int, (proc / "stat").read_text().split()[1:9])
    ticks = user + nice + system + steal
    for path in proc.glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except OSError:  # it has ended
            continue
        if fields[1] == KTHREADD:
            ticks -= int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


class Usage:
    """What other programs use of the CPUs from now on, as a share of all. The programs that were
    started since then must have ended."""

    def __init__(self):
        self.start_s, self.cpu_s = time.monotonic(), self._others_s()

    @staticmethod
    def _others_s():
        return busy_s() - sum(os.times()[:4])

    def of_others(self):
        seconds = max(time.monotonic() - self.start_s, 1e-3) * (os.cpu_count() or 1)
        return round(max(0.0, self._others_s() - self.cpu_s) / seconds, 4)


def describe():
    """Returns the first line of the raw results."""
    memory = _field("/proc/meminfo", "MemTotal").split()[0]
    return {
        "kind": "machine",
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": _field("/proc/cpuinfo", "model name"),
        "cores": cores(),
        "memory_gb": round(int(memory) / 1e6) if memory.isdigit() else 0,
        "kernel": platform.release(),
        "system": _field_of_release(),
        "commit": _output("git", "describe", "--always", "--dirty"),
        "load_average": round(load_average(), 2),
    }


def _field_of_release():
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "unknown")
    except OSError:
        return "unknown"


def sentence(machine):
    return (f"{machine['cores']} cores ({machine['cpu']}), {machine['memory_gb']} GB, "
            f"{machine['system']}, Linux {machine['kernel']}; {machine['date']}, commit "
            f"{machine['commit']}, load average {machine['load_average']} before")
