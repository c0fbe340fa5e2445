"""A choice between three models on a made-up log: observed, split, trained, audited, held against the truth.

Nobody logged the propensities. Fitted on activity and popularity they do not see the rating, and the log can answer
under an assumption at most. Balanced by two hundred ratings drawn at random it can. The truth is known here, to judge
both by.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from openloop import learners, propensity
from openloop.audits.answers import Verdict
from openloop.audits.auditing import audit, conduct
from openloop.audits.question import AuditQuestion
from openloop.audits.results import Audit
from openloop.core.feedback import Feedback
from openloop.data.simulate import World, schnabel_world
from openloop.data.splitting import split
from openloop.evaluation import evaluate
from openloop.support.progress import Step, silent

METRICS = ("mae", "mse", "recall@10", "dcg@10")
ALPHA = 0.5  # a rating one star lower is seen half as often
DRAWN, OPEN_LOOP = 200, 20_000  # cells drawn at random: to balance the weights, and to look at the open loop
MAX_DRAWN = 0.1  # of the cells of a small world


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DemoAudit:
    """The audit, what was found without ratings drawn at random, and each model's true value by the audit's metric."""

    audit: Audit
    blind: Verdict
    drawn: int  # ratings drawn at random
    truth: dict[str, float]

    @property
    def best(self) -> str:
        """The truly best model."""
        choose = min if self.audit.result.better[self.audit.metric] == "lower" else max
        return choose(self.truth, key=self.truth.__getitem__)

    def findings(self) -> list[str]:
        """What the audit says, and what the truth is, in plain words."""
        metric, verdict = self.audit.metric, self.audit.verdict
        naive = self.audit.result.ranking(metric, "naive")[0]
        known = ", ".join(f"{model} {value:.3g}" for model, value in self.truth.items())
        outcome = "names no model" if verdict.winner is None else f"picks {verdict.winner}"
        would = "picks" if naive == self.best else "would pick"
        audited = f"The audit by {self.audit.estimator} {outcome}, the plain average {would} {naive}."
        return [
            f"By activity and popularity alone: {self.blind.headline} {self.blind.remedy}".rstrip(),
            f"Balanced by {self.drawn:,} ratings drawn at random: {verdict.headline} {verdict.remedy}".rstrip(),
            f"True {metric}: {known}; {self.best} is best. {audited}",
        ]


def audited_world(users: int, items: int, *, seed: int = 0, step: Step = silent) -> DemoAudit:
    """Make a world and a log, train three models on most of it, and audit them on the rest."""
    step("observing a log", 0.0)
    draw = np.random.default_rng(seed)
    world = schnabel_world(users, items, alpha=ALPHA, observed=0.05, rng=draw)
    log = world.observe(draw)
    train, test = split(log, test=0.2, rng=draw)
    ratings, sample = _drawn(world, log, draw)
    guessed = propensity.Logistic().fit(log)
    seen = propensity.Balanced(propensity.Logistic()).fit(log, uniform=ratings)
    step("training three models", 0.1)
    models = _trained(train, seen)
    blind = audit(models, test, guessed, metrics=METRICS[:1], exclude=train, check=False, rng=seed)
    asked = AuditQuestion(metrics=METRICS, exclude=train, sample=sample, check=log, rng=seed)
    found = conduct(models, test, seen, asked, lambda what, done: step(what, 0.4 + 0.4 * done))
    step("computing the truth", 0.9)
    whole = evaluate(models, world.everything(), metrics=[found.metric], estimators=["naive"], pairs=[])
    words = f"the held-out fifth of a made-up log (seed {seed})"
    learned = f"Balanced(Logistic), with {len(ratings):,} ratings drawn at random"
    return DemoAudit(
        blind=blind.verdict,
        drawn=len(ratings),
        audit=replace(found, setting=replace(found.setting, log=words, propensity=learned)),
        truth={model: whole[model, found.metric, "naive"].value for model in models},
    )


def _drawn(world: World, log: Feedback, draw: np.random.Generator) -> tuple[Any, Feedback]:
    """Ratings of cells drawn at random: some to learn propensities from, and others as an open loop."""
    wanted = min(DRAWN + OPEN_LOOP, int(MAX_DRAWN * world.ratings.size))
    cells = draw.choice(world.ratings.size, wanted, replace=False)
    learned = max(min(DRAWN, wanted // 2), 1)
    user, item = np.divmod(np.sort(cells[learned:]), world.ratings.shape[1])
    sample = Feedback.from_arrays(user, item, world.ratings[user, item], users=log.users, items=log.items)
    return world.ratings.ravel()[cells[:learned]], sample


def _trained(train: Feedback, seen: Any) -> dict[str, Any]:
    factorised = learners.MF(factors=10, reg=5.0, rng=0)
    return {
        "mf": factorised.fit(train),
        "mf-ips": learners.MF(factors=10, reg=5.0, rng=0).fit(train, sample_weight=seen.predict(train)),
        "bias": learners.Bias().fit(train),
    }
