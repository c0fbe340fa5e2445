"""`CornacModel`: any recommender of Cornac as a learner here, with a rule for what it never saw.

Cornac numbers only the users and items of its training data. So do we: the users and items that the log shows get
Cornac's indices 0, 1, …, and the others of the vocabulary are answered for by a rule.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from threading import RLock
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from threadpoolctl import threadpool_limits

from openloop.core.feedback import Array, Feedback, Floats, distinct
from openloop.errors import DivergenceError, InputError, MissingPackageError, PredictionError, UndefinedError
from openloop.learners.base import Learner, Weights, weights
from openloop.support.wording import counted

UNKNOWN = ("lowest", "mean", "error")
ORDERS = ("sorted", "input")
# Cornac seeds generators and limits threads of the whole process: one model at a time may do so.
TURN = RLock()
PROBED = 100  # users whose scores a fit looks at, to notice that it diverged

REMEDIES = {
    "cornac": "pip install 'openloop[cornac]'",
    "torch": "pip install 'openloop[torch]'",
    "tensorflow": 'choose the model\'s PyTorch backend (backend="pytorch") where it has one; for WMF take zoo("WMF")',
}


class CornacModel(Learner):
    """A model of Cornac, trained on the users and items that the log shows.

    `fit` trains a silent copy of `model` with the model's own seed. Models of ratings (MF, SVD, PMF, NMF, BaselineOnly)
    learn the rating; models of preference (BPR, WBPR, MMMF, GMF, MLP, NeuMF, MostPop) take every row as a like,
    whatever its rating. A user without a row gets, for each item, the mean score over the users with rows.

    Args:
        model: Any `cornac.models.Recommender` that scores a user without more data.
        unknown: What an item without a row gets: "lowest", the user's lowest score, as Cornac ranks such items; "mean",
            the user's mean score, the better guess where scores are ratings; or "error", which refuses such a log in
            `fit`.
        order: The order in which Cornac meets the rows. It matters to models that draw a start for each user and item,
            or visit the rows one by one. "sorted": by user and item. "input": as in the input, with users and items
            numbered as they appear, which is what Cornac makes of the same file.
        data_seed: The seed of what Cornac's data set draws (batches, unrated items); None takes the model's own.

    Attributes:
        model_: Cornac's fitted model.
        user_index_: Cornac's index of each user (U,).
        shown_items_: The item codes by Cornac's index.
        average_: The scores of a user without a row; empty where there is none.
        users_: The users of the log, a `Vocabulary`.
        items_: The items of the log, a `Vocabulary`.
        notes_: What the fit reports, a tuple of sentences.

    Examples:
        >>> import cornac  # doctest: +SKIP
        >>> import openloop as ol
        >>> log = ol.simulate.movie_lovers().observe(rng=0)
        >>> model = ol.learners.CornacModel(cornac.models.BPR(k=10, seed=0)).fit(log)  # doctest: +SKIP
    """

    def __init__(
        self, model: Any, unknown: str = "lowest", order: str = "sorted", data_seed: int | None = None
    ) -> None:
        self.model: Any = model
        self.unknown = unknown
        self.order = order
        self.data_seed = data_seed

    def fit(self, feedback: Feedback, sample_weight: Weights = None, propensities: Any = None) -> CornacModel:
        """Train a fresh copy of the model.

        Args:
            feedback: The training rows.
            sample_weight: Only equal weights are accepted, since Cornac knows no weights.
            propensities: Only equal p are accepted, likewise.

        Returns:
            The fitted learner itself.
        """
        _check_equal(weights(self, feedback, sample_weight, propensities))
        if self.order not in ORDERS:
            raise InputError(f"CornacModel: order must be one of {', '.join(ORDERS)}, got {self.order!r}; pass one.")
        copy, met = self._copy(), _met(feedback, self.order)
        notes = self._unseen(feedback, met.users, met.items)
        with TURN, _packages(copy), _own_randomness(copy):
            seed = getattr(copy, "seed", None) if self.data_seed is None else self.data_seed
            copy.fit(_guarded(_dataset())(**_arguments(feedback, met, seed)))
            # A guard's class is made on the spot, which pickle cannot name.
            copy.train_set = _dataset()(**_arguments(feedback, met, seed))
        # NumPy 2 widens a float32 array by a NumPy float64, and Cornac's dot products then refuse it.
        copy.global_mean = float(copy.global_mean)
        average = _average(copy, whole=len(met.users) < feedback.n_users)
        self.model_, self.shown_items_, self.average_ = copy, met.items, average
        self.user_index_ = _index(met.users, feedback.n_users)
        return self._remember(feedback, *notes)

    def predict(self, user: npt.ArrayLike, item: npt.ArrayLike) -> Array:
        """The score of each (user, item) pair of codes, as `scores` gives it.

        Args:
            user: User codes (n,).
            item: Item codes (n,), one per user code.

        Returns:
            One score per pair (n,).
        """
        u, i = self._pairs(user, item)
        out = np.empty(u.shape)
        order = np.argsort(u, kind="stable")
        codes, starts = np.unique(u[order], return_index=True)
        parts = np.split(order, starts[1:])  # one, empty, where nothing is asked
        with _one_thread():
            for code, part in zip(codes, parts, strict=False):
                out[part] = self._row(code)[i[part]]
        return out

    def scores(self, users: npt.ArrayLike) -> Array:
        """The scores of all items.

        Args:
            users: User codes (B,).

        Returns:
            The scores of all items for each user (B, I).
        """
        u = self._users(users)
        out = np.empty((len(u), len(self.items_)))
        with _one_thread():
            for at, code in enumerate(u):
                out[at] = self._row(code)
        return out

    def save(self, path: str | os.PathLike[str]) -> None:
        """Refused: only pickle could write the objects of a Cornac model.

        Args:
            path: Not used.
        """
        raise UndefinedError(
            "CornacModel: a Cornac model cannot be written without pickle; keep the log and the seed and fit again, "
            "or save model.model_ in Cornac's own format (model.model_.save(folder))."
        )

    def _copy(self) -> Any:
        models = cornac_module("models")
        if not isinstance(self.model, models.Recommender):
            raise InputError(
                f"CornacModel: model must be a recommender of Cornac, got {type(self.model).__name__}; "
                "pass for example cornac.models.BPR(k=10, seed=0)."
            )
        if isinstance(self.model, models.NextBasketRecommender | models.NextItemRecommender):
            raise InputError(
                f"CornacModel: {type(self.model).__name__} scores the next step of a history, which openloop "
                "does not evaluate; pass a model whose score takes a user alone."
            )
        return self.model.clone({"verbose": False})

    def _unseen(self, feedback: Feedback, users: Array, items: Array) -> list[str]:
        if self.unknown not in UNKNOWN:
            raise InputError(f"CornacModel: unknown must be one of {', '.join(UNKNOWN)}, got {self.unknown!r}.")
        lonely = {"user": feedback.n_users - len(users), "item": feedback.n_items - len(items)}
        if self.unknown == "error" and any(lonely.values()):
            which = " and ".join(counted(n, side) for side, n in lonely.items() if n)
            raise InputError(
                f"CornacModel: the log has no row to learn from for {which}; fit a log that shows all, or pass "
                'unknown="lowest" or "mean".'
            )
        rules = {"user": "the mean score of the other users", "item": f"each user's {self.unknown} score"}
        return [f"{counted(n, side)} with no rating, scored by {rules[side]}" for side, n in lonely.items() if n]

    def _row(self, code: int) -> Floats:
        """The scores of all items, (I,)."""
        index = self.user_index_[code]
        known = self.average_ if index < 0 else known_scores(self.model_, int(index))  # (shown items,)
        row = np.full(len(self.items_), known.min() if self.unknown == "lowest" else known.mean())
        row[self.shown_items_] = known
        return row


def known_scores(model: Any, index: int) -> Floats:
    """What a fitted Cornac model gives a user for the items that it knows."""
    found = np.asarray(model.score(index), np.float64).ravel()
    if len(found) != model.num_items:
        raise PredictionError(
            f"CornacModel: {model.name} gives {len(found):,} scores for {model.num_items:,} items; "
            "pass a model whose score(user) covers all items."
        )
    if type(model).__name__ == "PMF" and model.variant == "non_linear":
        # Asked for all items it gives vᵀw; asked for one it gives the rating, which this is.
        low = model.min_rating if model.min_rating < model.max_rating else 0.0
        found = low + (model.max_rating - low) * expit(found)
    if not np.isfinite(found).all():
        raise DivergenceError(
            f"CornacModel: the scores of {model.name} are not finite, its training diverged; give it a smaller "
            "learning rate or a larger regularisation."
        )
    return found


def _average(model: Any, *, whole: bool) -> Floats:
    """The mean scores over all users; where they are not wanted, some users are looked at nevertheless."""
    n = model.num_users
    chosen = range(n) if whole else np.unique(np.linspace(0, n - 1, PROBED).astype(int))
    total = np.zeros(model.num_items)
    with _one_thread():
        for index in chosen:
            total += known_scores(model, int(index))
    return total / n if whole else np.empty(0)


@contextmanager
def _one_thread() -> Generator[None]:
    """Cornac shares out a user's dot products, which takes longer to wait for than to compute."""
    with TURN, threadpool_limits(1, "openmp"):
        yield


