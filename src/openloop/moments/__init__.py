"""Blocks of rows to moments: the sums that estimators see."""
