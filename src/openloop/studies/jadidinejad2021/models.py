"""The trial: one of the 104 models, fitted on a part of the log, and where it ranks what users liked.

All that the evaluation methods need of a model are the ranks of the relevant cells, in the held-out part of the
log and in the open loop, so these are what a trial keeps; `scores` makes estimates of them, for all models at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Array, Feedback, Floats
from openloop.studies.jadidinejad2021 import as_coded
from openloop.studies.kit.trials import Given, columns

Ints = npt.NDArray[np.int64]

TEST = 0.2  # section 6.1: 80 % of the closed loop for training, 20 % for testing
THRESHOLD = 4.0  # section 6.1: r ≥ 4 is relevant
WHOLE = -1  # the split that holds nothing out: the published code's models for the open loop
START = 123  # the seed of every model in the published code
USES = ("splits", "users", "folds", "samples")  # of chance, each with a stream of its own


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Rows of the log, by position, and the items in the order in which the code meets them."""

    train: Ints  # in the order in which they were drawn, in which the code trains
    test: Ints  # sorted
    order: Ints  # items of the training part, by first appearance: Cornac's index → item

    @property
    def share(self) -> float:
        """The share of the log that is held out."""
        return len(self.test) / (len(self.train) + len(self.test))


def stream(seed: int, use: str, number: int = 0) -> np.random.Generator:
    """Chance for one of USES; NumPy takes no notice of zeros at the end, so the use counts from 1 and comes first."""
    return np.random.default_rng([seed, 1 + USES.index(use), number])


def given_of(log: Feedback, open_loop: Feedback | None = None) -> dict[str, Array]:
    """The arrays of a trial: the log, the open loop where there is one, the size of the grid."""
    given = columns(log)
    if open_loop is not None:
        given |= {"open_user": open_loop.user, "open_item": open_loop.item, "open_rating": open_loop.rating}
    return given


def split_of(given: Given, split: int, seed: int) -> Split:
    """The rows of that split; the same for every model."""
    n = len(given["user"])
    drawn = stream(seed, "splits", split).permutation(n) if split != WHOLE else np.arange(n)
    held = round(TEST * n) if split != WHOLE else 0
    train, test = drawn[: n - held], drawn[n - held :]
    items = given["item"][train]
    first = np.sort(np.unique(items, return_index=True)[1])
    return Split(train=train, test=np.sort(test), order=items[first].astype(np.int64))


def shown(given: Given, part: Split, user: Array, item: Array) -> npt.NDArray[np.bool_]:
    """Which of the cells have a user and an item that training shows; Cornac leaves out the others, as coded."""
    return np.isin(user, given["user"][part.train]) & np.isin(item, part.order)


def relevant(given: Given, rows: Ints | None = None) -> tuple[Array, Array]:
    """User and item of the cells that a trial ranks: relevant ones of the rows, or of the open loop."""
    prefix = "open_" if rows is None else ""
    user, item, rating = (given[prefix + name] for name in ("user", "item", "rating"))
    keep = np.flatnonzero(rating >= THRESHOLD) if rows is None else rows[rating[rows] >= THRESHOLD]
    return user[keep], item[keep]


def in_log(given: Given, user: Array, item: Array, rows: Ints | None = None) -> npt.NDArray[np.bool_]:
    """Which of the cells are in the log, or among these rows of it."""
    width, keep = int(given["shape"][1]), slice(None) if rows is None else rows
    log = given["user"][keep].astype(np.int64) * width + given["item"][keep]
    return np.isin(user.astype(np.int64) * width + item, log)


def trial(given: Given, *, model: str, split: int, seed: int, start: int = START) -> dict[str, Array]:
    """Fit the zoo's `model` on the training part; the places of relevant cells, "closed" and "open", (5, cells) each.

    The rows are h and e (how many items are above, and how many tied) among the items outside the training part, h and
    e among all items, and the rank that the published code gives (0 for an item that the training part does not show,
    which it leaves out). `seed` draws the split, `start` what the model draws.
    """
    part = split_of(given, split, seed)
    log = log_of(given, part.train)
    scores = np.asarray(unfitted(model, start).fit(log).scores(np.arange(log.n_users)))  # (U, I)
    found = {"closed": places(scores, log, part.order, *relevant(given, part.test))}
    if "open_user" in given:
        found["open"] = places(scores, log, part.order, *relevant(given))
    return found


def log_of(given: Given, rows: Ints) -> Feedback:
    """These rows of the log, in an order that it remembers."""
    users, items = given["shape"].tolist()
    columns = (given[name][rows] for name in ("user", "item", "rating"))
    return Feedback.from_arrays(*columns, users=users, items=items)


def unfitted(model: str, start: int = START) -> Any:
    """One of the zoo's models, by its name there, such as "MF40", with its seed."""
    from openloop.learners.zoo_models import ONE_SIZE, zoo

    family = family_of(model)
    return zoo(family, int(model[len(family) :]) if family not in ONE_SIZE else (), start)[model]


def family_of(model: str) -> str:
    """The family of a model, by its name: MF of MF40."""
    return model.rstrip("0123456789")


def names(families: Sequence[str], sizes: Sequence[int]) -> tuple[str, ...]:
    """The names of the zoo's models of these families and sizes, without making any."""
    from openloop.learners.zoo_models import ONE_SIZE

    return tuple(name for f in families for name in ([f] if f in ONE_SIZE else [f"{f}{k}" for k in sizes]))


def places(scores: Floats, train: Feedback, order: Ints, user: Array, item: Array) -> Array:
    """The places of cells (user, item), (5, cells): see `trial`."""
    from openloop.kernels.ranking import ranks

    U, I = scores.shape
    lists = np.searchsorted(user, np.arange(U + 1)), item
    excluded = np.searchsorted(train.user, np.arange(U + 1)), train.item
    outside = ranks(lambda users: scores[users], *lists, I, *excluded, threads=1)
    among_all = ranks(lambda users: scores[users], *lists, I, threads=1)
    return np.array([*outside, *among_all, as_coded.ranks(scores, order, user, item)], np.int32)
