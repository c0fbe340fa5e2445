"""`python -m bench.movielens`: RMSE on MovieLens-100K without weights, against cmfrec and Surprise's SVD.

A tenth of the ratings is for test, at random, once for each seed. Each library chooses its setting by the RMSE over the
same four folds of the rest, from a grid with the same numbers of factors, and is fitted again on all of the rest. λ is
one grid for openloop and cmfrec, beside a sum over ratings; Surprise has its own scale of it, and also chooses the
number of epochs. Predictions are clipped to 1 … 5 stars, as Surprise does.

openloop is tuned by `ol.select`, which draws the same folds, and scales λ to their rows.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from bench.environments import environment
from bench.harness import Side, data_folder, make_input, race

FACTORS = (10, 20, 40)
REGS = (7.0, 10.0, 12.0, 14.0, 17.0, 20.0)
SURPRISE_REGS = (0.02, 0.05, 0.1, 0.15)
SURPRISE_EPOCHS = (20, 60)  # 20 is the default, as are its 0.005 of a step
SIDES = {
    "openloop MF": ("ours", None),
    "cmfrec CMF": ("cmfrec", "cmfrec"),
    "Surprise SVD": ("surprise", "scikit-surprise"),
}
TEST, FOLDS, SEEDS = 0.1, 4, 5
MODULE = "bench.movielens"

Rows = dict[str, Any]
# predictions for the second rows of a model fitted to the first
Fit = Callable[[Rows, Rows], Any]


def make(folder: Path, seed: str) -> None:
    import openloop as ol

    log = ol.read(Path(str(data_folder("ml-100k"))) / "u.data")
    train, test = ol.split(log, TEST, rng=int(seed))
    fold = np.empty(len(train), np.int64)
    for f, (_, validation) in enumerate(ol.folds(train, FOLDS, int(seed))):
        fold[np.isin(train.cell, validation.cell)] = f
    parts = {"train": train, "test": test}
    columns = {f"{name}_{c}": getattr(part, c) for name, part in parts.items() for c in ("user", "item", "rating")}
    np.savez(folder / "parts.npz", fold=fold, shape=(log.n_users, log.n_items), seed=int(seed), **columns)


def load(folder: Path) -> tuple[Rows, Rows, dict[str, Any]]:
    with np.load(folder / "parts.npz") as file:
        parts = [{c: file[f"{name}_{c}"] for c in ("user", "item", "rating")} for name in ("train", "test")]
        return parts[0], parts[1], {name: file[name] for name in ("fold", "shape", "seed")}


def rmse(rows: Rows, predicted: Any) -> float:
    return float(np.sqrt(np.mean((rows["rating"] - np.clip(predicted, 1, 5)) ** 2)))


# -- the sides -----------------------------------------------------------------------------------------------


def feedback(rows: Rows, shape: Any) -> Any:
    import openloop as ol

    U, I = shape.tolist()
    return ol.Feedback(**rows, users=ol.Vocabulary.range(U), items=ol.Vocabulary.range(I))


def ours(folder: Path) -> Any:
    import openloop as ol

    train, test, rest = load(folder)
    log, grid = feedback(train, rest["shape"]), {"factors": FACTORS, "reg": REGS}

    def timed() -> dict[str, Any]:
        chosen = ol.select(ol.learners.MF(), log, grid=grid, metric="mse", folds=FOLDS, rng=int(rest["seed"]))
        return {"setting": chosen.best, "rmse": rmse(test, chosen.model.predict(test["user"], test["item"]))}

    return timed


def cmfrec(folder: Path) -> Any:
    from cmfrec import CMF
    from scipy.sparse import coo_matrix

    train, test, rest = load(folder)
    options = {"niter": 30, "use_cg": False, "nthreads": 2, "precompute_for_predictions": False, "verbose": False}

    def fitted(factors: int, reg: float) -> Fit:
        def predict(rows: Rows, asked: Rows) -> Any:
            ratings = coo_matrix((rows["rating"], (rows["user"], rows["item"])), shape=rest["shape"])
            model = CMF(k=factors, lambda_=reg, random_state=1, **options).fit(ratings)
            u, i = asked["user"], asked["item"]
            products = np.einsum("nk,nk->n", model.A_[u], model.B_[i])
            return products + model.user_bias_[u] + model.item_bias_[i] + model.glob_mean_

        return predict

    grid = {"factors": FACTORS, "reg": REGS}
    return lambda: tuned(fitted, grid, train, test, rest["fold"])


def surprise(folder: Path) -> Any:
    from surprise import SVD, Dataset, Reader

    train, test, rest = load(folder)

    def fitted(factors: int, reg: float, epochs: int) -> Fit:
        def predict(rows: Rows, asked: Rows) -> Any:
            known = [(*row, None) for row in zip(*(rows[c].tolist() for c in rows), strict=True)]
            trainset = Dataset(Reader(rating_scale=(1, 5))).construct_trainset(known)
            model = SVD(n_factors=factors, reg_all=reg, n_epochs=epochs, random_state=1).fit(trainset)
            return [
                model.predict(u, i).est for u, i in zip(asked["user"].tolist(), asked["item"].tolist(), strict=True)
            ]

        return predict

    grid = {"factors": FACTORS, "reg": SURPRISE_REGS, "epochs": SURPRISE_EPOCHS}
    return lambda: tuned(fitted, grid, train, test, rest["fold"])


def tuned(fitted: Callable[..., Fit], grid: dict[str, Any], train: Rows, test: Rows, fold: Any) -> dict[str, Any]:
    """The setting that is best over the folds, and its RMSE on the test part."""
    settings = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]

    def validated(setting: dict[str, Any]) -> float:
        errors = []
        for f in range(FOLDS):
            seen, held = ({c: v[mask] for c, v in train.items()} for mask in (fold != f, fold == f))
            errors.append(rmse(held, fitted(**setting)(seen, held)))
        return float(np.mean(np.square(errors)))

    best = min(settings, key=validated)
    return {"setting": best, "rmse": rmse(test, fitted(**best)(train, test))}


# -- the table -----------------------------------------------------------------------------------------------


def lines(seeds: int) -> Iterator[str]:
    python = {name: {} if peer is None else {"python": environment(peer)} for name, (_, peer) in SIDES.items()}
    sides = {name: Side(call=f"{MODULE}:{call}", **python[name]) for name, (call, _) in SIDES.items()}
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in SIDES}
    for seed in range(seeds):
        with tempfile.TemporaryDirectory() as folder:
            make_input(MODULE, Path(folder), str(seed))
            for name, side in sides.items():
                began = time.perf_counter()
                found[name].append(race({name: side}, Path(folder), 1)[name].value)
                value, spent = found[name][-1], time.perf_counter() - began
                yield f"split {seed}  {name:23}{value['rmse']:.4f}   {value['setting']}, {spent:.0f} s"
    errors = {name: np.array([f["rmse"] for f in each]) for name, each in found.items()}
    yield f"\n{'':23}mean RMSE   ours - theirs, its standard error over splits"
    for name, e in errors.items():
        gap = errors["openloop MF"] - e
        stderr = gap.std(ddof=1) / np.sqrt(seeds) if seeds > 1 else np.nan
        yield f"{name:23}{e.mean():.4f}" + (f"      {gap.mean():+.4f} ({stderr:.4f})" if gap.any() else "")


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.movielens", description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many splits")
    asked = parser.parse_args()
    if data_folder("ml-100k") is None:
        parser.error("ml-100k is neither in $OPENLOOP_DATA nor in ../shared/data")
    for line in lines(asked.seeds):
        print(line, flush=True)


if __name__ == "__main__":
    main()
