"""A model is learned from a log with the weights it was told, saved, and told about."""

from __future__ import annotations

import json
import re

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop import learners
from openloop.commands.learning import read_log
from openloop.commands.recipes import MODELS, learner_of, takes_weights
from openloop.commands.train import TrainRequest, train
from openloop.data.simulate import movie_lovers
from openloop.errors import ColumnError, FormatError, InputError, OpenloopError, PropensityError
from tests.facts import facts

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


def test_weights_may_be_a_column_of_their_own(log, tmp_path):
    run(log, tmp_path / "m.safetensors", weight="w")
    read = ol.read(log, **NAMED, weight="w")
    by_hand = learners.Bias().fit(read, sample_weight=read.weight)
    np.testing.assert_array_equal(scores(learners.load(tmp_path / "m.safetensors")), scores(by_hand))
    plain = learners.Bias().fit(read, sample_weight=np.ones(len(read)))
    assert np.abs(scores(plain) - scores(by_hand)).max() > 1e-3


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


def test_without_a_column_rows_count_alike(log, tmp_path):
    done = run(log, tmp_path / "m.safetensors")
    np.testing.assert_array_equal(scores(done.model), scores(learners.Bias().fit(ol.read(log, **NAMED))))
    assert done.weighing is None
    assert "weights: none" in done.summary()


def test_a_floor_bounds_the_weights(log, tmp_path):
    read = ol.read(log, **NAMED, propensity="p")
    floor = float(np.quantile(read.propensity, 0.4)) + 1e-9
    done = run(log, tmp_path / "m.safetensors", propensity="p", floor=floor)
    by_hand = learners.Bias().fit(read, sample_weight=1 / np.maximum(read.propensity, floor))
    np.testing.assert_array_equal(scores(done.model), scores(by_hand))
    assert done.weighing.raised == np.mean(read.propensity < floor)
    assert re.search(facts("floor", f"{done.weighing.raised:.1%}"), done.summary())


def test_given_parameters_reach_the_learner_and_others_keep_its_defaults(log, tmp_path):
    done = run(
        log, tmp_path / "m.safetensors", "adg", parameters={"factors": 2, "updates": 500, "gamma": 7.0, "rng": 4}
    )
    defaults = learners.ADG().get_params()
    found = learners.load(tmp_path / "m.safetensors").get_params()
    assert found == defaults | {"factors": 2, "updates": 500, "gamma": 7.0, "rng": 4}
    assert done.parameters == {name: value for name, value in found.items() if name != "progress"}


def test_a_population_larger_than_the_log_is_learned(tmp_path):
    seen = WORLD.observe(3)
    pl.DataFrame({"user": seen.user, "item": seen.item, "rating": seen.rating}).write_csv(tmp_path / "log.csv")
    wanted = TrainRequest(log=tmp_path / "log.csv", out=tmp_path / "m.safetensors", model="bias", users=30, items=20)
    done = train(wanted, read_log(wanted))
    assert scores(done.model).shape == (30, 20)
    assert [note for note in done.notes if re.search(facts("6 users"), note)]


# -- what is told --------------------------------------------------------------------------------------------


def test_the_summary_says_what_was_read_learned_and_noted(log, tmp_path):
    done = run(log, tmp_path / "m.safetensors", "adg", propensity="p")
    first, second, third, fourth, *notes = done.summary().splitlines()
    w = 1 / ol.read(log, **NAMED, propensity="p").propensity
    assert first.startswith(f"read {log}: {len(w)} rows of 24 users × 18 items (")
    assert second.startswith("learned adg: factors 3, reg 0.1, updates 2000, gamma 100, rate 0.1, threads 1, rng 0, ")
    assert re.search(facts("weights", "1/p", "'p'", f"{w.sum() ** 2 / (w**2).sum():,.0f}", f"{len(w)} rows"), third)
    hinges = done.model.history_[:, 1]
    assert re.search(facts("hinge", f"{hinges[0]:.6g}", f"{hinges[-1]:.6g}", 1), fourth)
    assert notes == [f"- {note}" for note in done.model.notes_]


def test_json_says_the_same(log, tmp_path):
    done = run(log, tmp_path / "m.safetensors", propensity="p")
    text = done.to_json(tmp_path / "told.json")
    assert (tmp_path / "told.json").read_text(encoding="utf-8") == text + "\n"
    told = json.loads(text, parse_constant=pytest.fail)
    assert (told["rows"], told["users"], told["items"]) == (len(done.log), 24, 18)
    assert told["model"] == "bias"
    assert told["parameters"] == {"reg": 10.0}
    assert told["weights"]["effective_size"] == done.weighing.effective_size
    assert told["course"] is None
    assert told["notes"] == list(done.notes)


