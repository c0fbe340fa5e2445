"""`Verdict` and its parts: three answers, reasons with their numbers, and the answer for each pair of models."""

from __future__ import annotations

import html
import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

from openloop.core.showing import html_list

Level = Literal["verdict", "conditional", "none"]
Assumed = Literal["rho", "kappa", "gamma"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why something is no verdict, or not without an assumption: `value` missed `limit`, and `remedy` may help.

    `about` names the two models that it concerns, where there are others.
    """

    code: str
    text: str
    value: float | None = None
    limit: float | None = None
    remedy: str = ""
    about: str = ""

    def __str__(self) -> str:
        return f"{self.about}: {self.text}" if self.about else self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """What an order rests on: it holds up to `holds_to`, turns at `flips_at`, and a verdict needs `required`.

    "rho": how many times likelier a rating one star higher makes being observed, beyond the propensities. "kappa":
    the share of popularity that is exposure. "gamma": how many times propensities are off, either way.
    """

    name: Assumed
    holds_to: float
    flips_at: float  # ∞: it does not turn on the grid
    required: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PairAnswer:
    """What the log says of two models. `better` is the one ahead, None where neither is significantly."""

    a: str
    b: str
    better: str | None
    level: Level
    estimand: str
    assumption: Assumption | None = None
    reasons: tuple[Reason, ...] = ()

    @property
    def models(self) -> frozenset[str]:
        """Both models."""
        return frozenset((self.a, self.b))


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the log says, in words.

    `level` is "verdict" (the log supports a choice), "conditional" (it does under an assumption), or "none" (it cannot
    tell). `winner` is the model that beats all those it was compared with, None without a verdict; `leader` is the same
    and also named where an assumption carries it. `unbeaten` are the models that none beats. `reasons` say what is in
    the way.
    """

    level: Level
    headline: str
    winner: str | None = None
    leader: str | None = None
    unbeaten: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()
    reasons: tuple[Reason, ...] = ()
    remedy: str = ""  # the cheapest one; empty where there is a verdict
    pairs: tuple[PairAnswer, ...] = ()

    @property
    def supported(self) -> bool:
        """Whether the log supports a choice."""
        return self.level == "verdict"

    @property
    def told(self) -> tuple[str, ...]:
        """The reasons in words, without what the headline says already: a condition, or the first reason."""
        said = {p.assumption.name for p in self.pairs if p.assumption} if self.level == "conditional" else set[str]()
        return tuple(str(r) for r in self.reasons if r.text not in self.headline and r.code not in said)

    def pair(self, a: str, b: str) -> PairAnswer | None:
        """The answer for two models, None where they were not compared."""
        return next((p for p in self.pairs if p.models == frozenset((a, b))), None)

    def records(self) -> dict[str, Any]:
        """Everything as plain values."""
        return plain(asdict(self)) | {"supported": self.supported}

    def __str__(self) -> str:
        return "\n".join(line for line in (self.headline, *self.sentences, self.remedy) if line)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        remedy = f"<p><strong>{html.escape(self.remedy)}</strong></p>" if self.remedy else ""
        return f"<h4>{html.escape(self.headline)}</h4>{html_list((*self.sentences, *self.told))}{remedy}"


def plain(value: Any) -> Any:
    """Plain values with "infinite" for ∞ and "-infinite" for −∞: JSON has neither, and they are no missing values."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(value, float) or not math.isinf(value):
        return value
    return "infinite" if value > 0 else "-infinite"
