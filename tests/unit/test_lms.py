"""What the names of an LMS's download say: the student, the attempt, whether it was late."""

import time
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from autograder.errors import NotebookError
from autograder.intake import layouts
from autograder.intake.layouts import Source, find_attempts, find_submissions, read_submission
from autograder.intake.lms import name_blackboard_users, parse_gradescope_list, recognise_files

CANVAS = ("lovelaceada_11_1001_qkv.ipynb", "turingalan_LATE_12_1002_Untitled17.ipynb")
MOODLE = (
    "Ada Lovelace_301_assignsubmission_file/qkv.ipynb",
    "Ada Lovelace_301_assignsubmission_onlinetext/onlinetext.html",
    "Alan Turing_302_assignsubmission_file_/my work/hw (1).ipynb",
)
MOODLE_FLAT = ("Ada Lovelace_301_assignsubmission_file_qkv.ipynb", "Alan Turing_302_assignsubmission_file_a_b.ipynb")
BRIGHTSPACE = (
    "index.html",
    "501-77 - Ada Lovelace - Sep 3, 2026 1105 PM/qkv.ipynb",
    "502-77 - Jean-Luc Turing - 4 September, 2026 905/hw.ipynb",
)
BLACKBOARD = (
    "Home work_1_ada_l_attempt_2026-09-03-23-05-42_qkv.ipynb",
    "Home work_1_ada_l_attempt_2026-09-03-23-05-42.txt",
    "Home work_1_b_turing_attempt_2026-09-04-09-05-00_hw.ipynb",
)
GRADESCOPE_LIST = """---
submission_9001:
  :submitters:
  - :name: Ada Lovelace
    :sid: '71'
    :email: ada@example.org
  :created_at: 2026-09-03 23:05:42.000000000 Z
  :history:
  - :id: 9000
    :submitters:
    - :name: Somebody Else
submission_9002:
  :submitters:
  - :name: "Alan \\u00c9. Turing"
    :sid:
    :email: alan@example.org
  - :name: O'Neil
    :sid: 73
"""


def make_folder(place: Path, *names: str) -> Path:
    folder = place / "in"
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(GRADESCOPE_LIST if name.endswith("submission_metadata.yml") else f"content of {name}")
    return folder


def make_zip(place: Path, *names: str) -> Path:
    folder = make_folder(place, *names)
    with zipfile.ZipFile(place / "in.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.write(folder / name, name)
    return place / "in.zip"


def find(path: Path, **options) -> dict[str, Source]:
    sources, skipped = find_submissions([path], "qkv", **options)
    students = {source.student: source for source in sources}
    assert len(students) == len(sources)
    files = [each for each in path.rglob("*") if each.is_file()] if path.is_dir() else zipfile.ZipFile(path).namelist()
    assert len(sources) + len(skipped) == len(files), "a file is lost or counted twice"
    return students


@pytest.mark.parametrize("make", [make_folder, make_zip])
@pytest.mark.parametrize("wrapper", ["", "CS101-homework-77/", "autumn/qkv/"])
@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (CANVAS, {"lovelaceada": "11", "turingalan": "12"}),
        (
            ("anon_a1B2c_1001_qkv.ipynb", "anon_LATE_x9y8z_1002_qkv.ipynb"),
            {"anon_a1B2c": "a1B2c", "anon_x9y8z": "x9y8z"},
        ),
        (MOODLE, {"Ada Lovelace": "301", "Alan Turing": "302"}),
        (MOODLE_FLAT, {"Ada Lovelace": "301", "Alan Turing": "302"}),
        (
            ("Participant_41_assignsubmission_file_/qkv.ipynb", "Participant_42_assignsubmission_file_qkv.ipynb"),
            {"Participant 41": "41", "Participant 42": "42"},
        ),
        (BRIGHTSPACE, {"Ada Lovelace": "501-77", "Jean-Luc Turing": "502-77"}),
        (BLACKBOARD, {"ada_l": "ada_l", "b_turing": "b_turing"}),
        (
            ("submission_metadata.yml", "submission_9001/qkv.ipynb", "submission_9002/qkv/x.ipynb"),
            {"Ada Lovelace": "71", "Alan \xc9. Turing & O'Neil": "alan@example.org & 73"},
        ),
        (
            ("submission_9001/a.ipynb", "submission_9002/b.ipynb"),
            {"submission_9001": "submission_9001", "submission_9002": "submission_9002"},
        ),
    ],
    ids="canvas canvas-anonymous moodle moodle-flat moodle-anonymous brightspace blackboard gradescope "
    "gradescope-without-list".split(),
)  # fmt: skip
def test_each_download_names_its_students(tmp_path: Path, make, wrapper, names, expected) -> None:
    students = find(make(tmp_path, *(wrapper + name for name in names)))
    assert {name: source.id for name, source in students.items()} == expected
    check_contents(tmp_path, students)


