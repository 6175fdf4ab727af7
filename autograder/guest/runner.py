"""Runs one submission: reads a job and its passes, runs the cells, writes what became of them.

Student code and this module share one process, so nothing here is trusted by the host: a reply is a
claim, deadlines are kept outside, and no expected value ever enters the process.
"""

import ast
import asyncio
import builtins
import linecache
import os
import random
import shutil
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from itertools import takewhile
from mmap import mmap
from os import _exit, getpid
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy
from numpy import ndarray
from numpy.random import seed as seed_numpy

from . import ipython, reserve, wire
from .outputs import Capture, Silence, show_figures
from .prelude import bind_after_assignments, build_call
from .values import build_value, cut_text, name_type

_BINDER = "__bind_lesson_names__"

Send = Callable[[wire.Message], None]
Begin = Callable[[wire.RunPass, wire.PlannedCell], None]
"""Says which cell of a pass runs next."""


def run_submission(request_fd: int, reply_fd: int, place: mmap | None = None, home: str = "") -> None:
    """Serve passes from one descriptor to the other until the host closes it.

    place: memory in which graded passes say where they are, so that the host need not be woken up at each cell.
    home: the folder that is the submission's own, and is emptied before each pass.
    """
    # As in Jupyter: what a notebook writes into its folder it can import.
    sys.path.insert(0, "")
    waiting = bytearray()
    is_known = False
    untold = -1
    ran: list[int] = []

    def send(message: wire.Message) -> None:
        nonlocal untold
        if isinstance(message, wire.Ended) and message.cell == untold:
            untold = -1
            if message.ending == "ok":
                ran.append(message.cell)
                return
            say_ran(message.pass_number)
            put(wire.Began(message.pass_number, message.cell))
        if isinstance(message, wire.Finished):
            say_ran(message.pass_number)
        put(message)
        if isinstance(message, wire.Finished) or len(waiting) > 2**16:
            flush()

    def say_ran(number: int) -> None:
        if ran:
            put(wire.Ran(number, tuple(ran)))
            ran.clear()

    def put(message: wire.Message) -> None:
        waiting.extend(wire.build_frame(message))

    def flush() -> None:
        _write_all(reply_fd, waiting)
        waiting.clear()

    def begin(order: wire.RunPass, cell: wire.PlannedCell) -> None:
        """The host learns which cell runs before it does; what is known of the last one goes out with that."""
        nonlocal is_known, untold
        # The first cell of all is told aloud: from then on nobody believes that the walls did not stand. So are cells
        # that a student wrote: what they write themselves into the pipe comes after it.
        if order.graded and place is not None and is_known and (cell.source, False) in _known:
            untold = cell.number
            wire.PLACE.pack_into(place, 0, (order.number << 32) + cell.number + 1)
        else:
            say_ran(order.number)
            put(wire.Began(order.number, cell.number))
            flush()
        is_known = True

    program: Program | None = None
    reader = wire.FrameReader(2**32 - 1)
    while data := os.read(request_fd, 2**20):
        for body in reader.feed(data):
            request = wire.parse_request(body)
            if isinstance(request, wire.Job):
                program = Program(request, send, begin, home)
            elif program is not None:
                program.run(request)


def _clear_folder(home: str) -> None:
    """Take away what the pass before has written, and the modules that it imported from there.

    A notebook that is run once finds no folder that it is about to make, and no results of other values.
    """
    os.chdir(home)
    for entry in tuple(os.scandir(home)):
        _attempt(partial(_remove, entry))
    for name in _list_imported():
        module = sys.modules[name]
        file = module.__dict__.get("__file__") if isinstance(module, ModuleType) else None
        if type(file) is str and file.startswith(f"{home}/"):
            del sys.modules[name]


def _remove(entry: "os.DirEntry[str]") -> None:
    if entry.is_dir(follow_symlinks=False):
        shutil.rmtree(entry.path, ignore_errors=True)
    else:
        os.unlink(entry.path)


_preloaded: list[str] = []
"""The module that was imported last before any submission was there."""


def note_preloaded() -> None:
    """What is imported from now on, a submission has imported."""
    _preloaded[:] = [next(reversed(sys.modules))]


def _list_imported() -> list[str]:
    """Modules that this submission has imported. A look at each of the others would copy the page that it lies on."""
    return list(takewhile(lambda name: name not in _preloaded, reversed(sys.modules)))


def _forget_start_method() -> None:
    """How processes are started may be said once in a process, and each pass says it again."""
    if (multiprocessing := sys.modules.get("multiprocessing")) is not None:
        multiprocessing.set_start_method(None, force=True)


def _reap_orphans() -> None:
    """As the init of its namespace this process gets the orphans of all others; ended ones count as processes."""
    while os.getpid() == 1 and os.waitpid(-1, os.WNOHANG)[0]:
        pass