def test_the_coefficients_of_a_stack_are_told_by_column(log, tmp_path):
    done = run(log, tmp_path / "m.safetensors", "stack", propensity="p")
    names = ["MF", "MF, w^0.5", "MF, w^0", "exposure", "log n_u", "log n_i"]
    assert [each["column"] for each in done.coefficients] == names
    assert [each["coefficient"] for each in done.coefficients] == done.model.coefficients_.tolist()
    (line,) = [line for line in done.summary().splitlines() if line.startswith("coefficients: ")]
    assert re.search(facts(*(f"{name} {b:.3g}" for name, b in zip(names, done.model.coefficients_, strict=True))), line)
    told = json.loads(done.to_json(), parse_constant=pytest.fail)
    assert told["coefficients"] == done.coefficients
    assert list(told["parameters"]) == ["bases", "final", "folds", "reg", "rng"]
    assert told["parameters"]["bases"].startswith("[MF(")


def test_of_a_recalibrated_model_level_and_slope_are_told(log, tmp_path):
    done = run(log, tmp_path / "m.safetensors", "recalibrated", parameters={"factors": 2, "folds": 3})
    assert done.coefficients == [
        {"column": "level", "coefficient": done.model.level_}, {"column": "slope", "coefficient": done.model.slope_},
    ]  # fmt: skip
    assert re.search(facts("learned recalibrated", "folds 3", "MF(factors=2)"), done.summary())
    assert run(log, tmp_path / "b.safetensors").coefficients is None


# -- refusals ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "told"),
    [
        pytest.param({"model": "fm"}, facts("--model", "'fm'", "'mf'"), id="unknown model"),
        pytest.param({"parameters": {"factors": 3}}, facts("--factors", "bias", "--reg"), id="factors of bias"),
        pytest.param(
            {"model": "popularity", "parameters": {"rng": 1}}, facts("--seed", "popularity"), id="seed of popularity"
        ),
        pytest.param(
            {"model": "auc", "parameters": {"gamma": 1.0}},
            facts("--gamma", "auc", "--factors", "--reg"),
            id="gamma of auc",
        ),
        pytest.param(
            {"model": "adg", "parameters": {"bias_reg": 1.0}},
            facts("--bias-reg", "adg", "--gamma", "--threads", "--seed"),
            id="bias-reg of adg",
        ),
        pytest.param({"propensity": "p", "weight": "w"}, facts("--propensity", "--weight"), id="weights twice"),
        pytest.param({"floor": 0.1}, facts("--floor", "--propensity"), id="floor of nothing"),
        pytest.param({"floor": 1.5, "propensity": "p"}, facts("--floor", "[0, 1]", 1.5), id="floor above 1"),
        pytest.param({"floor": float("nan"), "propensity": "p"}, facts("--floor", "[0, 1]", "nan"), id="floor nan"),
        pytest.param({"out": "m.pkl"}, facts("--out", "'m.pkl'", "'.pkl'", "'.safetensors'"), id="pickle"),
    ],
)
def test_what_cannot_work_is_refused_before_any_file_is_opened(options, told):
    with pytest.raises(OpenloopError, match=told):
        TrainRequest(**({"log": "no-such-log.csv", "out": "m.safetensors", "model": "bias"} | options))


def test_the_log_is_not_overwritten(tmp_path):
    with pytest.raises(InputError, match=facts("a.safetensors", "overwritten", "read")):
        TrainRequest(log=tmp_path / "a.safetensors", out=tmp_path / "." / "a.safetensors", model="bias")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"propensity": "w"}, PropensityError),
        ({"propensity": "q"}, ColumnError),
        ({"weight": "mid"}, InputError),
        ({"parameters": {"reg": -1.0}}, InputError),
        ({"model": "svd", "parameters": {"factors": 400}}, InputError),
    ],
)
def test_a_failing_run_leaves_what_was_there(log, tmp_path, options, error):
    out = tmp_path / "m.safetensors"
    out.write_text("precious")
    with pytest.raises(error):
        run(log, out, **options)
    assert out.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [out]


def test_a_file_that_is_no_log_is_named(tmp_path):
    (tmp_path / "log.csv").write_bytes(b"\x00\x01")
    with pytest.raises(FormatError, match=r"log\.csv"):
        run(tmp_path / "log.csv", tmp_path / "m.safetensors")


def test_the_default_number_of_factors_fits_a_small_grid(log, tmp_path):
    done = run(log, tmp_path / "svd.safetensors", "svd", parameters={})
    assert learners.PureSVD().factors == 50
    assert done.model.factors == min(done.log.n_users, done.log.n_items)
    with pytest.raises(InputError, match=facts("factors", 18, 50)):
        run(log, tmp_path / "svd.safetensors", "svd", parameters={"factors": 50})
