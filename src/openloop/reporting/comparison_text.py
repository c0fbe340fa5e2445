"""A comparison as people see it: a text of 80 columns, tables to paste elsewhere, and HTML for notebooks."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any

from openloop.core.comparison import Comparison
from openloop.core.estimate import Estimate
from openloop.errors import MissingPackageError
from openloop.support.escaping import visible
from openloop.support.tables import html_list, html_table, latex_table, markdown_table
from openloop.support.wording import counted, estimands, joined, level_of

Cells = tuple[str, ...]
NUMBER = re.compile(r"(?<![\w@.])\d+(?:,\d{3})*(?:\.\d+)?(?![\w])")  # not one that is part of a name
MINDED = 5  # flags that a notebook shows without a click


def table_of(found: Comparison) -> tuple[Cells, list[Cells]]:
    """The header and the cells of a table for documents, one line per estimate."""
    interval = f"{level_of(found.level)} interval over users"
    header = ("model", "metric", "estimator", "estimand", "value", interval, "effective n", "p")
    return header, [_cells(row) for row in found.rows()]


def _cells(row: dict[str, Any]) -> Cells:
    size = f"{row['n']:,}" if row["effective_size"] is None else f"{row['effective_size']:,.0f} of {row['n']:,}"
    mark = " !" if row["flags"] else ""
    interval = "–" if math.isnan(row["low"]) else f"{row['low']:.4g} … {row['high']:.4g}"
    named = (row["model"], row["metric"], row["estimator"], row["estimand"])
    return (*named, f"{row['value']:.4g}{mark}", interval, size, row["propensities"])


def frame_of(result: Comparison) -> Any:
    """The estimates as a Polars frame, one row per estimate."""
    import polars as pl

    numbers: Any = dict.fromkeys(("value", "stderr", "low", "high", "effective_size"), pl.Float64)
    return pl.DataFrame(list(result.rows()), schema_overrides=numbers)


def pandas_of(result: Comparison) -> Any:
    """The estimates as a pandas frame, one row per estimate."""
    if find_spec("pandas") is None:
        raise MissingPackageError(
            "to_pandas: pandas is not installed; pip install 'openloop[pandas]', or use to_frame()."
        )
    import pandas as pd

    return pd.DataFrame(frame_of(result).to_dict(as_series=False))


def markdown_of(result: Comparison) -> str:
    """The estimates as a table in Markdown."""
    return markdown_table(*table_of(result))


def latex_of(result: Comparison) -> str:
    """The estimates as a LaTeX tabular, with the rules of booktabs."""
    return latex_table(*table_of(result))


# -- plain text ----------------------------------------------------------------------------------------------


def text_of(result: Comparison) -> str:
    """The comparison as it is printed, with nothing in it that steers a terminal."""
    return "\n".join(map(visible, lines_of(result)))


def lines_of(found: Comparison) -> Iterator[str]:
    """A table that fits into 80 columns, and below it what is estimated, what was left out, and what to mind."""
    header, cells = table_of(found)
    kept = [
        (*line[:3], *line[4:7]) for line in ((*header[:5], f"{level_of(found.level)} over users", *header[6:]), *cells)
    ]
    body = [tuple(map(visible, line)) for line in kept]
    widths = [max(map(len, column)) for column in zip(*body, strict=True)]
    for line in body:
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
    yield from (f"{metric}: {what}" for metric, what in _estimated(found))
    yield from _notes(found)
    yield from (f"mind: {visible(flag)}" for flag in flags_of(found))


def _estimated(found: Comparison) -> Iterator[tuple[str, str]]:
    """What each metric is of, by estimators: "snips per cell; naive on what was seen"."""
    for metric in found.metrics:
        first = {e: x for (_, m, e), x in reversed(found.estimates.items()) if m == metric}
        yield metric, estimands({e: first[e].estimand + _taken(first[e]) for e in found.estimators if e in first})


def _taken(e: Estimate) -> str:
    return f", p {e.p_taken}" if e.p_taken else ""


def _notes(found: Comparison) -> Iterator[str]:
    yield from (f"left out: {reason}" for reason in found.skipped.values())
    yield from (f"note: {note}" for note in found.notes)


def flags_of(found: Comparison, metric: str | None = None) -> list[str]:
    """The flags with the estimates that have them, of all metrics or one; those alike but for numbers are one line."""
    lists = {(model, name, ""): e for (model, name), e in found.lists.items()}
    held = {key: e for key, e in {**found.estimates, **lists}.items() if metric in (None, key[1])}
    alike: dict[tuple[str, int], dict[tuple[str, str], list[tuple[str, str]]]] = {}
    for (model, name, estimator), e in held.items():
        seen: Counter[str] = Counter()
        for flag in e.diagnostics.flags:
            kind = NUMBER.sub("#", flag)
            group = alike.setdefault((kind, seen[kind]), {})
            group.setdefault((name, estimator), []).append((model, flag))
            seen[kind] += 1
    return [line for group in alike.values() for line in _told(group, len(held), len(found.models), metric)]


def _told(
    group: dict[tuple[str, str], list[tuple[str, str]]], held: int, models: int, metric: str | None
) -> Iterator[str]:
    """One line where all estimates have the flag, and otherwise one for each estimator of a metric."""
    marked = [flag for found in group.values() for _, flag in found]
    if len(marked) == held:
        yield ranging(marked)
        return
    for (name, estimator), found in group.items():
        of = (estimator or name) if metric is not None or not estimator else f"{estimator} of {name}"
        who = "" if len(found) == models else f", {joined([model for model, _ in found])}"
        yield f"{of}{who}: {ranging([flag for _, flag in found])}"


def ranging(texts: Sequence[str]) -> str:
    """Texts that differ in their numbers only, as one with the ranges of these."""
    numbers = iter(zip(*map(NUMBER.findall, texts), strict=True))

    def ends(_: re.Match[str]) -> str:
        found = sorted(next(numbers), key=lambda text: float(text.replace(",", "")))
        return found[0] if found[0] == found[-1] else f"{found[0]} to {found[-1]}"

    return NUMBER.sub(ends, texts[0])


# -- notebooks -----------------------------------------------------------------------------------------------


def html_of(found: Comparison) -> str:
    """A table per metric, models by estimators, with intervals in small print; the words below, flags folded."""
    tables = [_metric(found, metric) for metric in found.metrics]
    if found.lists:
        names = found.list_metrics
        rows = [[found.lists.get((model, name)) for name in names] for model in found.models]
        tables.append(_html_table(found, "what models list for users", names, rows))
    flags = flags_of(found)
    summary = f"<summary>! {counted(len(flags), 'flag')}</summary>"
    folded = (f"<details{' open' * (len(flags) <= MINDED)}>{summary}", "</details>")
    minded = html_list(flags).join(folded) if flags else ""
    return "".join(tables) + html_list(_notes(found)) + minded


def _metric(found: Comparison, metric: str) -> str:
    names = [e for e in found.estimators if any(key[1:] == (metric, e) for key in found.estimates)]
    ordered = found.ranking(metric, names[0])
    better = found.better.get(metric)
    what = f"{metric}{f', {better} is better' if better else ''}; {dict(_estimated(found))[metric]}"
    return _html_table(
        found, what, names, [[found.estimates.get((m, metric, e)) for e in names] for m in ordered], ordered
    )


def _html_table(
    found: Comparison,
    caption: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Estimate | None]],
    models: Sequence[str] | None = None,
) -> str:
    level = found.level
    cells = [[_html_cell(e, level) for e in row] for row in rows]
    words = f"{caption}; {level_of(level)} intervals over users in small print"
    return html_table(words, ["model", *columns], zip(models or found.models, cells, strict=True))


def _html_cell(e: Estimate | None, level: float) -> str:
    if e is None:
        return "–"
    low, high = e.limits(level)
    interval = "" if math.isnan(low) else f"<br><small>{low:.4g} … {high:.4g}</small>"
    return f"{e.value:.4g}{' !' if e.diagnostics.flags else ''}{interval}"