def _see_own_files() -> None:
    """Two cells can follow each other faster than a folder's time stamp changes, by which imports see a new file."""
    finder: Any = sys.path_importer_cache.get(os.getcwd())
    if finder is not None:
        finder.invalidate_caches()


def _write_all(fd: int, data: bytearray) -> None:
    with memoryview(data) as whole:
        done = 0
        while done < len(whole):
            done += os.write(fd, whole[done:])


_known: dict[tuple[str, bool], CodeType | SyntaxError] = {}
"""Code of cells that the course itself hands out, by source and whether lesson's names are bound in it."""


def compile_known(cells: Sequence[str], lesson: frozenset[str]) -> None:
    """Compile cells of the released notebook before any submission is there; most come back unchanged."""
    for number, source in enumerate(cells):
        for names in (frozenset[str](), lesson):
            _known[source, bool(names)] = _compile_cell(source, f"<cell of the course, {number}>", names, frozenset())


class Program:
    """The cells of one submission, compiled once and run pass by pass, each in an empty folder."""

    def __init__(self, job: wire.Job, send: Send, begin: Begin, home: str) -> None:
        self._job = job
        self._send = send
        self._begin = begin
        self._home = home
        self._codes: dict[tuple[int, bool], CodeType | SyntaxError] = {}
        self._answers = frozenset(job.answers)
        self._names: dict[str, Any] = {}

    def run(self, order: wire.RunPass) -> None:
        """One pass in a fresh namespace and an empty folder."""
        # Functions and their namespace hold each other; large arrays would stay for the next pass.
        self._names.clear()
        _attempt(reserve.keep)
        if self._home:
            _attempt(lambda: _clear_folder(self._home))
        _attempt(_forget_start_method)
        _attempt(_reap_orphans)
        module = ModuleType("__main__")
        self._names = module.__dict__
        module.__dict__["__builtins__"] = builtins
        sys.modules["__main__"] = module
        capture = None if order.graded else Capture(self._show, self._job.output_bytes)
        ipython.lend_shell(module, capture)
        sys.stdout, sys.stderr = (capture.stdout, capture.stderr) if capture else (Silence(), Silence())
        if order.graded:
            random.seed(order.seed)
            _GradedPass(self, order, module.__dict__).run()
        elif capture is not None:
            self._run_as_submitted(order, module.__dict__, capture)
            capture.close()
        self._send(wire.Finished(order.number))

    def _show(self, mime: str, data: bytes) -> None:
        self._send(wire.Shown(self._shown_cell, mime, data))

    def _run_as_submitted(self, order: wire.RunPass, names: dict[str, Any], capture: Capture) -> None:
        for cell in self._job.cells:
            if cell.number not in order.skip:
                self._shown_cell = cell.number
                self.run_cell(order, cell, names, capture=capture)

    def run_cell(
        self,
        order: wire.RunPass,
        cell: wire.PlannedCell,
        names: dict[str, Any],
        lesson: frozenset[str] = frozenset(),
        capture: Capture | None = None,
    ) -> None:
        """Run one cell and send how it ended; nothing that student code raises gets past here."""
        self._begin(order, cell)
        pid = getpid()
        ending: wire.EndingName = "ok"
        error = text = ""
        try:
            _attempt(_see_own_files)
            code = self._compile(cell, lesson)
            value = eval(code, names) if capture is None else _run_and_echo(code, names, capture)
            if code.co_flags & _COROUTINE:
                _run_coroutine(value)
            show_figures(capture)
        except BaseException as exception:
            _end_forked(pid)
            ending, error, text = _describe(exception)
            if capture is not None:
                _attempt(capture.flush)
                capture.add("stream/traceback", _format_traceback(exception))
        _end_forked(pid)
        if (cell.source, False) not in _known or ending != "ok":
            _attempt(reserve.give_if_short)
        if capture is not None:
            _attempt(capture.flush)
        self._send(wire.Ended(order.number, cell.number, ending, error, text))

    def _compile(self, cell: wire.PlannedCell, lesson: frozenset[str]) -> CodeType:
        key = (cell.number, bool(lesson) and cell.prelude)
        if key not in self._codes:
            known = _known.get((cell.source, key[1]))
            self._codes[key] = known or _compile_cell(
                cell.source, f"<cell {cell.number}>", lesson if key[1] else frozenset(), self._answers
            )
        code = self._codes[key]
        if isinstance(code, SyntaxError):
            raise code
        return code


_COROUTINE = 0x80
_ECHO = "__echo_last_value__"


