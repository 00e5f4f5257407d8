"""The statistics of paired runs, by known answers."""

import math
import random

import paired
import pytest


@pytest.mark.parametrize("share, freedom, t", [  # from printed tables
    (0.975, 1, 12.706), (0.975, 3, 3.182), (0.975, 11, 2.201), (0.995, 5, 4.032),
    (0.8, 10, 0.879), (0.9995, 20, 3.850), (0.975, 10**6, 1.960)])
def test_quantiles_of_student_are_those_of_the_tables(share, freedom, t):
    assert paired.t_quantile(share, freedom) == pytest.approx(t, abs=0.0006)


def test_interval_is_that_of_a_textbook():
    """Logarithms 1, 2, 3, 4, 5: mean 3, standard error sqrt(0.5), t = 2.776."""
    interval = paired.Pairs([math.exp(x) for x in (1, 2, 3, 4, 5)]).interval(0.05)
    assert math.log(interval.ratio) == pytest.approx(3)
    assert math.log(interval.low) == pytest.approx(3 - 2.7764 * math.sqrt(0.5), abs=1e-3)
    assert math.log(interval.high) == pytest.approx(3 + 2.7764 * math.sqrt(0.5), abs=1e-3)
    assert interval.level == 0.95


def test_one_round_decides_nothing():
    pairs = paired.Pairs([1.5])
    assert pairs.interval().low == 0 and pairs.interval().high == math.inf
    assert paired.family([(pairs, (1, math.inf))])[0] == paired.OPEN


def test_p_value_is_the_alpha_whose_interval_ends_at_the_bound():
    pairs = paired.Pairs([1.01, 1.03, 1.02, 1.05, 1.00])
    p = pairs.p_value((1, math.inf))
    assert pairs.interval(p).low == pytest.approx(1, abs=1e-9)
    # With two bounds it is the nearer one.
    p = pairs.p_value((1 / 1.03, 1.03))
    assert pairs.interval(p).high == pytest.approx(1.03, abs=1e-9)


def test_holm_is_that_of_his_paper():
    """The p-values 0.005, 0.01, 0.03, 0.04: two are below 0.05 / 4 and 0.05 / 3, the third is above
    0.05 / 2, so that the fourth is not decided although it is below 0.05."""
    alphas = paired.holm([0.01, 0.04, 0.03, 0.005])
    assert alphas == pytest.approx([0.05 / 3, 0.05 / 2, 0.05 / 2, 0.05 / 4])
    assert paired.holm([0.01, 0.02]) == pytest.approx([0.025, 0.05])
    assert paired.holm([]) == []


@pytest.mark.parametrize("low, high, region, verdict", [
    (1.01, 1.05, (1, math.inf), paired.HOLDS),
    (0.99, 1.05, (1, math.inf), paired.OPEN),
    (0.95, 0.99, (1, math.inf), paired.HOLDS_NOT),
    (0.985, 1.015, (0.98, 1.02), paired.HOLDS),
    (0.985, 1.025, (0.98, 1.02), paired.OPEN),
    (1.021, 1.025, (0.98, 1.02), paired.HOLDS_NOT),
])
def test_the_interval_decides(low, high, region, verdict):
    assert paired.decide(paired.Interval(1, low, high, 0.95), region) == verdict


def test_a_claim_of_several_comparisons_needs_all_and_one_refutes_it():
    more, less = paired.Pairs([1.1, 1.11, 1.09, 1.1]), paired.Pairs([0.9, 0.91, 0.89, 0.9])
    noise = paired.Pairs([0.9, 1.1, 1.2, 0.85])
    region = (1, math.inf)
    assert paired.family([(more, region), (more, region)])[0] == paired.HOLDS
    assert paired.family([(more, region), (noise, region)])[0] == paired.OPEN
    assert paired.family([(more, region), (noise, region), (less, region)])[0] == paired.HOLDS_NOT
    assert paired.family([]) == (paired.OPEN, [])


def test_more_comparisons_widen_the_intervals():
    pairs, region = paired.Pairs([1.01, 1.03, 1.02, 1.05, 1.00]), (1, math.inf)
    alone = paired.family([(pairs, region)])[1][0]
    noise = paired.Pairs([0.9, 1.1, 1.2, 0.85, 1.0])
    among = paired.family([(pairs, region)] + [(noise, region)] * 9)[1][0]
    assert among.low < alone.low and among.high > alone.high


def test_equal_configurations_are_rarely_told_apart():
    """With noise alone, at most 5 % of the families of ten comparisons decide anything."""
    rng, wrong, families = random.Random(1), 0, 400
    for _ in range(families):
        comparisons = [(paired.Pairs([math.exp(rng.gauss(0, 0.01)) for _ in range(6)]),
                        (1, math.inf)) for _ in range(10)]
        _, intervals = paired.family(comparisons)
        wrong += any(interval.low > 1 or interval.high < 1 for interval in intervals)
    assert wrong <= 0.05 * families + 3 * math.sqrt(0.05 * 0.95 * families)


def test_residual_spread_leaves_out_rounds_and_configurations():
    rounds, names, noise = (1, 2, 0.5, 1.5), (10, 20, 30), 0
    exact = [[name * number for number in rounds] for name in names]
    assert paired.residual_spread(exact) == pytest.approx(noise, abs=1e-12)
    rng = random.Random(2)
    rows = [[name * number * math.exp(rng.gauss(0, 0.01)) for number in rounds * 25]
            for name in names * 4]
    assert paired.residual_spread(rows) == pytest.approx(0.01, rel=0.1)
    assert paired.residual_spread([[1, 2]]) is None


def test_rounds_follow_from_the_difference():
    """Fifteen rounds find 1 % with a spread of 0.88 %; the normal distribution would say 12."""
    assert paired.rounds_needed(0.0088, 0.01) == 15
    assert paired.detectable(0.0088, 15) <= 0.01 < paired.detectable(0.0088, 14)
    assert paired.detectable(0.0088, 15, comparisons=20) > 0.01
    assert paired.detectable(0.0088, 1) == math.inf


def test_the_detectable_difference_is_found_as_often_as_promised():
    rng, rounds, spread, found, runs = random.Random(3), 8, 0.01, 0, 500
    difference = paired.detectable(spread, rounds)
    for _ in range(runs):
        ratios = [math.exp(difference + rng.gauss(0, spread * math.sqrt(2)))
                  for _ in range(rounds)]
        found += paired.Pairs(ratios).interval().low > 1
    assert found / runs == pytest.approx(paired.POWER, abs=0.06)
