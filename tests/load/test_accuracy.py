"""What darkroom-load measures is what happened: against a server whose delays are known, every percentile is within
1 % of what they must be. Both sides get priority over whatever else the machine does, where that is allowed. Elsewhere a
busy machine may delay them, but cannot make a wrong measurement right in all figures at once; so each test may try
six times."""

import functools
import heapq
import math
import os
import random

import pytest

STALL = 2.0
KEYS = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99_9": 0.999, "max": 1.0}


@pytest.fixture(autouse=True)
def undisturbed():
    """Processes started by the test inherit it."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        yield
        return
    yield
    os.sched_setscheduler(0, *before)


def figures(seconds):
    """Mean and nearest-rank percentiles, in milliseconds."""
    ordered = sorted(seconds)
    found = {key: ordered[max(0, math.ceil(share * len(ordered) - 1e-9) - 1)] * 1e3 for key, share in KEYS.items()}
    return {**found, "mean": sum(ordered) / len(ordered) * 1e3}


def assert_close(measured, expected):
    wrong = {key: (measured[key], value) for key, value in expected.items() if abs(measured[key] - value) > value * 0.01}
    assert not wrong, f"measured, expected: {wrong}"


def six_attempts(test):
    @functools.wraps(test)
    def attempt(*arguments, **options):
        for _ in range(5):
            try:
                return test(*arguments, **options)
            except AssertionError as failure:
                print("again:", failure)
        return test(*arguments, **options)
    return attempt


def log_normal_delays(count, median, sigma):
    """As photographs have: many short ones, few long ones. All different."""
    chance = random.Random(1)
    return [round(median * math.exp(sigma * chance.gauss(0, 1)), 5) for _ in range(count)]


def simulate(count, connections, delay, stall_at, due):
    """Latencies, since due(i), of requests that wait for one of the connections in the order of their numbers, at a
    server that answers after a delay and does nothing from stall_at on for STALL seconds. due None: closed loop."""
    free = [0.0] * connections
    latencies = []

    def resumed(t):
        return stall_at + STALL if stall_at <= t < stall_at + STALL else t

    for i in range(count):
        ready = heapq.heappop(free)
        start = max(due(i), ready) if due else ready
        done = resumed(resumed(start) + delay)
        heapq.heappush(free, done)
        latencies.append(done - (due(i) if due else start))
    return latencies


@six_attempts
def test_closed_loop(serve, load, files):
    delays = log_normal_delays(1000, 0.3, 0.5)
    url = serve("-d", ",".join(f"{1e3 * d:.2f}" for d in delays))
    status, report = load.json("-c", 100, "-n", 1000, url, files)
    assert status == 0 and report["responses"] == 1000
    assert_close(report["response_time_ms"], figures(delays))
    assert_close(report["with_sending_ms"], figures(delays))


@six_attempts
def test_open_loop(serve, load, files):
    delays = log_normal_delays(1000, 0.3, 0.5)
    url = serve("-d", ",".join(f"{1e3 * d:.2f}" for d in delays))
    status, report = load.json("-c", 500, "-n", 1000, "--rate", 300, "--poisson", url, files)
    assert status == 0 and report["responses"] == 1000
    assert_close(report["since_due_ms"], figures(delays))
    assert_close(report["response_time_ms"], figures(delays))


@six_attempts
def test_closed_loop_over_a_stall(serve, load, files):
    """Only the requests that were under way when the server stalled: the closed loop does not see more."""
    url = serve("-d", 200, "-s", f"900:{STALL * 1e3:.0f}")
    status, report = load.json("-c", 40, "-n", 600, url, files)
    assert status == 0 and report["responses"] == 600
    expected = figures(simulate(600, 40, 0.2, 0.9, None))
    assert expected["p90"] < 201 and expected["p99"] > STALL * 1e3
    assert_close(report["response_time_ms"], expected)


@six_attempts
def test_open_loop_over_a_stall(serve, load, files):
    """Every request that was due while the server stalled has waited for it."""
    url = serve("-d", 200, "-s", f"1005:{STALL * 1e3:.0f}")
    status, report = load.json("-c", 500, "-n", 500, "--rate", 100, url, files)
    assert status == 0 and report["responses"] == 500
    expected = figures(simulate(500, 500, 0.2, 1.005, lambda i: i / 100))
    assert expected["p50"] < 201 and expected["p90"] > 1500
    assert_close(report["since_due_ms"], expected)


@six_attempts
def test_open_loop_over_a_stall_with_few_connections(serve, load, files):
    """Requests that found no free connection are not sent during the stall; they count from when they were due all the
    same. What is measured from their sending on looks harmless, and shows that this test can tell."""
    url = serve("-d", 200, "-s", f"1005:{STALL * 1e3:.0f}")
    status, report = load.json("-c", 24, "-n", 300, "--rate", 100, url, files)
    assert status == 0 and report["responses"] == 300
    assert_close(report["since_due_ms"], figures(simulate(300, 24, 0.2, 1.005, lambda i: i / 100)))
    assert report["response_time_ms"]["p90"] < 220 and report["since_due_ms"]["p50"] > 1000