def _compile_cell(
    source: str, filename: str, lesson: frozenset[str], answers: frozenset[str]
) -> CodeType | SyntaxError:
    """Plain Python first; IPython's syntax where that fails. With `lesson` the cell is of the prelude."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        try:
            tree = compile(source, filename, "exec", flags | ast.PyCF_ONLY_AST)
        except SyntaxError:
            source = ipython.transform_source(source)
            tree = compile(source, filename, "exec", flags | ast.PyCF_ONLY_AST)
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        if lesson:
            tree = bind_after_assignments(tree, lesson, _BINDER, answers)
        elif tree.body and isinstance(tree.body[-1], ast.Expr):
            last = tree.body[-1]
            tree.body[-1] = build_call(_ECHO, [last.value], last)
        code: CodeType = compile(tree, filename, "exec", flags)
        return code
    except SyntaxError as error:
        return error


def _forget(value: Any) -> None:
    """What a graded pass does with the value of a cell's last line."""


def _run_and_echo(code: CodeType, names: dict[str, Any], capture: Capture) -> Any:
    def echo(value: Any) -> None:
        if value is not None:
            show_figures(capture)
            capture.flush()
            capture.add("text/plain", repr(value).encode("utf-8", "replace"))

    setattr(builtins, _ECHO, echo)
    try:
        return eval(code, names)
    finally:
        setattr(builtins, _ECHO, _forget)


def _run_coroutine(value: Any) -> None:
    asyncio.run(value)


def _end_forked(pid: int) -> None:
    """A process that a cell forked and forgot must not run the rest as well."""
    if getpid() != pid:
        _exit(0)


def _attempt(function: Callable[[], Any]) -> Any:
    """Call what student code may have broken; its failure is of no interest."""
    try:
        return function()
    except BaseException:
        return None


def _describe(exception: BaseException) -> tuple[wire.EndingName, str, str]:
    ending: wire.EndingName = "error"
    if isinstance(exception, SystemExit):
        ending = "exited"
    elif isinstance(exception, MemoryError):
        ending = "out-of-memory"
    text = _attempt(lambda: str(exception))
    return ending, name_type(exception), cut_text(text, wire.MAX_TEXT) if type(text) is str else ""


def _format_traceback(exception: BaseException) -> bytes:
    """The traceback from the student's own cell on."""
    trace = exception.__traceback__
    while trace is not None and not trace.tb_frame.f_code.co_filename.startswith("<cell"):
        trace = trace.tb_next
    lines = _attempt(lambda: traceback.format_exception(type(exception), exception, trace, limit=20, chain=False))
    return "".join(lines or [name_type(exception)]).encode("utf-8", "replace")


class _GradedPass:
    """One pass on one input set: binds the lesson's names, collects the answers."""

    def __init__(self, program: Program, order: wire.RunPass, names: dict[str, Any]) -> None:
        self._program = program
        self._order = order
        self._names = names
        self._values = {
            name: wire.read_array(value) if isinstance(value, wire.Array) else value
            for name, value in order.values.items()
        }
        self._lesson = frozenset(self._values)
        # A prelude that fails or is gone takes the lesson's import with it.
        self._from_prelude: dict[str, Any] = {"np": numpy}
        self._answers: dict[str, Any] = {}
        self._open = set(program._job.answers)

    def run(self) -> None:
        """All cells in order, then the answers."""
        job, names = self._program._job, self._names
        setattr(builtins, _BINDER, self._bind)
        setattr(builtins, _ECHO, _forget)
        kept: dict[str, Any] = {}
        in_prelude = True
        for cell in job.cells:
            if in_prelude and not cell.prelude:
                in_prelude = False
                self._from_prelude |= {
                    name: value for name, value in names.items() if isinstance(value, FunctionType | ModuleType)
                }
            if cell.bind_before:
                seed_numpy(self._order.seed)
                self._bind_all()
                names.update(kept)
                kept = {}
            if cell.number not in self._order.skip:
                self._program.run_cell(self._order, cell, names, self._lesson)
                kept.update({name: names[name] for name in cell.keep if name in names})
                self._collect(cell.collect)
            if cell.ends:
                self._send_answers(cell.ends)
                self._bind_all()
                if not self._open:
                    break  # what stands below the last exercise can change no answer
        self._collect(tuple(self._open))
        self._send_answers(tuple(self._open))
        show_figures(None)

    def _bind(self, *wanted: str) -> None:
        for name in wanted:
            value = self._values[name]
            self._names[name] = value.copy() if isinstance(value, ndarray | list) else value

    def _bind_all(self) -> None:
        self._names.update(self._from_prelude)
        self._bind(*self._values)

    def _collect(self, wanted: tuple[str, ...]) -> None:
        """Remember what the answers are now; a placeholder never replaces a value."""
        for name in wanted:
            value = self._names.get(name, ...)
            if value is not ...:
                self._answers[name] = value

    def _send_answers(self, wanted: tuple[str, ...]) -> None:
        job = self._program._job
        self._open.difference_update(wanted)
        for number, name in enumerate(job.answers):
            if name in wanted and name in self._answers:
                value = build_value(self._answers[name], job.answer_bytes)
                self._program._send(wire.Answered(self._order.number, number, value))
