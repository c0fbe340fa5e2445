"""Table 1: every published number has ours beside it, and what must come out does, on a small world.

On ML100K: tests/studies/test_quick.py.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from openloop.studies.schnabel2016 import completions, estimates, table1
from openloop.studies.schnabel2016.estimates import METRICS
from openloop.studies.schnabel2016.published import PUBLISHED
from openloop.studies.schnabel2016.worlds import MODELS
from tests.facts import facts


def test_table1_puts_every_published_number_beside_ours(small_run):
    result = table1.table1(small_run)
    mae, dcg, deviations, marginals = result.tables
    for table, metric in ((mae, "mae"), (dcg, "dcg@50")):
        for model, true, *estimated in table.rows[: len(MODELS)]:
            printed = PUBLISHED["table1"][metric][model]
            assert true.published == printed["true"]
            shown = [(value.published, value.published_error) for value in estimated]
            assert shown == [printed[name] for name in ("ips", "snips", "naive")]
    assert [row[0] for row in mae.rows] == list(MODELS)
    # The true MAE follows from the marginals of the stars, so it comes out whatever the world.
    assert all(row[1].came_out for row in mae.rows)
    assert sum(value.published is not None for _, value in deviations.values()) == 15
    assert all(value.came_out is None for _, value in deviations.values())  # chance alone moves them too far
    assert [sum(value.value for value in row[1:]) for row in marginals.rows] == pytest.approx([1, 1])
    assert all(value.came_out for value in marginals.rows[1][1:])  # the made-up log has the printed shares


def test_table1_says_what_its_tables_allow_beside_chance(small_run):
    mae, dcg, _, marginals = (table.caption for table in table1.table1(small_run).tables)
    assert re.search(facts("Allowed", "rounding of the published number", 3.5, "marginals", "SKEWED"), mae)
    assert re.search(facts("Allowed", 3.5, "other completions", "SKEWED"), dcg)
    assert re.search(facts("Allowed", "rounding"), marginals)


def test_another_completion_is_what_a_dcg_is_allowed(small_run):
    result = table1.table1(small_run)
    others = completions.other_completions(small_run, table1.complete(small_run))
    for j, (_, true, *_) in enumerate(result.tables[1].rows[: len(MODELS)]):
        printed = PUBLISHED["table1"]["dcg@50"][MODELS[j]]
        most = 0.2 * min(printed["true"], abs(printed["naive"][0] - printed["true"]))
        assert true.tolerance == pytest.approx(min(0.005 + abs(others.truth[0, j] - true.value), most))


def test_another_sample_is_what_a_dcg_is_allowed_beside_completions(small_run):
    world = table1.complete(small_run)
    found = estimates.with_known(small_run, world, [0.25])[0.25]
    others, samples = completions.other_completions(small_run, world), {"truth": np.arange(5.0), "naive": np.ones(5)}
    none = {"truth": np.zeros(5), "naive": np.zeros(5)}
    with_them, without = (table1._dcg_allowed(found, others, given) for given in (samples, none))
    assert with_them.true - without.true == pytest.approx(samples["truth"])
    assert with_them.naive - without.naive == pytest.approx(samples["naive"])


def test_no_tolerance_is_a_quarter_of_its_number_or_of_the_bias_of_naive(small_run):
    mae, dcg, _, marginals = table1.table1(small_run).tables
    for table, metric in ((mae, "mae"), (dcg, "dcg@50")):
        for model, *values in table.rows[: len(MODELS)]:
            printed = PUBLISHED["table1"][metric][model]
            bias = abs(printed["naive"][0] - printed["true"])
            assert all(value.allowed < min(value.published, bias) / 4 for value in values)
    assert all(value.allowed < value.published / 4 for _, value in marginals.values())


def test_a_completion_that_is_far_off_does_not_excuse_a_dcg_that_is(small_run):
    printed = PUBLISHED["table1"]["dcg@50"]["ROTATE"]["naive"][0]
    result = table1.table1(small_run)
    found = estimates.with_known(small_run, table1.complete(small_run), [0.25])[0.25]
    for naive, comes_out in ((printed, True), (1.3 * printed, False)):
        values = found["naive"].copy()
        values[:, METRICS.index("dcg@50"), MODELS.index("ROTATE")] = naive
        wide = table1.Allowed(true=np.full(5, 100.0), naive=np.full(5, 100.0), rule="")
        *_, cell = table1._row(found | {"naive": values}, "dcg@50", "ROTATE", wide)
        assert cell.came_out is comes_out
    assert re.search(facts("never more than", "20%"), result.tables[1].caption)


def test_notes_name_other_completions_only_where_there_are_some(small_run):
    world = table1.complete(small_run)
    assert re.search(facts("d = 3", "λ = 2"), table1._rivals_note(world))
    assert "d =" not in table1._rivals_note(replace(world, rivals=()))
    found = estimates.with_known(small_run, world, [0.25])[0.25]
    without = {"naive": np.array([1.0, 1.2])}
    for rivals, others in (((4, 9), True), ((), False)):
        nothing = np.zeros((len(rivals), len(MODELS)))
        few = completions.OtherCompletions(rivals=len(rivals), truth=nothing, naive=nothing, few=np.array(rivals))
        note = table1._few_note(3, found, without, few)
        assert re.search(facts(64, "3 such users"), note)  # α⁻³ = 4³
        assert ("4 to 9" in note) is others
        assert ("others" in note) is others


def test_rotate_is_shown_without_users_of_few_ones_and_not_compared(small_run):
    result = table1.table1(small_run)
    name, *_, naive = result.tables[1].rows[-1]
    few = int(np.sum(np.sum(table1.complete(small_run).ratings == 1, axis=1) < 50))
    assert re.search(facts("ROTATE", few), name)
    assert naive.published == PUBLISHED["table1"]["dcg@50"]["ROTATE"]["naive"][0]
    assert naive.came_out is None
    assert re.search(facts("ROTATE", f"{naive.value:.2f}", naive.published), result.notes[-1])
