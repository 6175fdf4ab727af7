"""Every file of a folder is a submission or skipped with a reason."""

import hashlib
import io
import os
import shutil
import tempfile
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.course import load_course
from autograder.errors import NotebookError, UsageError
from autograder.intake import layouts
from autograder.intake.layouts import Source, find_submissions, read_submission
from autograder.naming import find_orphans
from autograder.records import FinalGrade, Grade
from autograder.report.documents import write_csv
from autograder.sheets import parse_sheet


def write_files(root: Path, *names: str) -> None:
    for name in names:
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"content of {name}")


def find(*paths: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Students with their file, and skipped files with the reason, relative to the first path."""
    sources, skipped = find_submissions(paths, "qkv")
    students = {source.student: os.path.relpath(source.path, paths[0]) for source in sources}
    assert len(students) == len(sources), "two submissions have one name"
    return students, {os.path.relpath(item.path, paths[0]): item.reason for item in skipped}


def test_a_single_notebook_belongs_to_its_stem(tmp_path: Path) -> None:
    write_files(tmp_path, "qkv/alice.v2.ipynb", "b.IPYNB")
    sources, skipped = find_submissions([tmp_path / "qkv/alice.v2.ipynb", tmp_path / "b.IPYNB"], "qkv")
    assert [source.student for source in sources] == ["alice.v2", "b"]
    assert skipped == []


def test_what_is_read_is_the_bytes_with_their_sha256(tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_bytes(b"\xff\0\r\n")
    [source], _ = find_submissions([tmp_path], "qkv")
    submission = read_submission(source)
    assert submission.data == b"\xff\0\r\n"
    assert submission.sha256 == hashlib.sha256(b"\xff\0\r\n").hexdigest()
    assert (submission.student, submission.path) == ("a", str(tmp_path / "a.ipynb"))


def test_a_flat_folder_is_read_in_sorted_order(tmp_path: Path) -> None:
    write_files(tmp_path, "c.ipynb", "a.ipynb", "b.ipynb", "B.ipynb")
    sources, _ = find_submissions([tmp_path], "qkv")
    assert [source.student for source in sources] == ["B", "a", "b", "c"]


def test_a_flat_folder_may_bear_the_name_of_the_assignment(tmp_path: Path) -> None:
    write_files(tmp_path, "in/qkv/alice.ipynb", "in/qkv/bob.ipynb")
    assert find(tmp_path / "in/qkv")[0] == {"alice": "alice.ipynb", "bob": "bob.ipynb"}
    assert find(tmp_path / "in")[0] == {"alice": "qkv/alice.ipynb", "bob": "qkv/bob.ipynb"}


@pytest.mark.parametrize("root", ["", "submitted", "2027/course/anything"])
def test_an_nbgrader_tree_is_recognised_under_any_name(tmp_path: Path, root: str) -> None:
    tree = tmp_path / root
    write_files(tree, "alice/qkv/qkv.ipynb", "alice/qkv/timestamp.txt", "bob/qkv/Untitled17.ipynb")
    students, skipped = find(tmp_path)
    prefix = f"{root}/" if root else ""
    assert students == {"alice": f"{prefix}alice/qkv/qkv.ipynb", "bob": f"{prefix}bob/qkv/Untitled17.ipynb"}
    assert skipped == {f"{prefix}alice/qkv/timestamp.txt": "the time of the submission, not a notebook"}


def test_of_several_notebooks_the_one_named_after_the_assignment_counts(tmp_path: Path) -> None:
    write_files(tmp_path, "alice/qkv/qkv.ipynb", "alice/qkv/draft.ipynb", "alice/qkv/old/qkv.ipynb")
    students, skipped = find(tmp_path)
    assert students == {"alice": "alice/qkv/qkv.ipynb"}
    assert set(skipped) == {"alice/qkv/draft.ipynb", "alice/qkv/old/qkv.ipynb"}
    assert "qkv.ipynb, which counts" in skipped["alice/qkv/draft.ipynb"]


def test_several_notebooks_without_that_name_are_one_ungraded_submission(tmp_path: Path) -> None:
    write_files(tmp_path, "alice/qkv/one.ipynb", "alice/qkv/two.ipynb", "bob/qkv/qkv.ipynb")
    sources, skipped = find_submissions([tmp_path], "qkv")
    assert [source.student for source in sources] == ["alice", "bob"]
    assert [item.path for item in skipped] == [str(tmp_path / "alice/qkv/two.ipynb")]
    with pytest.raises(NotebookError, match=r"2 notebooks and none is named qkv\.ipynb"):
        read_submission(sources[0])


def test_a_notebook_deeper_in_the_assignment_counts_when_it_is_alone(tmp_path: Path) -> None:
    write_files(tmp_path, "alice/qkv/mine/hw.ipynb", "bob/qkv/qkv/qkv.ipynb")
    assert find(tmp_path)[0] == {"alice": "alice/qkv/mine/hw.ipynb", "bob": "bob/qkv/qkv/qkv.ipynb"}


def test_other_assignments_of_a_tree_are_skipped(tmp_path: Path) -> None:
    write_files(tmp_path, "s/alice/qkv/qkv.ipynb", "s/alice/softmax/softmax.ipynb", "s/bob/softmax/x.ipynb")
    students, skipped = find(tmp_path)
    assert students == {"alice": "s/alice/qkv/qkv.ipynb"}
    assert set(skipped.values()) == {"belongs to the assignment softmax"}
    assert len(skipped) == 2


def test_a_tree_with_other_assignments_only_gives_no_submission(tmp_path: Path) -> None:
    write_files(tmp_path, "alice/softmax/softmax.ipynb", "alice/softmax/timestamp.txt", "bob/softmax/x.ipynb")
    students, skipped = find(tmp_path)
    assert students == {}
    assert len(skipped) == 3


def test_a_notebook_outside_of_the_tree_is_not_lost(tmp_path: Path) -> None:
    write_files(tmp_path, "alice/qkv/qkv.ipynb", "bob/qkv.ipynb", "carol.ipynb")
    assert find(tmp_path)[0] == {"alice": "alice/qkv/qkv.ipynb", "bob": "bob/qkv.ipynb", "carol": "carol.ipynb"}


def test_one_folder_of_a_tree_still_names_its_student(tmp_path: Path) -> None:
    write_files(tmp_path, "submitted/alice/qkv/qkv.ipynb")
    assert find(tmp_path / "submitted/alice")[0] == {"alice": "qkv/qkv.ipynb"}


def test_nested_folders_give_the_stem_and_the_folder_for_the_given_name(tmp_path: Path) -> None:
    write_files(tmp_path, "group1/alice.ipynb", "group2/deep/bob.ipynb", "carol/qkv.ipynb")
    assert set(find(tmp_path)[0]) == {"alice", "bob", "carol"}


def test_two_files_of_one_name_stay_apart(tmp_path: Path) -> None:
    write_files(tmp_path, "g1/alice.ipynb", "g2/alice.ipynb", "bob.ipynb", "other/g1/alice.ipynb")
    students, _ = find(tmp_path / "g1", tmp_path / "g2", tmp_path / "bob.ipynb", tmp_path / "other/g1")
    assert len(students) == 4
    assert "bob" in students
    assert all(student == "bob" or student.startswith("alice (") for student in students)
    assert set(find(tmp_path)[0]) == {
        *("alice (g1/alice.ipynb)", "alice (g2/alice.ipynb)", "alice (other/g1/alice.ipynb)", "bob")
    }


def test_a_file_named_twice_is_one_submission(tmp_path: Path) -> None:
    write_files(tmp_path, "alice.ipynb")
    assert find(tmp_path, tmp_path / "alice.ipynb", tmp_path / ".")[0] == {"alice": "alice.ipynb"}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (".ipynb_checkpoints/alice-checkpoint.ipynb", "Jupyter keeps"),
        ("alice/.ipynb_checkpoints/qkv.ipynb", "Jupyter keeps"),
        ("__MACOSX/alice/._qkv.ipynb", "macOS"),
        ("._alice.ipynb", "macOS"),
        (".DS_Store", "macOS"),
        ("desktop.ini", "Windows"),
        ("timestamp.txt", "time of the submission"),
        ("all.zip", "unpack"),
        ("alice.py", "not a notebook"),
        ("README", "not a notebook"),
    ],
)
def test_what_is_no_notebook_is_skipped_with_its_reason(tmp_path: Path, name: str, words: str) -> None:
    write_files(tmp_path, name, "bob.ipynb")
    students, skipped = find(tmp_path)
    assert students == {"bob": "bob.ipynb"}
    assert list(skipped) == [name]
    assert words in skipped[name]


def test_a_file_that_is_no_notebook_is_skipped_when_named_too(tmp_path: Path) -> None:
    write_files(tmp_path, "alice.py")
    sources, [skipped] = find_submissions([tmp_path / "alice.py"], "qkv")
    assert sources == []
    assert skipped.path == str(tmp_path / "alice.py")


def test_links_in_a_folder_are_not_followed(tmp_path: Path) -> None:
    write_files(tmp_path, "secret/reference.ipynb", "in/bob.ipynb")
    (tmp_path / "in/alice.ipynb").symlink_to(tmp_path / "secret/reference.ipynb")
    (tmp_path / "in/carol.ipynb").symlink_to("bob.ipynb")
    (tmp_path / "in/folder").symlink_to(tmp_path / "secret")
    (tmp_path / "in/loop").symlink_to(".")
    students, skipped = find(tmp_path / "in")
    assert students == {"bob": "bob.ipynb"}
    assert set(skipped) == {"alice.ipynb", "carol.ipynb", "folder", "loop"}
    assert all("symbolic link" in reason for reason in skipped.values())


def test_a_link_named_on_the_command_line_is_followed(tmp_path: Path) -> None:
    write_files(tmp_path, "real.ipynb")
    (tmp_path / "alice.ipynb").symlink_to("real.ipynb")
    [source], _ = find_submissions([tmp_path / "alice.ipynb"], "qkv")
    assert read_submission(source).data == b"content of real.ipynb"
    assert source.student == "alice"


def test_a_named_pipe_never_blocks(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "alice.ipynb")
    assert find(tmp_path) == ({}, {"alice.ipynb": "not a regular file"})
    with pytest.raises(NotebookError, match="not a regular file"):
        read_submission(Source("alice", tmp_path / "alice.ipynb", "alice.ipynb"))


@pytest.mark.parametrize("name", ["gone", "a.ipynb/b", "zero\0byte", "x" * 5000])
def test_a_path_that_does_not_exist_is_a_usage_error(tmp_path: Path, name: str) -> None:
    write_files(tmp_path, "a.ipynb")
    with pytest.raises(UsageError, match=r"gone|a\.ipynb/b|zero|xxx"):
        find_submissions([tmp_path / name], "qkv")


def test_an_empty_folder_gives_nothing(tmp_path: Path) -> None:
    assert find_submissions([tmp_path], "qkv") == ([], [])


def test_a_file_that_vanished_is_an_ungraded_submission(tmp_path: Path) -> None:
    write_files(tmp_path, "alice.ipynb")
    [source], _ = find_submissions([tmp_path], "qkv")
    source.path.unlink()
    with pytest.raises(NotebookError, match="cannot be read"):
        read_submission(source)


def test_a_file_over_the_cap_is_an_ungraded_submission(tmp_path: Path) -> None:
    with open(tmp_path / "alice.ipynb", "wb") as file:
        file.truncate(layouts.MAX_FILE_BYTES + 1)
    [source], _ = find_submissions([tmp_path], "qkv")
    with pytest.raises(NotebookError, match="larger than 64 MiB"):
        read_submission(source)
    os.truncate(source.path, layouts.MAX_FILE_BYTES)
    assert len(read_submission(source).data) == layouts.MAX_FILE_BYTES


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can reach, seen as a user that permissions apply to."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    for path in folder.rglob("*"):
        path.chmod(0o755)
    shutil.rmtree(folder)


@pytest.fixture
def as_plain_user() -> Iterator[None]:
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    yield
    os.seteuid(user)


def close_paths(folder: Path, *names: str) -> None:
    user = os.geteuid()
    os.seteuid(os.getuid())
    for name in names:
        (folder / name).chmod(0)
    os.seteuid(user)


def test_an_unreadable_file_is_an_ungraded_submission(open_folder: Path, request: pytest.FixtureRequest) -> None:
    write_files(open_folder, "alice.ipynb", "bob.ipynb")
    close_paths(open_folder, "alice.ipynb")
    request.getfixturevalue("as_plain_user")
    sources, _ = find_submissions([open_folder], "qkv")
    with pytest.raises(NotebookError, match="Permission denied"):
        read_submission(sources[0])
    assert read_submission(sources[1]).student == "bob"


def test_a_folder_that_cannot_be_listed_is_an_ungraded_submission(
    open_folder: Path, request: pytest.FixtureRequest
) -> None:
    write_files(open_folder, "alice/qkv/qkv.ipynb", "bob/qkv/qkv.ipynb", "carol/qkv/qkv.ipynb", "x/__MACOSX/y")
    close_paths(open_folder, "alice", "bob/qkv", "x/__MACOSX")
    request.getfixturevalue("as_plain_user")
    sources, skipped = find_submissions([open_folder], "qkv")
    assert [(source.student, bool(source.fault)) for source in sources] == [
        *(("alice", True), ("bob", True), ("carol", False))
    ]
    assert len(skipped) == 1
    with pytest.raises(NotebookError, match="cannot be listed"):
        read_submission(sources[0])
    with pytest.raises(UsageError, match="cannot be listed"):
        find_submissions([open_folder / "alice"], "qkv")


ALIKE = [
    ("Karl", "\u212aarl"),
    ("a\ufffd", "a\x01"),
    ("a\x01", "a\x02"),
    ("\xc5sa", "\u212bsa"),
    ("M\xfcller", "Mu\u0308ller"),
    ("e\u0301\u0323", "e\u0323\u0301"),
    ("x" + "\u0301" * 4, "x" + "\u0301" * 5),
]


@pytest.mark.parametrize("folder", ["", "qkv"], ids=["files", "tree"])
@pytest.mark.parametrize("names", ALIKE)
def test_names_that_are_shown_alike_are_those_of_two_students(
    tmp_path: Path, names: tuple[str, str], folder: str
) -> None:
    for name in names:
        path = tmp_path / name / "qkv" / "qkv.ipynb" if folder else tmp_path / f"{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
    sources, _ = find_submissions([tmp_path], "qkv")
    assert len({source.student for source in sources}) == len({source.shown for source in sources}) == 2


HONEST = [
    "Karl",
    "M\xfcller",
    "Mu\u0308ller",
    "Nguy\xea\u0303n",
    "\u09b0\u09be\u09df",
    "\ufb2a\u05d0",
    "e\u0301\u0323va",
]


@pytest.mark.parametrize("name", HONEST)
def test_a_name_has_no_tag_however_its_accents_are_written(tmp_path: Path, name: str) -> None:
    for other in (name, "\u212aarl"):
        (tmp_path / f"{other}.ipynb").write_bytes(other.encode())
    sources, _ = find_submissions([tmp_path], "qkv")
    plain = unicodedata.normalize("NFC", name)
    assert [read_submission(each).data for each in sources if each.student == plain] == [name.encode()]


def test_one_name_in_two_spellings_belongs_to_neither(tmp_path: Path) -> None:
    """The second one may be anybody's, and would take the points by hand of the first."""
    for name in ("M\xfcller", "Mu\u0308ller"):
        (tmp_path / f"{name}.ipynb").write_bytes(name.encode())
    sources, _ = find_submissions([tmp_path], "qkv")
    assert all(source.student.startswith("M\xfcller [") for source in sources)
    assert find_orphans(sources, ["M\xfcller"]) == ["M\xfcller"]


def test_names_that_no_terminal_can_show_are_made_safe(tmp_path: Path) -> None:
    for name in (
        b"a\xff.ipynb",
        b"b\x1b[31m\n.ipynb",
        "Zoe\u0308 \U0001f642.ipynb".encode(),
        "c\u202etxt.ipynb".encode(),
    ):
        with open(os.path.join(os.fsencode(tmp_path), name), "wb"):
            pass
    sources, _ = find_submissions([tmp_path], "qkv")
    assert {source.student.partition(" [")[0] for source in sources} == {
        *("a\ufffd", "b\ufffd[31m\ufffd", "Zo\xeb \U0001f642", "c\ufffdtxt")
    }
    for source in sources:
        assert source.shown.encode()
        assert read_submission(source).data == b""


PARTS = st.sampled_from(["alice", "bob", "qkv", "hw2", "x", ".ipynb_checkpoints", "alice (x)"])
FILES = st.sampled_from(["qkv.ipynb", "alice.ipynb", "x.ipynb", "._x.ipynb", "timestamp.txt", "a.py"])


@given(
    st.sets(st.tuples(st.lists(PARTS, max_size=4), FILES).map(lambda pair: "/".join([*pair[0], pair[1]])), max_size=8)
)
@settings(deadline=None, max_examples=60)
def test_no_file_is_lost_and_no_two_submissions_share_a_name(names: set[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_files(root, *names)
        students, skipped = find(root)
        accounted = set(skipped) | set(students.values())
        assert accounted >= names
        assert find(root) == (students, skipped)


@pytest.mark.parametrize("name", ["ada  lovelace", " ada lovelace", "ada\u00a0lovelace ", "ada lovelace"])
def test_names_that_differ_in_spaces_alone_are_told_apart_and_survive_a_table(tmp_path: Path, name: str) -> None:
    write_files(
        tmp_path, "ada lovelace.ipynb", f"{name}.ipynb", "x;=1.ipynb", "\uff0bx.ipynb", "' =y.ipynb", "=y.ipynb"
    )
    students, _ = find(tmp_path)
    assert len(students) == len(list(tmp_path.iterdir()))
    results = [
        (Grade(each, "", "", "ungraded"), FinalGrade(each, "ungraded", None, None, (), *[None] * 5))
        for each in students
    ]
    table = io.StringIO(newline="")
    write_csv(table, load_course(Path(__file__).parents[2]).assignment("qkv"), results)
    sheet = parse_sheet(table.getvalue().encode(), {"student": ()}, ["student"])
    assert [row.fields["student"] for row in sheet.rows] == list(students)


def test_a_link_that_takes_a_files_place_after_it_was_found_is_not_read(tmp_path: Path) -> None:
    write_files(tmp_path, "in/mal.ipynb", "secret.ipynb")
    [source], _ = find_submissions([tmp_path / "in"], "qkv")
    (tmp_path / "in/mal.ipynb").unlink()
    (tmp_path / "in/mal.ipynb").symlink_to(tmp_path / "secret.ipynb")
    with pytest.raises(NotebookError, match="cannot be read"):
        read_submission(source)
    [named], _ = find_submissions([tmp_path / "in/mal.ipynb"], "qkv")
    assert (named.student, read_submission(named).data) == ("mal", b"content of secret.ipynb")
