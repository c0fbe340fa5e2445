"""How long work tells of itself: steps, and a bar on stderr; nothing where stderr is no terminal."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from openloop.errors import InputError
from openloop.support.escaping import visible

Step = Callable[[str, float], None]  # what is being done, and the share of the work before it
Advance = Callable[[float, str], None]  # steps done, and what to say beside the bar


def silent(_what: str, _done: float) -> None:
    """A step that nobody is told of."""


def check_progress(who: str, show: Any) -> bool:
    """Whether a bar is shown; `who` is whose argument `progress` it is."""
    if not isinstance(show, bool):
        raise InputError(f"{who}: progress must be True or False, got {show!r}; pass one of them.")
    return show


@contextmanager
def progress(what: str, total: int, *, show: bool) -> Generator[Advance]:
    """Yield a function that is told how many of `total` steps are done; `what` is whose argument `show` is."""
    if not check_progress(what, show):
        yield lambda _done, _text: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done, text: bar.update(task, completed=done, description=visible(f"{what} {text}".strip()))
