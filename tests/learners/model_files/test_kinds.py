"""Names to classes, and which models a file can hold."""

from __future__ import annotations

import pytest

from openloop import learners
from openloop.errors import InputError
from openloop.learners.model_files.kinds import SAVED, is_saved, kind
from tests.facts import facts


@pytest.mark.parametrize("name", SAVED)
def test_a_name_gives_its_class(name):
    assert kind(name) is getattr(learners, name)


@pytest.mark.parametrize("name", ["MFF", "load", "__import__", None, 3])
def test_other_names_are_refused(name):
    with pytest.raises(InputError, match=facts(repr(name), "learner")):
        kind(name)


def test_a_subclass_of_another_program_cannot_be_saved():
    class MF(learners.MF):
        """Of the same name."""

    assert is_saved(learners.MF())
    assert not is_saved(MF())
    assert not is_saved("MF")
