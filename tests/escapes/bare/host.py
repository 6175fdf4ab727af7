"""A trusting host: the real runner without walls, limits or checks on what it says.

It decodes what comes without a cap, believes each claim, takes the first answer it hears, and waits for as long as
it takes. Argument: a JSON file with `reference`, `seeds`, `answers`, `requests` (base64), `guest` (the folder above
the runner), `passes` and `seconds`.
"""

import base64
import contextlib
import json
import os
import select
import struct
import subprocess
import sys
import time
from typing import Any

import numpy as np
from checks import CHECKS, EXERCISES, build_case, load_reference

START = """
import sys
sys.path.insert(0, sys.argv[1])
from guest import ipython, runner
ipython.start_shell()
runner.run_submission(int(sys.argv[2]), int(sys.argv[3]))
"""
BEGAN, ENDED, ANSWERED, SHOWN, FINISHED, FAULT, RAN = range(20, 27)
SETUP_FAILED = 125


class Endless(BaseException):
    """What a person would say after a while."""


class Pipe:
    """Reads as many bytes as it is told that there are."""

    def __init__(self, fd: int, seconds: float) -> None:
        self._fd = fd
        self._seconds = seconds
        self._end = float("inf")

    def wait(self, process: subprocess.Popen[bytes]) -> int:
        try:
            return process.wait(max(0, min(self._end, time.monotonic() + self._seconds) - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise Endless from None

    def read(self, size: int) -> bytearray:
        """So many bytes; fewer at the end. The clock starts with the first that comes."""
        data = bytearray(size)
        done = 0
        while done < size:
            left = 60 if self._end == float("inf") else self._end - time.monotonic()
            if not select.select([self._fd], [], [], max(0, left))[0]:
                raise Endless
            if not (part := os.read(self._fd, min(size - done, 2**16))):
                return data[:done]
            self._end = min(self._end, time.monotonic() + self._seconds)
            data[done : done + len(part)] = part
            done += len(part)
        return data


_SIZES = {0xC4: ">B", 0xC5: ">H", 0xC6: ">I", 0xD9: ">B", 0xDA: ">H", 0xDB: ">I", 0xDC: ">H", 0xDD: ">I"}
_NUMBERS = dict(zip(range(0xCA, 0xD4), (">f", ">d", ">B", ">H", ">I", ">Q", ">b", ">h", ">i", ">q"), strict=True))
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}


def unpack(body: bytearray, at: int) -> tuple[Any, int]:
    """The msgpack value at a place, and where it ends; makes room for what is declared."""
    kind = body[at]
    at += 1
    if kind < 0x80 or kind >= 0xE0:
        return kind - 256 if kind >= 0xE0 else kind, at
    if kind in _CONSTANTS:
        return _CONSTANTS[kind], at
    if kind in _NUMBERS:
        (value,) = struct.unpack_from(_NUMBERS[kind], body, at)
        return value, at + struct.calcsize(_NUMBERS[kind])
    if kind in _SIZES:
        (size,) = struct.unpack_from(_SIZES[kind], body, at)
        at += struct.calcsize(_SIZES[kind])
    else:
        size = kind & (0x1F if kind >= 0xA0 else 0x0F)
    if kind & 0xF0 == 0x90 or kind in (0xDC, 0xDD):
        items: list[Any] = [None] * size
        for number in range(size):
            items[number], at = unpack(body, at)
        return items, at
    data = bytes(body[at : at + size])
    return data if kind in (0xC4, 0xC5, 0xC6) else data.decode(), at + size


def read_value(value: list[Any]) -> Any:
    kind, *fields = value
    if kind == 2:
        dtype, shape, data = fields
        return np.frombuffer(data, dtype).reshape(shape)
    return fields[0] if fields else None


class Talk:
    """What the host has heard."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.order = order
        self.answers: dict[int, dict[str, Any]] = {number: {} for number in range(order["passes"])}
        self.cells: dict[int, list[int]] = {number: [] for number in range(order["passes"])}
        self.finished: list[int] = []
        self.outputs: list[bytes] = []

    def run(self) -> None:
        order = self.order
        request_inside, request = os.pipe()
        reply, reply_inside = os.pipe()
        command = [sys.executable, "-c", START, order["guest"], str(request_inside), str(reply_inside)]
        process = subprocess.Popen(
            command,
            pass_fds=(request_inside, reply_inside),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(request_inside)
        os.close(reply_inside)
        os.write(request, base64.b64decode(order["requests"]))
        pipe = Pipe(reply, order["seconds"])
        while len(self.finished) < order["passes"]:
            if len(header := pipe.read(4)) < 4:
                self.bury(pipe.wait(process))
                return
            message, _ = unpack(pipe.read(int.from_bytes(header, "big")), 0)
            self.believe(*message)
        process.kill()
        process.wait()

    def bury(self, status: int) -> None:
        """The process ended of itself: find the cell to blame."""
        if 64 - status == SETUP_FAILED:
            raise RuntimeError("the walls could not be built")
        if self.finished:
            max(self.cells[self.finished[-1]])

    def believe(self, kind: int, *fields: Any) -> None:
        if kind == BEGAN:
            self.cells[fields[0]].append(fields[1])
        elif kind == RAN:
            self.cells[fields[0]] += fields[1]
        elif kind == ANSWERED:
            number, answer, value = fields
            self.answers[number].setdefault(self.order["answers"][answer], read_value(value))
        elif kind == SHOWN:
            self.outputs.append(fields[2])
        elif kind == FINISHED:
            self.finished.append(fields[0])
        elif kind == FAULT:
            raise RuntimeError("the walls could not be built")
        elif kind != ENDED:
            raise RuntimeError("no such message")


def mark(talk: Talk) -> tuple[dict[str, int], list[str]]:
    """Points by exercise. An answer of a wrong form loses; a check that cannot be made is the grader's own fault."""
    order = talk.order
    reference = load_reference(order["reference"])
    passed = [True] * len(CHECKS)
    feedback = []
    for number, seed in enumerate(order["seeds"]):
        inputs, expected = build_case(reference, seed)
        for at, (_, check) in enumerate(CHECKS):
            try:
                with np.errstate(over="raise"):
                    check(talk.answers[number], expected, inputs)
            except (AssertionError, KeyError, ValueError, TypeError, AttributeError) as error:
                passed[at] = False
                feedback.append(f"{type(error).__name__}: {error}")
    scores = {name: sum(passed[n] for n, (own, _) in enumerate(CHECKS) if own == name) for name in EXERCISES}
    return scores, feedback


def main() -> None:
    with open(sys.argv[1]) as file:
        talk = Talk(json.load(file))
    report: dict[str, Any] = {"scores": {}, "feedback": [], "fault": ""}
    with contextlib.suppress(Endless):
        try:
            talk.run()
            report["scores"], report["feedback"] = mark(talk)
        except Exception as error:
            report["fault"] = f"{type(error).__name__}: {error}"
        report |= {"outputs": len(talk.outputs), "bytes": sum(map(len, talk.outputs))}
        for data in talk.outputs[:1000]:
            os.write(1, data)
        os.write(1, f"\nREPORT {json.dumps(report)}\n".encode())
        return
    os.write(1, b"\nBITE endless\n")


main()