# -- Cornac's data -------------------------------------------------------------------------------------------


class Met(NamedTuple):
    """The order in which Cornac meets a log: its rows, and the codes of its users and items by Cornac's index."""

    rows: Array
    users: Array
    items: Array


def _met(feedback: Feedback, order: str) -> Met:
    if order == "sorted":
        return Met(np.arange(len(feedback)), distinct(feedback.user), distinct(feedback.item))
    rows = np.argsort(feedback.row)
    return Met(rows, _first_seen(feedback.user[rows]), _first_seen(feedback.item[rows]))


def _first_seen(codes: Array) -> Array:
    """The distinct codes, in the order in which they appear."""
    return codes[np.sort(np.unique(codes, return_index=True)[1])]


def _index(codes: Array, n: int) -> npt.NDArray[np.int64]:
    """Where each of n codes is among these, -1 where it is not, (n,)."""
    index = np.full(n, -1, np.int64)
    index[codes] = np.arange(len(codes))
    return index


def _arguments(feedback: Feedback, met: Met, seed: int | None) -> dict[str, Any]:
    """The log as arguments of Cornac's Dataset."""
    user = _index(met.users, feedback.n_users)[feedback.user[met.rows]]
    item = _index(met.items, feedback.n_items)[feedback.item[met.rows]]
    return {
        "num_users": len(met.users),
        "num_items": len(met.items),
        "uid_map": {id_: index for index, id_ in enumerate(feedback.users.ids[met.users].tolist())},
        "iid_map": {id_: index for index, id_ in enumerate(feedback.items.ids[met.items].tolist())},
        "uir_tuple": (user, item, feedback.rating[met.rows].astype(np.float64)),
        "seed": seed,
    }


