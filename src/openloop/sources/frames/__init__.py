"""Rows that stay in their engine: a log frame and prediction frames as a source of Moments."""
