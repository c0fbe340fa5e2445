"""Next steps: every remedy as a command line and as a call that both would be accepted, and what was asked kept."""

from __future__ import annotations

import ast
import inspect
import shlex
from dataclasses import replace

import pytest
import typer

import openloop as ol
from openloop.audits import rules
from openloop.audits.answers import PairAnswer, Reason, Verdict
from openloop.audits.next_steps import CHANGES, NextStep
from openloop.cli import app
from openloop.core.impressions import Impressions
from tests.audit_cases import comparison, small_audit

ASKED = "openloop audit 'my log.csv' ones=a.csv 'fours=b c.csv' rotate=c.csv --propensity popularity --metric mae"
OPTIONS = {o for p in typer.main.get_command(app).commands["audit"].params for o in (*p.opts, *p.secondary_opts)}
KEYWORDS = inspect.signature(ol.audit).parameters


def found(*remedies, command=None, level="none", pairs=(), leader=None):
    """An audit that these remedies would help."""
    reasons = tuple(Reason(code="x", text=str(n), remedy=r) for n, r in enumerate(remedies))
    verdict = Verdict(level=level, headline="", reasons=reasons, pairs=tuple(pairs), leader=leader)
    audit = small_audit()
    return replace(audit, verdict=verdict, setting=replace(audit.setting, command=command))


def step(remedy, command=None, **given) -> NextStep:
    (only,) = found(remedy, command=command, **given).next_steps
    return only


def test_every_remedy_has_a_command_but_a_model_that_has_to_be_trained_first():
    assert set(rules.REMEDIES) - set(CHANGES) == {rules.UNSEEING}
    assert step(rules.UNSEEING, ASKED) == NextStep(words=rules.UNSEEING)


@pytest.mark.parametrize("remedy", CHANGES)
def test_every_command_has_options_that_there_are_and_every_word_in_capitals_is_explained(remedy):
    asked = f"{ASKED} --missing drop"
    one = step(remedy, asked)
    words = shlex.split(one.command)
    assert words[:2] == ["openloop", "audit"]
    assert {word for word in words if word.startswith("--")} <= OPTIONS
    for word in ("NEW_LOG", "COLUMN", "SAMPLE", "MODEL"):
        assert (word in one.command) == (word in one.where)
    assert one.command != asked


@pytest.mark.parametrize("remedy", CHANGES)
def test_every_call_has_keywords_that_there_are(remedy):
    one = step(remedy)
    call = ast.parse(one.command).body[0].value
    assert isinstance(call, ast.Call)
    assert {k.arg for k in call.keywords} <= set(KEYWORDS)
    reads = [c for c in ast.walk(call) if isinstance(c, ast.Call) and ast.unparse(c.func) == "ol.read"]
    known = {*inspect.signature(ol.read).parameters, *Impressions.__dataclass_fields__}
    assert {k.arg for read in reads for k in read.keywords if k.arg is not None} <= known
    for word in ("NEW_LOG", "SAMPLE", "MODEL"):
        assert (word in one.command) == (word in one.where)


def test_steps_come_the_cheapest_first_and_once():
    words = [one.words for one in found(rules.LONGER, rules.RARE, rules.LONGER, rules.ESTIMATOR).next_steps]
    assert words == [rules.ESTIMATOR, rules.RARE, rules.LONGER]


def test_the_own_command_is_kept_and_quoted():
    asked = f"{ASKED} --min-item-rows 5 --no-check"
    command = step(rules.RARE, asked).command
    assert command == asked.replace("--min-item-rows 5 --no-check", "--no-check --min-item-rows 30")
    assert "'my log.csv'" in command
    assert "'fours=b c.csv'" in command


def test_an_option_that_is_given_several_times_is_replaced_as_a_whole():
    command = step(rules.ESTIMATOR, f"{ASKED} --estimator naive --estimator ips --level 0.9").command
    assert command == f"{ASKED} --level 0.9 --estimator snips"


