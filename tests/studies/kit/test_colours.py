"""Methods that one figure shows have different colours."""

from __future__ import annotations

import pytest

from openloop.studies.kit.colours import COLOUR

FIGURES = {
    "accuracy": ("IPS", "SNIPS", "Naive"),
    "learned propensities": ("IPS-NB", "SNIPS-NB", "IPS-KNOWN", "Naive"),
    "factorisation": ("MF-Naive", "MF-IPS", "MF-IPS-NB"),
    "climbing": ("MF-AUC", "MF-ADG", "SVD", "popularity"),
    "methods": ("holdout", "ips", "stratified", "as coded", "as printed"),
}


@pytest.mark.parametrize("figure", FIGURES)
def test_methods_of_a_figure_are_told_apart(figure):
    colours = [COLOUR[name] for name in FIGURES[figure]]
    assert len(set(colours)) == len(colours)
