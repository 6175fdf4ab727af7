"""What tests of one part share."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _store_apart(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Commands keep results in a place of each test's own, and never in this checkout."""
    place: Path = tmp_path_factory.mktemp("store") / "grades.sqlite"
    monkeypatch.setenv("AUTOGRADER_STORE", str(place))
