"""Where a store is. Apart from what opens one, which takes long to import."""

from pathlib import Path


def default_place(folder: Path) -> Path:
    """Where a course's store is when nobody says otherwise."""
    return folder / ".autograder" / "grades.sqlite"


def may_exist(place: str | Path) -> bool:
    """Whether there may be a store already; of a database server it is not asked."""
    return "://" in str(place) or Path(place).exists()
