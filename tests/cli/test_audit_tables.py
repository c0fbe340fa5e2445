"""An audit on a terminal: the order of its parts, and of the pairs."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from rich.console import Console

import openloop as ol
from openloop.audits.rules import RATINGS
from openloop.cli.audit_tables import MOST_PAIRS, printed
from tests.examples import small_world
from tests.facts import facts

WORLD = small_world(users=80)
LOG = WORLD.observe(1)


def shown(found, command=None) -> str:
    stream = io.StringIO()
    terminal = Console(file=stream, width=100, highlight=False, markup=False)
    for part in printed(found, command):
        terminal.print(part)
    return stream.getvalue()


@pytest.fixture(scope="module")
def many():
    """More pairs than a terminal should show."""
    models = {f"m{n}": WORLD.ratings + 0.1 * (n + 1) for n in range(8)}
    return ol.audit(models, LOG, metrics=["mae", "mse"], estimators=["snips", "naive"], strata=())


def test_verdict_leaderboard_and_pairs_come_before_other_metrics(many):
    text = shown(many)
    parts = [many.verdict.headline[:40], "mae, lower", "pairs by snips of mae, per cell", "mse, lower"]
    assert [text.index(part) for part in parts] == sorted(text.index(part) for part in parts)


def test_pairs_have_the_better_model_first_and_the_rest_is_counted(many):
    text = shown(many)
    assert f"{MOST_PAIRS} of 28" in text
    lines = [line.split()[:3] for line in text.splitlines() if " − " in line and line.startswith("m")]
    assert lines[:3] == [["m0", "−", "m1"], ["m0", "−", "m2"], ["m0", "−", "m3"]]
    assert len(lines) == MOST_PAIRS


def test_estimates_that_need_care_are_marked_and_explained():
    few = LOG.take(LOG.user < 12)
    models = {name: WORLD.predictions[name] for name in list(WORLD.predictions)[:2]}
    text = shown(ol.audit(models, few, metrics=["mae"], estimators=["snips"], strata=()))
    assert re.search(facts("! snips-mae, naive-mae", "12 users"), text)


def test_what_was_not_computed_is_told(many):
    text = shown(replace(many, not_computed={"bounds against gamma": "it sorts the rows"}))
    assert "not computed: bounds against gamma: it sorts the rows" in text
    assert "not computed" not in shown(many)


def test_estimands_answers_and_what_turns_an_order_are_shown(many):
    text = shown(many)
    assert "snips per cell; naive on what was seen" in text
    assert re.search(r"a − b +difference +95 %, unadjusted +Holm p +Γ\* +ρ\* +answer", text)
    line = next(line for line in text.splitlines() if line.startswith("m0 − m1"))
    assert line.rstrip().endswith(many.verdict.pair("m0", "m1").level)
    pair = many.contrasts["mae", "snips"]
    tilted = replace(many, contrasts={("mae", "snips"): tuple(replace(c, rho=1.7, kappa=0.4) for c in pair)})
    assert re.search(r"Γ\* +ρ\* +κ\* +answer", shown(tilted))
    assert re.search(r"1\.7× +40 % ", shown(tilted))


def test_sentences_of_the_verdict_name_options(many):
    said = replace(many, verdict=replace(many.verdict, sentences=("If it runs now, name it with running=, please.",)))
    command = SimpleNamespace(params=[SimpleNamespace(name="running", opts=["--running"])])
    assert "name it with --running, please" in shown(said, command)
    assert "name it with running=, please" in shown(said)


def test_the_remedy_closes_the_verdict_in_the_words_of_the_command(many):
    verdict = replace(many.verdict, level="none", remedy=f"What may help: {RATINGS}.")
    text = " ".join(shown(replace(many, verdict=verdict)).split())
    assert "200 ratings of cells drawn at random, as --propensity balanced=sample.csv." in text
