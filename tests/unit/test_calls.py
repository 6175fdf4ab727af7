"""What a cell calls that cannot work while grading is told from its text, quickly and without false alarms."""

import time

import pytest

from autograder.intake.calls import note_calls

INSTALL, INPUT, COLAB = "to install packages", "input()", "google.colab"


@pytest.mark.parametrize(
    ("source", "word"),
    [
        ("!pip install torch", INSTALL),
        ("x = 1\n  !pip3 install -q torch", INSTALL),
        ("%pip install torch", INSTALL),
        ("pip install torch", INSTALL),
        ("%conda install torch", INSTALL),
        ("!uv pip install torch", INSTALL),
        ("!{sys.executable} -m pip install torch", INSTALL),
        ("!python3.11 -m pip install torch", INSTALL),
        ("!/usr/bin/python -m pip install --upgrade pip", INSTALL),
        ("log = !pip install torch", INSTALL),
        ("os.system('pip install torch')", INSTALL),
        ("subprocess.check_call([sys.executable, '-m', 'pip', 'install', 'torch'])", INSTALL),
        ("# !pip install torch", ""),
        ("# os.system('pip install torch')", ""),
        ("print('please pip install torch')", ""),
        ("pip = 1\ninstall = pip", ""),
        ("!pip list", ""),
        ("name = input()", INPUT),
        ("n = int(input ('How many? '))", INPUT),
        ("x = 1\nwhile input('go on? ') == 'y': pass", INPUT),
        ("# input() is not used", ""),
        ("print('input(')", ""),
        ("def input(x): ...", ""),
        ("model.input(x)", ""),
        ("read_input(x)\ninputs(x)", ""),
        ("from google.colab import drive", COLAB),
        ("    import google.colab as colab", COLAB),
        ("# from google.colab import drive", ""),
        ("'google.colab' in sys.modules", ""),
    ],
)
def test_a_call_is_noted_where_it_is_one(source: str, word: str) -> None:
    notes = note_calls([(2, source)])
    assert len(notes) == bool(word)
    assert all(note.startswith("Cell 3 tries ") and word in note for note in notes)


def test_many_cells_are_named_in_one_short_note() -> None:
    (note,) = note_calls([(number, "input()") for number in range(1_000)])
    assert note.startswith("Cells 1, 2, 3, 4, 5 and 995 more try to read")


def test_two_parts_of_one_cell_are_one_cell() -> None:
    (note,) = note_calls([(4, "input()"), (4, "input()"), (6, "input()")])
    assert note.startswith("Cells 5 and 7 try")


SIZE = 400_000


@pytest.mark.parametrize(
    "source",
    [
        "input install google.colab" + " " * SIZE,
        " " * SIZE + "install",
        "install " + "input " * (SIZE // 6),
        "install\n" + "run(" * (SIZE // 4),
        "install\n" + "run(" * (SIZE // 8) + "pip " * (SIZE // 8),
        "install\n" + "a" * SIZE,
        "install\n" + "a=" * (SIZE // 2),
        "install\n!" + "python" * (SIZE // 6),
        "install\n!" + "python 1" * (SIZE // 8),
        "install\nx = " + "!%" * (SIZE // 2),
        "install\n" + "pip" + "1" * SIZE,
        "install\n" + "!pip" + " " * SIZE,
        "\n" * SIZE + "install input google.colab",
        "import " * (SIZE // 7) + "google.colab",
    ],
    ids=lambda source: repr(source[:24]),
)
def test_hostile_text_is_read_quickly(source: str) -> None:
    begin = time.process_time()
    note_calls([(0, source)])
    assert time.process_time() - begin < 0.5
