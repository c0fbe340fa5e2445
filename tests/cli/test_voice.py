"""Errors of the library in the words of a command."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from openloop.cli.voice import for_command


def command(*options, **flags):
    """A command with options, some of which are called otherwise than their parameters."""
    flags |= {name: f"--{name.replace('_', '-')}" for name in options}
    return SimpleNamespace(params=[SimpleNamespace(name=name, opts=[flag]) for name, flag in flags.items()])


COMMAND = command("user", "rating", "users", "items", "bias_reg", "reg", "seed", metrics="--metric")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("no column 'stars' for rating=. Did you mean 'x'?", "no column 'stars' for --rating. Did you mean 'x'?"),
        ("rating=7 is not a position of its 3 columns.", "--rating 7 is not a position of its 3 columns."),
        ("users=0: a grid has at least one.", "--users 0: a grid has at least one."),
        ("f: not finite; raise bias_reg=, or drop rows.", "f: not finite; raise --bias-reg, or drop rows."),
        ("MF: rng must be a seed; pass rng=0.", "MF: rng must be a seed; pass --seed 0."),
        ("with reg=0.1; pass a smaller reg=.", "with --reg 0.1; pass a smaller --reg."),
        ('none with reg=0; pass a larger one, or seed="7".', "none with --reg 0; pass a larger one, or --seed 7."),
        ("times; pass rating= with it, or rating=False.", "times; pass --rating with it, or --no-rating."),
        ("rankings only; name metrics= such as mae.", "rankings only; name --metric such as mae."),
        # Another sentence is no part of a way out.
        ("b: has no ranks; pass complete=True. a of b is not defined.", "b: has no ranks. a of b is not defined."),
        # Ways out that the command does not have.
        ("twice; pass duplicates='last', 'first' or 'mean', or drop one.", "twice; drop one."),
        ("line 3; repair that line or pass separator=.", "line 3; repair that line."),
        ("nothing divides it; pass separator=.", "nothing divides it."),
        (
            "none found; pass user= with its name. (No header, divided by ';'; header= and separator= say otherwise.)",
            "none found; pass --user with its name. (No header, divided by ';'.)",
        ),
        (
            "unknown: 7; pass unknown='drop' to leave those rows out, or a vocabulary that has them.",
            "unknown: 7; raise --users and --items.",
        ),
        # What is no keyword stays.
        ("balanced: needs a sample; write balanced=SAMPLE.", "balanced: needs a sample; write balanced=SAMPLE."),
        ("nobody said; pass users=, balanced=SAMPLE, or 7.", "nobody said; pass --users, balanced=SAMPLE, or 7."),
        ("data/user=1/log.csv: no rows; check it.", "data/user=1/log.csv: no rows; check it."),
        ("user=1/log.csv: no rows.", "user=1/log.csv: no rows."),
        ("column 'user=' is odd; rename it.", "column 'user=' is odd; rename it."),
        ("unknown, as '7; pass x=1, or ' and \"y's; z=2\".", "unknown, as '7; pass x=1, or ' and \"y's; z=2\"."),
        (
            "no column '; rating=False' in the log's; pass user=.",
            "no column '; rating=False' in the log's; pass --user.",
        ),
        (r"odd: 'a\'; seed=1 '; pass unknown=.", r"odd: 'a\'; seed=1 '."),
        ("U = 3 and p=0.5 differ.", "U = 3 and p=0.5 differ."),
    ],
)
def test_keywords_become_options_and_other_ways_out_are_left(said, told):
    assert for_command(said, COMMAND) == told


def test_an_option_of_the_command_is_kept_as_a_way_out():
    said = "unknown: 7; pass unknown='drop' to leave those rows out, or a vocabulary that has them."
    assert for_command(said, command("unknown", "users")) == "unknown: 7; pass --unknown drop to leave those rows out."


def test_without_a_command_only_remedies_without_keywords_stay():
    assert for_command("no: 1; pass user= with its name.", None) == "no: 1."