def check_contents(place: Path, students: dict[str, Source]) -> None:
    for source in students.values():
        relative = source.member or str(source.path.relative_to(place / "in"))
        assert read_submission(source).data == f"content of {relative}".encode()


@pytest.mark.parametrize("make", [make_folder, make_zip])
@pytest.mark.parametrize("wrapper", ["", "CS101-homework-77/"])
@pytest.mark.parametrize(
    "names",
    [
        ("ada/qkv/qkv.ipynb", "ada/qkv/timestamp.txt", "alan/qkv/Untitled.ipynb"),
        ("ada/qkv.ipynb", "alan.ipynb"),
    ],
    ids=["nbgrader", "plain"],
)
def test_trees_and_plain_folders_read_the_same_as_archives(tmp_path: Path, make, wrapper, names) -> None:
    students = find(make(tmp_path, *(wrapper + name for name in names)))
    assert {name: source.id for name, source in students.items()} == {"ada": "", "alan": ""}
    check_contents(tmp_path, students)


@pytest.mark.parametrize(
    ("names", "last", "first"),
    [
        (
            ("doe_7_31_qkv-2.ipynb", "doe_7_29_qkv.ipynb", "doe_LATE_7_30_qkv-1.ipynb", "doe_7_32_notes.pdf"),
            "doe_7_31_qkv-2.ipynb",
            "doe_7_29_qkv.ipynb",
        ),
        (("doe_7_31_qkv-10.ipynb", "doe_7_31_qkv-9.ipynb"), "doe_7_31_qkv-10.ipynb", "doe_7_31_qkv-9.ipynb"),
        (
            (
                "1-2 - Doe - Sep 30, 2026 1155 PM/qkv.ipynb",
                "1-2 - Doe - Oct 1, 2026 1205 AM/a.ipynb",
                "1-2 - Doe - Oct 1, 2026 1201 PM/b.ipynb",
            ),
            "1-2 - Doe - Oct 1, 2026 1201 PM/b.ipynb",
            "1-2 - Doe - Sep 30, 2026 1155 PM/qkv.ipynb",
        ),
        (
            ("hw_doe_attempt_2026-09-09-10-00-00_x.ipynb", "hw_doe_attempt_2026-09-10-09-00-00_y.ipynb"),
            "hw_doe_attempt_2026-09-10-09-00-00_y.ipynb",
            "hw_doe_attempt_2026-09-09-10-00-00_x.ipynb",
        ),
    ],
    ids=["canvas", "canvas-one-id", "brightspace", "blackboard"],
)
def test_the_last_attempt_counts_and_the_first_where_it_is_wished(tmp_path: Path, names, last, first) -> None:
    path = make_zip(tmp_path, *names)
    [chosen] = find(path).values()
    assert chosen.member == last
    assert any(f"Attempt {chosen.attempt} of {chosen.attempt} counts" in note for note in chosen.notes)
    [chosen] = find(path, choose="first").values()
    assert (chosen.member, chosen.attempt) == (first, 1)


