"""Pipelines of LensKit 2025 and later, asked user by user; ids are those that it was trained on."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from openloop.core.feedback import Array
from openloop.errors import InputError
from openloop.learners.adapters.row_ids import row_ids
from openloop.learners.adapters.wrapped import PartlyWrapped

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
    own = {side: _vocabulary(side, list(nodes.values())) for side in ("users", "items")}
    ids = {side: own[side] if given is None else given for side, given in (("users", users), ("items", items))}
    for side, given in ids.items():
        if given is None:
            raise InputError(
                f"wrap: no part of the pipeline says which {side} it was trained on; pass {side}=, the ids of the "
                f"data set it was trained on, dataset.{side}.ids()."
            )
        known = own[side]
        if known is not None and not np.isin(given, known).all():
            raise InputError(
                f"wrap: {side}= has ids that the pipeline was not trained on; LensKit knows its own, so leave it out."
            )
    predicts = PREDICTOR if PREDICTOR in nodes else SCORER
    return PartlyWrapped(
        "Pipeline", _asked(model, predicts, ids), ids["users"], ids["items"], unknown, _asked(model, SCORER, ids)
    )


def _vocabulary(side: str, components: list[Any]) -> Array | None:
    """The ids of the first component that keeps a vocabulary of that side, or the data that it was trained on."""
    for part in components:
        kept = getattr(part, side, None) or getattr(getattr(part, "training_data", None), side, None)
        if callable(getattr(kept, "ids", None)):
            return row_ids(side, kept)
    return None


def _asked(pipeline: Any, node: str, ids: dict[str, Array]) -> Any:
    """The scores of pairs, NaN where the node has none; one run of the pipeline for consecutive pairs of a user."""
    ItemList = sys.modules["lenskit.data"].ItemList

    def pairs(user: Array, item: Array) -> Array:
        order = np.argsort(user, kind="stable")
        found = np.empty(len(user))
        for rows in np.split(order, np.flatnonzero(np.diff(user[order])) + 1):
            wanted = ItemList(item_ids=ids["items"][item[rows]])
            scored = pipeline.run(node, query=ids["users"][user[rows[0]]], items=wanted)
            found[rows] = _scores(scored, len(rows))
        return found

    return pairs


def _scores(scored: Any, size: int) -> Array:
    """One score per item, in the order in which they were asked for; a list without scores knows none."""
    scores = scored.scores()
    return np.full(size, np.nan) if scores is None else np.asarray(scores, np.float64)
