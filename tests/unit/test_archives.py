"""Zip archives are read in place; what is wrong with a member costs that member only."""

import hashlib
import io
import json
import os
import pickle
import stat
import struct
import subprocess
import sys
import tempfile
import tracemalloc
import warnings
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.errors import NotebookError, UsageError
from autograder.intake import archives
from autograder.intake.layouts import MAX_FILE_BYTES, Source, find_submissions, read_submission

ROOT = Path(__file__).parents[2]


def make_zip(path: Path, *members: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", method) as archive:
        warnings.simplefilter("ignore")
        for name, data in members:
            archive.writestr(name, data)
    return path


def patch_directory(path: Path, name: str, offset: int, form: str, *values: int) -> None:
    """Overwrite a field of a member's record, in the list at the archive's end and before its data."""
    data = bytearray(path.read_bytes())
    at = data.rindex(b"PK\x01\x02", 0, data.rindex(name.encode()))
    struct.pack_into(form, data, at + offset, *values)
    # The record before the data lacks two bytes at its beginning.
    at = data.index(b"PK\x03\x04", max(0, data.index(name.encode()) - 30))
    struct.pack_into(form, data, at + offset - 2, *values)
    path.write_bytes(data)


def find(path: Path) -> tuple[dict[str, Source], dict[str, str]]:
    sources, skipped = find_submissions([path], "qkv")
    with zipfile.ZipFile(path) as archive:
        assert len(sources) + len(skipped) == len(archive.namelist())
    return {source.student: source for source in sources}, {item.path: item.reason for item in skipped}


def complain(source: Source) -> str:
    with pytest.raises(NotebookError) as caught:
        read_submission(source)
    return str(caught.value)


def test_a_member_is_read_with_its_sha256_from_a_source_that_travels(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "class.zip", ("a.ipynb", b"\xff\0\r\n"), ("b/qkv.ipynb", b""))
    students, _ = find(path)
    assert set(students) == {"a", "b"}
    carried = pickle.dumps(students["a"])
    assert len(carried) < 1000
    submission = read_submission(pickle.loads(carried))
    assert submission.data == b"\xff\0\r\n"
    assert submission.sha256 == hashlib.sha256(b"\xff\0\r\n").hexdigest()
    assert submission.path == f"{path}/a.ipynb"


def test_nothing_is_written_to_disk(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "class.zip", ("a.ipynb", b"1"))
    path.chmod(0o400)
    tmp_path.chmod(0o500)
    before = set(os.listdir(tempfile.gettempdir()))
    students, _ = find(path)
    read_submission(students["a"])
    assert os.listdir(tmp_path) == ["class.zip"]
    assert not {name for name in set(os.listdir(tempfile.gettempdir())) - before if "ipynb" in name}


def test_a_member_over_the_cap_is_ungraded_and_the_next_is_read(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "c.zip", ("a.ipynb", bytes(MAX_FILE_BYTES + 1)), ("b.ipynb", b"fine"))
    students, _ = find(path)
    assert "larger than 64 MiB" in complain(students["a"])
    assert read_submission(students["b"]).data == b"fine"


def test_a_member_that_unpacks_to_far_more_than_it_holds_is_ungraded(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "c.zip", ("a.ipynb", bytes(32 * 2**20)), ("b.ipynb", b"0" * 2**20))
    students, _ = find(path)
    assert "zip bomb" in complain(students["a"])
    assert len(read_submission(students["b"]).data) == 2**20, "a small one is harmless at any ratio"


def test_a_size_that_is_declared_too_small_neither_floods_memory_nor_passes(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "c.zip", ("a.ipynb", bytes(256 * 2**20)), ("b.ipynb", b"fine"))
    patch_directory(path, "a.ipynb", 24, "<I", 1000)
    students, _ = find(path)
    tracemalloc.start()
    assert "damaged" in complain(students["a"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 24 * 2**20
    assert read_submission(students["b"]).data == b"fine"


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_that_python_unpacks_without_a_limit_are_not_used(tmp_path: Path, method: int) -> None:
    students, _ = find(make_zip(tmp_path / "c.zip", ("a.ipynb", bytes(2**20)), method=method))
    assert "method" in complain(students["a"])


def test_the_largest_notebooks_give_way_where_all_together_are_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "MAX_TOTAL_BYTES", 1000)
    path = make_zip(
        tmp_path / "c.zip",
        ("a.ipynb", bytes(900)),
        ("b.ipynb", bytes(400)),
        ("c.ipynb", bytes(500)),
        ("d", bytes(9999)),
    )
    students, _ = find(path)
    assert {name: bool(source.fault) for name, source in students.items()} == {"a": True, "b": False, "c": False}


def test_an_archive_whose_members_share_their_data_is_refused(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "bomb.zip", *((f"{n}.ipynb", os.urandom(3000)) for n in range(3)))
    for number in range(3):
        patch_directory(path, f"{number}.ipynb", 20, "<I", 9000)
    [source], skipped = find_submissions([path], "qkv")
    assert (source.student, skipped) == ("bomb", [])
    assert "claims to hold more" in complain(source)


def test_a_list_of_members_over_the_cap_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_zip(tmp_path / "many.zip", *((f"{n}.ipynb", b"") for n in range(2000)))
    assert len(find(path)[0]) == 2000
    monkeypatch.setattr(archives, "MAX_DIRECTORY_BYTES", 70_000)
    [source], _ = find_submissions([path], "qkv")
    assert "list of members" in complain(source)


@pytest.mark.parametrize(
    "name", ["/etc/a.ipynb", "../a.ipynb", "x/../../a.ipynb", "..\\a.ipynb", "C:/a.ipynb", "\\a.ipynb"]
)
def test_a_path_that_leads_out_of_the_archive_is_skipped(tmp_path: Path, name: str) -> None:
    students, skipped = find(make_zip(tmp_path / "c.zip", (name, b"1"), ("b.ipynb", b"2")))
    assert set(students) == {"b"}
    assert skipped == {f"{tmp_path}/c.zip/{name}": "its path leads out of the archive"}


@pytest.mark.parametrize(("kind", "words"), [(stat.S_IFLNK, "symbolic link"), (stat.S_IFIFO, "not a regular file")])
def test_links_and_devices_in_an_archive_are_skipped(tmp_path: Path, kind: int, words: str) -> None:
    info = zipfile.ZipInfo("a.ipynb")
    info.external_attr = (kind | 0o777) << 16
    students, skipped = find(make_zip(tmp_path / "c.zip", (info, b"/etc/passwd"), ("b.ipynb", b"2")))
    assert set(students) == {"b"}
    assert words in skipped[f"{tmp_path}/c.zip/a.ipynb"]


def test_an_encrypted_member_is_ungraded(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "c.zip", ("a.ipynb", b"1"), ("b.ipynb", b"2"))
    patch_directory(path, "a.ipynb", 8, "<H", 1)
    students, _ = find(path)
    assert "without a password" in complain(students["a"])
    assert read_submission(students["b"]).data == b"2"


def test_a_nested_archive_is_reported(tmp_path: Path) -> None:
    inner = make_zip(tmp_path / "inner.zip", ("a.ipynb", b"1")).read_bytes()
    students, skipped = find(make_zip(tmp_path / "c.zip", ("alice.zip", inner), ("b.ipynb", b"2")))
    assert set(students) == {"b"}
    assert "unpack it" in skipped[f"{tmp_path}/c.zip/alice.zip"]


def test_of_members_with_one_name_the_last_counts_and_every_other_is_reported(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "c.zip", *((name, data) for data in (b"1", b"2", b"3") for name in ("a.ipynb", "b.py")))
    sources, skipped = find_submissions([path], "qkv")
    assert [read_submission(source).data for source in sources] == [b"3"]
    assert sorted(item.reason.split()[0] for item in skipped) == ["a"] * 4 + ["not"]


def test_doubled_members_of_a_student_without_a_notebook_are_each_reported(tmp_path: Path) -> None:
    name = "Doe_3_assignsubmission_file/a.py"
    sources, skipped = find_submissions([make_zip(tmp_path / "c.zip", *((name, b"") for _ in range(4)))], "qkv")
    assert (len(sources), len(skipped)) == (1, 3)


def test_what_systems_leave_in_an_archive_is_skipped_and_counted(tmp_path: Path) -> None:
    junk = ("__MACOSX/._a.ipynb", ".DS_Store", "a/.ipynb_checkpoints/qkv-checkpoint.ipynb", "desktop.ini", "._b.ipynb")
    students, skipped = find(make_zip(tmp_path / "c.zip", *((name, b"") for name in junk), ("a.ipynb", b"")))
    assert set(students) == {"a"}
    assert len(skipped) == len(junk)


def test_names_of_every_script_are_read_whatever_the_archive_says_of_them(tmp_path: Path) -> None:
    names = ("Zo\xeb \U0001f642_3_assignsubmission_file/qkv.ipynb", "\u5f20\u4f1f.ipynb", "a\x1b[31m\u202e.ipynb")
    path = make_zip(tmp_path / "c.zip", *((name, b"1") for name in names))
    students, _ = find(path)
    plain = {student.partition(" [")[0] for student in students}
    assert plain == {"Zo\xeb \U0001f642", "\u5f20\u4f1f", "a\ufffd[31m\ufffd"}
    # Without the flag that says UTF-8, as macOS writes it; and a name that is no UTF-8 at all.
    for name in names:
        patch_directory(path, name, 8, "<H", 0)
    assert set(find(path)[0]) == set(students)
    data = path.read_bytes().replace("Zo\xeb".encode(), b"Zo\xff\xfe")
    path.write_bytes(data)
    assert len(find(path)[0]) == 3
    for source in find(path)[0].values():
        assert source.shown.encode()
        if "Zo" not in source.student:
            assert read_submission(source).data == b"1"


@pytest.mark.parametrize("name", ["a/" * 3000 + "b.ipynb", "a" * 60_000 + ".ipynb", "1-1 - " + "1" * 3000 + ".ipynb"])
def test_a_name_without_end_costs_no_time(tmp_path: Path, name: str) -> None:
    sources, skipped = find_submissions([make_zip(tmp_path / "c.zip", (name, b""), ("b.ipynb", b""))], "qkv")
    assert len(sources) + len(skipped) == 2
    assert all(item.reason == "its name is too long" and len(item.path) < 400 for item in skipped)
    assert len(skipped) == (len(name) > 4096)


def test_what_is_no_archive_is_one_ungraded_submission(tmp_path: Path) -> None:
    (tmp_path / "page.zip").write_text("<html>please log in</html>")
    (tmp_path / "empty.zip").touch()
    sources, skipped = find_submissions([tmp_path / "page.zip", tmp_path / "empty.zip"], "qkv")
    assert ([source.student for source in sources], skipped) == (["page", "empty"], [])
    assert all("no zip archive" in complain(source) for source in sources)
    with pytest.raises(UsageError, match="cannot be opened"):
        find_submissions([tmp_path / "gone.zip"], "qkv")


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_a_list_of_members_that_breaks_off_loses_nobody_silently(tmp_path: Path, kept: int) -> None:
    path = make_zip(tmp_path / "c.zip", *((f"{name}.ipynb", b"1") for name in "abc"))
    content = bytearray(path.read_bytes())
    size = int.from_bytes(content[-10:-6], "little")
    content[-10:-6] = (size * kept // 3).to_bytes(4, "little")
    content[-6:-2] = (int.from_bytes(content[-6:-2], "little") + size - size * kept // 3).to_bytes(4, "little")
    path.write_bytes(content)
    [source], skipped = find_submissions([path], "qkv")
    assert skipped == []
    assert "download it again" in complain(source)


def test_an_archive_that_changed_since_it_was_listed_is_said_to_have(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "c.zip", ("a.ipynb", b"1"))
    students, _ = find(path)
    make_zip(path, ("b.ipynb", b"1"))
    assert "changed" in complain(students["a"])
    path.unlink()
    assert "cannot be read" in complain(students["a"])


@given(st.data())
@settings(deadline=None, max_examples=150)
def test_a_damaged_archive_gives_reasons_and_never_an_exception(data: st.DataObject) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("a.ipynb", "Doe_3_assignsubmission_file/qkv.ipynb", "n.txt"):
            archive.writestr(name, b"some text " * 50)
    content = bytearray(buffer.getvalue())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    content = content[: data.draw(st.sampled_from([len(content), len(content) // 2, len(content) - 5]))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.zip"
        path.write_bytes(content)
        sources, skipped = find_submissions([path], "qkv")
        assert sources or skipped
        for source in sources:
            with suppress(NotebookError):
                assert len(read_submission(source).data) <= MAX_FILE_BYTES


HOLDERS = st.sampled_from(
    [
        *"alice bob qkv softmax x __MACOSX .ipynb_checkpoints submission_5 submission_6".split(),
        *("Ada_11_assignsubmission_file", "Ada_12_assignsubmission_file_", "Bo_11_assignsubmission_onlinetext"),
        *("1-2 - Doe - Sep 3, 2026 1105 PM", "1-2 - Doe - Sep 4, 2026 905 AM", "1-2 - Doe - kuu 2026"),
    ]
)
NAMES = st.sampled_from(
    [
        *"qkv.ipynb alice.ipynb x.ipynb softmax.ipynb ._x.ipynb timestamp.txt a.py all.zip".split(),
        *"submission_metadata.yml doe_7_29_qkv.ipynb doe_LATE_7_30_qkv-1.ipynb doe_7_31_b.ipynb".split(),
        *"doe_7_32_c.pdf doe_8_33_qkv.ipynb Ada_11_assignsubmission_file_qkv.ipynb".split(),
        *"hw_doe_attempt_2026-09-09-10-00-00_x.ipynb hw_doe_attempt_2026-09-09-11-00-00_y.ipynb".split(),
        "hw_roe_attempt_2026-09-09-10-00-00.txt",
    ]
)
TREES = st.lists(
    st.tuples(st.lists(HOLDERS, max_size=4), NAMES).map(lambda pair: "/".join([*pair[0], pair[1]])), max_size=12
)


@given(TREES, st.sampled_from(["last", "first"]))
@settings(deadline=None, max_examples=250)
def test_every_file_is_graded_or_ungraded_or_skipped_and_is_so_once(names: list[str], choose) -> None:
    with tempfile.TemporaryDirectory() as place:
        root = Path(place) / "in"
        root.mkdir()
        path = make_zip(Path(place) / "in.zip", *((name, b"") for name in names))
        for name in set(names):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).touch()
        found = {}
        for where, count in ((root, len(set(names))), (path, len(names))):
            sources, skipped = find_submissions([where], "qkv", choose=choose, others=["softmax"])
            shown = [source.shown for source in sources] + [item.path for item in skipped]
            assert len(shown) == count
            assert {each.removeprefix(f"{where}/") for each in shown} == set(names)
            assert len({source.student for source in sources}) == len(sources)
            assert all(item.reason for item in skipped)
            found[where] = sorted((source.student, source.shown.removeprefix(f"{where}/")) for source in sources)
        if len(set(names)) == len(names):
            assert found[root] == found[path], "a download reads the same as a folder and as an archive"


def test_the_command_line_grades_an_archive_and_accounts_for_each_member(tmp_path: Path) -> None:
    right = (ROOT / "solutions/qkv/qkv.ipynb").read_bytes()
    path = make_zip(
        tmp_path / "submissions.zip",
        ("lovelaceada_11_101_qkv.ipynb", b"[]"),
        ("lovelaceada_LATE_11_105_qkv-1.ipynb", right),
        ("doejane_12_102_qkv.ipynb", bytes(MAX_FILE_BYTES + 1)),
        ("roe_13_103_hw.py", b"print()"),
        ("__MACOSX/._lovelaceada_11_101_qkv.ipynb", b""),
        ("../../evil.ipynb", right),
    )

    def grade(*options: str) -> tuple[int, dict[str, dict], list[dict]]:
        command = [sys.executable, "-m", "autograder", "grade", str(path), "--json", "--jobs", "2", *options]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
        document = json.loads(done.stdout)
        return done.returncode, {each["student"]: each for each in document["results"]}, document["skipped"]

    status, results, skipped = grade()
    assert (status, len(results), len(skipped)) == (1, 3, 3)
    ada = results["lovelaceada"]
    assert (ada["status"], ada["score"] + ada["pending"]) == ("graded", ada["max_score"])
    assert ada["notes"][:2] == ["Attempt 2 of 2 counts.", "Canvas marks it as handed in late."]
    assert "64 MiB" in results["doejane"]["reason"]
    assert "No notebook" in results["roe"]["reason"]
    assert os.listdir(tmp_path) == ["submissions.zip"]
    _, results, _ = grade("--attempt", "first")
    assert results["lovelaceada"]["status"] == "ungraded"
    assert results["lovelaceada"]["notes"] == ["Attempt 1 of 2 counts."]
