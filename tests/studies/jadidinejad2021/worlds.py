"""A made-up closed loop with an open one: five items that nearly everyone rates, a long tail, and models of both."""

from __future__ import annotations

import numpy as np

from openloop.core.feedback import Feedback
from openloop.core.moments import Moments
from openloop.core.weights import Diagnostics
from openloop.estimators.weighted import mean_over_users
from openloop.metrics.ranking import normalised_gain
from openloop.studies.jadidinejad2021.fits import ModelFits
from openloop.studies.jadidinejad2021.models import WHOLE, given_of, places, relevant, split_of
from openloop.studies.jadidinejad2021.scores import Scores

HEAD = 2


def logs(users=150, items=40, rng=0):
    """A log and an open loop; the first HEAD items are rated by almost all, the others in proportion to 1/rank."""
    rng = np.random.default_rng(rng)
    p = np.where(np.arange(items) < HEAD, 0.95, 0.5 / (1 + np.arange(items) / 8))
    liked = rng.random((users, items)) < 0.5
    rating = np.where(liked, 5.0, 2.0)
    seen, drawn = rng.random((users, items)) < p, rng.random((users, items)) < 0.2
    both = []
    for observed in (seen, drawn):
        user, item = np.nonzero(observed)
        both.append(Feedback.from_arrays(user, item, rating[user, item], users=users, items=items))
    return liked, *both


def scores_of(liked, rng=1):
    """The head first; the tail as liked, the head last; what is liked first; noise."""
    rng = np.random.default_rng(rng)
    noise = rng.random(liked.shape)
    head = np.arange(liked.shape[1]) < HEAD
    return {
        "head": noise + 5 * head,
        "tail": 0.5 * liked + noise - 5 * head,
        "oracle": liked + 0.1 * noise,
        "noise": noise,
    }


def outcome(given, scores, split, seed):
    """What a trial would find of a model with these scores."""
    part = split_of(given, split, seed)
    users, items = given["shape"]
    columns = [given[name][part.train] for name in ("user", "item", "rating")]
    train = Feedback.from_arrays(*columns, users=int(users), items=int(items))
    found = {"closed": places(scores, train, part.order, *relevant(given, part.test))}
    if "open_user" in given:
        found["open"] = places(scores, train, part.order, *relevant(given))
    return found


def fits(splits=2, seed=0, *, with_open_loop=True, names=("head", "tail", "oracle", "noise")):
    """The four models "fitted", under names of your choice."""
    liked, log, drawn = logs()
    given = given_of(log, drawn if with_open_loop else None)
    wanted = [*range(splits), *([WHOLE] if with_open_loop else [])]
    outcomes = {split: [outcome(given, s, split, seed) for s in scores_of(liked).values()] for split in wanted}
    return ModelFits(given=given, models=tuple(names), outcomes=outcomes, splits=splits, seed=seed)


def means_of(values):
    """The mean over users of these values (M, U), NaN for users without one, as scores of M models."""
    users = values.shape[1]
    m = Moments(metric=normalised_gain(), sums={"n": np.ones((users, 1))}, cells=np.ones(users))
    seen = Diagnostics(n=users, users=int(np.isfinite(values[0]).sum()))
    return Scores(estimates=tuple(mean_over_users(m, "naive", each, seen) for each in values))


def cells(result, table, row):
    """The cells of a row by column."""
    (found,) = [t for t in result.tables if t.name == table]
    (line,) = [r for r in found.rows if r[0] == row]
    return dict(zip(found.columns, line, strict=True))