def test_every_attempt_can_be_had_for_whoever_wants_the_best(tmp_path: Path) -> None:
    path = make_zip(tmp_path, "doe_7_29_qkv.ipynb", "doe_7_30_qkv-1.ipynb", "roe_8_31_qkv.ipynb")
    found, skipped = find_attempts([path], "qkv")
    assert [[source.attempt for source in each.sources] for each in found] == [[1, 2], [1]]
    assert skipped == []


def test_the_late_flag_is_that_of_the_attempt_that_counts(tmp_path: Path) -> None:
    path = make_zip(tmp_path, *CANVAS, "doe_7_29_qkv.ipynb", "doe_LATE_7_30_qkv-1.ipynb")
    students = find(path)
    assert {name: source.late for name, source in students.items()} == {
        "lovelaceada": False, "turingalan": True, "doe": True
    }  # fmt: skip
    assert students["turingalan"].notes == ("Canvas marks it as handed in late.",)
    assert not find(path, choose="first")["doe"].late


@pytest.mark.parametrize("make", [make_folder, make_zip])
def test_when_it_was_handed_in_is_read_where_a_download_says_so(tmp_path: Path, make) -> None:
    gradescope = ("submission_metadata.yml", "submission_9001/qkv.ipynb", "submission_9002/qkv.ipynb")
    zone = ZoneInfo("Europe/Berlin")
    for names, expected in (
        (CANVAS, {"lovelaceada": None, "turingalan": None}),
        (MOODLE, {"Ada Lovelace": None, "Alan Turing": None}),
        (
            BRIGHTSPACE,
            {
                "Ada Lovelace": datetime(2026, 9, 3, 21, 5, tzinfo=UTC),
                "Jean-Luc Turing": datetime(2026, 9, 4, 7, 5, tzinfo=UTC),
            },
        ),
        (
            BLACKBOARD,
            {
                "ada_l": datetime(2026, 9, 3, 21, 5, 42, tzinfo=UTC),
                "b_turing": datetime(2026, 9, 4, 7, 5, tzinfo=UTC),
            },
        ),
        (
            gradescope,
            {"Ada Lovelace": datetime(2026, 9, 3, 23, 5, 42, tzinfo=UTC), "Alan \xc9. Turing & O'Neil": None},
        ),
    ):
        place = tmp_path / names[0][:9]
        place.mkdir()
        students = find(make(place, *names), zone=zone)
        assert {name: source.received for name, source in students.items()} == expected
        for source in students.values():
            submission = read_submission(source)
            assert submission.received == source.received
            assert (submission.late, submission.attempt) == (source.late, source.attempt)


def test_a_time_without_a_zone_is_not_known_where_the_course_has_none(tmp_path: Path) -> None:
    assert {source.received for source in find(make_zip(tmp_path, *BRIGHTSPACE)).values()} == {None}


def test_a_date_that_does_not_exist_is_not_known(tmp_path: Path) -> None:
    names = ("1-2 - Doe - Feb 30, 2026 1155 PM/qkv.ipynb", "hw_roe_attempt_2026-13-09-10-00-00_x.ipynb")
    assert {source.received for source in find(make_zip(tmp_path, *names), zone=UTC).values()} == {None}


