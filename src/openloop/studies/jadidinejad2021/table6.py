"""Table 6: Kendall's τ of every evaluation method with the open loop, over the 104 models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from openloop.audits.rankings import tau_b
from openloop.core.feedback import Floats
from openloop.studies.jadidinejad2021.agreement import REPLICATES, Agreement, Lead, significance_marks
from openloop.studies.jadidinejad2021.experiment import EvaluatedSplit, Experiment, by_data_set, over_splits
from openloop.studies.jadidinejad2021.fits import WMF, without
from openloop.studies.jadidinejad2021.methods import Method
from openloop.studies.jadidinejad2021.open_loop import SENSES, TARGETS
from openloop.studies.jadidinejad2021.published import CUTS, METHODS, MISPRINTS, PUBLISHED
from openloop.studies.jadidinejad2021.published_tables import METHOD_HEADS, apart, published_table6
from openloop.studies.jadidinejad2021.table6_claims import RIVAL, claims
from openloop.studies.jadidinejad2021.table6_scores import CutScores, ScoresByCut
from openloop.studies.kit.results import Result, Table, Value
from openloop.studies.kit.running import Run

NOTES = (
    (
        "Text and code differ in seven places. (1) The code's propensity is n^γ above x_min and the plain count up to "
        "it, counted on training and test part together; Eq. 7 has n^((γ+1)/2). (2) Its strata have equal width; the "
        "text says equal size. (3) Training items stay in the ranking. (4) For the open loop, models are fitted again "
        "on the whole log; the text evaluates the trained models. (5) IPS has the gain 2^(1/p) − 1 over the ideal of "
        "the same gains, which makes it self-normalised, and it looks up the p of another item. (6) The test under "
        "Steiger's name is Williams' t, one-tailed, on τ. (7) The text lists NMF among the models (section 6.2); the "
        "code has none, and the 104 models are without it."
    ),
    "Which item's p the code looks up depends on the ids in its own copy of the data; here they count from 0.",
    (
        "Errors and limits over users are from a bootstrap. All methods and the open loop share its draws, so "
        "differences are paired. Models and splits are held fixed. Propensities: popularity is n/U (Eq. 7 with γ = 1); "
        "logistic has an offset per user and item and, where there are covariates, their products; calibrated is the "
        "same, corrected on held-out cells. All are fitted on the whole log."
    ),
    (
        "Ours have no IPS: a metric per user has none, because the number of relevant items is unknown. The sum of the "
        "discounts c of relevant cells has one, Σwc over the number of candidates. Snips of adg is the same Σwc over "
        "Σw. Neither divisor depends on the model, so both rank models alike."
    ),
    (
        "Strata among ours average nDCG within strata, with each stratum's share of the candidates. `ol.evaluate` "
        "has only observed shares for nDCG (the paper's form is `stratified@n:width:observed`): its ideal depends on "
        "what was not seen, so no shares make its size right. Only the order of the models is compared here."
    ),
    (
        "WMF and the neural models are trained with PyTorch here, with TensorFlow in the paper. BO is the model that "
        "the code trains, not the random order that the text describes."
    ),
)


def table6(run: Run) -> Result:
    """τ by every method and cut: as coded beside the published, as printed, and ours."""
    return by_data_set(run, partial(_about, run), published_table6)


def _about(run: Run, found: Experiment) -> Result:
    agreed = found.agreement(run.either(REPLICATES, 100))
    coded = scores_by_cut(found, "as coded", "published")
    marks = marks_by_cut(coded)
    tables = (
        _coded_table(found, coded, marks), _without_table(found, coded), _printed_table(found),
        _all_table(found, agreed),
    )  # fmt: skip
    return Result(
        item="table6", title="How well each evaluation method ranks 104 models", data=(found.name,), tables=tables,
        claims=tuple(claims(found.name, coded, agreed, ips_leads(found, run.either(REPLICATES, 100)))),
        notes=(*NOTES, MISPRINTS["table6"], _repeated(found), *same_marks(found.name, marks)),
    )  # fmt: skip


def ips_leads(found: Experiment, draws: int) -> dict[str, Lead]:
    """How far IPS as coded is ahead of holdout, by cut."""

    def both(split: EvaluatedSplit) -> dict[str, Method]:
        return {name: split.methods[f"as coded: {name}"] for name in ("ips", "holdout")}

    return {cut: found.agreement_by(both, draws, k).ahead("ips", "holdout", "published") for cut, k in CUTS.items()}


def scores_by_cut(found: Experiment, column: str, target: str) -> ScoresByCut:
    """The models' scores by cut and method of a column, and in the open loop."""
    return {
        cut: CutScores(
            methods={name: found.scores(f"{column}: {name}", k) for name in METHODS}, goal=found.goals(k, target)
        )
        for cut, k in CUTS.items()
    }


