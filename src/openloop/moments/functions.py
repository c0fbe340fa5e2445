"""Plain functions f(users, items) of ids as recommenders in a log's codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from openloop.core.feedback import Array, Ints, Vocabulary
from openloop.learners.adapters.asking import answered_grid, answers


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OfIds:
    """A function that gets as many ids of users as of items, and returns a score of each pair."""

    what: str
    function: Any
    users: Vocabulary
    items: Vocabulary

    def predict(self, user: Ints, item: Ints) -> Array:
        """The score of each pair of codes."""
        return answers(self.what, self.function, self.users.ids[user], self.items.ids[item])

    def scores(self, users: Ints) -> Array:
        """The scores of all items for these users, (B, I)."""
        return answered_grid(self.what, self.function, self.users.ids[users], self.items.ids)
