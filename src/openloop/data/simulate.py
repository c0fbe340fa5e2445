"""Worlds whose every rating and propensity is known, to compare estimates with the truth.

Letters as in Schnabel et al. (2016): Y true ratings, P propensities, O observed cells, Ŷ predictions.
A world knows nothing about metrics: its truth is any estimator's value on `everything()`.
Worlds of clicks on lists come from click_worlds, and are reached from here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Array, Feedback, Floats, Vocabulary, check_propensities, frozen
from openloop.data.click_worlds import ClickWorld, click_world
from openloop.errors import AlignmentError, InputError, PredictionError, RatingError

__all__ = [
    "World", "movie_lovers", "checkerboard", "withhold_diagonal", "schnabel_world",
    "MARGINALS", "low_rank", "assign_marginals", "observation_model", "five_predictions",
    "ClickWorld", "click_world",
]  # fmt: skip

Rng = np.random.Generator | int
Ratings = npt.NDArray[np.float32]

MARGINALS = (0.526, 0.242, 0.144, 0.062, 0.026)
"""The shares of ratings 1 to 5 that users give to songs drawn at random (Marlin & Zemel 2009)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class World:
    """A world whose ratings Y, propensities P and predictions Ŷ are known for every cell.

    Args:
        ratings: Y, (U, I).
        propensities: P in (0, 1], (U, I).
        predictions: Ŷ by name, (U, I) each; `ol.evaluate` takes them as models.

    Examples:
        >>> world = ol.simulate.World(ratings=np.array([[5, 1], [2, 4]]), propensities=np.full((2, 2), 0.5))
        >>> world
        World(2 users × 2 items, 50.0% observed)
        >>> world.observe(0)
        Feedback(3 of 2 users × 2 items, with propensity)
        >>> world.everything()
        Feedback(4 of 2 users × 2 items, with propensity)
    """

    ratings: Ratings
    propensities: Floats
    predictions: dict[str, Array] = field(default_factory=dict[str, Array])

    def __post_init__(self) -> None:
        Y, P = np.asarray(self.ratings, np.float32), np.asarray(self.propensities, np.float64)
        predictions = {name: np.asarray(values) for name, values in self.predictions.items()}
        _check_world(Y, P, predictions)
        object.__setattr__(self, "ratings", frozen(Y))
        object.__setattr__(self, "propensities", frozen(P))
        object.__setattr__(self, "predictions", {name: frozen(Y_hat) for name, Y_hat in predictions.items()})

    def __repr__(self) -> str:
        (U, I), share = self.ratings.shape, float(self.propensities.mean())
        names = "".join(f", {name}" for name in self.predictions)
        return f"World({U:,} users × {I:,} items, {share:.1%} observed{names})"

    def observe(self, rng: Rng) -> Feedback:
        """A log: O_ui is a coin flip with probability P_ui (section 3.3), and each row carries its true propensity.

        Args:
            rng: A seed or a Generator.

        Returns:
            The observed cells.
        """
        O = np.random.default_rng(rng).random(self.ratings.shape) < self.propensities  # (U, I)
        return self._feedback(O, self.propensities)

    def everything(self) -> Feedback:
        """The complete O with all propensities 1: on it every estimator gives the truth of Eq. 1."""
        O = np.ones(self.ratings.shape, np.bool_)  # (U, I)
        return self._feedback(O, np.ones(self.ratings.shape))

    def _feedback(self, O: npt.NDArray[np.bool_], P: Floats) -> Feedback:
        user, item = np.nonzero(O)
        U, I = O.shape
        return Feedback(
            user=user.astype(np.int32),
            item=item.astype(np.int32),
            rating=self.ratings[O],
            users=Vocabulary.range(U),
            items=Vocabulary.range(I),
            propensity=P[O],
        )


