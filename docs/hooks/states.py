"""Which public names are stable and which provisional, as docs/stability.md says; needs nothing but Python."""

from __future__ import annotations

import re


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
