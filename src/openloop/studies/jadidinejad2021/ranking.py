"""Table 6: Kendall's τ of every evaluation method with the open loop, over the 104 models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from openloop.core.feedback import Floats
from openloop.studies.jadidinejad2021 import ways
from openloop.studies.jadidinejad2021.agreement import (
    EVERY,
    HALVES,
    REPLICATES,
    TARGETS,
    Agreement,
    marks,
    tau,
    verdicts,
)  # fmt: skip
from openloop.studies.jadidinejad2021.evidence import Evidence, evidence
from openloop.studies.jadidinejad2021.published import CUTS, METHODS, MISPRINTS, PUBLISHED
from openloop.studies.kit.results import Cell, Claim, Result, Table, Value
from openloop.studies.kit.running import Run
from openloop.support.wording import chance, joined

HEADS = {"holdout": "Holdout (1)", "ips": "IPS (2)", "stratified": "Stratified (3)", "q1": "Q1 (4)", "q2": "Q2 (5)"}
NEAR = 0.1  # mean distance of τ, as coded, from the published table, that is its neighbourhood
RIVAL = "as coded: q1"  # the published method that Table 6 has ahead by nDCG

SENSES = {
    "published": "as published: models refitted on the whole log, training items ranked, all ratings",
    "unseen": "the same, without the ratings that are in the log as well",
    "printed": "as printed: the split's own models, training items ranked, all ratings",
    "candidates": "the split's own models, training items neither ranked nor counted",
}

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
        "WMF is solved by least squares here and the neural models run on PyTorch, where the paper had TensorFlow; BO "
        "is the model that the code trains, not the random order that the text describes."
    ),
)


def table6(run: Run) -> Result:
    """τ by every method and cut: as coded beside the published, as printed, and ours."""
    found = [evidence(run, name) for name in run.present("coat", "yahoo-r3")]
    tables: list[Table] = []
    claims: list[Claim] = []
    notes: list[str] = [*NOTES, MISPRINTS["table6"]]
    for ev in found:
        agreed = ev.agreement(None, run.either(REPLICATES, 100), run.either(HALVES, 10))
        coded = _by_cut(ev, "as coded", "published")
        tables += [
            _coded_table(ev, coded), _printed_table(ev), _all_table(ev, agreed), _cuts_table(ev, agreed),
            _tests_table(ev, agreed),
        ]  # fmt: skip
        claims += _claims(ev, coded, agreed)
        notes += [
            *_gain(ev, coded),
            _repeated(ev),
            *_same_verdicts(ev),
            _chance(ev, agreed),
            _by_sense(ev, agreed),
            _recommended(ev, agreed),
        ]
    return Result(
        item="table6", title="How well each evaluation method ranks 104 models", data=tuple(ev.name for ev in found),
        tables=tuple(tables), claims=tuple(claims), notes=tuple(notes),
    )  # fmt: skip


def _by_cut(ev: Evidence, column: str, target: str) -> dict[str, dict[str, Floats]]:
    """τ by cut and method in each split, (R,)."""
    found: dict[str, dict[str, Floats]] = {}
    for cut, k in CUTS.items():
        goals = [ev.targets(part, k)[target].value() for part in ev.rounds]
        found[cut] = {name: taus_of(ev, f"{column}: {name}", k, goals) for name in METHODS}
    return found


def taus_of(ev: Evidence, name: str, k: int | None, goals: Sequence[Floats]) -> Floats:
    """τ of a method in each split, (R,)."""
    scores = (part.methods[name](k).value() for part in ev.rounds)
    return np.array([tau(x[None], goal[None])[0] for x, goal in zip(scores, goals, strict=True)])


# -- tables --------------------------------------------------------------------------------------------------


def _coded_table(ev: Evidence, found: dict[str, dict[str, Floats]]) -> Table:
    published = PUBLISHED["table6"]["tau"].get(ev.name, {})
    rows = [(cut, *_coded_cells(ev, cut, found[cut], published.get(cut))) for cut in CUTS]
    return Table(
        name=f"table6_{ev.name}_as_coded", columns=("metric", *HEADS.values()), rows=tuple(rows),
        caption=f"{ev.name}: τ with the open loop as coded, mean over {len(ev.rounds)} splits. Behind it, the methods "
        "from which the test as coded tells it apart in the first split.",
        error_is="standard deviation over splits; the paper has one split, so two of them are its chance",
    )  # fmt: skip


def _coded_cells(ev: Evidence, cut: str, taus: dict[str, Floats], published: Sequence[float] | None) -> Iterator[Value]:
    first, k = ev.rounds[0], CUTS[cut]
    scores = {name: m(k).value() for name, m in ways.coded(first.held).items()}
    told = marks(scores, ev.targets(first, k)["published"].value())
    for number, name in enumerate(METHODS):
        spread = float(taus[name].std(ddof=1))
        yield Value(
            value=taus[name].mean(), error=spread, published=published[number] if published else None,
            tolerance=2 * spread * np.sqrt(1 + 1 / len(ev.rounds)), mark=f" [{told[name]}]" if told[name] else "",
        )  # fmt: skip


def _printed_table(ev: Evidence) -> Table:
    found = _by_cut(ev, "as printed", "printed")
    rows = [(cut, *(Value(value=t.mean(), error=t.std(ddof=1)) for t in found[cut].values())) for cut in CUTS]
    return Table(
        name=f"table6_{ev.name}_as_printed", columns=("metric", *HEADS.values()), rows=tuple(rows),
        caption=f"{ev.name}: the same by the text: Eq. 1, 3, 4 and 7, two strata of equal size, the trained models "
        "scored on the open loop.", error_is="standard deviation over splits",
    )  # fmt: skip


def _all_table(ev: Evidence, agreed: Agreement) -> Table:
    rows = [
        (
            name, *(Value(value=agreed.mean(name, t)[0], error=agreed.error(name, t)) for t in TARGETS),
            "" if name == RIVAL else str(agreed.ahead(name, RIVAL, "published")),
            "" if name == RIVAL else str(agreed.ahead(name, RIVAL, "candidates")),
        )
        for name in agreed.methods
    ]  # fmt: skip
    return Table(
        name=f"table6_{ev.name}_methods", error_is="standard error over users", rows=tuple(rows),
        columns=("method", *TARGETS, "ahead of Q1 as coded, published", "ahead of Q1 as coded, candidates"),
        caption=f"{ev.name}: τ of nDCG by all methods that were tried, mean over {len(ev.rounds)} splits, with the "
        f"open loop in four senses: {'; '.join(f'{t}, {words}' for t, words in SENSES.items())}.",
    )  # fmt: skip


def _cuts_table(ev: Evidence, agreed: Agreement) -> Table:
    """The methods that did best at each cut: there, what was picked at no cut is seen again."""
    ours = _ours(agreed)
    picked = list(dict.fromkeys([RIVAL, *(agreed.best(ours, t) for t in (EVERY, *TARGETS))]))
    found: dict[str, list[Cell]] = {name: [name] for name in picked}
    for k in CUTS.values():
        goals = [ev.targets(part, k)["published"].value() for part in ev.rounds]
        for name in picked:
            taus = taus_of(ev, name, k, goals)
            found[name].append(Value(value=taus.mean(), error=taus.std(ddof=1)))
    return Table(
        name=f"table6_{ev.name}_cuts", columns=("method", *CUTS), rows=tuple(tuple(row) for row in found.values()),
        caption=f"{ev.name}: at every cut, τ with the open loop as published, of Q1 and of those of ours that did best "
        "without a cut in some sense of the open loop.", error_is="standard deviation over splits",
    )  # fmt: skip


def _tests_table(ev: Evidence, agreed: Agreement) -> Table:
    first = ev.rounds[0]
    scores = {name: m(None).value() for name, m in ways.coded(first.held).items()}
    rows = [
        (
            f"{v.a} − {v.b}", Value(value=v.difference), *(_p(p) for p in (v.coded, v.steiger, v.models)),
            str(agreed.ahead(f"as coded: {v.a}", f"as coded: {v.b}", "published")),
        )
        for v in verdicts(scores, ev.targets(first, None)["published"].value(), ev.seed)
    ]  # fmt: skip
    return Table(
        name=f"table6_{ev.name}_tests", rows=tuple(rows),
        columns=(
            "methods as coded", "difference of τ", "p as coded (Williams, one tail)", "p, Steiger, two-sided",
            "p, bootstrap over models", "over users and splits",
        ),
        caption=f"{ev.name}: whether two methods differ, nDCG. The first four columns are of the first split; "
        "Williams' and Steiger's tests are for Pearson's r and not valid for τ. The last is the mean over splits with "
        "a 95 % interval over users.",
    )  # fmt: skip


def _p(p: float | None) -> str:
    return "–" if p is None else chance(p).removeprefix("= ")


# -- claims --------------------------------------------------------------------------------------------------


def _ours(agreed: Agreement) -> list[str]:
    return [name for name in agreed.methods if name.startswith("ours")]


def _theirs(agreed: Agreement) -> list[str]:
    return [name for name in agreed.methods if not name.startswith("ours")]


def _claims(ev: Evidence, coded: dict[str, dict[str, Floats]], agreed: Agreement) -> Iterator[Claim]:
    published = PUBLISHED["table6"]["tau"].get(ev.name)
    if published:
        gaps = np.array([[coded[c][m].mean() for m in METHODS] for c in CUTS]) - np.array([published[c] for c in CUTS])
        yield Claim(
            text=f"{ev.name}: as coded, Table 6 comes out in its neighbourhood (on average within {NEAR:g})",
            holds=np.abs(gaps).mean() <= NEAR,
            found=f"on average {np.abs(gaps).mean():.3f} apart, at most {np.abs(gaps).max():.3f}",
        )
    t = {name: coded["ndcg"][name].mean() for name in METHODS}
    yield Claim(
        text=f"{ev.name}: as coded, by nDCG, Q1 agrees best with the open loop, then stratified, holdout, and Q2",
        holds=t["q1"] > t["stratified"] > t["holdout"] > t["q2"],
        found=", ".join(f"{name} {value:.3f}" for name, value in t.items()),
    )
    for target, text in (
        ("published", "with the open loop as published"),
        ("candidates", "with an open loop that leaves training items out"),
    ):
        yield _above(ev, agreed, target, text)


def _above(ev: Evidence, agreed: Agreement, target: str, text: str) -> Claim:
    """The claim for the one of ours that halves of the users pick most often, and for what each half picks, blind."""
    theirs = _theirs(agreed)
    blind = agreed.chosen_blind(_ours(agreed), theirs, target)
    margins = {name: agreed.ahead(blind.picked, name, target) for name in theirs}
    clear = sum(margin.interval[0] > 0 for margin in margins.values())
    least = min(margins, key=lambda name: margins[name].interval[0])
    shown = dict.fromkeys((least, agreed.best(theirs, target), RIVAL))
    return Claim(
        text=f"{ev.name}: {text}, one of ours, chosen after looking, agrees better than each published method (paired, "
        "95 % limits); and ours are still ahead on users who did not choose them",
        holds=clear == len(margins) and blind.value > 0,
        found=f"{blind.picked}, chosen after looking, has τ {agreed.mean(blind.picked, target)[0]:.3f} and is ahead of "
        f"{clear} of {len(margins)} published methods with a lower limit above 0; "
        f"{'; '.join(f'of {name} by {margins[name]}' for name in shown)}. Picked on half of the users and compared on "
        f"the other half, ours is ahead of theirs by {blind}",
    )  # fmt: skip


def _gain(ev: Evidence, coded: dict[str, dict[str, Floats]]) -> Iterator[str]:
    """The abstract's gain beside ours."""
    if ev.name in PUBLISHED["table6"]["gain"]:
        taus = PUBLISHED["table6"]["tau"][ev.name]["ndcg"]
        ours = [coded["ndcg"][name].mean() for name in ("stratified", "holdout")]
        yield (
            f"{ev.name}: the abstract's gain of {PUBLISHED['table6']['gain'][ev.name]} % is τ {taus[2]:.3f} of "
            f"stratified over {taus[0]:.3f} of holdout, by nDCG; as coded, here, {ours[0]:.3f} and {ours[1]:.3f}."
        )


