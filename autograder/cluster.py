"""Work on many submissions over a Dask cluster. Course files travel to each worker once, and are checked there.

A worker refuses what it would do otherwise than here: its digests of the environment and of the marking must be
those of the machine that asks. Needs the extra `cluster`.
"""

import io
import threading
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from autograder.course import FILE_NAME, Course, load_course
from autograder.errors import AutograderError, ClusterError, SandboxUnavailable
from autograder.fingerprint import Fingerprint, describe_environment, describe_marking, list_differences
from autograder.grading import Grader
from autograder.temporary import make_temporary

if TYPE_CHECKING:
    from distributed import Client

Item = TypeVar("Item")
Result = TypeVar("Result")
Report = Callable[[str], None]

_IN_FLIGHT = 8
"""Items handed out for each worker: enough that none waits for the network."""
_CONNECT_SECONDS = 10
_PREFIX = "autograder-course-"
"""Of folders that hold the course's files on a worker's machine."""
_MOST_LOST = 3
"""How often the course's files may be lost with a worker under one item before it is the item's fault."""


class Bundle(msgspec.Struct, frozen=True):
    """What a worker needs to grade an assignment, and the digests that it must come to by itself."""

    assignment: str
    files: bytes
    """A zip archive with the course's files of this assignment."""
    environment: Fingerprint
    marking: Fingerprint

    @property
    def digest(self) -> str:
        """Equal for equal work."""
        return f"{self.assignment} {self.environment.digest} {self.marking.digest}"


