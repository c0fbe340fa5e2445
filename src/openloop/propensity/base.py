"""What propensity models share: the fit's bookkeeping, p of any cell, the grid and its margins.

A log is a Feedback, or a frame whose rows stay where they are.

A model of cells gives `_at(user, item)`, the p of any cells; `predict`, `matrix` and `margins` follow from it.
Where p depends on more than the cell (a rating, a column of the log) a model has its own `predict`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from openloop.core.feedback import Array, Feedback, Floats, Vocabulary, check_feedback, check_fitted, frozen
from openloop.core.grids import check_ids
from openloop.core.propensities import Propensities
from openloop.errors import InputError, UndefinedError, UnknownIdError, listing
from openloop.propensity.frames.appending import appended
from openloop.propensity.frames.frame_ids import FrameIds
from openloop.propensity.frames.log_frame import LogFrame
from openloop.propensity.frames.lookups import Lookup
from openloop.propensity.frames.opening import FrameOptions
from openloop.propensity.samples import refuse_sample_frame
from openloop.support.columns import Column
from openloop.support.frames import is_frame

MAX_GRID = 2**28  # cells of a matrix() held in memory: 2 GiB
BLOCK = 2**21  # cells at a time where the grid is walked through


class PropensityEstimator(BaseEstimator):
    """Learned by every fit: the grid as `users_` and `items_`, and what the fit reports as `notes_`.

    `assumes` says what the model assumes; empty where p was given to it. `sees_rating`: p may depend on the rating.
    `fits_items`: the p of each item is fitted to the log; `fits_cells`: that of single cells, beyond their user and
    item.

    After a fit on a frame `users_` and `items_` are `FrameIds`, since the ids stay in the engine, and what is learned
    by user or item has one number for each count of rows that occurs.
    """

    assumes: str = ""
    sees_rating: bool = False
    fits_items: bool = False
    fits_cells: bool = False
    users_: Any  # Vocabulary | FrameIds
    items_: Any
    notes_: tuple[str, ...]
    side_: dict[str, Any]
    frame_: LogFrame | None

    def _opened(self, given: Any, columns: Mapping[str, Any], needed: Iterable[str] = ()) -> Feedback | LogFrame:
        """The log of a fit: a Feedback as it is, a frame opened and counted in its engine."""
        name = type(self).__name__
        if hasattr(given, "fit_options"):  # a scanned log, which knows its columns and its population
            given, columns = given.frame(), {**given.fit_options(), **columns}
        asked = FrameOptions.of(self, columns)
        if isinstance(given, LogFrame):  # as a model that has another within opened it
            return given
        if is_frame(given):
            return LogFrame.of(name, given, asked, needed)
        check_feedback(name, given)
        if columns:
            raise InputError(
                f"{name}: {next(iter(columns))}= does not apply: the log is a Feedback, which knows its ids, its "
                "ratings and its population."
            )
        return given

    def _remember(self, log: Feedback | LogFrame, *notes: str, **side: Any) -> Self:
        """The end of a fit; `side` is what was given to it beside the log."""
        self.users_, self.items_ = log.users, log.items
        self.frame_ = log if isinstance(log, LogFrame) else None
        of_frame = log.notes if isinstance(log, LogFrame) else ()
        self.notes_, self.side_ = tuple(dict.fromkeys((*of_frame, *notes))), side
        return self

    def with_column(
        self, frame: Any, name: str = "propensity", *, user: Column = None, item: Column = None, rating: Column = None
    ) -> Any:
        """The frame with the p of each row as its last column, computed in the frame's engine; its rows stay there.

        Args:
            frame: A frame of any engine, with rows about users and items of the fit.
            name: The name of the new column.
            user: The column of user ids; by default the name used in the fit, or an obvious one.
            item: The column of item ids, likewise.
            rating: The column of ratings, likewise; only for models whose p depends on the rating.

        Returns:
            A frame of the same engine, with one more column.
        """
        check_fitted(self)
        if not is_frame(frame):
            kind = type(frame).__name__
            raise InputError(f"{type(self).__name__}.with_column: takes a frame, got {kind}; predict takes a Feedback.")
        refuse_sample_frame(type(self).__name__, self.side_.get("uniform"), frame)
        fitted = self.frame_
        return appended(
            f"{type(self).__name__}.with_column", frame, name, self.frame_parts(),
            asked={"user": user, "item": item, "rating": rating},
            known={} if fitted is None else fitted.opened.chosen, fitted=fitted and fitted.opened.native,
        )  # fmt: skip

    def frame_parts(self) -> tuple[Sequence[Lookup], Any]:
        """What is looked up for each row of a frame, and p as an expression of it.

        Returns:
            Lookups to join, and a narwhals expression of their columns.
        """
        raise UndefinedError(
            f"{type(self).__name__}: p is not a simple expression of a row's user, item and rating, so no engine can "
            "add it as a column; predict(feedback) gives the p of a log that was read with ol.read."
        )

    def _found(self, feedback: Feedback, values: Floats, **more: Any) -> Propensities:
        """The p of the rows of `feedback`, with its fingerprint and what this model is."""
        return Propensities(
            values=values,
            fingerprint=feedback.fingerprint,
            blind=not self.sees_rating,
            by_items=self.fits_items,
            by_cells=self.fits_cells,
            **more,
        )

    def refit(self, feedback: Feedback) -> Self:
        """A fresh copy, fitted on another part of the log with the same side information.

        Args:
            feedback: Another part of the log.

        Returns:
            The new fitted model; this one is unchanged.
        """
        check_fitted(self)
        fresh: Any = clone(self)
        return fresh.fit(feedback, **self.side_)


class CellModel(PropensityEstimator):
    """A model whose p depends on the cell alone."""

    def _at(self, user: Array, item: Array) -> Floats:
        """The p of each (user, item) pair of codes; the two broadcast."""
        raise NotImplementedError

    def predict(self, feedback: Feedback) -> Propensities:
        """The p of each row.

        Args:
            feedback: A log, or a part of one, on the users and items of the fit.

        Returns:
            `Propensities` in Feedback order, with the fingerprint of `feedback`.
        """
        return self._found(feedback, self._at(*places(self, feedback)))

    def matrix(self) -> Floats:
        """The p of every cell; refused where it would not fit into memory.

        Returns:
            A read-only array (U, I).
        """
        check_codes(self)
        U, I = len(self.users_), len(self.items_)
        if U * I > MAX_GRID:
            raise UndefinedError(
                f"{type(self).__name__}: a matrix of {U:,} × {I:,} cells would take {U * I * 8 / 2**30:,.0f} GiB; "
                "predict(feedback) gives the p of any cells, margins() the sums."
            )
        grid = np.empty((U, I))
        for users in self._blocks():
            grid[users] = self._at(users[:, None], np.arange(I))  # (B, I)
        return frozen(grid)

    def margins(self) -> tuple[Floats, Floats]:
        """The sums of p by user and by item.

        Returns:
            Σ_i p of each user (U,) and Σ_u p of each item (I,).
        """
        check_codes(self)
        U, I = len(self.users_), len(self.items_)
        by_user, by_item = np.empty(U), np.zeros(I)
        for users in self._blocks():
            p = self._at(users[:, None], np.arange(I))  # (B, I)
            by_user[users] = p.sum(axis=1)
            by_item += p.sum(axis=0)
        return by_user, by_item

    def _blocks(self) -> list[Array]:
        size = max(1, BLOCK // len(self.items_))
        return [np.arange(start, min(start + size, len(self.users_))) for start in range(0, len(self.users_), size)]


def share_of_log(rows: Floats) -> float:
    """The share of the log that these rows are; each represents 1/s rows."""
    return len(rows) / float(rows.sum())


def check_grid(model: Any, feedback: Feedback) -> None:
    """Refuse a model that is not fitted, and a feedback on other users or items than it was fitted on."""
    check_fitted(model)
    check_feedback(type(model).__name__, feedback)
    if not isinstance(model.users_, FrameIds):  # those are looked up
        check_ids(model, feedback)


def check_codes(model: Any) -> None:
    """Refuse to list all users and items of a model whose ids stayed in an engine."""
    check_fitted(model)
    if isinstance(model.users_, FrameIds):
        raise UndefinedError(
            f"{type(model).__name__}: fitted on a frame, whose {len(model.users_):,} users and {len(model.items_):,} "
            "items stay in its engine; with_column(frame) and predict(feedback) give the p of rows."
        )


def places(model: Any, feedback: Feedback) -> tuple[Array, Array]:
    """Where each row's user and item are among what a model has learned by user and item."""
    check_grid(model, feedback)
    sides = ((model.users_, feedback.users, feedback.user), (model.items_, feedback.items, feedback.item))
    user, item = (
        _entries(type(model).__name__, known, ids)[codes] if isinstance(known, FrameIds) else codes
        for known, ids, codes in sides
    )
    return user, item


