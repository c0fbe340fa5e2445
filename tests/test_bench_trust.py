"""The bench of trust: its worlds have the truth that they claim, and its page says what came out."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

import openloop as ol
from bench import balancing, impressions, intervals, positions
from bench.trust import coverage, decisions, turning
from bench.trust.__main__ import PARTS, main
from bench.trust.biases import BIASES, Truth, given_of, propensities, step_of, truth_of
from bench.trust.cases import answer
from bench.trust.page import MET, MISSED, page
from bench.trust.parts import ANSWERS, Goal, Part, Sizes, Table, share, with_error
from bench.trust.worlds import exact_gamma, relevant_cells
from openloop.data.datasets import Data

SMALL = ["--cases", "1", "--coverage", "1", "--turning", "1", "--workers", "0"]


def verdict(level, winner=None):
    return SimpleNamespace(verdict=SimpleNamespace(level=level, winner=winner))


def test_an_answer_is_held_against_the_truth():
    assert answer(verdict("verdict", "a"), "a") == "right"
    assert answer(verdict("verdict", "a"), "b") == "wrong"
    assert answer(verdict("verdict", "a"), None) == "wrong"  # equal models: any verdict is
    assert answer(verdict("none"), "a") == "undecided"
    assert answer(verdict("conditional"), "a") == "conditional"


def test_relevant_cells_are_as_many_as_asked():
    counts = np.array([1, 7, 3])
    assert relevant_cells(np.random.default_rng(0), counts, 10).sum(axis=1).tolist() == [1, 7, 3]


def test_gamma_by_bisection_is_the_closed_form_without_exclusion():
    # One user, items 0 and 1 held out of 4, nothing excluded but items 2 and 3, which cannot be recommended.
    train = ol.Feedback.from_arrays([0, 0], [2, 3], [5.0, 5.0], users=1, items=4, share=np.full(2, 0.5))
    p = np.array([0.5, 0.25])
    test = ol.Feedback.from_arrays([0, 0], [0, 1], [4.0, 3.0], users=1, items=4, share=np.full(2, 0.5), propensity=p)
    a, b = np.array([[2.0, 1, 0, 0]]), np.array([[1.0, 2, 0, 0]])
    # d = ±(1 − 1/log2 3) times the rating, a = (1 − t)/s = 1, b = (1/p − 1)/s = 2 and 6.
    D, A, B = 4.0 - 3.0, 2 * 4.0, 6 * 3.0
    D, A, B = -D, B, A  # D + A − B < 0: the pair is turned
    assert exact_gamma(a, b, train, test) == pytest.approx((D + np.sqrt(D * D + 4 * A * B)) / (2 * B), rel=1e-9)


# -- worlds of real data -------------------------------------------------------------------------------------


def data(*, uniform: bool) -> Data:
    world = ol.simulate.schnabel_world(users=60, items=50, rank=3, observed=0.14, rng=0)
    drawn = ol.simulate.World(ratings=world.ratings, propensities=np.full(world.ratings.shape, 0.15)).observe(rng=1)
    return Data(name="made up", log=world.observe(rng=0), open_loop=drawn if uniform else None)


@pytest.mark.parametrize("uniform", [False, True])
def test_a_world_has_the_ratings_that_are_known(uniform):
    made = data(uniform=uniform)
    given = given_of(made, 40, 30)
    truth = truth_of(given, np.random.default_rng(0))
    if not uniform:
        assert truth.Y.shape == (40, 30)
        assert (truth.chance, truth.known.all()) == (1.0, True)
        return
    assert truth.Y.shape == (60, 50)
    assert truth.known.sum() == len(made.open_loop)
    assert np.array_equal(truth.Y[made.open_loop.user, made.open_loop.item], made.open_loop.rating)


@pytest.mark.parametrize("bias", BIASES)
def test_a_bias_observes_as_much_as_asked(bias):
    truth = truth_of(given_of(data(uniform=False), 60, 50), np.random.default_rng(0))
    p = propensities(bias, truth, 0.1, np.random.default_rng(1))
    assert p.mean() == pytest.approx(0.1, rel=1e-6)
    assert p.min() > 0
    assert p.std() > 0.02


def test_the_step_a_star_is_the_worlds_own():
    draw = np.random.default_rng(0)
    Y = draw.integers(1, 6, (200, 20)).astype(np.float32)
    truth = Truth(Y=Y, value=Y, popular=np.zeros((1, 20)), known=np.ones(Y.shape, bool), chance=1.0)
    of_items = draw.uniform(0.001, 0.01, (1, 20))
    assert step_of(of_items * 1.5**Y, truth) == pytest.approx(1.5)
    assert step_of(of_items * np.ones(Y.shape), truth) == pytest.approx(1.0)


def test_a_log_of_uniform_cells_is_one_of_the_whole_grid():
    truth = truth_of(given_of(data(uniform=True), 0, 0), np.random.default_rng(0))
    p = propensities("item", truth, 0.3, np.random.default_rng(1))
    sums = [float((1 / decisions.log_of(truth, p, np.random.default_rng(s)).propensity).sum()) for s in range(200)]
    error = np.std(sums) / np.sqrt(len(sums))
    assert abs(np.mean(sums) - truth.Y.size) < 4 * error


def test_a_decision_is_asked_of_every_kind():
    given = given_of(data(uniform=False), 60, 50)
    found = decisions.trial(given, bias="rating, weak", observed=0.2, seed=0)
    assert np.shape(found["answers"]) == (len(decisions.METRICS), len(decisions.KINDS))
    assert set(np.ravel(found["answers"])) <= {*ANSWERS, decisions.NONE_CLEAR}


def test_the_better_of_a_pair_comes_first():
    truth = truth_of(given_of(data(uniform=False), 60, 50), np.random.default_rng(0))
    models = {"bad": truth.Y + 2.0, "good": truth.Y + 0.1 * truth.popular}
    assert decisions.pair(models, truth, "mae", np.random.default_rng(0)) == ("good", "bad")
    assert decisions.pair({"a": truth.Y, "b": truth.Y}, truth, "mae", np.random.default_rng(0)) is None


# -- parts and page ------------------------------------------------------------------------------------------


def test_logs_at_the_turning_point_have_equal_models_and_a_tilted_p():
    found = turning.trial({}, at=1.5, first=0, count=3)["gamma_low"]
    assert all(low >= 1 for low in found)


@pytest.mark.parametrize("way", coverage.WAYS)
def test_every_estimate_of_a_log_has_an_interval(way):
    kind, sample = coverage.WAYS[way]
    found = coverage.trial({}, way=kind, sample=sample, users=40, first=0, count=1)
    low, value, high = (np.array(found[name]) for name in ("low", "value", "high"))
    assert low.shape == (1, len(coverage.ESTIMATES))
    assert ((low < value) & (value < high)).all()


def test_a_share_has_its_error():
    assert with_error(0.5, 100) == "0.500 ± 0.050"
    assert share(1, 8) == "12.5%"
    assert share(0, 0) == "–"


def test_a_missed_goal_is_said():
    goals = (Goal(text="x below 2", found="3", met=False), Goal(text="y below 2", found="1", met=True))
    table = Table(header=("a", "b"), rows=(("1", "2|3"),), caption="all of it")
    part = Part(title="A part", words="In\nwords.", tables=(table,), goals=goals, left_out=("coat is absent",))
    lines = page([part], Sizes(cases=7), "python -m bench.trust --cases 7").splitlines()
    assert any("x below 2" in line and MISSED in line for line in lines)
    assert any("y below 2" in line and line.endswith(f"{MET} |") for line in lines)
    assert "| 1 | 2\\|3 |" in lines
    assert "Left out: coat is absent." in lines
    assert any("--cases 7" in line for line in lines)


def test_a_run_without_data_says_what_it_left_out_and_is_kept(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(coverage, "MANY", 200)
    monkeypatch.setattr(coverage, "WAYS", {"known p": ("known", 0)})
    (tmp_path / "empty").mkdir()
    asked = [*PARTS, *SMALL, "--data", str(tmp_path / "empty"), "--cache", str(tmp_path / "cache")]
    main(asked)
    first = capsys.readouterr().out
    assert Counter(line.startswith("## ") for line in first.splitlines())[True] == len(PARTS) + 1
    assert "ml-100k is not in the data folder" in first
    kept = sorted((file.name, file.stat().st_mtime_ns) for file in (tmp_path / "cache").rglob("*.npz"))
    main(asked)
    assert capsys.readouterr().out == first
    assert sorted((file.name, file.stat().st_mtime_ns) for file in (tmp_path / "cache").rglob("*.npz")) == kept


def test_an_unknown_part_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["nothing"])
    assert "nothing" in capsys.readouterr().err


def test_the_bench_of_intervals_has_each_kind_of_each_metric():
    users, rate, step, size = intervals.WORLDS["NaiveBayes, 600 ratings, 300 users"]
    found = {(metric, kind): held for metric, kind, held in intervals.intervals(users, rate, step, size, 0)}
    assert set(found) == {(metric, kind) for metric in intervals.METRICS for kind in intervals.KINDS}
    # 600 ratings tell the levels' shares roughly, and the interval that counts their error is the widest of the three.
    width = {kind: found["mae", kind][1] - found["mae", kind][0] for kind in intervals.KINDS}
    assert 0 < max(width[kind] for kind in intervals.KINDS[:2]) < width["openloop"]


def test_the_bench_of_positions_measures_values_examination_and_verdicts():
    errors = positions.value_errors(0, fitted=True)
    assert set(errors) == set(positions.VALUES)
    assert abs(errors["snpbm"][0]) < 0.1  # five standard errors of one log
    relative, inside = positions.theta_errors(0)
    assert len(relative) == len(inside) == 4
    assert positions.verdict_of("pbm, half shuffled", 0) == "right"
    assert positions.verdict_of("pbm, one ranker, 5 of 10 shown", 0) == "refused"
    assert positions.verdict_of("equal rankers", 0) == "no verdict"


def test_the_tables_of_positions_are_put_between_their_marks():
    page = f"before\n{positions.PAGE.marks[0]}\nold\n{positions.PAGE.marks[1]}\nafter\n"
    assert (
        positions.PAGE.placed(page, "new")
        == f"before\n{positions.PAGE.marks[0]}\n\nnew\n\n{positions.PAGE.marks[1]}\nafter\n"
    )
    with pytest.raises(SystemExit, match="marks"):
        positions.PAGE.placed("nothing", "new")


def test_the_bench_of_balancing_measures_each_way_and_finds_what_the_page_says():
    errors = [balancing.errors("the rating", seed) for seed in range(6)]
    plain, balanced = (np.array([one["known", "skewed", way][0] for one in errors]) for way in ("snips", "f"))
    assert np.sqrt(np.mean(balanced**2)) < 0.85 * np.sqrt(np.mean(plain**2))
    # A prediction that follows from the rating contradicts a sample; all else is measured.
    missing = {
        (p, model, way) for p in ("known", "naive-bayes") for model in balancing.MODELS for way in balancing.WAYS
    }
    assert missing - set(errors[0]) == {("naive-bayes", "coarsened", way) for way in ("f", "f, imputed")}
    lines = list(balancing._lines("the rating", errors))
    assert len(lines) == 6
    assert sum("refused" in line for line in lines) == 1
    with pytest.raises(SystemExit, match="marks"):
        balancing.PAGE.placed("nothing", "new")


def test_the_bench_of_impressions_measures_each_step():
    found = impressions.measured(20_000)
    assert found["rows"] == 20_000
    assert min(found["examination"], found["values"], found["peak GiB"]) > 0
