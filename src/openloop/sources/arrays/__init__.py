"""Rows in memory: a Feedback and models as a source of Moments."""
