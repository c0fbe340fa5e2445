"""`click_world`: impression logs of simulated users, whose examination and values of rankers are known.

Letters as in docs/positions.md: q attraction, θ examination, σ rank, c clicks, π0 what the logging policy shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Array, Floats, Vocabulary
from openloop.core.impressions import Impressions
from openloop.core.vocabulary import Int64s
from openloop.data.logging_policies import Lists, draw_lists, ranks
from openloop.errors import InputError, did_you_mean
from openloop.support.arguments import generator, is_number, is_whole

if TYPE_CHECKING:
    import polars as pl

Rng = np.random.Generator | int
Model = Literal["pbm", "cascade", "trust"]
Logging = Literal["deterministic", "two-rankers", "shuffled", "plackett-luce"]
Reaction = Literal["none", "boost", "hide"]

NOISE = ("logger", "second", "a", "b")  # each ranker's own noise
RANKERS = ("a", "b", "logger")
IDS = 2**53  # users are numbers below it: their tastes are hashes of their ids, so a ranker knows any of them
SHARES = {"deterministic": 0.0, "two-rankers": 0.0, "shuffled": 0.5, "plackett-luce": 0.0}
REACTIONS = {"none": 0.0, "boost": 20.0, "hide": -20.0}  # on a score, which moves an item to the top or the bottom
TRUST = 0.98, 0.25  # chance to click when examined: a relevant item, and, at position 1, one that is not
GO_ON = 0.25, 0.9  # cascade: the chance to look further after a click, and after none
BLOCK = 2**16


def click_world(
    users: int = 2000,
    items: int = 6,
    depth: int = 3,
    *,
    model: Model = "pbm",
    logging: Logging = "shuffled",
    **settings: Any,
) -> ClickWorld:
    """A world of clicks on lists of `depth` out of `items`.

    Args:
        users: The number of users of a log.
        items: The number of items.
        depth: The length of a list.
        model: How users click: "pbm", "cascade" or "trust".
        logging: What the logging policy shows: "deterministic", "two-rankers", "shuffled" or "plackett-luce".
        **settings: Other fields of `ClickWorld`.

    Returns:
        The world.

    Examples:
        >>> world = ol.simulate.click_world(users=50)
        >>> world.observe(0).depth
        3
        >>> world.truth("a", population=4096) > world.truth("b", population=4096)
        True
    """
    return ClickWorld(users=users, items=items, depth=depth, model=model, logging=logging, **settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClickWorld:
    """A world of users, the lists they are shown, and how they click.

    Item i attracts user u with probability q_ui = sigmoid(base + b_i + f_u·g_i). There are two rankers to compare: "a"
    knows tastes better than the logging policy, "b" imitates the logging policy.

    Args:
        users: The number of users of a log.
        items: The number of items.
        depth: K, the length of a list.
        model: How attraction becomes clicks. "pbm": θ_k q with θ_k = k^−eta. "trust": θ_k(q ε⁺ + (1 − q) ε⁻_k).
            "cascade": down the list until the user stops.
        logging: What the logging policy shows. "deterministic": its ranking. "two-rankers": its ranking or a second
            one, by a coin flip. "shuffled": its ranking, or in a share `shuffle` of requests a random order.
            "plackett-luce": a list drawn by Plackett-Luce.
        shuffle: The share of requests whose order is random; by default 0.5 for "shuffled", else 0.
        feedback: How the next list of a user reacts to clicks: "none", "boost" (clicked items move to the top) or
            "hide" (to the bottom).
        requests: The mean number of requests per user; a few users have many.
        eta: How fast examination falls with the position.
        base: The logit of the attraction of an average item.
        seed: The seed of tastes and rankers. Logs have seeds of their own.

    Examples:
        >>> world = ol.simulate.ClickWorld(users=50, model="pbm", depth=3)
        >>> world.theta.round(2).tolist()
        [1.0, 0.5, 0.33]
        >>> shown = world.observe(0)
        >>> sorted(world.rankers)
        ['a', 'b']
    """

    users: int = 2000
    items: int = 6
    depth: int = 3
    model: Model = "pbm"
    logging: Logging = "shuffled"
    shuffle: float | None = None
    feedback: Reaction = "none"
    requests: float = 5.0
    eta: float = 1.0
    base: float = -1.8
    seed: int = 0

    def __post_init__(self) -> None:
        for name, known in (("model", Model), ("logging", Logging), ("feedback", Reaction)):
            if getattr(self, name) not in get_args(known):
                given = str(getattr(self, name))
                raise InputError(
                    f"click_world: {name}={given!r} is not an option.{did_you_mean(given, get_args(known))}"
                )
        object.__setattr__(self, "shuffle", SHARES[self.logging] if self.shuffle is None else self.shuffle)
        _check_sizes(self)

    # -- what is true ----------------------------------------------------------------------------------------

    @property
    def theta(self) -> Floats:
        """θ_k = k^−eta, (K,): examination, which alone makes clicks of attraction in the pbm."""
        return np.arange(1, self.depth + 1, dtype=np.float64) ** -self.eta

    @property
    def affine(self) -> tuple[Floats, Floats]:
        """a_k and b_k, (K,) each, of E[c | i, k] = a_k r_i + b_k with a_1 = 1, b_1 = 0, under trust (pbm: θ and 0)."""
        slope, floor = self._response
        a = slope / slope[0]
        return a, floor - a * floor[0]

    @property
    def _response(self) -> tuple[Floats, Floats]:
        """E[c | q, k] = slope_k q + floor_k."""
        if self.model == "pbm":
            return self.theta, np.zeros(self.depth)
        right, wrong = TRUST[0], TRUST[1] / np.arange(1, self.depth + 1)
        return self.theta * (right - wrong), self.theta * wrong

    def attraction(self, users: npt.ArrayLike) -> Floats:
        """q_ui of `users`, given by their ids, (users, I)."""
        return 1 / (1 + np.exp(-self._taste(np.asarray(users))))

    def scores(self, name: str, users: npt.ArrayLike) -> Floats:
        """The scores by which a ranker sorts the items.

        Args:
            name: "a", "b", "logger" or its "second".
            users: Ids of users.

        Returns:
            Scores, (users, I).
        """
        if name not in NOISE:
            raise InputError(f"click_world: {name!r} is not a ranker.{did_you_mean(name, NOISE)}")
        who = np.asarray(users)
        if name == "a":
            return self._taste(who) + self._noise("a", who)
        logger = self._taste(who) + 2.0 * self._noise("logger", who)
        return logger + {"logger": 0.0, "second": 1.0, "b": 0.7}[name] * self._noise(name, who)

    def _taste(self, users: Array) -> Floats:
        rng = np.random.default_rng(self.seed)
        b, g = rng.normal(size=self.items), rng.normal(size=(self.items, 2))
        return self.base + b + _normals(len(NOISE) + 8 * self.seed, users, 2) @ g.T

    def _noise(self, name: str, users: Array) -> Floats:
        return _normals(NOISE.index(name) + 8 * self.seed, users, self.items)

    def truth(self, name: str, population: int = 2**18) -> float:
        """V, the expected clicks per request under a ranker, as the mean over a population of users.

        Args:
            name: "a", "b" or "logger".
            population: The number of users to average over.

        Returns:
            The value.
        """
        return _truth(self, name, population)

    def value(self, q: Floats) -> Floats:
        """The expected clicks on lists whose items attract with probabilities `q` (…, K)."""
        if self.model != "cascade":
            slope, floor = self._response
            return q @ slope + floor.sum()
        go_on = q * GO_ON[0] + (1 - q) * GO_ON[1]
        return (q * np.cumprod(np.concatenate([np.ones_like(q[..., :1]), go_on[..., :-1]], axis=-1), axis=-1)).sum(-1)

    # -- what is logged --------------------------------------------------------------------------------------

    @property
    def rankers(self) -> dict[str, Callable[[Array, Array], Floats]]:
        """Both as functions of ids, f(users, items) -> scores."""
        return {name: partial(_score_pairs, self, name) for name in ("a", "b")}

    def ranks(self, shown: Impressions) -> dict[str, pl.DataFrame]:
        """The lists of both rankers as frames of user, item and rank, for the users of the log `shown`."""
        import polars as pl

        if shown.users is None:
            raise InputError("click_world: this log has no users, so it is not of this world; observe() makes one.")
        who = shown.users.ids
        user, item = np.repeat(who, self.items), np.tile(np.arange(self.items), len(who))
        found = {name: ranks(self.scores(name, who)).ravel() for name in ("a", "b")}
        return {name: pl.DataFrame({"user": user, "item": item, "rank": rank}) for name, rank in found.items()}

    def clicks(self, q: Floats, rng: np.random.Generator) -> Floats:
        """Clicks on lists.

        Args:
            q: The attraction of each list's items, (N, K).
            rng: A Generator.

        Returns:
            0 or 1 for each shown item, (N, K).
        """
        u = rng.random(q.shape)
        if self.model != "cascade":
            slope, floor = self._response
            return (u < q * slope + floor).astype(np.float64)
        c, looks = np.zeros(q.shape), np.ones(len(q), np.bool_)
        for k in range(q.shape[1]):
            c[:, k] = looks & (u[:, k] < q[:, k])
            looks &= rng.random(len(q)) < np.where(c[:, k] > 0, *GO_ON)
        return c

    def observe(self, rng: Rng) -> Impressions:
        """A log of newly drawn users, its requests in the order of time.

        It has the policy's probabilities, except for a deterministic policy that never shuffles, which has none to log.

        Args:
            rng: A seed or a Generator.

        Returns:
            The impressions.
        """
        draw = generator("ClickWorld.observe", rng)
        users = Vocabulary.of(draw.integers(IDS, size=self.users))
        often = 1 + draw.poisson((self.requests - 1) * draw.gamma(1.0, 1.0, len(users)))  # (U,): some are heavy
        user = np.repeat(np.arange(len(users)), often)
        turn = np.arange(len(user)) - np.repeat(np.cumsum(often) - often, often)  # a user's requests count from 0
        order = np.argsort(turn, kind="stable")
        user, turn = user[order], turn[order]  # (N,)
        rounds = list(self._rounds(users, user, turn, draw))
        clicks = np.concatenate([clicked for _, clicked in rounds])
        return _impressions(self, users, (user, turn), [lists for lists, _ in rounds], clicks)

    def _rounds(
        self, users: Vocabulary, user: Int64s, turn: Int64s, rng: np.random.Generator
    ) -> Iterator[tuple[Lists, Floats]]:
        """Lists and clicks, of all requests at once, or turn by turn where the next list reacts to clicks."""
        q = self.attraction(users.ids)  # (U, I)
        names = NOISE[:2] if self.logging == "two-rankers" else NOISE[:1]
        scores = np.stack([self.scores(name, users.ids) for name in names])  # (A, U, I)
        reaction, soft, shuffle = REACTIONS[self.feedback], self.logging == "plackett-luce", float(self.shuffle or 0)
        parts = [len(user)] if reaction == 0 else np.bincount(turn).tolist()
        for who in np.split(user, np.cumsum(parts)[:-1]):
            lists = draw_lists(scores[:, who], self.depth, rng, shuffle=shuffle, soft=soft)
            clicked = self.clicks(q[who[:, None], lists.item], rng)
            if reaction:  # a user has one request a turn
                scores[:, who[:, None], lists.item] += reaction * clicked
            yield lists, clicked


def _check_sizes(world: ClickWorld) -> None:
    for name in ("users", "items", "depth"):
        if not is_whole(getattr(world, name)) or getattr(world, name) < 1:
            raise InputError(f"click_world: {name} must be a whole number from 1, got {getattr(world, name)!r}.")
    if world.depth > world.items:
        raise InputError(f"click_world: a list of depth={world.depth} needs as many items, got items={world.items}.")
    if not (is_number(world.shuffle) and 0 <= float(world.shuffle or 0) <= 1):
        raise InputError(f"click_world: shuffle is a share of requests, from 0 to 1, got {world.shuffle!r}.")
    if world.requests < 1:
        raise InputError(f"click_world: a user has at least one request, got requests={world.requests}.")


def _normals(seed: int, users: Array, columns: int) -> Floats:
    """Standard normals of users by their ids, (users, columns): the same whenever they are asked for."""
    from scipy.special import ndtri

    from openloop.kernels.uniforms import block_uniforms

    return ndtri(np.clip(block_uniforms(seed, users, columns), 1e-16, 1 - 1e-16))


@cache
def _truth(world: ClickWorld, name: str, population: int) -> float:
    if name not in RANKERS:
        raise InputError(f"click_world: {name!r} is not a ranker with a known value.{did_you_mean(name, RANKERS)}")
    total = 0.0
    for start in range(0, population, BLOCK):
        who = np.arange(start, min(start + BLOCK, population))
        top = np.argsort(-world.scores(name, who), axis=1)[:, : world.depth]  # (B, K)
        total += float(world.value(np.take_along_axis(world.attraction(who), top, axis=1)).sum())
    return total / population


def _score_pairs(world: ClickWorld, name: str, users: Array, items: Array) -> Floats:
    who, at = np.unique(users, return_inverse=True)
    return world.scores(name, who)[at, np.asarray(items)]


def _impressions(
    world: ClickWorld, users: Vocabulary, when: tuple[Int64s, Int64s], lists: list[Lists], clicks: Floats
) -> Impressions:
    """The log of a world: its lists, in the order of requests, and their clicks (N, K)."""
    (user, turn), (N, K) = when, clicks.shape
    prefix = np.concatenate([part.prefix for part in lists])  # (N, K)
    shuffled = np.concatenate([part.shuffled for part in lists])
    exposures = [part.exposure for part in lists if part.exposure is not None]
    logged: dict[str, Any] = {}
    if world.logging != "deterministic" or world.shuffle:
        logged |= {"prefix": prefix.ravel(), "slate": prefix[:, -1], "shuffled": shuffled if world.shuffle else None}
    if logged and exposures:
        exposure = np.concatenate(exposures)  # (N, K, K)
        logged |= {"propensity": np.diagonal(exposure, axis1=1, axis2=2).ravel(), "exposure": exposure.reshape(-1, K)}
    if world.logging == "two-rankers":
        arms = np.concatenate([part.arms for part in lists])  # (N, K, 2)
        logged["arms"] = arms.reshape(N * K, -1).astype(np.int32)
    return Impressions(
        request=np.repeat(np.arange(N, dtype=np.int32), K),
        position=np.tile(np.arange(1, K + 1, dtype=np.int32), N),
        item=np.concatenate([part.item for part in lists]).ravel().astype(np.int32),
        reward=clicks.ravel(),
        items=Vocabulary.range(world.items),
        requests=Vocabulary.range(N),
        users=users,
        user=user.astype(np.int32),
        pool=np.full(N, world.items, np.int32),
        time=np.repeat(turn, K),
        **logged,
    )
