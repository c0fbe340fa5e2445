"""Named models and settings compared on a log: the numbers are those of ol.select, the saved model that of train."""

from __future__ import annotations

import json
import re

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop import learners
from openloop.commands.learning import read_log
from openloop.commands.select import SelectRequest, select
from openloop.commands.train import TrainRequest, train
from openloop.data.simulate import movie_lovers
from openloop.errors import InputError, NameFormatError, OpenloopError, UndefinedError
from openloop.learners import MF, Bias
from tests.facts import facts


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    folder, seen = tmp_path_factory.mktemp("selecting"), movie_lovers(users=30, items=20).observe(3)
    rows = {"user": seen.user, "item": seen.item, "rating": seen.rating, "p": seen.propensity}
    pl.DataFrame(rows | {"w": np.arange(len(seen)) % 4 + 0.5}).write_csv(folder / "log.csv")
    return folder / "log.csv"


def run(log, out, *models, **options):
    wanted = SelectRequest(log=log, out=out, model=models, **options)
    return select(wanted, read_log(wanted))


@pytest.fixture(scope="module")
def chosen(log, tmp_path_factory):
    out = tmp_path_factory.mktemp("chosen") / "best.safetensors"
    return run(log, out, "bias", "mf", "popularity", propensity="p", factors=(0, 2), reg=(1.0, 1e4), seed=3)


def test_models_are_tried_with_the_lists_that_they_take_in_their_order(chosen):
    tried = [(each.model, dict(each.parameters)) for each in chosen.settings]
    assert tried == [
        ("bias", {"reg": 1.0}), ("bias", {"reg": 1e4}),
        *(("mf", {"factors": factors, "reg": reg}) for factors in (0, 2) for reg in (1.0, 1e4)),
        ("popularity", {}),
    ]  # fmt: skip


def test_the_numbers_are_those_of_the_library(log, chosen):
    read = ol.read(log, propensity="p")
    kinds = {"bias": Bias(), "mf": MF(rng=3)}
    grid = {"bias": {"reg": [1.0, 1e4]}, "mf": {"factors": [0, 2], "reg": [1.0, 1e4]}}
    by_hand = ol.select(kinds, read, grid=grid, rng=3)
    for each, line in zip(chosen.settings, by_hand.table.rows(named=True), strict=False):
        assert (each.value, each.stderr, each.best) == (line["value"], line["stderr"], line["best"])
        assert each.folds == tuple(line[f"fold_{fold}"] for fold in range(1, 5))
    saved = learners.load(chosen.wanted.out)
    np.testing.assert_array_equal(saved.scores([0, 1]), by_hand.model.scores([0, 1]))


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


def test_repeats_that_were_counted_are_weights_beside_p(tmp_path):
    path = tmp_path / "plays.csv"
    rows = [(u, i, 1 + (u * i) % 3) for u in range(6) for i in range(5)]
    path.write_text("user,item,p\n" + "".join(f"{u},{i},{0.5 if i else 0.25}\n" * n for u, i, n in rows))
    given = {"log": path, "duplicates": "count", "propensity": "p"}
    done = run(path, tmp_path / "a.safetensors", "popularity", metric="adg", duplicates="count", propensity="p")
    wanted = TrainRequest(out=tmp_path / "b.safetensors", model="popularity", **given)
    trained = train(wanted, read_log(wanted))
    assert done.weighing == trained.weighing
    np.testing.assert_array_equal(done.model.scores([0]), trained.model.scores([0]))


def test_threads_change_no_bit(log, tmp_path):
    for model in ("mf", "adg"):
        for threads in (1, 3):
            out = tmp_path / f"{model}{threads}.safetensors"
            found = run(log, out, model, factors=(2,), metric="adg", threshold=3.0, threads=threads).model
        one = learners.load(tmp_path / f"{model}1.safetensors")
        np.testing.assert_array_equal(one.scores([0, 1]), found.scores([0, 1]))


