"""What to do after an audit: the remedies of its verdict, each with the command or call that applies it.

The cheapest comes first. The words of a remedy are in `rules`; here is what it changes in the question. An audit
from the command line gets its own command with the change, one from Python the call. What a reader has to fill in is
written in capitals.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from openloop.audits import rules
from openloop.audits.planning import confirmation
from openloop.propensity.naming import MODELS

if TYPE_CHECKING:
    from openloop.audits.results import Audit

COMMAND = ["openloop", "audit"]
FLAGS = {"metrics": "--metric", "estimators": "--estimator"}  # options with another name than their keyword
OF_A_MODEL = ("user_features", "gamma", "quantile", "calibrate", "assumes")  # a column of propensities refuses them
INSIDE = MODELS["balanced"].inside  # of weights that name no model
NEW_LOG = "NEW_LOG"
RUNNING = "--running"
BALANCED = "ol.propensity.Balanced(ol.propensity.Logistic()).fit(log, uniform=SAMPLE)"
SNIPS: Mapping[str, Any] = {"estimators": ["snips"]}
SAMPLED = ("SAMPLE is a table of users, items and ratings, of cells drawn at random.",)
KEPT = "Other keywords stay as they were."
LOGGED = ("NEW_LOG is the log once it has these rows.",)


@dataclass(frozen=True, slots=True, kw_only=True)
class NextStep:
    """What may be done, the command line or Python call that does it where there is one, and words to fill in."""

    words: str
    command: str = ""
    where: str = ""

    def lines(self, width: int) -> list[str]:
        """A command on lines of a terminal, each but the last ending in a backslash; a call as it is."""
        if not self.command.startswith(" ".join(COMMAND)):
            return [self.command] if self.command else []
        first, *words = map(shlex.quote, shlex.split(self.command))
        found = [first]
        for word in words:
            if len(found[-1]) + len(word) > width - 3:  # a blank before it, and " \\" behind it
                found[-1] += " \\"
                found.append(f"    {word}")
            else:
                found[-1] += f" {word}"
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a remedy changes in the question.

    `asked` are keywords of `ol.audit`, which are options too; `columns` are options alone, and in Python keywords of
    `ol.read`; `propensities` are written as an option and as Python; `dropped` are options that go.
    """

    asked: Mapping[str, Any] = field(default_factory=dict[str, Any])
    columns: Mapping[str, str | int] = field(default_factory=dict[str, str | int])  # keywords of ol.read
    propensities: tuple[str, str] | None = None
    dropped: tuple[str, ...] = ()
    log: bool = False  # needs another log
    pair: bool = False  # leaves all but two models out
    where: tuple[str, ...] = ()  # sentences on the words in capitals, each beginning with it


# A model that has not seen the scored rows has to be trained first, which `openloop audit` does not do.
CHANGES: Mapping[str, Change] = {
    rules.METRIC: Change(asked={"metrics": ["recall@10"]}),
    rules.LIKED: Change(asked={"metrics": ["recall@10"]}),
    rules.OURS: Change(asked=SNIPS),
    rules.ESTIMATOR: Change(asked=SNIPS),
    rules.UNCUT: Change(
        asked=SNIPS, dropped=("floor", "quantile"),
        where=("propensities are those without a floor, or with a lower one.",),
    ),
    rules.COUNTED: Change(asked=SNIPS),
    rules.MODEL: Change(
        propensities=("MODEL=SAMPLE", "MODEL.fit(log, uniform=SAMPLE)"), dropped=("assumes",),
        where=("MODEL is the model that made the column.", "SAMPLE are the ratings that it was fitted with."),
    ),
    rules.PER_USER: Change(asked={"estimators": ["snips_user"]}),
    rules.PREDICTED: Change(dropped=("missing",)),
    rules.RARE: Change(columns={"min_item_rows": rules.RARE_ROWS}),
    rules.FEWER: Change(pair=True, dropped=("baseline", "running")),
    rules.GIVEN: Change(
        propensities=("COLUMN", "MODEL.fit(log)"), dropped=OF_A_MODEL,
        where=("COLUMN is the log's column of propensities.", "MODEL is one of ol.propensity."),
    ),
    rules.RATINGS: Change(
        propensities=("balanced=SAMPLE", BALANCED), dropped=("assumes",), where=SAMPLED
    ),
    rules.CHECKED: Change(columns={"time": "COLUMN"}, where=("COLUMN is the log's column of times.",)),
    rules.COMPLETE: Change(log=True, where=LOGGED),
    rules.SHOWN: Change(asked={"candidates": "shown"}),
    rules.POSITIONED: Change(
        log=True, asked={"estimators": ["snpbm", "sniips"]},
        where=("NEW_LOG is the log once it has these probabilities in a column named propensity.",),
    ),
    rules.ABOVE: Change(
        asked={"estimators": ["snrips"]}, columns={"prefix": "COLUMN"},
        where=("COLUMN is the log's column of the probability of the list down to a row.",),
    ),
    rules.TRUST: Change(
        propensities=("examination:affine", 'ol.propensity.Examination(method="affine").fit(log)'),
    ),
    rules.LONGER: Change(log=True, where=("NEW_LOG is the longer log; the models need predictions of its rows.",)),
    rules.EXPOSURE: Change(
        log=True, propensities=("COLUMN", "None"), dropped=OF_A_MODEL,
        where=("NEW_LOG is the log once it has what was shown.", "COLUMN is its column of propensities."),
    ),
    rules.SHUFFLED: Change(
        log=True, columns={"shuffled": "COLUMN"},
        where=("NEW_LOG is the log once more requests are shuffled.", "COLUMN says which."),
    ),
    rules.RANDOMISED: Change(log=True, where=LOGGED),
}  # fmt: skip


