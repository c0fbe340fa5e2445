"""Data sets of shops: Coat (Schnabel et al. 2016) and the video games of Amazon (McAuley et al. 2015)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from openloop.core.covariates import Covariates
from openloop.core.feedback import Array, Feedback, Floats, Vocabulary
from openloop.data.datasets import lines
from openloop.data.datasets.finding import Files
from openloop.data.datasets.records import Data
from openloop.errors import AlignmentError, FormatError, PropensityError, quoted

_GAMES = {"user": str, "item": str, "rating": float, "time": int}


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
        propensities=_propensities(files["propensities"][0], train) if "propensities" in files else None,
        user_covariates=_covariates(files, "user", users),
        item_covariates=_covariates(files, "item", items),
        notes=(f"{both:,} cells are in both files{values}; published numbers keep them in both",) if both else (),
    )


def _cells(matrix: Floats, users: Vocabulary, items: Vocabulary) -> Feedback:
    user, item = np.nonzero(matrix)
    return Feedback.from_arrays(user, item, matrix[user, item], users=users, items=items)


def _covariates(files: Files, side: str, ids: Vocabulary) -> Covariates | None:
    if f"{side}_features" not in files:
        return None
    values = _matrix(files[f"{side}_features"][0])  # (ids, columns)
    if len(values) != len(ids):
        path = files[f"{side}_features"][0]
        msg = f"{path}: must have a line for each of the {len(ids):,} {side}s, got {len(values):,}; {lines.AGAIN}"
        raise FormatError(msg)
    if f"{side}_names" not in files:
        return Covariates.of(values, ids, side)
    named = files[f"{side}_names"][0]
    names = named.read_text(encoding="utf-8", errors="replace").split("\n")
    names = [line.strip() for line in names if line.strip()]
    if len(names) != values.shape[1]:
        raise FormatError(
            f"{named}: must name {values.shape[1]} columns, one per line, got {len(names)}; {lines.AGAIN}"
        )
    return Covariates(values=values, names=tuple(names), ids=ids)


def _propensities(path: Path, train: Floats) -> Floats:
    """A probability for each cell."""
    values = _matrix(path)  # (U, I)
    if values.shape != train.shape:
        msg = f"{path}: must have the shape of the training matrix, {train.shape}, got {values.shape}; {lines.AGAIN}"
        raise AlignmentError(msg)
    bad = np.argwhere((values <= 0) | (values > 1))
    if len(bad):
        first = f"{values[tuple(bad[0])]:g} in line {bad[0][0] + 1:,}"
        msg = f"{path}: {len(bad):,} of {values.size:,} propensities are outside (0, 1], first {first}; {lines.AGAIN}"
        raise PropensityError(msg)
    return values


def _matrix(path: Path) -> Floats:
    """Numbers with spaces between, one row per line."""
    text = path.read_text(encoding="utf-8", errors="replace").splitlines()
    if not any(line.strip() for line in text):
        raise FormatError(f"{path}: must hold a matrix of numbers, and is empty; {lines.AGAIN}")
    try:
        matrix = np.loadtxt(text, ndmin=2, comments=None)
    except ValueError as error:
        raise FormatError(f"{path}: must hold a matrix of numbers, and {_first_bad(text)}; {lines.AGAIN}") from error
    if not np.isfinite(matrix).all():
        raise FormatError(f"{path}: must hold a matrix of numbers, and {_first_bad(text)}; {lines.AGAIN}")
    return matrix


def _first_bad(text: list[str]) -> str:
    """The first line with what is not a number, or with more or fewer fields than the first line."""
    filled = [(number, line.split()) for number, line in enumerate(text, 1) if line.strip()]
    for number, fields in filled:
        strange = next((field for field in fields if not _finite(field)), None)
        if strange is not None:
            return f"line {number:,} has {quoted(strange)}"
        if len(fields) != len(filled[0][1]):
            return f"line {number:,} has {len(fields):,} of them, the first {len(filled[0][1]):,}"
    return "holds something else"


def _finite(field: str) -> bool:
    try:
        return bool(np.isfinite(float(field)))
    except ValueError:
        return False


def _refuse_other_shape(path: Path, matrix: Array, other: Array) -> None:
    if matrix.shape != other.shape:
        msg = f"{path}: must have the shape of the training matrix, {other.shape}, got {matrix.shape}; {lines.AGAIN}"
        raise FormatError(msg)


def amazon_games(name: str, files: Files) -> Data:
    """Lines "user,item,rating,time" of the ratings-only file of 2014."""
    return Data(name=name, log=lines.log(files["ratings"][0], _GAMES, separator=",", header=False))