def test_the_lines_say_what_was_read_asked_and_chosen(chosen):
    first, second, third = chosen.opening().splitlines()
    assert first.startswith(f"read {chosen.wanted.log}: ")
    assert re.search(facts("weights", "1/p", "'p'"), second)
    assert re.search(facts("7 settings", "mse", "ips", "4 folds"), third)
    told = chosen.closing().splitlines()[0]
    assert re.search(
        facts("chosen", chosen.best.model, *(f"{k} {v:g}" for k, v in chosen.best.parameters.items())), told
    )
    assert chosen.parameters == ["factors", "reg"]


def test_json_has_all_settings(chosen, tmp_path):
    text = chosen.to_json(tmp_path / "told.json")
    told = json.loads(text, parse_constant=pytest.fail)
    assert [each["model"] for each in told["settings"]] == [each.model for each in chosen.settings]
    assert [each["best"] for each in told["settings"]].count(True) == 1
    assert told["model"] == chosen.best.model
    assert (told["metric"], told["estimator"], told["folds"], told["seed"]) == ("mse", "ips", 4, 3)
    assert told["settings"][0]["folds"] == list(chosen.settings[0].folds)


def test_a_setting_that_cannot_be_fitted_has_its_reason(log, tmp_path):
    done = run(log, tmp_path / "m.safetensors", "mf", factors=(400, 2), propensity="p")
    assert re.search(facts("factors", 400), done.settings[0].problem)
    assert (done.settings[0].value, done.best.parameters) == (None, {"factors": 2})
    with pytest.raises(UndefinedError, match=facts("no setting", 400)):
        run(log, tmp_path / "none.safetensors", "mf", factors=(400,), propensity="p")
    assert not (tmp_path / "none.safetensors").exists()


def test_a_checkpoint_gives_the_same_file_without_fitting_folds_again(log, tmp_path, monkeypatch):
    kept = {"checkpoint": tmp_path / "kept", "propensity": "p", "reg": (1.0, 5.0)}
    first = run(log, tmp_path / "a.safetensors", "bias", **kept)
    fitted, own = [], Bias.fit
    monkeypatch.setattr(Bias, "fit", lambda self, *args, **given: (fitted.append(self), own(self, *args, **given))[1])
    again = run(log, tmp_path / "b.safetensors", "bias", **kept)
    assert len(fitted) == 1
    assert first.settings == again.settings
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
    assert len(list((tmp_path / "kept").iterdir())) == 8


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"model": ("mf", "fm")}, InputError, ("--model", "'fm'", "'mf'")),
        ({"model": ()}, InputError, ("--model", "mf")),
        ({"model": ("mf", "mf")}, InputError, ("--model", "twice", "mf, mf")),
        ({"reg": (1.0, 1.0)}, InputError, ("--reg", "twice", "1.0, 1.0")),
        ({"model": ("bias", "popularity"), "factors": (2,)}, InputError, ("--factors", "bias", "popularity")),
        ({"metric": "msee"}, NameFormatError, ("'msee'", "'mse'")),
        ({"estimator": "ipss"}, NameFormatError, ("'ipss'", "'ips'")),
        ({"out": "m.pkl"}, InputError, ("--out", "'.pkl'", "'.safetensors'")),
        ({"propensity": "p", "weight": "w"}, InputError, ("--propensity", "--weight")),
    ],
    ids=["unknown", "none", "twice", "value twice", "unused", "metric", "estimator", "pickle", "weights"],
)
def test_what_cannot_work_is_refused_before_any_file_is_opened(options, error, told):
    with pytest.raises(error, match=facts(*told)):
        SelectRequest(**({"log": "no-such-log.csv", "out": "m.safetensors", "model": ("mf",)} | options))


def test_a_failing_run_leaves_what_was_there(log, tmp_path):
    out = tmp_path / "m.safetensors"
    out.write_text("precious")
    for options in ({"folds": 1}, {"estimator": "ips"}, {"propensity": "q"}):
        with pytest.raises(OpenloopError):
            run(log, out, "bias", **options)
    assert out.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [out]
