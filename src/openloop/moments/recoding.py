"""Recommenders of other users and items than a log's, found by id and asked in the log's codes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Array, Ints, Vocabulary
from openloop.core.protocols import FactorModel, Placeable, on_host, predicted_block
from openloop.errors import AlignmentError, UnknownIdError, listing

ROLES = ("user", "item")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recoded:
    """A recommender asked in a log's codes; `user` and `item` are its own codes of these."""

    model: Any
    user: Ints  # (U,)
    item: Ints  # (I,)

    def predict(self, user: Ints, item: Ints) -> Array:
        """The predicted rating of each pair."""
        return on_host(self.model.predict(self.user[user], self.item[item]))

    def scores(self, users: Ints) -> Array:
        """The scores of all items of the population, (B, I)."""
        return on_host(self.model.scores(self.user[users]))[:, self.item]

    def predictions(self, users: Ints) -> Array:
        """What it predicts of all items of the population, (B, I)."""
        return predicted_block(self.model, self.user[users])[:, self.item]

    @property
    def linked(self) -> bool:
        """Whether predictions are another function of the scores, which `linear` has."""
        return bool(getattr(self.model, "linked", False))

    def linear(self, user: Ints, item: Ints) -> Array:
        """The score of each pair."""
        return self.model.linear(self.user[user], self.item[item])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecodedFactors(Recoded):
    """The same of a model whose scores are one matrix product."""

    def factor_arrays(self) -> tuple[Array, Array, Array | None]:
        """User factors (U, K), item factors (I, K) and item bias (I,) or None."""
        users, items, bias = self.model.factor_arrays()
        return users[self.user], items[self.item], None if bias is None else bias[self.item]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartlyRecoded:
    """A recommender that lacks some users and items of the log, which have code -1.

    Such items rank below all others, all items of such users are tied, and their ratings are not predicted.
    """

    lacks: ClassVar[bool] = True  # -inf says what it lacks, which a note told

    model: Any
    user: Ints
    item: Ints

    def knows(self, user: Ints, item: Ints) -> npt.NDArray[np.bool_]:
        """Whether it knows both the user and the item of each pair."""
        return (self.user[user] >= 0) & (self.item[item] >= 0)

    def predict(self, user: Ints, item: Ints) -> Array:
        """The predicted rating of each pair, NaN where it is not known."""
        # Some code must be asked for in place of -1.
        found = on_host(self.model.predict(np.maximum(self.user[user], 0), np.maximum(self.item[item], 0)))
        return np.where(self.knows(user, item), found, np.nan)

    def scores(self, users: Ints) -> Array:
        """The scores of all items of the population, -inf where they are not known."""
        return self._known(self.model.scores, users)

    def predictions(self, users: Ints) -> Array:
        """What it predicts of all items of the population, -inf where they are not known."""
        return self._known(partial(predicted_block, self.model), users)

    def _known(self, asked: Callable[[Ints], Any], users: Ints) -> Array:
        found = on_host(asked(np.maximum(self.user[users], 0)))[:, np.maximum(self.item, 0)]  # (B, I)
        found[self.user[users] < 0] = -np.inf
        found[:, self.item < 0] = -np.inf
        return found


def by_id(what: str, model: Any, users: Vocabulary, items: Vocabulary) -> Any:
    """A recommender in the codes of these ids; if it has no vocabularies, it is assumed to use these codes.

    It may know more ids. Those that it lacks are refused, unless it was wrapped to answer about them.
    """
    codes = _codes(what, model, users, items)
    if codes is None:
        return model
    for role, code, ids in zip(ROLES, codes, (users, items), strict=True):
        _refuse_lacking(what, role, model, ids.ids[code < 0], len(ids))
    if isinstance(model, Placeable):
        return model.placed(users, items)
    kind = RecodedFactors if isinstance(model, FactorModel) else Recoded
    return kind(model=model, user=codes[0], item=codes[1])


