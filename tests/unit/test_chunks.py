"""However large the files are that a class hands in, few of them are in memory at once."""

from pathlib import Path

import pytest

from autograder import gradebook
from autograder.gradebook import _read_chunks
from autograder.intake.files import Source
from autograder.records import Submission


def make_sources(folder: Path, *sizes: int) -> list[Source]:
    sources = []
    for number, size in enumerate(sizes):
        path = folder / f"{number}.ipynb"
        path.write_bytes(bytes(size))
        sources.append(Source(str(number), path, str(path)))
    return sources


def test_large_files_are_read_few_at_a_time_and_none_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gradebook, "_CHUNK_BYTES", 1000)
    sources = [*make_sources(tmp_path, 10, 10, 999, 1000, 5, 400, 400, 400, 1), Source("gone", tmp_path / "x", "x")]
    chunks = list(_read_chunks(sources))
    assert [source for chunk in chunks for source, _ in chunk] == sources
    sizes = [[len(read.data) for _, read in chunk if isinstance(read, Submission)] for chunk in chunks]
    assert sizes == [[10, 10, 999], [1000], [5, 400, 400, 400], [1]]
    assert isinstance(chunks[-1][-1][1], str)


def test_small_files_are_read_many_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradebook, "_CHUNK", 3)
    assert [len(chunk) for chunk in _read_chunks(make_sources(tmp_path, *[1] * 7))] == [3, 3, 1]
