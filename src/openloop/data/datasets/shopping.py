"""Data sets of shops: Coat (Schnabel et al. 2016) and the video games of Amazon (McAuley et al. 2015)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from openloop.core.covariates import Covariates
from openloop.core.feedback import Array, Feedback, Floats, Vocabulary
from openloop.data.datasets.finding import Files
from openloop.data.datasets.records import Data
from openloop.data.reading import read
from openloop.errors import FormatError


def coat(name: str, files: Files) -> Data:
    """Matrices of ratings, 0 where there is none: `train` was chosen by the people, `test` was drawn."""
    train, test = _matrix(files["train"][0]), _matrix(files["test"][0])  # (U, I)
    _refuse_other_shape(files["test"][0], test, train)
    users, items = map(Vocabulary.range, train.shape)
    both = int(np.sum((train != 0) & (test != 0)))
    differ = int(np.sum((train != 0) & (test != 0) & (train != test)))
    values = "" if differ == 0 else f", {differ:,} of them with different ratings"
    return Data(
        name=name,
        log=_cells(train, users, items),
        open_loop=_cells(test, users, items),
        propensities=_matrix(files["propensities"][0]) if "propensities" in files else None,
        user_covariates=_covariates(files, "user", users),
        item_covariates=_covariates(files, "item", items),
        notes=(f"{both:,} cells stand in both files{values}; published numbers keep them in both",) if both else (),
    )


def _cells(matrix: Floats, users: Vocabulary, items: Vocabulary) -> Feedback:
    user, item = np.nonzero(matrix)
    return Feedback.from_arrays(user, item, matrix[user, item], users=users, items=items)


def _covariates(files: Files, side: str, ids: Vocabulary) -> Covariates | None:
    if f"{side}_features" not in files:
        return None
    values = _matrix(files[f"{side}_features"][0])  # (ids, columns)
    if f"{side}_names" not in files:
        return Covariates.of(values, ids, side)
    named = files[f"{side}_names"][0]
    names = named.read_text(encoding="utf-8", errors="replace").split("\n")
    names = [line.strip() for line in names if line.strip()]
    if len(names) != values.shape[1]:
        msg = f"{named}: must name {values.shape[1]} columns, one a line, got {len(names)}; fetch it again."
        raise FormatError(msg)
    return Covariates(values=values, names=tuple(names), ids=ids)


def _matrix(path: Path) -> Floats:
    """Numbers with spaces between, a row a line."""
    text = path.read_text(encoding="utf-8", errors="replace")
    if not text.strip():
        raise FormatError(f"{path}: must hold a matrix of numbers, and is empty; fetch it again.")
    try:
        return np.loadtxt(text.splitlines(), ndmin=2)
    except ValueError as error:
        raise FormatError(f"{path}: must hold a matrix of numbers ({error}); fetch it again.") from error


def _refuse_other_shape(path: Path, matrix: Array, other: Array) -> None:
    if matrix.shape != other.shape:
        msg = f"{path}: must have the shape of the training matrix, {other.shape}, got {matrix.shape}; fetch it again."
        raise FormatError(msg)


def amazon_games(name: str, files: Files) -> Data:
    """Lines "user,item,rating,time" of the ratings-only file of 2014."""
    return Data(name=name, log=read(files["ratings"][0], separator=",", header=False, user=0, item=1, rating=2, time=3))
