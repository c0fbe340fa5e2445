"""`python -m bench [case ...] [--quick] [--json FILE]`: run cases, print ratios, write results."""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from bench.harness import Result, SideError, missing, table, write

# name → module, in the order of the table
CASES = {
    "ranks": "ranks",
    "cornac": "cornac_ranking",
    "ndcg_frame": "ndcg_frame",
    "moments": "moments",
    "bootstrap": "bootstrap",
    "logistic": "logistic",
    "offsets": "offsets",
    "violators": "violators",
    "factorisation": "factorisation",
    "joint_models": "joint_models",
    "mixture_em": "mixture_em",
    "stacking": "stacking",
    "selecting": "selecting",
    "reading": "reading",
    "auditing": "auditing",
    "startup": "startup",
}
RESULTS = Path(__file__).with_name("results.json")


def run_case(name: str, size: str, *, install: bool = True) -> list[Result]:
    """The lines of one case, "full" or "quick"; what keeps it from being measured stands in its note."""
    module = import_module(f"bench.{CASES[name]}")
    with tempfile.TemporaryDirectory() as folder:
        try:
            found = module.run(Path(folder), size, install=install)
        except SideError as error:
            return [missing(name, str(error))]
    # The targets are for the full size: on a small input both sides mostly start up.
    return found if size == "full" else [replace(line, target=None, met=None) for line in found]


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("case", nargs="*", help=f"of {', '.join(CASES)}; none means all")
    parser.add_argument("--quick", action="store_true", help="small inputs, for a trial: no targets")
    parser.add_argument("--json", type=Path, metavar="FILE", help=f"where results go; {RESULTS.name} beside this")
    asked = parser.parse_args()
    for name in asked.case:
        if name not in CASES:
            parser.error(f"no case {name!r}; there are {', '.join(CASES)}")
    results: list[Result] = []
    for name in asked.case or CASES:
        print(f"{name} …", flush=True)
        results += run_case(name, "quick" if asked.quick else "full")
    print(f"\n{table(results)}")
    path = asked.json or (None if asked.quick else RESULTS)
    if path is not None:
        write(results, path)
        print(f"\nwritten to {path}")


if __name__ == "__main__":
    main()
