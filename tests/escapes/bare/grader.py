"""A naive grader: runs the cells in its own process and looks at the student's objects with NumPy.

Argument: a JSON file with `reference`, `seeds`, `cells` (source and whether it begins an exercise) and `neighbour`,
a secret that the submission before held.
"""

import copy
import json
import os
import pickle
import sys
from typing import Any

import msgspec
import numpy as np
from checks import CHECKS, EXERCISES, build_case, load_reference


def run_cells(cells: list[tuple[str, bool]], inputs: dict[str, Any], seed: int) -> tuple[dict[str, Any], list[str]]:
    names: dict[str, Any] = {"__name__": "__main__"}
    said = []
    for source, is_exercise in cells:
        if is_exercise:
            np.random.seed(seed)
            names.update(copy.deepcopy(inputs))
        try:
            exec(compile(source, "<cell>", "exec"), names)
        except Exception as error:
            said.append(f"{type(error).__name__}: {error}")
    return names, said


def keep_answers(names: dict[str, Any], wanted: list[str]) -> None:
    """Many graders keep a pickle of what a notebook made."""
    for name in wanted:
        try:
            pickle.loads(pickle.dumps(names.get(name)))
        except Exception:
            continue


def main() -> None:
    with open(sys.argv[1]) as file:
        order = json.load(file)
    before: dict[str, Any] = {}
    exec(f"secrets = ['neighbour-' + {order['neighbour']!r} + str(number) for number in range(2000)]", before)
    reference = load_reference(order["reference"])
    passed = [True] * len(CHECKS)
    feedback = []
    cases = [(seed, *build_case(reference, seed)) for seed in order["seeds"]]
    for seed, inputs, expected in cases:
        names, said = run_cells(order["cells"], inputs, seed)
        feedback += said
        keep_answers(names, list(expected))
        for number, (_, check) in enumerate(CHECKS):
            try:
                check(names, expected, inputs)
            except Exception as error:
                passed[number] = False
                feedback.append(f"{type(error).__name__}: {error}, found {[names.get(name) for name in expected]!r}")
    scores = {name: sum(passed[n] for n, (own, _) in enumerate(CHECKS) if own == name) for name in EXERCISES}
    report = msgspec.json.encode({"scores": scores, "feedback": feedback, "outputs": 0, "bytes": 0, "fault": ""})
    os.write(1, b"\nREPORT " + report + b"\n")


main()