def _repeated(ev: Evidence) -> str:
    """How many ratings of the open loop are in the log as well, and what leaving them out does to the ranking."""
    width = int(ev.given["shape"][1])
    log, drawn = (ev.given[f"{part}user"].astype(np.int64) * width + ev.given[f"{part}item"] for part in ("", "open_"))
    _, in_log, in_drawn = np.intersect1d(log, drawn, return_indices=True)
    same = int(np.sum(ev.given["rating"][in_log] == ev.given["open_rating"][in_drawn]))
    goals = ev.targets(ev.rounds[0], None)
    agree = tau(goals["published"].value()[None], goals["unseen"].value()[None])[0]
    return (
        f"{ev.name}: {len(in_log):,} of the open loop's {len(drawn):,} ratings are in the log too, {same:,} of them "
        "with the same number of stars. By the code every model was trained on them, and they count, so a model may "
        f"gain by remembering them. With them (published) and without (unseen) models rank alike with τ {agree:.3f}."
    )


def _same_verdicts(ev: Evidence) -> Iterator[str]:
    """In how many pairs and cuts the test as coded says in the first split what Table 6 says."""
    published = PUBLISHED["table6"]["differs"].get(ev.name)
    if published is None:
        return
    first, same = ev.rounds[0], 0
    for cut, k in CUTS.items():
        scores = {name: m(k).value() for name, m in ways.coded(first.held).items()}
        told = marks(scores, ev.targets(first, k)["published"].value())
        for number, name in enumerate(METHODS):
            ours, theirs = ({int(n) for n in text.split("/") if n} for text in (told[name], published[cut][number]))
            same += len(METHODS) - 1 - len(ours ^ theirs)
    pairs = len(CUTS) * len(METHODS) * (len(METHODS) - 1) // 2
    yield (
        f"{ev.name}: whether two methods differ, by the test as coded, comes out in the first split as Table 6 says in "
        f"{same // 2} of {pairs} pairs."
    )


