"""Files changed at random: bytes, lines, columns, headers, encodings; the same generator, the same changes."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from random import Random

TOKENS = (
    b"\0", b"\r", b"\n", b"\r\n", b'"', b'""', b",", b",,", b"::", b"\t", b" ", b"\xff", b"\xc3", b"\xef\xbb\xbf",
    b"nan",
    b"NaN", b"inf", b"-inf", b"null", b"true", b"false", b"None", b"NA", b"1e400", b"1e-400", b"-0", b"007", b"1.0",
    b"9223372036854775807", b"9223372036854775808", b"-9223372036854775809", b"9007199254740993", b"16777217", b"1e39",
    b"9" * 30, b"0x10", "１".encode(), "é".encode(), b"\\ud800", b"\\u0000", b"{", b"}", b"[", b"]", b":", b"x" * 300,
    b"2020-01-01", b"user", b"rating", b"#", b"\x1f", b"\x1f\x8b", b"PAR1", b"PK\x03\x04",
)  # fmt: skip
ENCODINGS = ("utf-16", "utf-16-le", "utf-32", "latin-1", "utf-8-sig", "cp1252")

Change = Callable[[bytes, Random], bytes]


def _flip(data: bytes, rng: Random) -> bytes:
    found = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        found[rng.randrange(len(found))] = rng.randrange(256)
    return bytes(found)


def _cut(data: bytes, rng: Random) -> bytes:
    return data[: rng.randrange(len(data))]


def _insert(data: bytes, rng: Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(TOKENS) + data[at:]


def _drop(data: bytes, rng: Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + data[at + rng.randint(1, 20) :]


def _field(data: bytes, rng: Random) -> bytes:
    """Another value for one field."""
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    separator = next((s for s in (b"::", b"\t", b"|", b",") if s in lines[at]), b",")
    fields = lines[at].split(separator)
    fields[rng.randrange(len(fields))] = rng.choice(TOKENS)
    return b"\n".join([*lines[:at], separator.join(fields), *lines[at + 1 :]])


def _repeat(data: bytes, rng: Random) -> bytes:
    lines = data.split(b"\n")
    lines.insert(rng.randrange(len(lines) + 1), rng.choice(lines))
    return b"\n".join(lines)


def _swap(data: bytes, rng: Random) -> bytes:
    """Two columns change their places, or two lines."""
    lines = data.split(b"\n")
    if rng.random() < 0.5:
        a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
        lines[a], lines[b] = lines[b], lines[a]
        return b"\n".join(lines)
    return b"\n".join(b",".join(reversed(line.split(b","))) for line in lines)


def _header(data: bytes, rng: Random) -> bytes:
    first, _, rest = data.partition(b"\n")
    others = (b"", first * 2, first.upper(), first.replace(b"user", b"item"), b"a" * 70_000 + b"," + first, b"1,2,3")
    return rng.choice(others) + b"\n" + rest


def _encode(data: bytes, rng: Random) -> bytes:
    return data.decode("utf-8", "replace").encode(rng.choice(ENCODINGS), "replace")


def _ends(data: bytes, rng: Random) -> bytes:
    return data.replace(b"\n", rng.choice((b"\r", b"\r\n", b"\n\n", b"\r\r\n", b" \n", b"")))


def _pack(data: bytes, rng: Random) -> bytes:
    packed = gzip.compress(data, mtime=0)
    return packed if rng.random() < 0.5 else packed[: -rng.randint(1, 12)]


CHANGES: tuple[Change, ...] = (
    _flip, _cut, _insert, _insert, _drop, _field, _field, _field, _field, _repeat, _swap, _header, _encode, _ends,
    _pack,
)  # fmt: skip


def mutated(data: bytes, rng: Random) -> bytes:
    """The data after one change, sometimes after several, rarely as it is."""
    for _ in range(rng.choice((0, 1, 1, 1, 1, 2, 3))):
        if data:
            data = rng.choice(CHANGES)(data, rng)
    return data


def written(folder: Path, name: str, data: bytes) -> Path:
    """The file of that name with these bytes."""
    path = folder / name
    path.write_bytes(data)
    return path