@pytest.mark.parametrize("make", [make_folder, make_zip])
@pytest.mark.parametrize("wrapper", ["", "autumn/"])
@pytest.mark.parametrize(
    ("text", "received", "noted"),
    [
        ("2027-01-15 23:30:00.123456 UTC", datetime(2027, 1, 15, 23, 30, tzinfo=UTC), False),
        ("2027-07-15 23:30:00 Europe/Berlin\n", datetime(2027, 7, 15, 21, 30, tzinfo=UTC), False),
        # As nbgrader reads it, wherever the course is.
        ("2027-01-15 23:30:00", datetime(2027, 1, 15, 23, 30, tzinfo=UTC), False),
        ("yesterday", None, True),
        ("", None, True),
        (None, None, False),
    ],
)
def test_the_time_that_nbgrader_wrote_is_read(tmp_path: Path, make, wrapper, text, received, noted) -> None:
    names = ["ada/qkv/qkv.ipynb", "ada/qkv/data/timestamp.txt", "bob/qkv/qkv.ipynb"]
    if text is not None:
        names.append("ada/qkv/timestamp.txt")
    names = [wrapper + name for name in names]
    path = make_folder(tmp_path, *names)
    for name in names:
        if name.endswith("timestamp.txt"):
            inner = "data/" in name
            (path / name).write_text("2020-01-01 00:00:00 UTC" if inner else text)
    if make is make_zip:
        with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
            for name in names:
                archive.write(path / name, name)
        path = tmp_path / "in.zip"
    students = find(path, zone=ZoneInfo("Europe/Berlin"))
    assert students["ada"].received == received
    assert any("timestamp.txt" in note for note in students["ada"].notes) == noted
    assert (students["bob"].received, students["bob"].notes) == (None, ())


def test_an_lms_that_says_nothing_of_lateness_is_not_taken_to_say_no(tmp_path: Path) -> None:
    for names in (MOODLE, BRIGHTSPACE, BLACKBOARD, ("ada/qkv.ipynb",)):
        assert {source.late for source in find(make_zip(tmp_path, *names)).values()} == {None}


def test_students_of_one_name_are_told_apart_by_the_id(tmp_path: Path) -> None:
    path = make_zip(tmp_path, "wei_11_1_qkv.ipynb", "wei_12_2_qkv.ipynb", "Wei_13_assignsubmission_file/qkv.ipynb")
    assert set(find(path)) == {"wei (11)", "wei (12)", "Wei"}


def test_attempts_whose_order_no_name_tells_are_ungraded(tmp_path: Path) -> None:
    path = make_zip(tmp_path, "1-2 - Doe - 3 syyskuu 2026 1105/a.ipynb", "1-2 - Doe - 4 syyskuu 2026 1105/b.ipynb")
    [source] = find(path).values()
    with pytest.raises(NotebookError, match="do not tell which is the last"):
        read_submission(source)


def test_an_attempt_without_a_notebook_does_not_replace_one_with(tmp_path: Path) -> None:
    path = make_zip(
        tmp_path, "hw_doe_attempt_2026-09-09-10-00-00_x.ipynb", "hw_doe_attempt_2026-09-10-09-00-00_sorry.pdf"
    )
    [source] = find(path).values()
    assert source.member.endswith("x.ipynb")
    assert source.notes == ("An attempt without a notebook was passed over.",)


@pytest.mark.parametrize(
    "names",
    [
        ("Doe_3_assignsubmission_file/work.zip", "Doe_3_assignsubmission_file/readme.txt"),
        ("doe_3_4_hw.py",),
        ("hw_doe_attempt_2026-09-09-10-00-00.txt",),
    ],
)
def test_a_student_without_a_notebook_is_ungraded_and_not_only_skipped(tmp_path: Path, names) -> None:
    for path in (make_folder(tmp_path, *names), make_zip(tmp_path, *names)):
        [source] = find(path).values()
        with pytest.raises(NotebookError, match="No notebook was handed in"):
            read_submission(source)


def test_several_notebooks_of_one_attempt_are_ungraded_unless_one_is_named(tmp_path: Path) -> None:
    path = make_zip(tmp_path, "doe_3_4_a.ipynb", "doe_3_5_b.ipynb", "roe_4_6_qkv.ipynb", "roe_4_7_scratch.ipynb")
    students = find(path)
    assert students["roe"].member == "roe_4_6_qkv.ipynb"
    with pytest.raises(NotebookError, match=r"2 notebooks and none is named qkv\.ipynb"):
        read_submission(students["doe"])


