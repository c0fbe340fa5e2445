"""Items run on the made-up experiment, and a table of the made-up paradox."""

from __future__ import annotations

import pytest

from openloop.studies.jadidinejad2021 import experiment, figure3, figure4
from openloop.studies.jadidinejad2021.instance_tables import about_instances
from openloop.studies.jadidinejad2021.table6 import table6
from tests.studies.jadidinejad2021 import many, worlds


def on_made_up(item):
    """An item of the made-up experiment, under the name of Coat."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment, "experiment", lambda *_: many.some_experiment(3))
        return item(many.Plain("coat"))


@pytest.fixture(scope="session")
def table6_result():
    """Table 6 of the made-up experiment."""
    return on_made_up(table6)


@pytest.fixture(scope="session")
def figure3_result():
    """Figure 3 of the made-up experiment."""
    return on_made_up(figure3.figure3)


@pytest.fixture(scope="session")
def figure4_result():
    """Figure 4 of the made-up experiment."""
    return on_made_up(figure4.figure4)


@pytest.fixture(scope="session")
def compared():
    """Table 5 of the made-up paradox, as if its numbers were comparable."""
    names = ("GMF20", "SVD20", "MostPop", "GA")  # the head, the tail, the oracle, noise
    return about_instances("table5", "coat", worlds.fits(names=names), comparable=True, notes=("so",))
