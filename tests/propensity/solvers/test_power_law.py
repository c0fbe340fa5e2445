"""The discrete power law: against sums over all integers, against what drew the counts, and against `powerlaw`."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import zeta

from openloop.errors import InputError, UndefinedError
from openloop.propensity.solvers import power_law
from openloop.propensity.solvers.power_law import PowerLaw, fit_power_law
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


@pytest.mark.parametrize("x_min", [1, 5])
def test_at_the_maximum_the_law_expects_the_mean_logarithm_of_the_counts(x_min):
    # The score of an exponential family: Σ_x log(x) P(x) = mean of log x. At α > 4 a million terms are all of it.
    counts = zipf(5.0, 3000, 4)
    law = fit_power_law(counts, x_min)
    x = np.arange(x_min, 10**6, dtype=float)
    expected = np.sum(np.log(x) * x**-law.alpha) / np.sum(x**-law.alpha)
    assert np.isclose(expected, np.log(counts[counts >= x_min]).mean(), rtol=1e-8)


def test_far_from_one_it_is_the_continuous_law():
    # Clauset et al. Eq. 3.7: α ≈ 1 + n / Σ log(x / (x_min − ½)), with an error of order 1/x_min²
    counts = np.rint(1000 * (1 - np.random.default_rng(0).random(500)) ** (-1 / 1.5))
    approximate = 1 + len(counts) / np.log(counts / 999.5).sum()
    assert np.isclose(fit_power_law(counts, 1000).alpha, approximate, rtol=1e-6)


@pytest.mark.parametrize("name", SAMPLES)
def test_no_other_exponent_is_more_likely(name):
    counts, law = SAMPLES[name], fit_power_law(SAMPLES[name], 2)
    best = log_likelihood(counts, law.alpha, 2)
    for other in (law.alpha - 1e-3, law.alpha + 1e-3):
        assert log_likelihood(counts, other, 2) < best


def distance_over_all_integers(counts: np.ndarray, alpha: float, x_min: int) -> float:
    """Clauset's own way: both distribution functions at every integer from x_min to the largest count."""
    tail = np.sort(counts[counts >= x_min])
    x = np.arange(x_min, tail[-1] + 1, dtype=float)
    law = np.cumsum(x**-alpha) / zeta(alpha, x_min)
    return float(np.abs(law - np.searchsorted(tail, x, "right") / len(tail)).max())


@pytest.mark.parametrize("name", ["zipf 2.5", "zipf 5", "from 8 on", "catalogue"])
def test_distance_and_start_are_those_of_a_search_over_all_integers(name):
    counts = np.minimum(SAMPLES[name], 3000)
    law = fit_power_law(counts)
    assert np.isclose(law.distance, distance_over_all_integers(counts, law.alpha, law.x_min), rtol=1e-9)
    distances = {}
    for x_min in np.unique(counts)[:-1]:
        alpha = fit_power_law(counts, int(x_min)).alpha
        distances[int(x_min)] = distance_over_all_integers(counts, alpha, int(x_min))
    assert law.x_min == min(distances, key=distances.get)
    assert law.tail == np.sum(counts >= law.x_min)


def test_the_start_that_was_found_can_be_given():
    counts = SAMPLES["catalogue"]
    found = fit_power_law(counts)
    given = fit_power_law(counts, found.x_min)
    assert (given.x_min, given.tail) == (found.x_min, found.tail)
    np.testing.assert_allclose([given.alpha, given.distance], [found.alpha, found.distance], rtol=1e-9)


def test_order_and_zeros_do_not_matter():
    counts = SAMPLES["from 8 on"]
    assert fit_power_law(np.append(counts[::-1], [0, 0, 0])) == fit_power_law(counts)


def test_counts_that_are_not_whole_are_rounded_to_at_least_one():
    assert fit_power_law([0.2, 1.4, 2.6, 7.9, 0]) == fit_power_law([1, 1, 3, 8])


def test_scaled_zeta_is_the_zeta_of_scipy():
    x = np.array([1.0, 2, 17, 99, 100, 101, 1000, 70_000, 1e6])
    for alpha in (1.01, 1.5, 2.0, 3.3, 8.0, 14.0, 20.0):
        np.testing.assert_allclose(power_law._scaled_zeta(alpha, x), x**alpha * zeta(alpha, x), rtol=5e-15)


def test_the_exponent_stays_in_its_range():
    assert np.isclose(fit_power_law([1000, 1000, 1001]).alpha, 20)
    assert np.isclose(fit_power_law([1, 1e200]).alpha, 1.01)


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


@pytest.mark.parametrize("seed", range(4))
def test_counts_below_the_start_of_the_law_are_left_out(seed):
    # Where in a true tail the search begins is chance; that it begins no earlier is not.
    counts = flat_below(2.2, 8, 50_000, seed)
    law = fit_power_law(counts)
    assert 8 <= law.x_min < 30
    assert abs(law.alpha - 2.2) < 4 * 1.2 / np.sqrt(law.tail)
    assert fit_power_law(counts, 1).alpha < 1.6


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


def test_movielens_agrees_with_powerlaw(data_dir):
    items = np.loadtxt(data_dir("ml-100k") / "u.data", dtype=int)[:, 1]
    counts = np.bincount(items)
    law, other = fit_power_law(counts), powerlaw_fit(counts[counts > 0])
    assert law.x_min == other.xmin == 275
    # ζ(5.3, 275) is 1e-11, of which it keeps five digits: it computes 1 − (1 − ζ).
    assert abs(law.alpha - other.alpha) < 1e-3
    assert law.alpha > 5  # beyond the end of its default range, 3


# -- bad input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("counts", [[], [0, 0], [4], [4, 4, 4], [0, 7, 7]])
def test_equal_counts_have_no_exponent(counts):
    seen = [count for count in counts if count]
    different = len(set(seen))
    with pytest.raises(
        UndefinedError, match=facts("fit_power_law", f"{len(seen)} counts", f"{different} different", "gamma=")
    ):
        fit_power_law(counts)


@pytest.mark.parametrize("x_min", [5, 6])
def test_a_tail_of_one_count_has_no_exponent(x_min):
    with pytest.raises(UndefinedError, match=facts("fit_power_law", f"x_min={x_min}", "gamma=")):
        fit_power_law([1, 2, 3, 5, 5], x_min)


@pytest.mark.parametrize("counts", [[1, -2], [1, np.nan], [np.inf, 2], [[1, 2]]])
def test_what_is_no_count_is_refused(counts):
    with pytest.raises(InputError, match=facts("fit_power_law", "counts", np.shape(counts))):
        fit_power_law(counts)


@pytest.mark.parametrize("x_min", [0, -1, 1.5, True, "2", np.nan])
def test_a_start_must_be_a_whole_number(x_min):
    with pytest.raises(InputError, match=facts("fit_power_law", "x_min", repr(x_min))):
        fit_power_law([1, 2, 3], x_min)


def test_the_result_is_a_frozen_value():
    law = fit_power_law([1, 1, 1, 2, 2, 4])
    assert law == PowerLaw(alpha=law.alpha, x_min=law.x_min, distance=law.distance, tail=law.tail)
    with pytest.raises(AttributeError):
        law.alpha = 2.0