def test_a_notebook_of_another_assignment_is_not_graded_for_this_one(tmp_path: Path) -> None:
    path = make_zip(
        tmp_path, "doe_3_4_softmax.ipynb", "doe_3_5_mine.ipynb", "roe_4_6_softmax.ipynb", "poe/softmax.ipynb"
    )
    students = find(path, others=["softmax"])
    assert set(students) == {"doe", "roe"}
    assert students["doe"].member == "doe_3_5_mine.ipynb"
    with pytest.raises(NotebookError, match="named after another assignment"):
        read_submission(students["roe"])


@pytest.mark.parametrize(
    ("folder", "owner"),
    [
        ("Mal_66_assignsubmission_file", "Mal"),
        ("1-66 - Mal - Sep 3, 2026 1105 PM", "Mal"),
        ("submission_66", "submission_66"),
    ],
)
def test_a_student_cannot_pass_for_another_by_the_names_that_he_chooses(tmp_path: Path, folder, owner) -> None:
    evil = (
        "Ada_11_assignsubmission_file/qkv.ipynb",
        "ada_11_99_qkv.ipynb",
        "hw_ada_attempt_2026-09-09-10-00-00_qkv.ipynb",
        "ada/qkv/qkv.ipynb",
        "submission_1/qkv.ipynb",
    )
    for number, name in enumerate(evil):
        students = find(
            make_zip(tmp_path, f"{folder}/{name}", "Bo_12_assignsubmission_file/x/y.ipynb", f"{number}.txt")
        )
        assert set(students) == {owner, "Bo"}
    (said,) = recognise_files([((), "mal_66_1_ada_LATE_11_99_qkv.ipynb")], {})
    assert said is not None
    assert (said.id, said.late, said.inside) == ("66", False, ("ada_LATE_11_99_qkv.ipynb",))


_OTHERS_PATTERNS = (
    "x_11_assignsubmission_file_qkv.ipynb",
    "ada_attempt_2030-01-01-10-00-00_qkv.ipynb",
    "501-77 - Ada Lovelace - Jan 1, 2030 1000 AM - qkv.ipynb",
    "ada_11_99_qkv.ipynb",
)


@pytest.mark.parametrize(
    ("ada", "mal", "names"),
    [
        ("ada_11_1001_qkv.ipynb", "mal_66_1002_", {"ada", "mal"}),
        ("hw_ada_attempt_2026-09-03-10-00-00_qkv.ipynb", "hw_mal_attempt_2026-09-03-10-00-00_", {"ada", "mal"}),
        ("501-77 - Ada - Sep 3, 2026 1000 AM - a.ipynb", "501-66 - Mal - Sep 3, 2026 1000 AM - ", {"Ada", "Mal"}),
        ("Ada_11_assignsubmission_file_qkv.ipynb", "Mal_66_assignsubmission_file_", {"Ada", "Mal"}),
    ],
)
@pytest.mark.parametrize("evil", _OTHERS_PATTERNS)
def test_a_file_named_as_another_lms_names_files_is_still_its_students(
    tmp_path: Path, ada: str, mal: str, names: set[str], evil: str
) -> None:
    students = find(make_zip(tmp_path, ada, f"{mal}{evil}"))
    assert set(students) == names
    assert len({source.id for source in students.values()}) == 2
    assert set(find(make_zip(tmp_path, f"{mal}{evil}"))) == names - {"ada", "Ada"}


def test_a_blackboard_title_with_numbers_in_it_is_not_taken_for_canvas(tmp_path: Path) -> None:
    names = (f"Lab_3_2_{user}_attempt_2026-09-03-10-00-00_qkv.ipynb" for user in ("ada", "bo"))
    assert set(find(make_zip(tmp_path, *names))) == {"ada", "bo"}


