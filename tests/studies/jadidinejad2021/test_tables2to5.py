"""Tables 2 to 5: whole tables on made-up data in the originals' formats."""

from __future__ import annotations

from dataclasses import replace

import pytest

from openloop.studies.jadidinejad2021 import fits
from openloop.studies.jadidinejad2021.published import PUBLISHED
from openloop.studies.jadidinejad2021.table1 import table1
from openloop.studies.jadidinejad2021.tables2to5 import chosen, side_by_side, table2, table3, table4
from openloop.studies.kit.running import Run
from openloop.studies.kit.trials import Trials
from tests.studies.jadidinejad2021 import worlds


@pytest.fixture
def run(tmp_path):
    """A quick run on data in a folder of its own, in this process."""
    with Trials(tmp_path / "cache", 0) as trials:
        yield Run(folder=tmp_path, quick=True, seed=0, trials=trials)


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
    both = side_by_side([replace(one, data=("x",)), replace(one, data=("y",), notes=("another", *one.notes))])
    assert both.data == ("x", "y")
    assert [t.name for t in both.tables] == ["table1a-x", "table1b-x", "table1a-y", "table1b-y"]
    assert [c.text.split(":")[0] for c in both.claims] == ["x"] * 4 + ["y"] * 4
    assert both.notes == (*one.notes, "another")
    assert side_by_side([one]) == one


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


@pytest.mark.parametrize(
    ("function", "name", "item"),
    [(table2, "ml-100k", "table2"), (table3, "netflix", "table3"), (table4, "yahoo-r3", "table4")],
)
@pytest.mark.usefixtures("cornac", "torch")
def test_a_table_on_data_in_the_originals_format(run, monkeypatch, function, name, item):
    monkeypatch.setattr(fits, "QUICK", ("GA", "MostPop", "MF"))
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
    assert len(result.claims) == (6 if has_open_loop else 5)
