"""One colour per method, in the figures of all papers.

Methods of one idea share a colour where no figure shows both: what ignores selection, inverse propensities, and so on.
"""

from __future__ import annotations

from openloop.reporting.style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILLION

COLOUR = {
    "Naive": VERMILLION, "MF-Naive": VERMILLION, "holdout": VERMILLION, "MF-AUC": VERMILLION,
    "IPS": BLUE, "IPS-KNOWN": BLUE, "MF-IPS": BLUE, "ips": BLUE, "MF-ADG": BLUE,
    "SNIPS": GREEN, "SVD": GREEN,
    "IPS-NB and SNIPS-NB": ORANGE, "MF-IPS-NB": ORANGE,
    "stratified": SKY, "ours": SKY,
    "as coded": BLACK, "as printed": GREY, "popularity": GREY, "ours, training items ranked": ORANGE,
    # Families of models, those of one idea alike: their shapes tell them apart.
    "GA": BLACK, "MostPop": BLACK, "BO": BLACK, "MF": BLUE, "PMFL": SKY, "PMFNL": SKY, "WMF": VERMILLION, "MMMF": GREY,
    "BPR": ORANGE, "WBPR": ORANGE, "GMF": PURPLE, "MLP": PURPLE, "NeuMF": PURPLE,
}  # fmt: skip
