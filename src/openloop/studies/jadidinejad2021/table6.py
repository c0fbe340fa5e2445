"""Table 6: Kendall's τ of every evaluation method with the open loop, over the 104 models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from openloop.audits.rankings import tau_b
from openloop.core.feedback import Floats
from openloop.studies.jadidinejad2021.agreement import (
    EVERY,
    HALVES,
    REPLICATES,
    Agreement,
    pair_tests,
    significance_marks,
)  # fmt: skip
from openloop.studies.jadidinejad2021.experiment import Experiment, by_data_set, over_splits
from openloop.studies.jadidinejad2021.open_loop import SENSES, TARGETS
from openloop.studies.jadidinejad2021.published import CUTS, METHODS, MISPRINTS, PUBLISHED
from openloop.studies.jadidinejad2021.table6_claims import RIVAL, TausByCut, claims, notes
from openloop.studies.kit.results import Cell, Result, Table, Value
from openloop.studies.kit.running import Run
from openloop.support.wording import pvalue

HEADS = {"holdout": "Holdout (1)", "ips": "IPS (2)", "stratified": "Stratified (3)", "q1": "Q1 (4)", "q2": "Q2 (5)"}

NOTES = (
    (
        "Text and code differ in six places. The code's propensity is n^γ above x_min and the bare count up to it (Eq. "
        "7 has n^((γ+1)/2)), counted on training and test part together; its strata have equal width (the text: equal "
        "size); training items stay in the ranking; models are fitted again on the whole log for the open loop (the "
        "text: the trained models); IPS has gain 2^(1/p) − 1 over the ideal of the same gains, so that it is "
        "self-normalised, and looks up the p of another item; the test under Steiger's name is Williams' t, for one "
        "tail, on τ."
    ),
    "Which item's p the code looks up depends on the ids in its own copy of the data; here they count from 0.",
    (
        "In the table of all methods, errors are of a bootstrap over users, with the same draws for log, open loop and "
        "every method, so that differences are paired; models and splits are held fixed. popularity is n/U (Eq. 7 with "
        "γ = 1); logistic has an offset for each user and item and, where there are covariates, their products; "
        "calibrated is that, corrected on held-out cells. All are fitted on the whole log."
    ),
    (
        "There is no IPS among ours: metrics of users have none, as the number of relevant items is unknown. For the "
        "sum of the discounts c of relevant cells there is one, Σwc over the number of candidates. Snips of adg is the "
        "same Σwc over Σw. Neither divisor depends on the model, so both rank models alike. (dcg multiplies c by its "
        "user's number of candidates: the same for all users where training items are ranked, else not quite.)"
    ),
    (
        "Strata among ours have nDCG inside and the strata's shares of the candidates. `ol.evaluate` has observed "
        "shares only for nDCG (the paper's form is `stratified@n:width:observed`): its ideal depends on what was not "
        "seen, so no shares make its size right. Here the order of the models is compared."
    ),
    (
        "WMF is solved by least squares here and the neural models run on PyTorch, where the paper had TensorFlow; BO "
        "is the model that the code trains, not the random order that the text describes."
    ),
)


def table6(run: Run) -> Result:
    """τ by every method and cut: as coded beside the published, as printed, and ours."""
    return by_data_set(run, partial(_about, run))


def _about(run: Run, found: Experiment) -> Result:
    agreed = found.agreement(None, run.either(REPLICATES, 100), run.either(HALVES, 10))
    coded, marks = taus_by_cut(found, "as coded", "published"), marks_by_cut(found)
    tables = (
        _coded_table(found, coded, marks), _printed_table(found), _all_table(found, agreed), _cuts_table(found, agreed),
        _tests_table(found, agreed),
    )  # fmt: skip
    return Result(
        item="table6", title="How well each evaluation method ranks 104 models", data=(found.name,), tables=tables,
        claims=tuple(claims(found.name, coded, agreed)),
        notes=(*NOTES, MISPRINTS["table6"], *notes(found, coded, marks, agreed)),
    )  # fmt: skip


def taus_by_cut(found: Experiment, column: str, target: str) -> TausByCut:
    """τ by cut and method in each split, (R,)."""
    goals = {cut: found.goals(k, target) for cut, k in CUTS.items()}
    return {
        cut: {name: tau_b(found.scores(f"{column}: {name}", k), goals[cut]) for name in METHODS}
        for cut, k in CUTS.items()
    }


def marks_by_cut(found: Experiment) -> dict[str, dict[str, str]]:
    """By cut, the methods that each method as coded differs from in the first split."""
    return {cut: significance_marks(*_first_split(found, k)) for cut, k in CUTS.items()}


def _first_split(found: Experiment, k: int | None) -> tuple[dict[str, Floats], Floats]:
    """The scores of the methods as coded in the first split, and those of the open loop as published."""
    first = found.splits[0]
    scores = {name: first.methods[f"as coded: {name}"](k).value for name in METHODS}
    return scores, first.targets["published"](k).value


# -- tables --------------------------------------------------------------------------------------------------


def _coded_table(found: Experiment, coded: TausByCut, marks: dict[str, dict[str, str]]) -> Table:
    published = PUBLISHED["table6"]["tau"].get(found.name, {})
    rows = [(cut, *_coded_cells(coded[cut], marks[cut], published.get(cut))) for cut in CUTS]
    return Table(
        name=f"table6_{found.name}_as_coded", columns=("metric", *HEADS.values()), rows=tuple(rows),
        caption=f"{found.name}: τ with the open loop as coded, mean over {len(found.splits)} splits. Behind it, the "
        "methods from which the test as coded tells it apart in the first split.",
        error_is="standard deviation over splits; the paper has one split, so two of them are its chance",
    )  # fmt: skip


def _coded_cells(taus: dict[str, Floats], marks: dict[str, str], published: Sequence[float] | None) -> Iterator[Value]:
    for number, name in enumerate(METHODS):
        mark = f" [{marks[name]}]" if marks[name] else ""
        yield over_splits(taus[name], published[number] if published else None, mark=mark)


def _printed_table(found: Experiment) -> Table:
    taus = taus_by_cut(found, "as printed", "printed")
    return Table(
        name=f"table6_{found.name}_as_printed", columns=("metric", *HEADS.values()),
        rows=tuple((cut, *map(over_splits, taus[cut].values())) for cut in CUTS),
        caption=f"{found.name}: the same by the text: Eq. 1, 3, 4 and 7, two strata of equal size, the trained models "
        "scored on the open loop.", error_is="standard deviation over splits",
    )  # fmt: skip


def _all_table(found: Experiment, agreed: Agreement) -> Table:
    rows = [
        (
            name, *(Value(value=agreed.mean(name, t)[0], error=agreed.error(name, t)) for t in TARGETS),
            "" if name == RIVAL else str(agreed.ahead(name, RIVAL, "published")),
            "" if name == RIVAL else str(agreed.ahead(name, RIVAL, "candidates")),
        )
        for name in agreed.methods
    ]  # fmt: skip
    return Table(
        name=f"table6_{found.name}_methods", error_is="standard error over users", rows=tuple(rows),
        columns=("method", *TARGETS, "ahead of Q1 as coded, published", "ahead of Q1 as coded, candidates"),
        caption=f"{found.name}: τ of nDCG by all methods that were tried, mean over {len(found.splits)} splits, with "
        f"the open loop in four senses: {'; '.join(f'{t}, {words}' for t, words in SENSES.items())}.",
    )  # fmt: skip


def _cuts_table(found: Experiment, agreed: Agreement) -> Table:
    """The methods that did best at each cut: there, what was picked at no cut is seen again."""
    picked = dict.fromkeys([RIVAL, *(agreed.best(agreed.ours, t) for t in (EVERY, *TARGETS))])
    goals = {k: found.goals(k) for k in CUTS.values()}
    rows: list[tuple[Cell, ...]] = [
        (name, *(over_splits(tau_b(found.scores(name, k), goals[k])) for k in CUTS.values())) for name in picked
    ]
    return Table(
        name=f"table6_{found.name}_cuts", columns=("method", *CUTS), rows=tuple(rows),
        caption=f"{found.name}: at every cut, τ with the open loop as published, of Q1 and of those of ours that did "
        "best without a cut in some sense of the open loop.", error_is="standard deviation over splits",
    )  # fmt: skip


def _tests_table(found: Experiment, agreed: Agreement) -> Table:
    rows = [
        (
            f"{t.a} − {t.b}", Value(value=t.difference),
            *("–" if p is None else pvalue(p) for p in (t.coded, t.steiger, t.models)),
            str(agreed.ahead(f"as coded: {t.a}", f"as coded: {t.b}", "published")),
        )
        for t in pair_tests(*_first_split(found, None), found.fits.seed)
    ]  # fmt: skip
    return Table(
        name=f"table6_{found.name}_tests", rows=tuple(rows),
        columns=(
            "methods as coded", "difference of τ", "p as coded (Williams, one tail)", "p, Steiger, two-sided",
            "p, bootstrap over models", "over users and splits",
        ),
        caption=f"{found.name}: whether two methods differ, nDCG. The first four columns are of the first split; "
        "Williams' and Steiger's tests are for Pearson's r and not valid for τ. The last is the mean over splits with "
        "a 95 % interval over users.",
    )  # fmt: skip
