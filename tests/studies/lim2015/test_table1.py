"""Table 1: the paper's pattern is found where it is and missed where it is not; what is told beside it; a whole run."""

from __future__ import annotations

import pytest

from openloop.studies.kit.running import reproduce
from openloop.studies.lim2015 import table1
from openloop.studies.lim2015.published import ADG, AUC, SHOWN, TABLE1
from tests.studies.lim2015.fitted import AS_PUBLISHED, EQUAL, REVERSED, STEPPED, USERS, made_up, positives


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


def test_fits_with_more_updates_are_no_claim_of_the_papers(monkeypatch):
    ours = [(claim.text.count("100 updates"), claim.ours) for claim in result(monkeypatch, made_up(EQUAL)).claims]
    assert [bool(n) for n, _ in ours] == [mine for _, mine in ours]
    assert sum(mine for _, mine in ours) == 2


def test_a_gist_says_where_it_is_the_other_way_round(monkeypatch):
    worse = "significantly worse on every measure"
    low, high = [0.1] * 5, [0.2] * 5
    measures = AS_PUBLISHED | {(AUC, True): high, (ADG, True): low}
    gists = [claim.gist for claim in result(monkeypatch, made_up(measures)).claims if "beats" in claim.gist]
    assert [worse in gist for gist in gists] == [False, True]


def test_models_that_differ_by_noise_are_not_significantly_better(monkeypatch):
    top, atop, *_ = held(result(monkeypatch, made_up(EQUAL)))
    assert (top, atop) == (False, True)


def test_shares_of_updates_with_a_step_are_in_the_table(monkeypatch):
    monkeypatch.setitem(STEPPED, ADG, 0.5)
    assert table(result(monkeypatch, made_up(EQUAL)), "table1").rows[1][-1] == "50 to 50"


def test_the_table_of_sizes_says_what_densification_cut(monkeypatch):
    cut, whole = made_up(EQUAL), made_up(EQUAL, name="whole")._replace(before=(USERS, 70, 300))
    rows = {row[0]: row[-1] for row in table(result(monkeypatch, cut, whole), "sizes").rows}
    assert rows["made up"] == "20 of 90 items, 100 of 400 positives"
    assert rows["whole"].startswith("nothing")
    assert rows["ml-10m"].startswith("not rerun")


def test_settings_at_an_end_of_their_grid_are_marked(monkeypatch):
    data = made_up(EQUAL)
    worse = [f._replace(setting=f.setting | {"rate": 0.1, "reg": 0.3}) for f in data.fits if "rate" in f.setting]
    worse = [f._replace(outcome=f.outcome | {"validation": f.outcome["validation"] - 0.1}) for f in worse]
    rows = table(result(monkeypatch, data._replace(fits=[*data.fits, *worse])), "table1-settings").rows
    assert rows[0][1:] == ("0.1↓, 0.2↑",) * 4
    assert rows[2][1:] == ("5",) * 4  # one rank was tried


def test_grids_are_those_that_were_run_and_claims_say_where_every_fold_is_at_an_edge(monkeypatch):
    data = made_up(EQUAL)
    longer = [f for f in data.fits if f.setting.get("updates") == 100 and f.setting["learner"] == ADG]
    worse = [f._replace(setting=f.setting | {"rate": 0.3}) for f in longer]
    worse = [f._replace(outcome=f.outcome | {"validation": f.outcome["validation"] - 0.1}) for f in worse]
    found = result(monkeypatch, data._replace(fits=[*data.fits, *worse]))
    edges = {claim.text: "0.2↓" in claim.found for claim in found.claims}
    assert [text for text, at_edge in edges.items() if at_edge] == [text for text in edges if "100 updates" in text]
    note = table1.grids_note(
        data._replace(fits=[*data.fits, *(f._replace(setting=f.setting | {"learner": AUC}) for f in worse)])
    )
    assert "with 10 updates λ of 0.1 and first rates of 0.2;" in note
    assert "with 100 updates λ of 0.1 and first rates of 0.2, 0.3." in note


def test_the_misprint_of_the_algorithm_is_told_with_the_range_of_the_weight(monkeypatch):
    notes = [note for note in result(monkeypatch, made_up(EQUAL)).notes if "Algorithm 1" in note]
    # 70 items and γ = 100: one draw, C(69) = 1 - 1/log2(71)
    assert [note.endswith("0.837 to 0.837 on made up.") for note in notes] == [True]


def test_no_other_note_gets_the_range_of_the_weight(monkeypatch):
    monkeypatch.setattr(table1, "NOTES", ("a note that ends in a colon:",))
    assert "a note that ends in a colon:" in result(monkeypatch, made_up(EQUAL)).notes


def test_the_claim_about_printed_numbers_counts_in_no_tally(monkeypatch):
    claims = result(monkeypatch, made_up(EQUAL)).claims
    assert [claim.counted for claim in claims] == [True] * (len(claims) - 1) + [False]


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
        "sizes", "table1", "table1-published", "table1-longer", "table1-own", "table1-differences",
        "table1-settings", "table1-ndcg",
    }  # fmt: skip
    sizes = [cell.value for cell in table(first, "sizes").rows[0][1:4]]
    assert sizes == [60, 81, len(rows)]  # three stars are no positive, but the film is one of the items
    values = dict(table(first, "table1").values())
    assert [row[0] for row in table(first, "table1").rows] == [f"ml-100k, {m}" for m in (AUC, ADG, "SVD")]
    assert all(0 < values[f"ml-100k, {ADG}, {shown}"].value < 1 for shown in SHOWN.values())
