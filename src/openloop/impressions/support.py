"""`LogSupport`: what a log of impressions holds, and so which weights it can give; refusals say why not."""

from __future__ import annotations

from dataclasses import dataclass

CONDITIONAL = 'under candidates="shown" it needs probabilities given the items shown, which the logged ones are not'

ONE_POSITION = (
    "pbm: only the propensity at the row's own position is logged; weights are right if every item has a chance at "
    "every position"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSupport:
    """What is there: columns of the log, θ, and what models were given as."""

    requests: bool  # the log names them
    gapless: bool  # no request lacks a position between those that it shows
    propensity: bool
    exposure: bool
    prefix: bool
    slate: bool
    shuffled: bool  # requests are marked, and some are shuffled
    pool: bool
    theta: bool
    affine: bool  # θ is a, and there is b
    reorders: bool  # candidates="shown"
    random: str = ""  # a model that was given as probabilities
    unlisted: str = ""  # a model of whose list only the shown items are known

    @property
    def denominator(self) -> str:
        """What weights by θ divide by."""
        if self.reorders or not (self.exposure or self.propensity):
            return "shown"
        return "exposure" if self.exposure else "propensity"

    @property
    def notes(self) -> list[str]:
        """What the reader should know about weights by θ."""
        if self.theta and self.denominator == "propensity":
            return [ONE_POSITION]
        return []

    def refusal(self, kind: str, *, robust: bool = False) -> str | None:
        """Why there are no such weights, None if there are."""
        reason = {
            "sips": self._list_reason, "rips": self._list_reason, "iips": self._row_reason, "pi": self._pi_reason,
            "pbm": self._examined_reason, "affine": self._examined_reason, "dcg": self._dcg_reason,
        }[kind](kind)  # fmt: skip
        return reason or (self._robust_reason(kind) if robust else None)

    def _list_reason(self, kind: str) -> str | None:
        if not self.requests:
            return "the log names no requests, so whole lists are not known; pass request="
        if self.reorders:
            return CONDITIONAL
        if not self.gapless:
            return "some requests lack a position, so whole lists are not known"
        if self.random:
            return f"model {self.random!r} is random, and its probability of whole lists is not given"
        column = "slate" if kind == "sips" else "prefix"
        if not getattr(self, column):
            return f"the log has no probabilities of {'lists' if kind == 'sips' else 'prefixes'}; pass {column}="
        return None

    def _row_reason(self, kind: str) -> str | None:
        if self.reorders:
            return CONDITIONAL
        return None if self.propensity else "the log has no propensities; pass propensity="

    def _pi_reason(self, kind: str) -> str | None:
        if not self.requests or not self.gapless:
            return "it needs whole lists, and the log names no requests or lacks positions of some"
        if self.reorders:
            return "it takes shuffled requests alone, and what they show is not what the others show"
        if not self.shuffled:
            return "it needs shuffled requests; pass shuffled="
        return None if self.pool else "it needs the column with each request's number of candidates; pass pool="

    def _examined_reason(self, kind: str) -> str | None:
        if not self.theta:
            return "it needs examination; pass ol.propensity.Examination(…).fit(log) or θ as an array"
        if self.affine != (kind == "affine"):
            return (
                "the examination is affine (a and b); fit one without b"
                if self.affine
                else 'it needs a and b; pass ol.propensity.Examination(method="affine").fit(log)'
            )
        return "the log names no requests, so what was shown together is not known" if self._scattered else None

    @property
    def _scattered(self) -> bool:
        return self.reorders and not self.requests

    def _dcg_reason(self, kind: str) -> str | None:
        reason = self._examined_reason("pbm")
        if reason is None and self.random:
            return f"model {self.random!r} is random, and has no ranks"
        if reason is None and self.denominator == "shown" and not self.reorders:
            return 'the log has no propensities, so items below the list are not seen; ask for candidates="shown"'
        return reason

    def _robust_reason(self, kind: str) -> str | None:
        if not self.theta or self.affine:
            return "what it imputes is θ·q; pass ol.propensity.Examination(…).fit(log) or θ as an array"
        if not self.requests or not self.gapless:
            return "it needs whole lists, and the log names no requests or lacks positions of some"
        if self.unlisted and not self.reorders:
            return f"model {self.unlisted!r} is known at the shown items only; give its lists as a table"
        return None
