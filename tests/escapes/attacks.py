"""The corpus: what an attack file says, and how its code gets into a notebook."""

import json
import tomllib
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from autograder.catalogue import fill_notebook
from autograder.course import Course
from autograder.records import Ending

ROOT = Path(__file__).parents[2]
CORPUS = Path(__file__).with_name("corpus")
ASSIGNMENT = "qkv"
FULL = {"shared-key": 4.0, "head-size": 5.0, "shared-value": 4.0}
KIT = Path(__file__).with_name("kit.py").read_text(encoding="utf-8")
ESCAPED, TRIED = b"ESCAPED:", b"TRIED"

LIMITS: dict[str, int | float] = {
    "cell_wall_seconds": 1.5,
    "cell_cpu_seconds": 0.8,
    "wall_seconds": 6.0,
    "cpu_seconds": 6.0,
    "memory_bytes": 512 * 2**20,
    "processes": 24,
    "disk_bytes": 2 * 2**20,
    "files": 64,
    "output_bytes": 2**16,
    "answer_bytes": 2**18,
}
"""Small, so that an attack that must be waited for is soon over; ample for an honest cell on a busy machine."""

ROOMY = {"cell_wall_seconds": 12.0, "cell_cpu_seconds": 6.0, "wall_seconds": 60.0, "cpu_seconds": 40.0}
"""For attacks that something else than a time limit must end; on a slow machine they may need their time."""


class Elsewhere(BaseModel):
    """What is different for an attack in another mode of the sandbox than `nested`.

    must: what happens there; it is said wherever something is different.
    endings, tried: as of the attack.
    tells: how something may begin that it says it reached.
    skip: it is not run there, since what it is about is not promised, or not there.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    must: str
    endings: tuple[Ending, ...] = ()
    tried: bool | None = None
    tells: tuple[str, ...] = ()
    skip: bool = False


class Attack(BaseModel):
    """One file of the corpus.

    earns: the points that the values it leaves in the answers are worth.
    endings: the statuses that its exercise may end with.
    place: where its code stands, relative to the solution of its exercise; `helper` is a cell of its own above it.
    tried: it says when it is through, so that one which breaks off early is no proof.
    control: where it is run without what stops it, which proves that it bites: `plain` is a process with no wall
        around it, `unlimited` the sandbox with the limits in `lift` instead of the tight ones, `in-process` a grader
        that looks at the student's own objects, `trusting-host` a host that believes the real runner,
        `impossible` nowhere, and `why` says why.
    bites: what it does there, in a word of `controls.find_bites`.
    modes: what is different in other modes of the sandbox.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    tries: str
    must: str
    exercise: str
    code: str
    earns: float = 0
    endings: Annotated[tuple[Ending, ...], Field(min_length=1)]
    place: Literal["instead", "before", "after", "helper"] = "instead"
    tried: bool = True
    control: Literal["plain", "unlimited", "in-process", "trusting-host", "impossible"]
    lift: dict[str, int | float] = {}
    bites: str = "escaped"
    why: str = ""
    modes: dict[Literal["single", "user"], Elsewhere] = {}
    tells: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check_control(self) -> Self:
        if bool(self.lift) != (self.control == "unlimited"):
            raise ValueError("limits are lifted in the control `unlimited`, and only there")
        if not self.lift.keys() <= LIMITS.keys():
            raise ValueError("a limit that there is not")
        if bool(self.why) != (self.control == "impossible"):
            raise ValueError("a control that is impossible has a reason, and no other has")
        return self

    def move(self, mode: str) -> "Attack":
        """The attack as it is in a mode."""
        found = self.modes.get(mode)
        if found is None:
            return self
        tried = self.tried if found.tried is None else found.tried
        return self.model_copy(update={"endings": found.endings or self.endings, "tried": tried, "tells": found.tells})

    @property
    def is_timed(self) -> bool:
        """Whether a time limit may end it; then waiting for a generous one would only cost time."""
        return Ending.TIMEOUT in self.endings


def load_corpus() -> dict[str, Attack]:
    """All attacks by the name of their file."""
    files = sorted(CORPUS.glob("*.toml"))
    return {file.stem: Attack.model_validate(tomllib.loads(file.read_text(encoding="utf-8"))) for file in files}


def build_code(attack: Attack, course_folder: Path) -> str:
    """The kit, what the attacker knows of the course, and the attack."""
    return f"{KIT}\nCOURSE = {str(course_folder)!r}\n{attack.code}"


def build_attack(attack: Attack, course: Course) -> bytes:
    """The solution notebook with the attack in its exercise's cell."""
    source = course.solution_notebook(ASSIGNMENT).read_bytes()
    code = build_code(attack, course.folder)
    if attack.place == "helper":
        return fill_notebook(source, {}, {attack.exercise: code})
    if attack.place == "before":
        code = f"{code}\n{read_solution(source, attack.exercise)}"
    elif attack.place == "after":
        code = f"{read_solution(source, attack.exercise)}\n{code}"
    return fill_notebook(source, {attack.exercise: code})


def read_solution(source: bytes, exercise: str) -> str:
    """The code of an exercise's answer cell, without its marker line."""
    for cell in json.loads(source)["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == exercise:
            return "".join(cell["source"]).split("\n", 1)[1]
    raise LookupError(exercise)
