"""Moments to estimates of every model, and to a Comparison."""
