"""Statistics of paired runs: intervals of ratios, verdicts on several of them, and rounds.

The runs of a round share the state of the machine. So two configurations are compared by the
logarithms of their ratios, one for each round, whose mean has an interval by Student's t.

"All ratios are in their regions" is an intersection-union test: each interval must be in its region
by itself, without a correction (Berger 1982). "One of them is not" has many chances to be wrong,
and is corrected for the number of ratios (Holm 1979).
"""

import bisect
import collections
import functools
import math
import statistics

ALPHA = 0.05  # the chance of a wrong verdict
ROUNDS_MAX = 1000  # that rounds_to_decide() looks at
POWER = 0.8   # the chance that a difference of the detectable size is found

HOLDS, HOLDS_NOT, OPEN = "holds", "does not hold", "cannot be told"

# ratio: geometric mean; low, high: ends of its interval; level: confidence of the interval, 0..1.
Interval = collections.namedtuple("Interval", "ratio low high level")


# ---- Student's t ----

def _beta_fraction(a, b, x):
    """Returns the continued fraction of the incomplete beta function (Lentz)."""
    tiny, c, d = 1e-300, 1.0, 1 / (1 - (a + b) * x / (a + 1))
    out = d
    for m in range(1, 500):
        for numerator in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                          -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):
            d = 1 / (1 + numerator * d or tiny)
            c = 1 + numerator / c or tiny
            out *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return out


def _beta(a, b, x):
    """Returns the regularised incomplete beta function."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    factor = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
                      + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return factor * _beta_fraction(a, b, x) / a
    return 1 - factor * _beta_fraction(b, a, 1 - x) / b


def t_tails(t, freedom):
    """Returns the chance of a value beyond -t or t."""
    return _beta(freedom / 2, 0.5, freedom / (freedom + t * t))


@functools.cache
def t_quantile(share, freedom):
    """Returns the t below which this share of the values is, for shares above a half."""
    low, high = 0.0, 1.0
    while t_tails(high, freedom) > 2 * (1 - share):
        high *= 2
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if t_tails(middle, freedom) > 2 * (1 - share) else (low, middle)
    return high


# ---- comparisons ----

class Pairs:
    """Ratios of two configurations, one for each round."""

    def __init__(self, ratios):
        self.logs = [math.log(ratio) for ratio in ratios]

    @property
    def rounds(self):
        return len(self.logs)

    @property
    def mean(self):
        return statistics.fmean(self.logs)

    def _error(self):
        return statistics.stdev(self.logs) / math.sqrt(self.rounds)

    def interval(self, alpha=ALPHA):
        """Returns the interval that has the ratio with confidence 1 - alpha. With one round it is
        unbounded."""
        half = math.inf
        if self.rounds > 1:
            half = t_quantile(1 - alpha / 2, self.rounds - 1) * self._error()
        return Interval(math.exp(self.mean), math.exp(self.mean - half),
                        math.inf if math.isinf(half) else math.exp(self.mean + half), 1 - alpha)

    def p_value(self, region):
        """Returns the least alpha at which the interval is outside of the region, or 1 if the ratio
        is inside."""
        if self.rounds < 2 or self.is_inside(region):
            return 1.0
        error = self._error()
        if error == 0:
            return 0.0
        return t_tails(self._distance(region) / error, self.rounds - 1)

    def is_inside(self, region):
        """Returns whether the ratio, without its interval, is in the region."""
        low, high = region
        return low < math.exp(self.mean) < high

    def _distance(self, region):
        """Returns the distance of the ratio from the nearest end of the region."""
        return min(abs(self.mean - math.log(edge)) for edge in region if 0 < edge < math.inf)

    def rounds_to_decide(self, region, alpha=ALPHA):
        """Returns the rounds after which an interval of this mean and spread decides with a chance
        of POWER, or None if that needs more than ROUNDS_MAX, or there is one round."""
        if self.rounds < 2:
            return None
        distance, spread = self._distance(region), statistics.stdev(self.logs)
        rounds = bisect.bisect_left(range(2, ROUNDS_MAX + 1), True, key=lambda rounds: _reach(
            rounds, alpha) * spread <= distance) + 2
        return rounds if rounds <= ROUNDS_MAX else None


@functools.cache
def _reach(rounds, alpha):
    """Returns the distance, in spreads of one comparison, that this number of rounds decides with a
    chance of POWER."""
    return ((t_quantile(1 - alpha / 2, rounds - 1) + t_quantile(POWER, rounds - 1))
            / math.sqrt(rounds))


def holm(p_values, alpha=ALPHA):
    """Returns the alpha of each comparison of a family (Holm 1979). The least p-value gets alpha /
    m, the next alpha / (m - 1), until one is larger than its alpha: it and the rest keep that."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    out, rejects, own = [0.0] * len(p_values), True, alpha
    for rank, i in enumerate(order):
        if rejects:
            own = alpha / (len(p_values) - rank)
            rejects = p_values[i] <= own
        out[i] = own
    return out


