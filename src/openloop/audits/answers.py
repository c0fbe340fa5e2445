"""`Verdict` and its parts: three answers, reasons with their numbers, and the answer for each pair of models."""

from __future__ import annotations

import html
from dataclasses import asdict, dataclass
from typing import Any, Literal

from openloop.support.tables import html_list
from openloop.support.typed import INFINITE

Level = Literal["verdict", "conditional", "none"]
Assumed = Literal["rho", "kappa", "gamma"]
WORDS = {number: word for word, number in INFINITE.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why there is no verdict, or only a conditional one: `value` misses `limit`, and `remedy` may help.

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
    """The assumption behind an order: it holds up to `holds_to`, reverses at `flips_at`; a verdict needs `required`.

    "rho": how many times likelier each extra star makes being observed, beyond the propensities. "kappa":
    the share of popularity that is exposure. "gamma": how many times propensities are off, either way.
    """

    name: Assumed
    holds_to: float
    flips_at: float  # ∞: it does not reverse on the grid
    required: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PairAnswer:
    """What the log says about two models; `better` is the one ahead, None where neither is significantly."""

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
    """What the log says about the models, in words.

    Attributes:
        level: "verdict" (the log supports a choice), "conditional" (it does under an assumption) or "none" (it cannot
            tell).
        headline: The answer in one sentence.
        winner: The model that beats all that it was compared with, None without a verdict.
        leader: The winner, or the model that would be under an assumption.
        unbeaten: The models that no other model beats.
        sentences: What the answer rests on.
        reasons: Why there is no verdict, or only a conditional one.
        remedy: The cheapest way to a verdict; empty where there is one.
        pairs: The answer for each pair of models.

    Examples:
        >>> world = ol.simulate.movie_lovers()
        >>> verdict = ol.audit(world.predictions, world.observe(0), metrics=["mae"]).verdict
        >>> verdict.supported
        True
        >>> verdict.pair("Y1", "Y3").better
        'Y1'
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
        """The reasons in words, without those that the headline already gives."""
        said = {p.assumption.name for p in self.pairs if p.assumption} if self.level == "conditional" else set[str]()
        return tuple(str(r) for r in self.reasons if r.text not in self.headline and r.code not in said)

    def pair(self, a: str, b: str) -> PairAnswer | None:
        """The answer for two models `a` and `b`, None where they were not compared."""
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
    """Plain values with words for ∞ and −∞: JSON has neither, and they are not missing values."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]  # pyright: ignore[reportUnknownVariableType]
    return WORDS.get(value, value) if isinstance(value, float) else value
