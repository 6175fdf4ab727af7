"""What a worker of a cluster that was killed leaves on its machine."""

import fcntl
import os
import time
from pathlib import Path

import pytest

from autograder.cluster import _sweep_stale

pytest.importorskip("distributed")


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
    _sweep_stale()
    os.close(held)
    assert not gone.exists()
    assert all((each / "tests").is_dir() for each in kept)
    assert link.is_symlink()
