"""Pictures drawn for these pages become part of them, so that they take the page's light or dark colours."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

DOCS = Path(__file__).resolve().parents[1]
WIDE = 600  # beyond which a phone would make the text too small
PICTURE = re.compile(r'<img alt="([^"]*)" src="(?:\.\./)*(pictures/[\w-]+\.svg)"\s*/?>')


def on_page_content(html: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put each picture in place of the image that names it."""
    return PICTURE.sub(lambda found: inlined(found[2]), html)


def inlined(source: str) -> str:
    """The picture as HTML: a `figure` may not stand in a paragraph, but a `span` may."""
    drawing = (DOCS / source).read_text(encoding="utf-8")
    width = float(re.search(r'viewBox="0 0 (\d+)', drawing)[1])
    wide = " wide" if width > WIDE else ""
    return f'<span class="picture{wide}" data-search-exclude>{drawing}</span>'
