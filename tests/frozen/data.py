"""The logs and models of the frozen numbers, made up by seed with NumPy alone, as Polars tables.

Every number is rounded to a few decimals, so that no difference in the last bit between machines decides anything.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import polars as pl

USERS, ITEMS = 300, 120
MODELS = ("near", "liked", "flat")
DEPTH = 20  # of the lists of ranks

REQUESTS, PLACES, ASKERS, SHOWN_ITEMS = 2000, 3, 60, 6
THETA = (1.0, 0.6, 0.35)  # how often each place is looked at
TRUST = (0.0, 0.03, 0.06)  # how often what is there is clicked without being liked
SHUFFLED = 0.4  # the share of requests in random order
RANKERS = ("better", "worse", "mixed")


# -- ratings -------------------------------------------------------------------------------------------------


@cache
def ratings() -> np.ndarray:
    """The rating of every cell, 1 to 5."""
    rng = np.random.default_rng(1)
    user, item = rng.normal(0, 0.5, (USERS, 3)), rng.normal(0, 1.0, (ITEMS, 3))
    taste = (user[:, None] * item).sum(axis=2) + rng.normal(0, 0.6, ITEMS) + rng.normal(0, 0.4, USERS)[:, None]
    return np.clip(np.rint(3 + taste), 1, 5)


@cache
def chances() -> np.ndarray:
    """p of every cell: higher for liked items, popular items and active users; about 6,000 rows."""
    rng = np.random.default_rng(2)
    popular, active = rng.normal(0, 0.7, ITEMS), rng.normal(0, 0.5, USERS)
    odds = np.exp(0.35 * (ratings() - 3) + popular + active[:, None])
    return np.clip(np.round(0.108 * odds, 5), 0.004, 0.95)


@cache
def matrices() -> dict[str, np.ndarray]:
    """The scores of every cell: `near` close to the rating, `liked` close where p is high, `flat` with many ties."""
    rng = np.random.default_rng(3)
    near = np.round(ratings() + rng.normal(0, 0.8, (USERS, ITEMS)), 2)
    blur = np.where(chances() > 0.15, 0.4, 1.6)
    liked = np.round(ratings() + blur * rng.normal(0, 1, (USERS, ITEMS)), 1)
    flat = np.rint(ratings().mean(axis=0) + rng.normal(0, 0.5, (USERS, ITEMS)))
    return dict(zip(MODELS, (near, liked, flat), strict=True))


def cells(mask: np.ndarray) -> pl.DataFrame:
    """The cells of a mask with all that a log may say of them."""
    user, item = np.nonzero(mask)
    columns = {"uid": user, "mid": item, "stars": ratings()[mask], "p": chances()[mask]}
    columns |= {name: scores[mask] for name, scores in matrices().items()}
    genre = np.array(["comedy", "drama", "war"])[item % 3]
    return pl.DataFrame(columns | {"genre": genre, "time": 1_000 + (user * 7 + item * 13) % 5_000})


def shuffled(table: pl.DataFrame, seed: int) -> pl.DataFrame:
    """The rows in another order."""
    return table[np.random.default_rng(seed).permutation(len(table))]


@cache
def log() -> pl.DataFrame:
    """The observed cells in no order."""
    seen = np.random.default_rng(4).random((USERS, ITEMS)) < chances()
    return shuffled(cells(seen), seed=5)


@cache
def sample() -> pl.DataFrame:
    """1,500 cells drawn uniformly."""
    drawn = np.zeros(USERS * ITEMS, np.bool_)
    drawn[np.random.default_rng(6).permutation(USERS * ITEMS)[:1500]] = True
    return cells(drawn.reshape(USERS, ITEMS))


def scores(model: str, rows: pl.DataFrame) -> pl.DataFrame:
    """A model's table of scores of the rows of a log."""
    return rows.select("uid", "mid", score=model)


def partial(model: str, rows: pl.DataFrame) -> pl.DataFrame:
    """The same without a tenth of the rows."""
    return scores(model, rows).filter((pl.col("uid") * 31 + pl.col("mid") * 17) % 10 != MODELS.index(model))


def full(model: str) -> pl.DataFrame:
    """A model's table of the scores of all cells."""
    user, item = np.indices((USERS, ITEMS))
    return pl.DataFrame({"uid": user.ravel(), "mid": item.ravel(), "score": matrices()[model].ravel()})


def candidates(model: str, excluded: pl.DataFrame | None) -> np.ndarray:
    """The scores of all cells, −∞ for those that are excluded."""
    values = matrices()[model].copy()
    if excluded is not None:
        values[excluded["uid"].to_numpy(), excluded["mid"].to_numpy()] = -np.inf
    return values


