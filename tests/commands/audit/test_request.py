"""What an audit is asked: names and files, and the combinations that cannot work."""

from __future__ import annotations

import pytest

from openloop.audits.question import AuditQuestion
from openloop.commands.audit.request import AuditRequest, ModelFile, is_number_of_strata, same_file
from openloop.errors import InputError, LeakError, OpenloopError
from tests.facts import facts

TWO = (("a", "a.csv"), ("b", "b.csv"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A log and a sample, in the folder of work."""
    monkeypatch.chdir(tmp_path)
    for name in ("log.csv", "sample.csv"):
        (tmp_path / name).write_text("user,item,rating\n1,1,1\n")
    (tmp_path / "link.csv").symlink_to("sample.csv")
    return tmp_path


def test_a_model_is_a_name_and_a_file():
    assert ModelFile.parse("mf=runs/mf=2.csv") == ("mf", "runs/mf=2.csv")
    assert str(ModelFile.parse("mf=runs/mf=2.csv")) == "mf=runs/mf=2.csv"
    with pytest.raises(InputError, match=facts("'runs/mf.csv'", "NAME=PREDICTIONS", "'mf=runs/mf.csv'")):
        ModelFile.parse("runs/mf.csv")
    for text in ("=mf.csv", "mf="):
        with pytest.raises(InputError, match=facts(f"'{text}'", "NAME=PREDICTIONS", "empty")):
            ModelFile.parse(text)


def test_a_name_twice_is_one_model_with_two_tables():
    wanted = AuditRequest(log="log.csv", models=(("a", "a.csv"), ("b", "b.csv"), ("a", "top.csv")))
    assert wanted.tables == {"a": ["a.csv", "top.csv"], "b": ["b.csv"]}


def test_all_files_are_inputs():
    wanted = AuditRequest(
        log="log.csv", models=TWO, exclude="t.csv", open_loop="o.csv", propensity="naive-bayes=s.csv", users="u.csv",
        items=5,
    )  # fmt: skip
    assert wanted.inputs == ["log.csv", "a.csv", "b.csv", "t.csv", "o.csv", "s.csv", "u.csv"]
    assert wanted.sample == "s.csv"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        pytest.param({"models": TWO[:1]}, facts("two", "'a'", "NAME=PREDICTIONS"), id="one model"),
        pytest.param({"models": (("a", "x"), ("a", "y"))}, facts("two", "'a'"), id="one name twice"),
        pytest.param(
            {"split": "randomly", "exclude": "t.csv"}, facts("--split", "'randomly'", "'random'"), id="misspelt split"
        ),
        pytest.param({"split": "time"}, facts("--split time", "--exclude"), id="split of one log"),
        pytest.param({"missing": "skip"}, facts("--missing", "'skip'", "'drop'"), id="unknown missing"),
        pytest.param({"assumes": "logistc"}, facts("--assumes", "'logistc'", "'logistic'"), id="misspelt model of p"),
        pytest.param({"running": "bb"}, facts("--running", "'bb'", "'b'"), id="running is no model"),
        pytest.param({"level": 95.0}, facts("--level", 0, 1, 95), id="level in percent"),
        pytest.param({"floor": -0.1}, facts("--floor", "[0, 1]", -0.1), id="negative floor"),
        pytest.param({"quantile": 1.5}, facts("--quantile", 0, 1, 1.5), id="quantile above 1"),
        pytest.param({"gamma": -1.0}, facts("--gamma", "positive", -1), id="negative gamma"),
        pytest.param({"calibrate": "plat"}, facts("--calibrate", "'plat'", "'platt'"), id="misspelt calibration"),
        pytest.param({"seed": -1}, facts("--seed", 0, -1), id="negative seed"),
        pytest.param({"metrics": ("ndgc@10",)}, facts("ndgc@10"), id="misspelt metric"),
        pytest.param({"estimators": ("snip",)}, facts("'snip'", "'snips'"), id="misspelt estimator"),
        pytest.param({"estimators": ("dr",)}, facts("--estimator dr", "imputation="), id="doubly robust"),
    ],
)
def test_what_cannot_work_is_refused(options, told):
    with pytest.raises(OpenloopError, match=told):
        AuditRequest(**({"log": "log.csv", "models": TWO} | options))


def test_a_sample_that_made_the_propensities_cannot_judge_them(folder):
    for path in ("sample.csv", "./sample.csv", "link.csv"):
        with pytest.raises(LeakError, match=facts(f"--open-loop {path}", "--propensity")):
            AuditRequest(log="log.csv", models=TWO, propensity="naive-bayes=sample.csv", open_loop=path)
    with pytest.raises(LeakError, match=facts("--propensity log.csv", "log itself")):
        AuditRequest(log="log.csv", models=TWO, propensity="naive-bayes=log.csv")
    with pytest.raises(LeakError, match=facts("--open-loop log.csv", "log itself")):
        AuditRequest(log="log.csv", models=TWO, open_loop="log.csv")
    assert same_file("link.csv", folder / "sample.csv")
    assert not same_file("none.csv", "none.csv")


def test_a_question_keeps_the_defaults_of_what_was_not_asked_for():
    asked = AuditRequest(log="log.csv", models=TWO, seed=4, level=0.9, strata=("3", "region")).question(
        groups={"g": []}
    )
    plain = AuditQuestion()
    assert (asked.metrics, asked.lenient, asked.missing) == (plain.metrics, True, "error")
    assert (asked.level, asked.rng, asked.strata, list(asked.groups)) == (0.9, 4, ("3",), ["g"])
    assert asked.estimators == ["snips", "snips_user", "ips", "stratified@3", "naive"]
    assert AuditRequest(log="log.csv", models=TWO, strata=("region",)).question().strata == plain.strata
    named = AuditRequest(log="log.csv", models=TWO, metrics=("mae",), estimators=("snips",), threshold=3.0).question()
    assert (named.metrics, named.lenient, named.estimators, named.threshold) == (
        ("mae",),
        False,
        ["snips", "snips_user", "naive"],
        3,
    )


def test_strata_are_numbers_or_columns():
    assert [s for s in ("5", "2:width", "region", "5th", "") if is_number_of_strata(s)] == ["5", "2:width"]
