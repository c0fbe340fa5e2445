"""A Feedback and models checked and resolved: predictions, missing rows, groups, propensities and imputations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Feedback, Floats, check_propensities
from openloop.core.feedback import distinct as distinct_values
from openloop.core.levels import LevelSample
from openloop.core.metric import default_threshold
from openloop.core.propensities import Propensities, check_exposure, grid_of, row_propensities
from openloop.core.protocols import predicted_block
from openloop.errors import AlignmentError, InputError, LeakError, PredictionError
from openloop.sources import remarks, rules
from openloop.sources.arrays.source import FeedbackSource, Scored
from openloop.sources.observation import Group, one_log, unscaled
from openloop.sources.outcomes import places, predictions, predicts, prepare
from openloop.sources.plan import LEVELS
from openloop.sources.predictions import Predictions
from openloop.sources.question import Question
from openloop.sources.recoding import by_id, told

MAX_GROUPS = 50  # a table of strata that a person can read
MAX_LEVELS = 20  # of a uniform sample, whose sums are taken per user and level


def from_feedback(
    models: Mapping[str, Any], log: Feedback, propensities: Any, asked: Question
) -> tuple[FeedbackSource, list[str]]:
    """The source of a Feedback, and what the reader of its estimates should know."""
    _check(log, asked)
    _check_device(asked.device)
    ready = {name: prepare(name, model, log, asked.columns) for name, model in models.items()}
    values, grid, made = _propensities(propensities, log)
    sample = None if made is None or made.sample is None else made.sample.grouped(MAX_LEVELS)
    threshold = default_threshold(distinct_values(log.rating)) if asked.threshold is None else float(asked.threshold)
    scored, notes = _without_gaps(
        Scored(
            models=ready, log=log, exclude=asked.exclude, threshold=threshold, propensity=values,
            predicted=_predicted(ready, log, asked), grid=grid,
            floored=made.clipped if made and made.floor else None,
            kept_weight=made.kept_weight if made and made.floor else None,
            by_items=made is not None and made.by_items, base=None if made is None else made.base,
            means=None if made is None else made.means,
            imputation=_imputed_ratings(asked.imputation, log),
            groups=_groups(asked, log, sample), sample=sample, device=asked.device,
            bounded=any(m.name == "ips" for m in asked.methods),
        ),
        asked.missing,
    )  # fmt: skip
    for check in (m.check for m in asked.measures if m.check is not None):
        for array in scored.predicted.values():
            check(array)
    notes += [note for name, model in ready.items() for note in told(f"model {name!r}", model)]
    notes += _notes(scored.log, asked.exclude, propensities, weighted=values is not None)
    return FeedbackSource(scored), notes + _list_notes(scored, asked)


def _check_device(device: Any) -> None:
    if device is not None:
        from openloop.kernels.cuda.devices import device_of

        device_of("evaluate", device)


def _check(log: Feedback, asked: Question) -> None:
    if log.uniform:
        raise LeakError(
            "evaluate: this log is marked as the uniform sample of a propensity model, and may not be scored; "
            "score another part, or read it without uniform=True."
        )
    if asked.exclude is not None and not isinstance(asked.exclude, Feedback):
        raise InputError(
            f"exclude: give the Feedback whose items leave the ranking, got {type(asked.exclude).__name__}."
        )


# -- predictions ---------------------------------------------------------------------------------------------


def _predicted(models: Mapping[str, Any], log: Feedback, asked: Question) -> dict[str, Floats]:
    """The predicted rating of each row by model, NaN where it has none; without models that serve no ratings."""
    if "prediction" not in asked.kinds:
        return {}
    partly = asked.missing != "error"
    answers = {
        name: predictions(name, model, log, partly=partly, lenient=asked.lenient)
        for name, model in models.items()
        if predicts(model) or not asked.lenient
    }
    kept = {name: answer for name, answer in answers.items() if answer is not None}
    if asked.lenient and not partly:
        return {name: answer for name, answer in kept.items() if not np.isnan(answer).any()}
    return kept


def _without_gaps(scored: Scored, missing: str) -> tuple[Scored, list[str]]:
    """Rows that some model does not predict are refused, dropped or filled."""
    gaps = {name: gap for name, array in scored.predicted.items() if (gap := np.isnan(array)).any()}
    if not gaps:
        return scored, []
    log, counts = scored.log, {name: int(gap.sum()) for name, gap in gaps.items()}
    if missing == "error":
        name, gap = next(iter(gaps.items()))
        users = log.users.ids[distinct_values(log.user[gap])[:3]].tolist()
        raise rules.not_predicted(f"model {name!r}", counts[name], len(log), users)
    if missing == "worst":
        filled = {name: np.where(gap, _furthest(log), scored.predicted[name]) for name, gap in gaps.items()}
        told = rules.missing_note(missing, counts, 0)
        return replace(scored, predicted={**scored.predicted, **filled}, filled=counts), [told]
    keep = ~np.any(list(gaps.values()), axis=0)
    return _taken(scored, keep), [rules.missing_note(missing, counts, int(len(keep) - keep.sum()))]


def _furthest(log: Feedback) -> npt.NDArray[np.float32]:
    """The end of the scale that is furthest from each rating."""
    low, high = log.rating.min(), log.rating.max()
    return np.where(log.rating - low > high - log.rating, low, high)


def _taken(scored: Scored, keep: npt.NDArray[np.bool_]) -> Scored:
    log, p, base = scored.log, scored.propensity, scored.base
    return replace(
        scored,
        log=log.take(keep, origin=log.origin or log.fingerprint),  # what is left is still a part of that log
        propensity=None if p is None else p[keep],
        base=None if base is None else base[keep],
        predicted={name: array[keep] for name, array in scored.predicted.items()},
        groups={name: (labels, codes[keep]) for name, (labels, codes) in scored.groups.items()},
        dropped=int(len(keep) - keep.sum()),
    )


# -- notes ---------------------------------------------------------------------------------------------------


def _notes(log: Feedback, exclude: Feedback | None, propensities: Any, *, weighted: bool) -> list[str]:
    """What the reader of the estimates should know about how they were made."""
    notes = [*([remarks.POSITIVES] if log.positives else []), *log.notes]
    if isinstance(propensities, np.ndarray) and propensities.ndim == 1 and bool(np.any(np.diff(log.row) < 0)):
        notes.append("propensities= was taken in Feedback order; an array in input order goes through log.align(array)")
    if log.share is None and weighted:
        notes.append(remarks.up_to_factor(unscaled(log), excluded=exclude is not None))
    if exclude is not None and (again := len(places(log, exclude))):
        notes.append(remarks.still_candidates(again))
    if exclude is not None and weighted and not one_log(log, exclude):
        notes.append(remarks.NO_PART)
    return notes


def _list_notes(scored: Scored, asked: Question) -> list[str]:
    """What is odd about the lists of models, where rankings are asked for and nothing was said of them before."""
    if "rank" not in asked.kinds or asked.checked:
        return []
    lists = {name: model for name, model in scored.models.items() if isinstance(model, Predictions)}
    notes = [remarks.lists_none(name) for name, model in lists.items() if model.lists_none(scored.log.cell)]
    return notes + [told for name, model in lists.items() if (told := model.remarks(name, scored.log))]


# -- groups, propensities and imputations --------------------------------------------------------------------


def _groups(asked: Question, log: Feedback, sample: LevelSample | None) -> dict[str, Group]:
    """The groupings that were asked for, and that by levels of a uniform sample."""
    found = {name: _group(name, labels, log) for name, labels in asked.groups.items()}
    if sample is not None:
        found[LEVELS] = tuple(str(level) for level in sample.levels), sample.codes(log.rating)
    return found


def _group(name: str, values: Any, log: Feedback) -> Group:
    """The labels of a grouping, sorted, and the code of each row."""
    given = np.asarray(values)
    if given.shape != (len(log),):
        raise AlignmentError(
            f"groups[{name!r}]: must have one label for each of {len(log):,} rows, in Feedback order, got shape "
            f"{given.shape}; feedback.align(array) brings input order there."
        )
    labels, codes = np.unique(given.astype(str), return_inverse=True)
    if len(labels) > MAX_GROUPS:
        raise InputError(
            f"groups[{name!r}]: {len(labels):,} labels are too many; merge them into at most {MAX_GROUPS}."
        )
    return tuple(labels.tolist()), codes.astype(np.int64)


def _propensities(given: Any, log: Feedback) -> tuple[Floats | None, Floats | None, Propensities | None]:
    """The probability of each row, of the whole grid where it is known, and what they were made as."""
    if given is None:
        return log.propensity, None, None
    if isinstance(given, np.ndarray):
        return *_from_array(given, log), None
    found = row_propensities("evaluate", given, log)
    check_exposure("evaluate", found, log)
    return found.used, _grid(given, found.floor, log), found


def _grid(given: Any, floor: float, log: Feedback) -> Floats | None:
    """The p of every cell; a broadcast grid stays one."""
    grid = None if isinstance(given, Propensities) else grid_of(given)
    if grid is None:  # shares of strata are then estimated from the weights
        return None
    if grid.shape != (log.n_users, log.n_items):
        raise AlignmentError(
            f"evaluate: {type(given).__name__}.matrix() must be users × items, {(log.n_users, log.n_items)}, got "
            f"{grid.shape}; fit the model on this log, or leave matrix() out."
        )
    return np.maximum(grid, floor) if floor else grid


def _from_array(given: Any, log: Feedback) -> tuple[Floats, Floats | None]:
    if given.shape == (log.n_users, log.n_items):
        grid = given.astype(np.float64)
        check_propensities("propensities", grid.ravel(), "give the probability of every cell.")
        return grid[log.user, log.item], grid
    if given.shape == (len(log),):
        return Propensities(values=given).used, None
    raise AlignmentError(
        f"evaluate: an array of propensities must be the grid {(log.n_users, log.n_items)} or one value per row, in "
        f"Feedback order ({len(log):,},), got {given.shape}; feedback.align(array) brings input order there."
    )


def _imputed_ratings(given: Any, log: Feedback) -> Any:
    """Imputed ratings as a U × I array, or losses by (model, metric)."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        return {key: _imputed_grid(losses, log) for key, losses in given.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(given, np.ndarray):
        return _imputed_grid(given, log)
    if not hasattr(given, "scores"):
        raise InputError(
            f"imputation: give a recommender with scores, an array or a mapping, got {type(given).__name__}."
        )
    return _imputed_grid(predicted_block(by_id("imputation", given, log.users, log.items), np.arange(log.n_users)), log)


def _imputed_grid(values: Any, log: Feedback) -> Floats:
    grid = np.asarray(values)
    if grid.shape != (log.n_users, log.n_items) or not np.isfinite(grid).all():
        raise PredictionError(
            f"imputation: needs a finite number for every cell of {(log.n_users, log.n_items)}, got {grid.shape} with "
            f"{grid.size - int(np.isfinite(grid).sum()):,} that are not."
        )
    return grid
