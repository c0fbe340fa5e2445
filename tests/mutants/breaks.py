"""Breaks of formulas: a sign, an operator, an index, a bound, a constant or a factor of one line is changed."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FORMULAS = (
    "**/kernels/*.py",
    "**/metrics/*.py",
    "**/moments/*.py",
    "**/estimators/*.py",
    "**/core/*moments.py",
    "**/core/[cegltw]*[a-z].py",
    "**/sources/**/*terms.py",
    "**/sources/**/observation.py",
    "**/sources/**/tilt*.py",
    "**/sources/**/rows.py",
    "**/propensity/*.py",
    "**/propensity/solvers/*.py",
    "**/learners/solvers/*.py",
    "**/audits/*rules.py",
    "**/audits/sensitivity.py",
)
WITHOUT_FORMULAS = {"__init__", "caching", "compiling", "naming", "custom", "comparison", "lists", "descent_files"}
# What a line with such a word computes may change without any number that a user reads.
COSTS = re.compile(r"bytes|memory|thread|progress|chunk|seconds|processes", re.IGNORECASE)

Parts = dict[type[ast.AST], tuple[str, str]]
OPERATORS: Parts = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.Pow: ("**", "*"),
    ast.FloorDiv: ("//", "%"),
    ast.Mod: ("%", "//"),
    ast.BitAnd: ("&", "|"),
}
# Against a whole number the bound itself moves, against others the order is turned: few real numbers are equal.
BOUNDS: Parts = {ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">")}
ORDERS: Parts = {ast.Lt: ("<", ">="), ast.LtE: ("<=", ">"), ast.Gt: (">", "<="), ast.GtE: (">=", "<")}
EQUALS: Parts = {ast.Eq: ("==", "!="), ast.NotEq: ("!=", "==")}
SWAPS = {"max": "min", "min": "max", "maximum": "minimum", "minimum": "maximum", "argmax": "argmin"}
DROPPED = {"sqrt", "log", "log1p", "exp", "expm1", "abs", "square"}
CHECKS = {"isinstance", "issubclass", "hasattr", "getattr", "cast", "sorted", "field"}


@dataclass(frozen=True)
class Break:
    """Lines of a file before and after; `nth` of the places where they stand."""

    file: str
    line: int
    before: str
    after: str
    nth: int = 0

    def applied(self, source: str) -> tuple[str, int]:
        """The broken source, and the number of the first line; ValueError where the lines are not there."""
        lines, before = source.split("\n"), self.before.split("\n")
        starts = [i for i in range(len(lines)) if lines[i : i + len(before)] == before]
        if not starts:
            raise ValueError(f"{self.file} has no lines {self.before!r}")
        start = starts[min(self.nth, len(starts) - 1)]
        lines[start : start + len(before)] = self.after.split("\n")
        return "\n".join(lines), start + 1


def draw(root: Path, seed: int, count: int) -> list[Break]:
    """As many breaks, each of another line."""
    source = root / "src"
    files = sorted({file for pattern in FORMULAS for file in source.glob(pattern) if file.stem not in WITHOUT_FORMULAS})
    lines: dict[tuple[str, int], list[Break]] = {}
    for file in files:
        for broken in breaks(str(file.relative_to(root)), file.read_text(encoding="utf-8")):
            lines.setdefault((broken.file, broken.line), []).append(broken)
    rng = random.Random(seed)
    drawn: list[Break] = []
    for place in rng.sample(sorted(lines), len(lines)):
        broken = rng.choice(lines[place])
        if len(drawn) < count and _is_python(root, broken):
            drawn.append(broken)
    return drawn


def _is_python(root: Path, broken: Break) -> bool:
    try:
        ast.parse(broken.applied((root / broken.file).read_text(encoding="utf-8"))[0])
    except SyntaxError:
        return False
    return True


def breaks(file: str, source: str) -> Iterator[Break]:
    """All breaks of the functions of a file."""
    content, lines = source.encode(), source.split("\n")
    starts = [0]
    for line in content.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    for node, first, last, text in _Changes(content, starts).of(ast.parse(source)):
        before = "\n".join(lines[node.lineno - 1 : node.end_lineno])
        broken = (content[:first] + text.encode() + content[last:]).decode()
        removed = len(lines) - len(broken.split("\n"))  # where a term on a line of its own goes
        after = "\n".join(broken.split("\n")[node.lineno - 1 : (node.end_lineno or 0) - removed])
        nth = source[: len("\n".join(lines[: node.lineno - 1]))].count(f"\n{before}\n")
        if not COSTS.search(before) and before != after:
            yield Break(file, node.lineno, before, after, nth)


class _Changes:
    """Each change is a node, the first and last byte of what is replaced, and the text in its place."""

    def __init__(self, content: bytes, starts: list[int]) -> None:
        self.content, self.starts = content, starts

    def of(self, node: ast.AST, *, inside: bool = False) -> Iterator[tuple[ast.expr | ast.stmt, int, int, str]]:
        """Those of a node and of what is in it; none outside functions."""
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert | ast.arguments) or _checks(node):
            return
        if inside and isinstance(node, ast.expr | ast.AugAssign):
            for first, last, text in self._at(node):
                yield node, first, last, text
        inside = inside or isinstance(node, ast.FunctionDef)
        for name, value in ast.iter_fields(node):
            if name in {"decorator_list", "returns", "annotation"} or (name == "test" and _refuses(node)):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from self.of(child, inside=inside)

    def _at(self, node: ast.expr | ast.AugAssign) -> Iterator[tuple[int, int, str]]:
        match node:
            case ast.BinOp(left=left, right=right) if not _joins(left, right):
                yield from self._operation(node)
            case ast.AugAssign(target=target, op=op, value=value) if not _joins(value):
                yield from self._between(target, value, OPERATORS.get(type(op)))
                yield from self._constant(value)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                table = BOUNDS if any(_is_whole(part) for part in (left, right)) else ORDERS
                table = table | EQUALS if isinstance(right, ast.Constant) and not _joins(right) else table
                yield from self._between(left, right, table.get(type(op)))
            case ast.BoolOp(values=[left, right, *_], op=op):
                yield from self._between(left, right, ("and", "or") if isinstance(op, ast.And) else ("or", "and"))
            case ast.UnaryOp(op=ast.USub() | ast.Invert(), operand=operand) if not isinstance(operand, ast.Constant):
                yield *self._span(node), self._text(operand)
            case ast.Subscript(slice=index):
                for part in index.elts if isinstance(index, ast.Tuple) else [index]:
                    yield from self._index(part)
            case ast.Call():
                yield from self._call(node)
            case _:
                pass

    def _operation(self, node: ast.BinOp) -> Iterator[tuple[int, int, str]]:
        """Another operator, a factor or a term less, or another constant."""
        yield from self._between(node.left, node.right, OPERATORS.get(type(node.op)))
        if isinstance(node.op, ast.Mult | ast.Add | ast.Sub | ast.Div):
            yield *self._span(node), f"({self._text(node.left)})"
        if isinstance(node.op, ast.Mult):
            yield *self._span(node), f"({self._text(node.right)})"
        yield from (change for part in (node.left, node.right) for change in self._constant(part))

    def _call(self, node: ast.Call) -> Iterator[tuple[int, int, str]]:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in SWAPS:
            last = self._span(node.func)[1]
            yield last - len(name), last, SWAPS[name]
        if name in SWAPS or name in {"clip", "where"}:
            yield from (change for part in node.args for change in self._constant(part))
        if name in DROPPED and len(node.args) == 1:
            yield *self._span(node), f"({self._text(node.args[0])})"
        if name == "range" and len(node.args) <= 2:
            *first, last = (self._text(part) for part in node.args)
            yield *self._span(node), f"range({first[0] if first else 0} + 1, {last})"
            yield *self._span(node), f"range({first[0] if first else 0}, {last} - 1)"
        for keyword in node.keywords:
            if keyword.arg == "axis" and _is_whole(keyword.value):
                yield *self._span(keyword.value), "1" if self._text(keyword.value) == "0" else "0"

    def _index(self, part: ast.expr) -> Iterator[tuple[int, int, str]]:
        """x[0], x[1:] and x[:-1] of which the number is one more or less."""
        for bound in [part.lower, part.upper] if isinstance(part, ast.Slice) else [part]:
            if _is_whole(bound):
                value = ast.literal_eval(bound)
                after = {0: "1", -1: "None" if isinstance(part, ast.Slice) else "0"}.get(value, str(value - 1))
                yield *self._span(bound), after

    def _constant(self, part: ast.expr) -> Iterator[tuple[int, int, str]]:
        value = part.value if isinstance(part, ast.Constant) else None
        if type(value) is int and value < 1000:
            yield *self._span(part), str(value + 1)
        elif isinstance(value, float) and (value == 0 or 1e-6 < value < 1000):
            yield *self._span(part), str(2 * value or 1.0)

    def _between(self, left: ast.expr, right: ast.expr, part: tuple[str, str] | None) -> Iterator[tuple[int, int, str]]:
        """The operator between two operands, replaced."""
        first, last = self._span(left)[1], self._span(right)[0]
        between = self.content[first:last].decode()
        if part and "#" not in between:
            yield first, last, between.replace(*part, 1)

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        end = self.starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        return self.starts[node.lineno - 1] + node.col_offset, end

    def _text(self, node: ast.expr) -> str:
        first, last = self._span(node)
        return self.content[first:last].decode()


def _checks(node: ast.AST) -> bool:
    """Whether types are checked, or words are made."""
    if isinstance(node, ast.FunctionDef):
        return node.name in {"__repr__", "__str__"}
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return name in CHECKS or "warn" in name
    if isinstance(node, ast.BoolOp):
        return any(_checks(part) for part in node.values)
    if isinstance(node, ast.UnaryOp):
        return _checks(node.operand)
    return isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.IsNot | ast.In | ast.NotIn)


def _refuses(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise)


def _joins(*parts: ast.expr) -> bool:
    """Whether texts or lists are joined, where numbers are added elsewhere."""
    kinds = ast.JoinedStr | ast.List | ast.Tuple | ast.Dict | ast.ListComp | ast.Set
    return any(
        isinstance(part, kinds) or (isinstance(part, ast.Constant) and not isinstance(part.value, int | float))
        for part in parts
    )


def _is_whole(node: ast.expr | None) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) is int
