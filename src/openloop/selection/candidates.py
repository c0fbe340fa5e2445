"""`Candidate`: a learner with one setting; learners and grids to the candidates that are compared."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, cast

import numpy as np

from openloop.errors import InputError, did_you_mean, listing

Setting = Mapping[str, Any]
Grid = Mapping[str, Sequence[Any]] | Sequence[Setting] | None

TAKEN = re.compile(r"learner|value|stderr|best|problem|fold_\d+")  # columns of the table beside parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A learner with its setting, not fitted; `names` are the parameters that its grid sets.

    `kind` is the learner's name where several are compared.
    """

    learner: Any
    names: tuple[str, ...]
    kind: str | None = None


def candidates_of(learner: Any, grid: Any) -> list[Candidate]:
    """Every setting of a learner, or of each of several {name: learner}, in the order of their grids."""
    if not isinstance(learner, Mapping):
        return _of_one(learner, grid)
    kinds, grids = _kinds(cast("Mapping[Any, Any]", learner)), _grids(grid, cast("Mapping[str, Any]", learner))
    return [each for kind, one in kinds.items() for each in _of_one(one, grids.get(kind), kind)]


def parameters_of(candidates: Sequence[Candidate]) -> list[str]:
    """The parameters that the grids name, each once."""
    return list(dict.fromkeys(name for each in candidates for name in each.names))


def _of_one(learner: Any, grid: Any, kind: str | None = None) -> list[Candidate]:
    if isinstance(learner, type) or not hasattr(learner, "fit"):
        raise InputError(f"select: takes a learner such as ol.learners.MF(), got {learner!r}.")
    if not hasattr(learner, "get_params"):
        raise InputError(
            f"select: fits a fresh copy of the learner for each setting and fold, and {type(learner).__name__} has no "
            "get_params to copy it by; derive it from sklearn.base.BaseEstimator, with an __init__ that only assigns."
        )
    where = "grid" if kind is None else f"grid[{kind!r}]"
    settings = _settings(grid, where)
    if not settings:
        raise InputError(f"select: {where} is empty; name at least one setting, or pass None for the learner as it is.")
    names = tuple(dict.fromkeys(name for setting in settings for name in setting))
    for name in filter(TAKEN.fullmatch, names):
        raise InputError(f"select: {where} names the parameter {name!r}, which is a column of the table; rename it.")
    return [Candidate(kind=kind, learner=_with(learner, setting), names=names) for setting in settings]


def _with(learner: Any, setting: Setting) -> Any:
    """A fresh copy with these parameters; one of a learner inside it is set after that learner."""
    from sklearn.base import clone

    fresh: Any = clone(learner)
    for name in sorted(setting, key=lambda name: name.count("__")):
        known = fresh.get_params()
        if name not in known:
            raise InputError(f"select: {type(learner).__name__} has no parameter {name!r}.{did_you_mean(name, known)}")
        fresh.set_params(**{name: clone(setting[name], safe=False)})  # a learner in a grid is shared by its settings
    return fresh


# -- grids ---------------------------------------------------------------------------------------------------


def _settings(grid: Any, where: str) -> list[Setting]:
    """Every combination of the values, or the settings as listed; None is the learner as it is."""
    if grid is None:
        return [{}]
    if isinstance(grid, Mapping):
        given = cast("Mapping[Any, Any]", grid)
        lists = {str(name): _values(f"{where}[{str(name)!r}]", values) for name, values in given.items()}
        return [dict(zip(lists, chosen, strict=True)) for chosen in product(*lists.values())]
    if isinstance(grid, str) or not isinstance(grid, Iterable):
        raise InputError(f"select: {where} must map parameters to values, as {{'reg': [1.0, 5.0]}}, got {grid!r}.")
    return [_setting(setting) for setting in cast("Iterable[Any]", grid)]


def _setting(given: Any) -> Setting:
    if not isinstance(given, Mapping):
        raise InputError(f"select: a list of settings has mappings such as {{'reg': 5.0}}, got {given!r}.")
    return {str(name): value for name, value in cast("Mapping[Any, Any]", given).items()}


def _values(where: str, values: Any) -> list[Any]:
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise InputError(f"select: {where} must list the values to try, got {values!r}; write [{values!r}].")
    return [value.item() if isinstance(value, np.generic) else value for value in values]


# -- kinds ---------------------------------------------------------------------------------------------------


def _kinds(learners: Mapping[Any, Any]) -> Mapping[str, Any]:
    if not learners:
        raise InputError("select: no learner is given; name at least one, as {'mf': ol.learners.MF()}.")
    odd = [name for name in learners if not isinstance(name, str)]
    if odd:
        raise InputError(f"select: the names of learners must be text, got {listing(odd)}.")
    return learners


def _grids(grid: Any, learners: Mapping[str, Any]) -> Mapping[str, Any]:
    """The grid of each learner; one without keeps its parameters."""
    if grid is None:
        return {}
    if not isinstance(grid, Mapping):
        raise InputError(
            f"select: grid must map the learners {listing(list(learners))} to their grids, got {type(grid).__name__}."
        )
    given = cast("Mapping[Any, Any]", grid)
    for name in given:
        if name not in learners:
            raise InputError(f"select: grid[{name!r}] is for no learner.{did_you_mean(str(name), learners)}")
    return given
