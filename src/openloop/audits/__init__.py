"""COMPARISON → VERDICT: contrasts, strata, paradoxes, sensitivity, and what the log can support."""
