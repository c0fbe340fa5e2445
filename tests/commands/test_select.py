"""Named models and settings compared on a log: the numbers are those of ol.select, the saved model that of train."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from openloop.commands.learning import read_log
from openloop.commands.select import SelectRequest, select
from openloop.commands.train import TrainRequest, train
from openloop.data.simulate import movie_lovers


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    folder, seen = tmp_path_factory.mktemp("selecting"), movie_lovers(users=30, items=20).observe(3)
    rows = {"user": seen.user, "item": seen.item, "rating": seen.rating, "p": seen.propensity}
    pl.DataFrame(rows | {"w": np.arange(len(seen)) % 4 + 0.5}).write_csv(folder / "log.csv")
    return folder / "log.csv"


def run(log, out, *models, **options):
    wanted = SelectRequest(log=log, out=out, model=models, **options)
    return select(wanted, read_log(wanted))


@pytest.mark.parametrize("weights", [{"propensity": "p", "floor": 0.2}, {"weight": "w"}, {}], ids=["p", "w", "none"])
@pytest.mark.parametrize("model", ["mf", "stack", "recalibrated"])
def test_the_saved_model_is_that_of_train(log, tmp_path, model, weights):
    done = run(log, tmp_path / "a.safetensors", model, factors=(2,), reg=(3.0,), seed=5, folds=2, **weights)
    wanted = TrainRequest(
        log=log, out=tmp_path / "b.safetensors", model=model, parameters={"factors": 2, "reg": 3.0, "rng": 5}, **weights
    )
    train(wanted, read_log(wanted))
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
    assert done.estimator == ("ips" if "propensity" in weights else "naive")
