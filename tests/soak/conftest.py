"""A soak's size and seed, and one undisturbed grading that others are compared with."""

import os
import random
import secrets
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from .leftovers import list_leftovers, list_things

SIZE = int(os.environ.get("SOAK_SIZE", "500"))
KILLS = int(os.environ.get("SOAK_KILLS", "50"))
SEED = int(os.environ.get("SOAK_SEED") or secrets.randbelow(2**31))


def pytest_report_header() -> str:
    return f"soak: SOAK_SIZE={SIZE} SOAK_KILLS={KILLS} SOAK_SEED={SEED}"


@pytest.fixture(scope="session", autouse=True)
def _namespaces() -> None:
    if os.getpid() != 1:
        pytest.exit("what is left behind can only be seen in namespaces of one's own: run scripts/soak.sh", 2)
    # A shell starts jobs in the background with interrupts ignored, and what they start would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    """Random numbers of a test's own, so that each test can be run again without the others."""
    return random.Random(f"{SEED} {request.node.name}")


@pytest.fixture(scope="session")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that holds all courses and submissions."""
    return tmp_path_factory.mktemp("soak")


@pytest.fixture(autouse=True)
def leaves_nothing(work: Path) -> Iterator[None]:
    """Whatever a test ran has left no process, file, mount, IPC object or cgroup."""
    before = list_things(work)
    yield
    assert list_leftovers(before, work) == set()
