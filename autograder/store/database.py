"""The store: every way in and out of the database."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from sqlalchemy import Connection, Engine

from autograder.records import Decision, Grade
from autograder.store import decisions, forgetting, results, submissions
from autograder.store.engine import begin_write, build_url, create_engine, explain_faults, show_place
from autograder.store.lock import hold_exclusively
from autograder.store.migrate import bring_up_to_date
from autograder.store.records import Forgotten, Received, Result, StoredGrade, StoredSubmission


def open_store(place: str | Path, *, create: bool = True) -> "Store":
    """Open the store at a path, or a PostgreSQL store at `postgresql://user@host/database`.

    An old schema is migrated. `StoreError` when it cannot be opened, is no store, or comes from a newer autograder;
    without `create` also when there is none yet.
    """
    url = build_url(place)
    with explain_faults(url):
        engine = create_engine(url, create=create)
        bring_up_to_date(engine, show_place(url), create=create)
    return Store(engine)


class Store:
    """An open store; a context manager. Each method is one transaction and raises `StoreError` for any fault.

    Digests name an environment (what decides what code gives) and a marking (what decides what an answer earns).
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __enter__(self) -> "Store":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._engine.dispose()

    @property
    def place(self) -> str:
        """The file or the URL, without a password."""
        return show_place(self._engine.url)

    @contextmanager
    def exclusive(self, purpose: str, wait: float = 0) -> Iterator[None]:
        """Hold the lock for runs that change the store; freed also when the process is killed.

        wait: seconds to wait for another run. `StoreBusyError` says who, where, since when and for what.
        """
        with self._explain(), hold_exclusively(self._engine, purpose, wait):
            yield

    def save_submissions(self, received: Sequence[Received], *, rewrite: bool = False) -> None:
        """Keep submissions; of each student, the one that is given last counts from now on. Older ones stay.

        rewrite: also write bytes that are there already, should they be damaged.
        """
        with self._write() as connection:
            submissions.save_submissions(connection, received, rewrite=rewrite)

    def choose_submissions(self, assignment: str, chosen: Mapping[str, str]) -> None:
        """Let other submissions count: by student, the SHA-256 of one that is there."""
        with self._write() as connection:
            submissions.choose_submissions(connection, assignment, chosen)

    def list_submissions(
        self, assignment: str, student: str | None = None, *, current_only: bool = True, forgotten: bool = False
    ) -> list[StoredSubmission]:
        """Submissions by student; with `current_only` the one of each student that counts.

        forgotten: include those of erased persons, for statistics.
        """
        with self._read() as connection:
            return submissions.list_submissions(
                connection, assignment, student, current_only=current_only, forgotten=forgotten
            )

    def find_contents(self, sha256s: Iterable[str]) -> dict[str, bytes]:
        """The submitted bytes by SHA-256, packed (`packing.unpack_bytes`); what is not there is left out."""
        with self._read() as connection:
            return submissions.find_contents(connection, sha256s)

    def save_environment(self, digest: str, description: Mapping[str, Any]) -> None:
        """Keep what an environment's digest stands for; needed before results under it."""
        with self._write() as connection:
            results.save_environment(connection, digest, description)

    def save_marking(self, digest: str, description: Mapping[str, Any]) -> None:
        """Keep what a marking's digest stands for; needed before results under it."""
        with self._write() as connection:
            results.save_marking(connection, digest, description)

    def find_description(self, digest: str) -> dict[str, Any] | None:
        """What the digest of an environment or a marking stands for; None when it is not known."""
        with self._read() as connection:
            return results.find_description(connection, digest)

    def save_results(self, made: Sequence[Result]) -> None:
        """Keep results and executions: all of them or, when it fails, none. They count from now on."""
        with self._write() as connection:
            results.save_results(connection, made)

    def find_executions(self, assignment: str, environment: str, sha256s: Iterable[str]) -> dict[str, dict[str, bytes]]:
        """Packed executions by SHA-256 and exercise, the joint run under "". They are large: ask for few at a time."""
        with self._read() as connection:
            return results.find_executions(connection, assignment, environment, sha256s)

    def measure_executions(self, assignment: str, environment: str, sha256s: Iterable[str]) -> dict[str, int]:
        """Bytes of a submission's packed executions, by SHA-256; what has none is left out."""
        with self._read() as connection:
            return results.measure_executions(connection, assignment, environment, sha256s)

    def measure_contents(self, sha256s: Iterable[str]) -> dict[str, int]:
        """Bytes of submissions as they are packed, by SHA-256; what is not there is left out."""
        with self._read() as connection:
            return submissions.measure_contents(connection, sha256s)

    def find_executed(self, assignment: str, environment: str) -> dict[str, frozenset[str]]:
        """Which submissions have executions, by SHA-256, and of which exercises; the joint run is ""."""
        with self._read() as connection:
            return results.find_executed(connection, assignment, environment)

    def find_grades(self, assignment: str, environment: str, marking: str, sha256s: Iterable[str]) -> dict[str, Grade]:
        """Grades by SHA-256 with student and path empty; ungraded ones are among them."""
        with self._read() as connection:
            return results.find_grades(connection, assignment, environment, marking, sha256s)

    def find_points(self, assignment: str, environment: str, marking: str, sha256s: Iterable[str]) -> dict[str, Grade]:
        """As `find_grades`, without notes and tests: what it takes to see whether points change."""
        with self._read() as connection:
            return results.find_points(connection, assignment, environment, marking, sha256s)

    def find_graded(self, assignment: str) -> Grade | None:
        """The grade that was given last, whoever's it is; None where nobody was graded yet."""
        with self._read() as connection:
            return results.find_graded(connection, assignment)

    def find_standing(self, assignment: str, sha256s: Iterable[str]) -> dict[str, tuple[str, str]]:
        """By SHA-256, the environment and the marking of the grade that counts."""
        with self._read() as connection:
            return results.find_standing(connection, assignment, sha256s)

    def choose_grades(self, assignment: str, environment: str, marking: str, sha256s: Iterable[str]) -> None:
        """Let grades that are there already count again, as after tests went back to what they were."""
        with self._write() as connection:
            results.choose_grades(connection, assignment, environment, marking, sha256s)

    def latest_grades(
        self, assignment: str, student: str | None = None, *, forgotten: bool = False
    ) -> list[StoredGrade]:
        """The grade that counts of each submission that counts, by student; those never graded are left out."""
        with self._read() as connection:
            return results.list_latest(connection, assignment, student, forgotten=forgotten)

    def add_decisions(self, made: Sequence[Decision]) -> None:
        """Keep what people decided; nothing that was decided before is changed."""
        with self._write() as connection:
            decisions.add_decisions(connection, made)

    def list_decisions(self, assignment: str, student: str | None = None) -> list[Decision]:
        """All decisions, oldest first; the last for a student, an exercise and a kind counts."""
        with self._read() as connection:
            return decisions.list_decisions(connection, assignment, student)

    def forget(self, *names: str) -> Forgotten:
        """Erase a person in all assignments, also from the disk; points stay under a random name.

        names: all under which the store has this person.

        Hold `exclusive`, so that no run brings the person back. When another process's reading keeps erased bytes on
        the disk, `StoreError` says so; a second call then finishes.
        """
        with self._write() as connection:
            forgotten = forgetting.forget(connection, *names)
        self.wipe()
        return forgotten

    def wipe(self) -> None:
        """Take from the disk what was erased; for a `forget` that did not come to its end."""
        with self._explain():
            forgetting.wipe(self._engine)

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        with self._explain(), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def _write(self) -> Iterator[Connection]:
        with self._explain(), begin_write(self._engine) as connection:
            yield connection

    @contextmanager
    def _explain(self) -> Iterator[None]:
        with explain_faults(self._engine.url):
            yield
