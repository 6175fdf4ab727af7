"""What is read of processes while they come and go."""

import os
import threading

import pytest

from autograder.sandbox import processes


def test_a_thread_that_ends_meanwhile_hides_no_child_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    stop = threading.Event()
    threads = [threading.Thread(target=stop.wait) for _ in range(4)]
    for thread in threads:
        thread.start()
    child = os.fork()
    if child == 0:
        os.execvp("sleep", ["sleep", "60"])
    gone = {f"/task/{thread.native_id}/" for thread in threads}
    read = processes._read

    def read_while_they_end(path: str) -> str:
        if any(part in path for part in gone):
            raise ProcessLookupError(path)
        return read(path)

    monkeypatch.setattr(processes, "_read", read_while_they_end)
    try:
        assert child in list(processes.walk_tree(os.getpid()))
    finally:
        stop.set()
        os.kill(child, 9)
        os.waitpid(child, 0)


@pytest.mark.parametrize(("said", "each"), [("200000\n", 200_000), ("", 212_992)])
def test_each_socket_counts_as_much_as_it_may_hold(monkeypatch: pytest.MonkeyPatch, said: str, each: int) -> None:
    texts = {"/proc/7/net/sockstat": "sockets: used 61\nTCP: inuse 0\n", "/proc/sys/net/core/wmem_default": said}
    monkeypatch.setattr(processes, "_read", texts.__getitem__)
    processes._find_socket_bytes.cache_clear()
    assert processes.measure_sockets(7) == 61 * each
    processes._find_socket_bytes.cache_clear()


def test_sockets_of_a_process_that_is_gone_count_nothing() -> None:
    assert processes.measure_sockets(2**22 + 1) == 0
