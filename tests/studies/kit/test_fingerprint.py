"""The digest of a trial's code changes with what it runs, and with nothing else."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from openloop.errors import InputError
from openloop.studies.kit import fingerprint
from openloop.studies.kit.fingerprint import TEXTS, code_digest
from openloop.studies.lim2015 import protocol
from openloop.studies.schnabel2016 import estimates, factorisation
from tests.facts import facts

HELPERS = """
FACTOR = {factor}
NAMES = {names}

class Scale:
    size = 1
    def times(self, x):
        return {method}

def outer(x):
    return inner(x)

def inner(x):
    return {inner}
"""
TRIAL = """
import numpy as np
import helpers
from helpers import FACTOR, NAMES, Scale, outer

WAYS = {{"way": outer}}
{extra}

def trial(given, *, n={default}):
    {comment}
    if n in {{"a", "b", "c"}}:
        return {{}}
    return {{"y": [helpers.outer(FACTOR) + Scale().times(v) + len(NAMES) for v in range(n)] + [WAYS["way"](1)]}}

def unused(x):
    return {unused}
"""
PLAIN = {
    "factor": "1", "names": "('a',)", "method": "x", "inner": "x", "extra": "", "default": "2", "comment": "# so",
    "unused": "x",
}  # fmt: skip


@pytest.fixture
def made(tmp_path, monkeypatch):
    """The digest of a trial whose modules have these parts."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def digest(**parts):
        values = PLAIN | parts
        for name, text in (("helpers", HELPERS), ("trials_of_mine", TRIAL)):
            file = tmp_path / f"{name}.py"
            file.write_text(text.format(**values))
            spec = importlib.util.spec_from_file_location(name, file)
            module = importlib.util.module_from_spec(spec)
            monkeypatch.setitem(sys.modules, name, module)
            exec(compile(file.read_text(), str(file), "exec"), module.__dict__)  # noqa: S102, not from a stale cache
        return code_digest(sys.modules["trials_of_mine"].trial)

    return digest


@pytest.mark.parametrize(
    "change",
    [
        {"factor": "2"}, {"names": "('a', 'b')"}, {"method": "x + self.size"}, {"inner": "x + 0"}, {"default": "3"},
        {"names": "__import__('numpy').arange(3)"},
    ],
)  # fmt: skip
def test_other_code_that_the_trial_runs_is_another_digest(made, change):
    assert made(**change) != made()


@pytest.mark.parametrize("change", [{"comment": "# another word"}, {"unused": "x + 1"}, {"extra": "MORE = 3"}])
def test_words_and_code_that_it_does_not_run_change_nothing(made, change):
    assert made(**change) == made()


def test_a_constant_that_has_no_fixed_text_is_refused(made):
    with pytest.raises(InputError, match=facts("constants", "<list_iterator")):
        made(factor="iter([])")


@pytest.fixture
def touched(monkeypatch):
    """Whether another text of a module makes a trial another one."""

    def changes(trial, module):
        before = code_digest(trial)
        with monkeypatch.context() as patch:
            if module in TEXTS:
                patch.setitem(TEXTS, module, TEXTS[module] + "# touched")
            return code_digest(trial) != before

    return changes


COMPUTES_WITH = {
    estimates.with_known_propensities: (
        "core.moments", "data.simulate", "estimators.weighted", "kernels.ranking", "metrics.ranking",
    ),
    factorisation.errors_of_fit: (
        "selection.selecting", "evaluation", "core.estimate", "data.splitting", "estimators.weighted",
        "kernels.least_squares", "learners.mf", "learners.solvers.als", "propensity.naive_bayes", "moments.terms",
        "support.arguments",
    ),
    protocol.trial: ("learners.pairwise", "kernels.violators", "learners.pure_svd", "metrics.ranking"),
}  # fmt: skip
COMPUTES_WITHOUT = (
    "audits.verdict", "cli.reproduce", "commands.doctor", "data.datasets.fetching", "errors",
    "learners.model_files.saving", "propensity.logistic", "reporting.rendering", "reporting.style", "studies.kit.page",
    "studies.kit.results", "support.atomic", "support.progress", "support.wording",
)  # fmt: skip


@pytest.mark.parametrize("trial", COMPUTES_WITH, ids=lambda trial: trial.__name__)
def test_modules_that_a_trial_computes_with_make_it_another_and_others_do_not(touched, trial):
    for module in COMPUTES_WITH[trial]:
        assert touched(trial, f"openloop.{module}"), module
    for module in COMPUTES_WITHOUT:
        assert Path(fingerprint.PACKAGE, *module.split(".")).with_suffix(".py").exists(), module
        assert not touched(trial, f"openloop.{module}"), module


def test_the_digest_is_the_same_in_every_process():
    program = (
        "from openloop.studies.kit.fingerprint import code_digest\n"
        "from openloop.studies.jadidinejad2021.models import trial\nprint(code_digest(trial))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed, "PATH": ""}, capture_output=True, text=True,
            check=True, cwd=Path(__file__).parents[3],
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(found) == 1
