"""`page_of`: blocks as one HTML file that opens from disk and needs no network.

The template escapes all text. A script runs only if its hash is in the page's own policy, which also forbids every
request. No other module writes HTML.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from openloop.reporting.blocks import Block, Section, whole_chart
from openloop.reporting.chart_data import numbers
from openloop.support.atomic import finite
from openloop.support.version import VERSION

# What a JSON block in a page may not hold unescaped: it could end the block, or break a line of script.
ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}

# Text and the element that it is shown in, "" for none.
Piece = tuple[str, str]
INTERVAL = re.compile(r"(?<!\w)(−?[\d.,]+) … (?=[−\d])")
MARKS = {"strong": r"\*\*(.+?)\*\*", "code": r"`(.+?)`"}


def page_of(
    title: str,
    blocks: Sequence[Block],
    *,
    sections: Sequence[Section] = (),
    meta: str = "",
    names: Sequence[str] = (),
    marked: bool = False,
) -> str:
    """A page: its title, a small line `meta`, the blocks, and sections with a list of contents.

    `names` come from the data: each is isolated from the direction of the text around it. With `marked`, **bold** and
    `code` in texts are shown as such.
    """
    from markupsafe import Markup

    library = bundle() if has_chart([*blocks, *sections]) else ""
    script = _resource("page.js")
    values: dict[str, Any] = {"title": title, "meta": meta, "blocks": blocks, "sections": sections, "version": VERSION}
    values |= {"css": Markup(_resource("page.css")), "script": Markup(script), "bundle": Markup(library)}  # noqa: S704, none from the data
    values["policy"] = _policy(*filter(None, (library, script)))
    text = _template(splitter(names, MARKS if marked else {})).render(values).lstrip()
    return text.encode("utf-8", "backslashreplace").decode()  # a file's name may hold half a character


def chart_page(chart: Any) -> str:
    """A page with one chart, drawn as it is; its title becomes the page's."""
    title, figure = whole_chart(chart)
    return page_of(title, [figure])


def has_chart(blocks: Iterable[Any]) -> bool:
    """Whether a chart is among the blocks, or inside one of them."""
    return any(block.kind == "figure" or has_chart(getattr(block, "blocks", ())) for block in blocks)


def _template(parts: Callable[[str], list[Piece]]) -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("openloop.reporting", "templates")
    options: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True}
    found: Any = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, **options)
    found.filters |= {"parts": parts, "embedded": embedded, "numbers": numbers}
    return found.get_template("page.html")


def splitter(names: Sequence[str], marks: dict[str, str]) -> Callable[[str], list[Piece]]:
    """A function that cuts a text into pieces: names, the longest first, marked text, and what is between."""
    longest = sorted(filter(None, names), key=len, reverse=True)
    isolated = {"bdi": rf"(?<!\w)({'|'.join(map(re.escape, longest))})(?!\w)"} if longest else {}
    kinds = isolated | marks
    pattern = re.compile("|".join(kinds.values()))

    def parts(text: str) -> list[Piece]:
        found: list[Piece] = []
        at = 0
        for match in pattern.finditer(text) if kinds else ():
            kind = (match.lastindex or 0) - 1  # one group per kind
            found += [(_unbroken(text[at : match.start()]), ""), (match[kind + 1], list(kinds)[kind])]
            at = match.end()
        return [*found, (_unbroken(text[at:]), "")]

    return parts


def _unbroken(text: str) -> str:
    """A number and its unit stay on one line, and so do the limits of an interval."""
    return INTERVAL.sub("\\1\u00a0…\u00a0", text.replace(" %", "\u00a0%"))


def embedded(spec: Any) -> Any:
    """A chart as JSON that can be put inside a script element."""
    from markupsafe import Markup

    text = json.dumps(finite(spec), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.translate(ESCAPES))  # noqa: S704, nothing that HTML gives a meaning is left


def _policy(*scripts: str) -> str:
    """Nothing may be loaded; only these very scripts may run."""
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"


@cache
def bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, which cannot end the element that holds it."""
    return (files("openloop.reporting") / "vega" / "bundle.js").read_text(encoding="utf-8")


def _resource(name: str) -> str:
    return (files("openloop.reporting") / "templates" / name).read_text(encoding="utf-8")
