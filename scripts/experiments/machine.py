"""What the measurements were made on, and with."""

import datetime
import os
import pathlib
import platform
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def _output(*command):
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _field(path, name):
    """The value of the first "name : value" line of a file in /proc."""
    for line in pathlib.Path(path).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return "unknown"


def cores():
    """Those that this process may use."""
    return len(os.sched_getaffinity(0))


def load_average():
    return os.getloadavg()[0]


def busy_s():
    """CPU seconds that this machine has spent since its start, and what its host has kept from it (steal)."""
    first = pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
    user, nice, system, _idle, _iowait, irq, softirq, steal = (int(ticks) / os.sysconf("SC_CLK_TCK") for ticks in first)
    return user + nice + system + irq + softirq + steal


def describe():
    """Stands in front of the raw results."""
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
    return (f"{machine['cores']} cores ({machine['cpu']}), {machine['memory_gb']} GB, {machine['system']}, Linux "
            f"{machine['kernel']}; {machine['date']}, commit {machine['commit']}, load average {machine['load_average']} before")
