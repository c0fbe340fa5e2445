"""RESULTS → PICTURES AND PAGES: what checks and comparisons found, drawn for people.

Reporting computes nothing: it draws the numbers of results that other families made.
"""
