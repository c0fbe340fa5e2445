"""The bounds of Schnabel et al. 2016: Proposition 3.1, Theorem 4.2, Lemma 5.1 and Theorem 5.2."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from openloop.core.estimate import Estimate, Interval
from openloop.core.feedback import Floats, check_propensities
from openloop.errors import InputError, UndefinedError


def tail_bound(delta: npt.ArrayLike, propensity: npt.ArrayLike, eta: float = 0.05) -> float:
    """Proposition 3.1: with probability 1 − η, |R̂_IPS − R| is at most this; δ is a grid, or a bound Δ on it."""
    p = _grid(propensity)
    # ρ_ui = δ_ui / P_ui if P_ui < 1, else 0
    rho = np.where(p < 1, np.broadcast_to(np.asarray(delta, np.float64), p.shape) / p, 0.0)
    return _tail(float(np.square(rho).sum()), p.size, eta)


def hoeffding(estimate: Estimate, bound: float, level: float = 0.95) -> Interval:
    """Proposition 3.1 around an ips estimate whose δ lies in [0, Δ]; it needs the whole grid of p."""
    known = estimate.diagnostics
    if estimate.method != "ips" or estimate.root:
        msg = f"hoeffding: Proposition 3.1 is about ips of a mean, this is {estimate.method} of {estimate.metric}."
        raise UndefinedError(msg)
    if known.inverse_squares is None or known.population is None:
        msg = "hoeffding: needs the whole grid of propensities; evaluate with a fitted model that has matrix()."
        raise UndefinedError(msg)
    if not bound > 0:
        raise InputError(f"hoeffding: bound must be a positive upper limit of δ, got {bound}.")
    half = _tail(bound**2 * known.inverse_squares, known.population, 1 - level)
    return Interval(estimate.value - half, estimate.value + half)


def generalisation_bound(
    risk: float, propensity: npt.ArrayLike, bound: float, hypotheses: int, eta: float = 0.05
) -> float:
    """Theorem 4.2: with probability 1 − η the true risk of the minimiser of R̂_IPS = `risk` is at most this."""
    p = _grid(propensity)
    # Eq. 13: R̂ + Δ/(U·I) · √(log(2|H|/η)/2) · √Σ 1/P²
    return risk + bound * _complexity(p, hypotheses, eta)


def ips_bias(delta: npt.ArrayLike, propensity: npt.ArrayLike, estimated: npt.ArrayLike) -> float:
    """Lemma 5.1: R − E[R̂_IPS] under the estimated propensities P̂."""
    p, p_hat = _pair(propensity, estimated)
    # Eq. 15: Σ δ/(U·I) · [1 − P/P̂]
    return float(np.sum(np.asarray(delta, np.float64) * (1 - p / p_hat)) / p.size)


def inaccurate_bound(
    risk: float,
    propensity: npt.ArrayLike,
    estimated: npt.ArrayLike,
    bound: float,
    hypotheses: int,
    eta: float = 0.05,
) -> float:
    """Theorem 5.2: Theorem 4.2 when the minimiser used estimated propensities P̂."""
    p, p_hat = _pair(propensity, estimated)
    # Eq. 16: R̂ + Δ/(U·I) Σ|1 − P/P̂| + Δ/(U·I) √(log(2|H|/η)/2) √Σ 1/P̂²
    bias = bound * float(np.abs(1 - p / p_hat).sum()) / p.size
    return risk + bias + bound * _complexity(p_hat, hypotheses, eta)


def inverse_squares(propensity: Floats) -> float:
    """Σ 1/p² over the cells that are not certain."""
    return float(np.square(1.0 / propensity[propensity < 1]).sum())


def _complexity(p: Floats, hypotheses: int, eta: float) -> float:
    if hypotheses < 1:
        raise InputError(f"hypotheses must be at least 1, got {hypotheses}.")
    return math.sqrt(math.log(2 * hypotheses / _chance(eta)) / 2) * math.sqrt(float((1 / p**2).sum())) / p.size


def _tail(squares: float, cells: float, eta: float) -> float:
    # (1/(U·I)) √( (log(2/η)/2) Σ ρ² )
    return math.sqrt(math.log(2 / _chance(eta)) / 2 * squares) / cells


def _chance(eta: float) -> float:
    if not 0 < eta < 1:
        raise InputError(f"eta must lie strictly between 0 and 1, got {eta}.")
    return eta


def _pair(propensity: npt.ArrayLike, estimated: npt.ArrayLike) -> tuple[Floats, Floats]:
    p, p_hat = _grid(propensity), _grid(estimated)
    if p.shape != p_hat.shape:
        raise InputError(f"the grids of P {p.shape} and P̂ {p_hat.shape} must have one shape.")
    return p, p_hat


def _grid(propensity: npt.ArrayLike) -> Floats:
    p = np.asarray(propensity, np.float64)
    check_propensities("propensity", p.ravel(), "give the probability of every cell.")
    return p
