"""The spine: program -> execution -> marks -> grade, for one submission at a time."""

import sys
import traceback
from collections.abc import Iterable
from contextlib import ExitStack
from types import TracebackType

import msgspec

from autograder.catalogue import load_catalogue
from autograder.course import Course
from autograder.errors import CourseError, NotebookError, SandboxError, SandboxUnavailable
from autograder.intake.files import make_lines_showable
from autograder.intake.notebook import parse_program
from autograder.marking.known import KnownMistake, equal_values
from autograder.marking.score import find_status, total_exercises
from autograder.marking.session import MarkingSession
from autograder.mistakes import load_known
from autograder.records import Ending, Execution, Grade, Mark, Missing, Pass, Program, Submission
from autograder.runs import Runs, Tries
from autograder.sandbox.modes import SandboxMode
from autograder.sandbox.session import Session


class Order(msgspec.Struct, frozen=True):
    """A submission to grade, with the runs of it that are stored (see `runs.Runs`).

    program: what was run then, so that the submission's bytes need not be read again.
    """

    submission: Submission
    runs: dict[str, Execution] = {}
    may_run: bool = True
    program: Program | None = None


class Graded(msgspec.Struct, frozen=True):
    """A grade, the runs that were made for it, and the exercises whose run alone was wanted and not allowed."""

    grade: Grade
    program: Program | None = None
    """What was run; None where the submission could not be read."""
    runs: dict[str, Execution] = {}
    wanted: tuple[str, ...] = ()
    settled: bool = True
    """Whether another try would come to the same; not so where a fault of ours or of the machine was in the way."""


class Outcome(msgspec.Struct, frozen=True):
    """What an exercise earned in one execution."""

    marks: dict[str, Mark]
    status: Ending
    turned: tuple[str, ...] = ()
    """Of a run alone: its answers that were other ones in the joint run."""

    @property
    def score(self) -> float:
        """Points over the exercise's hidden tests."""
        return sum(mark.score for mark in self.marks.values())


