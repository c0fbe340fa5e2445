"""What a model fitted on a frame can be asked: its rows stay where they are, and so do its users.

model = MF(64, solver="projected").fit(frame, user="uid", item="sku", rating="stars", sample_weight="w")
model.users()            # a frame of user, factors, bias
model.ranks(held_out)    # a frame of user, item, above, tied
model.top(100)           # a frame of user, item, score, rank
model.to_model()         # the same model in memory
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.base import clone

from openloop.core.feedback import Array, Vocabulary
from openloop.errors import InputError, UndefinedError
from openloop.learners.base import few_notes
from openloop.learners.blocks.ratings import RatingsTable, check_like, open_pairs, open_ratings
from openloop.learners.blocks.user_blocks import list_table, rank_table, user_table
from openloop.learners.solvers.projected import Ask
from openloop.support.arguments import is_whole
from openloop.support.memory import total_memory
from openloop.support.sizes import written

RELEASED = "release() freed the rows of the fit, and with them its users; fit again, and ask before release()."
ON_FRAME = ("_on_frame", "_released")
OF_USERS = ("users_", "user_factors_", "user_bias_")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrameFit:
    """Q with c, the blocks of users that it was fitted to, and the table that they were made of."""

    blocks: Any
    ask: Ask
    items: Array
    table: RatingsTable
    make: Any  # blocks of another table, for users that the fit did not see

    def notes(self) -> list[str]:
        """A sentence where a few weights outweigh all others."""
        return few_notes(self.blocks.facts.effective, self.blocks.facts.rows)

    def named(self, frame: Any) -> Any:
        """A frame of answers with the columns of the table that was fitted."""
        opened: Any = nw.from_native(frame)
        known = {side: self.table.names[side] for side in ("user", "item") if side in opened.collect_schema().names()}
        return opened.rename(known).to_native()


class FittedOnFrames:
    """Methods of a learner after `fit(frame)`."""

    _on_frame: FrameFit | None = None
    _released = False

    def users(self, frame: Any = None) -> Any:
        """A frame of user, factors and bias, after a fit on a frame.

        Args:
            frame: None gives all users of the fit. Another frame of ratings gives its users, folded in: solved from
                their own rows, given the items' factors, as the fit solves its users.

        Returns:
            A frame of the engine of the fit.
        """
        fit = self._fitted_on_frame("users")
        if frame is None:
            return fit.named(fit.blocks.map(user_table(), fit.ask))
        who = f"{type(self).__name__}.users"
        table = open_ratings(who, frame, dict(fit.table.names))
        check_like(table, fit.table)
        scale = fit.ask.scale * table.heaviest / fit.table.heaviest
        return fit.named(fit.make(table).map(user_table(), replace(fit.ask, scale=scale)))

    def ranks(self, held_out: Any) -> Any:
        """The exact ranks of held-out items among all other items, after a fit on a frame.

        Candidates are the items of the fit and of `held_out`, less those that the user was fitted with. Users and items
        that the fit did not see have vectors of zeros. `ol.evaluate(..., complete=True)` takes the frame.

        Args:
            held_out: A frame of (user, item) pairs.

        Returns:
            A frame of user, item, above and tied; `tied` counts the item itself.
        """
        fit = self._fitted_on_frame("ranks")
        pairs = open_pairs(f"{type(self).__name__}.ranks: held_out", held_out, fit.table)
        blocks = fit.blocks.beside(pairs)
        fresh = np.zeros((len(blocks.items) - len(fit.items), fit.ask.Q.shape[1]), fit.ask.Q.dtype)
        Q = np.concatenate([fit.ask.Q, fresh])
        return fit.named(blocks.map(rank_table(), replace(fit.ask, Q=Q)))

    def top(self, k: int) -> Any:
        """Each user's k best items that she was not fitted with, after a fit on a frame.

        Args:
            k: The number of items.

        Returns:
            A frame of user, item, score and rank.
        """
        fit = self._fitted_on_frame("top")
        if not (is_whole(k) and k >= 1):
            raise InputError(f"{type(self).__name__}.top: k must be a whole number from 1, got {k!r}.")
        return fit.named(fit.blocks.map(list_table(int(k)), fit.ask))

    def to_model(self) -> Any:
        """The same model with its users in memory, as if fitted on `Feedback`; refused where they do not fit.

        Returns:
            A fitted learner.
        """
        fit = self._fitted_on_frame("to_model")
        n, width = fit.blocks.facts.users, fit.ask.Q.shape[1]
        need, have = (
            3 * n * width * fit.ask.Q.itemsize,
            total_memory(),
        )  # as they arrive, as they are sorted, and as kept
        if have is not None and need > have / 2:
            raise InputError(
                f"{type(self).__name__}.to_model: {n:,} users × {width} numbers need {written(need)}, and half of this "
                f"machine's memory is {written(have / 2)}; write users() to files instead."
            )
        return self._with_users(fit)

    def release(self) -> None:
        """Free what the rows of the fit take on executors or on disk; afterwards the frames above cannot be made."""
        self._fitted_on_frame("release").blocks.release()
        self._on_frame, self._released = None, True

    def __getattr__(self, name: str) -> Any:
        """Say where users are when a method asks for them."""
        who = type(self).__name__
        if name in OF_USERS and vars(self).get("_released"):
            raise UndefinedError(f"{who}: {RELEASED}")
        if name in OF_USERS and vars(self).get("_on_frame") is not None:
            raise UndefinedError(
                f"{who}: was fitted on a frame, so its users are not in memory; to_model() brings them there, and "
                "users(), ranks(held_out) and top(k) are frames."
            )
        raise AttributeError(f"{who!r} object has no attribute {name!r}")

    def _forget(self, names: Sequence[str]) -> None:
        """Drop what a fit before this one left."""
        for name in names:
            vars(self).pop(name, None)

    def _fitted_on_frame(self, method: str) -> FrameFit:
        if self._released:
            raise UndefinedError(f"{type(self).__name__}.{method}: {RELEASED}")
        if self._on_frame is None:
            raise UndefinedError(
                f"{type(self).__name__}.{method}: is for a model fitted on a frame; one fitted on Feedback has "
                "user_factors_, predict and scores."
            )
        return self._on_frame

    def _with_users(self, fit: FrameFit) -> Any:
        found: Any = nw.from_native(fit.blocks.map(user_table(), fit.ask))
        found = found.collect("polars").to_polars() if isinstance(found, nw.LazyFrame) else found.to_polars()
        found = found.sort("user")
        model: Any = clone(self)
        ids = found["user"].to_numpy()
        V = np.stack(found["factors"].to_list()) if fit.ask.Q.shape[1] > 1 else np.zeros((len(ids), 0))
        model.users_ = Vocabulary(ids.astype(object) if ids.dtype.kind != "i" else ids)
        model.user_factors_ = np.ascontiguousarray(V, fit.ask.Q.dtype)
        model.user_bias_ = found["bias"].to_numpy().astype(fit.ask.Q.dtype)
        for name in ("item_factors_", "item_bias_", "intercept_", "items_", "history_", "notes_"):
            setattr(model, name, getattr(self, name))
        return model
