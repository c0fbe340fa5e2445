"""Small valid files of every format, made by code: what the mutator starts from."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
from functools import cache

import numpy as np
import polars as pl

import openloop as ol
from openloop.core.feedback import Feedback, Vocabulary

U, I = 8, 5
ROWS = [(u, i) for u in range(U) for i in range(I) if (u * 7 + i * 3) % 4 != 1]


def _log() -> pl.DataFrame:
    rng = np.random.default_rng(3)
    return pl.DataFrame({
        "user": [u for u, _ in ROWS], "item": [i for _, i in ROWS], "rating": rng.integers(1, 6, len(ROWS)) / 1.0,
        "propensity": rng.uniform(0.1, 1, len(ROWS)).round(3), "time": 1_600_000_000 + np.arange(len(ROWS)),
    })  # fmt: skip


def _scores(seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame({
        "user": np.repeat(np.arange(U), I), "item": np.tile(np.arange(I), U), "score": rng.uniform(1, 5, U * I),
    })  # fmt: skip


def _csv(frame: pl.DataFrame, separator: str = ",") -> bytes:
    return frame.write_csv(separator=separator).encode()


def _binary(write: str, frame: pl.DataFrame) -> bytes:
    file = io.BytesIO()
    getattr(frame, write)(file)
    return file.getvalue()


@cache
def tables(kind: str = "log") -> dict[str, bytes]:
    """A table in every format that `read` takes, by the name of its file."""
    frame = _log() if kind == "log" else _scores(1 if kind == "a" else 2)
    text = frame.with_columns(user=pl.format("u{}", "user"), item=pl.format("é {}", "item"))
    colons = "\n".join("::".join(map(str, row)) for row in frame.rows()) + "\n"
    found = {
        "plain.csv": _csv(frame), "text.csv": _csv(text), "tab.tsv": _csv(frame, "\t"), "pipe.psv": _csv(frame, "|"),
        "headless.csv": frame.write_csv(include_header=False).encode(), "colons.dat": colons.encode(),
        "quoted.csv": text.write_csv(quote_style="always").encode(), "crlf.csv": _csv(frame).replace(b"\n", b"\r\n"),
        "frame.parquet": _binary("write_parquet", frame), "text.parquet": _binary("write_parquet", text),
        "lines.ndjson": _binary("write_ndjson", frame), "list.json": json.dumps(text.to_dicts()).encode(),
    }  # fmt: skip
    return found | {f"{name}.gz": gzip.compress(found[name], mtime=0) for name in ("plain.csv", "lines.ndjson")}


@cache
def features(side: str) -> dict[str, bytes]:
    """Covariates of users or items: numbers, text and dates, by the name of the file."""
    n = U if side == "user" else I
    rng = np.random.default_rng(7 if side == "user" else 8)
    frame = pl.DataFrame({
        side: np.arange(n), "age": rng.integers(18, 80, n), "kind": [f"k{x}" for x in rng.integers(0, 3, n)],
        "since": [f"20{10 + x}-01-0{1 + x % 9}" for x in range(n)],
    })  # fmt: skip
    return {"plain.csv": _csv(frame), "tab.tsv": _csv(frame, "\t"), "frame.parquet": _binary("write_parquet", frame)}


REQUESTS, SHOWN = 30, 4


@cache
def impressions(kind: str = "log") -> dict[str, bytes]:
    """A log of shuffled impressions, or the ranks of a model, by the name of the file."""
    rng = np.random.default_rng({"log": 11, "a": 12, "b": 13}[kind])
    if kind == "log":
        frame = pl.DataFrame({
            "request": np.repeat(np.arange(REQUESTS), SHOWN), "user": np.repeat(np.arange(REQUESTS) % U, SHOWN),
            "item": np.concatenate([rng.permutation(SHOWN) for _ in range(REQUESTS)]),
            "position": np.tile(np.arange(1, SHOWN + 1), REQUESTS), "click": rng.integers(0, 2, REQUESTS * SHOWN),
            "shuffled": np.ones(REQUESTS * SHOWN, int), "propensity": np.full(REQUESTS * SHOWN, 1 / SHOWN),
        })  # fmt: skip
    else:
        frame = pl.DataFrame({
            "user": np.repeat(np.arange(U), SHOWN), "item": np.concatenate([rng.permutation(SHOWN) for _ in range(U)]),
            "rank": np.tile(np.arange(1, SHOWN + 1), U),
        })  # fmt: skip
    return {"plain.csv": _csv(frame), "frame.parquet": _binary("write_parquet", frame)}


@cache
def arrays() -> dict[str, bytes]:
    """Matrices and models."""
    file, log = io.BytesIO(), _feedback()
    np.save(file, np.random.default_rng(5).uniform(1, 5, (U, I)))
    return {"matrix.npy": file.getvalue(), **{f"{name}.safetensors": data for name, data in _models(log).items()}}


def _feedback() -> Feedback:
    frame = _log()
    columns = (frame[name].to_numpy() for name in ("user", "item", "rating"))
    return Feedback.from_arrays(*columns, users=Vocabulary.range(U), items=Vocabulary.range(I))


def _models(log: Feedback) -> dict[str, bytes]:
    import tempfile
    from pathlib import Path

    found: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, model in {"bias": ol.learners.Bias(), "mf": ol.learners.MF(factors=2, rng=0)}.items():
            path = Path(folder, name)
            model.fit(log).save(path)
            found[name] = path.read_bytes()
    return found


@cache
def archives() -> dict[str, bytes]:
    """A zip, tars and a gzip of two files."""
    inside = {"top/a.csv": tables()["plain.csv"], "top/deep/b.csv": b"1,2\n"}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, data in inside.items():
            opened.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return {"x.zip": file.getvalue(), "x.tar": _tar(inside, ""), "x.tar.gz": _tar(inside, "gz"),
            "x.tar.bz2": _tar(inside, "bz2"), "x.csv.gz": gzip.compress(inside["top/a.csv"], mtime=0)}  # fmt: skip


def _tar(inside: dict[str, bytes], packed: str) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=f"w:{packed}") as opened:
        for name, data in inside.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            opened.addfile(entry, io.BytesIO(data))
    return file.getvalue()
