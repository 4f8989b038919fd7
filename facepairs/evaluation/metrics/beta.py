"""The beta distribution, for exact binomial tests and Clopper-Pearson's and Student's intervals.

It spares those who only verify and measure scores the 140 MB of SciPy; tests compare with it. Above
10^12 pairs digits are lost.

References:
    Loader, *Fast and Accurate Computation of Binomial Probabilities*, 2000; Digital Library of
    Mathematical Functions, 8.17.22 (the continued fraction).
"""

import math

NORMAL_975 = 1.959963984540054
"""The quantile .975 of the normal distribution."""


def beta_quantile(share: float, a: float, b: float) -> float:
    """Return the x below which this share of a beta distribution lies.

    Args:
        share: Between 0 and 1.
        a: Above 0.
        b: Above 0.
    """
    low, high, x = 0.0, 1.0, a / (a + b)
    while low < x < high:
        below, density = _distribution(x, a, b)
        if below < share:
            low = x
        else:
            high = x
        newton = x - (below - share) / density if density else low
        if abs(newton - x) <= 1e-14 * x:
            return newton
        x = newton if low < newton < high else (low + high) / 2
    return x


def beta_share(x: float, a: float, b: float) -> float:
    """Return the share of a beta distribution below x, which is between 0 and 1."""
    return _distribution(x, a, b)[0]


def student_quantile_975(degrees: int) -> float:
    """Return the quantile .975 of Student's distribution."""
    x = beta_quantile(0.05, degrees / 2, 0.5)
    return math.sqrt(degrees * (1 - x) / x)


def _distribution(x: float, a: float, b: float) -> tuple[float, float]:
    """Return the share of the beta distribution below x, and its density there."""
    n, y = a + b, 1 - x
    excess = a - n * x
    power = math.exp(  # x**a * y**b * gamma(n + 1) / gamma(a + 1) / gamma(b + 1)
        _stirling_error(n)
        - _stirling_error(a)
        - _stirling_error(b)
        - _deviance(excess / (n * x), n * x)
        - _deviance(-excess / (n * y), n * y)
    ) * math.sqrt(n / (2 * math.pi * a * b))
    density = power * a * b / n / x / y
    if x < (a + 1) / (n + 2):
        return power * b / n * _fraction(x, a, b), density
    return 1 - power * a / n * _fraction(y, b, a), density


def _deviance(ratio: float, mean: float) -> float:
    return mean * ((1 + ratio) * math.log1p(ratio) - ratio)


def _stirling_error(x: float) -> float:
    """Return log(x!) minus Stirling's formula."""
    if x < 15:
        return math.lgamma(x + 1) - (x + 0.5) * math.log(x) + x - math.log(2 * math.pi) / 2
    square = x * x
    return (1 / 12 - (1 / 360 - (1 / 1260 - 1 / 1680 / square) / square) / square) / x


def _fraction(x: float, a: float, b: float) -> float:
    """Return the continued fraction of the incomplete beta function, by Lentz's method."""
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    value, m = d, 0
    while True:
        m += 1
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / (1 + term * d)
            c = 1 + term / c
            value *= c * d
        if abs(c * d - 1) < 1e-15:
            return value
