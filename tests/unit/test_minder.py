"""What is removed of a submission, while another submission moves folders about."""

import os
import sys
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("the guest runs on Linux only", allow_module_level=True)

from autograder.guest import minder


def make_files(folder: Path) -> Path:
    (folder / "tree" / "below").mkdir(parents=True)
    (folder / "tree" / "below" / "file").touch()
    (folder / "file").touch()
    return folder


def test_what_a_user_owns_in_a_folder_is_removed_and_the_folder_stays(tmp_path: Path) -> None:
    shared = make_files(tmp_path / "shared")
    minder.remove_owned(str(shared), os.getuid() + 1)
    assert len(os.listdir(shared)) == 2
    minder.remove_owned(str(shared), os.getuid())
    assert os.listdir(shared) == []


def test_a_link_in_the_place_of_a_folder_is_not_followed(tmp_path: Path) -> None:
    target = make_files(tmp_path / "target")
    (tmp_path / "shared").symlink_to(target)
    minder.remove_owned(str(tmp_path / "shared"), os.getuid())
    assert len(os.listdir(target)) == 2


def test_a_folder_that_becomes_a_link_under_way_leads_nowhere_else(tmp_path: Path, monkeypatch) -> None:
    shared, target = make_files(tmp_path / "shared"), make_files(tmp_path / "target")
    list_names = os.listdir

    def list_and_swap(folder):
        names = list_names(folder)
        shared.rename(tmp_path / "moved")
        shared.symlink_to(target)
        return names

    monkeypatch.setattr(os, "listdir", list_and_swap)
    minder.remove_owned(str(shared), os.getuid())
    monkeypatch.undo()
    assert shared.is_symlink()
    assert os.listdir(tmp_path / "moved") == []
    assert sorted(os.listdir(target)) == ["file", "tree"]
    assert (target / "tree" / "below" / "file").exists()
