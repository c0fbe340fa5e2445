"""An audit from files: they are read, the models are judged, and what only their reader knows is added."""

from __future__ import annotations

import time
from dataclasses import replace

from openloop.audits.auditing import conduct
from openloop.audits.results import Audit
from openloop.commands.audit.inputs import gather
from openloop.commands.audit.request import AuditInputs, AuditRequest
from openloop.errors import InputError
from openloop.support.progress import Step, silent

READING = 0.4  # of the work


def run(wanted: AuditRequest, command: str, step: Step = silent) -> Audit:
    """The audit that was asked for; `command` is the command line that asks for it again."""
    began = time.perf_counter()
    try:
        inputs = gather(wanted, _part(step, 0.0, READING))
        found = conduct(inputs.models, inputs.log, inputs.propensities, inputs.asked, _part(step, READING, 1.0))
    except OSError as error:
        name = error.filename or wanted.log
        raise InputError(
            f"{name}: cannot be read ({error.strerror or error}); check it and its permissions."
        ) from error
    return _with_sources(found, inputs, command, time.perf_counter() - began)


def _part(step: Step, low: float, high: float) -> Step:
    """A step of one part of the work."""
    return lambda what, done: step(what, low + (high - low) * done)


def _with_sources(found: Audit, inputs: AuditInputs, command: str, seconds: float) -> Audit:
    words = {"log": inputs.about_log, "propensity": inputs.about_propensity, "command": command}
    setting = replace(found.setting, **words, seconds=seconds)
    return replace(found, setting=setting, notes=tuple(dict.fromkeys((*inputs.notes, *found.notes))))
