"""Progress of long work: steps, and a bar on a terminal's stderr or in a notebook; nothing elsewhere."""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from openloop.errors import InputError
from openloop.support.escaping import visible

Step = Callable[[str, float], None]  # what is being done, and the share of the work before it
Advance = Callable[[float, str], None]  # steps done, and what to say beside the bar


def silent(_what: str, _done: float) -> None:
    """A step that reports nothing."""


def check_progress(who: str, show: Any) -> bool:
    """Whether a bar is shown; `who` is whose argument `progress` it is."""
    if not isinstance(show, bool):
        raise InputError(f"{who}: progress must be True or False, got {show!r}; pass one of them.")
    return show


@contextmanager
def progress(what: str, total: int, *, show: bool) -> Generator[Advance]:
    """Yield a function to call with the number of steps done, out of `total`; `what` names the owner of `show`."""
    if not check_progress(what, show):
        yield lambda _done, _text: None
        return
    if in_notebook():
        with _cell(what, total) as advance:
            yield advance
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done, text: bar.update(task, completed=done, description=visible(f"{what} {text}".strip()))


@contextmanager
def steps(what: str, *, show: bool, step: Step = silent) -> Generator[Step]:
    """Yield a step that moves a bar, where one is shown, and tells `step`; `what` is whose argument `show` is."""
    if not check_progress(what, show):
        yield step
        return
    with progress(what, 1, show=show) as advance:

        def both(text: str, done: float) -> None:
            advance(done, text)
            step(text, done)

        yield both


# -- notebooks -----------------------------------------------------------------------------------------------

EVERY = 0.1  # seconds between two updates: a page need not be told more often


def in_notebook() -> bool:
    """Whether this runs in a Jupyter kernel; IPython is looked at only if it is already loaded."""
    python = sys.modules.get("IPython")
    shell = None if python is None else python.get_ipython()
    return getattr(shell, "kernel", None) is not None


@dataclass(frozen=True, slots=True)
class _Bar:
    """A line of a page: what is done, and a bar that no widget is needed for."""

    share: float
    text: str

    def __repr__(self) -> str:
        return f"{self.share:4.0%} {self.text}"

    def _repr_html_(self) -> str:
        return f'<progress value="{self.share:.3f}" max="1"></progress> {html.escape(self.text)}'


@contextmanager
def _cell(what: str, total: int) -> Generator[Advance]:
    """A bar in the output of a cell, which is taken away at the end. rich would need ipywidgets there, and warns."""
    handle = import_module("IPython.display").display(_Bar(0.0, what), display_id=True)
    told = time.monotonic()

    def advance(done: float, text: str) -> None:
        nonlocal told
        if time.monotonic() - told >= EVERY:
            told = time.monotonic()
            handle.update(_Bar(done / total if total else 1.0, f"{what} {text}".strip()))

    try:
        yield advance
    finally:
        handle.update({"text/plain": ""}, raw=True)
