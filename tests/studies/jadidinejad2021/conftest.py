"""Items run on the made-up experiment, and a table of the made-up paradox."""

from __future__ import annotations

import pytest

from openloop.studies.jadidinejad2021 import experiment
from openloop.studies.jadidinejad2021.instance_tables import about_instances
from openloop.studies.jadidinejad2021.table6 import table6
from tests.studies.jadidinejad2021 import many, worlds


@pytest.fixture
def coat_run(monkeypatch):
    """A run that finds the made-up experiment under the name of Coat."""
    monkeypatch.setattr(experiment, "experiment", lambda *_: many.some_experiment(3))
    return many.Plain("coat")


@pytest.fixture(scope="session")
def table6_result():
    """Table 6 of the made-up experiment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment, "experiment", lambda *_: many.some_experiment(3))
        return table6(many.Plain("coat"))


@pytest.fixture(scope="session")
def compared():
    """Table 5 of the made-up paradox, as if its numbers were comparable."""
    names = ("GMF20", "SVD20", "MostPop", "GA")  # the head, the tail, the oracle, noise
    return about_instances("table5", "coat", worlds.fits(names=names), comparable=True, notes=("so",))
