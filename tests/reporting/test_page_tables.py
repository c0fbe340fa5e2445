"""Tables of a page: the numbers of the result, sorted by value, with marks that mean what they say."""

from __future__ import annotations

import math
from dataclasses import replace

from openloop.audits.contrasts import contrasts
from openloop.reporting import page_tables as tables
from tests.audit_cases import NAMES


def column(table, name: str) -> list:
    at = table.columns.index(name)
    return [row[at] for row in table.rows]


def test_every_row_has_every_column(audit, result):
    made = [
        tables.leaderboard(result, "mae", "snips", audit.contrasts["mae", "snips"], audit.best["mae", "snips"]),
        tables.differences(result, "mae", "snips", audit.contrasts["mae", "snips"]),
        tables.places(result, "mae", audit.open_loop.result),
        tables.strata(audit.strata[0], 0.95),
        tables.tilted(audit.curves),
        tables.histogram(audit.weights),
        tables.heaviest(audit.weights),
        tables.scores(audit.open_loop, "mae"),
        tables.beside(result, audit.open_loop.result, "mae"),
        tables.ratings(audit.setting.ratings),
        tables.mean_ranks(audit.friedman.ranks),
    ]
    for table in made:
        assert table.rows, table.caption
        assert {len(row) for row in table.rows} == {len(table.columns)}, table.caption


def test_the_leaderboard_is_in_the_order_that_it_declares(result):
    for metric, direction in (("mae", "ascending"), ("dcg@50", "descending")):
        table = tables.leaderboard(result, metric, "snips", contrasts(result, metric, "snips"), {})
        at, order = table.order
        values = [row[at].value for row in table.rows]
        assert order == direction
        assert values == sorted(values, reverse=order == "descending")
        assert values == [result[model, metric, "snips"].value for model in result.ranking(metric, "snips")]
        assert "probability of being best" not in table.columns


def test_wins_are_counted_after_holm(audit, result):
    found = audit.contrasts["mae", "snips"]
    table = tables.leaderboard(result, "mae", "snips", found, {})
    wins = {row[0].text: cell.value for row, cell in zip(table.rows, column(table, "ahead of"), strict=True)}
    assert wins == {model: sum(c.better == model for c in found) for model in NAMES}


def test_a_flagged_estimate_has_a_mark_and_a_note(result):
    e = result["ones", "mae", "snips"]
    thin = replace(e, diagnostics=e.diagnostics.flagged("support too thin"))
    result = replace(result, estimates=result.estimates | {("ones", "mae", "snips"): thin})
    table = tables.leaderboard(result, "mae", "snips", (), {})
    assert "† snips, ones: support too thin" in table.notes
    assert sum(cell.text.endswith("†") for cell in column(table, "snips")) >= 1


def test_what_is_missing_is_a_dash_that_is_sorted_last():
    assert (tables.value(None).text, tables.value(math.nan).value) == ("–", math.inf)


def test_equal_values_share_a_place(result):
    same = {key: replace(e, value=1.0) for key, e in result.estimates.items()}
    table = tables.places(replace(result, estimates=same), "mae", None)
    assert {cell.text for cell in column(table, "snips")} == {"1="}


def test_a_star_is_for_a_model_that_beats_all_others_in_its_line(audit):
    first, *rest = audit.strata[0].lines
    marked = replace(audit.strata[0], lines=(replace(first, best=NAMES[1]), *(replace(x, best=None) for x in rest)))
    table = tables.strata(marked, 0.95)
    starred = [[m for m in NAMES if row[table.columns.index(m)].text.endswith("*")] for row in table.rows]
    assert starred == [[NAMES[1]], *([] for _ in rest)]


def test_shares_of_rows_are_of_the_log_and_not_of_the_open_loop(audit):
    table = audit.strata[0]
    larger = replace(table.lines[0], name="open loop", kind="open loop", rows=10**6)
    cells = column(tables.strata(replace(table, lines=(*table.lines, larger)), 0.95), "rows")
    assert cells[3].detail == "70 %"
    assert cells[-1].detail == ""


def test_bounds_begin_and_end_with_the_curve(audit):
    curve = audit.curves[0]
    gammas = [cell.value for cell in column(tables.tilted([curve]), "Γ")]
    assert (gammas[0], gammas[-1]) == (1.0, curve.at[-1])
    assert gammas == sorted(set(gammas))


def test_bounds_near_0_have_no_more_decimals_than_the_others(audit):
    low = (-0.04, 5e-6, 0.03)
    curve = replace(audit.curves[0], at=(1.0, 2.0, 3.0), low=low, high=tuple(x + 0.02 for x in low), value=())
    assert [cell.text for cell in column(tables.tilted([curve]), "lowest")] == ["−0.0400", "0.0000", "0.0300"]
