"""The arrivals and the work of an open loop of tests/bench/synthetic, drawn again from its seed. Neither
depends on the policy, and a test compares both with the program."""

import itertools
import math

NUMBERS = 1 << 64


def _mix(x):
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 % NUMBERS
    x = (x ^ x >> 27) * 0x94d049bb133111eb % NUMBERS
    return x ^ x >> 31


def _exponentials(seed, stream):
    """Yields numbers with an exponential distribution of mean 1, by a stream of src/base/random.h."""
    state = _mix(_mix(seed) + 0x632be59bd9b4e019 * (stream + 1) & NUMBERS - 1)
    while True:
        state = (state + 0x9e3779b97f4a7c15) % NUMBERS
        yield -math.log(((_mix(state) >> 11) + 1) * 2.0 ** -53)


def draw(seed, rate, sources, means_us, seconds):
    """Returns when each event is due, in seconds, and its work: the sum of its CPU times over all
    stages, which have these means. Events come from several sources in turns."""
    due, work = [], []
    for source in range(sources):
        now = 0.0
        for number, gap in zip(itertools.count(source, sources),
                               _exponentials(seed, NUMBERS // 2 - 1 - source)):
            now += gap * sources / rate
            if now >= seconds:
                break
            due.append(now)
            work.append(sum(us * time for us, time in zip(
                means_us, _exponentials(seed, number))) / 1e6)
    return due, work