def _entries(who: str, known: FrameIds, ids: Vocabulary) -> Array:
    """The entry of each id; those without a row are entry 0, if the population has that many of them."""
    found = known.find(ids.ids)
    new = np.flatnonzero(found < 0)
    if len(new) > known.unseen:
        raise UnknownIdError(
            f"{who}: {len(new):,} of {len(ids):,} ids are not in the frame that it was fitted on, such as "
            f"{listing(ids.ids[new[:3]].tolist())}, and its population has {known.unseen:,} without a row; fit on the "
            "whole log, or pass population=."
        )
    return np.maximum(found, 0)


def refuse_frame(model: Any, given: Any, columns: Mapping[str, Any]) -> None:
    """Refuse a frame, and the keywords of one, for a model that needs the rows in memory."""
    FrameOptions.of(model, columns)  # a mistyped keyword is another error
    if isinstance(given, LogFrame) or is_frame(given) or columns:
        raise InputError(
            f"{type(model).__name__}: needs the rows in memory and takes a Feedback; read the log, or a sample of its "
            "users, with ol.read. Uniform, Popularity, NaiveBayes, Logistic and Balanced take frames directly."
        )


def row_counts(model: Any, feedback: Feedback) -> Floats:
    """How many rows of the whole log each row represents: 1/s; unknown for a part without shares."""
    check_feedback(type(model).__name__, feedback)
    if feedback.share is None and feedback.positives:
        raise UndefinedError(
            f"{type(model).__name__}: this part of a log of positives has no share (as after a split by time), and a "
            "fit on the whole log would not help: it gives probabilities of being shown and liked, which an audit "
            "refuses. Pass the audit no propensities, or the probability of being shown as a column of the log."
        )
    if feedback.share is None:
        raise UndefinedError(
            f"{type(model).__name__}: this part of a log has no share (as after a split by time), so the size of the "
            "whole log is unknown; fit on the whole log."
        )
    return 1.0 / feedback.share


def item_counts(model: Any, log: Feedback | LogFrame) -> tuple[Floats, Floats | None]:
    """n_i of each item; or of each count that occurs, and how many items have it. None: each is one item."""
    if isinstance(log, LogFrame):
        return log.seen[1].count, log.seen[1].size
    return counts(model, log)[1], None


def counts(model: Any, feedback: Feedback) -> tuple[Floats, Floats]:
    """n_u of each user (U,) and n_i of each item (I,), of the log that `feedback` is or was split from."""
    rows = row_counts(model, feedback)
    return tally(feedback.user, rows, feedback.n_users), tally(feedback.item, rows, feedback.n_items)


def tally(code: Array, weight: Floats, size: int) -> Floats:
    """The sum of weights of each code, (size,)."""
    sums: Any = np.bincount(code, weight, minlength=size)
    return sums
