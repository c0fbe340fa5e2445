"""A log as Feedback and as a frame of any engine, models that are fitted to both, and what a frame holds."""

from __future__ import annotations

import narwhals as nw
import numpy as np
import polars as pl

import openloop as ol
from openloop.propensity import Balanced, Logistic, NaiveBayes, Popularity, Uniform

U, I = 60, 30  # the population; some users and items of it have no row
COLUMNS = {"user": "uid", "item": "mid", "population": (U, I)}
RATED = COLUMNS | {"rating": "stars"}


def names(ids: str, n: int, prefix: str):
    """All ids of one side."""
    return list(range(n)) if ids == "integers" else [f"{prefix}{x:03d}" for x in range(n)]


def log(ids: str = "integers", levels: int = 5) -> pl.DataFrame:
    """Rows in no order, more of liked items; user 3 has every item, item 4 every user that has a row; others none."""
    rng = np.random.default_rng(0)
    z = rng.normal(-0.7, 0.8, U)[:, None] + rng.normal(0, 0.8, I)
    O = rng.random((U, I)) < 1 / (1 + np.exp(-z))
    O[:, 4] = True
    O[[5, 6]], O[:, [7, 8]] = False, False
    O[3] = True
    user, item = np.nonzero(O)
    rating = rng.integers(1, levels + 1, len(user)) * (1.0 if levels <= 10 else 0.1)
    named = {"uid": np.array(names(ids, U, "u"))[user], "mid": np.array(names(ids, I, "i"))[item]}
    frame = pl.DataFrame(named | {"stars": rating, "n": np.arange(len(user))})
    return frame.sample(fraction=1.0, shuffle=True, seed=2)


def feedback(frame: pl.DataFrame, ids: str = "integers") -> ol.Feedback:
    return ol.read(
        frame, user="uid", item="mid", rating="stars", users=names(ids, U, "u"), items=names(ids, I, "i")
    )  # fmt: skip


def sample(frame: pl.DataFrame) -> pl.DataFrame:
    """Ratings of cells drawn at random, lower than those of the log."""
    return frame.select("stars").sort("stars").head(2 * len(frame) // 3).sample(200, seed=3)


def models():
    """Each model with a frame path, and whether it takes a sample."""
    inner = Uniform(), Popularity(gamma=1.0), Logistic(), NaiveBayes()
    plain = [(Uniform(), False), (Popularity(), False), (Logistic(), False), (NaiveBayes(), True)]
    return [*plain, *((Balanced(model), True) for model in inner)]


def held(native) -> pl.DataFrame:
    """What a frame of any engine holds, in Polars."""
    frame = nw.from_native(native)
    frame = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    return pl.DataFrame({name: frame[name].to_list() for name in frame.columns})


def in_order(p: ol.Propensities, of: ol.Feedback) -> np.ndarray:
    """p of Feedback order in the order of the rows that were read."""
    values = np.empty(len(of))
    values[of.row] = p.values
    return values
