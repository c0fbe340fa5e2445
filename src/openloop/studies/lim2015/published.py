"""The numbers that Lim et al. 2015 print: sizes of their data (section 6), Tables 1 and 2."""

from __future__ import annotations

from typing import Any

AUC, ADG = "MF-AUC", "MF-ADG"
MEASURES = ("atop", "map", "ndcg", "recall@10", "adg")
TOP = ("map", "ndcg", "recall@10", "adg")  # on which MF-ADG is better
SHOWN = {"atop": "ATOP", "map": "MAP", "ndcg": "NDCG", "recall@10": "REC@10", "adg": "ADG"}

# users, items, interactions
SIZES = {
    "amazon-games": (17_437, 17_915, 201_154),
    "lastfm-msd": (10_000, 10_000, 97_727),
    "ml-10m": (9_888, 5_000, 711_084),
}

# Test value and standard error over four folds, in the order of MEASURES
TABLE1 = {
    ("amazon-games", AUC): ((0.7584, 0.0014), (0.0104, 0.0003), (0.1460, 0.0006), (0.0170, 0.0004), (0.1080, 0.0005)),
    ("amazon-games", ADG): ((0.7546, 0.0049), (0.0124, 0.0003), (0.1501, 0.0004), (0.0211, 0.0007), (0.1110, 0.0003)),
    ("lastfm-msd", AUC): ((0.7490, 0.0064), (0.0242, 0.0006), (0.1701, 0.0007), (0.0473, 0.0010), (0.1294, 0.0005)),
    ("lastfm-msd", ADG): ((0.7449, 0.0028), (0.0281, 0.0006), (0.1750, 0.0008), (0.0539, 0.0019), (0.1332, 0.0006)),
    ("ml-10m", AUC): ((0.8855, 0.0018), (0.0775, 0.0007), (0.3718, 0.0010), (0.0945, 0.0011), (0.1714, 0.0004)),
    ("ml-10m", ADG): ((0.8821, 0.0042), (0.0858, 0.0003), (0.3820, 0.0002), (0.1025, 0.0013), (0.1768, 0.0001)),
}

# On MovieLens-10M: test, validation, their difference in %
TABLE2 = {
    ("atop", AUC): (0.8855, 0.8849, -0.06),
    ("atop", ADG): (0.8821, 0.8817, -0.05),
    ("adg", AUC): (0.1714, 0.1709, -0.29),
    ("adg", ADG): (0.1768, 0.1768, -0.00),
    ("recall@10", AUC): (0.0945, 0.0945, 0.00),
    ("recall@10", ADG): (0.1025, 0.1030, 0.49),
    ("map", AUC): (0.0775, 0.0586, -24.38),
    ("map", ADG): (0.0858, 0.0657, -23.43),
    ("ndcg", AUC): (0.3718, 0.2957, -20.47),
    ("ndcg", ADG): (0.3820, 0.3046, -20.42),
}

PUBLISHED: dict[str, Any] = {"sizes": SIZES, "table1": TABLE1, "table2": TABLE2}
