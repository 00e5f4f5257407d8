"""Curves instead of points: response times and fairness by the number of clients (Welsh, figures
37 to 40; Larus, figure 6), and throughput by the size of cohorts (Larus 5.2)."""

import run
from job import Job, closed
from machine import ROOT
from plan import PAPER_SERVER, configurations

THINK_MS = 20
CLIENTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
CONFIGURATIONS = ("drain", "cohort", "srpt", "mg1", "seda-cores", "thread-per-connection")
THREADS_MAX = 64  # of a group of the daemon
COHORTS = {"1": 1, "4": 4, "10": 10, "20": 20, "all": None}
ROUNDS = 3


def curves(options, bench, number):
    """Returns a run of each number of clients for each configuration. thread-per-connection has a
    thread for each client as far as it may."""
    chosen = options.configurations or (CONFIGURATIONS[:2] if options.quick else CONFIGURATIONS)
    return [Job("curves", configuration.name, clients, number,
                lambda configuration=configuration, clients=clients: _measure(
                    options, bench, configuration, clients, number),
                bench.warm_up_s + options.curve_s + 3)
            for clients in options.clients for configuration in configurations(chosen)]


def _measure(options, bench, configuration, clients, number):
    settings = [*PAPER_SERVER, *configuration.options, f"limits.connections={2 * clients + 16}",
                "server.respond_after=store"]
    if configuration.policy == "thread-per-connection":
        settings.append(f"scheduler.threads={min(clients, THREADS_MAX)}")
    with bench.daemon(configuration.path, settings) as daemon:
        bench.warm_up(daemon, min(clients, 16))
        report, rows = bench.load(daemon, "-c", clients, "--think", THINK_MS, "-d",
                                  f"{options.curve_s:g}", "--seed", number + 1, "--timeout", "30s",
                                  may_fail=True)
    out = run.summary(report, rows, bench.server_cores())
    del out["processed"]
    failed = sum(report["errors"].values()) + report["unexpected"]
    return {"connections": clients, "failed": failed, **out}


def cohorts(options, bench, number):
    """Returns a run of each size of a cohort: a largest number of events of a visit."""
    workload = max(options.connections)
    return [Job("cohorts", size, workload, number,
                lambda events=events: closed(
                    bench, "cohort", ROOT / "conf" / "cohort.ini", workload, number,
                    () if events is None else ("scheduler.service=n-gated",
                                               f"experiment.service_events={events}")),
                bench.guess_s)
            for size, events in COHORTS.items()]
