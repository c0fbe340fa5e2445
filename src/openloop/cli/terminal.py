"""`Terminal`: rich's console, which shows text that a terminal would obey instead of sending it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from openloop.support.escaping import visible


class Terminal(Console):
    """Colours and layout are rich's; what comes from text has no control character but the ends of its lines."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Plain text, as in a cell of a table; rich would drop some control characters, and send others."""
        return super().render_str(visible(text, lines=True), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """What is printed, whatever it was made of; rich's own codes are not in the text of a segment."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text, lines=True))

    def on_broken_pipe(self) -> None:
        """Leave it to the command what a closed pipe means; rich would end it."""
        raise  # noqa: PLE0704 (called while the error is handled)
