"""Schnabel et al. 2016: recommendations as treatments, evaluated and learned in spite of selection bias."""

from __future__ import annotations

from openloop.studies.kit.running import Item, Paper
from openloop.studies.schnabel2016 import (
    bounds,
    figure1,
    figure2,
    figure3left,
    figure3right,
    figure4,
    table1,
    table2,
)
from openloop.studies.schnabel2016.published import PUBLISHED, printed_tables1, printed_tables2

__all__ = ["ITEMS", "PAPER", "PUBLISHED"]

PAPER = Paper(
    title="Recommendations as Treatments: Debiasing Learning and Evaluation",
    authors="T. Schnabel, A. Swaminathan, A. Singh, N. Chandak, T. Joachims",
    year=2016,
    venue="ICML",
    link="https://arxiv.org/abs/1602.05352",
)

ML = ("ml-100k",)

ITEMS = (
    Item(name="figure1", title="The Movie-Lovers example", function=figure1.figure1, minutes=0.1),
    Item(
        name="table1",
        title="Five models by three estimators at α = 0.25",
        function=table1.table1,
        data=ML,
        minutes=4,
        published=printed_tables1,
    ),
    Item(
        name="figure2",
        title="Accuracy of estimators over the degree of selection bias",
        function=figure2.figure2,
        data=ML,
        minutes=1,
    ),
    Item(
        name="figure3left",
        title="Matrix factorisation over the degree of selection bias",
        function=figure3left.figure3left,
        data=ML,
        minutes=23,
    ),
    Item(
        name="figure3right",
        title="Matrix factorisation with learned propensities",
        function=figure3right.figure3right,
        data=ML,
        minutes=6,
    ),
    Item(name="figure4", title="Accuracy with learned propensities", function=figure4.figure4, data=ML, minutes=1),
    Item(
        name="table2",
        title="Matrix factorisation on real data",
        function=table2.table2,
        data=("coat", "yahoo-r3"),
        minutes=5,
        published=printed_tables2,
    ),
    Item(name="bounds", title="How tight the bounds are", function=bounds.bounds, data=ML, minutes=1),
)