class _Cells(dict[tuple[int, int], float]):
    """The ratings by (user, item), 0 elsewhere: what Cornac asks its sparse matrix, which is thirty times slower."""

    def __missing__(self, cell: tuple[int, int]) -> float:
        return 0.0


def _guarded(base: Any) -> Any:
    """Cornac's Dataset, which draws unrated items until it finds one, made to refuse where there is none."""

    class Rows(base):
        @property
        def dok_matrix(self) -> _Cells:
            if "_cells" not in vars(self):
                u, i, y = (column.tolist() for column in self.uir_tuple)
                self._cells = _Cells(zip(zip(u, i, strict=True), y, strict=True))
            return self._cells

        def least(self) -> Floats:
            """Each row's user's least rating, where an item without one counts 0."""
            u, _, y = self.uir_tuple
            least = np.where(np.bincount(u, minlength=self.num_users) < self.num_items, 0.0, np.inf)
            np.minimum.at(least, u, y)
            return least[u]

        def uir_iter(self, *args: Any, num_zeros: int = 0, **options: Any) -> Iterator[Any]:
            """Rows, each with `num_zeros` items whose rating is not above 0."""
            if num_zeros:
                _check_drawable(self.uir_tuple[0], self.least() > 0)
            return super().uir_iter(*args, num_zeros=num_zeros, **options)

        def uij_iter(self, *args: Any, **options: Any) -> Iterator[Any]:
            """Rows, each with an item whose rating is less."""
            _check_drawable(self.uir_tuple[0], self.least() >= self.uir_tuple[2])
            return super().uij_iter(*args, **options)

    return Rows


def _check_drawable(user: Array, without: npt.NDArray[np.bool_]) -> None:
    if without.any():
        raise InputError(
            f"CornacModel: {len(distinct(user[without])):,} users rated every item of the log, so this model would "
            "look for an unrated one forever; leave those users out, or give it the liked rows only."
        )


# -- the door ------------------------------------------------------------------------------------------------


def _check_equal(w: Floats) -> None:
    if np.ptp(w) > 1e-9:
        raise InputError(
            f"CornacModel: Cornac's models take no sample_weight, and these differ (from {w.min():.3g} to "
            f"{w.max():.3g} of their mean); fit without weights (in ol.select: weighted=False), or take a learner that "
            "has them, as MF."
        )


def _dataset() -> Any:
    return cornac_module("data").Dataset


def cornac_module(name: str) -> Any:
    """The module cornac.name; where Cornac is missing, an error that names the extra."""
    try:
        return import_module(f"cornac.{name}")
    except ModuleNotFoundError as error:
        raise _missing("it", error) from error


def _missing(what: str, error: ModuleNotFoundError) -> MissingPackageError:
    package = (error.name or "a package that is not installed").split(".")[0]
    return MissingPackageError(
        f"CornacModel: {what} needs {package}; {REMEDIES.get(package, f'pip install {package}')}."
    )


@contextmanager
def _packages(model: Any) -> Generator[None]:
    """Name the extra that a model needs whose package is imported by its fit, or what it needs beside ratings."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise _missing(type(model).__name__, error) from error
    except AttributeError as error:
        wanted = getattr(error, "name", None)
        if wanted is None or not isinstance(error.obj, _dataset()):
            raise
        raise InputError(
            f"CornacModel: {type(model).__name__} learns from {wanted!r} too, which a log does not hold; pass a model "
            "of users, items and ratings alone."
        ) from error


@contextmanager
def _own_randomness(model: Any) -> Generator[None]:
    """Cornac seeds the global generators of NumPy and torch: give them back as they were.

    A model with a seed learns on one thread, as Cornac's compiled ones do: a sum in parts would round by their number.
    """
    torch: Any = import_module("torch") if getattr(model, "backend", None) == "pytorch" else sys.modules.get("torch")
    forked: Any = torch.random.fork_rng(range(torch.cuda.device_count())) if torch else nullcontext()
    threads = None if getattr(model, "seed", None) is None else 1
    state = np.random.get_state()  # noqa: NPY002, the global state is what must be kept
    try:
        with forked, threadpool_limits(threads):
            yield
    finally:
        np.random.set_state(state)  # noqa: NPY002
