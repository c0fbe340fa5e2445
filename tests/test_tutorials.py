"""Each tutorial runs from top to bottom, and what its text quotes is what it prints."""

from __future__ import annotations

import re
from contextlib import contextmanager

import altair as alt
import pytest

from tests.tutorials import FOLDER, SOURCES, Session, command_output, commands, fences, measured, quotes

pytestmark = pytest.mark.slow


@contextmanager
def usual_charts():
    """Tutorials choose how charts are shown; afterwards it is as it was."""
    renderer = alt.renderers.active
    try:
        yield
    finally:
        alt.renderers.enable(renderer)


@pytest.fixture(scope="module", params=SOURCES, ids=lambda path: path.stem)
def session(request, tmp_path_factory):
    """A tutorial that was run in an empty folder, which is the current one as long as tests look at it."""
    with pytest.MonkeyPatch.context() as patch, usual_charts():
        patch.delenv("OPENLOOP_TUTORIAL", raising=False)
        patch.chdir(tmp_path_factory.mktemp(request.param.stem))
        yield Session(request.param).run()


def test_a_tutorial_quotes_what_it_printed_above(session):
    quoted = [(cell, quote, above) for cell, above in session.texts for quote in quotes(cell)]
    assert quoted
    for cell, quote, above in quoted:
        assert quote in above, f"{session.path.name}:{cell.line} quotes what was not printed above"


def test_numbers_in_its_sentences_were_printed_above(session):
    for cell, above in session.texts:
        for number in measured(cell):
            assert number in above, f"{session.path.name}:{cell.line} says {number}, which was not printed above"


def test_one_of_its_quotations_is_a_verdict(session):
    headlines = [audit.verdict.headline for audit in session.audits if audit.verdict.supported]
    told = [quote for cell, _ in session.texts for quote in quotes(cell)]
    assert any(quote in headline for quote in told for headline in headlines), headlines


def test_its_commands_print_what_it_says(session):
    shown = list(commands(session.path))
    assert shown
    for line, expected in shown:
        code, output = command_output(line)
        assert code in (0, 3), output  # a verdict, or an answer that is none
        for text in expected:
            assert text in output, " ".join(line)


def test_its_links_lead_somewhere(session):
    targets = [target for cell, _ in session.texts for target in re.findall(r"\]\(([^)#:]+)[^)]*\)", cell.text)]
    assert targets
    for target in targets:
        assert (session.path.parent / target).exists(), target


def test_the_same_numbers_come_from_spark(tmp_path, monkeypatch, spark):
    monkeypatch.setenv("OPENLOOP_TUTORIAL", "full")
    monkeypatch.chdir(tmp_path)
    with usual_charts():
        session = Session(FOLDER / "laptop-to-cluster.py").run()
    assert session.printed.count("on Spark") == 2  # a line for each model, after its numbers were compared


@pytest.mark.filterwarnings("ignore:OpenBLAS is configured:RuntimeWarning")  # which implicit says of any BLAS
def test_a_model_of_implicit_is_judged_as_the_tutorial_says(tmp_path, monkeypatch, implicit, capsys):
    monkeypatch.chdir(tmp_path)
    with usual_charts():
        session = Session(FOLDER / "which-model.py").run()
    (code,) = fences(session.path, "python")
    exec(compile(code, str(session.path), "exec"), session.names)  # noqa: S102 (this repository's own)
    assert "als beats popular on recall@10" in capsys.readouterr().out