def next_steps(found: Audit) -> tuple[NextStep, ...]:
    """A test that confirms what was found, and what may help where something is in the way, the cheapest first."""
    named = {reason.remedy for reason in found.verdict.reasons}
    remedies = (_remedied(found, words) for words in rules.REMEDIES if words in named)
    return (*remedies, *_confirmed(found))


def _remedied(found: Audit, words: str) -> NextStep:
    change = CHANGES.get(words)
    if change is None:
        return NextStep(words=words)
    command = _words(found.setting.command or "")
    own = command[:2] == COMMAND
    asked = _command(found, change, command) if own else _call(found, change)
    where = [sentence for sentence in change.where if sentence.partition(" ")[0] in asked]
    return NextStep(words=words, command=asked, where=" ".join(where if own else [*where, KEPT]))


def _words(command: str) -> list[str]:
    """The words of a command line; of one that a file from elsewhere tells and no shell would read, none."""
    try:
        return shlex.split(command)
    except ValueError:
        return []


def _confirmed(found: Audit) -> Iterator[NextStep]:
    """The A/B test of the leading model and the one that is closest to it."""
    leader, family = found.verdict.leader, (found.metric, found.estimator)
    order = found.result.ranking(*family)
    own = [c.of(leader) for c in found.contrasts.get(family, ()) if leader in c.models]
    closest = min(own, key=lambda c: order.index(c.b), default=None)
    if closest is None:
        return
    if (words := confirmation(closest)) is None:
        yield NextStep(words=f"An A/B test of {closest.a} against {closest.b} confirms it")
        return
    where = f"metric={found.metric!r}, estimator={found.estimator!r}"
    call = f"ol.plan(found.contrast({closest.a!r}, {closest.b!r}, {where}), power=0.8)"
    yield NextStep(words=words.removesuffix("."), command="" if found.setting.command else call)


def _pair(found: Audit) -> tuple[str, ...]:
    """Two models that fewer comparisons may tell apart, the best ranked ones first."""
    order = found.result.ranking(found.metric, found.estimator)
    pairs = (p for p in found.verdict.pairs if any(reason.remedy == rules.FEWER for reason in p.reasons))
    closest = min(pairs, key=lambda p: sorted(map(order.index, p.models)), default=None)
    return tuple(order[:2]) if closest is None else tuple(m for m in order if m in closest.models)


# -- as a command line ---------------------------------------------------------------------------------------


def _command(found: Audit, change: Change, words: Sequence[str]) -> str:
    """The same command, with the change."""
    options = dict[str, list[str]]()
    for name, value in change.asked.items():
        options[_flag(name)] = [str(one) for one in (value if isinstance(value, list) else [value])]  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]
    options |= {_flag(name): [str(value)] for name, value in change.columns.items()}
    if change.propensities is not None:
        options["--propensity"] = [_nested(change.propensities[0], words)]
    kept = list(_without(words, {*options, *map(_flag, change.dropped)}))
    first = next((n for n, word in enumerate(kept) if word.startswith("--")), len(kept))
    log, models = kept[2:3], kept[3:first]
    if change.pair:
        models = [model for model in models if model.partition("=")[0].strip() in _pair(found)]
    more = [word for flag, values in options.items() for value in values for word in (flag, value)]
    return shlex.join([*COMMAND, *([NEW_LOG] if change.log else log), *models, *kept[first:], *more])


def _flag(name: str) -> str:
    return FLAGS.get(name, f"--{name.replace('_', '-')}")


def _without(words: Sequence[str], flags: set[str]) -> Iterator[str]:
    """The words without these options and their values; without `--running`, no metric is asked for that needs it."""
    rest = iter(words)
    for word in rest:
        value = next(rest, "") if word in flags or word == "--metric" else None
        if value is None:
            yield word
        elif word not in flags and not (RUNNING in flags and value.startswith("overlap@")):
            yield from (word, value)


def _nested(propensity: str, words: Sequence[str]) -> str:
    """Weights are balanced on top of the model that was asked for, where that is one that takes no sample."""
    asked = words[words.index("--propensity") + 1] if "--propensity" in words[:-1] else ""
    plain = propensity.startswith("balanced") and asked in MODELS and not MODELS[asked].sample
    return propensity.replace("balanced", f"balanced:{asked}", 1) if plain and asked != INSIDE else propensity


# -- as a call -----------------------------------------------------------------------------------------------


def _call(found: Audit, change: Change) -> str:
    """The call of `ol.audit` as far as the audit knows it, with the change."""
    log, given = "log", "propensities" if change.propensities is None else change.propensities[1]
    if change.columns:
        named = ", ".join(f"{name}={value!r}" for name, value in change.columns.items())
        log = f"ol.read(path, {named}, **columns)"
    models = f"{{name: models[name] for name in {_pair(found)!r}}}" if change.pair else "models"
    asked = {"metrics": list(found.result.metrics), "estimators": list(found.result.estimators), **change.asked}
    if change.asked is SNIPS and found.estimator in found.result.own_estimators:
        asked["estimators"] = ["snips", found.estimator]
    keywords = (f"{name}={value!r}" for name, value in asked.items())
    return f"ol.audit({', '.join([models, NEW_LOG if change.log else log, given, *keywords])})"
