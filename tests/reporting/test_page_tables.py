"""Tables of a page: the numbers of the result, sorted by value, with marks that mean what they say."""

from __future__ import annotations

from openloop.audits.contrasts import contrasts
from openloop.reporting import page_tables as tables
from tests.audit_cases import NAMES


def column(table, name: str) -> list:
    at = table.columns.index(name)
    return [row[at] for row in table.rows]


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
