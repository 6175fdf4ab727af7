"""Source notebook -> student notebook: nbgrader's `generate_assignment` as a pure function.

The preprocessors and their order are those of nbgrader 0.9.6, without the two that reach outside the
notebook: `SaveCells` writes into a gradebook, `InstantiateTests` starts a kernel (and a source that
asks for it is refused). So the result is what `nbgrader generate_assignment` makes of the same source.
"""

import hashlib
import json
import logging
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograder.errors import ReleaseError

PREPROCESSORS = (
    "IncludeHeaderFooter",
    "LockCells",
    "ClearSolutions",
    "ClearOutput",
    "CheckCellMetadata",
    "ComputeChecksums",
    "ClearHiddenTests",
    "ClearMarkScheme",
    "ComputeChecksums",
    "CheckCellMetadata",
)
CODE_STUB = "# Write your code here"
"""What stands in the place of a solution when `nbgrader_config.py` does not say: a comment, so that it runs."""


def read_config(folder: Path) -> dict[str, Any]:
    """The options in a course's `nbgrader_config.py`, by class; empty when there is no such file.

    The file is the teacher's own and is executed, as nbgrader does. Raises `ReleaseError` when it fails.
    """
    from traitlets.config.loader import PyFileConfigLoader

    file = folder / "nbgrader_config.py"
    if not file.is_file():
        return {}
    try:
        config: dict[str, Any] = PyFileConfigLoader(file.name, path=str(folder)).load_config()
    except Exception as error:
        raise ReleaseError(f"{file}: cannot be run ({type(error).__name__}: {error})") from error
    for key in ("header", "footer"):
        value = config.get("IncludeHeaderFooter", {}).get(key)
        if isinstance(value, str) and value:
            config["IncludeHeaderFooter"][key] = str(folder / value)
    return config


def parse_source(source: bytes | NotebookNode) -> NotebookNode:
    """A fresh notebook in format 4 with an id on every cell. Raises `ReleaseError` when it is no notebook."""
    try:
        raw = json.loads(source) if isinstance(source, bytes) else json.loads(nbformat.writes(source))
        notebook: NotebookNode = nbformat.from_dict(_add_ids(raw))
        if notebook.nbformat != 4:
            raise ReleaseError(f"the source is in notebook format {notebook.nbformat}; save it in format 4")
        _join_lines(notebook)
        nbformat.validate(notebook)
    except (ValueError, KeyError, TypeError, AttributeError, nbformat.ValidationError) as error:
        raise ReleaseError(f"the source is not a valid notebook: {str(error).splitlines()[0]}") from error
    return notebook


def build_stub(source: bytes | NotebookNode, config: dict[str, Any] | None = None) -> bytes:
    """The student notebook's bytes; the same source and options give the same bytes.

    `config` holds nbgrader's options by class, as `read_config` returns them. Raises `ReleaseError` when
    the source is no notebook or nbgrader refuses it (malformed cell metadata, an unclosed region, ...).
    """
    from nbgrader import preprocessors
    from nbgrader.nbgraderformat import MetadataValidator
    from traitlets.config import Config

    notebook = parse_source(source)
    options = Config(config or {})
    if "python" not in options.ClearSolutions.get("code_stub", {}):
        options.ClearSolutions.code_stub = {**options.ClearSolutions.get("code_stub", {}), "python": CODE_STUB}
    resources: dict[str, Any] = {}
    with _Silence():
        try:
            notebook = MetadataValidator().upgrade_notebook_metadata(notebook)
            for name in PREPROCESSORS:
                step = getattr(preprocessors, name)(parent=None, config=options)
                if step.enabled:
                    notebook, resources = step.preprocess(notebook, resources)
        except Exception as error:
            # nbgrader raises bare RuntimeErrors and hides the reason of a ValidationError in its context.
            reason = error.__context__ if type(error).__name__ == "ValidationError" and error.__context__ else error
            raise ReleaseError(f"nbgrader refuses the source: {_first_line(reason)}") from error
    text: str = nbformat.writes(notebook)
    return (text + "\n").encode()


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    # A schema violation says which key is wrong further down, where its text shows the place and the value.
    where = ".".join(str(part) for part in getattr(error, "absolute_path", ()))
    instance = getattr(error, "instance", None)
    return text + (f" (nbgrader metadata, key {where})" if where else f" in {instance}" if instance else "")


def _add_ids(raw: dict[str, Any]) -> dict[str, Any]:
    """Give cells without an id one that depends on their place and text only, and set format 4.5."""
    taken: set[str] = set()
    for index, cell in enumerate(raw["cells"]):
        if not cell.get("id") or cell["id"] in taken:
            text = json.dumps([index, cell["cell_type"], cell["source"]])
            cell["id"] = hashlib.sha256(text.encode()).hexdigest()[:8]
        taken.add(cell["id"])
    raw["nbformat_minor"] = max(5, raw.get("nbformat_minor", 0))
    return raw


def _join_lines(notebook: NotebookNode) -> None:
    """Turn the lists of lines of the file format into the single strings that nbgrader works on."""
    for cell in notebook.cells:
        if isinstance(cell.source, list):
            cell.source = "".join(cell.source)
        for output in cell.get("outputs", []):
            if isinstance(output.get("text"), list):
                output["text"] = "".join(output["text"])


class _Silence:
    """Keeps nbgrader's log, which repeats as a traceback what the exception says, off the terminal."""

    def __enter__(self) -> None:
        self._before = logging.root.manager.disable
        logging.disable(logging.CRITICAL)

    def __exit__(self, *_: object) -> None:
        logging.disable(self._before)
