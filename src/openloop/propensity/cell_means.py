"""`CellMeans`: functions of what models predict, at any cells, and their means over the population's cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Array, Feedback, Floats
from openloop.core.grids import check_shape, check_vocabulary
from openloop.core.protocols import predicted_block
from openloop.errors import InputError, PredictionError

Codes = npt.NDArray[np.int64]

BLOCK = 2**21  # cells at a time where all are asked for
IMPUTED = "imputed"
PREDICTION = "prediction"  # what a model is called that was given without a name


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellMeans:
    """f and f² of each model's predictions f; with imputed ratings g also the losses |f − g| and (f − g)².

    A model is a U × I array or a recommender; arrays are kept as they are given. `sums` are those of each user's cells,
    of which there are `cells` in all. In a draw of users, user j predicts as `who[j]` did.
    """

    models: Mapping[str, Any]
    imputed: Any
    names: tuple[str, ...]
    sums: Floats  # (U, K)
    cells: int
    who: Codes | None = None

    @classmethod
    def of(cls, predictions: Any, imputed: Any, log: Feedback) -> CellMeans:
        """The functions of `predictions`, one model or {name: model}; of imputed ratings alone g and g²."""
        if isinstance(predictions, CellMeans):
            return predictions
        named = {IMPUTED: imputed} if predictions is None else _named(predictions)
        beside = None if predictions is None else imputed
        for name, model in {**named, **({} if beside is None else {IMPUTED: beside})}.items():
            _check(_said(name), model, log)
        sums = np.empty((log.n_users, len(named) * (2 if beside is None else 4)))
        for users in _blocks(log.n_users, log.n_items):
            g = None if beside is None else _block(IMPUTED, beside, users, log)
            h = functions([_block(name, model, users, log) for name, model in named.items()], g)
            sums[users] = np.stack([one.sum(axis=1) for one in h], axis=1)  # (B, K)
        return cls(
            models=named, imputed=beside, names=tuple(_names(list(named), losses=beside is not None)), sums=sums,
            cells=log.n_users * log.n_items,
        )  # fmt: skip

    @property
    def means(self) -> Floats:
        """The mean of each function over the cells, (K,)."""
        return self.sums.sum(axis=0) / self.cells

    def at(self, user: Array, item: Array) -> Floats:
        """h of cells, (n, K)."""
        user = user if self.who is None else self.who[user]
        g = None if self.imputed is None else _rows(IMPUTED, self.imputed, user, item)
        f = [_rows(name, model, user, item) for name, model in self.models.items()]
        return np.stack(list(functions(f, g)), axis=1)

    def columns(self, feedback: Feedback) -> Floats:
        """h of each row, (n, K)."""
        return self.at(feedback.user, feedback.item)

    def tilt(self, feedback: Feedback, mu: Floats) -> Floats:
        """μᵀh of each row."""
        return self.columns(feedback) @ mu

    def without(self, user: Array, item: Array) -> CellMeans:
        """The same over all cells but these."""
        if not len(user):
            return self
        h = self.at(user, item)
        gone = np.stack([np.bincount(user, one, minlength=len(self.sums)) for one in h.T], axis=1)  # (U, K)
        return replace(self, sums=self.sums - gone, cells=self.cells - len(user))

    def drawn(self, draw: Codes) -> CellMeans:
        """That of a log in which user j has the rows of user draw[j]."""
        return replace(self, sums=self.sums[draw], who=draw if self.who is None else self.who[draw])


def functions(f: Sequence[Floats], g: Floats | None) -> Iterator[Floats]:
    """h of cells from predictions f of models, each of the cells' shape, and imputed ratings g."""
    for one in f:
        yield one
        yield np.square(one)
        if g is not None:
            yield np.abs(one - g)
            yield np.square(one - g)


def _names(models: Sequence[str], *, losses: bool) -> Iterator[str]:
    for name in models:
        yield from (name, f"{name}²")
        if losses:
            yield from (f"|{name} − {IMPUTED}|", f"({name} − {IMPUTED})²")


# -- asking models -------------------------------------------------------------------------------------------


def _named(given: Any) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        return {PREDICTION: given}
    named = {str(name): model for name, model in cast("Mapping[Any, Any]", given).items()}
    if not named or IMPUTED in named:
        raise InputError(
            f"predictions: must name at least one model, and none {IMPUTED!r}, got {list(named)}; rename it, or leave "
            "predictions= out."
        )
    return named


def _said(name: str) -> str:
    """A model as errors call it: by the keyword that it was given as."""
    return {IMPUTED: "imputed", PREDICTION: "predictions"}.get(name, f"predictions[{name!r}]")


def _check(what: str, model: Any, log: Feedback) -> None:
    if isinstance(model, np.ndarray):
        check_shape(what, model.shape, log)
        return
    if isinstance(model, type) or not (hasattr(model, "predict") and hasattr(model, "scores")):
        kind = model.__name__ if isinstance(model, type) else type(model).__name__
        raise PredictionError(
            f"{what}: {kind} does not say what it predicts of all cells; give a fitted recommender (predict, scores) "
            f"or a {log.n_users} × {log.n_items} array."
        )
    check_vocabulary(what, model, log)


def _blocks(users: int, items: int) -> Iterator[Codes]:
    size = max(1, BLOCK // items)
    return (np.arange(start, min(start + size, users)) for start in range(0, users, size))


def _block(name: str, model: Any, users: Codes, log: Feedback) -> Floats:
    found = model[users] if isinstance(model, np.ndarray) else predicted_block(model, users)
    return _finite(_said(name), found, (len(users), log.n_items))


def _rows(name: str, model: Any, user: Array, item: Array) -> Floats:
    found = model[user, item] if isinstance(model, np.ndarray) else model.predict(user, item)
    return _finite(_said(name), found, user.shape)


def _finite(what: str, values: Any, shape: tuple[int, ...]) -> Floats:
    found = np.asarray(values, np.float64)
    if found.shape != shape:
        raise PredictionError(
            f"{what}: gave predictions of shape {found.shape}, want {shape}; return one for each cell."
        )
    if bad := int(np.sum(~np.isfinite(found))):
        raise PredictionError(
            f"{what}: {bad:,} of {found.size:,} predictions are not finite; all cells need one, so repair the model."
        )
    return found
