"""What counts for each student of a class, with the roster and everybody's decisions."""

from datetime import UTC, datetime
from pathlib import Path

from autograder.course import load_course
from autograder.finals import Finals
from autograder.gradebook import Entry
from autograder.records import Decision, Ending, ExerciseGrade, Grade
from autograder.roster import Roster, Student

COURSE = load_course(Path(__file__).parents[2])
WHEN = datetime(2027, 2, 1, tzinfo=UTC)
ROSTER = Roster([Student("ada", "Ada Lovelace"), Student("bob", group="red"), Student("cy", group="red")])


def decide(student: str, points: float) -> Decision:
    return Decision("qkv", student, "shared-key", "written", points, "grace", "", WHEN)


def compute(decisions: list[Decision], student: str = "", sharers: tuple[str, ...] = (), label: str = "bob") -> float:
    exercise = ExerciseGrade("shared-key", Ending.OK, 3.0, 5.0, 1.0, ())
    others = (
        ExerciseGrade("head-size", Ending.OK, 0.0, 5.0, 0.0, ()),
        ExerciseGrade("shared-value", Ending.OK, 0.0, 5.0, 1.0, ()),
    )
    grade = Grade(label, "", "", "graded", exercises=(exercise, *others))
    final = Finals(COURSE, "qkv", decisions, ROSTER).compute(grade, Entry(label, "", ""), student, sharers)
    assert final.total is not None
    return final.total


def test_of_several_who_share_a_submission_the_decision_made_last_counts() -> None:
    made = [decide("cy", 0.25), decide("bob", 1), decide("cy", 0.5)]
    assert compute(made, "ada", sharers=("cy", "bob")) == compute(made, "ada", sharers=("bob", "cy")) == 3.5
    assert compute(made[:2], "ada", sharers=("cy", "bob")) == 4
    assert compute(made, "bob", sharers=("cy",)) == 4


def test_who_chose_the_name_of_another_gets_none_of_the_others_points_and_gives_none() -> None:
    exercise = ExerciseGrade("shared-key", Ending.OK, 3.0, 5.0, 1.0, ())
    decisions = [decide("ada", 1), decide("Ada Lovelace (66)", 0.5)]
    finals = Finals(COURSE, "qkv", decisions, ROSTER, numbers={"Ada Lovelace (66)": "66"})

    def find_written(label: str, lms_id: str) -> float | None:
        grade = Grade(label, "", "", "graded", exercises=(exercise,))
        return finals.compute(grade, Entry(label, "", "", lms_id=lms_id)).exercises[0].written

    assert find_written("Ada Lovelace", "11") == 1
    assert find_written("Ada Lovelace (66)", "66") == 0.5


def test_a_decision_about_a_submissions_name_counts_for_the_student_of_the_roster() -> None:
    assert compute([decide("lovelaceada", 1)], label="Ada Lovelace") == 4