def lists(model: str, excluded: pl.DataFrame | None = None) -> pl.DataFrame:
    """The best items of each user by rank; of equal scores the smaller id comes first."""
    best = np.argsort(-candidates(model, excluded), axis=1, kind="stable")[:, :DEPTH]
    user, rank = np.indices(best.shape)
    return pl.DataFrame({"uid": user.ravel(), "mid": best.ravel(), "rank": 1 + rank.ravel()})


def counts(model: str, rows: pl.DataFrame, excluded: pl.DataFrame | None = None) -> pl.DataFrame:
    """How many candidates are above each row's item, and how many are tied with it."""
    user, item = rows["uid"].to_numpy(), rows["mid"].to_numpy()
    others = candidates(model, excluded)[user]  # (n, I)
    mine = matrices()[model][user, item]
    others[np.arange(len(user)), item] = mine
    above, tied = (others > mine[:, None]).sum(axis=1), (others == mine[:, None]).sum(axis=1)
    return pl.DataFrame({"uid": user, "mid": item, "above": above, "tied": tied})


def named(table: pl.DataFrame) -> pl.DataFrame:
    """The table with ids of text, which sort as the codes do."""
    user, item = pl.col("uid").cast(pl.String), pl.col("mid").cast(pl.String)
    return table.with_columns(uid="u" + user.str.zfill(4), mid="m" + item.str.zfill(4))


@cache
def imputed() -> np.ndarray:
    """A rating for every cell: the mean of its item."""
    return np.round(np.broadcast_to(ratings().mean(axis=0), (USERS, ITEMS)), 2)


@cache
def features() -> tuple[np.ndarray, np.ndarray]:
    """Three features of users and four of items."""
    rng = np.random.default_rng(7)
    user = np.column_stack([ratings().mean(axis=1), rng.normal(0, 1, (USERS, 2))])
    item = np.column_stack([ratings().mean(axis=0), rng.normal(0, 1, (ITEMS, 3))])
    return np.round(user, 3), np.round(item, 3)


# -- impressions ---------------------------------------------------------------------------------------------


@cache
def attraction() -> np.ndarray:
    """How likely a user who looks at an item clicks it."""
    return np.round(np.random.default_rng(8).beta(2, 5, (ASKERS, SHOWN_ITEMS)), 3)


@cache
def impressions() -> pl.DataFrame:
    """A row for each shown item: a list by a ranker of the user's group, or in some requests in random order.

    The whole list of a request has the probability (1 − s)·[it is the ranker's] + s/(n·(n − 1)·(n − 2)), with s the
    share of shuffled requests; likewise its beginnings, and one item at one place.
    """
    rng, n = np.random.default_rng(9), SHOWN_ITEMS
    user = rng.integers(0, ASKERS, REQUESTS)
    by_group = np.argsort(rng.random((4, n)), axis=1)
    ranked = by_group[user % 4][:, :PLACES]
    at_random = rng.random(REQUESTS) < SHUFFLED
    drawn = np.argsort(rng.random((REQUESTS, n)), axis=1)[:, :PLACES]
    items = np.where(at_random[:, None], drawn, ranked)  # (N, K)
    click = rng.random(items.shape) < TRUST + THETA * attraction()[user[:, None], items]
    alike = items == ranked
    orders = np.cumprod(n - np.arange(PLACES))  # of the first k places
    prefix = (1 - SHUFFLED) * np.logical_and.accumulate(alike, axis=1) + SHUFFLED / orders
    place = np.indices(items.shape)[1]
    columns = {
        "rid": np.repeat(np.arange(REQUESTS), PLACES), "uid": np.repeat(user, PLACES), "sku": items.ravel(),
        "place": 1 + place.ravel(), "click": click.ravel().astype(float),
        "p": ((1 - SHUFFLED) * alike + SHUFFLED / n).ravel(), "prefix": prefix.ravel(),
        "slate": np.repeat(prefix[:, -1], PLACES), "shuffled": np.repeat(at_random, PLACES),
        "pool": np.full(items.size, n),
    }  # fmt: skip
    for k in range(PLACES):
        same = items == ranked[:, k : k + 1]
        columns[f"x{k + 1}"] = ((1 - SHUFFLED) * same + SHUFFLED / n).ravel()
    return shuffled(pl.DataFrame(columns), seed=10)


@cache
def rankers() -> dict[str, pl.DataFrame]:
    """Each ranker's list of all items for every user."""
    rng = np.random.default_rng(11)
    noise = {"better": 0.02, "worse": 0.5, "mixed": 0.15}
    tables = {}
    for name, spread in noise.items():
        order = np.argsort(-attraction() + rng.normal(0, spread, attraction().shape), axis=1)
        user, rank = np.indices(order.shape)
        tables[name] = pl.DataFrame({"uid": user.ravel(), "sku": order.ravel(), "rank": 1 + rank.ravel()})
    return tables
