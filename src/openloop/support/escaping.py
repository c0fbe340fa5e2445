"""`visible`: text from data made safe for a terminal, without control characters."""

from __future__ import annotations

import re

# Control characters, C1 among them; soft hyphens; marks of direction, of which the overrides turn a name around; spaces
# and joiners without width; separators of lines; halves of characters; tags and beams. The two joiners that Persian,
# Indic scripts and emoji are written with stay: U+200C and U+200D move nothing.
OBEYED = (
    r"\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
ANY, IN_LINES = f"[{OBEYED}]", rf"(?!\n)[{OBEYED}]"
BREAKS = str.maketrans({"\r": " ", "\n": " "})


def visible(text: str, *, lines: bool = False) -> str:
    """The text with such characters written out, as Python writes them; `lines`: of one that has several on purpose."""
    return re.sub(IN_LINES if lines else ANY, lambda found: repr(found[0])[1:-1], text)


def on_one_line(text: str) -> str:
    """The same with a space for each end of a line."""
    return visible(text.translate(BREAKS))


def json_safe(text: str) -> str:
    r"""JSON with such characters as \u escapes, which mean the same: what it says does not depend on who shows it."""
    return re.sub(IN_LINES, _escape, text)


def _escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
