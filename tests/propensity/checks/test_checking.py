"""check: the truth passes, wrong models are flagged for what is wrong, and what is undefined has a reason."""

from __future__ import annotations

import json
import re
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from scipy.special import expit

import openloop.propensity
from openloop.core.covariates import Covariates
from openloop.core.feedback import Feedback
from openloop.data.simulate import World
from openloop.data.splitting import split
from openloop.errors import AlignmentError, InputError
from openloop.propensity.calibrated import Calibrated
from openloop.propensity.checks.checking import Check, check, flags_of
from openloop.propensity.known import Known
from openloop.propensity.uniform import Uniform
from tests.facts import facts

draw = np.random.default_rng(0)
X, Z = draw.normal(size=(300, 2)), draw.normal(size=(200, 1))
WORLD = World(
    ratings=np.ones((300, 200)),
    propensities=expit(0.7 * X[:, :1] + draw.normal(0, 0.4, (300, 1)) + 0.7 * Z[:, 0] + draw.normal(0, 0.4, 200) - 2.5),
)
LOG = WORLD.observe(1)
TRUE = WORLD.propensities


class OneP(Uniform):
    """One p for all cells, judged cell by cell: nobody knows what a class of one's own does with counts."""


def checked(P, log: Feedback = LOG, **options) -> Check:
    return check(Known(P).fit(log), log, (X, Z), **options)


def test_the_truth_passes():
    found = checked(TRUE)
    assert found.flags == ()
    assert found.not_computed == {}
    assert found.calibration.error < 0.1 * found.calibration.mean_observed
    assert found.weights.mass == pytest.approx(1.0, abs=0.05)
    moved = {d.name: d for d in found.balance}
    for name in ("user_0", "item_0"):
        assert moved[name].before > 0.4
        assert abs(moved[name].after) < 0.06
    assert all(m.correlation > 0.9 for m in found.margins)
    assert (found.model, found.rows, found.users, found.items) == ("Known", len(LOG), 300, 200)


def test_a_part_of_a_log_passes_with_the_truth_of_the_whole():
    part, _ = split(LOG, test=0.4, rng=0)
    found = checked(TRUE, part)
    assert found.flags == ()
    assert found.weights.mass == pytest.approx(1.0, abs=0.06)
    assert found.margins[0].count == pytest.approx(len(LOG))


def test_the_flags_say_what_is_wrong():
    found = checked(TRUE**2)
    for sign in (
        facts("population", f"{found.weights.mass:.2f}"),
        facts("held-out", "Calibrated"),
        facts("held-out", "constant p"),
        facts("Σp", "users"),
        facts("covariates", 0.1),
    ):
        assert any(re.search(sign, flag) for flag in found.flags), sign


def test_one_p_for_all_is_calibrated_and_unbalanced():
    found = check(Uniform().fit(LOG), LOG, (X, Z))
    text = "; ".join(found.flags)
    assert "4 of 5 covariates" in text  # both counts, and the two that matter
    assert "held-out" not in text
    assert found.calibration.log_likelihood == pytest.approx(found.calibration.uniform)
    for d in found.balance:
        assert d.after == pytest.approx(d.before)


def test_what_held_out_cells_say_of_the_model_within_is_not_said_of_balanced_weights():
    found = check(Uniform().fit(LOG), LOG, (X, Z))
    worse = replace(found.calibration, log_likelihood=-1e3)
    (plain,) = (flag for flag in flags_of(worse, (), (), found.overlap) if "constant p" in flag)
    (told,) = (flag for flag in flags_of(worse, (), (), found.overlap, balanced=True) if "constant p" in flag)
    assert "balanced" not in plain
    assert re.search(facts("the model within", "balanced weights do not rest"), told)