def movie_lovers(users: int = 100, items: int = 80, p: float = 0.5) -> World:
    """The Movie-Lovers example (Figure 1): people rate what they like, and naive picks the wrong model.

    The first half of the users love horror (5), hate romance (1) and rate dramas 3; the others love romance and hate
    horror. A quarter of the items are dramas; horror and romance share the rest. P is p where Y = 5, p/2 where Y = 3
    and p/10 where Y = 1. The predictions have the properties that section 3.1 states:

    - Y1 errs on dramas only, which it predicts as 5. By MAE, MSE and accuracy it is better than Y2.
    - Y2 errs on hated movies only, which it predicts as 5. Hardly anyone rates those, so naive prefers Y2.
    - Y3 is 0/1 (section 3.2): it recommends all k horror movies to everybody. CG is 3 stars, naive estimates over 4.

    Args:
        users: The number of users, at least 2.
        items: The number of items, at least 3.
        p: The propensity of a rating of 5.

    Returns:
        The world, with predictions "Y1", "Y2" and "Y3".

    Examples:
        >>> world = ol.simulate.movie_lovers()
        >>> world
        World(100 users × 80 items, 26.9% observed, Y1, Y2, Y3)
        >>> log = world.observe(0)
        >>> round(float(log.rating.mean()), 2), round(float(world.ratings.mean()), 2)
        (4.26, 3.0)
    """
    if users < 2 or items < 3 or not 0 < p <= 1:
        raise InputError(
            "movie_lovers: needs users >= 2 (both groups), items >= 3 (all genres) and 0 < p <= 1, "
            f"got users={users}, items={items}, p={p}."
        )
    lover = (np.arange(users) >= (users + 1) // 2)[:, None]  # (U, 1): False loves horror, True romance
    genre = _genres(items)[None, :]  # (1, I): 0 horror, 1 romance, 2 drama
    Y = np.select([genre == 2, genre == lover], [3.0, 5.0], 1.0)  # (U, I)
    P = np.select([Y == 5, Y == 3], [p, p / 2], p / 10)  # (U, I)
    Y1, Y2 = np.where(Y == 3, 5.0, Y), np.where(Y == 1, 5.0, Y)  # (U, I) each
    Y3 = np.broadcast_to(genre == 0, Y.shape).astype(np.float64)  # (U, I)
    return World(ratings=Y.astype(np.float32), propensities=P, predictions={"Y1": Y1, "Y2": Y2, "Y3": Y3})


def _genres(items: int) -> npt.NDArray[np.int64]:
    # Fewer dramas than hated movies: Y1 is then right more often than Y2. Enough dramas to mislead naive.
    drama = -(-items // 4)
    horror = -(-(items - drama) // 2)
    return np.repeat([0, 1, 2], [horror, items - drama - horror, drama])


def checkerboard(n: int, *, high: float = 5.0, low: float = 1.0, p: float = 1.0) -> World:
    """An n × n world whose answer is obvious: Y_ui is `high` where u + i is even, else `low`; P is p.

    The other cells show what user u gives item u, so that is the cell to withhold with `withhold_diagonal`.

    Args:
        n: The number of users, and of items; at least 4.
        high: The rating where u + i is even.
        low: The rating elsewhere.
        p: The propensity of every cell.

    Returns:
        The world, without predictions.

    Examples:
        >>> ol.simulate.checkerboard(4).ratings.astype(int).tolist()
        [[5, 1, 5, 1], [1, 5, 1, 5], [5, 1, 5, 1], [1, 5, 1, 5]]
    """
    if n < 4 or not high > low:
        raise InputError(
            "checkerboard: needs n >= 4 (a liked item beside the withheld one) and high > low, "
            f"got n={n}, high={high}, low={low}."
        )
    u, i = np.indices((n, n))  # (n, n) each
    Y = np.where((u + i) % 2 == 0, high, low).astype(np.float32)
    return World(ratings=Y, propensities=np.full((n, n), p))


def withhold_diagonal(feedback: Feedback) -> tuple[Feedback, Feedback]:
    """Split a log into the cells off the diagonal, and the cells (u, u).

    The withheld cells are chosen, not drawn, so neither part has a share.

    Args:
        feedback: The log, such as `checkerboard(n).everything()`.

    Returns:
        The cells that are shown, and those that are withheld.

    Examples:
        >>> shown, withheld = ol.simulate.withhold_diagonal(ol.simulate.checkerboard(4).everything())
        >>> len(shown), len(withheld)
        (12, 4)
    """
    diagonal = feedback.user == feedback.item
    shown, withheld = (feedback.take(part, share=None, origin=feedback.fingerprint) for part in (~diagonal, diagonal))
    return shown, withheld


def assign_marginals(values: npt.ArrayLike, marginals: npt.ArrayLike = MARGINALS) -> Ratings:
    """Ratings 1, 2, … by value: the bottom p₁ fraction gets 1, the next p₂ fraction 2, … (section 6.2).

    The counts are exact to the nearest whole cell; equal values are ordered by their position.

    Args:
        values: Finite numbers, of any shape.
        marginals: The fraction of each rating, with sum 1; by default those of Marlin & Zemel (2009).

    Returns:
        Ratings of the shape of `values`.

    Examples:
        >>> ol.simulate.assign_marginals([0.3, 2.0, -1.0, 0.5], [0.5, 0.25, 0.25]).tolist()
        [1.0, 3.0, 1.0, 2.0]
    """
    array, fractions = np.asarray(values, np.float64), np.asarray(marginals, np.float64)
    _check_marginals(array, fractions)
    edges = np.rint(np.cumsum(fractions) * array.size).astype(np.int64)
    edges[-1] = array.size  # the sum may fall short of 1 by rounding
    ratings = np.empty(array.size, np.float32)
    ratings[np.argsort(array, axis=None, kind="stable")] = np.repeat(
        np.arange(1, len(fractions) + 1), np.diff(edges, prepend=0)
    )
    return ratings.reshape(array.shape)


def low_rank(
    users: int,
    items: int,
    rank: int,
    marginals: npt.ArrayLike = MARGINALS,
    *,
    noise: float = 0.5,
    rng: Rng,
) -> Ratings:
    """Y (U, I): ABᵀ/√rank + noise·ε, all entries standard normal, re-assigned to the rating marginals.

    Args:
        users: U.
        items: I.
        rank: The number of columns of A and B.
        marginals: The fraction of each rating, with sum 1.
        noise: The scale of ε.
        rng: A seed or a Generator.

    Returns:
        Ratings, (U, I).

    Examples:
        >>> ol.simulate.low_rank(3, 4, 2, rng=0).shape
        (3, 4)
    """
    if min(users, items, rank) < 1 or noise < 0:
        raise InputError(
            "low_rank: needs users, items and rank >= 1 and noise >= 0, "
            f"got users={users}, items={items}, rank={rank}, noise={noise}."
        )
    draw = np.random.default_rng(rng)
    A, B = draw.standard_normal((users, rank)), draw.standard_normal((items, rank))
    values = A @ B.T / np.sqrt(rank) + noise * draw.standard_normal((users, items))  # (U, I)
    return assign_marginals(values, marginals)


def observation_model(ratings: npt.ArrayLike, alpha: float = 0.25, observed: float = 0.05) -> Floats:
    """P (U, I) of section 6.2: k for r ≥ 4, k·α^(4−r) below; k makes the mean of P equal to `observed`.

    Args:
        ratings: Y, (U, I).
        alpha: α in (0, 1]; 1 makes all propensities equal.
        observed: The mean of P.

    Returns:
        Propensities, (U, I).

    Raises:
        InputError: `observed` would need propensities above 1.

    Examples:
        >>> ol.simulate.observation_model([[5, 4, 3, 2]], alpha=0.5, observed=0.1).round(3).tolist()
        [[0.145, 0.145, 0.073, 0.036]]
    """
    if not 0 < alpha <= 1 or not 0 < observed <= 1:
        raise InputError(f"observation_model: alpha and observed must lie in (0, 1], got {alpha} and {observed}.")
    # p_ui = k · α^max(4 − r, 0)
    shape = np.power(alpha, np.maximum(4.0 - np.asarray(ratings, np.float64), 0.0))  # (U, I)
    most = float(shape.mean())  # the share observed at k = 1
    k = observed / most
    if k > 1:
        raise InputError(
            f"observation_model: observed={observed:g} at alpha={alpha:g} needs propensities of {k:.3g} for "
            f"ratings of 4 and more; ask for at most observed={most:.3g}, or raise alpha."
        )
    return k * shape


def five_predictions(ratings: npt.ArrayLike, rng: Rng) -> dict[str, Floats]:
    """The five prediction matrices of section 3.4.

    Args:
        ratings: Y, (U, I), with ratings 1 … 5.
        rng: A seed or a Generator.

    Returns:
        Predictions (U, I) by the paper's names.

    Raises:
        RatingError: A rating is not a whole number in 1 … 5.

    Examples:
        >>> Y = ol.simulate.low_rank(20, 30, 2, rng=0)
        >>> list(ol.simulate.five_predictions(Y, rng=0))
        ['REC_ONES', 'REC_FOURS', 'ROTATE', 'SKEWED', 'COARSENED']
    """
    Y = np.asarray(ratings, np.float64)
    if not bool(np.isin(Y, (1, 2, 3, 4, 5)).all()):
        msg = "five_predictions: ratings must be whole numbers 1 … 5; use assign_marginals to make them so."
        raise RatingError(msg)
    draw = np.random.default_rng(rng)
    return {
        # |Y = 5| randomly selected ratings of 1 (or 4) are flipped to 5.
        "REC_ONES": _flip(Y, 1, draw),
        "REC_FOURS": _flip(Y, 4, draw),
        # Ŷ = Y − 1 when Y ≥ 2, and 5 when Y = 1.
        "ROTATE": np.where(Y >= 2, Y - 1, 5.0),
        # Ŷ ~ N(μ = Y, σ = (6 − Y)/2), clipped to [0, 6].
        "SKEWED": np.clip(draw.normal(Y, (6 - Y) / 2), 0.0, 6.0),
        # Ŷ = 3 when Y ≤ 3, else 4.
        "COARSENED": np.where(Y <= 3, 3.0, 4.0),
    }


def _flip(Y: Floats, star: int, rng: np.random.Generator) -> Floats:
    fives, cells = int(np.sum(Y == 5)), np.flatnonzero(np.equal(Y, star))
    if len(cells) < fives:
        raise InputError(
            f"five_predictions: flips as many ratings of {star} as there are of 5, got {len(cells):,} and "
            f"{fives:,}; use ratings with fewer fives."
        )
    flipped = Y.copy()
    flipped.flat[rng.choice(cells, fives, replace=False)] = 5.0
    return flipped


def schnabel_world(
    users: int = 944,
    items: int = 1683,
    rank: int = 20,
    alpha: float = 0.25,
    observed: float = 0.05,
    *,
    rng: Rng,
) -> World:
    """The semi-synthetic setting of sections 3.4 and 6.2 on simulated Y, by default as large as ML100K.

    With the same seed Y and Ŷ are the same for all `alpha` and `observed`.

    Args:
        users: U.
        items: I.
        rank: The rank of Y before ratings are assigned.
        alpha: α of the observation model.
        observed: The mean of P.
        rng: A seed or a Generator.

    Returns:
        The world, with the five predictions of section 3.4.

    Examples:
        >>> ol.simulate.schnabel_world(users=40, items=50, observed=0.1, rng=0)
        World(40 users × 50 items, 10.0% observed, REC_ONES, REC_FOURS, ROTATE, SKEWED, COARSENED)
    """
    draw = np.random.default_rng(rng)
    Y = low_rank(users, items, rank, rng=draw)
    P = observation_model(Y, alpha, observed)
    return World(ratings=Y, propensities=P, predictions=dict(five_predictions(Y, draw)))


def _check_world(Y: Array, P: Array, predictions: dict[str, Array]) -> None:
    if Y.ndim != 2 or P.shape != Y.shape:
        raise AlignmentError(f"World: ratings and propensities must both be (U, I), got {Y.shape} and {P.shape}.")
    if not bool(np.isfinite(Y).all()):
        msg = f"World: {int((~np.isfinite(Y)).sum()):,} ratings are not finite; a world knows every rating."
        raise RatingError(msg)
    check_propensities("World.propensities", P.ravel(), "every cell needs a positive probability.")
    for name, Y_hat in predictions.items():
        if Y_hat.shape != Y.shape or not bool(np.isfinite(Y_hat).all()):
            msg = f"World: prediction {name!r} must be finite and {Y.shape}, as ratings; it is {Y_hat.shape}."
            raise PredictionError(msg)


def _check_marginals(values: Floats, marginals: Floats) -> None:
    bad = int(np.sum(~np.isfinite(values)))
    if bad:
        raise InputError(
            f"assign_marginals: {bad:,} of {values.size:,} values are not finite, so they have no order; drop or "
            "repair them."
        )
    if marginals.ndim != 1 or not bool(np.all(marginals >= 0)) or not bool(np.isclose(marginals.sum(), 1)):
        raise InputError(f"assign_marginals: marginals must be fractions that sum to 1, got {marginals}; rescale them.")
