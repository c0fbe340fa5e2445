"""Commands as another user, to whom folders can be read only: permissions do not bind root."""

from __future__ import annotations

import os
import shutil

NOBODY = 65534


def as_another() -> list[str]:
    """Words before a command that make it another user's; it may still read all, as the interpreter may be in /root.

    Whoever is not root is that other user already.
    """
    if os.geteuid() != 0:
        return []
    program = shutil.which("setpriv")
    assert program is not None, "setpriv (of util-linux) gives up root's rights"
    who = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    return [program, *who, "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search", "--"]


def another() -> int:
    """Who that is."""
    return NOBODY if os.geteuid() == 0 else os.geteuid()
