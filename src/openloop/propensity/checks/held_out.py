"""Held-out cells: what a refitted model says of cells it has not seen, against what the log says of them.

Rows are split at random into k folds, and the model is refitted without each. A cell that the log observes with
p is in the train part with p·s and in the fold with p·t; given that it is not in train, it is in the fold with
π = p·t/(1 − p·s). No cell that is judged had a part in the refit, but for what a model keeps of its choices: a
penalty, or a rank, that was chosen on all rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from openloop.core.feedback import Array, Feedback, Floats, Vocabulary, frozen
from openloop.core.propensities import part_probability, predicted_by
from openloop.core.vocabulary import Int64s
from openloop.errors import InputError, UndefinedError
from openloop.propensity.base import CellModel, row_counts
from openloop.support.arguments import generator, is_whole

CELLS = 2**21  # cells judged over all folds: what does not fit in is sampled
LARGEST_PI = 1 - 1e-12  # a cell called certain and not observed costs 28 nats, not infinitely many


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeldOut:
    """Cells of all folds that are not in their train part; `weight` is how many cells each one represents.

    `p` is of the whole log, `pi` the chance to be in the fold, `observed` 1 where the cell is in it, `s` and `t`
    the shares of the log that are the train part and the fold. Cells that are alike may be one entry: `cells` is how
    many were looked at, one for each entry where it is None.
    """

    p: Floats
    pi: Floats
    observed: Floats
    weight: Floats
    s: Floats
    t: Floats
    cells: Floats | None = None

    def __len__(self) -> int:
        return len(self.p)

    @property
    def counted(self) -> Floats:
        """How many cells each entry is."""
        return np.ones(len(self)) if self.cells is None else self.cells

    def log_likelihood(self, pi: Floats) -> float:
        """Σ w [o log π + (1 − o) log(1 − π)] / Σ w, per cell."""
        at = np.minimum(pi, LARGEST_PI)
        return float(np.average(np.where(self.observed > 0, np.log(at), np.log1p(-at)), weights=self.weight))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Cells of about equal π: the mean π, how many were observed in the fold, ± one standard error."""

    predicted: float
    observed: float
    stderr: float
    weight: float
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A curve in bins of equal weight, and how far it is from the diagonal.

    `error` is the expected calibration error Σ_b W_b |π_b − o_b| / Σ W; `chance` what it would be about if all π
    were right. `uniform` is the log-likelihood of the same p for every cell.
    """

    curve: tuple[Bin, ...]
    error: float
    chance: float
    mean_predicted: float
    mean_observed: float
    log_likelihood: float
    uniform: float
    folds: int
    cells: int


def calibration(model: Any, feedback: Feedback, *, folds: int = 5, bins: int = 10, rng: Any = 0) -> Calibration:
    """How well a model refitted without a fold predicts it."""
    if bins < 1:
        raise InputError(f"calibration: bins must be at least 1, got {bins}; pass bins=10.")
    found = held_out(model, feedback, folds=folds, rng=rng)
    uniform = min(float(row_counts(model, feedback).sum()) / (feedback.n_users * feedback.n_items), 1.0)
    return judged(found, uniform, folds=folds, bins=bins)


def judged(found: HeldOut, uniform: float, *, folds: int, bins: int) -> Calibration:
    """What held-out cells say; `uniform` is the share of the grid that the log has."""
    curve = _curve(found, bins)
    share = np.array([b.weight for b in curve]) / found.weight.sum()
    gap = np.array([abs(b.predicted - b.observed) for b in curve])
    # E|N(0, σ²)| = σ·√(2/π)
    noise = np.array([b.stderr for b in curve]) * np.sqrt(2 / np.pi)
    return Calibration(
        curve=curve, error=float(share @ gap), chance=float(share @ noise),
        mean_predicted=float(np.average(found.pi, weights=found.weight)),
        mean_observed=float(np.average(found.observed, weights=found.weight)),
        log_likelihood=found.log_likelihood(found.pi),
        uniform=found.log_likelihood(to_pi(np.full(len(found), uniform), found.s, found.t)),
        folds=folds, cells=int(found.counted.sum()),
    )  # fmt: skip


def _curve(found: HeldOut, bins: int) -> tuple[Bin, ...]:
    order = np.argsort(found.pi, kind="stable")
    reached = np.cumsum(found.weight[order])
    last = np.searchsorted(reached, np.arange(1, bins) / bins * reached[-1])
    edges = np.unique(found.pi[order[last]])  # cells of equal π share a bin
    at = np.searchsorted(edges, found.pi)
    return tuple(_bin(found, at == b) for b in range(len(edges) + 1) if np.any(at == b))


def _bin(found: HeldOut, inside: Array) -> Bin:
    w, o, pi, n = (column[inside] for column in (found.weight, found.observed, found.pi, found.counted))
    mean = float(np.average(o, weights=w))
    stderr = float(np.sqrt((np.square(w * (o - mean)) / n).sum()) / w.sum())
    predicted = float(np.average(pi, weights=w))
    return Bin(predicted=predicted, observed=mean, stderr=stderr, weight=float(w.sum()), n=int(n.sum()))


def held_out(model: Any, feedback: Feedback, *, folds: int = 5, rng: Any = 0, cells: int = CELLS) -> HeldOut:
    """The cells outside each train part, with the p of the model refitted on that part.

    All cells where they are at most `cells` over all folds; else held-out rows and other cells are sampled, each
    uniformly, and weighted to make up for it. `model` is fitted; its p must depend on the cell alone.
    """
    check_cells(model)
    s0 = one_share(model, feedback)
    if not is_whole(folds) or not 2 <= folds <= len(feedback):
        msg = (
            f"folds must be a whole number in 2 … {len(feedback):,}, the rows of the log, got {folds!r}; pass folds=5."
        )
        raise InputError(f"held_out: {msg}")
    draw = generator("held_out", rng)
    fold = draw.permutation(np.arange(len(feedback)) % folds)
    parts = [_judge(model, feedback, fold == f, s0, cells // folds, draw) for f in range(folds)]
    columns = {name: frozen(np.concatenate([part[name] for part in parts])) for name in parts[0]}
    return HeldOut(**columns)


def _judge(
    model: Any, feedback: Feedback, held: Array, s0: float, budget: int, rng: np.random.Generator
) -> dict[str, Floats]:
    t = s0 * float(held.mean())
    s = s0 - t
    refitted = refit(model, _train(feedback, ~held, s))
    cell, observed, weight = _cells(feedback, held, budget, rng)
    p = at_cells(refitted, feedback.users, feedback.items, cell)  # (n,)
    shares = {"s": np.full(len(p), s), "t": np.full(len(p), t)}
    return {"p": p, "pi": to_pi(p, s, t), "observed": observed, "weight": weight, **shares}


def _train(feedback: Feedback, keep: Array, s: float) -> Feedback:
    return feedback.take(keep, share=np.full(int(keep.sum()), s), origin=feedback.origin or feedback.fingerprint)


def refit(model: Any, part: Feedback) -> Any:
    """A copy of the model, fitted on a part of the log with the same side information where it keeps one."""
    return model.refit(part) if hasattr(model, "refit") else unfitted(model).fit(part)


def unfitted(model: Any) -> Any:
    """The same model, unfitted."""
    try:
        return clone(model)
    except TypeError as error:
        name = model.__name__ if isinstance(model, type) else type(model).__name__
        raise UndefinedError(
            f"{name}: cannot be copied for another fit; give an instance, and derive its class from scikit-learn's "
            "BaseEstimator or give it refit(feedback)."
        ) from error


def to_pi(p: Floats, s: Any, t: Any) -> Floats:
    """π = p·t/(1 − p·s): the chance to be in the part with share t, given not in the one with share s."""
    return part_probability(p, t, s)  # a model may exceed 1 before it is calibrated


def to_p(pi: Floats, s: Any, t: Any) -> Floats:
    """p = π/(t + π·s), the p whose π that is, at most 1."""
    return np.minimum(pi / (t + pi * s), 1.0)


def at_cells(model: Any, users: Vocabulary, items: Vocabulary, cell: Int64s) -> Floats:
    """The p that a fitted model gives cells: flat positions in the grid, each once."""
    if bool(np.any(np.diff(cell) < 0)):
        order = np.argsort(cell)
        p = np.empty(len(cell))
        p[order] = at_cells(model, users, items, cell[order])
        return p
    user, item = np.divmod(cell, len(items))
    made_up = Feedback(
        user=user.astype(np.int32), item=item.astype(np.int32), rating=np.zeros(len(cell), np.float32),
        users=users, items=items,
    )  # fmt: skip
    return predicted_by("check", model, made_up).used


def check_cells(model: Any) -> None:
    """Refuse a model whose p depends on more than the cell, with the reason that its matrix() gives."""
    inner: Any = model
    while isinstance(inner, CellModel) and hasattr(inner, "inner_"):  # around another model, that one decides
        inner = getattr(inner, "inner_")  # noqa: B009, a cell model need not have it
    if isinstance(inner, CellModel):
        return
    if not hasattr(inner, "matrix"):
        raise UndefinedError(
            f"{type(inner).__name__}: has no matrix(), so it is unknown whether its p depends on the cell alone; give "
            "it matrix(), the p of every cell as users × items."
        )
    inner.matrix()


def one_share(model: Any, feedback: Feedback) -> float:
    """The share of the log that `feedback` is; where rows differ in it, that of unobserved cells is unknown."""
    share = 1.0 / row_counts(model, feedback)
    if np.ptp(share) > 1e-9 * share[0]:
        raise UndefinedError(
            f"{type(model).__name__}: the rows of this part have different shares of the log, {share.min():.3g} … "
            f"{share.max():.3g} (as after leave-k-out), so the share of an unobserved cell is unknown; "
            "use the whole log, or a part split by row."
        )
    return float(share[0])


def _cells(feedback: Feedback, held: Array, budget: int, rng: np.random.Generator) -> tuple[Int64s, Floats, Floats]:
    """Cells outside the train part in order, whether each is in the fold, and how many cells it represents."""
    own = feedback.cell
    n_held, n_others = int(held.sum()), feedback.n_users * feedback.n_items - len(own)
    rows = np.flatnonzero(held)[some_of(n_held, max(budget // 2, budget - n_others), rng)]
    others = unobserved(own, some_of(n_others, budget - len(rows), rng))
    cell = np.concatenate([own[rows], others])
    observed = np.repeat([1.0, 0.0], [len(rows), len(others)])
    weight = np.where(observed > 0, n_held / len(rows), n_others / max(len(others), 1))
    order = np.argsort(cell)
    return cell[order], observed[order], weight[order]


def some_of(n: int, most: int, rng: np.random.Generator) -> Int64s:
    """0 … n−1, or `most` of them at random, in order."""
    return np.arange(n) if n <= most else np.sort(rng.choice(n, max(most, 1), replace=False, shuffle=False))


def unobserved(own: Int64s, rank: Int64s) -> Int64s:
    """The cells of these ranks among those that are not in the sorted cells `own`."""
    # own[j] − j unobserved cells stand before own[j]
    return rank + np.searchsorted(own - np.arange(len(own)), rank, side="right")