def partly_by_id(what: str, model: Any, users: Vocabulary, items: Vocabulary) -> tuple[Any, str]:
    """The same where a model may lack ids, and a note on what is made of them, empty where it lacks none."""
    codes = _codes(what, model, users, items)
    if codes is None:
        return model, ""
    lacking = {
        role: f"{number:,} of {len(code):,} {role}s"
        for role, code in zip(ROLES, codes, strict=True)
        if (number := int((code < 0).sum()))
    }
    if not lacking:
        return by_id(what, model, users, items), ""
    made = {"user": "all items of such users are tied", "item": "such items rank below all others"}
    note = (
        f"{what}: does not know {' and '.join(lacking.values())}; {', '.join(made[role] for role in lacking)}, and "
        "such ratings are not predicted"
    )
    return PartlyRecoded(model=model, user=codes[0], item=codes[1]), note


def told(what: str, model: Any) -> list[str]:
    """What the reader should know about a model that was made elsewhere, in the log's codes."""
    notes = model.notes_ if isinstance(model, Placeable) else getattr(model, "told", ())
    return [f"{what}: {note}" for note in notes]


# -- codes ---------------------------------------------------------------------------------------------------


def _codes(what: str, model: Any, users: Vocabulary, items: Vocabulary) -> tuple[Ints, Ints] | None:
    """The model's own codes of these ids, -1 where it has none; None where they are the same, or it has no ids."""
    own = [_own(model, role) for role in ROLES]
    if all(mine is None or mine == ids for mine, ids in zip(own, (users, items), strict=True)):
        return None
    user, item = (
        _found(what, role, model, mine, ids) for role, mine, ids in zip(ROLES, own, (users, items), strict=True)
    )
    return user, item


def _own(model: Any, role: str) -> Vocabulary | None:
    own = getattr(model, f"{role}s_", None)
    return own if isinstance(own, Vocabulary) else None


def _found(what: str, role: str, model: Any, own: Vocabulary | None, ids: Vocabulary) -> Ints:
    """The code of each id; that none is known is refused, and above all where ids are of another type."""
    if own is None or own == ids:
        return np.arange(len(ids), dtype=np.int32)
    if hasattr(model, "by_position") and model.by_position(f"{role}s"):
        # Ids within the range prove nothing: those of a log that counts from 1 are rows, too, of other users.
        raise AlignmentError(
            f"{what}: its {len(own):,} rows of {role}s have no ids, and the log's {len(ids):,} {role}s are not "
            f"0 … {len(own) - 1:,} but {listing(ids.ids[:3].tolist())} …; pass {role}s= the ids of its rows, in their "
            f"order; range({len(own)}) where row r is id r."
        )
    code = own.find(ids.ids)
    if (code >= 0).any():
        return code
    kinds = ["integers" if v.ids.dtype.kind == "i" else "text" for v in (own, ids)]
    remedy = "cast one of them" if kinds[0] != kinds[1] else "train it on a log with the same ids"
    raise AlignmentError(
        f"{what}: knows none of the log's {len(ids):,} {role}s; its own are {kinds[0]}, "
        f"{listing(own.ids[:3].tolist())} …, the log's {kinds[1]}, {listing(ids.ids[:3].tolist())} …; {remedy}."
    )


def _refuse_lacking(what: str, role: str, model: Any, lacking: Array, of: int) -> None:
    """Refuse ids that a model lacks, unless it was wrapped to answer about them."""
    if not len(lacking) or getattr(model, "unknown", None) == "zero":
        return
    remedy = (
        'pass unknown="zero" where it is wrapped, or read the log with like= the model, unknown="drop"'
        if isinstance(model, Placeable)
        else 'pass ol.wrap(model, unknown="zero"), fit it on this log, or read the log with like= it, unknown="drop"'
    )
    raise UnknownIdError(
        f"{what}: lacks {len(lacking):,} of the log's {of:,} {role}s, such as {listing(lacking[:3].tolist())}; "
        f"{remedy}."
    )
