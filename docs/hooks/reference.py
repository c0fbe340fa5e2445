"""The API reference: each public name is documented by mkdocstrings, under a heading that has its state."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page
from states import states

STATES = Path(__file__).resolve().parents[1] / "stability.md"
# Modules that `import openloop as ol` offers under a shorter name than their path.
SHORT = {
    "data.datasets": "datasets", "data.simulate": "simulate", "estimators.bounds": "bounds",
    "audits.paradox": "paradox", "audits.rankings": "rankings", "reporting.figures": "figures",
}  # fmt: skip
NAME = re.compile(r'<h2 id="openloop\.[^"]+" class="doc doc-heading">\s*(ol\.[\w.]+)')
ENTRY = re.compile(r"^::: openloop\.(\S+)$", re.MULTILINE)


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Give every entry of a reference page its heading."""
    if not page.file.src_uri.startswith("reference/"):
        return markdown
    known = states(STATES.read_text(encoding="utf-8"))
    return ENTRY.sub(lambda entry: asked(entry[1], known), markdown)


def on_page_content(html: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put the state behind each name, and leave members out of the table of contents."""
    if not page.file.src_uri.startswith("reference/"):
        return html
    for title in page.toc:
        for name in title.children:
            name.children = []
    known = states(STATES.read_text(encoding="utf-8"))
    return NAME.sub(lambda found: found[0] + label(known[found[1]]), html)


def label(state: str) -> str:
    """The state of a name, which leads to what it means."""
    return f' <a class="status {state}" href="../stability.html">{state}</a>'


def asked(path: str, known: dict[str, str]) -> str:
    """What mkdocstrings is asked for `openloop.path`: with the name that users write for a heading."""
    module, _, last = path.rpartition(".")
    name = ".".join(filter(None, ("ol", SHORT.get(module, module), last)))
    if name not in known:
        raise PluginError(f"{name} has no state; give it one in {STATES.name}, or take it out of the reference.")
    return f"::: openloop.{path}\n    options:\n      toc_label: {name}\n      heading: {name}\n"
