"""Table 1: the paper's pattern is found where it is and missed where it is not; what is told beside it; a whole run."""

from __future__ import annotations

import pytest

from openloop.studies.kit.running import reproduce
from openloop.studies.lim2015 import table1
from openloop.studies.lim2015.published import ADG, AUC, SHOWN, TABLE1
from tests.studies.lim2015.fitted import AS_PUBLISHED, EQUAL, REVERSED, USERS, made_up, positives


def result(monkeypatch, *data):
    monkeypatch.setattr(table1, "all_fits", lambda _run: list(data))
    return table1.table1(None)


def held(found):
    """Which claims of the paper's pattern hold, without that on the paper's own numbers."""
    return [claim.holds for claim in found.claims if claim.counted]


def table(found, name):
    return next(t for t in found.tables if t.name == name)


def test_the_papers_pattern_is_found_where_it_is(monkeypatch):
    assert held(result(monkeypatch, made_up(AS_PUBLISHED))) == [True] * 6


def test_it_is_missed_where_all_is_the_other_way_round(monkeypatch):
    assert held(result(monkeypatch, made_up(REVERSED))) == [False] * 6


def test_models_that_differ_by_noise_are_not_significantly_better(monkeypatch):
    top, atop, *_ = held(result(monkeypatch, made_up(EQUAL)))
    assert (top, atop) == (False, True)


def test_the_table_of_sizes_says_what_densification_cut(monkeypatch):
    cut, whole = made_up(EQUAL), made_up(EQUAL, name="whole")._replace(before=(USERS, 70, 300))
    rows = {row[0]: row[-1] for row in table(result(monkeypatch, cut, whole), "sizes").rows}
    assert rows["made up"] == "20 of 90 items, 100 of 400 positives"
    assert rows["whole"].startswith("nothing")
    assert rows["ml-10m"].startswith("not rerun")


def test_the_papers_numbers_stand_by_themselves_and_beside_ours_where_its_data_are_present(monkeypatch):
    other = table(result(monkeypatch, made_up(EQUAL)), "table1-published")
    assert len(other.rows) == len(TABLE1)
    assert all(value.value is None for _, value in other.values())
    found = result(monkeypatch, made_up(EQUAL, name="ml-10m"))
    ours = dict(table(found, "table1-published").values())[f"ml-10m, {AUC}, ATOP"]
    assert (ours.value, ours.published) == (pytest.approx(0.8, abs=0.01), 0.8855)
    assert ours.came_out is False
    assert "table1" not in {t.name for t in found.tables}


def test_a_quick_run_has_every_table(tmp_path):
    given = positives(0)
    (tmp_path / "ml-100k").mkdir()
    rows = [f"{u}\t{i}\t{stars}\t0" for u, i in zip(given["user"], given["item"], strict=True) for stars in [4 + u % 2]]
    (tmp_path / "ml-100k" / "u.data").write_text("\n".join([*rows, "0\t999\t3\t0"]))
    first = reproduce("lim2015", ["table1"], data=tmp_path, quick=True, workers=0, cache=tmp_path / "cache")["table1"]
    assert first.data == ("ml-100k",)
    assert {t.name for t in first.tables} == {
        "sizes", "table1", "table1-published", "table1-longer", "table1-differences",
    }  # fmt: skip
    sizes = [cell.value for cell in table(first, "sizes").rows[0][1:4]]
    assert sizes == [60, 81, len(rows)]  # three stars are no positive, but the film is one of the items
    values = dict(table(first, "table1").values())
    assert [row[0] for row in table(first, "table1").rows] == [f"ml-100k, {m}" for m in (AUC, ADG, "SVD")]
    assert all(0 < values[f"ml-100k, {ADG}, {shown}"].value < 1 for shown in SHOWN.values())
