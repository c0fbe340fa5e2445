"""Tests of dependent correlations, which have one variable in common: Williams' t and Steiger's Z."""

from __future__ import annotations

import math
from dataclasses import dataclass

from openloop.errors import InputError, UndefinedError
from openloop.support.arguments import is_whole


@dataclass(frozen=True, slots=True, kw_only=True)
class DependentTest:
    """A two-sided test of r_jk = r_jh, two correlations with one variable in common.

    Attributes:
        statistic: t or Z.
        df: The degrees of freedom of t; None for a normal statistic.
        pvalue: The two-sided p-value.
        method: The name of the test.

    Examples:
        >>> ol.rankings.williams(0.5, 0.3, 0.4, 100).df
        97
    """

    statistic: float
    df: int | None
    pvalue: float
    method: str


def williams(r_jk: float, r_jh: float, r_kh: float, n: int) -> DependentTest:
    """Williams' t of r_jk = r_jh, two-sided, for Pearson correlations over n cases (Steiger 1980, Eq. 7).

    It is not a valid test of two Kendall's τ, whose variance differs: over 104 models it rejects a true equality in
    0.3 % of samples where 5 % are asked for. Use `compare_tau` for these.

    Args:
        r_jk: The correlation of j and k.
        r_jh: The correlation of j and h.
        r_kh: The correlation of k and h.
        n: The number of cases.

    Returns:
        The test, by t with n − 3 degrees of freedom.

    Raises:
        InputError: No three variables have these correlations.

    Examples:
        >>> round(ol.rankings.williams(0.5, 0.3, 0.4, 100).pvalue, 3)
        0.042
    """
    from scipy.special import stdtr

    determinant = _check_correlations("williams", r_jk, r_jh, r_kh, n)
    mean = (r_jk + r_jh) / 2
    # Eq. 7: t = (r_jk − r_jh) √[(n−1)(1+r_kh) / (2(n−1)/(n−3)·|R| + r̄²(1−r_kh)³)], n − 3 degrees of freedom
    under = 2 * (n - 1) / (n - 3) * determinant + mean**2 * (1 - r_kh) ** 3
    if under <= 0:
        raise UndefinedError("williams: the three correlations leave no variance to test with; use compare_tau.")
    t = (r_jk - r_jh) * math.sqrt((n - 1) * (1 + r_kh) / under)
    return DependentTest(statistic=t, df=n - 3, pvalue=float(2 * stdtr(n - 3, -abs(t))), method="Williams' t")


def steiger(r_jk: float, r_jh: float, r_kh: float, n: int) -> DependentTest:
    """Steiger's Z̄₁* of r_jk = r_jh, two-sided, for Pearson correlations over n cases (Steiger 1980, Eq. 14).

    Args:
        r_jk: The correlation of j and k.
        r_jh: The correlation of j and h.
        r_kh: The correlation of k and h.
        n: The number of cases.

    Returns:
        The test, by the normal distribution.

    Raises:
        InputError: No three variables have these correlations.

    Examples:
        >>> round(ol.rankings.steiger(0.5, 0.3, 0.4, 100).pvalue, 3)
        0.042
    """
    from scipy.special import ndtr

    _check_correlations("steiger", r_jk, r_jh, r_kh, n)
    r = ((r_jk + r_jh) / 2) ** 2
    # Eq. 3 and 10 at the pooled r̄: s̄ = [r_kh(1 − 2r̄²) − ½r̄²(1 − 2r̄² − r_kh²)]/(1 − r̄²)²
    s = (r_kh * (1 - 2 * r) - r * (1 - 2 * r - r_kh**2) / 2) / (1 - r) ** 2
    if s >= 1:
        raise UndefinedError("steiger: the three correlations leave no variance to test with; use compare_tau.")
    # Eq. 14: Z̄₁* = √(n−3) (z_jk − z_jh)/√(2 − 2s̄)
    z = math.sqrt(n - 3) * (math.atanh(r_jk) - math.atanh(r_jh)) / math.sqrt(2 - 2 * s)
    return DependentTest(statistic=z, df=None, pvalue=float(2 * ndtr(-abs(z))), method="Steiger's Z̄₁*")


def _check_correlations(name: str, r_jk: float, r_jh: float, r_kh: float, n: int) -> float:
    """The determinant |R| of the three correlations, which exist together where it is not negative."""
    if not is_whole(n) or n < 4:
        raise InputError(f"{name}: n must be a whole number from 4, got {n!r}.")
    for label, r in (("r_jk", r_jk), ("r_jh", r_jh), ("r_kh", r_kh)):
        if not -1 < r < 1:
            raise InputError(f"{name}: {label} must lie strictly between -1 and 1, got {r}.")
    determinant = 1 - r_jk**2 - r_jh**2 - r_kh**2 + 2 * r_jk * r_jh * r_kh
    if determinant < -1e-9:
        raise InputError(
            f"{name}: no three variables have correlations {r_jk:g}, {r_jh:g} and {r_kh:g} (|R| = {determinant:.3g}); "
            "take all three from the same cases."
        )
    return max(determinant, 0.0)