def test_what_looks_like_a_tree_within_a_students_folder_is_that_students(tmp_path: Path) -> None:
    tree = ("ada/qkv/qkv.ipynb", "mal/qkv/qkv.ipynb", "mal/qkv/timestamp.txt", "eve/other/timestamp.txt")
    evil = ("mal/qkv/ada/qkv/qkv.ipynb", "mal/qkv/ada/qkv/timestamp.txt", "eve/other/ada/qkv/qkv.ipynb")
    students = find(make_zip(tmp_path, *tree, *evil))
    assert set(students) == {"ada", "mal"}
    assert students["ada"].member == "ada/qkv/qkv.ipynb"
    alone = find(make_zip(tmp_path, "mal/qkv/timestamp.txt", "mal/qkv/ada/qkv/qkv.ipynb"))
    assert set(alone) == {"mal"}


def test_a_file_named_timestamp_makes_no_tree_of_other_students_folders(tmp_path: Path) -> None:
    students = find(make_zip(tmp_path, "ada/essay/ada.ipynb", "mal/x/timestamp.txt"))
    assert set(students) == {"ada"}


def test_the_outermost_of_an_lms_and_an_nbgrader_tree_decides(tmp_path: Path) -> None:
    students = find(
        make_zip(
            tmp_path,
            "alice/qkv/qkv.ipynb",
            "bob/qkv/Ada_11_assignsubmission_file/qkv.ipynb",
            "Cy_12_assignsubmission_file/qkv/hw.ipynb",
        )
    )
    assert set(students) == {"alice", "bob", "Cy"}


def test_what_a_system_left_beside_a_file_names_nobody(tmp_path: Path) -> None:
    path = make_zip(tmp_path, "._doe_3_4_qkv.ipynb", "doe_3_4_qkv.ipynb", "Roe_3_assignsubmission_file/.DS_Store")
    assert set(find(path)) == {"doe"}


def test_a_name_longer_than_any_file_system_keeps_is_not_searched() -> None:
    assert recognise_files([((), "doe_3_4_" + "x" * 292)], {}) != [None]
    assert recognise_files([((), "doe_3_4_" + "x" * 293)], {}) == [None]


def test_a_long_name_within_a_students_folder_does_not_hide_whose_it_is(tmp_path: Path) -> None:
    path = tmp_path / "in.zip"
    with zipfile.ZipFile(path, "w") as archive:  # no file system keeps such a name
        archive.writestr(f"Bo_12_assignsubmission_file/{'x' * 301}/Ada.ipynb", "{}")
    assert set(find(path)) == {"Bo"}


def test_a_students_own_list_does_not_rename_anybody(tmp_path: Path) -> None:
    students = find(make_zip(tmp_path, "submission_9001/submission_metadata.yml", "submission_9001/qkv.ipynb"))
    assert set(students) == {"submission_9001"}


def test_a_name_that_goes_on_in_a_further_line_is_no_other_persons() -> None:
    text = (
        "submission_1:\n  :submitters:\n  - :name: 'Mal and so on\n      sid:          11\n      name:   Ada\n"
        "      email: ada@x.org\n      and on'\n  - :name: Bo\n    :sid: '12'\n"
    )
    (submitter,) = parse_gradescope_list(text).values()
    assert "Mal" in submitter.name
    assert "Ada" not in submitter.name
    assert not {"11", "ada@x.org"} & {*submitter.id.split(" & ")}
    assert submitter.id.endswith(" & 12")


def test_ordinary_names_are_not_taken_for_an_lms(tmp_path: Path) -> None:
    for name in ("alice.ipynb", "week_3.ipynb", "2026-09-03 - notes.ipynb", "a_b_c.ipynb", "submission.ipynb"):
        assert recognise_files([(("hw 1", "group_2"), name)], {}) == [None]


