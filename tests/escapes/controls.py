"""Attacks without the wall, the limit or the check that stops them: what then happens is the proof that they bite.

Whatever runs here is shut in all the same: a process namespace of its own that ends with the control, no network, a
read-only file system with one small folder, bounded memory. What is left away is what the attack is about.
"""

import base64
import json
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import autograder.guest
from autograder.course import Course
from autograder.guest import wire
from autograder.intake.notebook import parse_program
from autograder.marking.reference import build_input_sets, load_reference
from autograder.records import Cell, Program
from autograder.sandbox.plan import build_job
from autograder.sandbox.session import Session
from autograder.sandbox.values import build_wire_input
from autograder.sandbox.watch import build_budget

from .attacks import ASSIGNMENT, ESCAPED, FULL, LIMITS, Attack, build_attack, build_code
from .kit import LETTERS, list_exceptions

BARE = Path(__file__).with_name("bare")
MEMORY_BYTES = 2 * 2**30
PATIENCE = 2.5
"""Seconds after which something counts as endless, where an attack is about that."""


def find_bites(attack: Attack, course: Course, folder: Path, hidden: Collection[bytes] = ()) -> set[str]:
    """What an attack did in its control. The folder is the only place that it can write to.

    escaped: it said so. parent, neighbour, stopped, processes, files: what it harmed and what it left.
    marks: it earned more than its values are worth. others: other exercises lost marks. leak: feedback holds something
    of a hidden set. letters: types of exceptions spell a letter of each hidden text. flood: more output than there may
    be. twice, nothing: two results, none. fault: the grader itself failed. endless: it had to be ended.
    """
    if attack.control == "unlimited":
        return _run_unlimited(attack, course)
    if attack.control == "plain":
        said = _run_plain(attack, course, folder)
    elif attack.control == "in-process":
        said = _run_in_process(attack, course, folder)
    elif attack.control == "trusting-host":
        said = _run_trusting_host(attack, course, folder)
    else:
        return set()
    found = set(re.findall(r"^BITE (\w+)$", said, re.MULTILINE))
    if ESCAPED.decode() in said:
        found.add("escaped")
    return found if attack.control == "plain" else found | _judge(attack, said, hidden, _list_first_letters(course))


def _list_first_letters(course: Course) -> list[str]:
    reference = load_reference(course.reference(ASSIGNMENT))
    return [reference.inputs(seed)["text"][0] for seed in course.assignment(ASSIGNMENT).seeds[1:]]


def _judge(attack: Attack, said: str, hidden: Collection[bytes], letters: list[str]) -> set[str]:
    """What the report of a naive grader shows."""
    reports = [json.loads(line) for line in re.findall(r"^REPORT (.*)$", said, re.MULTILINE)]
    found = {"twice"} if len(reports) > 1 else set()
    if not reports:
        return {"nothing"}
    report = reports[0]
    if report["fault"]:
        return found | {"fault"}
    if report["scores"][attack.exercise] > attack.earns:
        found.add("marks")
    if any(report["scores"][name] < points for name, points in FULL.items() if name != attack.exercise):
        found.add("others")
    if any(text in "\n".join(report["feedback"]).encode() for text in hidden):
        found.add("leak")
    alphabet = {kind.__name__: letter for kind, letter in zip(list_exceptions(), LETTERS, strict=False)}
    if [alphabet.get(each.removesuffix(": ")) for each in report["feedback"] if each.endswith(": ")] == letters:
        found.add("letters")
    if report["outputs"] > LIMITS["output_bytes"] or report["bytes"] > 3 * LIMITS["output_bytes"]:
        found.add("flood")
    return found


def _run_unlimited(attack: Attack, course: Course) -> set[str]:
    """The real sandbox with some limits lifted."""
    assignment = course.assignment(ASSIGNMENT)
    limits = assignment.limits.model_copy(update=LIMITS | attack.lift)
    assignment = assignment.model_copy(update={"limits": limits})
    program = Program((Cell(0, f"import numpy as np\n{build_code(attack, course.folder)}"),))
    with Session(course.folder, assignment) as session:
        execution = session.execute(program, [(42, {})], build_budget(assignment))
    return {"escaped"} if any(ESCAPED in output.data for output in execution.outputs) else set()


