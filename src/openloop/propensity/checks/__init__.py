"""How far a propensity model can be trusted: balance, overlap, held-out cells, in numbers and words."""
