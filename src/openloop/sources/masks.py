"""Scores of -inf, as of a masked history: how many there are, and whether scored rows are among them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Array, Feedback
from openloop.core.protocols import on_host
from openloop.errors import PredictionError
from openloop.support.wording import counted


class Masks:
    """Counted by user, while blocks of scores are ranked; users that are looked at again count once."""

    def __init__(self, log: Feedback) -> None:
        self._cells = np.zeros(log.n_users, np.int64)
        self._rows = np.zeros(log.n_users, np.int64)
        self._ranked = 0  # rows that were looked at: of most metrics those that are relevant
        self._candidates = np.zeros(log.n_users, np.int64)

    def see(self, users: npt.NDArray[np.int64], block: Any, log: Feedback, excluded: tuple[Array, Array]) -> None:
        """Count what is -inf in a block (B, I), among the rows of `log`, and beside the excluded items, (ptr, item)."""
        if bool(block.min() > -np.inf):  # the rule, and quick wherever the block is
            return
        masked = on_host(block == -np.inf)
        self._cells[users] = masked.sum(axis=1)
        self._rows[users] = np.maximum(self._rows[users], _rows(users, masked, log.user_ptr, log.item))
        self._candidates[users] = self._cells[users] - _rows(users, masked, *excluded)

    def check(self, name: str, log: Feedback) -> None:
        """Refuse scores that leave out every row of `log`, which was ranked."""
        self._ranked = max(self._ranked, len(log))
        if len(log) and int(self._rows.sum()) >= len(log):
            raise PredictionError(
                f"model {name!r}: the scores of all {len(log):,} rows that are ranked are -inf; mask what it was "
                "trained on, and not the rows that are scored."
            )

    @property
    def candidates(self) -> int:
        """Masked cells that are ranked nevertheless, since nothing excludes them."""
        return int(self._candidates.sum())

    def remark(self, name: str) -> str:
        """What the reader should know; empty where nothing is masked."""
        cells, users, hit = int(self._cells.sum()), int(np.count_nonzero(self._cells)), int(self._rows.sum())
        if not cells:
            return ""
        said = (
            f"model {name!r}: has the score -inf for {counted(cells, 'cell')} of {counted(users, 'user')}, masked or "
            "not known to it: such items rank below all others"
        )
        hidden = f"; {hit:,} of {self._ranked:,} RANKED ROWS are among them: was the mask made with scored rows in it?"
        return said + (hidden if hit else "")


def _rows(users: npt.NDArray[np.int64], masked: Array, ptr: Array, item: Array) -> npt.NDArray[np.int64]:
    """How many of each user's items are masked, (B,)."""
    lengths = ptr[users + 1] - ptr[users]
    owner = np.repeat(np.arange(len(users)), lengths)
    at = np.repeat(ptr[users] - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
    return np.bincount(owner, masked[owner, item[at]], len(users)).astype(np.int64)
