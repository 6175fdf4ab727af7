"""The spine: program -> execution -> marks -> grade, for one submission at a time."""

import traceback
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType

import msgspec

from autograder.catalogue import load_catalogue
from autograder.course import Course
from autograder.errors import CourseError, NotebookError, SandboxError
from autograder.intake.layouts import Source, read_submission
from autograder.intake.notebook import parse_program
from autograder.marking.known import KnownMistake
from autograder.marking.score import find_status, total_exercises
from autograder.marking.session import MarkingSession
from autograder.mistakes import load_known
from autograder.records import Ending, Execution, Grade, Mark, Pass, Program, Submission
from autograder.sandbox.session import Session
from autograder.sandbox.watch import Budget, build_budget

_DIED = (Ending.TIMEOUT, Ending.KILLED, Ending.EXITED, Ending.OUT_OF_MEMORY)


class Outcome(msgspec.Struct, frozen=True):
    """What an exercise earned in one execution."""

    marks: dict[str, Mark]
    status: Ending

    @property
    def score(self) -> float:
        """Points over the exercise's hidden tests."""
        return sum(mark.score for mark in self.marks.values())


class Grader:
    """Grades submissions of one assignment: one sandbox and one marking session. A context manager."""

    def __init__(self, course: Course, assignment: str) -> None:
        self.course = course
        self.name = assignment
        self.assignment = course.assignment(assignment)
        self._known: tuple[KnownMistake, ...] | None = None

    def __enter__(self) -> "Grader":
        with ExitStack() as stack:
            self.marking = stack.enter_context(MarkingSession(self.course, self.name))
            known = {exercise.id for exercise in self.assignment.exercises}
            for test in self.marking.tests:
                if test.exercise not in known:
                    raise CourseError(
                        f"the hidden test {test.name} names the exercise {test.exercise}, which course.toml has not"
                    )
            lesson = tuple(self.marking.input_sets[0].inputs)
            self._released = self._read_released_cells()
            self.sandbox = stack.enter_context(
                Session(self.course.folder, self.assignment, sorted(self._released), lesson)
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

    def grade_source(self, source: Source) -> Grade:
        """Grade one file. What cannot be read or run comes back as ungraded, with the reason."""
        try:
            submission = read_submission(source)
        except NotebookError as error:
            return Grade(source.student, source.shown, "", "ungraded", reason=str(error), notes=source.notes)
        grade = self.grade_submission(submission)
        return msgspec.structs.replace(grade, notes=(*source.notes, *grade.notes)) if source.notes else grade

    def grade_submission(self, submission: Submission) -> Grade:
        """Grade one submission. What cannot be read or run comes back as ungraded, with the reason."""
        blank = Grade(submission.student, submission.path, submission.sha256, "ungraded")
        try:
            program = parse_program(submission.data, self.assignment)
            try:
                return self._grade_program(program, blank)
            except SandboxError:
                # The fork server may have died under it, which is no fault of the submission: once more in a new one.
                return self._grade_program(program, blank)
        except (NotebookError, SandboxError, CourseError) as error:
            return msgspec.structs.replace(blank, reason=str(error))
        except Exception as error:
            # A fault of ours must not take the rest of the class with it, and is never a zero.
            traceback.print_exc()
            reason = f"a fault of the autograder ({type(error).__name__}: {error}); please report it"
            return msgspec.structs.replace(blank, reason=reason)

    def _grade_program(self, program: Program, blank: Grade) -> Grade:
        inputs = [(input_set.seed, input_set.inputs) for input_set in self.marking.input_sets]
        joint = self.sandbox.execute(program, inputs, build_budget(self.assignment))
        # As much again, shared out among the exercises that are run alone, so that none uses it up for others.
        left = build_budget(self.assignment)
        marks = self.marking.mark(joint, program, self.load_known)
        notes = [*program.notes, *joint.notes]
        best: dict[str, Outcome] = {}
        for number, exercise in enumerate(self.assignment.exercises):
            outcome = self._judge(exercise.id, program, joint, marks)
            share = 1 / (len(self.assignment.exercises) - number)
            alone = self._run_alone(exercise.id, program, joint, outcome, left, share)
            if alone is not None and alone.score > outcome.score:
                notes.append(
                    f"Exercise {exercise.id} earned {alone.score:g} points when it was run without the other "
                    f"exercises, and {outcome.score:g} together with them; the better result counts."
                )
                outcome = alone
            best[exercise.id] = outcome
        chosen = [best[mark.exercise].marks[mark.name] for mark in marks]
        notes += dict.fromkeys(note for mark in chosen for note in mark.notes)
        statuses = {name: outcome.status for name, outcome in best.items()}
        untouched = {name for name in best if self._is_untouched(name, program)}
        exercises = total_exercises(self.assignment, chosen, statuses, untouched)
        return msgspec.structs.replace(
            blank,
            status="graded",
            notes=tuple(dict.fromkeys(notes)),
            score=sum(exercise.score for exercise in exercises),
            max_score=sum(exercise.max_score for exercise in exercises),
            pending=sum(exercise.pending for exercise in exercises),
            exercises=exercises,
        )

    def load_known(self) -> tuple[KnownMistake, ...]:
        """The known mistakes of the assignment, from the first lost mark on."""
        if self._known is None:
            try:
                self._known = load_known(self.course, self.name, self.sandbox, self.marking.input_sets)
            except (SandboxError, OSError):
                return ()  # explanations never decide whether there is a mark; the next submission tries again
        return self._known

    def _judge(self, exercise: str, program: Program, execution: Execution, marks: tuple[Mark, ...]) -> Outcome:
        answers = next(tuple(each.answers) for each in self.assignment.exercises if each.id == exercise)
        status = find_status(exercise, answers, program, execution)
        return Outcome({mark.name: mark for mark in marks if mark.exercise == exercise}, status)

    def _is_untouched(self, exercise: str, program: Program) -> bool:
        """Whether an exercise's cells are as they were released, or gone."""
        return all(cell.source in self._released for cell in program.cells if exercise in cell.exercises)

    def _run_alone(
        self, exercise: str, program: Program, joint: Execution, outcome: Outcome, left: Budget, share: float
    ) -> Outcome | None:
        """An exercise that lost marks, run without the others' cells; None where that can change nothing."""
        if self._is_untouched(exercise, program) or all(mark.outcome == "passed" for mark in outcome.marks.values()):
            return None
        others = {
            number for number, cell in enumerate(program.cells) if cell.exercises and exercise not in cell.exercises
        }
        died = {run.cell for one_pass in joint.passes for run in one_pass.runs if run.ending in _DIED}
        # A helper that hangs would hang again, on the time of this exercise.
        others |= {cell for cell in died if not program.cells[cell].exercises}
        if any(exercise in program.cells[cell].exercises for cell in died):
            # An endless loop is not paid for twice.
            left.cell_cpu = max(0.5, self.assignment.limits.cell_cpu_seconds / 4)
        else:
            left.cell_cpu = self.assignment.limits.cell_cpu_seconds
        inputs = [(input_set.seed, input_set.inputs) for input_set in self.marking.input_sets]
        execution = self._spend(
            left,
            share,
            lambda budget: self.sandbox.execute(program, inputs, budget, skip=others, evidence=False, reset=True),
        )
        if sum(mark.score for mark in self.marking.mark(execution, exercise=exercise)) <= outcome.score:
            return None  # explaining costs more than marking, and nobody would read it
        return self._judge(
            exercise, program, execution, self.marking.mark(execution, program, self.load_known, exercise)
        )

    @staticmethod
    def _spend(left: Budget, share: float, run: Callable[[Budget], Execution]) -> Execution:
        """Run within a share of what is left, and take off what was used."""
        mine = msgspec.structs.replace(left, wall=left.wall * share, cpu=left.cpu * share)
        before = mine.wall, mine.cpu
        execution = run(mine)
        left.wall -= before[0] - mine.wall
        left.cpu -= before[1] - mine.cpu
        return execution
