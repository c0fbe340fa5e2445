"""What a refusal must tell: names, values and remedies, in whatever words."""

from __future__ import annotations

import re


def facts(*parts: object) -> str:
    """A pattern for `pytest.raises(match=)` that finds every part somewhere in the message, in any order."""
    return "(?s)" + "".join(f"(?=.*{_standing_alone(str(part))})" for part in parts)


def _standing_alone(text: str) -> str:
    """3 is not found in 13, nor "user" in "users"."""
    before = r"(?<![\w.])" if text[:1].isalnum() else ""
    after = r"(?!\w|\.\d)" if text[-1:].isalnum() else ""
    return before + re.escape(text) + after
