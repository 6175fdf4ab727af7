"""One run at a time works on a store; a run that dies leaves it free."""

import getpass
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from autograder.errors import StoreBusyError
from autograder.store.database import Store, open_store


@contextmanager
def hold_elsewhere(place: str, then: str = "sys.stdin.read()") -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock, and then does what `then` says until its input ends."""
    code = f"""
import os, sys, time
from autograder.store.database import open_store
with open_store({place!r}) as store, store.exclusive("grading qkv"):
    print("held", flush=True)
    {then}
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def test_second_run_is_told_who_works_on_the_store(store: Store, place: str) -> None:
    with hold_elsewhere(place) as other, pytest.raises(StoreBusyError) as caught, store.exclusive("a second"):
        pytest.fail("both hold it")
    told = str(caught.value)
    for part in (getpass.getuser(), socket.gethostname(), f"process {other.pid}", "grading qkv", "since 20"):
        assert part in told


def test_store_is_free_after_a_run(store: Store, place: str) -> None:
    with hold_elsewhere(place) as other:
        other.communicate("")
        with store.exclusive("next"):
            pass
    with store.exclusive("and next"):
        pass


def test_store_is_free_after_a_run_that_failed(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), store.exclusive("first"):
        raise ZeroDivisionError
    with store.exclusive("next"):
        pass


def test_same_process_cannot_hold_it_twice(store: Store, place: str) -> None:
    with (
        store.exclusive("first"),
        open_store(place) as again,
        pytest.raises(StoreBusyError, match="first"),
        again.exclusive("second"),
    ):
        pytest.fail("both hold it")


def test_killed_run_leaves_the_store_free(store: Store, place: str) -> None:
    with hold_elsewhere(place) as other:
        other.kill()
        other.wait()
        with store.exclusive("next", wait=60):
            pass


def test_killed_run_leaves_the_store_free_although_its_workers_live_on(store: Store, place: str) -> None:
    forks = "child = os.fork() or time.sleep(1000); print(child, flush=True); sys.stdin.read()"
    with hold_elsewhere(place, forks) as other:
        assert other.stdout is not None
        worker = int(other.stdout.readline())
        other.kill()
        other.wait()
        with store.exclusive("next", wait=60):
            os.kill(worker, 0)  # it lives


def test_worker_that_ends_does_not_free_the_store(store: Store, place: str) -> None:
    forks = 'child = os.fork() or sys.exit(); os.waitpid(child, 0); print("ended", flush=True); sys.stdin.read()'
    with hold_elsewhere(place, forks) as other:
        assert other.stdout is not None
        assert "ended\n" in iter(other.stdout.readline, "")
        with pytest.raises(StoreBusyError), store.exclusive("second"):
            pytest.fail("both hold it")


def test_run_that_waits_goes_on_when_the_first_ends(store: Store, place: str) -> None:
    with hold_elsewhere(place) as other:
        timer = threading.Timer(0.5, other.kill)
        timer.start()
        began = time.monotonic()
        with store.exclusive("second", wait=60):
            assert time.monotonic() - began >= 0.3
        timer.join()


def test_others_can_read_and_decide_while_a_run_works(store: Store, place: str) -> None:
    with hold_elsewhere(place):
        store.add_decisions([])
        store.save_environment("e", {})
        assert store.find_description("e") == {}