def run_on_cluster(
    course: Course,
    assignment: str,
    work: Callable[[Grader, Item], Result],
    items: Iterable[Item],
    scheduler: str,
    report: Report,
) -> Iterator[tuple[Item, Result | None]]:
    """Each item with what `work` made of it, in whatever order they end; None where workers died on it again and again.

    `report` is told of workers that refuse. `ClusterError` when there is no cluster, or no worker that may work.
    """
    try:
        from distributed import CancelledError, Client
        from distributed.comm.core import CommClosedError
    except ImportError as error:
        raise ClusterError("a cluster needs the extra packages: pip install 'autograder-numpy[cluster]'") from error
    try:
        client = Client(scheduler, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise ClusterError(
            f"no Dask scheduler answers at {scheduler} ({error}); start one with `dask scheduler`"
        ) from error
    with client:
        try:
            yield from _Run(client, build_bundle(course, assignment), work, report).run(items)
        except (CommClosedError, CancelledError) as error:
            raise ClusterError(
                f"the Dask scheduler at {scheduler} went away under way; what came back is kept: "
                "start it again and run the same command"
            ) from error


def build_bundle(course: Course, assignment: str) -> Bundle:
    """The course's files of one assignment, and what a worker's digests must be."""
    folders = [course.solution_notebook(assignment).parent, course.hidden_tests(assignment)]
    files = [course.folder / FILE_NAME, course.released_notebook(assignment)]
    files += [file for folder in folders for file in sorted(folder.rglob("*")) if "__pycache__" not in file.parts]
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            if file.is_file():
                archive.write(file, file.relative_to(course.folder))
    environment, marking = describe_environment(course, assignment), describe_marking(course, assignment)
    return Bundle(assignment, packed.getvalue(), environment, marking)


class _Run:
    """One batch on one cluster."""

    def __init__(self, client: "Client", bundle: Bundle, work: Callable[[Grader, Any], Any], report: Report) -> None:
        self._client = client
        self._bundle = bundle
        self._work = work
        self._report = report
        self._refused: dict[str, str] = {}
        self._tries: dict[int, int] = {}

    def run(self, items: Iterable[Item]) -> Iterator[tuple[Item, Any]]:
        from distributed import CancelledError, KilledWorker, as_completed

        shared: Any = None
        waiting = enumerate(items)
        running: dict[Any, tuple[int, Item]] = {}
        suspects: list[tuple[int, Item]] = []
        alone: set[int] = set()
        lost: Counter[int] = Counter()
        ended = as_completed(loop=self._client.loop)

        def hand_out(number: int, item: Item) -> None:
            nonlocal shared
            if shared is None:
                # One copy on each worker; those that join later fetch it from one of them.
                shared = self._client.scatter(self._bundle, broadcast=True, hash=False)
            future = self._client.submit(
                work_in_worker, shared, self._work, item, pure=False,
                workers=self._list_willing(), allow_other_workers=True,
                key=f"autograder-{self._bundle.assignment}-{number}-{self._tries.get(number, 0)}-{id(self)}",
            )  # fmt: skip
            running[future] = number, item
            ended.add(future)

        while True:
            room = max(1, len(self._list_willing())) * _IN_FLIGHT - len(running)
            for number, item in islice(waiting, max(0, room)):
                hand_out(number, item)
            if not running and suspects:
                number, item = suspects.pop()
                alone.add(number)
                self._tries[number] = self._tries.get(number, 0) + 1
                hand_out(number, item)
            if not running:
                return
            future = next(ended)
            number, item = running.pop(future)
            try:
                result = future.result()
            except (KilledWorker, CancelledError) as error:
                if isinstance(error, CancelledError):
                    if self._client.status != "running":
                        raise
                    # The last worker that had a copy of the bundle died, perhaps long before.
                    shared = None
                    lost[number] += 1
                # Dask blames all that the worker had in hand: each once more, when nothing else is.
                if number in alone and (isinstance(error, KilledWorker) or lost[number] > _MOST_LOST):
                    yield item, None
                else:
                    suspects.append((number, item))
                continue
            if isinstance(result, Refusal):
                self._note_refusal(result)
                # Dask lets an idle worker steal it from a willing one, refuse it again, and so on; until all refuse,
                # a willing one has work meanwhile.
                self._tries[number] = self._tries.get(number, 0) + 1
                hand_out(number, item)
            else:
                yield item, result

    def _note_refusal(self, refusal: "Refusal") -> None:
        if refusal.worker not in self._refused:
            self._refused[refusal.worker] = refusal.reason
            self._report(f"the worker {refusal.worker} refuses: {refusal.reason}")

    def _list_willing(self) -> list[str]:
        """Addresses of workers that have not refused. `ClusterError` when there are none, though some are there."""
        workers = list(self._client.scheduler_info(n_workers=-1)["workers"])
        willing = [address for address in workers if address not in self._refused]
        if workers and not willing:
            reasons = "; ".join(dict.fromkeys(self._refused.values()))
            raise ClusterError(f"every worker of the cluster refuses: {reasons}")
        return willing


class Refusal(msgspec.Struct, frozen=True):
    """Why a worker does not do what it is asked to."""

    worker: str
    reason: str


class _Seat:
    """This worker process's grader for one bundle.

    A thread of its own opens it and does all work: what the sandbox starts ends with the thread that started it.
    """

    def __init__(self, bundle: Bundle) -> None:
        self.digest = bundle.digest
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="autograder")
        self._kept = ExitStack()
        self._folder = self._kept.enter_context(make_temporary(_PREFIX))
        self.reason = ""
        try:
            self.thread.submit(self._open, bundle).result()
        except AutograderError as error:
            self.reason = str(error)

    def _open(self, bundle: Bundle) -> None:
        with zipfile.ZipFile(io.BytesIO(bundle.files)) as archive:
            archive.extractall(self._folder)
        course = load_course(self._folder)
        for name, asked, own in (
            ("environment", bundle.environment, describe_environment(course, bundle.assignment)),
            ("marking", bundle.marking, describe_marking(course, bundle.assignment)),
        ):
            if asked.digest != own.digest:
                parts = ", ".join(
                    f"{part} ({asked.description.get(part)} there, {own.description.get(part)} here)"
                    for part in list_differences(asked.description, own.description)
                )
                self.reason = f"its {name} is another than that of the machine that asks: {parts}"
                return
        self.grader = Grader(course, bundle.assignment).__enter__()

    def close(self) -> None:
        """End the sandbox and remove the course's files."""
        if hasattr(self, "grader"):
            self.thread.submit(self.grader.__exit__, None, None, None).result()
        self.thread.shutdown()
        self._kept.close()


_seats: dict[str, _Seat] = {}
_lock = threading.Lock()


def work_in_worker(bundle: Bundle, work: Callable[[Grader, Any], Any], item: Any) -> Any:
    """Runs in a worker of the cluster: the result of `work`, or a `Refusal`."""
    from distributed import get_worker

    try:
        seat = _take_seat(bundle)
        if not seat.reason:
            return seat.thread.submit(work, seat.grader, item).result()
        reason = seat.reason
    except (SandboxUnavailable, OSError) as error:
        # This machine's own fault, which costs nobody the batch. Not kept: a person may mend it and ask again.
        reason = str(error)
    return Refusal(get_worker().address, reason)


def _take_seat(bundle: Bundle) -> _Seat:
    """The seat for a bundle; one for another state of the same assignment is given up."""
    with _lock:
        seat = _seats.get(bundle.assignment)
        if seat is None or seat.digest != bundle.digest:
            if seat is not None:
                del _seats[bundle.assignment]
                seat.close()
            seat = _seats[bundle.assignment] = _Seat(bundle)
        return seat
