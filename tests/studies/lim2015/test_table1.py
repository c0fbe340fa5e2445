"""Table 1: the paper's pattern is found where it is and missed where it is not; the misprint by hand; a whole run."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.studies.kit.running import reproduce
from openloop.studies.lim2015 import table1
from openloop.studies.lim2015.published import ADG, AUC, MEASURES, SHOWN, TABLE1
from openloop.studies.lim2015.table1 import LEAST_RATIO, all_contrasts, as_printed, published_ratios
from tests.studies.lim2015.fitted import AS_PUBLISHED, EQUAL, REVERSED, USERS, made_up, positives


def result(monkeypatch, *data):
    monkeypatch.setattr(table1, "all_fits", lambda _run: list(data))
    return table1.table1(None)


def held(found):
    """The claims that hold, without those of the paper's own numbers."""
    return [claim.holds for claim in found.claims[:-1]]


def table(found, name):
    return next(t for t in found.tables if t.name == name)


def test_the_papers_pattern_is_found_where_it_is(monkeypatch):
    assert held(result(monkeypatch, made_up(AS_PUBLISHED))) == [True] * 6


def test_it_is_missed_where_all_is_the_other_way_round(monkeypatch):
    assert held(result(monkeypatch, made_up(REVERSED))) == [False] * 6


def test_models_that_differ_by_noise_are_not_significantly_better(monkeypatch):
    top, atop, *_ = held(result(monkeypatch, made_up(EQUAL)))
    assert (top, atop) == (False, True)


def test_differences_are_paired_by_user_and_adjusted_over_all():
    found = all_contrasts([made_up(AS_PUBLISHED), made_up(EQUAL, name="other")])
    assert len(found) == 2 * 4 * len(MEASURES)
    assert all(c.holm >= c.users.pvalue for c in found)
    c = next(c for c in found if (c.a.learner, c.b.learner, c.measure) == (ADG, AUC, "map"))
    assert c.users.value == pytest.approx(0.1, abs=1e-3)
    assert c.users.stderr < 0.001  # the noise that the models share, ten times their own, falls out
    assert c.better
    assert c.value().mark == "*†"


def test_the_papers_numbers_stand_by_themselves_and_beside_ours_where_its_data_are_present(monkeypatch):
    other = table(result(monkeypatch, made_up(EQUAL)), "table1-published")
    assert len(other.rows) == len(TABLE1)
    assert all(value.value is None for _, value in other.values())
    found = result(monkeypatch, made_up(EQUAL, name="ml-10m"))
    ours = dict(table(found, "table1-published").values())[f"ml-10m, {AUC}, ATOP"]
    assert (ours.value, ours.published) == (pytest.approx(0.8, abs=0.01), 0.8855)
    assert ours.came_out is False
    assert "table1" not in {t.name for t in found.tables}


def test_the_misprinted_idcg_by_hand():
    data = made_up(EQUAL)
    flat = data._replace(fits=[f._replace(outcome=f.outcome | {"test": np.ones((5, USERS))}) for f in data.fits])
    # |S_u| is 1 … 5 for a fifth of the users each, and ADG is 1: NDCG as printed is n / Σ_{j=1}^{n} 1/log2(j + 2)
    wanted = [n / sum(1 / np.log2(j + 2) for j in range(1, n + 1)) for n in range(1, 6)]
    assert as_printed(flat, flat.methods[0]).value == pytest.approx(np.mean(wanted), rel=1e-12)
    assert min(wanted) == pytest.approx(LEAST_RATIO)


def test_the_published_ndcg_cannot_be_as_printed():
    below = {name for (name, _), ratio in published_ratios().items() if ratio < LEAST_RATIO}
    assert below == {"amazon-games", "lastfm-msd"}


def test_a_quick_run_has_every_table(tmp_path):
    given = positives(0)
    (tmp_path / "ml-100k").mkdir()
    rows = [f"{u}\t{i}\t{stars}\t0" for u, i in zip(given["user"], given["item"], strict=True) for stars in [4 + u % 2]]
    (tmp_path / "ml-100k" / "u.data").write_text("\n".join([*rows, "0\t999\t3\t0"]))
    first = reproduce("lim2015", ["table1"], data=tmp_path, quick=True, workers=0, cache=tmp_path / "cache")["table1"]
    assert first.data == ("ml-100k",)
    assert {t.name for t in first.tables} == {
        "sizes", "table1", "table1-published", "table1-longer", "table1-own", "table1-differences", "table1-ndcg",
    }  # fmt: skip
    sizes = [cell.value for cell in table(first, "sizes").rows[0][1:]]
    assert sizes == [60, 81, len(rows)]  # three stars are no positive, but the film is one of the items
    values = dict(table(first, "table1").values())
    assert [row[0] for row in table(first, "table1").rows] == [f"ml-100k, {m}" for m in (AUC, ADG, "SVD")]
    assert all(0 < values[f"ml-100k, {ADG}, {shown}"].value < 1 for shown in SHOWN.values())