def marks_by_cut(coded: ScoresByCut) -> dict[str, dict[str, str]]:
    """By cut, the methods that each method as coded differs from in the first split."""
    return {cut: significance_marks(*scores.in_split(0)) for cut, scores in coded.items()}


# -- tables --------------------------------------------------------------------------------------------------


def _coded_table(found: Experiment, coded: ScoresByCut, marks: dict[str, dict[str, str]]) -> Table:
    published = PUBLISHED["table6"]["tau"].get(found.name, {})
    differs = PUBLISHED["table6"]["differs"].get(found.name, {})
    rows = [
        (
            cut, *_coded_cells(coded[cut].taus, marks[cut], published.get(cut)),
            *([apart(differs[cut])] if published else []),
        )
        for cut in CUTS
    ]  # fmt: skip
    return Table(
        name=f"table6_{found.name}_as_coded", rows=tuple(rows),
        columns=("metric", *METHOD_HEADS.values(), *(["significantly different, published"] if published else [])),
        caption=f"{found.name}: τ with the open loop as coded, mean over {len(found.splits)} splits. In square "
        "brackets, the methods that it differs from in the first split, by the test as coded.",
        error_is="standard deviation over splits. The paper has one split: allowed are the 95 % limits (t) of one more "
        "split, and rounding. Where another published method of the line is within that of a published number, the "
        "number is shown and not judged: what is allowed could not tell the two apart",
    )  # fmt: skip


def _coded_cells(taus: dict[str, Floats], marks: dict[str, str], published: Sequence[float] | None) -> Iterator[Value]:
    for number, name in enumerate(METHODS):
        mark = f" [{marks[name]}]" if marks[name] else ""
        yield told_from_others(over_splits(taus[name], published[number] if published else None, mark=mark), published)


def told_from_others(value: Value, printed: Sequence[float] | None) -> Value:
    """The value, judged only where no other number that is `printed` in its line is within what is allowed."""
    if value.published is None or printed is None:
        return value
    gaps = [abs(other - value.published) for other in printed if other != value.published]
    return replace(value, judged=value.allowed < min(gaps))


def _without_table(found: Experiment, coded: ScoresByCut) -> Table:
    """The same over the models that are no WMF."""
    keep = without(WMF, found.fits.models)
    taus = {cut: scores.among(keep).taus for cut, scores in coded.items()}
    return Table(
        name=f"table6_{found.name}_without_{WMF.lower()}", columns=("metric", *METHOD_HEADS.values()),
        rows=tuple((cut, *map(over_splits, taus[cut].values())) for cut in CUTS),
        caption=f"{found.name}: the same over the {int(keep.sum())} models without {WMF}. The paper has no such "
        "numbers.", error_is="standard deviation over splits",
    )  # fmt: skip


def _printed_table(found: Experiment) -> Table:
    printed = scores_by_cut(found, "as printed", "printed")
    return Table(
        name=f"table6_{found.name}_as_printed", columns=("metric", *METHOD_HEADS.values()),
        rows=tuple((cut, *map(over_splits, printed[cut].taus.values())) for cut in CUTS),
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


# -- notes ---------------------------------------------------------------------------------------------------


def _repeated(found: Experiment) -> str:
    """How many ratings of the open loop are in the log as well, and what leaving them out does to the ranking."""
    given = found.fits.given
    width = int(given["shape"][1])
    log, drawn = (given[f"{part}user"].astype(np.int64) * width + given[f"{part}item"] for part in ("", "open_"))
    _, in_log, in_drawn = np.intersect1d(log, drawn, return_indices=True)
    same = int(np.sum(given["rating"][in_log] == given["open_rating"][in_drawn]))
    published, unseen = (found.splits[0].targets[name](None).value for name in ("published", "unseen"))
    agree = tau_b(published, unseen)
    return (
        f"{found.name}: {len(in_log):,} of the open loop's {len(drawn):,} ratings are in the log too, {same:,} of them "
        "with the same number of stars. As coded, every model was trained on them and they count, so a model may gain "
        f"by remembering them. The rankings with them (published) and without them (unseen) agree with τ {agree:.3f}."
    )


def same_marks(data: str, marks: dict[str, dict[str, str]]) -> Iterator[str]:
    """In how many pairs and cuts the test as coded says in the first split what Table 6 says."""
    published = PUBLISHED["table6"]["differs"].get(data)
    if published is None:
        return
    others, same = len(METHODS) - 1, 0
    for cut in CUTS:
        for name, printed in zip(METHODS, published[cut], strict=True):
            here, theirs = ({int(n) for n in text.split("/") if n} for text in (marks[cut][name], printed))
            same += others - len(here ^ theirs)
    yield (
        f"{data}: by the test as coded, in the first split, {same // 2} of "
        f"{len(CUTS) * len(METHODS) * others // 2} pairs of methods differ significantly, or do not, as in Table 6."
    )