def test_blackboard_users_stay_distinct_whatever_underscores_they_hold() -> None:
    assert name_blackboard_users(["h_w_a_x", "h_w_b_x"]) == {"h_w_a_x": "a_x", "h_w_b_x": "b_x"}
    assert name_blackboard_users(["hw_bo", "hw_bob"]) == {"hw_bo": "bo", "hw_bob": "bob"}
    assert name_blackboard_users(["h_w_ada"]) == {"h_w_ada": "ada"}
    assert name_blackboard_users([]) == {}


@pytest.mark.parametrize(
    "text", ["", "a: [", "submission_1:\n  :submitters:\n    :name: x\n", "submission_1:\n  - :name: x"]
)
def test_a_list_that_is_none_of_gradescopes_names_nobody(text: str) -> None:
    assert parse_gradescope_list(text) == {}


def pack(path: Path, names: tuple[str, ...], system: int) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            member = zipfile.ZipInfo(name)
            member.create_system = system
            archive.writestr(member, "{}")
    return path


@pytest.mark.parametrize("system", [0, 3])
@pytest.mark.parametrize(
    ("evil", "names"),
    [
        ("mal_66_2_x\\ada_11_1_qkv.ipynb", ("bo_12_3_qkv.ipynb",)),
        (
            "Mal_66_assignsubmission_file_x\\Ada_11_assignsubmission_file_qkv.ipynb",
            ("Bo_12_assignsubmission_file/q.ipynb",),
        ),
        (
            "hw_mal_attempt_2026-09-03-10-00-00_x\\hw_ada_attempt_2026-09-03-10-00-00_qkv.ipynb",
            ("hw_mal_attempt_2026-09-03-10-00-00.txt",),
        ),
    ],
)
def test_a_backslash_in_a_name_makes_no_folder_of_its_beginning(tmp_path: Path, evil, names, system) -> None:
    students = find(pack(tmp_path / "in.zip", (evil, *names), system))
    assert {name.lower() for name in students} <= {"mal", "bo"}


def test_an_archive_that_has_backslashes_throughout_has_folders(tmp_path: Path) -> None:
    students = find(pack(tmp_path / "in.zip", ("ada\\qkv\\qkv.ipynb", "bo\\qkv\\qkv.ipynb", "bo\\qkv\\n.txt"), 0))
    assert set(students) == {"ada", "bo"}


def test_folders_nested_by_the_thousand_are_read_quickly(tmp_path: Path) -> None:
    deep = [f"Bo_12_assignsubmission_file/{'a/' * 2000}{number}.ipynb" for number in range(200)]
    deep += [f"mal{number}/{'qkv/x/' * 600}x.ipynb" for number in range(200)]
    path = pack(tmp_path / "in.zip", (*deep, "ada/qkv/qkv.ipynb"), 3)
    begin = time.process_time()
    sources, skipped = find_submissions([path], "qkv")
    assert time.process_time() - begin < 2
    assert len(sources) + len(skipped) == len(deep) + 1


def test_what_students_call_as_an_lms_calls_its_lists_is_not_read(tmp_path: Path, monkeypatch) -> None:
    folder = make_folder(
        tmp_path,
        "Mal_66_assignsubmission_file/submission_metadata.yml",
        "Mal_66_assignsubmission_file/x/timestamp.txt",
        "submission_9001/submission_metadata.yml",
        "ada/qkv/timestamp.txt",
        "ada/qkv/qkv.ipynb",
    )
    read = []
    monkeypatch.setattr(layouts, "read_beginning", lambda path, most: read.append((path.parent.name, most)) or b"")
    assert "ada" in find(folder)
    assert read == [("qkv", 200)]


def test_one_file_named_as_an_lms_names_files_among_others_takes_nobodys_name(tmp_path: Path) -> None:
    students = find(make_zip(tmp_path, "ada.ipynb", "bo.ipynb", "ada_11_1001_qkv.ipynb"))
    assert set(students) == {"ada", "bo", "ada_11_1001_qkv"}
