"""Every number that Schnabel et al. (2016) print for the items of the study, as data, and as rows of tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from openloop.studies.kit.results import Cell, Table, Value

# Table 1: true value, then mean and standard deviation over 50 draws.
_TABLE1: dict[str, dict[str, dict[str, Any]]] = {
    "mae": {
        "REC_ONES": {"true": 0.102, "ips": (0.102, 0.007), "snips": (0.102, 0.007), "naive": (0.011, 0.001)},
        "REC_FOURS": {"true": 0.026, "ips": (0.026, 0.000), "snips": (0.026, 0.000), "naive": (0.173, 0.001)},
        "ROTATE": {"true": 2.579, "ips": (2.581, 0.031), "snips": (2.579, 0.012), "naive": (1.168, 0.003)},
        "SKEWED": {"true": 1.306, "ips": (1.304, 0.012), "snips": (1.304, 0.009), "naive": (0.912, 0.002)},
        "COARSENED": {"true": 1.320, "ips": (1.314, 0.015), "snips": (1.318, 0.005), "naive": (0.387, 0.002)},
    },
    "dcg@50": {
        "REC_ONES": {"true": 30.76, "ips": (30.64, 0.75), "snips": (30.66, 0.74), "naive": (153.07, 2.13)},
        "REC_FOURS": {"true": 52.00, "ips": (51.98, 0.41), "snips": (52.08, 0.58), "naive": (313.48, 2.36)},
        "ROTATE": {"true": 12.90, "ips": (13.00, 0.85), "snips": (12.99, 0.83), "naive": (1.38, 0.09)},
        "SKEWED": {"true": 24.59, "ips": (24.55, 0.92), "snips": (24.58, 0.93), "naive": (54.87, 1.03)},
        "COARSENED": {"true": 46.45, "ips": (46.45, 0.53), "snips": (46.44, 0.70), "naive": (293.27, 1.99)},
    },
}

# Table 2: mean errors on the uniformly drawn test sets; section 6.5 quotes CPT-v (there "CTP-v") for Yahoo! only.
_TABLE2: dict[str, dict[str, dict[str, float]]] = {
    "yahoo-r3": {
        "MF-IPS": {"mae": 0.810, "mse": 0.989},
        "MF-Naive": {"mae": 1.154, "mse": 1.891},
        "HL-MNAR": {"mae": 1.177, "mse": 2.175},
        "HL-MAR": {"mae": 1.179, "mse": 2.166},
        "CPT-v": {"mae": 0.770, "mse": 1.115},
    },
    "coat": {
        "MF-IPS": {"mae": 0.860, "mse": 1.093},
        "MF-Naive": {"mae": 0.920, "mse": 1.202},
        "HL-MNAR": {"mae": 0.884, "mse": 1.214},
        "HL-MAR": {"mae": 0.892, "mse": 1.220},
    },
}

PUBLISHED: dict[str, Any] = {
    "table1": _TABLE1,
    "table2": _TABLE2,
    # Section 6.2: shares of ratings 1 … 5 among those observed, in ML100K and in the model with α = 0.25.
    "marginals": {"ml-100k": (0.06, 0.11, 0.27, 0.35, 0.21), "model": (0.06, 0.10, 0.25, 0.42, 0.17)},
}


def printed_row(name: str, method: str) -> tuple[Cell, ...]:
    """MAE and MSE of a method that was not run, as Table 2 prints them."""
    printed = _TABLE2[name][method]
    return method, *(Value(value=None, published=printed[metric]) for metric in ("mae", "mse"))


def printed_table(name: str) -> Table:
    """What Table 2 prints for a data set that is not here."""
    rows = tuple(printed_row(name, method) for method in _TABLE2[name])
    return Table(
        name=f"table2-{name}", columns=("", "MAE", "MSE"), rows=rows,
        caption=f"{name}, not rerun: its files are not in the data folder. The published errors",
    )  # fmt: skip


def printed_tables2() -> tuple[Table, ...]:
    """Table 2 as printed."""
    return tuple(printed_table(name) for name in _TABLE2)


def printed_tables1() -> tuple[Table, ...]:
    """Table 1 as printed."""
    return tuple(
        Table(
            name=f"table1-{metric.partition('@')[0]}", caption=f"{metric.upper()}, as published",
            columns=("model", "true", "IPS", "SNIPS", "Naive"), error_is="standard deviation over draws",
            rows=tuple((model, *_printed(row, 3 if metric == "mae" else 2)) for model, row in models.items()),
        )
        for metric, models in _TABLE1.items()
    )  # fmt: skip


def _printed(row: dict[str, Any], digits: int) -> Iterator[Value]:
    yield Value(value=None, published=row["true"], digits=digits)
    for name in ("ips", "snips", "naive"):
        mean, deviation = row[name]
        yield Value(value=None, published=mean, published_error=deviation, digits=digits)
