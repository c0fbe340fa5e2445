"""Which of two models: right, wrong or undecided, by eight ways of being biased and six kinds of propensities.

Every log is a world of its own with two models that truly differ; each kind of propensities is asked which is better.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import numpy as np

import openloop as ol
from bench.trust.biases import BIASES, Truth, given_of, propensities, step_of, truth_of
from bench.trust.cases import answer
from bench.trust.parts import ANSWERS, Asked, Goal, Part, Table, share
from bench.trust.worlds import Draw, Floats
from openloop.audits.rules import GAMMA
from openloop.studies.kit.trials import Given, Outcome

DATA = {"ml-100k": "ml-100k", "ml-1m-half": "ml-1m", "coat": "coat"}
OBSERVED = {"ml-100k": 0.08, "ml-1m-half": 0.08, "coat": 0.25}
METRICS = ("mae", "recall@10")
KINDS = ("Logistic", "LowRank", "Popularity", "NaiveBayes", "Balanced", "known p")
BLIND = ("Logistic", "LowRank", "Popularity")
SAMPLE = 200  # ratings drawn uniformly, for NaiveBayes and Balanced
CLEAR = 3.0  # standard errors over users by which two models differ in truth
STEP = 1.5  # a star: as far as the rule about ρ promises anything
WRONG, WRONG_BLIND = 0.01, 0.02
NONE_CLEAR = "none clear"


def fitted(kind: str, log: ol.Feedback, sample: Any) -> Any:
    """The propensities of one kind; None: those that the log carries, which are the true ones."""
    models: dict[str, Any] = {
        "Logistic": ol.propensity.Logistic(),
        "LowRank": ol.propensity.LowRank(rank=4, radius=1.0, tol=1e-3),
        "Popularity": ol.propensity.Popularity(gamma=1),
    }
    if kind in models:
        return models[kind].fit(log)
    if kind == "known p":
        return None
    seen = ol.propensity.NaiveBayes() if kind == "NaiveBayes" else ol.propensity.Balanced(ol.propensity.Logistic())
    return seen.fit(log, uniform=sample)


def log_of(truth: Truth, p: Floats, draw: Draw) -> ol.Feedback:
    """A log of the cells that can be seen; it carries p times the chance of being such a cell."""
    seen = truth.known & (draw.random(p.shape) < p)
    user, item = np.nonzero(seen)
    U, I = p.shape
    q = p[seen] * truth.chance
    return ol.Feedback.from_arrays(user, item, truth.Y[seen], users=U, items=I, propensity=q)


def models_of(truth: Truth, p: Floats, draw: Draw) -> dict[str, Floats]:
    """Six models: three that learned from an earlier log, and three that know the truth, each in its own way badly."""
    earlier, noise = log_of(truth, p, draw), draw.standard_normal((2, *p.shape))
    everyone = np.arange(len(p))
    mf = ol.learners.MF(factors=5, reg=5.0, tol=1e-3, threads=1, rng=0)
    return {
        "mf": mf.fit(earlier).scores(everyone),
        "mf-ips": mf.fit(earlier, sample_weight=1 / earlier.propensity).scores(everyone),
        "bias": ol.learners.Bias().fit(earlier).scores(everyone),
        "good at the top": truth.Y + np.where(truth.Y >= 4, 0.7, 1.4) * noise[0],
        "good at the bottom": truth.Y + np.where(truth.Y >= 4, 1.4, 0.7) * noise[1],
        "popular": 3.2 + 0.5 * truth.value + 0.4 * truth.popular,
    }


def pair(models: Mapping[str, Floats], truth: Truth, metric: str, draw: Draw) -> tuple[str, str] | None:
    """Two models that clearly differ, the better one first; None where no two do."""
    user, item = np.nonzero(truth.known)
    U, I = truth.Y.shape
    p = np.full(len(user), truth.chance)
    everything = ol.Feedback.from_arrays(user, item, truth.Y[truth.known], users=U, items=I, propensity=p)
    result = ol.evaluate(models, everything, metrics=[metric], estimators=["snips"], threshold=4)
    clear: list[tuple[float, tuple[str, str]]] = []
    for a, b in combinations(models, 2):
        gap = result.difference(a, b, metric=metric, estimator="snips")
        if abs(gap.value) > CLEAR * gap.stderr:
            ahead = gap.value < 0 if result.better[metric] == "lower" else gap.value > 0
            clear.append((gap.stderr / abs(gap.value), (a, b) if ahead else (b, a)))
    closest = sorted(clear, reverse=True)[: (len(clear) + 1) // 2]  # where the models are far apart, any log tells
    return closest[draw.integers(len(closest))][1] if closest else None


def trial(given: Given, *, bias: str, observed: float, seed: int) -> dict[str, Any]:
    """One log: the answer of each kind for each metric, and how far a condition reaches that is false."""
    draw = np.random.default_rng([list(BIASES).index(bias), seed])
    truth = truth_of(given, draw)
    p = propensities(bias, truth, observed, draw)
    models = models_of(truth, p, draw)
    log = log_of(truth, p, draw)
    sample = draw.choice(truth.Y[truth.known], SAMPLE, replace=False)
    seen = {kind: fitted(kind, log, sample) for kind in KINDS}
    found = [_answers(models, log, seen, pair(models, truth, metric, draw), metric) for metric in METRICS]
    return {"answers": [a for a, _ in found], "false_to": [f for _, f in found], "step": step_of(p, truth)}


def _answers(
    models: Mapping[str, Floats], log: ol.Feedback, seen: Mapping[str, Any], two: tuple[str, str] | None, metric: str
) -> tuple[list[str], list[float]]:
    """The answer of each kind, and how far a condition reaches under which the worse model is said to be ahead."""
    if two is None:
        return [NONE_CLEAR] * len(seen), [0.0] * len(seen)
    asked = {name: models[name] for name in sorted(two)}
    audits = [ol.audit(asked, log, p, metrics=[metric], threshold=4, check=False) for p in seen.values()]
    return [answer(found, two[0]) for found in audits], [_false_to(found.verdict, two[0]) for found in audits]


def _false_to(verdict: Any, better: str) -> float:
    """`holds_to` of a condition on ρ under which the worse model is said to be ahead; 0 where there is none."""
    if verdict.level != "conditional" or verdict.leader == better:
        return 0.0
    given = verdict.pairs[0].assumption
    return float(given.holds_to) if given.name == "rho" else 0.0  # by how much p is off otherwise, no world says


# -- the part of the page ------------------------------------------------------------------------------------


def measure(asked: Asked) -> Part:
    """All data sets that are present, all ways of being biased."""
    found: dict[tuple[str, str], list[Outcome]] = {}
    left_out: list[str] = []
    for data, folder in DATA.items():
        if not asked.run.present(folder):
            left_out.append(f"{data} is not in the data folder")
            continue
        given = given_of(asked.run.load(folder), asked.sizes.users, asked.sizes.items)
        for bias in BIASES:
            settings = [
                {"bias": bias, "observed": OBSERVED[data], "seed": seed} for seed in range(asked.sizes.decisions)
            ]
            found[data, bias] = asked.run.map(trial, given, settings, f"{data}, {bias}")
    tables = (*_by_kind(found), _by_bias(found), _conditions(found)) if found else ()
    return Part(
        title="Which of two models", words=WORDS, tables=tables, goals=tuple(_goals(found)), left_out=tuple(left_out)
    )


Found = Mapping[tuple[str, str], list[Outcome]]


def _counts(found: Found, kind: str, metric: str, *, at_most: float = np.inf) -> Counter[str]:
    """The answers of one kind for one metric, in worlds whose step a star is at most so large."""
    m, k = METRICS.index(metric), KINDS.index(kind)
    return Counter(
        str(outcome["answers"][m][k])
        for outcomes in found.values()
        for outcome in outcomes
        if outcome["step"] <= at_most
    )


def _decided(counts: Counter[str]) -> int:
    return counts["right"] + counts["wrong"]


def _by_kind(found: Found) -> Iterator[Table]:
    """For each data set and metric: the answers by kind of propensities."""
    for data in {data: None for data, _ in found}:
        own = {key: outcomes for key, outcomes in found.items() if key[0] == data}
        for metric in METRICS:
            rows: list[tuple[str, ...]] = []
            for kind in KINDS:
                counts = _counts(own, kind, metric)
                n = sum(counts[a] for a in ANSWERS)
                rows.append(
                    (kind, f"{n}", *(share(counts[a], n) for a in ANSWERS), share(counts["wrong"], _decided(counts)))
                )
            header = ("propensities", "logs", *ANSWERS, "wrong, of verdicts")
            yield Table(header=header, rows=tuple(rows), caption=f"{data}, {metric}")


def _by_bias(found: Found) -> Table:
    """Verdicts that were wrong, of all verdicts, by way of being biased; both metrics and all data sets together."""
    rows: list[tuple[str, ...]] = []
    for bias in BIASES:
        own = {key: outcomes for key, outcomes in found.items() if key[1] == bias}
        steps = [float(outcome["step"]) for outcomes in own.values() for outcome in outcomes]
        cells = [sum((_counts(own, kind, metric) for metric in METRICS), Counter[str]()) for kind in KINDS]
        rows.append((bias, f"{np.mean(steps):.2f}", *(f"{c['wrong']} of {_decided(c)}" for c in cells)))
    return Table(header=("biased by", "per star", *KINDS), rows=tuple(rows), caption="Wrong, of all verdicts")


def _conditions(found: Found) -> Table:
    """Conditional answers, and those of them that are false: the worse model ahead, and the condition fulfilled."""
    rows: list[tuple[str, ...]] = []
    outcomes = [outcome for several in found.values() for outcome in several]
    for k, kind in enumerate(KINDS):
        given = sum(str(o["answers"][m][k]) == "conditional" for o in outcomes for m in range(len(METRICS)))
        false = sum(float(o["false_to"][m][k]) >= float(o["step"]) for o in outcomes for m in range(len(METRICS)))
        rows.append((kind, f"{given}", f"{false}"))
    return Table(header=("propensities", "conditional answers", "false"), rows=tuple(rows), caption="Conditions")


def _goals(found: Found) -> Iterator[Goal]:
    """Wrong verdicts of all verdicts; kinds that are blind to the rating only where the rating matters so much."""
    for kind in KINDS if found else ():
        limit = WRONG_BLIND if kind in BLIND else WRONG
        within = STEP if kind in BLIND else np.inf
        counts = sum((_counts(found, kind, metric, at_most=within) for metric in METRICS), Counter[str]())
        decided, open_ones = _decided(counts), counts["undecided"] + counts["conditional"]
        where = f" in worlds with up to {STEP} per star" if kind in BLIND else ""
        yield Goal(
            text=f"{kind}: at most {limit:.0%} of verdicts wrong{where}",
            found=f"{counts['wrong']} of {decided} wrong; no verdict in {share(open_ones, decided + open_ones)}",
            met=counts["wrong"] <= limit * decided,
        )


WORDS = f"""MovieLens logs are completed by factorisation plus noise, so that every rating is known. Coat's randomly
drawn ratings are used unchanged. From each world a log is drawn that is biased in one of eight ways. Each audit
compares two models whose true difference is at least {CLEAR:g} standard errors, from the closer half of such pairs.
The propensities are those in the first column. NaiveBayes and Balanced (of Logistic) have {SAMPLE} ratings drawn at
random. "Per star" is the factor by which each extra star raises the chance that a rating is seen, within items.
Logistic, LowRank and Popularity ignore the rating: they give a verdict only if the order would hold with up to {STEP}
per star, and for rankings with p off by up to {GAMMA:g} times. With LowRank and Balanced, a model must lead by more
than the extra exposure of its list can explain. A conditional answer is false if it names the worse model and claims
to hold up to the world's own ρ or beyond."""
