"""`python -m bench.lim [DATA ...]`: ADG against AUC by the protocol of Lim et al. 2015, section 6 (Table 1).

Of each user's positives a tenth is for validation and a fifth for test, at random, four times. Both learners have 50
factors, 10⁶ updates and the same random start; λ is chosen in each fold by the ADG of the validation part, and γ is
100. Ranks are among the items that the user does not have in training.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import openloop as ol
from bench.harness import data_folder
from openloop.core.feedback import Feedback
from openloop.learners import ADG, AUC

# file, first rating that is a positive, lines before the table
DATA = {
    "ml-1m-half": ("ratings.dat", 4, 0),
    "lastfm-hetrec": ("user_artists.dat", 3, 2),
    "ml-100k": ("u.data", 4, 0),
}
MEASURES = ("atop", "map", "ndcg", "recall@10", "adg")
REGS = (0.01, 0.03, 0.05, 0.07, 0.1, 0.14, 0.2, 0.3)
LEARNERS = {"MF-AUC": AUC, "MF-ADG": ADG}
FOLDS = 4
VALIDATION, TEST = 0.1, 0.2

Parts = tuple[Feedback, Feedback, Feedback]


def positives(name: str) -> Feedback:
    file, cut, skip = DATA[name]
    path = Path(str(data_folder(name))) / file
    if skip:  # two counts stand above the table
        names = ["user", "item", "rating"]
        log = ol.read(pl.read_csv(path, skip_rows=skip, separator="\t", has_header=False, new_columns=names))
    else:
        log = ol.read(path)
    liked = log.take(log.rating >= cut)
    return replace(liked, rating=np.ones(len(liked), np.float32))


def parts(liked: Feedback, seed: int) -> Parts:
    """Training, validation and test; each user's counts are rounded."""
    ptr, rng = liked.user_ptr, np.random.default_rng(seed)
    n = np.diff(ptr)[liked.user]
    place = np.empty(len(liked), np.int64)  # among the user's positives, in random order
    place[np.lexsort((rng.random(len(liked)), liked.user))] = np.arange(len(liked)) - ptr[liked.user]
    first, second = np.round(VALIDATION * n), np.round((VALIDATION + TEST) * n)
    validation, test = place < first, (place >= first) & (place < second)
    return liked.take(place >= second), liked.take(validation), liked.take(test)


def measured(model: Any, log: Feedback, train: Feedback) -> dict[str, float]:
    found = ol.evaluate({"m": model}, log, metrics=MEASURES, estimators=["naive"], exclude=train, threshold=1)
    return {name: found["m", name, "naive"].value for name in MEASURES}


def fold(learner: Any, divided: Parts, seed: int, **params: Any) -> dict[str, float]:
    """The measures on the test part with the λ that is best on the validation part; λ and seconds of a fit."""
    train, validation, test = divided
    models, seconds = [], []
    for reg in REGS:
        began = time.perf_counter()
        models.append(learner(50, reg, rng=seed, **params).fit(train))
        seconds.append(time.perf_counter() - began)
    best = models[int(np.argmax([measured(m, validation, train)["adg"] for m in models]))]
    return measured(best, test, train) | {"λ": best.reg, "seconds": min(seconds)}


def lines(name: str, folds: int, **params: Any) -> Iterator[str]:
    liked = positives(name)
    yield f"{name}: {liked.n_users:,} users, {liked.n_items:,} items, {len(liked):,} positives"
    yield f"  {'':8}" + "".join(f"{m:>18}" for m in MEASURES) + "   λ, seconds a fit"
    divided = [parts(liked, seed) for seed in range(folds)]
    for label, learner in LEARNERS.items():
        found = [fold(learner, part, seed, **params) for seed, part in enumerate(divided)]
        values = np.array([[f[m] for m in MEASURES] for f in found])  # (folds, measures)
        stderr = values.std(axis=0, ddof=1) / np.sqrt(folds)
        cells = (f"{f'{v:.4f} ({s:.4f})':>18}" for v, s in zip(values.mean(axis=0), stderr, strict=True))
        chosen = " ".join(f"{f['λ']:g}" for f in found)
        yield f"  {label:8}{''.join(cells)}   {chosen}, {min(f['seconds'] for f in found):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.lim", description=__doc__)
    parser.add_argument("data", nargs="*", default=list(DATA), help=f"of {', '.join(DATA)}; none means all")
    parser.add_argument("--folds", type=int, default=FOLDS)
    parser.add_argument("--rate", type=float, help="the first step size of both, instead of their defaults")
    asked = parser.parse_args()
    params = {} if asked.rate is None else {"rate": asked.rate}
    for name in asked.data:
        if name not in DATA or data_folder(name) is None:
            parser.error(f"no data {name!r} in $OPENLOOP_DATA or ../shared/data; there are {', '.join(DATA)}")
        for line in lines(name, asked.folds, **params):
            print(line, flush=True)


if __name__ == "__main__":
    main()
