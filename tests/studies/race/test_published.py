"""The papers' numbers: in every row, beside ours and never held against them."""

from __future__ import annotations

from openloop.studies.race.entrants import RACERS
from openloop.studies.race.published import PRINTED, PUBLISHED, beside, printed_table


def test_offsets_alone_are_above_all_but_one():
    assert [name for name, row in PRINTED.items() if row.auc > 0.773] == ["D-DR"]
    assert PUBLISHED["coat"]["UPO"] == {"auc": 0.749, "ndcg": 0.691}


def test_every_entrant_that_names_a_printed_row_has_one():
    assert {one.printed for one in RACERS.values()} - {""} <= set(PRINTED)


def test_a_printed_number_is_shown_and_not_judged():
    value = beside("IPS", "auc", 0.8, 0.01)
    assert (value.published, value.came_out) == (0.717, None)
    assert beside("", "auc", 0.8).published is None


def test_the_rows_of_methods_that_do_not_run_are_the_others():
    table = printed_table(set(PRINTED) - {"UPO", "D-DR"})
    assert [row[0] for row in table.rows] == ["UPO", "D-DR"]
    assert [value.published for _, value in table.values()] == [0.749, 0.691, 0.780, 0.667]
