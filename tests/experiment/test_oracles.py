"""The oracles by known answers, by a clock of small steps, and by theory."""

import random

import oracles
import pytest


@pytest.mark.parametrize("cores, srpt, shared", [(1, [1, 3], [2, 3]), (2, [1, 2], [1, 2])])
def test_two_requests_at_once(cores, srpt, shared):
    assert oracles.srpt([0, 0], [1, 2], cores) == pytest.approx(srpt)
    assert oracles.processor_sharing([0, 0], [1, 2], cores) == pytest.approx(shared)


@pytest.mark.parametrize("due, work, cores, srpt, shared", [
    # On two cores the longest of three waits, and the fourth comes before it.
    ([0, 0, 0, 1], [4, 6, 1, 1], 1, [6, 12, 1, 2], [10, 12, 11 / 3, 14 / 3]),
    ([0, 0, 0, 1], [4, 6, 1, 1], 2, [4, 8, 1, 2], [5, 7, 5 / 3, 8 / 3]),
    ([0, 0, 0, 1], [4, 6, 1, 1], 3, [4, 6, 1, 2], [4, 6, 1, 2]),
    # On two cores the last one interrupts the first, which has the most left.
    ([0, 0, 1], [5, 3, 1], 1, [9, 4, 2], [9, 7, 4]),
    ([0, 0, 1], [5, 3, 1], 2, [6, 3, 2], [5.5, 3.5, 2.5]),
    ([0, 0, 1], [5, 3, 1], 3, [5, 3, 2], [5, 3, 2])])
def test_requests_on_several_cores(due, work, cores, srpt, shared):
    assert oracles.srpt(due, work, cores) == pytest.approx(srpt)
    assert oracles.processor_sharing(due, work, cores) == pytest.approx(shared)


def test_a_short_request_interrupts_a_long_one():
    assert oracles.srpt([0, 2, 20], [10, 1, 1], 1) == pytest.approx([11, 3, 21])
    # It gets half of the core: 2 of the work at 2, and 3 at 4.
    assert oracles.processor_sharing([0, 2], [10, 1], 1) == pytest.approx([11, 4])
    # The long one that has little left is not interrupted.
    assert oracles.srpt([0, 9.5], [10, 1], 1) == pytest.approx([10, 11])


def by_steps(due, work, cores, shares, step=1 / 512):
    """Serves the requests step by step. shares: from the remaining work of those present."""
    left, ends, now = list(work), [0.0] * len(due), 0.0
    while any(x > 0 for x in left):
        present = [i for i, at in enumerate(due) if at <= now and left[i] > 0]
        for i, share in shares([(left[i], i) for i in present], cores):
            left[i] -= share * step
            if left[i] <= 1e-9:
                left[i], ends[i] = 0, now + step
        now += step
    return ends


def least_first(present, cores):
    return [(i, 1) for _, i in sorted(present)[:cores]]


def equally(present, cores):
    return [(i, min(1, cores / len(present))) for _, i in present]


@pytest.mark.parametrize("oracle, shares", [(oracles.srpt, least_first),
                                            (oracles.processor_sharing, equally)])
@pytest.mark.parametrize("cores", [1, 2, 3])
def test_the_oracles_do_what_a_clock_of_small_steps_does(oracle, shares, cores):
    rng = random.Random(cores)
    due = sorted(rng.randrange(2048) / 512 for _ in range(12))
    work = [rng.randrange(50, 900) / 512 for _ in due]
    order = rng.sample(range(12), 12)  # requests need not be in the order of their times
    due, work = [due[i] for i in order], [work[i] for i in order]
    assert oracle(due, work, cores) == pytest.approx(by_steps(due, work, cores, shares), abs=0.03)


def test_processor_sharing_slows_all_sizes_alike():
    """The mean slowdown in M/G/1 is 1 / (1 - load) for each size (Kleinrock 1976), here at 0.5."""
    rng, now, due = random.Random(8), 0.0, []
    for _ in range(20000):
        now += rng.expovariate(0.5)
        due.append(now)
    work = [rng.choice((0.1, 0.1, 0.1, 3.7)) for _ in due]
    ends = oracles.processor_sharing(due, work, 1)
    for size in (0.1, 3.7):
        mine = [(end - at) / own for end, at, own in zip(ends, due, work) if own == size]
        assert sum(mine) / len(mine) == pytest.approx(2, rel=0.1)
    best = oracles.srpt(due, work, 1)
    assert sum(best) < sum(ends)
