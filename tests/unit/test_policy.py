"""What counts in the end: decisions, lateness, and never a zero for what could not be graded."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.course import Assignment, Late, load_course
from autograder.decisions import Desk, parse_decisions
from autograder.policy import Reception, choose_decisions, compute_final, describe_lateness
from autograder.records import Decision, Ending, ExerciseGrade, FinalGrade, Grade
from autograder.roster import parse_roster

ROOT = Path(__file__).parents[2]
QKV = load_course(ROOT).assignment("qkv")
MAXIMA = {"shared-key": 4.0, "head-size": 5.0, "shared-value": 4.0}
WRITTEN = {"shared-key": 1.0, "head-size": 0.0, "shared-value": 1.0}
BERLIN = ZoneInfo("Europe/Berlin")
DUE = datetime(2027, 1, 15, 23, 59, tzinfo=BERLIN)
WHEN = datetime(2027, 2, 1, tzinfo=UTC)
NOTHING_KNOWN = Reception()
UNGRADED = Grade("ada", "ada.ipynb", "0" * 64, "ungraded", reason="The sandbox is broken.")


def build_grade(*scores: float) -> Grade:
    exercises = tuple(
        ExerciseGrade(name, Ending.OK, score, MAXIMA[name] + WRITTEN[name], WRITTEN[name], ())
        for name, score in zip(MAXIMA, scores, strict=True)
    )
    return Grade("ada", "", "", "graded", None, (), sum(scores), 15.0, 2.0, exercises)


def build_assignment(**late: object) -> Assignment:
    return QKV.model_copy(update={"due": DUE, "late": Late.model_validate(late)})


def decide(exercise: str, kind: str, points: float | None, student: str = "ada", assignment: str = "qkv") -> Decision:
    return Decision(assignment, student, exercise, kind, points, "grace", "x", WHEN)


def finish(
    grade: Grade,
    decisions: Sequence[Decision] = (),
    reception: Reception = NOTHING_KNOWN,
    **late: object,
) -> FinalGrade:
    chosen = choose_decisions(decisions, "qkv", "ada")
    return compute_final(grade, build_assignment(**late), chosen, reception, zone=BERLIN, maxima=MAXIMA)


# --- decisions ---------------------------------------------------------------------------------------------------


def test_without_decisions_the_tests_points_count_and_written_parts_are_pending() -> None:
    final = finish(build_grade(3, 5, 2))
    assert (final.status, final.automatic, final.points, final.total) == ("graded", 10, 10, 10)
    assert (final.pending, final.max_score, final.notes) == (2, 15, ())


def test_an_override_replaces_the_tests_points_and_written_points_are_added() -> None:
    final = finish(build_grade(3, 5, 2), [decide("shared-value", "override", 4), decide("shared-key", "written", 0.5)])
    key, size, value = final.exercises
    assert (key.automatic, key.override, key.written, key.points, key.pending, key.max_score) == (
        3,
        None,
        0.5,
        3.5,
        0,
        5,
    )
    assert (size.automatic, size.points, size.max_score) == (5, 5, 5)
    assert (value.automatic, value.override, value.written, value.points, value.pending) == (2, 4, None, 4, 1)
    assert (final.automatic, final.points, final.pending, final.total) == (10, 12.5, 1, 12.5)


def test_an_override_with_0_takes_the_points_away() -> None:
    assert finish(build_grade(3, 5, 2), [decide("head-size", "override", 0)]).total == 5


def test_the_last_decision_counts_and_a_withdrawn_one_does_not() -> None:
    first, second = decide("shared-key", "override", 1), decide("shared-key", "override", 2)
    back = decide("shared-key", "override", None)
    assert finish(build_grade(3, 0, 0), [first, second]).total == 2
    assert finish(build_grade(3, 0, 0), [second, first]).total == 1
    assert finish(build_grade(3, 0, 0), [first, second, back]).total == 3
    assert finish(build_grade(3, 0, 0), [first, back, second]).total == 2


def test_decisions_about_others_and_other_assignments_do_not_count() -> None:
    mine = decide("shared-key", "written", 1)
    others = [
        decide("shared-key", "written", 0, student="bob"),
        decide("shared-key", "written", None, assignment="softmax"),
    ]
    assert finish(build_grade(3, 0, 0), [mine, *others]).total == 4


def test_written_points_of_a_shared_submission_count_for_all_and_overrides_for_one() -> None:
    made = [
        decide("shared-key", "written", 1),
        decide("shared-key", "override", 0),
        decide("shared-value", "written", 1),
        decide("shared-value", "written", 0, student="bob"),
    ]
    chosen = choose_decisions(made, "qkv", "bob", sharers=["ada"])
    assert {key: decision.points for key, decision in chosen.items()} == {
        ("shared-key", "written"): 1,
        ("shared-value", "written"): 0,
    }
    assert choose_decisions(made, "qkv", "bob").keys() == {("shared-value", "written")}
    withdrawn = [*made, decide("shared-value", "written", None, student="bob")]
    assert choose_decisions(withdrawn, "qkv", "bob", sharers=["ada"])["shared-value", "written"].points == 1


def test_of_two_who_share_a_submission_the_last_decision_counts_for_a_third() -> None:
    made = [
        decide("shared-key", "written", 1, student="bob"),
        decide("shared-key", "written", 0),
        decide("shared-key", "written", 0.5, student="bob"),
    ]
    assert choose_decisions(made, "qkv", "cy", sharers=["bob", "ada"])["shared-key", "written"].points == 0.5


def test_a_decision_outlives_an_exercise_that_became_worth_less_and_says_so() -> None:
    grade = build_grade(3, 5, 2)
    final = compute_final(
        grade,
        build_assignment(),
        choose_decisions([decide("head-size", "override", 7), decide("gone", "override", 1)], "qkv", "ada"),
        Reception(),
        zone=BERLIN,
    )
    assert final.total == 10
    assert "7 points were given for head-size (override), worth 5 now" in final.notes[0]
    assert "there is no such exercise" in final.notes[1]


# --- what could not be graded ------------------------------------------------------------------------------------


def test_what_could_not_be_graded_has_no_score_and_not_0() -> None:
    final = finish(UNGRADED)
    assert (final.status, final.reason) == ("ungraded", "The sandbox is broken.")
    assert (final.automatic, final.points, final.pending, final.total) == (None, None, None, None)
    assert final.max_score == 15
    assert [exercise.points for exercise in final.exercises] == [None, None, None]


def test_written_points_and_some_overrides_do_not_make_a_score() -> None:
    made = [decide("shared-key", "written", 1), decide("shared-key", "override", 4), decide("head-size", "override", 5)]
    final = finish(UNGRADED, made, Reception(DUE + timedelta(days=9)), policy="per-day", percent_per_day=10)
    assert (final.status, final.total) == ("ungraded", None)
    assert final.late is not None
    assert (final.late.days, final.late.taken) == (9, None)
    assert "points for shared-value" in final.notes[0]


def test_a_person_who_overrides_every_exercise_grades_the_submission() -> None:
    made = [decide(name, "override", points) for name, points in MAXIMA.items()]
    final = finish(UNGRADED, made, Reception(DUE + timedelta(hours=1)), policy="per-day", percent_per_day=10)
    assert (final.status, final.reason, final.automatic) == ("graded", None, None)
    assert (final.points, final.pending, final.total) == (13, 2, 11.5)


def test_without_knowing_what_tests_are_worth_the_maximum_is_not_known() -> None:
    final = compute_final(UNGRADED, build_assignment(), {}, Reception(), zone=BERLIN)
    assert (final.max_score, final.total) == (None, None)


# --- lateness ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("late", "after", "days", "percent", "taken"),
    [
        ({"policy": "none"}, timedelta(days=2), 2, 0, 0),
        ({"percent_per_day": 10}, timedelta(0), 0, 0, 0),
        ({"percent_per_day": 10}, timedelta(seconds=1), 1, 10, 1.5),
        ({"percent_per_day": 10}, timedelta(days=1), 1, 10, 1.5),
        ({"percent_per_day": 10}, timedelta(days=1, seconds=1), 2, 20, 3),
        ({"percent_per_day": 10, "percent_of": "earned"}, timedelta(hours=1), 1, 10, 1),
        ({"percent_per_day": 33.33, "percent_of": "earned"}, timedelta(hours=1), 1, 33.33, 3.33),
        ({"percent_per_day": 10, "grace_minutes": 15}, timedelta(minutes=15), 0, 0, 0),
        ({"percent_per_day": 10, "grace_minutes": 15}, timedelta(minutes=16), 1, 10, 1.5),
        ({"percent_per_day": 10, "grace_minutes": 15}, timedelta(days=1, minutes=15), 1, 10, 1.5),
        ({"percent_per_day": 10, "max_percent": 25}, timedelta(days=3), 3, 25, 3.75),
        # No more than there is.
        ({"percent_per_day": 50}, timedelta(days=2), 2, 100, 10),
        ({"percent_per_day": 50}, timedelta(days=30), 30, 100, 10),
        ({"percent_per_day": 10, "latest_days": 2}, timedelta(days=2), 2, 20, 3),
        ({"percent_per_day": 10, "latest_days": 2, "max_percent": 20}, timedelta(days=2, seconds=1), 3, 100, 10),
    ],
)
def test_each_day_that_has_begun_costs_its_percentage(late, after, days, percent, taken) -> None:
    final = finish(build_grade(3, 5, 2), [], Reception((DUE + after).astimezone(UTC)), **{"policy": "per-day", **late})
    assert final.late is not None
    assert (final.late.days, final.late.percent, final.late.taken) == (days, percent, taken)
    assert (final.points, final.total) == (10, 10 - taken)
    assert final.late.used_grace == (days == 0 and after > timedelta(0))
    assert final.late.too_late == (percent == 100 and "latest_days" in late)


def test_an_extension_moves_the_deadline_and_the_grace_with_it() -> None:
    extended = DUE + timedelta(days=3)
    late = {"policy": "per-day", "percent_per_day": 10, "grace_minutes": 30}
    for after, taken in ((timedelta(0), 0), (timedelta(minutes=30), 0), (timedelta(minutes=31), 1.5)):
        final = finish(build_grade(3, 5, 2), [], Reception(extended + after, None, extended), **late)
        assert final.late is not None
        assert (final.late.extended, final.late.deadline, final.late.taken) == (True, extended, taken)


def test_a_late_flag_without_a_time_costs_nothing_and_is_for_a_person_to_look_at() -> None:
    late = {"policy": "per-day", "percent_per_day": 10}
    final = finish(build_grade(3, 5, 2), [], Reception(None, True), **late)
    assert final.late is not None
    assert (final.late.days, final.late.taken, final.total) == (None, 0, 10)
    [note] = final.notes
    assert "not when it was handed in; nothing was taken off" in note
    [note] = finish(build_grade(3, 5, 2), [], Reception(None, True, DUE + timedelta(days=1)), **late).notes
    assert "extension until 2027-01-16 23:59" in note


@pytest.mark.parametrize(("flag", "days"), [(None, None), (False, 0)])
def test_a_time_that_nobody_knows_costs_nothing(flag, days) -> None:
    final = finish(build_grade(3, 5, 2), [], Reception(None, flag), policy="per-day", percent_per_day=10)
    assert final.late is not None
    assert (final.late.days, final.total, final.notes) == (days, 10, ())


def test_a_late_flag_that_the_time_contradicts_is_said() -> None:
    final = finish(build_grade(3, 5, 2), [], Reception(DUE, True), policy="per-day", percent_per_day=10)
    assert (final.total, len(final.notes)) == (10, 1)
    assert finish(build_grade(3, 5, 2), [], Reception(DUE, True, DUE + timedelta(days=1))).notes == ()


def test_an_assignment_without_a_due_date_has_no_late_line() -> None:
    assignment = QKV.model_copy(update={"due": None})
    final = compute_final(build_grade(3, 5, 2), assignment, {}, Reception(DUE, True), zone=None)
    assert (final.late, final.total) == (None, 10)


POINTS = st.sampled_from([0.0, 0.1, 0.2, 0.25, 0.5, 1.0, 3.3, 4.0])
DECISIONS = st.lists(
    st.builds(
        decide,
        st.sampled_from([*MAXIMA]),
        st.sampled_from(["override", "written"]),
        st.one_of(st.none(), POINTS),
    ),
    max_size=6,
)
LATES = st.fixed_dictionaries(
    {
        "policy": st.just("per-day"),
        "percent_per_day": st.floats(0.01, 100),
        "percent_of": st.sampled_from(["maximum", "earned"]),
    },
    optional={"max_percent": st.floats(1, 100), "latest_days": st.integers(1, 20), "grace_minutes": st.floats(0, 600)},
)
RECEPTIONS = st.builds(
    Reception,
    st.one_of(st.none(), st.datetimes(datetime(2027, 1, 1), datetime(2028, 1, 1), timezones=st.just(UTC))),
    st.sampled_from([None, True, False]),
    st.one_of(st.none(), st.just(DUE + timedelta(days=2))),
)
GRADES = st.one_of(st.just(UNGRADED), st.builds(build_grade, POINTS, POINTS, POINTS))


@given(GRADES, DECISIONS, RECEPTIONS, LATES)
def test_no_total_leaves_its_bounds_and_none_is_made_up(grade, decisions, reception, late) -> None:
    final = finish(grade, decisions, reception, **late)
    assert (final.total is None) == (final.points is None) == (final.status == "ungraded")
    if final.total is None:
        assert grade.status == "ungraded"
        return
    assert 0 <= final.total <= final.points <= final.max_score - final.pending <= final.max_score == 15
    assert final.late is not None
    assert final.total == pytest.approx(final.points - final.late.taken, abs=1e-6)
    if reception.received is None:
        assert final.late.taken == 0


@given(GRADES, DECISIONS, RECEPTIONS, LATES, st.timedeltas(timedelta(0), timedelta(days=40)))
def test_handing_in_later_never_pays(grade, decisions, reception, late, more) -> None:
    if reception.received is None:
        return
    later = Reception(reception.received + more, reception.late, reception.extended)
    one, two = finish(grade, decisions, reception, **late), finish(grade, decisions, later, **late)
    if one.total is not None:
        assert two.total <= one.total


# --- words -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("late", "reception", "said"),
    [
        ({"policy": "none"}, Reception(DUE), ""),
        (
            {"policy": "none"},
            Reception(DUE + timedelta(days=1)),
            "Handed in 1 day late (2027-01-15 23:59); nothing is taken off for that.",
        ),
        ({}, Reception(), "When it was handed in is not known; nothing was taken off."),
        (
            {},
            Reception(DUE + timedelta(hours=1), None, DUE + timedelta(days=1)),
            "Handed in by 2027-01-16 23:59, the student's own deadline.",
        ),
        (
            {"grace_minutes": 15},
            Reception(DUE + timedelta(minutes=1)),
            "Handed in within the 15 minutes of grace after 2027-01-15 23:59.",
        ),
        (
            {"percent_of": "earned"},
            Reception(DUE + timedelta(days=2)),
            "Handed in 2 days late (2027-01-15 23:59): 20 % of the points earned, 2 points off.",
        ),
        (
            {"latest_days": 3},
            Reception(DUE + timedelta(days=4)),
            "Handed in 4 days late (2027-01-15 23:59): after 3 days nothing counts.",
        ),
    ],
)
def test_lateness_is_one_sentence(late, reception, said) -> None:
    options = late if late.get("policy") == "none" else {"policy": "per-day", "percent_per_day": 10, **late}
    final = finish(build_grade(3, 5, 2), [], reception, **options)
    assert final.late is not None
    assert describe_lateness(final.late, Late.model_validate(options)) == said


# --- the worked example ------------------------------------------------------------------------------------------


def read_block(page: str, language: str, containing: str) -> str:
    blocks = [block.split("```")[0] for block in page.split(f"```{language}\n")[1:]]
    return next(block for block in blocks if containing in block)


def test_the_worked_example_of_the_documentation_is_what_comes_out(tmp_path) -> None:
    page = (ROOT / "docs/grades.md").read_text()
    exercises = (ROOT / "course.toml").read_text().partition("[[assignments.qkv.exercises]]")
    toml = read_block(page, "toml", "per-day").replace("due =", 'title = "Q"\nseeds = [1, 2]\ndue =')
    (tmp_path / "course.toml").write_text(f'id = "c"\ntitle = "C"\n{toml}\n{exercises[1]}{exercises[2]}')
    course = load_course(tmp_path)
    roster = parse_roster(read_block(page, "csv", "extension").encode(), course, Path("students.csv"))
    marks = (
        "student,exercise,points,why,kind\nada,shared-key,0.5,,\nada,shared-value,1,,\nada,shared-value,4,x,override"
    )
    marked = parse_decisions(
        marks.encode(),
        "marks.csv",
        Desk(
            assignment_id="qkv",
            assignment=course.assignment("qkv"),
            students=[],
            maxima=MAXIMA,
            who="grace",
            when=WHEN,
            roster=roster,
        ),
    )
    ada = roster.find("ada")
    assert ada is not None
    final = compute_final(
        build_grade(3, 5, 2),
        course.assignment("qkv"),
        choose_decisions(marked.decisions, "qkv", "ada"),
        Reception(datetime(2027, 1, 18, 9, tzinfo=BERLIN), None, ada.deadlines["qkv"]),
        zone=course.zone("qkv"),
    )
    rows = [
        line.strip("| ").split("|") for line in page.splitlines() if line.startswith(("| `shared", "| `head", "| tog"))
    ]
    counts = [row[-1].split()[0] for row in rows]
    assert counts == [f"{each.points:g}" for each in final.exercises] + [f"{final.points:g}"]
    assert final.late is not None
    assert f"    {describe_lateness(final.late, course.assignment('qkv').late)}\n" in page
    assert f"Total: {final.total:g} of {final.max_score:g}." in page
    assert (final.total, final.pending) == (10.5, 0)


def test_the_decisions_of_the_documentation_can_be_read() -> None:
    page = (ROOT / "docs/grades.md").read_text()
    marked = parse_decisions(
        read_block(page, "csv", "withdraw").encode(),
        "marks.csv",
        Desk(
            assignment_id="qkv",
            assignment=QKV,
            students=["ada", "bob", "eve"],
            maxima=MAXIMA,
            who="grace",
            when=WHEN,
        ),
    )
    assert [decision.points for decision in marked.decisions] == [0.5, 4, None]
    assert marked.blank == 1
