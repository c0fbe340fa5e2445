"""Tables 1 to 5: the kidney stones by their counts, and whole tables on made-up data in the originals' formats."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2, chi2_contingency

from openloop.audits.paradox import find
from openloop.studies.jadidinejad2021 import tables
from openloop.studies.jadidinejad2021.published import PUBLISHED
from openloop.studies.jadidinejad2021.tables import (
    chosen,
    joint,
    kidney_stones,
    mantel_haenszel,
    published_pair,
    sample,
    table1,
    table2,
    table3,
    table4,
    two_rates,
)
from openloop.studies.kit.running import Run
from openloop.studies.kit.trials import Trials
from tests.studies.jadidinejad2021 import worlds


@pytest.fixture
def run(tmp_path):
    """A quick run on data in a folder of its own, in this process."""
    with Trials(tmp_path / "cache", 0) as trials:
        yield Run(folder=tmp_path, quick=True, seed=0, trials=trials)


# ------------------------------------------------------------------------------------------------ table 1


def test_the_kidney_stones_by_eq_5_from_the_counts(run):
    result = table1(run)
    stones = result.tables[0]
    a, b = (stones.rows[-1][at].value for at in (1, 2))
    assert (a, b) == (pytest.approx(0.8325, abs=5e-5), pytest.approx(0.7789, abs=5e-5))
    assert [(place, v.published) for _, place, v in result.astray()] == [
        ("expected (Eq. 5), pooled shares, A", 0.832),
        ("expected (Eq. 5), pooled shares, B", 0.782),
    ]
    assert all(claim.holds for claim in result.claims)


def test_the_published_expectations_come_of_rounded_rates():
    # From the counts 0.8325 and 0.7789; from the printed percentages and shares what the paper has.
    assert (round(0.93 * 0.51 + 0.73 * 0.49, 3), round(0.87 * 0.51 + 0.69 * 0.49, 3)) == PUBLISHED["table1"]["expected"]


def test_the_illustration_comes_out(run):
    values = [v for _, v in table1(run).tables[1].values() if v.published is not None]
    assert [v.came_out for v in values] == [True, True]


def test_the_reversal_is_found_as_it_stands_but_not_by_its_counts():
    (found,) = find([kidney_stones(tested=False)])
    assert (found.kind, found.preferred, found.majority.name) == ("reversal", "A", "small")
    assert find([kidney_stones(tested=True)]) == ()
    assert kidney_stones(tested=True).aggregate.rows == 700


def test_two_rates_are_compared_by_pearsons_test():
    for x, n, y, m in ((81, 87, 234, 270), (192, 263, 55, 80), (273, 350, 289, 350)):
        other = chi2_contingency([[x, n - x], [y, m - y]], correction=False).pvalue
        assert two_rates(x, n, y, m) == pytest.approx(other)


def test_one_stratum_has_its_own_odds_ratio_and_nearly_pearsons_test():
    odds, p = mantel_haenszel([((81, 87), (234, 270))])
    assert odds == pytest.approx((81 * 36) / (6 * 234))
    statistic = chi2_contingency([[81, 6], [234, 36]], correction=False).statistic
    assert p == pytest.approx(chi2.sf(statistic * 356 / 357, 1))  # Mantel-Haenszel's variance divides by n − 1


def test_copies_of_a_stratum_leave_the_odds_ratio_and_sharpen_the_test():
    once, twice = mantel_haenszel([((8, 10), (5, 10))]), mantel_haenszel([((8, 10), (5, 10))] * 2)
    assert once[0] == pytest.approx(twice[0])
    assert twice[1] < once[1]


@pytest.mark.parametrize(("item", "kind"), [("table2", "reversal"), ("table3", "reversal"), ("table4", "reversal"),
                                            ("table5", "masking")])  # fmt: skip
def test_the_printed_tables_are_instances(item, kind):
    (found,) = find([published_pair(item)])
    assert (found.kind, found.preferred, found.majority.name) == (kind, PUBLISHED[item]["pair"][1], "Q1")


# ------------------------------------------------------------------------------------------- tables 2 to 5


def test_a_sample_has_the_rows_of_its_users_and_items_and_no_empty_ones():
    _, log, _ = worlds.logs()
    part = sample(log, 30, 10, np.random.default_rng(0))
    assert part.n_users <= 30
    assert part.n_items <= 10
    assert set(part.user) == set(range(part.n_users))
    assert set(part.item) == set(range(part.n_items))
    assert len(sample(log, 10**6, 10**6, np.random.default_rng(0))) == len(log)
    again = sample(log, 30, 10, np.random.default_rng(0))
    assert (part.fingerprint, part.rating.tolist()) == (again.fingerprint, again.rating.tolist())


def test_the_published_pair_is_always_among_the_models(run):
    for quick in (True, False):
        asked = Run(folder=run.folder, quick=quick, seed=0, trials=run.trials)
        for item, name in (("table2", "ml-1m"), ("table3", "netflix"), ("table4", "yahoo-r3"), ("table5", "coat")):
            models = chosen(asked, item, name)
            assert set(PUBLISHED[item]["pair"]) <= set(models)
            assert len(set(models)) == len(models)
    assert len(chosen(asked, "table5", "coat")) == 104


def test_results_of_two_data_sets_keep_their_names(run):
    one = table1(run)
    both = joint([replace(one, data=("x",)), replace(one, data=("y",), notes=("another", *one.notes))])
    assert both.data == ("x", "y")
    assert [t.name for t in both.tables] == ["table1a-x", "table1b-x", "table1a-y", "table1b-y"]
    assert [c.text.split(":")[0] for c in both.claims] == ["x"] * 4 + ["y"] * 4
    assert both.notes == (*one.notes, "another")
    assert joint([one]) is one


def written(folder, name, log, drawn):
    """The data as MovieLens 100K, Netflix or Yahoo! R3 has them."""
    place = folder / name
    place.mkdir()
    columns = [log.user + 1, log.item + 1, log.rating.astype(int)]
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    if name == "ml-100k":
        (place / "u.data").write_text("".join(f"{u}\t{i}\t{r}\t0\n" for u, i, r in rows))
    elif name == "netflix":
        for movie in sorted({i for _, i, _ in rows}):
            lines = [f"{u},{r},2005-01-01\n" for u, i, r in rows if i == movie]
            (place / f"mv_{movie:07d}.txt").write_text(f"{movie}:\n{''.join(lines)}")
    else:
        (place / "ydata-ymusic-rating-study-v1_0-train.txt").write_text("".join(f"{u}\t{i}\t{r}\n" for u, i, r in rows))
        cells = zip(
            (drawn.user + 1).tolist(), (drawn.item + 1).tolist(), drawn.rating.astype(int).tolist(), strict=True
        )
        (place / "ydata-ymusic-rating-study-v1_0-test.txt").write_text("".join(f"{u}\t{i}\t{r}\n" for u, i, r in cells))


@pytest.mark.usefixtures("cornac")
@pytest.mark.parametrize(
    ("function", "name", "item"),
    [(table2, "ml-100k", "table2"), (table3, "netflix", "table3"), (table4, "yahoo-r3", "table4")],
)
def test_a_table_on_data_in_the_originals_format(run, monkeypatch, function, name, item):
    monkeypatch.setattr(tables, "QUICK", ("GA", "MostPop", "MF"))
    _, log, drawn = worlds.logs(users=40, items=20)
    written(run.folder, name, log, drawn)
    result = function(run)
    assert (result.item, result.data) == (item, (name,))
    assert result.compared() == 0  # not the paper's data
    lines = {row[0]: row for row in result.tables[0].rows}
    has_open_loop = name == "yahoo-r3"
    assert list(lines) == ["Holdout", "IPS", "Stratified", "Q1", "Q2", *(["Open loop"] if has_open_loop else [])]
    counted = result.tables[0].columns.index("ratings")
    assert lines["Q1"][counted] + lines["Q2"][counted] == lines["Holdout"][counted]
    if has_open_loop:
        assert lines["Open loop"][counted] == len(drawn)
    assert len(result.claims) == (5 if has_open_loop else 4)