def test_cells_that_nothing_speaks_for_and_thin_support_are_flagged():
    # The log has no cell of the second half of the items, whose p are tiny, and none of the rarest of the others.
    P = np.where(np.arange(200) < 100, TRUE, 1e-9)
    log = WORLD.observe(1)
    log = log.take(log.item < 100)
    flags = check(Known(P).fit(log), log, folds=None).flags
    assert any(re.search(facts("51%", "grid", "below"), flag) for flag in flags)
    low = np.full((300, 200), 0.5)
    low[LOG.user[0], LOG.item[0]] = 1e-6
    found = check(Known(low).fit(LOG), LOG, folds=None)
    assert any(re.search(facts("one row", "99%"), flag) for flag in found.flags)
    thin = facts(f"{len(LOG):,} rows", f"{found.weights.effective_size:.1f}")
    assert any(re.search(thin, flag) for flag in found.flags)
    assert (found.heaviest[0].user, found.heaviest[0].item) == (LOG.user[0], LOG.item[0])


def test_poor_overlap_is_flagged():
    P = np.where(np.arange(200) < 180, 0.001, 0.9) * np.ones((300, 1))
    log = World(ratings=np.ones((300, 200)), propensities=P).observe(0)
    found = check(Known(P).fit(log), log, folds=None)
    assert found.overlap.coefficient < 0.3
    assert any(re.search(facts("overlap", f"{found.overlap.coefficient:.0%}"), flag) for flag in found.flags)


def test_a_count_that_is_uneven_by_chance_alone_is_not_flagged():
    P = np.full((300, 200), 0.1)
    log = World(ratings=np.ones((300, 200)), propensities=P).observe(0)
    found = check(Known(P).fit(log), log)
    assert max(d.after for d in found.balance) > 0.1
    assert found.flags == ()


def test_what_is_not_defined_has_its_reason():
    found = check(Known().fit(LOG), LOG)
    assert found.calibration is None
    assert found.margins == ()
    assert found.overlap.grid is None
    assert set(found.not_computed) == {"calibration", "margins", "overlap"}
    assert all("observed cells" in reason for reason in found.not_computed.values())
    assert found.weights.mass == pytest.approx(1.0, abs=0.1)


def test_a_part_without_share_has_no_mass_no_counts_and_no_folds():
    part = LOG.take(np.arange(len(LOG)) % 2 == 0, share=None)
    found = check(Known(TRUE).fit(part), part)
    assert set(found.not_computed) == {"calibration", "margins", "mass"}
    assert found.weights.mass is None
    assert found.overlap.coefficient is not None


def test_refits_can_be_left_out():
    left_out = checked(TRUE, folds=None).not_computed
    assert set(left_out) == {"calibration"}
    assert "folds=None" in left_out["calibration"]


def test_covariates_are_the_models_own_unless_given():
    model = Known(TRUE).fit(LOG)
    model.user_covariates_ = Covariates(values=X, names=("age", "income"), ids=LOG.users)
    names = [d.name for d in check(model, LOG, folds=None).balance]
    assert names == ["log count of user", "age", "income", "log count of item"]
    given = [d.name for d in check(model, LOG, (None, Z), folds=None).balance]
    assert given == ["log count of user", "log count of item", "item_0"]


def test_a_calibrated_model_has_the_covariates_of_the_one_inside():
    model = Calibrated(Known(TRUE), method=None, floor=0.01).fit(LOG)
    model.inner_.item_covariates_ = Covariates(values=Z, names=("price",), ids=LOG.items)
    found = check(model, LOG, folds=None)
    assert [d.name for d in found.balance][-1] == "price"
    assert found.model == "Calibrated(Known)"
    assert found.notes == model.notes_
    assert found.weights.clipped_share == pytest.approx(np.mean(TRUE[LOG.user, LOG.item] < 0.01))


def test_calibration_mends_what_a_check_flags():
    before, after = checked(TRUE**2), check(Calibrated(Known(TRUE**2)).fit(LOG), LOG, (X, Z))
    assert after.calibration.error < before.calibration.error / 5
    assert after.calibration.log_likelihood > after.calibration.uniform > before.calibration.log_likelihood
    assert after.flags == ()