def decide(interval, region):
    """Returns whether the ratio is in the region (low, high). Only the interval decides."""
    low, high = region
    if interval.low > low and interval.high < high:
        return HOLDS
    if interval.high <= low or interval.low >= high:
        return HOLDS_NOT
    return OPEN


def family(comparisons):
    """Decides a claim that consists of several comparisons, each (pairs, region). It holds if each
    holds by itself, and does not hold if one does not after the correction for their number.
    Returns the verdict, the interval of each comparison by itself, and what each of them says."""
    if not comparisons:
        return OPEN, [], []
    intervals = [pairs.interval() for pairs, _ in comparisons]
    alphas = holm([pairs.p_value(region) for pairs, region in comparisons])
    each = [HOLDS if decide(interval, region) == HOLDS
            else HOLDS_NOT if decide(pairs.interval(alpha), region) == HOLDS_NOT else OPEN
            for interval, alpha, (pairs, region) in zip(intervals, alphas, comparisons)]
    verdict = HOLDS_NOT if HOLDS_NOT in each else OPEN if OPEN in each else HOLDS
    return verdict, intervals, each


def rounds_to_decide(comparisons):
    """Returns the rounds that would decide a claim if the ratios and spreads stay: until one ratio
    outside refutes it, or until each inside is decided. None: more than ROUNDS_MAX, or unknown."""
    outside = [each for each in comparisons if not each[0].is_inside(each[1])]
    if outside:
        counts = [pairs.rounds_to_decide(region, ALPHA / len(comparisons))
                  for pairs, region in outside]
        return min((count for count in counts if count), default=None)
    counts = [pairs.rounds_to_decide(region) for pairs, region in comparisons]
    return None if None in counts else max(counts)


# ---- the design ----

def residual_spread(rows):
    """Returns the standard deviation of one run's logarithm, without the effects of round and
    configuration. rows: for each configuration its values by round. None if there are too few."""
    rows = [[math.log(value) for value in row] for row in rows]
    if len(rows) < 2 or len(rows[0]) < 2:
        return None
    rounds, count = len(rows[0]), len(rows)
    of_row = [statistics.fmean(row) for row in rows]
    of_round = [statistics.fmean(row[k] for row in rows) for k in range(rounds)]
    mean = statistics.fmean(of_row)
    squares = sum((row[k] - of_row[i] - of_round[k] + mean) ** 2
                  for i, row in enumerate(rows) for k in range(rounds))
    return math.sqrt(squares / ((rounds - 1) * (count - 1)))


def detectable(spread, rounds, comparisons=1):
    """Returns the smallest difference that this number of rounds finds with a chance of POWER, as a
    share, if that many comparisons are corrected for their number."""
    if rounds < 2:
        return math.inf
    return _reach(rounds, ALPHA / comparisons) * math.sqrt(2) * spread
