"""The command, also as `python -m autograder`: starts the command line, and ends it on Ctrl-C at whatever moment."""

import os
import signal
import sys
import threading
from typing import NoReturn, cast

_INTERRUPTED = 130
"""As shells have it."""
_AGAIN_SECONDS = 0.05


def main() -> NoReturn:
    """Entry point."""
    sys.unraisablehook = _repeat_interrupt
    is_usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_usual:
        # An import that an exception ends may make another of it, and there is nothing yet to be put in order.
        signal.signal(signal.SIGINT, _leave)
    from autograder import cli

    try:
        if is_usual:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        cli.main()
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        # Where it came while a text was executed, as SQLAlchemy does when it is imported, Python remembers that and
        # ends itself by SIGINT, whatever the exit status is. It forgets it with the next text.
        exec("")
        raise SystemExit(_INTERRUPTED) from None


def _leave(*_: object) -> NoReturn:
    os.write(2, b"stopped\n")
    os._exit(_INTERRUPTED)


def _repeat_interrupt(ignored: "sys.UnraisableHookArgs") -> None:
    """Ctrl-C may come while Python cleans up after an import or an object, where it lets no exception through."""
    if issubclass(ignored.exc_type, KeyboardInterrupt):
        main_thread = cast(int, threading.main_thread().ident)
        threading.Timer(_AGAIN_SECONDS, signal.pthread_kill, (main_thread, signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(ignored)


if __name__ == "__main__":
    main()
