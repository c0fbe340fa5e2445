"""The discrete power law: against what drew the counts, and against `powerlaw`."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import zeta

from openloop.errors import InputError, UndefinedError
from openloop.propensity.solvers.power_law import fit_power_law
from tests.facts import facts


def zipf(alpha: float, n: int, seed: int) -> np.ndarray:
    return np.minimum(np.random.default_rng(seed).zipf(alpha, n), 10**6)


def flat_below(alpha: float, start: int, n: int, seed: int) -> np.ndarray:
    """A power law that begins at `start`; below it all counts are equally frequent."""
    counts = zipf(alpha, n, seed)
    return np.where(counts < start, np.random.default_rng(seed).integers(1, start, n), counts)


def catalogue(items: int, seed: int) -> np.ndarray:
    """Counts as of movies: a long body without a law, and a steep tail."""
    return np.maximum(1, np.rint(np.random.default_rng(seed).lognormal(3.0, 1.6, items)))


SAMPLES = {
    "zipf 1.3": zipf(1.3, 2000, 0),
    "zipf 1.6": zipf(1.6, 1000, 1),
    "zipf 2": zipf(2.0, 1000, 2),
    "zipf 2.5": zipf(2.5, 1000, 3),
    "zipf 5": zipf(5.0, 3000, 4),
    "from 8 on": flat_below(2.2, 8, 2000, 5),
    "catalogue": catalogue(600, 6),
}


# -- by hand and by law --------------------------------------------------------------------------------------


def log_likelihood(counts: np.ndarray, alpha: float, x_min: int) -> float:
    tail = counts[counts >= x_min]
    return float(-alpha * np.log(tail).sum() - len(tail) * np.log(zeta(alpha, x_min)))


# -- by simulation -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [1.5, 2.0, 3.0, 6.0])
def test_the_exponent_that_drew_the_counts_is_found(alpha):
    # The standard error is 1/√(n·var(log x)); that of the continuous law, (α−1)/√n, is near it at small α only.
    n = 20_000
    law = fit_power_law(np.random.default_rng(7).zipf(alpha, n).astype(float), 1)
    x = np.arange(1, 10**6, dtype=float)
    P = x**-alpha / zeta(alpha)
    spread = np.sqrt(P @ np.log(x) ** 2 - (P @ np.log(x)) ** 2)
    assert abs(law.alpha - alpha) < 4 / np.sqrt(n) / spread


# -- by another program --------------------------------------------------------------------------------------


def powerlaw_fit(counts: np.ndarray, x_min: int | None = None):
    """powerlaw 2.0: estimate_discrete=False, or it takes Eq. 3.7 for maximum likelihood; its range ends at 3."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own deprecations, and advice
        import powerlaw

        options = {"estimate_discrete": False, "parameter_ranges": {"alpha": [1.01, 20]}, "verbose": 0}
        return powerlaw.Fit(counts.astype(float), discrete=True, xmin=x_min, **options).power_law


@pytest.mark.parametrize("x_min", [1, 2, 6, 20])
@pytest.mark.parametrize("name", SAMPLES)
def test_exponents_agree_with_powerlaw(name, x_min):
    counts = SAMPLES[name]
    if len(np.unique(counts[counts >= x_min])) < 3:
        x_min = 1
    law, other = fit_power_law(counts, x_min), powerlaw_fit(counts, x_min)
    # It stops its search (Nelder-Mead) at 1e-4, so ours must be at least as likely.
    assert abs(law.alpha - other.alpha) < 1e-4
    assert log_likelihood(counts, law.alpha, x_min) >= log_likelihood(counts, other.alpha, x_min) - 1e-9
    # It looks at P(X < x) at the counts alone, not right after them, so it may miss the largest difference.
    assert law.distance + 1e-4 > other.D


@pytest.mark.parametrize("name", ["zipf 1.6", "zipf 2", "zipf 2.5", "from 8 on", "catalogue"])
def test_the_search_for_the_start_agrees_with_powerlaw(name):
    law, other = fit_power_law(SAMPLES[name]), powerlaw_fit(SAMPLES[name])
    assert law.x_min == other.xmin
    assert abs(law.alpha - other.alpha) < 1e-4


# -- bad input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("counts", [[], [0, 0], [4], [4, 4, 4], [0, 7, 7]])
def test_equal_counts_have_no_exponent(counts):
    seen = [count for count in counts if count]
    different = len(set(seen))
    with pytest.raises(
        UndefinedError, match=facts("fit_power_law", f"{len(seen)} counts", f"{different} different", "gamma=")
    ):
        fit_power_law(counts)


@pytest.mark.parametrize("counts", [[1, -2], [1, np.nan], [np.inf, 2], [[1, 2]]])
def test_what_is_no_count_is_refused(counts):
    with pytest.raises(InputError, match=facts("fit_power_law", "counts", np.shape(counts))):
        fit_power_law(counts)
