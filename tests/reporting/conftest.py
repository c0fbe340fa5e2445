"""The audit that is drawn and written, made by the first test that asks for it."""

from __future__ import annotations

import pytest

from openloop.audits.results import Audit
from openloop.core.comparison import Comparison
from openloop.reporting.sections import Subject
from tests.audit_cases import comparison, small_audit


@pytest.fixture(scope="session")
def audit() -> Audit:
    return small_audit()


@pytest.fixture(scope="session")
def result(audit: Audit) -> Comparison:
    return audit.result


@pytest.fixture(scope="session")
def subject(audit: Audit) -> Subject:
    return Subject.of(audit)


@pytest.fixture(scope="session")
def bare() -> Subject:
    """A comparison that nobody audited."""
    return Subject.of(comparison())
