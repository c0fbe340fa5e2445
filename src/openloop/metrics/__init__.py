"""Metrics: what a cell or a user gains or loses under a model. Metrics know nothing about propensities."""
