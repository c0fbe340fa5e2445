"""The penalty on products of covariates, chosen by the log-likelihood of held-out cells.

Rows are held out, not cells: what is left is a log of share 1 − 1/k, which collapses to classes like any other.
"""

from __future__ import annotations

import numpy as np

from openloop.core.feedback import LEAST, Array, Floats
from openloop.core.propensities import part_probability
from openloop.errors import UndefinedError
from openloop.propensity.base import share_of_log
from openloop.propensity.solvers.collapsing import Collapsed, CountedRows, Mask, collapse
from openloop.propensity.solvers.newton import Curvature, Logits, Optimum, mapped, maximise

REGS = tuple(10.0**e for e in range(4, -4, -1))  # candidates, in the order in which W grows
LOOSE = 1e-2  # what ℓ, and each count relatively, may lack in a fit that only chooses


class HeldOutFold:
    """One part of the rows held out; its fits follow each other from the largest penalty to smaller ones."""

    def __init__(self, rows: CountedRows, held: Mask, X: Floats, Z: Floats) -> None:
        t, share = float(np.mean(held)), share_of_log(rows.weight)
        train = rows.taken(~held)
        train = CountedRows(user=train.user, item=train.item, weight=train.weight / (1 - t), shape=rows.shape)
        self._collapsed = collapse(train, X, Z)
        self._train, self._held = ClassCells(train, self._collapsed), ClassCells(rows.taken(held), self._collapsed)
        # The shares of the whole log that were trained on, and held out.
        self._s, self._t = share * (1 - t), share * t
        self._at: Logits | None = None
        self._known: Curvature | None = None

    def begin(self, collapsed: Collapsed, at: Logits) -> None:
        """Start at the solution of the whole log, whose classes are others."""
        _, logits = collapsed.whole(at)
        own = self._collapsed
        gamma = _means(logits.gamma[collapsed.users.of], own.users.of)[own.users.fitted]
        beta = _means(logits.beta[collapsed.items.of], own.items.of)[own.items.fitted]
        self._at = Logits(gamma=gamma, beta=beta, W=logits.W)

    def score(self, reg: float) -> float:
        """The log-likelihood of the cells that were not trained on."""
        found = maximise(self._collapsed.grid, reg, self._at, self._known, LOOSE)
        self._at, self._known = found.at, found.curvature
        grid, logits = self._collapsed.whole(found.at)

        def block(rows: slice) -> float:
            P = logits.probabilities(grid, rows)  # (B, H)
            held, train = (cells.of_block(P, rows) for cells in (self._held, self._train))
            # π = p·t / (1 − p·s): the chance of a cell that was not trained on to be held out
            seen = np.log(part_probability(held, self._t, self._s)) - self._unseen(held)
            return float(seen.sum() - self._unseen(train).sum() + grid.m[rows] @ self._unseen(P) @ grid.n)

        return sum(mapped(block, grid))

    def _unseen(self, p: Floats) -> Floats:
        """log(1 − π)."""
        return np.log(np.maximum(1 - p * (self._s + self._t), LEAST) / (1 - p * self._s))


class ClassCells:
    """Rows as cells of the grid of classes, in the order of its rows."""

    def __init__(self, rows: CountedRows, collapsed: Collapsed) -> None:
        g, h = collapsed.users.of[rows.user], collapsed.items.of[rows.item]
        order = np.argsort(g, kind="stable")
        self._g, self._h = g[order], h[order]

    def of_block(self, P: Floats, rows: slice) -> Floats:
        """The p of the rows that lie in a block."""
        first, last = np.searchsorted(self._g, [rows.start, rows.stop])
        return np.maximum(P[self._g[first:last] - rows.start, self._h[first:last]], LEAST)


def _means(values: Floats, of: Array) -> Floats:
    """The mean of each class."""
    return np.bincount(of, values) / np.bincount(of)


def validate(
    rows: CountedRows, collapsed: Collapsed, X: Floats, Z: Floats, folds: int, rng: np.random.Generator
) -> tuple[dict[float, float], Optimum]:
    """The log-likelihood of held-out cells by candidate, and a fit of all rows to start from."""
    first = maximise(collapsed.grid, REGS[0], tol=LOOSE)
    fold = rng.permutation(np.arange(len(rows.user)) % folds)
    parts = [HeldOutFold(rows, fold == f, X, Z) for f in range(folds)]
    for part in parts:
        part.begin(collapsed, first.at)
    scores: dict[float, float] = {}
    for reg in REGS:
        try:
            scores[reg] = sum(part.score(reg) for part in parts)
        except UndefinedError:
            if not scores:
                raise
            break  # covariates separate the rows: under a smaller penalty there is no optimum
        if _declines(list(scores.values())):
            break
    return scores, first


def _declines(scores: list[float]) -> bool:
    """Whether the last two got worse and worse: smaller penalties only overfit more."""
    return len(scores) > 2 and scores[-1] <= scores[-2] <= scores[-3]