class Grader:
    """Grades submissions of one assignment: one sandbox and one marking session. A context manager.

    eager: student code will run, so that the sandbox starts at once, beside the marking session.
    """

    def __init__(
        self, course: Course, assignment: str, mode: SandboxMode | None = None, *, eager: bool = False
    ) -> None:
        self._eager = eager
        self.course = course
        self.mode = mode
        self.name = assignment
        self.assignment = course.assignment(assignment)
        self._known: tuple[KnownMistake, ...] | None = None
        self._lacks_known = False
        self._tries = Tries()

    def __enter__(self) -> "Grader":
        with ExitStack() as stack:
            self.marking = MarkingSession(self.course, self.name)
            lesson = tuple(self.marking.input_sets[0].inputs)
            self._released = self._read_released_cells()
            # What is stored is marked again without a sandbox; it starts when the first run is wanted, or at once.
            self.sandbox = Session(self.course.folder, self.assignment, sorted(self._released), lesson, self.mode)
            stack.callback(self.sandbox.close)
            if self._eager:
                self.sandbox.begin()
            stack.enter_context(self.marking)
            known = {exercise.id for exercise in self.assignment.exercises}
            for test in self.marking.tests:
                if test.exercise not in known:
                    raise CourseError(
                        f"the hidden test {test.name} names the exercise {test.exercise}, which course.toml has not"
                    )
            load_catalogue(self.course, self.name)
            self._mark_reference()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def _mark_reference(self) -> None:
        """The reference's own answers must get full marks: a broken course stops grading before it starts."""
        tested = {test.exercise for test in self.marking.tests}
        for exercise in self.assignment.exercises:
            if exercise.id not in tested:
                raise CourseError(f"{self.course.hidden_tests(self.name)}: no hidden test belongs to {exercise.id}")
        passes = tuple(Pass(each.seed, (), dict(each.expected)) for each in self.marking.input_sets)
        for mark in self.marking.mark(Execution(passes)):
            if mark.outcome != "passed":
                raise CourseError(
                    f"the reference itself loses the hidden test {mark.name} ({mark.message} {mark.detail}); "
                    f"look at {self.course.reference(self.name)} and at the answers in course.toml"
                )

    def _read_released_cells(self) -> frozenset[str]:
        """What the released notebook's cells hold, where there is one yet."""
        released = self.course.released_notebook(self.name)
        if not released.is_file():
            return frozenset()
        try:
            return frozenset(cell.source for cell in parse_program(released.read_bytes(), self.assignment).cells)
        except NotebookError as error:
            raise CourseError(f"{released}: {error}; build it with autograder release {self.name}") from error

    def grade_submission(self, submission: Submission) -> Grade:
        """Grade one submission. What cannot be read or run comes back as ungraded, with the reason."""
        return self.grade_order(Order(submission)).grade

    def grade_order(self, order: Order) -> Graded:
        """Grade one submission from the runs that are stored, and make those that are missing.

        `SandboxUnavailable` when this machine can run nothing at all.
        """
        submission = order.submission
        blank = Grade(submission.student, submission.path, submission.sha256, "ungraded")
        try:
            program = order.program or parse_program(submission.data, self.assignment)
            try:
                return self._grade_program(program, blank, order)
            except SandboxUnavailable:
                raise
            except SandboxError:
                # The fork server may have died under it, which is no fault of the submission: once more in a new one.
                return self._grade_program(program, blank, order)
        except SandboxUnavailable:
            raise
        except NotebookError as error:
            return Graded(msgspec.structs.replace(blank, reason=str(error)))
        except (SandboxError, CourseError) as error:
            return Graded(msgspec.structs.replace(blank, reason=str(error)), settled=False)
        except Exception as error:
            # A fault of ours must not take the rest of the class with it, and is never a zero.
            print(make_lines_showable(traceback.format_exc()), file=sys.stderr)
            reason = f"a fault of the autograder ({type(error).__name__}: {error}); please report it"
            return Graded(msgspec.structs.replace(blank, reason=reason), settled=False)

    def _grade_program(self, program: Program, blank: Grade, order: Order) -> Graded:
        runs = Runs(
            self.sandbox, self.assignment, self.marking.input_sets, program, self._released, order.runs,
            self._tries, may_run=order.may_run,
        )  # fmt: skip
        self._lacks_known = False
        joint = runs.run_together()
        marks = self.marking.mark(joint, program, self.load_known)
        notes = [*program.notes, *joint.notes]
        best: dict[str, Outcome] = {}
        for exercise in self.assignment.exercises:
            outcome = self._judge(exercise.id, program, joint, marks)
            alone = self._improve(exercise.id, program, joint, outcome, runs)
            if alone is not None:
                notes.append(
                    f"Exercise {exercise.id} earned {alone.score:g} points when it was run without the other "
                    f"exercises, and {outcome.score:g} together with them; the better result counts."
                )
                if alone.turned:
                    notes.append(
                        f"Exercise {exercise.id} gave {', '.join(alone.turned)} other values alone than together with "
                        "the others. They changed something that it uses, or it draws numbers without a seed, or it "
                        "looks in which run it is, to guess twice."
                    )
            best[exercise.id] = alone or outcome
        chosen = [best[mark.exercise].marks[mark.name] for mark in marks]
        notes += dict.fromkeys(note for mark in chosen for note in mark.notes)
        statuses = {name: outcome.status for name, outcome in best.items()}
        untouched = {name for name in best if runs.is_untouched(name)}
        exercises = total_exercises(self.assignment, chosen, statuses, untouched)
        grade = msgspec.structs.replace(
            blank,
            status="graded",
            notes=tuple(dict.fromkeys(notes)),
            score=sum(exercise.score for exercise in exercises),
            max_score=sum(exercise.max_score for exercise in exercises),
            pending=sum(exercise.pending for exercise in exercises),
            exercises=exercises,
        )
        return Graded(grade, program, runs.made, tuple(runs.wanted), settled=not self._lacks_known)

    def load_known(self) -> tuple[KnownMistake, ...] | None:
        """The known mistakes of the assignment, from the first lost mark on; None when they cannot be had now."""
        if self._known is None:
            try:
                self._known = load_known(self.course, self.name, self.sandbox, self.marking.input_sets)
            except (SandboxError, OSError):
                # Explanations never decide whether there is a mark; the next submission tries again.
                self._lacks_known = True
                return None
        return self._known

    def _judge(self, exercise: str, program: Program, execution: Execution, marks: tuple[Mark, ...]) -> Outcome:
        answers = next(tuple(each.answers) for each in self.assignment.exercises if each.id == exercise)
        status = find_status(exercise, answers, program, execution)
        return Outcome({mark.name: mark for mark in marks if mark.exercise == exercise}, status)

    def _improve(
        self, exercise: str, program: Program, joint: Execution, outcome: Outcome, runs: Runs
    ) -> Outcome | None:
        """What an exercise that lost marks earns when it is run alone; None unless that is more."""
        lost = [mark for mark in outcome.marks.values() if mark.outcome != "passed"]
        if not lost:
            return None
        execution = runs.run_alone(exercise, joint, lost)
        if execution is None:
            return None
        if sum(mark.score for mark in self.marking.mark(execution, exercise=exercise)) <= outcome.score:
            return None  # explaining costs more than marking, and nobody would read it
        marks = self.marking.mark(execution, program, self.load_known, exercise)
        # What it left to be repaired, it could choose by the hidden input sets, which it has seen in the joint run.
        marks = tuple(msgspec.structs.replace(mark, notes=()) for mark in marks)
        judged = self._judge(exercise, program, execution, marks)
        answers = next(each.answers for each in self.assignment.exercises if each.id == exercise)
        return msgspec.structs.replace(judged, turned=_list_turned(answers, joint, execution))


def _list_turned(names: Iterable[str], joint: Execution, alone: Execution) -> tuple[str, ...]:
    """Answers that have a value in both runs, and not the same."""

    def is_turned(name: str) -> bool:
        for before, after in zip(joint.passes, alone.passes, strict=True):
            values = [each.answers.get(name, Missing()) for each in (before, after)]
            if not any(isinstance(value, Missing) for value in values) and not equal_values(*values):
                return True
        return False

    return tuple(name for name in names if is_turned(name))
