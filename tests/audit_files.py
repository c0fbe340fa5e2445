"""The files of an audit as people have them, and the same things in memory to hold the numbers against."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

import openloop as ol
from openloop.core.feedback import Feedback, Vocabulary
from tests.examples import small_world

WORLD = small_world(users=60, items=25)
U, I = WORLD.ratings.shape
USERS, ITEMS = np.arange(U) + 100, np.array([f"m{i:02}" for i in range(I)], object)
SCORES = {
    "a": WORLD.predictions["a"],
    "b": WORLD.predictions["b"] + 1e-3 * np.random.default_rng(5).random((U, I)),
    "c": np.random.default_rng(6).uniform(1, 5, (U, I)),
}
WRITERS = {
    ".csv": pl.DataFrame.write_csv,
    ".tsv": lambda frame, path: frame.write_csv(path, separator="\t"),
    ".parquet": pl.DataFrame.write_parquet,
    ".jsonl": pl.DataFrame.write_ndjson,
}
NAMED = {"user": "uid", "item": "mid", "rating": "stars"}


def write(frame: pl.DataFrame, path: Path) -> Path:
    WRITERS[path.suffix](frame.sample(fraction=1, shuffle=True, seed=len(path.name)), path)
    return path


def rows(log: Feedback) -> pl.DataFrame:
    """A log as a table, with a column to group by."""
    return pl.DataFrame({
        "uid": USERS[log.user], "mid": ITEMS[log.item].tolist(), "stars": log.rating.astype(np.float64),
        "p": log.propensity, "region": ["north" if u % 3 else "south" for u in log.user],
    })  # fmt: skip


def scores(name: str, user: np.ndarray, item: np.ndarray) -> pl.DataFrame:
    return pl.DataFrame({"uid": USERS[user], "mid": ITEMS[item].tolist(), "score": SCORES[name][user, item]})


def top(name: str, k: int, train: Feedback | None = None) -> pl.DataFrame:
    """The k best items of each user that are not in `train`, with scores and ranks."""
    held = SCORES[name].copy()
    if train is not None:
        held[train.user, train.item] = -np.inf
    item = np.argsort(-held, axis=1, kind="stable")[:, :k]
    user = np.repeat(np.arange(U), k)
    return scores(name, user, item.ravel()).with_columns(rank=pl.Series(np.tile(np.arange(1, k + 1), U)))


@dataclass(frozen=True)
class Files:
    """A folder with log, train, sample, all ids and predictions; and the Feedback that the parts are."""

    folder: Path
    kind: str
    train: Feedback
    test: Feedback
    sample: Feedback

    def __truediv__(self, name: str | Path) -> Path:
        return self.folder / (name if Path(name).suffix else f"{name}{self.kind}")


def _named(log: Feedback) -> Feedback:
    return Feedback(
        user=log.user, item=log.item, rating=log.rating, propensity=log.propensity, users=Vocabulary(USERS),
        items=Vocabulary(ITEMS),
    )  # fmt: skip


def audit_files(folder: Path, kind: str = ".csv") -> Files:
    """Everything written in one format, and matrices and a model beside it."""
    train, test = ol.split(_named(WORLD.observe(3)), test=0.4, rng=0)
    cells = np.sort(np.random.default_rng(9).choice(U * I, 150, replace=False))
    user, item = cells // I, cells % I
    sample = _named(Feedback.from_arrays(user, item, WORLD.ratings[user, item], users=U, items=I))
    for name, log in (("log", test), ("train", train)):
        write(rows(log), folder / f"{name}{kind}")
    write(rows(test).drop("p"), folder / f"plain{kind}")
    write(
        pl.DataFrame({"uid": USERS[user], "mid": ITEMS[item].tolist(), "stars": sample.rating}),
        folder / f"sample{kind}",
    )
    write(pl.DataFrame({"uid": USERS, "age": np.arange(U) % 7}), folder / f"users{kind}")
    write(
        pl.DataFrame({"mid": ITEMS.tolist(), "genre": ["x" if i % 2 else "y" for i in range(I)]}),
        folder / f"items{kind}",
    )
    for name, grid in SCORES.items():
        every = np.divmod(np.arange(U * I), I)
        write(scores(name, test.user, test.item), folder / f"{name}{kind}")
        write(scores(name, *every), folder / f"{name}_all{kind}")
        write(top(name, 10, train), folder / f"{name}_top{kind}")
        np.save(folder / f"{name}.npy", grid)
        wide = pl.DataFrame(grid, schema=ITEMS.tolist()).select(pl.Series("uid", USERS), pl.all())
        wide = wide.select("uid", *ITEMS[::-1].tolist()).sample(fraction=1, shuffle=True, seed=1)
        wide.write_parquet(folder / f"{name}_wide.parquet")
    model = ol.learners.Bias().fit(train)
    model.save(folder / "bias.safetensors")
    return Files(folder, kind, train, test, sample)
