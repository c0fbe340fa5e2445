"""The files of an audit that may not fit into memory: scanned logs, whose rows are read once and dealt to blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from openloop.commands.audit.model_files import MATRIX, candidate, is_model_file
from openloop.commands.audit.request import (
    OWN,
    AuditInputs,
    AuditRequest,
    given_ids,
    guesses,
    is_number_of_strata,
    propensity_choice,
)
from openloop.commands.table_files import suffix
from openloop.core.feedback import Feedback
from openloop.data.columns import choose, choose_log, shared
from openloop.data.formats import BROKEN, PARQUET, open_file
from openloop.data.reading import read
from openloop.data.scanning import Log
from openloop.propensity.checks.by_item import CountModel
from openloop.propensity.naming import is_model
from openloop.support.atomic import FilePath
from openloop.support.memory import free_memory
from openloop.support.progress import Step, silent

READ, WORKED = 40, 110  # bytes for each row in memory, and for each one of the file being read
ROW_OF_TEXT, ROW_ZIPPED = 20, 5  # bytes of a short row in a file
USABLE = 0.8  # of the memory that is free


def is_scanned(wanted: AuditRequest, notes: list[str]) -> bool:
    """Whether files are scanned: where they may not fit into memory, and nothing asked for needs them there."""
    rows, free = [_about_rows(path) for path in wanted.inputs], free_memory()
    needed = READ * sum(rows) + WORKED * max(rows)
    if needed <= USABLE * free:
        return False
    sizes = f"{needed / 2**30:.1f} GiB in memory, of which {free / 2**30:.1f} GiB are free"
    reason = _needs_memory(wanted)
    if reason is not None:
        notes.append(f"the files would take up to {sizes}, and are read nevertheless: {reason}")
        return False
    notes.append(f"the files are scanned, block by block: they would take up to {sizes}")
    return True


def _needs_memory(wanted: AuditRequest) -> str | None:
    """What is asked for that needs the log in memory."""
    asked, columns = wanted.propensity, open_file(wanted.log, wanted.columns, wanted.form).columns
    if asked is None and OWN not in columns:
        return "a model of propensities is fitted to them"
    if asked is not None and asked not in columns and is_model(asked) and not (model := wanted.spec(asked)).counts:
        return f"{model}{wanted.corrections} is fitted to them"
    for name, default in {"test": None, "cold": "keep"}.items():
        if getattr(wanted, name) != default:
            return f"--{name} chooses among their rows"
    if wanted.min_item_rows:
        return "--min-item-rows removes items from log and models"
    named = next((s for s in wanted.strata if not is_number_of_strata(s)), None)
    return None if named is None else f"--strata {named} is a column"


def _about_rows(path: FilePath) -> float:
    """About how many rows a file has; none where it stays on disk or cannot be read, which is reported elsewhere."""
    file = Path(path).expanduser()
    if not file.is_file() or suffix(path) == MATRIX or is_model_file(path):
        return 0.0
    if suffix(path) in PARQUET:
        try:
            return float(pl.scan_parquet(file, glob=False).select(pl.len()).collect().item())
        except BROKEN:
            return 0.0
    return file.stat().st_size / (ROW_ZIPPED if suffix(path) == ".gz" else ROW_OF_TEXT)


def gather(wanted: AuditRequest, notes: list[str], step: Step = silent) -> AuditInputs:
    """The files as logs and tables that are read when they are evaluated."""
    step("looking at the files", 0.0)
    table = open_file(wanted.log, wanted.columns, wanted.form)
    chosen = choose_log(table, wanted.columns)
    notes += guesses(table, chosen, wanted.columns)
    choice = propensity_choice(wanted, table, notes)
    own = {} if choice.column is None else {"propensity": choice.column}
    users, items = (
        given_ids(role, given, chosen[role]) for role, given in (("user", wanted.users), ("item", wanted.items))
    )
    log = Log(
        source=wanted.log, table=table, columns=chosen | own, users=users, items=items, split=wanted.split,
        propensity_model=wanted.assumes, positive=wanted.positive, duplicates=wanted.duplicates,
    )  # fmt: skip
    named = wanted.model_columns(chosen)
    sample = None if wanted.open_loop is None else _sample(wanted, chosen)
    model = None if choice.model is None else CountModel(model=choice.model.bare(0), floor=wanted.floor)
    return AuditInputs(
        models={name: candidate(name, paths, named, notes) for name, paths in wanted.tables.items()},
        log=log, propensities=choice.column if model is None else model,
        asked=wanted.question(
            exclude=None if wanted.exclude is None else _beside(wanted, wanted.exclude, chosen), sample=sample,
            columns=named, floor=wanted.floor,
        ),
        notes=notes, about_log=f"{wanted.log}, scanned",
        about_propensity=choice.source(split=wanted.exclude is not None) + wanted.corrections,
    )  # fmt: skip


def _beside(wanted: AuditRequest, path: FilePath, chosen: dict[str, Any]) -> Log:
    """A log beside the log, whose columns are called as the log's are, or have obvious names."""
    table = open_file(path, chosen, wanted.form_of(path))
    columns = choose(table, shared(table, chosen), required=("user", "item"))
    return Log(source=path, table=table, columns=columns, split=wanted.split)


def _sample(wanted: AuditRequest, chosen: dict[str, Any]) -> Feedback:
    """The uniform sample, which is small."""
    path = wanted.open_loop
    assert path is not None  # noqa: S101, asked only where there is one
    table = open_file(path, chosen, wanted.form_of(path))
    return read(path, **shared(table, chosen))
