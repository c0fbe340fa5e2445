"""How long work tells of itself: steps, and a bar on stderr; nothing where stderr is no terminal."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

Step = Callable[[str, float], None]  # what is being done, and the share of the work before it
Advance = Callable[[float, str], None]  # steps done, and what to say beside the bar


def silent(_what: str, _done: float) -> None:
    """A step that nobody is told of."""


@contextmanager
def progress(what: str, total: int, *, show: bool) -> Generator[Advance]:
    """Yield a function that is told how many of `total` steps are done."""
    if not show:
        yield lambda _done, _text: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done, text: bar.update(task, completed=done, description=f"{what} {text}".strip())
