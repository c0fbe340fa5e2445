"""Estimators: rows to Moments, Moments to Estimate. Estimators know nothing about recommenders."""
