"""`check`: how far a propensity model can be trusted, as numbers, as plain-word flags and as a text table.

All of it judges the p that weights are made of: after a floor, where a model has one.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

import numpy as np

from openloop.core.covariates import Covariates
from openloop.core.feedback import Feedback, check_feedback
from openloop.core.propensities import Propensities, predicted_by
from openloop.core.weights import Diagnostics
from openloop.errors import InputError, UndefinedError
from openloop.propensity.checks import by_item
from openloop.propensity.checks.balance import Difference, Margin, balance, margins
from openloop.propensity.checks.balancing import Balancing, balancing
from openloop.propensity.checks.by_item import CountModel
from openloop.propensity.checks.held_out import Calibration, calibration
from openloop.propensity.checks.overlap import Heavy, Overlap, observed_only, overlap, row_weights, weigh
from openloop.support.atomic import Recorded, finite
from openloop.support.escaping import visible

T = TypeVar("T")

UNBALANCED = 0.1  # sd: the usual limit of a standardised difference
POOR_OVERLAP = 0.3  # log-normal p overlap this much when 2 % of the rows are left as effective size
UNSEEN = 0.05  # of the grid below the smallest p of a row
MISCALIBRATED = 0.2  # of the mean π
FACTOR, SURE = 1.5, 4.0  # a bin is off by this factor, and by this many standard errors
WORSE = 5.0  # nats: a fitted p for all cells gains this on a true p for all in 1 of 600 logs


@dataclass(frozen=True, slots=True, kw_only=True)
class Check(Recorded):
    """What `ol.propensity.check` found; printed as text, shown in a notebook, or read by its fields.

    For a `Balanced` model, calibration, margins and overlap describe the model inside it.

    Attributes:
        model: The name of the model.
        rows: The number of rows.
        users: The number of users.
        items: The number of items.
        calibration: Predicted against observed on held-out cells; None where it could not be computed.
        margins: Sums of p against counts, by user and by item.
        balance: The difference between rows and grid of each covariate, without and with weights.
        weights: Diagnostics of the weights, such as the effective sample size.
        heaviest: The rows with the largest weights.
        overlap: The p of rows beside the p of all cells.
        balancing: What balancing moved; None for models other than `Balanced`.
        not_computed: The reason for each part that is None or empty.
        notes: The notes of the model.
        flags: What needs attention, as sentences.

    Examples:
        >>> import openloop as ol
        >>> log = ol.simulate.movie_lovers().observe(rng=0)
        >>> seen = ol.propensity.Uniform().fit(log)
        >>> found = ol.propensity.check(seen, log, folds=None)
        >>> found.model, found.users, sorted(found.not_computed)
        ('Uniform', 100, ['calibration'])
    """

    model: str
    rows: int
    users: int
    items: int
    calibration: Calibration | None
    margins: tuple[Margin, ...]
    balance: tuple[Difference, ...]
    weights: Diagnostics
    heaviest: tuple[Heavy, ...]
    overlap: Overlap
    balancing: Balancing | None = None
    not_computed: dict[str, str] = field(default_factory=dict[str, str])
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    @property
    def no_better_than_none(self) -> bool:
        """Whether a constant p predicts held-out cells better than the model does."""
        found = self.calibration
        return found is not None and worse_than_uniform(found)

    def __str__(self) -> str:
        from openloop.propensity.checks.text import render

        return visible(render(self), lines=True)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f'<pre style="font-family:monospace">{html.escape(str(self))}</pre>'

    def to_dict(self) -> dict[str, Any]:
        """All results as plain numbers, text, lists and dictionaries, as JSON has them.

        Returns:
            A dictionary by field.
        """
        return finite(asdict(self))


def check(
    model: Any, feedback: Feedback, covariates: Any = None, *, folds: int | None = 5, bins: int = 10, rng: Any = 0
) -> Check:
    """Check a fitted propensity model on a log, or on a part of one.

    Sums, balance, weights and overlap use the p that the model gives. Calibration uses models that are refitted on
    `feedback` without one fold each, since a model predicts its own rows too well. Large grids are sampled.

    Args:
        model: A fitted propensity model.
        feedback: A log, or a part of one.
        covariates: A pair (of users, of items), each `Covariates`, an array or None. None takes the model's own.
        folds: How many times the model is refitted for the calibration on held-out cells; None skips the calibration.
        bins: The number of bins of the calibration curve.
        rng: A seed or generator for the folds and samples.

    Returns:
        A `Check`.

    Examples:
        >>> import openloop as ol
        >>> log = ol.simulate.movie_lovers().observe(rng=0)
        >>> seen = ol.propensity.Popularity(gamma=1).fit(log)
        >>> found = ol.propensity.check(seen, log, folds=2)
        >>> found.calibration.folds, found.no_better_than_none
        (2, True)
    """
    check_feedback("check", feedback)
    p = predicted_by("check", model, feedback).check(feedback)
    user, item = _covariates(model, feedback, covariates)
    missing: dict[str, str] = {}
    # A balanced p depends on the rating, which no unobserved cell has: there the model within is judged.
    inner, own = (model, p) if p.base is None else (model.inner_, model.inner_.predict(feedback))
    judged = unless("calibration", missing, lambda: _calibration(inner, feedback, folds, bins, rng))
    sums = unless("margins", missing, lambda: margins(inner, feedback, own.floor)) or ()
    spread = unless("overlap", missing, lambda: _overlap(inner, feedback, own, rng)) or observed_only(own.used)
    weights, heaviest = weigh(feedback, p)
    if weights.mass is None:
        missing["mass"] = "this part of a log has no share, so its weights are known only up to a factor"
    differences = balance(feedback, row_weights(feedback, p.used), user, item)
    flags = (
        *weights.flags,
        *flags_of(judged, sums, differences, spread, balanced=p.base is not None),
        *exposure_flags(positives=feedback.positives, blind=p.blind),
    )
    return Check(
        model=name_of(model), rows=len(feedback), users=feedback.n_users, items=feedback.n_items, calibration=judged,
        margins=sums, balance=differences, weights=weights, heaviest=heaviest, overlap=spread,
        balancing=balancing(model, feedback, p), not_computed=missing, notes=tuple(getattr(model, "notes_", ())),
        flags=flags,
    )  # fmt: skip


def _calibration(model: Any, feedback: Feedback, folds: int | None, bins: int, rng: Any) -> Calibration:
    if folds is None:
        raise UndefinedError("folds=None leaves out the refits that held-out cells need")
    check_folds(folds, len(feedback))
    counted = CountModel.of(model)
    if counted is not None:
        return by_item.calibration(counted, feedback, folds=folds, bins=bins, rng=rng)
    return calibration(model, feedback, folds=folds, bins=bins, rng=rng)


def check_folds(folds: int, rows: int) -> None:
    """Refuse more folds than there are rows."""
    if folds > rows:
        raise UndefinedError(f"{rows:,} rows cannot be held out in {folds} folds; pass a smaller folds=")


def _overlap(model: Any, feedback: Feedback, p: Propensities, rng: Any) -> Overlap:
    counted = CountModel.of(model)
    if counted is None:
        return overlap(model, feedback, p.used, rng)
    return by_item.overlap(counted, np.bincount(feedback.item, minlength=feedback.n_items), feedback.n_users)


def unless(part: str, missing: dict[str, str], compute: Callable[[], T]) -> T | None:
    """What `compute` gives, or None and its reason."""
    try:
        return compute()
    except UndefinedError as error:
        missing[part] = str(error)
        return None


def _covariates(model: Any, feedback: Feedback, given: Any) -> tuple[Covariates | None, Covariates | None]:
    if given is None:
        inner = getattr(model, "inner_", model)
        given = getattr(inner, "user_covariates_", None), getattr(inner, "item_covariates_", None)
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InputError(
            f"check: covariates must be a pair (of users, of items), got {type(given).__name__}; "
            "give (table, None) where there are only the users'."
        )
    return Covariates.of(given[0], feedback.users, "user"), Covariates.of(given[1], feedback.items, "item")


def name_of(model: Any) -> str:
    """The model's class, and the model inside it."""
    inner = getattr(model, "inner_", None)
    return type(model).__name__ + ("" if inner is None else f"({name_of(inner)})")