def _run_plain(attack: Attack, course: Course, folder: Path) -> str:
    file = folder / "attack.py"
    file.write_text(f"import numpy as np\n{build_code(attack, course.folder)}", encoding="utf-8")
    temporary = folder / "tmp"
    temporary.mkdir()
    return _run_in_box(folder, [BARE / "observer.py", file, temporary], 60, observed=True)


def _run_in_process(attack: Attack, course: Course, folder: Path) -> str:
    program = parse_program(build_attack(attack, course), course.assignment(ASSIGNMENT))
    order = {
        **_describe(course),
        "cells": [(cell.source, bool(cell.exercises)) for cell in program.cells],
        "neighbour": secrets.token_hex(16),
    }
    return _run_order("grader.py", order, folder, PATIENCE + 1.5 if attack.bites == "endless" else 60)


def _run_trusting_host(attack: Attack, course: Course, folder: Path) -> str:
    assignment = course.assignment(ASSIGNMENT)
    limits = assignment.limits.model_copy(update=LIMITS)
    assignment = assignment.model_copy(update={"limits": limits})
    program = parse_program(build_attack(attack, course), assignment)
    input_sets = build_input_sets(course, ASSIGNMENT, load_reference(course.reference(ASSIGNMENT)))
    job = build_job(program, assignment, input_sets[0].inputs.keys())
    passes = [
        wire.RunPass(
            number, each.seed, True, {name: build_wire_input(value) for name, value in each.inputs.items()}, ()
        )
        for number, each in enumerate(input_sets)
    ]
    passes.insert(1, wire.RunPass(len(input_sets), input_sets[0].seed, False, {}, ()))
    guest = folder / "guest"
    shutil.copytree(Path(autograder.guest.__file__).parent, guest, ignore=shutil.ignore_patterns("__pycache__"))
    order = {
        **_describe(course),
        "answers": job.answers,
        "requests": base64.b64encode(b"".join(map(wire.build_frame, (job, *passes)))).decode(),
        "guest": str(folder),
        "passes": len(passes),
        "seconds": PATIENCE if attack.bites == "endless" else 60,
    }
    return _run_order("host.py", order, folder, 90)


def _describe(course: Course) -> dict[str, Any]:
    return {"reference": str(course.reference(ASSIGNMENT)), "seeds": course.assignment(ASSIGNMENT).seeds}


def _run_order(script: str, order: dict[str, Any], folder: Path, seconds: float) -> str:
    (folder / "order.json").write_text(json.dumps(order), encoding="utf-8")
    (folder / "tmp").mkdir()
    return _run_in_box(folder, [BARE / script, folder / "order.json"], seconds)


def _run_in_box(folder: Path, arguments: Sequence[Path], seconds: float, *, observed: bool = False) -> str:
    """What a script says, run in a box in which it can harm nothing. With `observed` it is pid 1 there."""
    command = ["prlimit", f"--as={MEMORY_BYTES}", f"--fsize={2**26}", "--core=0", "--"]
    command += ["bwrap", "--ro-bind", "/", "/", "--bind", str(folder), str(folder), "--dev", "/dev", "--proc", "/proc"]
    command += ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--cap-drop", "ALL"]
    command += ["--die-with-parent", "--new-session", "--chdir", str(folder / "tmp")]
    command += ["--setenv", "TMPDIR", str(folder / "tmp"), "--setenv", "OPENBLAS_NUM_THREADS", "1"]
    command += ["--as-pid-1"] if observed else []
    with subprocess.Popen(
        [*command, "--", sys.executable, "-B", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            said, complaints = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            said, complaints = process.communicate()
            said += b"\nBITE endless\n"
    print(complaints.decode(errors="replace")[-3000:], file=sys.stderr)
    return said.decode(errors="replace")
