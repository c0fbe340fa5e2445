"""`ADG` and `AUC`: rankings learned from pairs of items, a liked one and one that should rank below it.

Both learn f(u, i) = v_u·w_i + b_i (Lim, McAuley & Lanckriet 2015, Eq. 1) by stochastic gradient steps, from the same
random start for the same `rng`. A row is a positive from `threshold` on; every other cell counts as unobserved.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Array, Feedback, Floats, distinct
from openloop.core.metric import default_threshold
from openloop.errors import AlignmentError, DivergenceError, InputError
from openloop.kernels.violators import (
    Likes,
    Rows,
    Schedule,
    adg_updates,
    alias_table,
    auc_updates,
    rows,
    violator_weights,
)
from openloop.learners.base import FactorLearner, Weights, check_number, check_rank, check_whole, liked, weights
from openloop.support.arguments import generator, is_number
from openloop.support.progress import progress
from openloop.support.wording import counted

CHUNK = 50_000  # updates between two looks at them, a few hundredths of a second

Start = float | FactorLearner | tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]
Updates = Callable[[int, int], tuple[int, float]]  # first, last → how many took a step, Σ of their hinges


class _Pairwise(FactorLearner):
    """All that ADG and AUC share: everything but the item that should rank below."""

    rates = False
    history_: Floats

    def __init__(
        self,
        factors: int = 50,
        reg: float = 0.1,
        *,
        updates: int = 1_000_000,
        rate: float = 0.25,
        init: Start = 0.03,
        threshold: float | None = None,
        threads: int = 1,
        rng: int | np.random.Generator = 0,
        progress: bool = False,
    ) -> None:
        self.factors = factors
        self.reg = reg
        self.updates = updates
        self.rate = rate
        self.init: Any = init
        self.threshold = threshold
        self.threads = threads
        self.rng: Any = rng
        self.progress = progress

    def fit(self, feedback: Feedback, sample_weight: Weights = None, propensities: Any = None) -> Self:
        """Draw positives and violators, and take gradient steps on their factors.

        Args:
            feedback: The training rows.
            sample_weight: One positive weight per row in Feedback order, or the rows' `Propensities` (weights 1/p).
                None gives all rows the same weight.
            propensities: p instead of weights: `Propensities`, a fitted propensity model, or an array with p of each
                row (n,) or of each cell (U, I). Pass `sample_weight` or `propensities`, not both.

        Returns:
            The fitted learner itself.
        """
        w = weights(self, feedback, sample_weight, propensities)
        K, threads, schedule = check_whole(self, "factors"), check_whole(self, "threads"), self._schedule()
        check_rank(self, K, feedback.n_users, feedback.n_items)
        rng = generator(type(self).__name__, self.rng)
        likes, notes = self._likes(feedback, w)
        V, W = self._start(feedback, likes, K, rng)
        updates = self._updates(V, W, likes, schedule, rng.integers(2**64, dtype=np.uint64))
        idle = feedback.n_items == 1 or not len(likes.users)
        history = np.empty((0, 2)) if idle else self._run(updates, schedule.updates, threads)
        self._check_finite(V, W)
        self.history_ = history
        self.user_factors_, self.item_factors_ = V[:, :K].copy(), W[:, :K].copy()
        self.user_bias_, self.item_bias_, self.intercept_ = np.zeros(len(V), np.float32), W[:, K].copy(), 0.0
        return self._remember(feedback, *notes)

    def __sklearn_clone__(self) -> Self:
        # A fitted model to start from is a value: scikit-learn would make an unfitted one of it.
        params = self.get_params(deep=False)
        return type(self)(**{name: x if name == "init" else deepcopy(x) for name, x in params.items()})

    def _updates(self, V: Rows, W: Rows, likes: Likes, schedule: Schedule, start: np.uint64) -> Updates:
        """The kernel, ready to be told which updates to make."""
        raise NotImplementedError

    def _drawn(self, likes: Array, n_items: int) -> Array:
        """Whether a user is drawn, by the number of likes."""
        return likes > 0

    def _schedule(self) -> Schedule:
        rate, reg = check_number(self, "rate", positive=True), check_number(self, "reg")
        return Schedule(rate, reg, check_whole(self, "updates"))

    # -- who likes what --

    def _likes(self, feedback: Feedback, w: Floats) -> tuple[Likes, list[str]]:
        cut: Any = default_threshold(distinct(feedback.rating)) if self.threshold is None else self.threshold
        keep = np.flatnonzero(liked(self, feedback, cut))
        counts = np.bincount(feedback.user[keep], minlength=feedback.n_users)
        ptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        users = np.flatnonzero(self._drawn(counts, feedback.n_items)).astype(np.int32)
        likes = Likes(users, ptr, feedback.item[keep], *alias_table(ptr, w[keep]))
        return likes, self._notes(feedback, cut, likes)

    def _notes(self, feedback: Feedback, cut: float, likes: Likes) -> list[str]:
        I, counts = feedback.n_items, np.diff(likes.ptr)
        silent, unliked = int(np.sum(counts == 0)), I - len(distinct(likes.item))
        whole = int(np.sum((counts > 0) & ~self._drawn(counts, I)))
        stay = "ranked by the item biases" if is_number(self.init) else "ranked as before"
        lines = {
            f"{len(likes.item):,} of {len(feedback):,} rows are positives, rated at least {cut:g}": True,
            f"{counted(silent, 'user')} with no positive, {stay}": silent,
            f"{counted(unliked, 'item')} with no positive, only ranked lower": unliked,
            "there is only one item, so nothing to rank; the model stays at its start": I == 1,
            f"{counted(whole, 'user')} with every item liked, so there is no item to rank below them": I > 1 and whole,
        }
        return [line for line, says in lines.items() if says]

    # -- where it begins --

    def _start(self, feedback: Feedback, likes: Likes, K: int, rng: np.random.Generator) -> tuple[Rows, Rows]:
        """[V 1] and [W b]: random with b = 0, or those given."""
        if not (is_number(self.init) or isinstance(self.init, FactorLearner | tuple | list)):
            raise InputError(
                f"{type(self).__name__}: init must be the standard deviation of random factors, a fitted model with "
                f"factors, or its arrays (V, W, b), got {type(self.init).__name__}."
            )
        if not is_number(self.init):
            user, item, bias = self._given(feedback, K)
            return rows(user, 1.0), rows(item, bias)
        scale = np.float32(check_number(self, "init", positive=True))
        V, W = (scale * rng.standard_normal((n, K), np.float32) for n in (feedback.n_users, feedback.n_items))
        V[np.diff(likes.ptr) == 0] = 0  # no step reaches these users
        return rows(V, 1.0), rows(W, 0.0)

    def _given(self, feedback: Feedback, K: int) -> tuple[Array, Array, Array]:
        name, wanted = type(self).__name__, [(feedback.n_users, K), (feedback.n_items, K), (feedback.n_items,)]
        arrays = [np.asarray(x, np.float32) for x in self._given_arrays(feedback)]
        if [x.shape for x in arrays] != wanted:
            raise AlignmentError(
                f"{name}: init must have the shapes {', '.join(map(str, wanted))} of this grid and factors={K}, got "
                f"{', '.join(str(x.shape) for x in arrays)}."
            )
        if not all(np.isfinite(x).all() for x in arrays):
            raise InputError(f"{name}: init has values that are not finite; start from a model without them.")
        return arrays[0], arrays[1], arrays[2]

    def _given_arrays(self, feedback: Feedback) -> tuple[Any, ...]:
        if not isinstance(self.init, FactorLearner):
            return tuple(self.init)
        arrays = self.init.factor_arrays()
        if self.init.users_ != feedback.users or self.init.items_ != feedback.items:
            raise AlignmentError(
                f"{type(self).__name__}: init was fitted on other users or items; fit it on a part of the same log."
            )
        return arrays

    # -- the updates --

    def _run(self, updates: Updates, total: int, threads: int) -> Floats:
        """All updates, a chunk at a time so that it can be interrupted; (chunks, 2)."""
        history: list[tuple[float, float]] = []
        with (
            ThreadPoolExecutor(threads) as pool,
            progress(type(self).__name__, total, show=self.progress) as advance,
        ):
            for first in range(0, total, CHUNK):
                last = min(first + CHUNK, total)
                edges = np.linspace(first, last, threads + 1).astype(np.int64)
                found, hinges = np.sum(list(pool.map(updates, edges[:-1], edges[1:])), axis=0)  # (threads, 2) → (2,)
                if not np.isfinite(hinges):
                    self._diverged(f"after {last:,} updates")
                history.append((found / (last - first), hinges / (last - first)))
                advance(last, f"hinge {history[-1][1]:.3f}")
        return np.array(history)

    def _check_finite(self, *arrays: Rows) -> None:
        if not all(np.isfinite(x).all() for x in arrays):
            self._diverged("at the end")

    def _diverged(self, when: str) -> None:
        raise DivergenceError(
            f"{type(self).__name__}: the factors are not finite {when}, with rate={self.rate:g} and reg={self.reg:g}; "
            "pass a smaller rate=, or a reg= well below 1/rate."
        )


class ADG(_Pairwise):
    r"""Average discounted gain: a step where an item violates the rank of a liked one (Lim et al. 2015, Algorithm 1).

    An update draws a user, one of the user's positives i⁺, and then items of I \ i⁺ until one is a violator, f(u, i⁻) >
    f(u, i⁺) - 1, at most (|I| - 1)/γ times. A violator found in draw N gives a gradient step on C(⌊(|I| - 1)/N⌋)·(f(u,
    i⁻) - f(u, i⁺) + 1) with C(k) = 1 - 1/log2(k + 2) (Eqs. 1 to 4). The rarer violators are, the higher i⁺ already
    ranks, and the smaller the step. Other positives may be violators, as in the paper.

    With weights, the objective is each user's self-normalised Σ w·C(rank)/Σ w over the positives, averaged over users.

    Args:
        factors: The number K of factors.
        reg: λ of (λ/2)(|v_u|² + |w_i⁺|² + |w_i⁻|²) in each step; biases are not penalised.
        gamma: γ; a larger value gives up sooner.
        updates: The number of updates.
        rate: The step size η at the start; it decreases linearly to 0 over the updates.
        init: The standard deviation of the random start, or what to start from: a fitted model with factors, or the
            arrays (V, W, b).
        threshold: The rating from which a row is a positive. None: 4, or 1 where all ratings are 0 and 1.
        threads: 1 gives the same bits for the same `rng`. More are faster, but update the same factors without locks
            (Recht et al. 2011), and bits differ from run to run.
        rng: A seed or generator.
        progress: Whether to show progress.

    Attributes:
        user_factors_: V (U, K), float32.
        item_factors_: W (I, K), float32.
        item_bias_: b (I,), float32.
        history_: For each 50,000 updates, the share that found a violator and the mean hinge (chunks, 2).
        users_: The users of the log, a `Vocabulary`.
        items_: The items of the log, a `Vocabulary`.
        notes_: What the fit reports, a tuple of sentences.

    Examples:
        >>> import openloop as ol
        >>> log = ol.simulate.movie_lovers().observe(rng=0)
        >>> adg = ol.learners.ADG(factors=4, updates=20_000, rng=0).fit(log)
        >>> scores = adg.scores([0])[0]
        >>> bool(scores[:30].mean() > scores[30:60].mean())  # user 0 loves horror, items 0 to 29
        True
    """

    def __init__(
        self,
        factors: int = 50,
        reg: float = 0.1,
        *,
        gamma: float = 100.0,
        updates: int = 1_000_000,
        rate: float = 0.1,
        init: Start = 0.03,
        threshold: float | None = None,
        threads: int = 1,
        rng: int | np.random.Generator = 0,
        progress: bool = False,
    ) -> None:
        super().__init__(
            factors, reg, updates=updates, rate=rate, init=init, threshold=threshold, threads=threads, rng=rng,
            progress=progress,
        )  # fmt: skip
        self.gamma = gamma

    def _updates(self, V: Rows, W: Rows, likes: Likes, schedule: Schedule, start: np.uint64) -> Updates:
        C = violator_weights(len(W), check_number(self, "gamma", positive=True))
        return partial(adg_updates, V, W, self.factors, likes, C, schedule, start)


class AUC(_Pairwise):
    """Area under the curve: the pairwise hinge loss of a liked item and another one (Lim et al. 2015, MF-AUC).

    min (1/|U|) Σ_u 1/(|O⁺_u||O⁻_u|) Σ_{i⁺ ∈ O⁺_u} Σ_{i⁻ ∈ O⁻_u} [f(u, i⁻) - f(u, i⁺) + 1]₊: an update draws a user, a
    positive i⁺ and an item i⁻ that is not a positive of the user, all uniformly, and takes a step where the hinge is
    not 0. With weights, Σ_{i⁺} is each user's self-normalised weighted mean. Users who like every item are not drawn.

    Args:
        factors: The number K of factors.
        reg: λ of (λ/2)(|v_u|² + |w_i⁺|² + |w_i⁻|²) in each step; biases are not penalised.
        updates: The number of updates.
        rate: The step size η at the start; it decreases linearly to 0. Fewer updates take a step than in `ADG`, so a
            larger rate is suitable.
        init: The standard deviation of the random start, or what to start from, as in `ADG`.
        threshold: The rating from which a row is a positive. None: 4, or 1 where all ratings are 0 and 1.
        threads: 1 gives the same bits for the same `rng`; more are faster, as in `ADG`.
        rng: A seed or generator.
        progress: Whether to show progress.

    Attributes:
        user_factors_: V (U, K), float32.
        item_factors_: W (I, K), float32.
        item_bias_: b (I,), float32.
        history_: For each 50,000 updates, the share that took a step and the mean hinge (chunks, 2).
        users_: The users of the log, a `Vocabulary`.
        items_: The items of the log, a `Vocabulary`.
        notes_: What the fit reports, a tuple of sentences.

    Examples:
        >>> import openloop as ol
        >>> log = ol.simulate.movie_lovers().observe(rng=0)
        >>> auc = ol.learners.AUC(factors=4, updates=20_000, rng=0).fit(log)
        >>> scores = auc.scores([0])[0]
        >>> bool(scores[:30].mean() > scores[30:60].mean())  # user 0 loves horror, items 0 to 29
        True
    """

    def _drawn(self, likes: Array, n_items: int) -> Array:
        return (likes > 0) & (likes < n_items)

    def _updates(self, V: Rows, W: Rows, likes: Likes, schedule: Schedule, start: np.uint64) -> Updates:
        return partial(auc_updates, V, W, self.factors, likes, schedule, start)
