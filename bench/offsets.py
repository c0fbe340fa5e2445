"""Logistic propensities at size: offsets alone on a log as large as MovieLens 20M, and 400 products of covariates.

There is no peer: an explicit design of 3.7 billion cells fits nowhere. Targets limit seconds and bytes themselves.
The offsets' fit is exact: Σp of every user and item is its count, and the largest relative difference is noted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bench.harness import Result, Side, compare, make_input, missing, race

# users, items, rows
OFFSETS = {"full": (138_493, 26_744, 20_000_000), "quick": (300, 200, 6_000)}
# users, items; 20 covariates on each side
COVARIATES = {"full": (15_400, 1_000), "quick": (200, 100)}
ROUNDS = {"full": 2, "quick": 1}
SECONDS = {"offsets": 10.0, "covariates": 60.0}
BYTES = 2 * 2**30
PARITY = 1e-6
MODULE = "bench.offsets"


def run(folder: Path, size: str, **_: Any) -> list[Result]:
    results: list[Result] = []
    for case, what in (("offsets", "20 M rows, offsets"), ("covariates", "15,400 × 1,000, 400 products")):
        make_input(f"{MODULE}", folder, f"{case} {size}")
        found = race({case: Side(call=f"{MODULE}:{case}")}, folder, ROUNDS[size])[case]
        note, gap = found.value
        if gap > PARITY:
            results.append(missing(what, f"not the optimum: {note}", found.best))
            continue
        results += [
            compare(what, found.best, target=SECONDS[case], note=note),
            compare(f"{what}, memory", found.peak, target=BYTES, note="the whole process, input included", unit="B"),
        ]
    return results


def make(folder: Path, size: str) -> None:
    case, _, size = size.partition(" ")
    rng = np.random.default_rng(0)
    made = offsets_log(*OFFSETS[size], rng) if case == "offsets" else covariates_log(*COVARIATES[size], rng)
    np.savez(folder / f"{case}.npz", **made)


def offsets_log(U: int, I: int, n: int, rng: np.random.Generator) -> dict[str, Any]:
    """Users and items drawn by lognormal activity and popularity; everybody has a row."""
    shares = [np.cumsum(w) / w.sum() for w in (rng.lognormal(0, 1.1, U), rng.lognormal(0, 2.0, I))]
    cell = np.concatenate([np.arange(U) * I + np.arange(U) % I, np.arange(I) % U * I + np.arange(I)])
    while True:
        cell = np.unique(cell)
        if len(cell) >= n:
            break
        user, item = (np.searchsorted(s, rng.random(int(1.3 * (n - len(cell))) + 100)) for s in shares)
        cell = np.concatenate([cell, user * I + item])
    # The first ones of everybody are kept: of the others as many as are wanted.
    must = np.zeros(len(cell), bool)
    must[np.unique(cell // I, return_index=True)[1]] = must[np.unique(cell % I, return_index=True)[1]] = True
    free = rng.permutation(np.flatnonzero(~must))[: n - int(must.sum())]
    cell = cell[np.sort(np.concatenate([np.flatnonzero(must), free]))]
    return {"user": (cell // I).astype(np.int32), "item": (cell % I).astype(np.int32), "shape": (U, I)}


def covariates_log(U: int, I: int, rng: np.random.Generator) -> dict[str, Any]:
    """P follows the model: 20 standard normal covariates on each side, and offsets."""
    X, Z = rng.standard_normal((U, 20)), rng.standard_normal((I, 20))
    z = rng.normal(-3.5, 1, (U, 1)) + rng.standard_normal(I) + X @ rng.normal(0, 0.05, (20, 20)) @ Z.T  # (U, I)
    user, item = np.nonzero(rng.random((U, I)) < 1 / (1 + np.exp(-z)))
    return {"user": user.astype(np.int32), "item": item.astype(np.int32), "shape": (U, I), "X": X, "Z": Z}


def load(path: Path) -> tuple[Any, dict[str, Any]]:
    import openloop as ol

    with np.load(path) as file:
        columns = {name: file[name] for name in file.files}
    users, items = (ol.Vocabulary.range(n) for n in columns.pop("shape").tolist())
    user, item = columns.pop("user"), columns.pop("item")
    rating = np.ones(len(user), np.float32)
    return ol.Feedback(user=user, item=item, rating=rating, users=users, items=items), columns


def offsets(folder: Path) -> Any:
    from openloop.propensity import Logistic

    log, _ = load(folder / "offsets.npz")

    def timed() -> tuple[str, float]:
        model = Logistic().fit(log)
        counts = np.bincount(log.user, minlength=log.n_users), np.bincount(log.item, minlength=log.n_items)
        gap = max(float(np.max(np.abs(s / n - 1))) for s, n in zip(model.margins(), counts, strict=True))
        grid = model.collapsed_.grid
        return f"Σp differs from counts by {gap:.0e} at most; {len(grid.m):,} × {len(grid.n):,} classes", gap

    return timed


def covariates(folder: Path) -> Any:
    from openloop.propensity import Logistic

    log, features = load(folder / "covariates.npz")

    def timed() -> tuple[str, float]:
        model = Logistic().fit(log, features["X"], features["Z"])
        fits = len(model.scores_)
        by_user, counts = model.margins()[0], np.bincount(log.user, minlength=log.n_users)
        gap = float(np.max(np.abs(by_user / np.maximum(counts, 1) - 1)[counts > 0]))
        return f"penalty chosen among {fits} by 4-fold cross-validation: {model.reg_:g}; {len(log):,} rows", gap

    return timed
