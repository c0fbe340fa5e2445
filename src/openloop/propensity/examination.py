"""`Examination`: θ_k, how often position k is looked at, where a log separates position and item."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from openloop.core.feedback import Array, Floats, frozen
from openloop.core.impressions import Impressions
from openloop.core.totals import freedom
from openloop.errors import AlignmentError, InputError, RatingError, UndefinedError, did_you_mean
from openloop.propensity.checks.positions import (
    ExaminationChecks,
    PositionCheck,
    better_items,
    items_above_check,
    one_theta_check,
    reaction_check,
)
from openloop.propensity.solvers.click_models import all_pairs, em
from openloop.propensity.solvers.grouping import KEYS, group, refuse_silent, sums
from openloop.propensity.solvers.harvesting import ThetaCurve, harvest
from openloop.propensity.solvers.randomising import affine, logged_weights, randomised, shuffled_rows
from openloop.support.arguments import check_level

RANDOMISED = ("shuffled", "weighted", "affine")
HARVESTED = ("harvest", "all_pairs", "em")
METHODS: dict[str, tuple[str, ...]] = {
    "randomised": RANDOMISED, "assignment": HARVESTED, "user-item": HARVESTED, "item": HARVESTED, "known": ("known",),
}  # fmt: skip


class Examination(BaseEstimator):
    """How often each position is looked at: E[c | item i, position k] = θ_k·q_i with θ_1 = 1.

    Only ratios of θ are identified. The estimates are those of Agarwal et al. (2019). `by` says where the position is
    as good as random:

    - "randomised": in shuffled requests, or everywhere with weights 1/π0. Methods: "shuffled" (the default where the
      log has shuffled requests), "weighted" (all rows, 1/π0), and for trust bias "affine", E[c | i, k] = a_k q_i + b_k.
    - "assignment": given the item's ranks under all arms of an experiment that draws the arm of each request.
    - "user-item": given the user and the item, if ranks do not react to clicks. This is checked, and refused where they
      do.
    - "item": given the item. You declare that positions do not depend on who asks; no check can verify that.
    - "known": θ is given as `theta`, without error.

    All but "randomised" and "known" have the method "harvest" (the default), and for studies "all_pairs" and "em",
    which have no intervals.

    Args:
        by: Where the position is as good as random.
        method: How θ is estimated; None takes the default of `by`.
        theta: θ of each position (K,), for `by="known"`.

    Attributes:
        theta_: θ (K,); a_k for "affine".
        influence_: The influence of each user on log θ (U, K), mean zero; per request where no users are logged. None
            for methods without intervals.
        covariance_: The covariance of log θ (K, K); None likewise.
        method_: The method that was used.
        fingerprint_: The fingerprint of the log.
        notes_: What the fit reports, a tuple of sentences.
        trust_: a_k (K,), for "affine" only.
        offset_: b_k (K,), for "affine" only.
        offset_influence_: The influence of each user on b_k (U, K), for "affine" only.

    Examples:
        >>> import openloop as ol
        >>> log = ol.simulate.click_world(users=60, items=6, depth=3).observe(rng=0)
        >>> exam = ol.propensity.Examination(by="known", theta=[1, 0.5, 0.3]).fit(log)
        >>> exam.interval(0.95).shape
        (3, 2)
    """

    def __init__(self, by: str = "randomised", method: str | None = None, theta: npt.ArrayLike | None = None) -> None:
        self.by = by
        self.method = method
        self.theta: Any = theta

    def fit(self, log: Impressions) -> Examination:
        """Estimate θ from a log; refused, with the reason, where the log does not identify it.

        Args:
            log: Impressions: a log with positions.

        Returns:
            The fitted model itself.
        """
        _check_parameters(self.by, self.method, self.theta)
        _check_log(log)
        self.notes_: tuple[str, ...] = ()
        self.method_ = self.method or _default_method(self.by, log)
        for name in ("trust_", "offset_", "offset_influence_"):
            vars(self).pop(name, None)
        self._remember(self._curve(log))
        self.fingerprint_ = log.fingerprint
        return self

    def _curve(self, log: Impressions) -> ThetaCurve:
        if self.by == "known":
            return _given(self.theta, log)
        _check_positions(log)
        if self.method_ == "affine":
            found = affine(log)
            self.trust_, self.offset_ = frozen(found.slope.theta), frozen(found.offset)
            self.offset_influence_ = frozen(found.offset_influence)
            return found.slope
        if self.by == "randomised":
            return self._drawn(log, np.ones(len(log), np.bool_))
        if self.by == "user-item":
            self._refuse_reaction(log)
        if self.method_ == "harvest":
            return self._harvested(log, None)
        _check_clicks(log, self.method_)
        cells = group(log, KEYS[self.by](log), every=True).cells
        self.notes_ += (f"{self.method_} has no intervals, and does not show whether θ is identified",)
        return ThetaCurve(theta=(all_pairs if self.method_ == "all_pairs" else em)(cells, log.depth), influence=None)

    def _drawn(self, log: Impressions, part: Array) -> ThetaCurve:
        """θ of the rows of a part whose position was drawn."""
        if self.method_ == "weighted":
            return randomised(log, np.flatnonzero(part), logged_weights(log))
        rows = shuffled_rows(log)
        return randomised(log, rows[part[rows]])

    def _harvested(self, log: Impressions, part: Array | None) -> ThetaCurve:
        rows = None if part is None else np.flatnonzero(part)
        return harvest(log, group(log, KEYS[self.by](log), rows=rows))

    def _refuse_reaction(self, log: Impressions) -> None:
        try:
            found = reaction_check(log)
        except UndefinedError as reason:
            self.notes_ = (f"whether ranks react to clicks could not be checked: {reason}",)
            return
        if found.rejects:
            raise UndefinedError(
                f'Examination(by="user-item"): {found.words}. Use by="assignment", or shuffle some requests.'
            )

    def _remember(self, found: ThetaCurve) -> None:
        self.theta_ = frozen(found.theta)
        self.influence_: Floats | None = None
        self.covariance_: Floats | None = None
        if found.influence is not None:
            U = len(found.influence)
            self.influence_ = frozen(found.influence)
            self.covariance_ = frozen(found.influence.T @ found.influence / U / max(U - 1, 1))

    @property
    def stderr_(self) -> Floats:
        """The standard error of log θ (K,); refused for methods without one."""
        psi = self._parts()
        return np.sqrt(np.square(psi).sum(axis=0) / len(psi) / max(len(psi) - 1, 1))

    def _parts(self) -> Floats:
        _check_fitted(self)
        if self.influence_ is None:
            raise UndefinedError(f'Examination: method "{self.method_}" has no standard errors; use method="harvest".')
        return self.influence_

    def interval(self, level: float = 0.95) -> Floats:
        """Intervals of each θ_k, symmetric in log θ, over users like these, by Student's t; θ_1 = 1 has no width.

        Args:
            level: The confidence level.

        Returns:
            Lower and upper limits (K, 2).
        """
        from scipy.special import stdtrit

        check_level("Examination.interval", level)
        error = self.stderr_
        half = stdtrit(self._freedom(), (1 + level) / 2) * error
        return self.theta_[:, None] * np.exp(half[:, None] * np.array([-1.0, 1.0]))

    def _freedom(self) -> Floats:
        """The degrees of freedom of each log θ_k, (K,), by `core.totals.freedom`."""
        squares: Any = np.square(self._parts())
        total, fourth = squares.sum(axis=0), np.square(squares).sum(axis=0)
        effective = np.divide(total**2, fourth, out=np.full(len(total), np.inf), where=fourth > 0)
        return freedom(max(2, int(np.count_nonzero(squares.any(axis=1)))), effective, np.inf)

    def check(self, log: Impressions, ranks: Array | None = None) -> ExaminationChecks:
        """Check what θ and its use assume: "items above", "reaction" and "one theta".

        Args:
            log: The log that was fitted.
            ranks: A model's rank of each row (n,), 0 for none. They make the first and the last check more powerful.

        Returns:
            The checks that could be made, and the reasons why others could not.
        """
        _check_fitted(self)
        _check_log(log)
        tests = {
            "items above": lambda: items_above_check(log, ranks),
            "reaction": lambda: reaction_check(log),
            "one theta": lambda: self._one_theta(log, ranks),
        }
        made: dict[str, PositionCheck] = {}
        missing: dict[str, str] = {}
        for name, test in tests.items():
            try:
                made[name] = test()
            except (UndefinedError, InputError) as reason:
                missing[name] = str(reason)
        return ExaminationChecks(checks=made, not_computed=missing)

    def _one_theta(self, log: Impressions, ranks: Array | None) -> PositionCheck:
        if self.method_ not in ("shuffled", "weighted", "harvest"):
            raise UndefinedError(f'one theta: method "{self.method_}" has no θ of better and worse items with errors')
        fit = self._drawn if self.by == "randomised" else self._harvested
        better = better_items(log, self.theta_, ranks)
        return one_theta_check(fit(log, better), fit(log, ~better))


def _default_method(by: str, log: Impressions) -> str:
    if by != "randomised":
        return METHODS[by][0]
    return "shuffled" if log.shuffled is not None and bool(log.shuffled.any()) else "weighted"


def _given(theta: npt.ArrayLike, log: Impressions) -> ThetaCurve:
    values = np.asarray(theta, np.float64)
    if len(values) < log.depth:
        raise AlignmentError(
            f'Examination(by="known"): theta has {len(values)} positions, the log {log.depth}; give one θ per position.'
        )
    values = values[: log.depth] / values[0]
    return ThetaCurve(theta=values, influence=np.zeros((log.n_clusters, log.depth)))


def _check_parameters(by: str, method: str | None, theta: Any) -> None:
    if by not in METHODS:
        raise InputError(f"Examination: by={by!r} is unknown.{did_you_mean(str(by), METHODS)}")
    if method is not None and method not in METHODS[by]:
        raise InputError(
            f"Examination(by={by!r}): method={method!r} is not one of {', '.join(METHODS[by])}; "
            "leave it out for the default."
        )
    if (by == "known") != (theta is not None):
        raise InputError(f'Examination(by={by!r}): theta= is for by="known", which needs it.')
    if theta is not None:
        values = np.asarray(theta)
        if values.ndim != 1 or values.dtype.kind not in "fiu" or not bool(np.all((values > 0) & np.isfinite(values))):
            raise InputError(f"Examination: theta must be a list of finite numbers above 0, got {theta!r:.60}.")


def _check_fitted(model: Examination) -> None:
    if not hasattr(model, "theta_"):
        from sklearn.exceptions import NotFittedError

        raise NotFittedError("Examination: not fitted; call fit(log) first.")


def _check_log(log: Any) -> None:
    if not isinstance(log, Impressions):
        raise InputError(f"Examination: the log must be Impressions, got {type(log).__name__}; read it with position=.")


def _check_positions(log: Impressions) -> None:
    """Refuse what no method can fit: a single position, and one without clicks."""
    if log.depth == 1:
        raise UndefinedError("Examination: the log has one position only, so there are no two to compare.")
    refuse_silent(sums(log.position - 1, log.reward, log.depth), "in the log")


def _check_clicks(log: Impressions, method: str) -> None:
    above = np.flatnonzero(log.reward > 1)
    if len(above):
        at = int(above[0])
        raise RatingError(
            f"Examination: {method} is a likelihood of clicks, and {len(above):,} rewards are above 1, first at "
            f'{log.where(at)}: {log.reward[at]}; use method="harvest".'
        )
