"""The API reference: a heading with its state before each public name, which mkdocstrings documents."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

STATES = Path(__file__).resolve().parents[1] / "stability.md"
# Modules that `import openloop as ol` offers under a shorter name than their path.
SHORT = {
    "data.datasets": "datasets", "data.simulate": "simulate", "estimators.bounds": "bounds",
    "audits.paradox": "paradox", "audits.rankings": "rankings", "reporting.figures": "figures",
}  # fmt: skip
ENTRY = re.compile(r"^::: openloop\.(\S+)$", re.MULTILINE)


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Give every entry of a reference page its heading."""
    if not page.file.src_uri.startswith("reference/"):
        return markdown
    known = states(STATES.read_text(encoding="utf-8"))
    return ENTRY.sub(lambda entry: heading(entry[1], known) + entry[0], markdown)


def heading(path: str, known: dict[str, str]) -> str:
    """The heading of `openloop.path`, with the name that users write."""
    module, _, last = path.rpartition(".")
    name = ".".join(filter(None, ("ol", SHORT.get(module, module), last)))
    if name not in known:
        raise PluginError(f"{name} has no state; give it one in {STATES.name}, or take it out of the reference.")
    label = f'<a class="status {known[name]}" href="../stability.html">{known[name]}</a>'
    return f"## `{name}` {label} {{ #{name} data-toc-label='{name}' }}\n\n"


def states(text: str) -> dict[str, str]:
    """The state of each public name, from the table under "## Every name"."""
    table = text.partition("## Every name\n")[2]
    found = {}
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 3 and cells[0].startswith("`"):
            home = cells[0].strip("`")
            for state, names in zip(("stable", "provisional"), cells[1:], strict=True):
                found |= {f"{home}.{name}": state for name in re.findall(r"`([^`]+)`", names)}
    return found
