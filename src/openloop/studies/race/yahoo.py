"""The race on Yahoo! R3, for those who hold it: the same protocol, with naive Bayes from ratings set aside."""

from __future__ import annotations

from openloop.data.datasets import Data
from openloop.studies.kit.results import Claim, Result
from openloop.studies.kit.running import Run
from openloop.studies.race.entrants import BASELINE, RACERS
from openloop.studies.race.finishing import (
    LABELS,
    Ground,
    chosen_table,
    counts_of,
    finishes,
    gaps,
    gaps_table,
    standing,
    standings_table,
)
from openloop.studies.race.measures import MSE
from openloop.studies.schnabel2016 import real_data

# Those that need neither covariates nor p of all cells, which naive Bayes does not have.
NAMES = ("Bias-IPS", "MF naive", BASELINE, "Recalibrated", "Stack", "Stack + Exposure")
BEST = NAMES[-1]


def yahoo(run: Run) -> Result:
    """The learners that lead on Coat, and what they must beat; one seed."""
    ground, entrants = yahoo_ground(run.load("yahoo-r3"), run.seed), {name: RACERS[name] for name in NAMES}
    found, counts = finishes(run, ground, entrants, 1), counts_of(run, ground.test)
    by_label = {
        label: {one.name: standing(ground.test, one, label, ground.everywhere, counts) for one in found}
        for label in LABELS
    }
    tables = [chosen_table("race-yahoo-settings", found)]
    for label, rows in by_label.items():
        caption = f"Yahoo! R3, labels from {label} stars on, {len(ground.test):,} uniform ratings"
        tables.append(standings_table(f"race-yahoo-{label}", caption, rows))
        tables.append(gaps_table(f"race-yahoo-{label}-differences", f"{caption}: less {BASELINE}", rows, BASELINE))
    gap = gaps(by_label[LABELS[0]], BASELINE, MSE)[BEST]
    claim = Claim(
        text=f"{BEST} beats {BASELINE} by MSE (paired over users, p < 0.05 after Holm over all rows)",
        holds=gap.significant and gap.difference.value < 0,
        found=str(gap),
    )
    return Result(item="yahoo", data=("yahoo-r3",), tables=tuple(tables), claims=(claim,), notes=ground.notes)


def yahoo_ground(data: Data, seed: int) -> Ground:
    """A twentieth of the uniform ratings serves naive Bayes, and only the rest is tested."""
    parts = real_data.yahoo(data.log, real_data.needed(data.open_loop, "the test file"), seed)
    return Ground(
        name="yahoo-r3", log=parts.log, p=parts.propensities["bayes"], test=parts.test, covariates={},
        notes=(*parts.notes, *data.notes),
    )  # fmt: skip
