"""`Calibrated`: a monotone map of another model's p, fitted on held-out cells, and a floor for the result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit

from openloop.core.feedback import LEAST, Array, Feedback, Floats, check_feedback
from openloop.core.propensities import Propensities
from openloop.errors import InputError, UndefinedError, did_you_mean
from openloop.propensity.base import CellModel, check_grid, refuse_frame, row_counts
from openloop.propensity.checks.held_out import HeldOut, at_cells, check_cells, held_out, to_p, unfitted

METHODS = ("isotonic", "platt")
NEAR_ONE = 0.99  # where logits are cut: that of 1, at which models cap p, would outweigh all others
RIDGE = 1e-6  # of a row: holds the slope where the p separate observed cells from others
STEPS = 100


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Steps:
    """A monotone step function, joined on a log-log scale between the steps and flat beyond them."""

    p: Floats
    level: Floats

    def __call__(self, p: Floats) -> Floats:
        """The p̃ of each p."""
        return np.exp(np.interp(np.log(p), np.log(self.p), np.log(self.level)))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlattLine:
    """logit(s₀·p̃) = a + b·logit(s₀·p), s₀ the share of the log that the map was fitted on."""

    a: float
    b: float
    share: float

    def __call__(self, p: Floats) -> Floats:
        """The p̃ of each p."""
        q = expit(self.a + self.b * logit(np.minimum(self.share * p, NEAR_ONE)))
        return np.clip(q / self.share, LEAST, 1.0)


class Calibrated(CellModel):
    """Another model with its p corrected on held-out cells (Platt 1999; Zadrozny & Elkan 2002), and a floor for p.

    `fit` fits a copy of `model`, and one more without each of `folds` parts of the rows. The π of the cells left out,
    pooled, are regressed on whether they were observed.

    Args:
        model: A propensity model.
        method: "isotonic" (any monotone map), "platt" (a + b·logit p) or None (no map).
        folds: The number of parts.
        floor: A smaller p counts as this in weights; `notes_` says how many rows it raises.
        quantile: A further floor: this quantile of the p of the rows that the model is fitted on.
        rng: A seed or generator for the parts.

    Attributes:
        inner_: The fitted copy of `model`.
        map_: The fitted map, a function of p; None without one.
        floor_: The floor that is used.
        users_: The users of the log, a `Vocabulary`.
        items_: The items of the log, a `Vocabulary`.
        notes_: What the fit reports, a tuple of sentences.

    Examples:
        >>> import openloop as ol
        >>> log = ol.simulate.movie_lovers().observe(rng=0)
        >>> inner = ol.propensity.Popularity(gamma=1)
        >>> seen = ol.propensity.Calibrated(inner, method="platt", folds=2, floor=0.05).fit(log)
        >>> seen.predict(log).floor
        0.05
    """

    def __init__(
        self,
        model: Any,
        method: str | None = "isotonic",
        folds: int = 5,
        floor: float = 0.0,
        quantile: float | None = None,
        rng: Any = 0,
    ) -> None:
        self.model: Any = model
        self.method = method
        self.folds = folds
        self.floor = floor
        self.quantile = quantile
        self.rng: Any = rng

    @property
    def assumes(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """What the inner model assumes."""
        return getattr(self.model, "assumes", "")

    @property
    def sees_rating(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the inner model uses ratings; a model that does not say so is taken not to."""
        return getattr(self.model, "sees_rating", False)

    @property
    def fits_items(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the inner model has fitted the p of each item."""
        return getattr(self.model, "fits_items", False)

    @property
    def fits_cells(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the inner model has fitted the p of single cells."""
        return getattr(self.model, "fits_cells", False)

    def fit(self, feedback: Feedback, **side: Any) -> Calibrated:
        """Fit the model, then the map.

        Args:
            feedback: A log in memory.
            **side: What else the model's fit takes, such as `uniform`. Without it, a fitted `model` lends what it was
                fitted with.

        Returns:
            The fitted model itself.
        """
        refuse_frame(self, feedback, {})
        check_feedback("Calibrated", feedback)
        self._check_parameters()
        if self.method is not None:
            row_counts(self, feedback)
        side = side or getattr(self.model, "side_", {})
        self.inner_: Any = unfitted(self.model).fit(feedback, **side)
        self.map_, notes = self._fit_map(feedback)
        found = self.inner_.predict(feedback)
        if found.base is not None:
            raise UndefinedError(
                "Calibrated: balanced weights are not 1/p of a probability, so they cannot be calibrated; "
                "balance last: Balanced(Calibrated(model))."
            )
        p = self._mapped(found.used)
        self.floor_ = max(self.floor, 0.0 if self.quantile is None else float(np.quantile(p, self.quantile)))
        if self.floor_ > 0:
            raised = float(np.mean(p < self.floor_))
            notes.append(floor_note(self.floor_, raised))
        return self._remember(feedback, *getattr(self.inner_, "notes_", ()), *notes, **side)

    def predict(self, feedback: Feedback) -> Propensities:
        """The mapped p of each row, with the floor.

        Args:
            feedback: A log, or a part of one, on the users and items of the fit.

        Returns:
            `Propensities` in Feedback order, with the fingerprint of `feedback`.
        """
        check_grid(self, feedback)
        found = self.inner_.predict(feedback)
        values = self._mapped(found.used)
        return self._found(feedback, values, floor=self.floor_, sample=found.sample, by_rating=found.by_rating)

    def _at(self, user: Array, item: Array) -> Floats:
        """The mapped p of cells in order, each once, before the floor."""
        try:
            check_cells(self.inner_)
        except UndefinedError as error:
            raise UndefinedError(f"Calibrated: {error}") from error
        cell = user.astype(np.int64) * len(self.items_) + item
        return self._mapped(at_cells(self.inner_, self.users_, self.items_, cell.ravel())).reshape(cell.shape)

    def _mapped(self, p: Floats) -> Floats:
        return p if self.map_ is None else self.map_(p)

    def _fit_map(self, feedback: Feedback) -> tuple[Steps | PlattLine | None, list[str]]:
        if self.method is None:
            return None, []
        try:
            found = held_out(self.inner_, feedback, folds=self.folds, rng=self.rng)
        except UndefinedError as error:
            raise UndefinedError(f"Calibrated: no held-out cells: {error} method=None sets a floor only.") from error
        return isotonic(found) if self.method == "isotonic" else platt(found)

    def _check_parameters(self) -> None:
        if self.method is not None and self.method not in METHODS:
            hint = did_you_mean(str(self.method), METHODS)
            raise InputError(f"Calibrated: method={self.method!r} is unknown.{hint} None leaves p unchanged.")
        if not 0 <= self.floor <= 1:
            raise InputError(f"Calibrated: floor must lie in [0, 1], got {self.floor}; 0 means no floor.")
        if self.quantile is not None and not 0 < self.quantile < 1:
            raise InputError(
                f"Calibrated: quantile must lie strictly between 0 and 1, got {self.quantile}; None means no floor."
            )


def isotonic(found: HeldOut) -> tuple[Steps, list[str]]:
    """The monotone map with the least Σ w (o − π̃)²; then p̃ = π̃/(t + π̃·s)."""
    from sklearn.isotonic import IsotonicRegression

    # In log p, so that values count as equal by their ratio.
    fit = IsotonicRegression().fit(np.log(found.p), found.observed, sample_weight=found.weight)
    x: Floats = np.asarray(fit.X_thresholds_)
    pi, notes = _lifted(found, x, np.asarray(fit.y_thresholds_))
    s, t = np.average(found.s, weights=found.weight), np.average(found.t, weights=found.weight)
    level = to_p(pi, s, t)
    steps = len(np.unique(level))
    notes.insert(0, f"isotonic on held-out cells: {steps} levels from {level[0]:.3g} to {level[-1]:.3g}")
    return Steps(p=np.exp(x), level=level), notes


def _lifted(found: HeldOut, x: Floats, pi: Floats) -> tuple[Floats, list[str]]:
    """Levels of 0 raised to half an observation: (0 + ½)/(W + 1), W their cells.

    The next level would be safer for weights, but would count as many cells as it takes; this adds half a row.
    """
    nothing = pi <= 0
    if not nothing.any():
        return pi, []
    W = float(found.weight[np.log(found.p) <= x[nothing].max()].sum())
    lifted = min(0.5 / (W + 1), float(pi[~nothing].min()))
    note = (
        f"no held-out cell with p up to {np.exp(x[nothing].max()):.3g} was observed ({W:,.0f} cells over the folds); "
        "half a cell is counted as observed, which keeps p above 0 and changes the sum of p by half a row"
    )
    return np.where(nothing, lifted, pi), [note]


def platt(found: HeldOut) -> tuple[PlattLine, list[str]]:
    """logit π̃ = log(t/s₀) + a + b·logit(s₀·p) by maximum likelihood; a = 0, b = 1 changes nothing."""
    # π/(1 − π) = p·t/(1 − p·s₀) with s₀ = s + t, so the offset makes this exact in p̃.
    if found.observed.all():
        raise UndefinedError(
            "Calibrated: the log holds every cell of its grid, so there is no p below 1 to calibrate; use method=None."
        )
    share = found.s + found.t
    z = logit(np.minimum(share * found.p, NEAR_ONE))  # (n,)
    one, offset = np.ones_like(z), np.log(found.t / share)
    if np.ptp(z) < 1e-9:  # one p for all cells: only its level can be corrected
        a, b = float(_logistic(found, one[:, None], offset + z)[0]), 1.0
    else:
        a, b = map(float, _logistic(found, np.stack([one, z], axis=1), offset))
    notes = [f"platt on held-out cells: logit p becomes {a:+.3g} + {b:.3g} · logit p"]
    if b < 0:
        a, b = float(_logistic(found, one[:, None], offset)[0]), 0.0
        notes = ["platt on held-out cells: the model orders cells in the wrong direction, so all p are made equal"]
    return PlattLine(a=a, b=b, share=float(share[0])), notes


def _logistic(found: HeldOut, X: Floats, offset: Floats) -> Floats:
    """The θ of logit π = offset + Xθ with the greatest weighted likelihood, by damped Newton steps."""
    w, o = found.weight / (found.weight @ found.observed), found.observed
    held = np.diag(np.r_[0.0, np.full(X.shape[1] - 1, RIDGE)])  # the first column is the intercept

    def loss(theta: Floats) -> float:
        eta, off = offset + X @ theta, theta - 1
        return float(w @ (np.logaddexp(0, eta) - o * eta) + off @ held @ off / 2)

    theta = np.r_[0.0, np.ones(X.shape[1] - 1)]
    reached = loss(theta)
    for _ in range(STEPS):
        pi = expit(offset + X @ theta)
        gradient = X.T @ (w * (o - pi)) - held @ (theta - 1)
        step = np.linalg.solve((X.T * (w * pi * (1 - pi))) @ X + held, gradient)
        while (now := loss(theta + step)) > reached + 1e-12 and np.abs(step).max() > 1e-12:
            step = step / 2
        theta, reached = theta + step, now
        if np.abs(step).max() < 1e-10:
            break
    return theta


def floor_note(floor: float, raised: float) -> str:
    """What a floor did to the rows of the fit."""
    return f"p below the floor {floor:.3g} count as the floor: {raised:.1%} of the fitted rows"
