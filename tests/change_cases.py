"""Changes between two audits, made up, that tests of words and pages share."""

from __future__ import annotations

from openloop.audits.change_lists import Changes, Differing, OrderChange, PairChange, ValueChange, Verdicts

PAIR = PairChange(
    a="a", b="<b>", old_better="a", new_better=None, old=1.0, old_low=0.5, old_high=1.5,
    new=0.1, new_low=-1.0, new_high=1.2,
)  # fmt: skip
VALUE = ValueChange(
    model="a", metric="mae", estimator="snips", old=1.0, old_low=0.9, old_high=1.1, new=2.0, new_low=1.9, new_high=2.1,
    difference=1.0, low=0.8, high=1.2, old_estimand="per cell", new_estimand="per cell",
)  # fmt: skip


def changes(**more) -> Changes:
    of = {
        "verdicts": Verdicts(
            old_level="verdict", new_level="none", old="a wins.", new="Nobody wins.", old_winner="a", new_winner=None
        ),
        "added": ("\x1b[2Jc",), "gone": (), "shared": ("a", "<b>"),
        "settings": (Differing(name="threshold", old=4.0, new=3.0),),
        "orders": (OrderChange(metric="mae", estimator="snips", old=("a", "<b>"), new=("<b>", "a"), pairs=(PAIR,)),),
        "values": (VALUE,), "support": (), "one_log": False, "level": 0.9,
    }  # fmt: skip
    return Changes(**(of | more))
