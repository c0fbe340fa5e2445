"""Pipelines of LensKit 2025 and later, asked user by user; ids are those that it was trained on."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from openloop.core.feedback import Array
from openloop.errors import InputError, UnknownIdError, listing
from openloop.learners.adapters.row_ids import row_ids
from openloop.learners.adapters.wrapped import PartlyWrapped

# Where components keep vocabularies: in themselves, in a model of biases, or in the interactions of the training set.
PARTS = ("model_", "bias", "interactions")
NAMES = {"users": ("users", "users_", "row_vocabulary"), "items": ("items", "items_", "col_vocabulary")}
SCORER, PREDICTOR = "scorer", "rating-predictor"  # nodes of LensKit's standard pipelines


def is_pipeline(model: Any) -> bool:
    """Whether it is a pipeline of LensKit."""
    return type(model).__module__.partition(".")[0] == "lenskit" and hasattr(model, "run") and hasattr(model, "nodes")


def wrap_pipeline(model: Any, users: Any, items: Any, unknown: str) -> PartlyWrapped:
    """Scores of the pipeline's scorer, and predictions of its rating predictor where it has one."""
    nodes = {node.name: getattr(node, "component", None) for node in model.nodes()}
    if SCORER not in nodes:
        raise InputError(
            f"wrap: the pipeline has no node {SCORER!r}, only {', '.join(nodes)}; build it with topn_pipeline or "
            "predict_pipeline."
        )
    ids = {side: _ids(side, given, list(nodes.values())) for side, given in (("users", users), ("items", items))}
    predicts = PREDICTOR if PREDICTOR in nodes else SCORER
    return PartlyWrapped(
        "Pipeline", _asked(model, predicts, ids), ids["users"], ids["items"], unknown, _asked(model, SCORER, ids)
    )


def _ids(side: str, given: Array | None, components: list[Any]) -> Array:
    """The ids that were given, which must be the pipeline's own, or all of these."""
    own = _vocabulary(side, components)
    if given is None and own is None:
        raise InputError(
            f"wrap: no part of the pipeline says which {side} it was trained on; pass {side}=dataset.{side}, of the "
            "data set that it was trained on."
        )
    if given is None or own is None:
        return np.asarray(own if given is None else given)
    strange = given[~np.isin(given, own)]
    if len(strange):
        raise UnknownIdError(
            f"wrap: {len(strange):,} of {side}= are not among those that the pipeline was trained on, such as "
            f"{listing(strange[:3].tolist())}; it has its own, {listing(own[:3].tolist())} …, so leave {side}= out."
        )
    return given


def _vocabulary(side: str, components: list[Any]) -> Array | None:
    """The ids of the first vocabulary of that side which a component, or a part of one, keeps."""
    holders = [held for part in components for held in (part, *(getattr(part, name, None) for name in PARTS))]
    for held in holders:
        for name in NAMES[side]:
            if callable(getattr(getattr(held, name, None), "ids", None)):
                return row_ids(side, getattr(held, name))
    return None


def _asked(pipeline: Any, node: str, ids: dict[str, Array]) -> Any:
    """The scores of pairs, NaN where the node has none; one run of the pipeline per user."""
    ItemList = sys.modules["lenskit.data"].ItemList

    def pairs(user: Array, item: Array) -> Array:
        order = np.argsort(user, kind="stable")
        found = np.empty(len(user))
        for rows in np.split(order, np.flatnonzero(np.diff(user[order])) + 1):
            wanted, at = np.unique(item[rows], return_inverse=True)  # not all scorers take an item twice
            items = ItemList(item_ids=ids["items"][wanted])
            scored = pipeline.run(node, query=ids["users"][user[rows[0]]], items=items)
            found[rows] = _scores(scored, len(wanted))[at]
        return found

    return pairs


def _scores(scored: Any, size: int) -> Array:
    """One score per item, in the order in which they were asked for; a list without scores knows none."""
    scores = scored.scores()
    return np.full(size, np.nan) if scores is None else np.asarray(scores, np.float64)
