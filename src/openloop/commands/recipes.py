"""Learners by the names of commands: one of a class, or several combined, with the settings that options give.

What is not given is the learner's default; a number of factors that is not given is at most what the grid can have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from openloop import learners
from openloop.core.feedback import Feedback
from openloop.errors import InputError, did_you_mean

CLASSES = {
    "mf": "MF",
    "adg": "ADG",
    "auc": "AUC",
    "wmf": "WMF",
    "svd": "PureSVD",
    "popularity": "Popularity",
    "bias": "Bias",
    "dr": "DR",
    "relmf": "RelMF",
    "ordinal-mf": "OrdinalMF",
    "joint-mnar": "JointMNAR",
    "mixture": "MixtureMNAR",
}
# The parameters that have an option; those of a learner beyond them keep their defaults.
PARAMETERS = (
    "factors", "reg", "bias_reg", "loss", "solver", "iterations", "tol", "updates", "gamma", "rate", "threshold",
    "folds", "sweeps", "burn", "thin", "chains", "components", "missing", "restarts", "checkpoint", "threads",
    "device", "rng",
)  # fmt: skip
OF_MF = ("factors", "reg", "bias_reg", "solver", "iterations", "tol", "threads", "device", "rng")
TEMPERED = ((1.2, 0.5), (1.4, 0.0))  # factors of λ, and powers of the weights, of the bases beside the first
RANK, LEAST = 8, 7  # of who saw what; a grid of fewer users or items has none

Given = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A model of several learners: the parameters that it takes, and how it is made of them for a log."""

    takes: tuple[str, ...]
    make: Callable[..., Any]  # (given, log, weighted=)


def recipe_parameters(name: str) -> list[str]:
    """The parameters of a named model that have an option, in the order of the options."""
    own = COMBINED[name].takes if name in COMBINED else getattr(learners, CLASSES[name])().get_params()
    return [parameter for parameter in PARAMETERS if parameter in own]


def needs_propensities(name: str) -> bool:
    """Whether a named model can only be learned with p."""
    return name in CLASSES and bool(getattr(learners, CLASSES[name]).needs_propensities)


def takes_weights(name: str) -> bool:
    """Whether the rows of a named model may have weights."""
    return name not in CLASSES or bool(getattr(learners, CLASSES[name]).takes_weights)


def learner_of(name: str, given: Given, log: Feedback, *, weighted: bool) -> Any:
    """The learner of that name for a log; `weighted`: its rows differ in weight."""
    if name in COMBINED:
        return COMBINED[name].make(given, log, weighted=weighted)
    return _of_class(CLASSES[name], given, log)


def _of_class(name: str, given: Given, log: Feedback) -> Any:
    model = getattr(learners, name)()
    if "factors" in model.get_params():
        model.set_params(factors=min(model.factors, log.n_users, log.n_items))
    return model.set_params(**given)


def _split(given: Given, outer: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters of the learner outside, and those of the factorisations inside; a seed is for both."""
    inside = {name: value for name, value in given.items() if name not in outer or name == "rng"}
    return {name: given[name] for name in outer if name in given}, inside


def _recalibrated(given: Given, log: Feedback, **_: bool) -> Any:
    outside, inside = _split(given, ("folds", "rng"))
    return learners.Recalibrated(_of_class("MF", inside, log), **outside)


def _stack(given: Given, log: Feedback, *, weighted: bool) -> Any:
    """MF with weights, with their square roots, and without, each with more λ than the last; and who saw what.

    Where all weights are equal, so are the three: one of them is taken.
    """
    outside, inside = _split(given, ("folds", "rng"))
    first = _of_class("MF", inside, log)
    others = [(_of_class("MF", {**inside, "reg": first.reg * more}, log), power) for more, power in TEMPERED]
    seen = learners.Exposure(rank=_rank(log), **{name: outside[name] for name in ("rng",) if name in outside})
    return learners.Stack([first, *(others if weighted else []), seen], **outside)


def _rank(log: Feedback) -> int:
    least = min(log.n_users, log.n_items)
    if least < LEAST:
        raise InputError(
            f"--model stack: needs at least {LEAST} users and items to learn who saw what, and the log has "
            f"{log.n_users} users and {log.n_items} items; use --model recalibrated or mf."
        )
    return min(RANK, least - LEAST + 1)


COMBINED = {
    "stack": Recipe(takes=(*OF_MF, "folds"), make=_stack),
    "recalibrated": Recipe(takes=(*OF_MF, "loss", "folds"), make=_recalibrated),
}
MODELS = (*CLASSES, *COMBINED)


# -- refusals ------------------------------------------------------------------------------------------------


def option(parameter: str) -> str:
    """The option that sets a learner's parameter."""
    return "--seed" if parameter == "rng" else f"--{parameter.replace('_', '-')}"


def check_model(name: str, *, propensities: bool) -> None:
    """Refuse a name that no model has, and one that needs p where there is none."""
    if name not in MODELS:
        raise InputError(f"--model {name!r} is not a model.{did_you_mean(name, MODELS)}")
    if needs_propensities(name) and not propensities:
        raise InputError(f"--model {name}: needs the propensities themselves; pass --propensity COLUMN.")


def check_weights(name: str, *, weighted: bool) -> None:
    """Refuse weights where a model takes none."""
    if weighted and not takes_weights(name):
        raise InputError(
            f"--model {name}: models the likelihood of single ratings, and takes no weights; leave --propensity, "
            "--weight and --duplicates count out, or use --model mf."
        )


def check_parameters(name: str, given: Given) -> None:
    """Refuse an option that the model does not use."""
    own = recipe_parameters(name)
    for parameter in given:
        if parameter not in own:
            takes = f"takes {', '.join(map(option, own))}" if own else "has nothing to set"
            raise InputError(f"{option(parameter)}: {name} does not use it, it {takes}; leave it out.")
