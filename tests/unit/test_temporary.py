"""What a process that was killed leaves on its machine: course files of a cluster's worker, results of a run."""

import fcntl
import os
import time
from pathlib import Path

import pytest

from autograder.temporary import make_temporary, sweep_stale


def make_left(folder: Path, name: str, age: float) -> Path:
    left = folder / name
    (left / "tests").mkdir(parents=True)
    os.utime(left, (time.time() - age,) * 2)
    return left


def test_the_files_of_workers_that_are_gone_are_removed_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    gone = make_left(tmp_path, "autograder-course-gone", 3600)
    kept = [
        make_left(tmp_path, "autograder-course-young", 0),
        make_left(tmp_path, "autograder-course-in-use", 3600),
        make_left(tmp_path, "something-else", 3600),
    ]
    link = tmp_path / "autograder-course-link"
    link.symlink_to(kept[2])
    held = os.open(kept[1], os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    sweep_stale("autograder-course-")
    os.close(held)
    assert not gone.exists()
    assert all((each / "tests").is_dir() for each in kept)
    assert link.is_symlink()


def test_what_a_killed_process_leaves_is_removed_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    killed = os.fork()
    if killed == 0:
        try:
            with make_temporary("autograder-store-") as folder:
                (folder / "grades.sqlite").write_bytes(b"results")
                os.utime(folder, (time.time() - 3600,) * 2)
                os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(killed, 0)[1] == 0
    (left,) = tmp_path.iterdir()
    with make_temporary("autograder-store-") as folder:
        assert list(tmp_path.iterdir()) == [folder]
        assert folder != left
        assert folder.stat().st_mode & 0o077 == 0
    assert list(tmp_path.iterdir()) == []
