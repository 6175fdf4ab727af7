"""What cells call that cannot work while grading: installers, `input()`, Google Colab.

Told from the text alone, line by line: a note is a help for the instructor and decides no mark.
"""

import re
from collections.abc import Sequence

_SHOWN_CELLS = 5

_INSTALLER = r"(?:pip[\d.]*|conda|mamba|micromamba|uv)[ \t]+(?:install|uninstall)\b"
# Each begins at the start of a line and reads it once, so that no text takes long.
_INSTALL = re.compile(
    r"^[ \t]*(?:\w+[ \t]*=[ \t]*)?(?:"
    # `!pip install`, `%pip install`, `out = !python -m pip install`, and without a sign, as Jupyter takes it
    rf"(?:[!%]{{1,2}}[ \t]*)?(?:\S+[ \t]+-m[ \t]+|uv[ \t]+)?{_INSTALLER}"
    # os.system("pip install x"), subprocess.run([sys.executable, "-m", "pip", "install", "x"])
    r"|(?:\w+\.)?(?:system|run|call|check_call|check_output|Popen)\([^#\n]*\bpip\d?[\"', \t]+install\b)",
    re.MULTILINE,
)
_INPUT = re.compile(r"^[^#'\"\n]*(?<![\w.])(?<!def )input[ \t]*\(", re.MULTILINE)
_COLAB = re.compile(r"^[ \t]*(?:from|import)[ \t]+google\.colab\b", re.MULTILINE)

_CALLS = (
    # a word without which the pattern cannot match, the pattern, what to say
    ("install", _INSTALL, "{} to install packages, which is not possible while grading."),
    ("input", _INPUT, "{} to read what somebody types with input(); nobody does while grading."),
    ("google.colab", _COLAB, "{} to use google.colab, which exists on Google Colab only."),
)


def note_calls(sources: Sequence[tuple[int, str]]) -> list[str]:
    """Notes on calls that cannot work. `sources` are code cells: position in the notebook from 0, and text."""
    notes = []
    for word, pattern, text in _CALLS:
        cells = dict.fromkeys(index + 1 for index, source in sources if word in source and pattern.search(source))
        if cells:
            notes.append(text.format(_name_cells(list(cells))))
    return notes


def _name_cells(cells: list[int]) -> str:
    """The subject of a note. Cells are counted from 1, over cells of every type."""
    if len(cells) == 1:
        return f"Cell {cells[0]} tries"
    more = len(cells) - _SHOWN_CELLS
    shown = [str(cell) for cell in cells[:_SHOWN_CELLS]]
    if more > 0:
        shown.append(f"{more} more")
    return f"Cells {', '.join(shown[:-1])} and {shown[-1]} try"
