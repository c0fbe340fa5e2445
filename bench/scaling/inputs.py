"""The inputs of scaling curves, each in the file that a case of the bench reads; and the side that audits.

Imports the standard library and numpy only, as `bench.worker` runs it in processes of their own.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from bench import factorisation, moments, offsets, ranks


def make(folder: Path, asked: str) -> None:
    """The input named `asked["input"]`, of the sizes beside it."""
    size = json.loads(asked)
    INPUTS[size.pop("input")](folder, **{name: size[name] for name in size if name != "threads"})


def rows(folder: Path, *, rows: int, users: int, items: int) -> None:
    """Each user has equally many rows; no pair twice, as the number of items is prime."""
    moments.write_rows(folder, users, rows // users, _prime(items))


def _prime(least: int) -> int:
    """The first prime that is not below."""
    while any(least % d == 0 for d in range(2, int(least**0.5) + 1)):
        least += 1
    return least


def factors(folder: Path, *, wanted: int, users: int, items: int, factors: int) -> None:
    """Vectors, and about as many wanted items of each user."""
    ranks.write_factors(folder, users, items, factors, wanted)


def log(folder: Path, *, rows: int, users: int, items: int, **_: int) -> None:
    """A weighted log of a truth of few factors."""
    np.savez(folder / "log.npz", **factorisation.weighted_log(users, items, rows, np.random.default_rng(0)))


def counts(folder: Path, *, rows: int, users: int, items: int, **_: int) -> None:
    """Who rated what, and nothing else."""
    np.savez(folder / "offsets.npz", **offsets.offsets_log(users, items, rows, np.random.default_rng(0)))


def cells(folder: Path, *, rows: int, users: int, items: int, covariates: int) -> None:
    """About `rows` of the cells by a logistic model; everybody has a row, and as many covariates on either side."""
    rng = np.random.default_rng(0)
    X, Z = (rng.standard_normal((n, covariates)) for n in (users, items))
    z = rng.normal(0, 0.7, (users, 1)) + rng.normal(0, 0.7, items) + X @ rng.normal(0, 0.1, (covariates,) * 2) @ Z.T
    odds = np.exp(z)
    O = rng.random((users, items)) < np.clip(odds * rows / odds.sum(), 0, 0.9)
    O[np.arange(users), rng.integers(items, size=users)] = O[rng.integers(users, size=items), np.arange(items)] = True
    np.savez(folder / "coat.npz", O=O, X=X, Z=Z)


INPUTS = {"rows": rows, "factors": factors, "log": log, "counts": counts, "cells": cells}


def audited(folder: Path, factors: str, models: str) -> Any:
    """`ol.audit` of factorisations that were fitted before, on a fifth of the log: ratings and rankings."""
    import warnings

    import openloop as ol

    columns, (U, I) = factorisation.load(folder / "log.npz")
    del columns["weight"]
    whole = ol.Feedback(**columns, users=ol.Vocabulary.range(U), items=ol.Vocabulary.range(I))
    train, test = ol.split(whole, test=0.2, rng=0)
    seen = ol.propensity.Popularity().fit(whole)
    warnings.simplefilter("ignore")  # one or two sweeps do not converge
    fitted = {
        f"m{m}": ol.learners.MF(int(factors), reg=10.0, iterations=1 + m % 2, rng=m).fit(train)
        for m in range(int(models))
    }

    def timed() -> str:
        return ol.audit(fitted, test, seen, metrics=["mae", "ndcg@10"], exclude=train).verdict.level

    return timed
