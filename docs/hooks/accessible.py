"""What the theme leaves out for readers on a phone or without a mouse: names of parts, and where a cell may break."""

from __future__ import annotations

import re

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

SEARCH = 'data-md-component="search" role="dialog"'
CELL = re.compile(r"<td[^>]*>.*?</td>", re.DOTALL)
TEST = re.compile(r"<code>[^<]*::[^<]*</code>(?:, (?=<code>))?")


def on_page_content(html: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Numbers in cells keep their errors beside them, and names of tests break between words."""
    return CELL.sub(lambda found: TEST.sub(broken, found[0]).replace(" ± ", "\u00a0±\u00a0"), html)


def broken(found: re.Match[str]) -> str:
    """The name of a test, which may break after a folder, a file or a word; the next is on a line of its own."""
    name, code, comma = found[0].partition("</code>")
    return re.sub(r"(::|[/_])", r"\1<wbr>", name) + code + comma.replace(" ", "<br>")


def on_post_page(output: str, *, page: Page, config: MkDocsConfig) -> str:
    """The dialog of the search gets a name."""
    return output.replace(SEARCH, f'{SEARCH} aria-label="Search"')