def _chance(ev: Evidence, agreed: Agreement) -> str:
    """How well the open loop agrees with itself."""
    found = joined([f"{value:.2f} ({target})" for target, value in zip(TARGETS, agreed.halves, strict=True)])
    return (
        f"{ev.name}: how much of the ranking is chance. Between half of the users and the other half, the open loop's "
        f"rankings agree with τ {found}; half of the users are noisier than all of them."
    )


def _by_sense(ev: Evidence, agreed: Agreement) -> str:
    """Which of ours and of theirs is best in each sense of the open loop."""

    def best(methods: list[str], target: str) -> str:
        name = agreed.best(methods, target)
        return f"{name} ({agreed.mean(name, target)[0]:.3f})"

    found = [f"{t}: {best(_ours(agreed), t)}, against {best(_theirs(agreed), t)}" for t in TARGETS]
    return (
        f"{ev.name}, the best of ours against the best published by sense of the open loop, picked after looking: "
        f"{'; '.join(found)}. Where trained-on ratings count in the open loop, models that remember them may "
        "gain by it; a held-out part has none, and cannot see that."
    )


def _recommended(ev: Evidence, agreed: Agreement) -> str:
    """What the evidence says for practice, chosen after looking, by the mean over the senses of the open loop."""
    ours, theirs = _ours(agreed), _theirs(agreed)
    best, rival = agreed.best(ours, EVERY), agreed.best(theirs, EVERY)
    blind = agreed.chosen_blind(ours, theirs, EVERY)
    margin = agreed.ahead(best, rival, EVERY)
    lead = "recommended on this evidence" if margin.value > 0 and blind.value > 0 else "none recommended; best of ours"
    per_target = joined([f"{agreed.ahead(best, RIVAL, t).value:+.3f} ({t})" for t in TARGETS])
    return (
        f"{ev.name}, {lead}: {best.partition(': ')[2]} ({best.partition(': ')[0]}). Chosen after "
        f"looking, as the best of {len(ours)} on average over the four senses of the open loop, where it is ahead of "
        f"the best published method, {rival}, by {margin}; ahead of Q1 as coded by "
        f"{per_target}. Chosen blind, on half of the users, and compared on the other half: {blind}."
    )
