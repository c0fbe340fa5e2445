"""A model is learned from a log with the weights it was told, saved, and told about."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop import learners
from openloop.commands.learning import read_log
from openloop.commands.recipes import MODELS, learner_of, takes_weights
from openloop.commands.train import TrainRequest, train
from openloop.data.simulate import movie_lovers

WORLD = movie_lovers(users=24, items=18)
SMALL = {"adg": {"factors": 3, "updates": 2000}, "auc": {"factors": 3, "updates": 2000}, "svd": {"factors": 3}}
SMALL |= {name: {"factors": 3} for name in ("mf", "wmf", "stack", "recalibrated")}
SMALL["ordinal-mf"] = {"factors": 2, "sweeps": 20, "burn": 10, "thin": 5}


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """A log in no order, with propensities, weights and other columns."""
    folder, seen = tmp_path_factory.mktemp("training"), WORLD.observe(3)
    rows = pl.DataFrame({
        "uid": seen.user + 100, "mid": [f"m{i:02}" for i in seen.item], "stars": seen.rating, "p": seen.propensity,
        "w": np.arange(len(seen)) % 4 + 0.5,
    }).sample(fraction=1, shuffle=True, seed=1)  # fmt: skip
    rows.write_csv(folder / "log.csv")
    return folder / "log.csv"


NAMED = {"user": "uid", "item": "mid", "rating": "stars"}


def run(log, out, model="bias", **options):
    wanted = TrainRequest(log=log, out=out, model=model, **({"parameters": SMALL.get(model, {})} | NAMED | options))
    return train(wanted, read_log(wanted))


def scores(model) -> np.ndarray:
    return model.scores(np.arange(len(model.users_)))


# -- what is learned -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_the_file_holds_what_the_learner_learns_from_inverse_propensities(log, tmp_path, model):
    weighted = {"propensity": "p"} if takes_weights(model) else {}
    done = run(log, tmp_path / "m.safetensors", model, **weighted)
    read = ol.read(log, **NAMED, **weighted)
    by_hand = learner_of(model, SMALL.get(model, {}), read, weighted=True).fit(read, propensities=read.propensity)
    saved = learners.load(tmp_path / "m.safetensors")
    assert type(saved) is type(by_hand)
    np.testing.assert_array_equal(scores(saved), scores(by_hand))
    np.testing.assert_array_equal(saved.users_.ids, read.users.ids)
    assert saved.items_.ids.tolist() == read.items.ids.tolist()
    assert done.notes == by_hand.notes_
    assert [path.name for path in tmp_path.iterdir()] == ["m.safetensors"]


def test_repeats_may_count_as_weights_also_of_inverse_propensities(tmp_path):
    path = tmp_path / "plays.csv"
    path.write_text(
        "user,item,p\n" + "".join(f"{u},{i},{0.5 if i else 0.25}\n" * (1 + i) for u in range(4) for i in range(3))
    )
    told = {"log": path, "out": tmp_path / "m.safetensors", "model": "popularity", "duplicates": "count"}
    for more, expected in (({}, [1, 2, 3] * 4), ({"propensity": "p"}, [4, 4, 6] * 4)):
        wanted = TrainRequest(**told, **more)
        done = train(wanted, read_log(wanted))
        assert done.log.weight.tolist() == [1, 2, 3] * 4
        w = np.array(expected)
        assert done.weighing.effective_size == pytest.approx(w.sum() ** 2 / np.square(w).sum())
        assert "counted" in done.summary()
        assert any("12 rows repeated" in note for note in done.notes)
