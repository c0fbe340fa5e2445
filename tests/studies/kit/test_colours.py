"""Methods that one figure shows have different colours."""

from __future__ import annotations

import pytest

from openloop.learners.zoo_models import FAMILIES
from openloop.reporting.style import series
from openloop.studies.kit.colours import COLOUR

FIGURES = {
    "accuracy": ("IPS", "SNIPS", "Naive"),
    "learned propensities": ("IPS-NB and SNIPS-NB", "IPS-KNOWN", "Naive"),
    "factorisation": ("MF-Naive", "MF-IPS", "MF-IPS-NB"),
    "climbing": ("MF-AUC", "MF-ADG", "SVD", "popularity"),
    "methods": ("holdout", "ips", "stratified", "as coded", "as printed"),
    "strata": ("as coded", "as printed", "ours", "ours, training items ranked"),
}


@pytest.mark.parametrize("figure", FIGURES)
def test_methods_of_a_figure_are_told_apart(figure):
    colours = [COLOUR[name] for name in FIGURES[figure]]
    assert len(set(colours)) == len(colours)


def test_families_of_models_are_told_apart_by_colour_or_shape():
    drawn = series("family", FAMILIES, COLOUR)
    looks = list(zip(*(drawn[name].to_dict()["scale"]["range"] for name in ("color", "shape")), strict=True))
    assert len(set(looks)) == len(FAMILIES) == 14