def test_weights_are_balanced_on_top_of_the_model_that_was_asked_for():
    assert step(rules.RATINGS, ASKED).command.endswith("--metric mae --propensity balanced:popularity=SAMPLE")
    same = ASKED.replace("popularity", "logistic")
    assert step(rules.RATINGS, same).command.endswith("--metric mae --propensity balanced=SAMPLE")
    other = ASKED.replace("popularity", "p") + " --assumes logistic"
    assert step(rules.RATINGS, other).command.endswith("--metric mae --propensity balanced=SAMPLE")


@pytest.mark.parametrize("remedy", CHANGES)
def test_rows_stay_on_disk_where_the_command_can_stream_them(remedy):
    words = shlex.split(step(remedy, f"{ASKED} --stream").command)
    held = "--min-item-rows" in words or "=SAMPLE" in words[words.index("--propensity") + 1]
    assert ("--stream" in words) is not held


def test_less_clipping_drops_the_floor_of_a_command_and_names_that_of_a_call():
    asked = step(rules.UNCUT, f"{ASKED} --floor 0.05 --quantile 0.1")
    assert asked.command == f"{ASKED} --estimator snips"
    assert asked.where == ""
    call = step(rules.UNCUT)
    assert "without a floor" in call.where
    assert call.where.partition(" ")[0] in call.command


def test_fewer_models_are_the_two_that_may_be_told_apart():
    few = Reason(code="untold", text="", remedy=rules.FEWER)
    pairs = [
        PairAnswer(a=a, b=b, better=None, level="none", estimand="per cell", reasons=(reason,))
        for a, b, reason in (("ones", "fours", replace(few, remedy=rules.LONGER)), ("rotate", "ones", few))
    ]
    command = step(rules.FEWER, f"{ASKED} --baseline fours", pairs=pairs).command
    assert command == ASKED.replace(" 'fours=b c.csv'", "")
    lists = "--metric overlap@5 --running fours --metric novelty@5"
    assert step(rules.FEWER, f"{ASKED} {lists}", pairs=pairs).command == f"{command} --metric novelty@5"
    assert "('ones', 'rotate')" in step(rules.FEWER, pairs=pairs).command
    order = comparison().ranking("mae", "snips")
    assert repr(tuple(order[:2])) in step(rules.FEWER).command  # where no pair says so


def test_a_demonstration_gets_the_call():
    assert step(rules.RARE, "openloop demo --users 60").command.startswith("ol.audit(")


def test_what_was_found_is_confirmed_by_a_test_of_its_size():
    audit = found(level="verdict", leader="ones")
    (one,) = audit.next_steps
    rival = audit.result.ranking("mae", "snips")
    closest = next(m for m in rival if m != "ones")
    contrast = audit.contrast("ones", closest)
    needed = ol.plan(contrast, power=0.8)
    assert f"{needed.users_per_arm:,} users per arm" in one.words
    assert one.command == f"ol.plan(found.contrast('ones', {closest!r}, metric='mae', estimator='snips'), power=0.8)"
    assert found(level="verdict", leader="ones", command=ASKED).next_steps[0].command == ""
    assert found(level="none").next_steps == ()


def test_a_long_command_has_lines_that_a_shell_joins():
    one = step(rules.RARE, ASKED)
    lines = one.lines(50)
    assert len(lines) > 2
    assert max(map(len, lines)) <= 50
    assert all(line.endswith(" \\") for line in lines[:-1])
    assert shlex.split("\n".join(lines).replace("\\\n", "")) == shlex.split(one.command)


def test_a_call_is_one_line_and_no_command_is_none():
    assert step(rules.RARE).lines(20) == [step(rules.RARE).command]
    assert NextStep(words="wait").lines(20) == []


def test_steps_are_in_the_json():
    assert found(rules.RARE, command=ASKED).records()["next_steps"] == [
        {"words": rules.RARE, "command": f"{ASKED} --min-item-rows 30", "where": ""}
    ]
