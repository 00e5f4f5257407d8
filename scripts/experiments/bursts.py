"""SEDA's controllers over time while the load comes in bursts (Welsh, figures 30 to 32 and 42)."""

import threading
import time

import run
from job import Job
from machine import ROOT

INTERVAL_S = 0.25  # of the samples
FACTOR = 4         # of the rate within a burst
BASE = 0.5         # of the capacity between bursts
CASES = {"fixed pools": (), "controllers": ("experiment.dynamic=yes",)}
ROUNDS = 3


def jobs(options, bench, number):
    return [Job("bursts", name, 0, number,
                lambda extra=extra: _measure(options, bench, extra, number),
                options.burst_s + bench.warm_up_s + 6) for name, extra in CASES.items()]


class Sampler(threading.Thread):
    """Reads /stats at fixed intervals until it is stopped."""

    def __init__(self, daemon):
        super().__init__()
        self.daemon_of_run, self.over, self.samples = daemon, threading.Event(), []
        self.start_s = time.monotonic()

    def run(self):
        while not self.over.wait(INTERVAL_S):
            stats = self.daemon_of_run.stats()
            self.samples.append({
                "s": round(time.monotonic() - self.start_s, 3),
                "in_flight": stats["images"]["in_flight"],
                "stages": {stage["name"]: {"queued": stage["queued"], "threads": stage["threads"],
                                           "events": stage["events"],
                                           **({"batch": stage["batch"]} if "batch" in stage
                                              else {})}
                           for stage in stats["stages"] if not stage["pass_through"]}})

    def stop(self):
        self.over.set()
        self.join()
        return self.samples


def _measure(options, bench, extra, number):
    """Sends half of the capacity, and twice the capacity in two bursts."""
    settings = ("limits.images_in_flight=65536", "limits.connections=1100",
                f"limits.body_timeout={run.LONG}", *extra)
    with bench.daemon(ROOT / "conf" / "seda.ini", settings) as daemon:
        report, _ = bench.load(daemon, "-c", 16, "-d", 2)
        rate, length = BASE * report["responses_per_s"], options.burst_s
        sampler = Sampler(daemon)
        sampler.start()
        try:
            report, _ = bench.load(
                daemon, "-c", 1000, "--rate", f"{rate:.3f}", "--poisson", "-d", f"{length:g}",
                *(part for share in (0.2, 0.6)
                  for part in ("--spike", f"{FACTOR}:{150 * length:.0f}@{share * length:.3f}s")),
                "--timeout", run.LONG, "--seed", number + 1)
        finally:
            samples = sampler.stop()
    return {"rate_per_s": rate, "seconds": length, "answered": report["responses"],
            "unsent": report["unsent"],
            **{f"{key}_ms": report["since_due_ms"][key] for key in ("p50", "p90", "p99", "max")},
            "samples": samples}
