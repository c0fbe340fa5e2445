"""Which part of MF-ADG carries its gain over MF-AUC: a factorial experiment at equal numbers of gradient steps."""

from __future__ import annotations

from openloop.studies.kit.results import Result
from openloop.studies.kit.running import Run
from openloop.studies.lim2015.designs import Experiment, experiment

DATA = ("ml-100k", "lastfm-hetrec", "ml-1m")


def factorial(run: Run) -> Result:
    """Every arm on every data set that is present; in a quick run, on the smallest."""
    data = experiments(run)
    return Result(item="factorial", data=tuple(e.name for e in data))


def experiments(run: Run) -> list[Experiment]:
    """Those of every data set that is present; in a quick run, of the smallest."""
    here = run.present(*DATA)
    return [experiment(run, name) for name in run.either(here, here[:1])]
