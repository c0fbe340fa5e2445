"""Claims about instances can fail, and notes are made of numbers."""

from __future__ import annotations

from openloop.studies.jadidinejad2021.instance_tables import about_instances
from tests.studies.jadidinejad2021 import worlds
from tests.studies.jadidinejad2021.worlds import cells


def test_the_head_model_hides_what_the_tail_prefers(compared):
    claims = {claim.text: claim for claim in compared.claims}
    (pair,) = [c for text, c in claims.items() if "GMF20 against SVD20" in text]
    assert pair.holds
    assert "2 of 2 splits" in pair.found
    (few,) = [c for text, c in claims.items() if "very small minority" in text]
    items = cells(compared, "table5", "Holdout")["items"].value
    assert few.found.startswith(f"Q2 has {worlds.HEAD} of {items:.0f} items")
    assert few.holds is (0.05 * items > worlds.HEAD)


def test_the_notebooks_mostpop_stands_beside_ours():
    names = ("BPR10", "WMF10", "MostPop", "GA")
    fits = worlds.fits(splits=1, with_open_loop=False, names=names)
    (note,) = [n for n in about_instances("table2", "x", fits, comparable=False, notes=()).notes if "MostPop" in n]
    assert "notebook has Holdout 0.373, Q1 0.340 and Q2 0.696" in note
    assert "Table 2 Holdout 0.373, Q1 0.339 and Q2 0.695 for BPR10" in note
