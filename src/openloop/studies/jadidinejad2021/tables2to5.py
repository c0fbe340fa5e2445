"""Tables 2 to 5: instances of Simpson's paradox on MovieLens, Netflix, Yahoo! R3 and Coat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from openloop.core.feedback import Feedback
from openloop.studies.jadidinejad2021.experiment import merged
from openloop.studies.jadidinejad2021.fits import SPLITS, fitted, larger_data_names, sample, zoo_names
from openloop.studies.jadidinejad2021.instance_tables import about_instances
from openloop.studies.jadidinejad2021.models import given_of, stream
from openloop.studies.jadidinejad2021.published import MISPRINTS, PUBLISHED
from openloop.studies.kit.results import Result
from openloop.studies.kit.running import Run

FULL_ROWS = {"ml-1m": 1_000_209, "yahoo-r3": 311_704, "coat": 6_960}  # whose numbers the paper's can be held against
NETFLIX = (10_000, 5_000)  # section 6.1: users and items, here drawn at random
QUICK_USERS = 300


def table2(run: Run) -> Result:
    """MovieLens: 1M, or as much of it as there is, and 100K beside it."""
    present = run.present("ml-1m", "ml-100k")
    return side_by_side([_movielens(run, name) for name in run.either(present, present[:1])])


def _movielens(run: Run, name: str) -> Result:
    log, notes = run.load(name).log, [] if name == "ml-100k" else [MISPRINTS["table2"]]
    if len(log) != FULL_ROWS["ml-1m"]:
        notes.append(
            f"The paper's data are all of MovieLens 1M, 6,040 users; here are {log.n_users:,} users with {len(log):,} "
            "ratings, so published numbers are shown apart and not compared."
        )
    return _instances(run, "table2", name, log, notes=notes)


def side_by_side(results: Sequence[Result]) -> Result:
    """One result of several data sets; where there are several, each part has its data set's name."""
    return merged(results if len(results) == 1 else [_named_after_data(result) for result in results])


def _named_after_data(result: Result) -> Result:
    name = " and ".join(result.data)
    tables = (replace(t, caption=f"{name}: {t.caption}", name=f"{t.name}-{name}") for t in result.tables)
    claims = (replace(claim, text=f"{name}: {claim.text}") for claim in result.claims)
    return replace(result, tables=tuple(tables), claims=tuple(claims))


def table3(run: Run) -> Result:
    """Netflix, for those who have it: as many users and items as the paper has, drawn at random."""
    log = sample(run.load("netflix").log, *NETFLIX, rng=stream(run.seed, "samples", 3))
    drawn = (
        f"The paper does not say which 10k users and 5k items of Netflix it took; here {log.n_users:,} users and "
        f"{log.n_items:,} items were drawn at random, with {len(log):,} ratings (the paper's have 607k), so published "
        "numbers are shown apart and not compared."
    )
    return _instances(run, "table3", "netflix", log, notes=[drawn])


def table4(run: Run) -> Result:
    """Yahoo! R3, for those who have it."""
    data = run.load("yahoo-r3")
    return _instances(run, "table4", "yahoo-r3", data.log, data.open_loop)


def table5(run: Run) -> Result:
    """Coat: the whole zoo, over several splits."""
    data = run.load("coat")
    rated = () if data.open_loop is None else data.open_loop.item
    copied = (
        "The numbers of ratings and items in Table 5's last line are those of the closed loop; the open loop has "
        f"{len(rated):,} ratings of {len(np.unique(rated)):,} items."
    )
    return _instances(run, "table5", "coat", data.log, data.open_loop, notes=[copied])


def _instances(
    run: Run, item: str, name: str, log: Feedback, open_loop: Feedback | None = None, notes: Sequence[str] = ()
) -> Result:
    all_notes, comparable = list(notes), len(log) == FULL_ROWS.get(name) and not run.quick
    if run.quick and log.n_users > QUICK_USERS and open_loop is None:
        log = sample(log, QUICK_USERS, log.n_items, rng=stream(run.seed, "samples", 2))
        all_notes.append(f"A quick run takes {log.n_users:,} users, at random.")
    models = chosen(run, item, name)
    if name != "coat" and not run.quick:
        all_notes.append(
            f"{len(models)} of the 104 models are fitted here; left out are other sizes, and PMFL and PMFNL beyond 10 "
            "factors, GMF, MLP and NeuMF, which take minutes a model on these data."
        )
    fits = fitted(run, name, given_of(log, open_loop), models, run.either(SPLITS[name] if name == "coat" else 1, 1))
    return about_instances(item, name, fits, comparable=comparable, notes=all_notes)


def chosen(run: Run, item: str, name: str) -> tuple[str, ...]:
    """The models of a table, the published pair among them; on Coat Table 6's, whose fits it shares."""
    models = zoo_names(run) if name == "coat" else larger_data_names(run)
    return tuple(dict.fromkeys((*models, *PUBLISHED[item]["pair"])))