def flags_of(
    judged: Calibration | None,
    sums: tuple[Margin, ...],
    differences: tuple[Difference, ...],
    spread: Overlap,
    *,
    balanced: bool = False,
) -> Iterator[str]:
    """What to mind of the parts of a check; of balanced weights the model within them was judged on held-out cells."""
    if judged is not None:
        yield from _calibration_flags(judged)
        if worse_than_uniform(judged):
            of, so = ("the model within", "; balanced weights do not rest on that") if balanced else ("the model", "")
            yield f"{of} predicts held-out cells worse than a constant p{so}"
    for m in sums:
        if m.off > 2 * m.chance:
            yield (
                f"Σp differs from the counts of {m.side}s by {m.off:.0%} of the rows; chance alone gives {m.chance:.0%}"
            )
    far = [(d.after, d.name) for d in differences if d.after and not -UNBALANCED <= d.after <= UNBALANCED + d.own]
    if far:
        most, name = max(far, key=lambda found: abs(found[0]))
        yield (
            f"after weighting, {len(far)} of {sum(d.after is not None for d in differences)} covariates still differ "
            f"from the grid by more than {UNBALANCED} sd, most of all {name!r} ({most:+.2f})"
        )
    if spread.coefficient is not None and spread.coefficient < POOR_OVERLAP:
        yield f"poor overlap: the p of rows and the p of the grid overlap by {spread.coefficient:.0%} only"
    if spread.below is not None and spread.below > UNSEEN:
        yield f"{spread.below:.0%} of the grid has a p below that of every row; no row represents these cells"


def exposure_flags(*, positives: bool, blind: bool) -> Iterator[str]:
    """What to mind of p that were fitted on a log of positives without seeing ratings."""
    if positives and blind:
        yield (
            "the log holds positives only, so these p are the chance of being shown and liked; ol.evaluate and "
            "ol.audit refuse them"
        )


def worse_than_uniform(judged: Calibration) -> bool:
    """Whether the held-out likelihood is below that of a constant p, beyond chance."""
    return (judged.uniform - judged.log_likelihood) * sum(b.weight for b in judged.curve) > WORSE


def _calibration_flags(judged: Calibration) -> Iterator[str]:
    if judged.error > max(2 * judged.chance, MISCALIBRATED * judged.mean_observed):
        yield (
            f"on held-out cells p is off by {judged.error / judged.mean_observed:.0%} of its mean; chance alone gives "
            f"{judged.chance / judged.mean_observed:.0%}; Calibrated may correct it"
        )
    off = [b for b in judged.curve if b.observed > FACTOR * b.predicted and b.observed - b.predicted > SURE * b.stderr]
    if off:
        worst = max(off, key=lambda b: b.observed / b.predicted)
        yield (
            f"{len(off)} of {len(judged.curve)} bins of held-out cells have more rows than p predicts, up to "
            f"{worst.observed / worst.predicted:.1f} times as many; the weights there are too large"
        )
