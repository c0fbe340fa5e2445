"""MOMENTS → ESTIMATE: estimators are functions; they know nothing about rows or recommenders."""
