"""What `openloop report` does: one audit read back from its JSON, or the changes between two, and their page."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from openloop.audits.change_lists import Changes
from openloop.audits.restoring import AGAIN, audit_in
from openloop.audits.results import Audit
from openloop.errors import FormatError, OpenloopError, quoted
from openloop.reporting.html import report

# What code meets that trusts its nouns, where a file that was changed by hand contradicts itself.
CONTRADICTED = (LookupError, ArithmeticError, ValueError, TypeError)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRequest:
    """The JSON of an audit, and of a newer one where both are to be compared."""

    audit: str
    newer: str | None = None

    @property
    def inputs(self) -> list[str]:
        """The files that are read."""
        return [self.audit] if self.newer is None else [self.audit, self.newer]


def found_in(asked: ReportRequest) -> Audit | Changes:
    """The audit, or what changed since it."""
    old = audit_in(asked.audit)
    if asked.newer is None:
        return old
    new = audit_in(asked.newer)
    with consistent(asked):
        return new.since(old)


def write_page(found: Audit | Changes, path: str, asked: ReportRequest) -> None:
    """The page, whole or not at all."""
    with consistent(asked):
        report(found, path)


@contextmanager
def consistent(asked: ReportRequest) -> Generator[None]:
    """Refuse files whose parts each are what they should be, and contradict each other."""
    try:
        yield
    except (OpenloopError, UnicodeError):
        raise
    except CONTRADICTED as error:
        files, told = " and ".join(asked.inputs), f"{type(error).__name__} {quoted(str(error))}"
        raise FormatError(f"{files}: parts of an audit must fit together, these do not ({told}); {AGAIN}.") from error