def test_a_log_too_large_for_its_grid_is_checked():
    rng = np.random.default_rng(0)
    cell = np.unique(rng.integers(0, 4 * 10**9, 5000))
    log = Feedback.from_arrays(cell // 20_000, cell % 20_000, np.ones(len(cell)), users=200_000, items=20_000)
    uniform, sampled = (check(model, log, folds=2) for model in (Uniform().fit(log), OneP().fit(log)))
    for found in (uniform, sampled):
        assert found.weights.mass == pytest.approx(1.0)
        assert found.calibration.mean_predicted == pytest.approx(found.calibration.mean_observed, rel=1e-6)
    assert uniform.calibration.cells == 2 * 4 * 10**9 - len(log)  # of items' counts: none is left out
    assert sampled.calibration.cells < 2**21 + 1


def test_the_same_seed_gives_the_same_check():
    assert checked(TRUE, rng=3) == checked(TRUE, rng=3) != checked(TRUE, rng=4)


def test_a_check_is_frozen():
    with pytest.raises(FrozenInstanceError):
        checked(TRUE, folds=None).rows = 3


def test_json_holds_the_same_and_is_written_in_one_step(tmp_path):
    found = checked(TRUE)
    path = tmp_path / "check.json"
    text = found.to_json(path)
    assert json.loads(text) == found.to_dict() == json.loads(path.read_text(encoding="utf-8"))
    assert list(tmp_path.iterdir()) == [path]
    content = found.to_dict()
    assert content["calibration"]["curve"][0]["predicted"] == found.calibration.curve[0].predicted
    assert content["heaviest"][0]["user"] == found.heaviest[0].user
    assert content["weights"]["quantiles"]["0.5"] == found.weights.quantiles[0.5]


def test_json_has_null_for_what_is_not_finite():
    found = checked(TRUE, folds=None)
    broken = replace(found, weights=replace(found.weights, mass=float("nan")))
    assert json.loads(broken.to_json())["weights"]["mass"] is None


def test_it_is_found_in_the_package():
    assert openloop.propensity.check is check
    assert openloop.propensity.Check is Check


@pytest.mark.parametrize("given", [X, (X,), "age"])
def test_covariates_must_be_a_pair(given):
    with pytest.raises(InputError, match=facts("check", "covariates", "pair", type(given).__name__)):
        check(Known(TRUE).fit(LOG), LOG, given)


def test_covariates_of_other_ids_and_logs_of_another_grid_are_refused():
    model = Known(TRUE).fit(LOG)
    with pytest.raises(AlignmentError, match="user covariates"):
        check(model, LOG, (X[:10], None))
    with pytest.raises(AlignmentError, match="Known"):
        check(model, Feedback.from_arrays([0], [0], [1], users=3, items=3))
    with pytest.raises(InputError, match=facts("check", "Feedback", "dict", "ol.read")):
        check(model, {})


def test_a_bin_with_far_more_rows_than_p_says_is_flagged():
    # p far too small for the rarest third of the items: the mean hardly moves, the weights there explode.
    U, I = 300, 90
    P = np.broadcast_to(np.repeat([0.02, 0.1, 0.3], I // 3), (U, I))
    wrong = np.where(P == 0.02, P / 4, P)
    log = World(ratings=np.ones((U, I)), propensities=P).observe(0)
    right, off = (check(Known(p).fit(log), log) for p in (P, wrong))
    assert not any("more rows" in flag for flag in right.flags)
    assert any("more rows" in flag for flag in off.flags)
    assert right.weights.quantiles[0.5] == np.quantile(1 / log.propensity, 0.5)


def test_a_log_with_fewer_rows_than_folds_is_checked_without_them():
    log = Feedback.from_arrays([0, 0, 1, 2], [0, 1, 1, 0], [1, 2, 3, 4])
    found = check(Uniform().fit(log), log)
    assert found.calibration is None
    assert re.search(facts("4 rows", "5 folds", "folds="), found.not_computed["calibration"])
