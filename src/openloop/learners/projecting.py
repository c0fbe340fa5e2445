"""Fits of `MF(solver="projected")`: one descent, on rows in memory, on disk or on Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from openloop.core.feedback import Array, Feedback
from openloop.errors import InputError, listing
from openloop.kernels.least_squares import Rows
from openloop.learners.base import check_rank
from openloop.learners.blocks.building import BlockFacts, facts_of, total_facts
from openloop.learners.blocks.memory import blocks_of_rows
from openloop.learners.blocks.ratings import RatingsTable, is_rows, open_ratings
from openloop.learners.blocks.user_blocks import vectors
from openloop.learners.frame_fits import FrameFit
from openloop.learners.solvers.als import AlternationPlan
from openloop.learners.solvers.descent_files import begun, mark_of, save
from openloop.learners.solvers.objective import Objective, Solution
from openloop.learners.solvers.projected import Ask, Blocks, DescentPlan, Totals, centred, descend, start_items


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rowset:
    """Rows that stay in a frame or in files, as `fit` is given them."""

    native: Any
    columns: Mapping[str, Any]  # user, item, rating, sample_weight, propensities
    blocks: Any = None  # the folder of blocks on disk; None: a temporary one
    memory: Any = None  # what blocks on disk may take

    @property
    def outside(self) -> bool:
        """Whether the rows are not in memory as Feedback."""
        return not isinstance(self.native, Feedback) and is_rows(self.native)

    def weighted(self, sample_weight: Any, propensities: Any) -> Rowset:
        """The same with the columns of weights or of p."""
        for name, value in (("sample_weight", sample_weight), ("propensities", propensities)):
            if value is not None and not isinstance(value, str):
                raise InputError(
                    f"MF: with a frame, {name} is the name of its column, got {type(value).__name__}; add them as one."
                )
        return replace(self, columns={**self.columns, "sample_weight": sample_weight, "propensities": propensities})


def check_projected(model: Any, given: Rowset) -> None:
    """Refuse losses whose users cannot be projected out, and arguments that would have no effect."""
    name = type(model).__name__
    if given.outside and model.solver != "projected":
        raise InputError(
            f'{name}: a frame is fitted by solver="projected", got solver={model.solver!r}; pass that, or read the log '
            "with ol.read."
        )
    asked = {**given.columns, "blocks": given.blocks, "memory": given.memory}
    idle = [key for key, value in asked.items() if value is not None]
    if idle and not given.outside:
        raise InputError(f"{name}: {listing(idle)}: only for rows in a frame, and this is Feedback; leave it out.")
    if model.solver == "projected" and model.loss != "squared":
        raise InputError(
            f'{name}: solver="projected" needs loss="squared", of which a user\'s vector is one least-squares problem, '
            f'got loss={model.loss!r}; pass solver="cg" and Feedback.'
        )
    if model.solver != "projected" and model.checkpoint is not None:
        raise InputError(
            f'{name}: checkpoint= is for solver="projected", got solver={model.solver!r}; leave checkpoint= out.'
        )


def projected_on_rows(model: Any, rows: Rows, objective: Objective, at: Solution, plan: AlternationPlan) -> Solution:
    """The fit on rows in memory; users' vectors are solved at the end."""
    blocks = blocks_of_rows(rows, len(at.Q), plan.threads)
    facts = total_facts(blocks.each(lambda block: facts_of(block.rows)))
    ask = Ask(Q=at.Q, c=facts.mean, penalty=objective.penalty, scale=facts.scale)
    found, _ = _lowered(model, blocks, ask, facts, plan)
    done = replace(ask, Q=found.Q)
    found.P = np.concatenate(list(blocks.each(lambda block: vectors(block.scaled(ask.scale).rows, done))))
    return found


def projected_on_frame(
    model: Any, given: Rowset, objective: Objective, plan: AlternationPlan, rng: np.random.Generator
) -> tuple[Solution, FrameFit]:
    """The fit on blocks of a frame; users are solved there when they are asked for."""
    table = open_ratings(type(model).__name__, given.native, given.columns)
    items = table.distinct("i")
    make = _maker(model, table, items, given, plan.threads)
    blocks = make(table) if given.blocks is None else make(table, folder=given.blocks)
    again = partial(make, keep=False) if table.spark else make
    check_rank(model, objective.factors, blocks.facts.users, len(items))
    seen = np.ones(len(items), bool)
    Q = start_items(seen, objective.factors, np.dtype(model.dtype), rng)
    ask = Ask(Q=Q, c=blocks.facts.mean, penalty=objective.penalty, scale=blocks.facts.scale)
    at, totals = _lowered(model, blocks, ask, blocks.facts, plan)
    done = replace(ask, Q=at.Q)
    if objective.bias_reg == 0:
        done = centred(done, totals, seen)
        at.Q, at.c = done.Q, done.c
    return at, FrameFit(blocks=blocks, ask=done, items=items, table=table, make=again)


def _maker(model: Any, table: RatingsTable, items: Array, given: Rowset, threads: int) -> Callable[..., Any]:
    """What makes blocks where the rows are: on Spark, or else on disk."""
    dtype = np.dtype(model.dtype)
    if not table.spark:
        from openloop.learners.blocks.disk import Disk, stored

        return partial(stored, disk=Disk.of(items, dtype, threads, given.memory), factors=model.factors)
    if given.blocks is not None or given.memory is not None:
        raise InputError(
            "MF: blocks= and memory= are for rows on disk, and Spark keeps blocks on its executors; leave them out."
        )
    from openloop.learners.blocks.spark import build

    return partial(build, items=items, dtype=dtype)


def _lowered(model: Any, blocks: Blocks, ask: Ask, facts: BlockFacts, plan: AlternationPlan) -> tuple[Solution, Totals]:
    """Q where f has settled, with the objective after each iteration; and the totals there."""
    mark = mark_of(ask, facts.rows, facts.content)
    at = begun(model.checkpoint, ask, mark)
    steps = DescentPlan(
        iterations=plan.iterations, tol=plan.tol, advance=plan.advance, keep=lambda at: save(model.checkpoint, at, mark)
    )
    totals, settled = descend(blocks, ask, at, steps)
    history = at.values[1:] or at.values  # it may have begun at the optimum
    return Solution(np.zeros((0, ask.Q.shape[1]), at.Q.dtype), at.Q, ask.c, history, settled), totals
