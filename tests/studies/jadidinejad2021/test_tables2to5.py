"""Tables 2 to 5: whole tables on made-up data in the originals' formats."""

from __future__ import annotations

import pytest

from openloop.studies.jadidinejad2021.published import PUBLISHED
from openloop.studies.jadidinejad2021.tables2to5 import chosen
from openloop.studies.kit.running import Run
from openloop.studies.kit.trials import Trials


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
