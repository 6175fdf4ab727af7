"""IPython for the cells that need it: magics, `!`, `display`, `get_ipython`.

One shell is made in the fork server and lent to each pass; cells themselves are run by plain `exec`.
"""

import builtins
import os
import re
import subprocess
import sys
from types import ModuleType
from typing import Any, NoReturn, cast

from IPython.core.displaypub import DisplayPublisher
from IPython.core.history import HistoryManager
from IPython.core.inputtransformer2 import TransformerManager
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from .outputs import Capture

_SHOWN = ("image/png", "image/svg+xml", "text/html", "text/plain")
_INSTALLERS = ("pip", "conda", "mamba", "micromamba", "uv")
_INSTALLER = rf"(?:pip[\d.]+|{'|'.join(_INSTALLERS)})"
_INSTALL_COMMAND = re.compile(rf"\s*(?:\S*python[\d.]*\s+-m\s+)?(?:\S*/)?{_INSTALLER}(?:\s|$)")
# Jupyter takes `pip install x` without a sign in front for a magic.
_BARE_INSTALL = re.compile(rf"^([ \t]*){_INSTALLER}(?=[ \t]+(?:un)?install\b)", re.MULTILINE)
_NO_PACKAGES = "Packages cannot be installed while grading: this command was not run."
# Never a wait: `breakpoint()` goes on, and a pip that is started some other way looks for no network.
_ENVIRONMENT = {"PYTHONBREAKPOINT": "0", "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


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
        if _INSTALL_COMMAND.match(command):
            self.user_ns["_exit_code"] = 1
            _refuse_packages()
            return
        done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
        sys.stdout.write(done.stdout)
        sys.stderr.write(done.stderr)
        self.user_ns["_exit_code"] = done.returncode

    def getoutput(self, cmd: str, split: bool = True, depth: int = 0) -> Any:
        """`name = !cmd`."""
        if _INSTALL_COMMAND.match(cmd):
            _refuse_packages()
            cmd = ":"
        return cast(Any, super()).getoutput(cmd, split=split, depth=depth + 1)


def _refuse_packages(_: str = "") -> None:
    # Not an exception: what a student installs is most often there already.
    sys.stderr.write(_NO_PACKAGES + "\n")


def _refuse_input(*_: object) -> NoReturn:
    raise EOFError("input() has nobody to ask here; assign the value instead")


_transformer = TransformerManager()


def start_shell() -> None:
    """Make the shell; called once, by the fork server."""
    cast(Any, HistoryManager).enabled = False
    shell = _Shell.instance(display_pub_class=_Publisher)
    shell.colors = "nocolor"
    for name in _INSTALLERS:
        cast(Any, shell).register_magic_function(_refuse_packages, "line", name)
    vars(builtins).update(
        get_ipython=_Shell.instance, display=display, exit=sys.exit, quit=sys.exit, input=_refuse_input
    )
    os.environ.update(_ENVIRONMENT)


def lend_shell(module: ModuleType, capture: Capture | None) -> None:
    """Let the shell work on this pass's names."""
    shell = _Shell.instance()
    _Publisher.capture = capture
    shell.user_module = module
    shell.user_ns = module.__dict__
    # Where `%cd` remembers the way back. Not asked of `os`, which an earlier pass may have patched.
    shell.user_ns["_dh"] = ["."]


def transform_source(source: str) -> str:
    """IPython's syntax as plain Python."""
    return _transformer.transform_cell(_BARE_INSTALL.sub(r"\1%pip", source))
