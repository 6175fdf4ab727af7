"""IPython for the cells that need it: magics, `!`, `display`, `get_ipython`.

One shell is made in the fork server and lent to each pass; cells themselves are run by plain `exec`.
"""

import builtins
import subprocess
import sys
from types import ModuleType
from typing import Any, cast

from IPython.core.displaypub import DisplayPublisher
from IPython.core.history import HistoryManager
from IPython.core.inputtransformer2 import TransformerManager
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from .outputs import Capture

_SHOWN = ("image/png", "image/svg+xml", "text/html", "text/plain")


class _Publisher(DisplayPublisher):
    capture: Capture | None = None

    def publish(self, data: Any, metadata: Any = None, source: Any = None, **_: Any) -> None:
        if _Publisher.capture is None:
            return
        for mime in _SHOWN:
            if mime in data:
                content = data[mime]
                _Publisher.capture.add(mime, content if isinstance(content, bytes) else str(content).encode())
                return


class _Shell(InteractiveShell):
    def enable_matplotlib(self, gui: str | None = None) -> tuple[str | None, str]:
        """Figures are taken at the end of each cell whatever the backend, so there is nothing to switch."""
        return gui, "agg"

    def enable_gui(self, gui: str | None = None) -> None:
        """There is no event loop to join."""

    def system(self, cmd: str) -> None:
        """`!cmd` without the pseudo-terminal that IPython would use: there is none inside the wall."""
        command: str = cast(Any, self).var_expand(cmd, depth=1)
        done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
        sys.stdout.write(done.stdout)
        sys.stderr.write(done.stderr)
        self.user_ns["_exit_code"] = done.returncode


_transformer = TransformerManager()


def start_shell() -> None:
    """Make the shell; called once, by the fork server."""
    cast(Any, HistoryManager).enabled = False
    shell = _Shell.instance(display_pub_class=_Publisher)
    shell.colors = "nocolor"
    vars(builtins).update(get_ipython=_Shell.instance, display=display, exit=sys.exit, quit=sys.exit)


def lend_shell(module: ModuleType, capture: Capture | None) -> None:
    """Let the shell work on this pass's names."""
    shell = _Shell.instance()
    _Publisher.capture = capture
    shell.user_module = module
    shell.user_ns = module.__dict__


def transform_source(source: str) -> str:
    """IPython's syntax as plain Python."""
    return _transformer.transform_cell(source)
