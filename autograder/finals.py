"""What counts for each student: grade, a person's decisions, deadlines. Put together anew each time."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from operator import itemgetter

import msgspec

from autograder.course import Course
from autograder.decisions import Maxima, find_maxima
from autograder.gradebook import Entry
from autograder.policy import Reception, choose_decisions, compute_final
from autograder.records import Decision, FinalGrade, Grade
from autograder.roster import Roster


class Finals:
    """Computes final grades of one assignment.

    maxima: what the hidden tests of each exercise are worth, for submissions that could not be graded.
    numbers: what the LMS knows the students of submissions by, by the submission's name; decisions name only that.
    """

    def __init__(
        self,
        course: Course,
        assignment: str,
        decisions: Iterable[Decision] = (),
        roster: Roster | None = None,
        maxima: Maxima | None = None,
        numbers: Mapping[str, str] | None = None,
    ) -> None:
        self._course = course
        self._name = assignment
        self._roster = roster
        self._maxima = dict(maxima or {})
        self._numbers = dict(numbers or {})
        self._decisions: dict[str, list[tuple[int, Decision]]] = defaultdict(list)
        for place, decision in enumerate(decisions):
            # It may name a submission from before the roster was there.
            student = self.find_student(decision.student)
            self._decisions[student].append((place, msgspec.structs.replace(decision, student=student)))

    def find_student(self, label: str, lms_id: str = "") -> str:
        """The roster's id of whom a submission or a decision names; the name itself where the roster knows nobody."""
        if self._roster is None:
            return label
        match = self._roster.match(label, lms_id or self._numbers.get(label, ""))
        return match.students[0].id if match.students else label

    def compute(self, grade: Grade, entry: Entry, student: str = "", sharers: Collection[str] = ()) -> FinalGrade:
        """What counts of one submission for a student, by default the one who handed it in.

        student: an id of the roster. sharers: ids of the others for whom the same submission counts.
        """
        if not self._maxima:
            self._maxima = find_maxima([grade])
        student = student or self.find_student(entry.student, entry.lms_id)
        # In the order in which they were made: of several people who share a submission, the last decision counts.
        made = sorted(
            (pair for each in (student, *sharers) for pair in self._decisions.get(each, ())), key=itemgetter(0)
        )
        person = self._roster.find(student) if self._roster else None
        return compute_final(
            grade,
            self._course.assignment(self._name),
            choose_decisions([decision for _, decision in made], self._name, student, sharers),
            Reception(entry.received, entry.late, person.deadlines.get(self._name) if person else None),
            zone=self._course.zone(self._name),
            maxima=self._maxima,
        )
