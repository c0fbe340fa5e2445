"""`Propensities`: the probability with which each cell of one Feedback was observed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from openloop.core.feedback import LEAST, Feedback, Floats, check_propensities, frozen, not_fitted
from openloop.core.levels import LevelSample
from openloop.errors import AlignmentError, InputError, PropensityError, UndefinedError
from openloop.support.arguments import is_number

if TYPE_CHECKING:
    from openloop.propensity.cell_means import CellMeans


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Propensities:
    """The probability with which each row's cell was observed, in the order of one Feedback.

    A propensity model's `predict` makes them with the fingerprint of its Feedback, and every other Feedback is refused.
    With values from a bare array only the length can be checked.

    Args:
        values: Probabilities in (0, 1], (n,).
        floor: The least propensity that weights are computed with; weights are at most 1/floor.
        fingerprint: That of the Feedback that the values belong to, `feedback.fingerprint`.
        sample: The uniform sample that the propensities were fitted with, if any.
        base: The propensities before balancing, None where they were not balanced. A balanced value may exceed 1.
        blind: Whether the model was fitted without looking at ratings.
        by_items: Whether the model fitted each item's propensity to this log.
        by_cells: Whether the model fitted single cells, beyond their users and items.
        by_rating: Whether the propensity depends on the rating alone.
        modelled: Whether its dependence on the rating comes from the form of a joint model, which no row can check.
        means: Functions of predictions whose means over all cells the weights were balanced to.

    Raises:
        PropensityError: A value is outside (0, 1].
        AlignmentError: The values are not one number per row.

    Examples:
        >>> p = ol.Propensities(values=np.array([0.5, 0.25, 0.01]), floor=0.05)
        >>> p.weights.tolist()
        [2.0, 4.0, 20.0]
        >>> round(p.clipped, 3)
        0.333
    """

    values: Floats
    floor: float = 0.0
    fingerprint: str | None = None
    sample: LevelSample | None = None
    base: Floats | None = None
    blind: bool = False
    by_items: bool = False
    by_cells: bool = False
    by_rating: bool = False
    modelled: bool = False
    means: CellMeans | None = None

    def __post_init__(self) -> None:
        values = np.asarray(self.values, np.float64)
        if values.ndim != 1 or len(values) == 0:
            raise AlignmentError(f"Propensities: values must be one number per row, got shape {values.shape}.")
        if not 0 <= self.floor <= 1:
            raise InputError(f"Propensities: floor must lie in [0, 1], got {self.floor}.")
        if self.base is None:
            # A floor makes only zeros usable: they count as the floor.
            raised = np.where((values >= 0) & (values < self.floor), self.floor, values)
            remedy = "pass floor= or drop those rows." if self.floor == 0 else "repair those values."
            check_propensities("Propensities", raised, remedy)
        else:
            self._check_balanced(values)
        object.__setattr__(self, "values", frozen(values))

    def _check_balanced(self, values: Floats) -> None:
        """Balanced weights may fall below 1, but p before balancing must lie in (0, 1]."""
        base = np.asarray(self.base, np.float64)
        if base.shape != values.shape:
            raise AlignmentError(
                f"Propensities: base has shape {base.shape}, values {values.shape}; give both per row."
            )
        check_propensities("Propensities.base", base, "give the p before balancing.")
        bad = np.flatnonzero(~((values >= LEAST) & (values < np.inf)))
        if len(bad):
            raise PropensityError(
                f"Propensities: {len(bad):,} of {len(values):,} balanced values are not positive and finite, as "
                f"{values[bad[0]]:g} (first at index {bad[0]:,}); balance them again with fewer margins."
            )
        object.__setattr__(self, "base", frozen(base))

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        low, high = float(self.values.min()), float(self.values.max())
        tail = f", floor {self.floor:g} cuts {self.clipped:.1%}" if self.floor else ""
        return f"Propensities({len(self):,} values in {low:.3g} … {high:.3g}{tail})"

    @property
    def used(self) -> Floats:
        """max(p, floor): the propensities that weights are computed from."""
        return np.maximum(self.values, self.floor)

    @property
    def weights(self) -> Floats:
        """1 / max(p, floor)."""
        return 1.0 / self.used

    @property
    def kept_weight(self) -> float:
        """Σ1/max(p, floor) / Σ1/p: the share of the weight that the floor keeps. A p of 0 counts as the floor."""
        values = np.where(self.values > 0, self.values, self.floor)
        return float(self.weights.sum() / (1.0 / values).sum())

    @property
    def clipped(self) -> float:
        """The share of values below the floor."""
        return float(np.mean(self.values < self.floor))

    def check(self, feedback: Feedback) -> Propensities:
        """Refuse a Feedback that these propensities do not belong to.

        Args:
            feedback: The log that is to be scored or fitted.

        Returns:
            These propensities.

        Raises:
            AlignmentError: The lengths or the fingerprints differ.
        """
        if len(self) != len(feedback):
            raise AlignmentError(
                f"Propensities: {len(self):,} values for {len(feedback):,} rows; predict them for this Feedback, "
                "or bring an array in input order with feedback.align(array)."
            )
        if self.fingerprint is not None and self.fingerprint != feedback.fingerprint:
            msg = "Propensities: made for another Feedback; call the model's predict on the one that is scored."
            raise AlignmentError(msg)
        return self


def row_propensities(caller: str, propensities: Any, feedback: Feedback) -> Propensities:
    """The p of the rows, from an array in Feedback order or of all cells (U, I), Propensities, or a fitted model."""
    if isinstance(propensities, np.ndarray):
        is_grid = propensities.shape == (feedback.n_users, feedback.n_items)
        values = propensities[feedback.user, feedback.item] if is_grid else propensities
        propensities = Propensities(values=cast("Floats", values))
    elif not isinstance(propensities, Propensities):
        if not hasattr(propensities, "predict"):
            kind = type(propensities).__name__
            raise InputError(
                f"{caller}: propensities must be Propensities, a fitted model, an array or None, got {kind}."
            )
        propensities = predicted_by(caller, propensities, feedback)
    return propensities.check(feedback)


def predicted_by(caller: str, model: Any, feedback: Feedback) -> Propensities:
    """The p of the rows by a fitted model, checked: your own class needs only `fit` and `predict`.

    What such a class does not declare is taken cautiously, so a verdict needs more. Without `sees_rating` its
    p are blind to the rating; with it they are a guess that no row can check, unless they have a sample. Unless it says
    fits_cells = False, they may follow single cells.
    """
    name = type(model).__name__
    if isinstance(model, type):
        raise InputError(f"{caller}: {model.__name__} is a class; give a fitted model, {model.__name__}().fit(log).")
    try:
        p = model.predict(feedback)
    except AttributeError as error:
        if any(key.endswith("_") and not key.startswith("_") for key in vars(model)):
            raise
        raise not_fitted(name) from error  # of a class of one's own, which need not check that itself
    if not isinstance(p, Propensities):
        raise InputError(
            f"{caller}: {name}.predict(feedback) must return Propensities, got {type(p).__name__}; return "
            "ol.Propensities(values=p, fingerprint=feedback.fingerprint)."
        )
    if p.fingerprint is None and len(p) == len(feedback):
        p = replace(p, fingerprint=feedback.fingerprint)
    if any(kind.__module__.startswith("openloop.") for kind in type(model).__mro__):
        return p  # which says all of it
    is_declared = p.blind or p.by_rating or p.modelled or p.sample is not None or p.base is not None
    sees = getattr(model, "sees_rating", False)
    return replace(
        p, blind=p.blind or not (is_declared or sees), modelled=p.modelled or (sees and not is_declared),
        by_cells=p.by_cells or getattr(model, "fits_cells", True),
    )  # fmt: skip


def grid_of(model: Any) -> Floats | None:
    """The p of every cell (U, I) by a fitted model; None where it has no `matrix`, or p depends on the rating."""
    if not hasattr(model, "matrix"):
        return None
    try:
        return model.matrix()
    except UndefinedError:  # p depends on the unseen rating
        return None


def check_exposure(caller: str, p: Propensities, log: Feedback) -> None:
    """Refuse p that were fitted on a log of positives: they are not the probability that a cell was shown."""
    if log.positives and p.blind and np.ptp(p.values) > 0:  # the same p for all cells cancels nothing
        raise not_exposure(caller)


def not_exposure(caller: str) -> UndefinedError:
    """The error of propensities that were fitted on a log of positives."""
    return UndefinedError(
        f"{caller}: this log holds positives only (clicks, plays, purchases), so propensities fitted on it are "
        "probabilities of being shown and liked, and weights 1/p would cancel the liking; give the probability of "
        "being shown as a column of the log, or pass no propensities: an audit then says for which shares of "
        "popularity that are exposure the order holds."
    )


ROUNDING = 1e-9  # shares of one log add up to 1 only nearly


def observed_probability(p: Any, *, share: Any = 1.0, excluded_share: Any = 0.0) -> Any:
    """π = p·s / (1 − p·t): the probability that a part of a log observes a cell that the excluded part does not hold.

    The scored part has share s of the log, the excluded part share t. With t = 0 nothing is excluded, and π = p·s.

    Args:
        p: The probability that the whole log observes the cell: a number, a list or array of numbers, or an expression
            of a dataframe library.
        share: s in (0, 1], one for all rows or one per row.
        excluded_share: t in [0, 1), likewise.

    Returns:
        π, of the type of `p`; lists become arrays.

    Raises:
        PropensityError: A p is outside (0, 1].
        InputError: The shares are not those of two parts of one log.

    Examples:
        >>> ol.observed_probability(0.5, share=0.2)
        0.1
        >>> ol.observed_probability([0.5, 0.1], share=0.2, excluded_share=0.8).round(3).tolist()
        [0.167, 0.022]
    """
    if p is None or isinstance(p, str | list | tuple | np.ndarray) or is_number(p):
        p = _probabilities(p)
    check_shares(share, excluded_share)
    return part_probability(p, share, excluded_share)


def part_probability(p: Any, s: Any, t: Any) -> Any:
    """π = p·s / (1 − p·t) without checks, for values that were checked at the door."""
    return p * s / (1.0 - p * t)


def _probabilities(p: Any) -> Any:
    try:
        values = np.asarray(p, np.float64)
    except (TypeError, ValueError) as error:
        raise PropensityError(f"observed_probability: p must hold numbers, got {p!r}; give probabilities.") from error
    bad = values[~((values > 0) & (values <= 1))]
    if bad.size:
        raise PropensityError(f"observed_probability: p must lie in (0, 1], got {bad.flat[0]:g}; drop or repair it.")
    return values if values.ndim else float(values)


def check_shares(share: Any, excluded_share: Any) -> None:
    """Refuse shares that no two parts of one log can have."""
    if not _numbers(share) or not np.all((np.asarray(share) > 0) & (np.asarray(share) <= 1)):
        raise InputError(f"share= must lie in (0, 1], got {share!r}; it is the part's share of the log's rows.")
    if not _numbers(excluded_share) or not np.all((np.asarray(excluded_share) >= 0) & (np.asarray(excluded_share) < 1)):
        raise InputError(f"excluded_share= must lie in [0, 1), got {excluded_share!r}; 0 excludes no part of the log.")
    # In arrays, shares of a random split may exceed 1 by chance: one is nominal, the other counted.
    if is_number(share) and is_number(excluded_share) and share + excluded_share > 1 + ROUNDING:
        raise InputError(
            f"share= and excluded_share= must add up to at most 1, got {share:g} and {excluded_share:g}: two parts of "
            "one log have no row in common; pass both, the scored part's share of the log as share=."
        )


def _numbers(value: Any) -> bool:
    return is_number(value) or (isinstance(value, np.ndarray) and value.dtype.kind in "fiu")
