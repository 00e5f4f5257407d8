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
    assert pairs.interval(pairs.p_value((0, 1))).low == pytest.approx(1, abs=1e-9)
    # With two bounds it is the nearer one. A ratio inside is never outside.
    assert pairs.interval(pairs.p_value((0.98, 1.01))).low == pytest.approx(1.01, abs=1e-9)
    assert pairs.p_value((1, math.inf)) == 1


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
    assert paired.family([]) == (paired.OPEN, [], [])


def test_all_needs_no_correction_and_one_of_them_does():
    """A p-value of 0.02 is enough for each of ten ratios that must all be above 1, and for one that is
    below. It is not enough for one of ten that may be below by chance."""
    logs = [0.005, 0.03, 0.02, 0.012, 0.004, 0.001]
    above, region = paired.Pairs([math.exp(x) for x in logs]), (1, math.inf)
    below = paired.Pairs([math.exp(-x) for x in logs])
    assert 0.01 < below.p_value(region) < 0.05
    assert paired.family([(above, region)] * 10)[0] == paired.HOLDS
    assert paired.family([(below, region)])[0] == paired.HOLDS_NOT
    assert paired.family([(below, region)] + [(above, region)] * 9)[0] == paired.OPEN


def noise(rng, mean=0.0, rounds=6):
    return paired.Pairs([math.exp(rng.gauss(mean, 0.01)) for _ in range(rounds)])


@pytest.mark.parametrize("means, wrong_verdict", [
    ([0.0] * 10, paired.HOLDS),                # on the border: not all are above 1
    ([0.0] + [0.1] * 9, paired.HOLDS),         # the hardest case: only one is not
    ([1e-9] * 10, paired.HOLDS_NOT),           # all are, by nothing
])
def test_wrong_verdicts_are_rare(means, wrong_verdict):
    rng, families = random.Random(1), 400
    wrong = sum(paired.family([(noise(rng, mean), (1, math.inf)) for mean in means])[0]
                == wrong_verdict for _ in range(families))
    assert wrong <= 0.05 * families + 3 * math.sqrt(0.05 * 0.95 * families)


@pytest.mark.parametrize("means", [[0.004], [0.004, 0.02], [-0.005, 0.02]])
def test_the_rounds_that_would_tell_do(means):
    rng, region, told = random.Random(5), (1, math.inf), 0
    wide = [(noise(rng, mean, 4000), region) for mean in means]
    rounds = paired.rounds_to_decide(wide)
    assert 5 < rounds < 120
    for _ in range(200):
        told += paired.family([(noise(rng, mean, rounds), region) for mean in means])[0] != paired.OPEN
    assert told / 200 > paired.POWER - 0.1
    nothing = [(paired.Pairs([1.01, 0.99, 1.01, 0.99]), region)]
    assert paired.rounds_to_decide(nothing) is None


def test_swapped_rounds_widen_the_interval():
    """The rounds differ by far more than the configurations; pairs of one round do not show it."""
    state = [1, 1.3, 0.8, 1.15, 0.9, 1.05]
    ours = [1.02 * of_round for of_round in state]
    whole = paired.Pairs([a / b for a, b in zip(ours, state)]).interval()
    ours[0], ours[1] = ours[1], ours[0]
    swapped = paired.Pairs([a / b for a, b in zip(ours, state)]).interval()
    assert whole.low > 1 > swapped.low and swapped.high > 1.1 > whole.high


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
