"""darkroom-load measures right: against a server with known delays, every percentile is within 1 %.

Where that is allowed, both sides get priority over other processes. Otherwise a busy machine may
delay them. It cannot make a wrong measurement right in all figures at once, so each test may try
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
    """Processes started by the test inherit the priority."""
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

    def nearest_rank(share):
        return ordered[max(0, math.ceil(share * len(ordered) - 1e-9) - 1)]

    found = {key: nearest_rank(share) * 1e3 for key, share in KEYS.items()}
    return {**found, "mean": sum(ordered) / len(ordered) * 1e3}


def assert_close(measured, expected):
    wrong = {key: (measured[key], value) for key, value in expected.items()
             if abs(measured[key] - value) > value * 0.01}
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
    """Like photographs: many short delays, few long ones. All differ."""
    chance = random.Random(1)
    return [round(median * math.exp(sigma * chance.gauss(0, 1)), 5) for _ in range(count)]


def simulate(count, connections, delay, stall_at, due):
    """Returns the latencies since due(i) of requests that wait for a connection in order.

    The server answers after a delay and does nothing for STALL seconds from stall_at on. If due is
    None, the loop is closed."""
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
    """Only requests that were in flight when the server stalled have waited. They are few, because
    those of all connections are due at the same time."""
    url = serve("-d", 200, "-s", f"900:{STALL * 1e3:.0f}")
    status, report = load.json("-c", 10, "-n", 150, url, files)
    assert status == 0 and report["responses"] == 150
    expected = figures(simulate(150, 10, 0.2, 0.9, None))
    assert expected["p90"] < 201 and expected["p99"] > STALL * 1e3
    assert_close(report["response_time_ms"], expected)


@six_attempts
def test_open_loop_over_a_stall(serve, load, files):
    """Every request that was due during the stall has waited.

    After the stall the server needs 60 us for each of 110 requests. 220 would make the mean 1 %
    too long."""
    url = serve("-d", 200, "-s", f"1005:{STALL * 1e3:.0f}")
    status, report = load.json("-c", 250, "-n", 250, "--rate", 50, url, files)
    assert status == 0 and report["responses"] == 250
    expected = figures(simulate(250, 250, 0.2, 1.005, lambda i: i / 50))
    assert expected["p50"] < 201 and expected["p90"] > 1500
    assert_close(report["since_due_ms"], expected)


@six_attempts
def test_open_loop_over_a_stall_with_few_connections(serve, load, files):
    """Requests that found no free connection are not sent during the stall, but count from when
    they were due. Times from sending look harmless, so the test tells the two apart."""
    url = serve("-d", 200, "-s", f"1005:{STALL * 1e3:.0f}")
    status, report = load.json("-c", 24, "-n", 300, "--rate", 100, url, files)
    assert status == 0 and report["responses"] == 300
    assert_close(report["since_due_ms"], figures(simulate(300, 24, 0.2, 1.005, lambda i: i / 100)))
    assert report["response_time_ms"]["p90"] < 220 and report["since_due_ms"]["p50"] > 1000
