"""What a course preloads is there for submissions that name it, whoever was there before, and costs others nothing."""

import pytest

from autograder.sandbox.session import Session

from .conftest import Room

LOOK = "import sys\ntold = 'fra' 'ctions' in sys.modules"
NAME = "import fractions\nassert fractions.Fraction(1, 2)"


@pytest.fixture
def session(room: Room):
    assignment = room.assignment.model_copy(update={"preload": ("fractions",)})
    with Session(room.folder, assignment, mode=room.sandbox) as opened:
        yield opened


def test_a_submission_that_names_a_module_finds_it_imported_and_no_other_does(room: Room, session: Session) -> None:
    told = [room.ask(code, session) for code in (LOOK, f"{LOOK}\n{NAME}", LOOK)]
    assert told == [False, True, False]


@pytest.mark.parametrize(("cell", "code"), [("a = 1", LOOK), (NAME, f"{LOOK}\n{NAME}")], ids=["plain", "named"])
def test_the_released_notebook_says_which_server_is_there_first(room: Room, cell: str, code: str) -> None:
    assignment = room.assignment.model_copy(update={"preload": ("fractions",)})
    with Session(room.folder, assignment, (cell,), mode=room.sandbox) as session:
        assert room.ask(code, session) is (cell == NAME)
        assert len(session.pids) == 1
