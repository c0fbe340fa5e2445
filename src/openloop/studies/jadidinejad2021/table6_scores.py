"""The scores that Table 6 is made of: of all models, by cut, method and split, with τ and the test as coded."""

from __future__ import annotations

from dataclasses import dataclass

from openloop.audits.rankings import tau_b
from openloop.core.feedback import Array, Floats
from openloop.studies.jadidinejad2021.agreement import ahead_as_coded
from openloop.studies.jadidinejad2021.scores import Mask


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CutScores:
    """What methods and the open loop say of the models at one cut, (R, M) each."""

    methods: dict[str, Floats]
    goal: Floats

    @property
    def taus(self) -> dict[str, Floats]:
        """τ of each method with the open loop, (R,)."""
        return {name: tau_b(scores, self.goal) for name, scores in self.methods.items()}

    def ahead(self, a: str, b: str) -> Mask:
        """In which splits one method is ahead of another by the test as coded, (R,)."""
        return ahead_as_coded(self.methods[a], self.methods[b], self.goal)

    def among(self, models: Array) -> CutScores:
        """The same of some models, by position or mask."""
        return CutScores(
            methods={name: scores[:, models] for name, scores in self.methods.items()}, goal=self.goal[:, models]
        )

    def in_split(self, split: int) -> tuple[dict[str, Floats], Floats]:
        """The scores of the methods, and those of the open loop, in one split, (M,) each."""
        return {name: scores[split] for name, scores in self.methods.items()}, self.goal[split]


ScoresByCut = dict[str, CutScores]
