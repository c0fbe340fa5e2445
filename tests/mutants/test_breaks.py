from tests.mutants.breaks import Break, breaks

SOURCE = '''
def mean(values: list[float], weights: list[float]) -> float:
    """Σwx/Σw"""
    if len(values) > 5:
        raise ValueError("too many")
    return sum(w * x for w, x in zip(weights, values)) / sum(weights)
'''


def test_formulas_are_broken_one_operator_at_a_time_and_checks_are_not():
    after = {one.after.strip() for one in breaks("mean.py", SOURCE)}
    assert "return sum(w / x for w, x in zip(weights, values)) / sum(weights)" in after
    assert "return (sum(w * x for w, x in zip(weights, values)))" in after
    assert all(one.startswith("return") for one in after)


def test_a_break_is_applied_where_its_line_is_now():
    moved = "# a line more\n" + SOURCE
    broken = Break("mean.py", 6, SOURCE.split("\n")[5], "    return 0.0")
    assert broken.applied(moved) == (moved.replace(SOURCE.split("\n")[5], "    return 0.0"), 7)
