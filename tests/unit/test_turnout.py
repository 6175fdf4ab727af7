"""Who handed in what: own submissions, a group's, none."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from autograder.roster import Roster, Student
from autograder.turnout import Claim, find_names, find_turnout

ROSTER = Roster(
    [
        Student("ada", "Ada", lms_id="1", group="red"),
        Student("bob", "Bob", group="red"),
        Student("cy", "Cy", group="red"),
        Student("di", "Di"),
        Student("eve", "Eve", group="blue"),
    ]
)


def at(day: int) -> datetime:
    return datetime(2027, 1, day, tzinfo=UTC)


def test_a_member_without_a_submission_gets_the_newest_of_the_group() -> None:
    turnout = find_turnout(ROSTER, [Claim("ada", "1", at(3)), Claim("bob", "", at(2)), Claim("zoe", "9", at(4))])
    assert turnout.own == {"ada": 0, "bob": 1}
    assert turnout.shared == {"cy": 0}
    assert [student.id for student in turnout.missing] == ["di", "eve"]
    assert turnout.unmatched == ((2, "zoe is not in the roster"),)
    assert turnout.sharers == {"ada": ("cy",), "cy": ("ada",)}


def test_a_students_names_are_those_that_fit_nobody_else() -> None:
    claims = [Claim("Bob"), Claim("4711", "1"), Claim("ada"), Claim("zoe"), Claim("Di & Eve")]
    for name in ("ada", "Ada", "4711"):
        assert find_names(ROSTER, claims, name) == ({"ada", "4711", name}, set())
    assert find_names(ROSTER, claims, "Eve") == ({"eve", "Eve"}, {"Di & Eve"})
    assert find_names(ROSTER, claims, "Di & Eve") == ({"Di & Eve"}, set())
    assert find_names(ROSTER, claims, "zoe") == find_names(None, claims, "zoe") == ({"zoe"}, set())


def test_who_chose_anothers_name_is_erased_alone() -> None:
    claims = [Claim("Di", "5"), Claim("Di (6)", "6"), Claim("Di (6)", "6")]
    assert find_names(ROSTER, claims, "Di (6)") == ({"Di (6)"}, set())
    assert find_names(ROSTER, claims, "di") == ({"di", "Di"}, set())


def test_of_several_the_last_one_received_counts_and_one_without_a_time_is_older() -> None:
    claims = [Claim("ada", "", at(3)), Claim("Ada", "", at(2)), Claim("ada", "1"), Claim("di"), Claim("Di")]
    turnout = find_turnout(ROSTER, claims)
    assert turnout.own == {"ada": 0, "di": 4}
    assert turnout.replaced == ((1, 0), (2, 0), (3, 4))


def test_who_handed_in_together_each_has_it_as_an_own_submission() -> None:
    turnout = find_turnout(ROSTER, [Claim("Ada & Di", "", at(3)), Claim("Di", "", at(4))])
    assert turnout.own == {"ada": 0, "di": 1}
    assert turnout.shared == {"bob": 0, "cy": 0}
    assert turnout.replaced == ()
    assert {name: set(others) for name, others in turnout.sharers.items()} == {
        "ada": {"bob", "cy"},
        "bob": {"ada", "cy"},
        "cy": {"ada", "bob"},
    }


LABELS = st.sampled_from(["ada", "Bob", "cy", "di", "Eve", "Ada & Di", "nobody"])
CLAIMS = st.builds(Claim, LABELS, st.just(""), st.one_of(st.none(), st.integers(1, 5).map(at)))


@given(st.lists(CLAIMS, max_size=8))
def test_every_student_and_every_submission_is_accounted_for_once(claims) -> None:
    turnout = find_turnout(ROSTER, claims)
    places = [set(turnout.own), set(turnout.shared), {student.id for student in turnout.missing}]
    assert sum(map(len, places)) == len(ROSTER.students)
    assert set().union(*places) == {student.id for student in ROSTER.students}
    kinds = [set(turnout.own.values()), {one for one, _ in turnout.unmatched}, {one for one, _ in turnout.replaced}]
    assert sum(map(len, kinds)) == len(claims)
    assert set().union(*kinds) == set(range(len(claims)))
    assert set(turnout.shared.values()) <= kinds[0]
    counting = [*turnout.own.items(), *turnout.shared.items()]
    for one, place in counting:
        others = {each for each, other in counting if each != one and other == place}
        assert set(turnout.sharers.get(one, ())) == others
