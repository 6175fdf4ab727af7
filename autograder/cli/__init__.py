"""The command line: parse, call one function, print. Heavy imports only where they are used."""

import signal
import sys
import traceback
from importlib import metadata
from typing import Annotated, NoReturn

import typer

from autograder.cli import course, grading, people
from autograder.cli.shared import app
from autograder.errors import AutograderError

__all__ = ["app", "course", "grading", "main", "people"]

DISTRIBUTION = "autograder-numpy"

_INTERRUPTED = 130
"""What typer makes of Ctrl-C."""
_OUR_FAULT = 70
"""EX_SOFTWARE: 0, 1 and 2 have meanings of their own."""


def main() -> NoReturn:
    """Run the command that was typed. Errors are caught here, once: one sentence, no traceback.

    2: usage or course files are wrong. `KeyboardInterrupt` on Ctrl-C.
    """
    # Some services start what they start with it ignored; then nobody learns how a process of ours ended.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        # Out of standalone mode, what a command raises as typer.Exit comes back as a value.
        status = app(standalone_mode=False)
    except AutograderError as error:
        _fail(str(error))
    except typer.Abort:
        raise KeyboardInterrupt from None
    except Exception as error:
        if hasattr(error, "format_message"):
            _fail(error.format_message())
        print(_make_showable(traceback.format_exc()), file=sys.stderr)
        print(
            "autograder: this is a fault of the autograder; no mark was given by it. Please report it.", file=sys.stderr
        )
        raise SystemExit(_OUR_FAULT) from None
    if status == _INTERRUPTED:
        raise KeyboardInterrupt
    raise SystemExit(status if isinstance(status, int) else 0)


def _fail(text: str) -> NoReturn:
    print(f"autograder: {_make_showable(text)}", file=sys.stderr)
    raise SystemExit(2)


def _make_showable(text: str) -> str:
    from autograder.intake.files import make_lines_showable

    return make_lines_showable(text)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"autograder {metadata.version(DISTRIBUTION)}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    pass
