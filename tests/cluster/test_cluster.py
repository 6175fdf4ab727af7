"""A cluster gives the marks and messages that one machine gives, whatever becomes of its workers."""

import os
import shutil
import signal
from pathlib import Path

import pytest

from autograder.batch import run_all
from autograder.cluster import run_on_cluster
from autograder.course import Course
from autograder.errors import ClusterError
from autograder.gradebook import Gradebook
from autograder.intake.layouts import Source
from autograder.records import Grade
from autograder.store.database import open_store

from .conftest import ASSIGNMENT, ROOT, Cluster


@pytest.fixture(scope="session")
def local(course: Course, sources: list[Source], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Grade]:
    """What the same class gets without a cluster."""
    with open_store(tmp_path_factory.mktemp("local") / "grades.sqlite") as store:
        return {each.grade.student: each.grade for each in Gradebook(course, ASSIGNMENT, store, jobs=2).grade(sources)}


def grade_on(
    cluster: Cluster, course: Course, sources: list[Source], place: Path, said: list[str], victim: int = 0
) -> dict[str, Grade]:
    """Grades by student; after a few of them the process `victim` is killed."""
    grades: dict[str, Grade] = {}
    with open_store(place) as store:
        book = Gradebook(course, ASSIGNMENT, store, scheduler=cluster.address, report=said.append)
        for each in book.grade(sources):
            grades[each.grade.student] = each.grade
            if victim and len(grades) == 3:
                os.kill(victim, signal.SIGKILL)
                victim = 0
    return grades


def test_a_worker_killed_under_way_changes_no_mark_and_no_message(
    cluster: Cluster, course: Course, sources: list[Source], local: dict[str, Grade], tmp_path: Path
) -> None:
    victim = cluster.add_worker()
    cluster.add_worker()
    said: list[str] = []
    assert grade_on(cluster, course, sources, tmp_path / "grades.sqlite", said, victim.pid) == local
    assert victim.wait(timeout=10) == -signal.SIGKILL
    assert said == []


def test_who_ends_workers_costs_nobody_who_was_in_hand_beside(
    course: Course, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "0")
    cluster: Cluster = request.getfixturevalue("cluster")

    def work(_grader: object, item: int) -> int:
        import os
        import signal

        if item == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return 10 * item

    cluster.add_worker(nanny=True)
    found = run_on_cluster(course, ASSIGNMENT, work, range(6), cluster.address, print)
    assert sorted(found) == [(item, None if item == 2 else 10 * item) for item in range(6)]


def test_a_worker_with_another_guest_refuses_and_another_does_its_work(
    cluster: Cluster, course: Course, sources: list[Source], local: dict[str, Grade], tmp_path: Path
) -> None:
    changed = tmp_path / "changed"
    shutil.copytree(ROOT / "autograder", changed / "autograder", ignore=shutil.ignore_patterns("__pycache__"))
    with open(changed / "autograder" / "guest" / "runner.py", "a", encoding="utf-8") as file:
        file.write("# another version\n")
    cluster.add_worker({"PYTHONPATH": str(changed)})
    said: list[str] = []
    with pytest.raises(ClusterError, match=r"every worker of the cluster refuses: its environment is another .* guest"):
        grade_on(cluster, course, sources, tmp_path / "none.sqlite", said)
    assert len(said) == 1
    assert "refuses: its environment is another than that of the machine that asks: guest" in said[0]

    cluster.add_worker()
    assert grade_on(cluster, course, sources, tmp_path / "grades.sqlite", [], 0) == local


def test_a_worker_without_bubblewrap_refuses_and_another_does_its_work(
    cluster: Cluster, course: Course, sources: list[Source], local: dict[str, Grade], tmp_path: Path
) -> None:
    cluster.add_worker({"PATH": str(tmp_path / "nothing")})
    said: list[str] = []
    with pytest.raises(ClusterError, match="every worker of the cluster refuses: bubblewrap is not installed"):
        grade_on(cluster, course, sources, tmp_path / "none.sqlite", said)
    assert len(said) == 1

    cluster.add_worker()
    assert grade_on(cluster, course, sources, tmp_path / "grades.sqlite", []) == local


def test_a_scheduler_that_goes_away_under_way_is_one_sentence_and_what_came_back_is_kept(
    cluster: Cluster, course: Course, sources: list[Source], local: dict[str, Grade], tmp_path: Path
) -> None:
    cluster.add_worker()
    place = tmp_path / "grades.sqlite"
    with pytest.raises(ClusterError, match=r"the Dask scheduler at tcp://\S+ went away under way; .* same command"):
        grade_on(cluster, course, sources, place, [], cluster.scheduler.pid)
    with open_store(place) as store:
        kept = {each.grade.student: each.grade for each in store.latest_grades(ASSIGNMENT)}
    assert len(kept) >= 3
    assert kept == {student: local[student] for student in kept}


def test_a_scheduler_that_is_not_there_is_one_sentence(course: Course) -> None:
    with pytest.raises(ClusterError, match=r"no Dask scheduler answers at tcp://127.0.0.1:9 .*dask scheduler"):
        list(run_all(course, ASSIGNMENT, _never, [1], 1, "tcp://127.0.0.1:9", print))


def _never(grader: object, item: object) -> None:
    raise AssertionError("nothing can reach this")
