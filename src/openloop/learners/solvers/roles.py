"""Roles of the random numbers in a sweep: each role has a separate stream.

Values are parts of keys (`SweepKey.word`), so a change of one changes all draws after it.
"""

from __future__ import annotations

from enum import IntEnum, unique


@unique
class Role(IntEnum):
    """A role in the sweeps of the ordinal model, or of the joint model, which begins with sweeps of the former."""

    # of the ordinal model
    BEGIN = 0
    THRESHOLDS = 1
    STRETCH = 2
    LATENT = 3
    USER_SHIFT = 4
    ITEM_SHIFT = 5
    USERS = 6
    ITEMS = 7
    USER_SCALES = 8
    ITEM_SCALES = 9
    USER_VARIANCE = 10
    ITEM_VARIANCE = 11

    # of the joint model: where it begins, and what a sweep looks at
    CELLS = 12
    JOINT_BEGIN = 13
    CHOSEN_USERS = 14
    CHOSEN_ITEMS = 15

    # its moves of the whole
    MOVE_LEVELS = 22
    MOVE_SHIFT = 23
    MOVE_STRETCH = 24
    MOVE_SPREADS = 25

    # the rest of its sweep
    JOINT_LATENT = 32
    USER_VECTORS = 34
    ITEM_VECTORS = 35
    JOINT_USER_SCALES = 36
    JOINT_ITEM_SCALES = 37
    USER_VECTORS_TAKEN = 38
    ITEM_VECTORS_TAKEN = 39
    USER_SCALES_TAKEN = 40
    ITEM_SCALES_TAKEN = 41
    JOINT_USER_VARIANCE = 42
    JOINT_ITEM_VARIANCE = 43
    MEANS = 44
    LEVELS = 46
    LEVELS_OF_ITEMS = 47
    OMEGA = 48
    OMEGA_OF_ITEMS = 49
    USER_EFFECTS = 50
    ITEM_EFFECTS = 52
    LEVEL_MEANS = 54
    EFFECT_SHIFT = 56
    SPREADS = 58
