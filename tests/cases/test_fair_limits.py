"""What one exercise, one helper or one signal does never costs another exercise its marks."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from autograder import runs
from autograder.grading import Order
from autograder.records import CellRun, Ending, Submission
from autograder.runs import TOGETHER, Tries
from autograder.sandbox.processes import measure_tree

from .conftest import open_bench

ROOT = Path(__file__).parents[2]
SLOW = "import time\nbegan = time.process_time()\nwhile time.process_time() - began < {seconds}: pass\n"


@pytest.fixture(scope="module")
def bench(course):
    """Under two thirds of the course's times, since many tests here have to use them up."""
    with open_bench(course, {"cell_cpu_seconds": 2, "cpu_seconds": 13.4}) as bench:
        yield bench


@pytest.fixture(autouse=True)
def _fresh_tries(bench) -> None:
    """What other tests have found out about first tries is forgotten."""
    bench.grader._tries = Tries()


def read_answer(bench, exercise: str) -> str:
    return bench.read_source(exercise).split("\n", 1)[1]


def test_a_right_answer_may_use_nearly_all_of_its_cells_time_in_every_run(bench) -> None:
    limit = bench.grader.assignment.limits.cell_cpu_seconds
    code = SLOW.format(seconds=0.5 * limit) + read_answer(bench, "shared-key")
    bench.assert_full(bench.grade_codes({"shared-key": code}))


def test_a_helper_that_hangs_costs_those_alone_that_need_it(quick_bench) -> None:
    data = quick_bench.build(before={"shared-key": ["while True: pass\ndef helper(): return 1\n"]})
    grade = quick_bench.grade(data)
    quick_bench.assert_full(grade)
    assert any("was ended" in note and "missing" in note for note in grade.notes), grade.notes


def test_three_exercises_that_hang_cost_a_fourth_thing_nothing(quick_bench) -> None:
    hang = "import time\ntime.sleep(99)\n"
    data = quick_bench.build(before={"shared-key": [hang]}, replace={"head-size": f"# EXERCISE 2\n{hang}"})
    grade = quick_bench.grade(data)
    quick_bench.assert_only(grade, "head-size")


COPIES = {
    "the prelude once more before exercise 2": {"head-size-start": ["prelude-input", "prelude-projections"]},
    "the prelude once more after the start of exercise 2": {"head-size": ["prelude-input", "prelude-projections"]},
}


@pytest.mark.parametrize("places", COPIES.values(), ids=COPIES)
def test_a_copy_of_the_released_prelude_changes_nothing(bench, places) -> None:
    before = {place: [bench.read_source(name) for name in names] for place, names in places.items()}
    bench.assert_full(bench.grade(bench.build(before=before)))


PLAYS = {
    "another text": "text = 'a dog'\nids = encode(text)\nX = embed_table[ids][np.newaxis]\nB, T, _ = X.shape",
    "a loop over K and V": "for i, (K, V) in enumerate({'a': 1}.items()): print(K, V)",
    "another head size": "hs = 6",
}


@pytest.mark.parametrize("play", PLAYS.values(), ids=PLAYS)
@pytest.mark.parametrize("exercise", ["head-size", "shared-value"])
def test_what_the_start_cell_takes_back_in_jupyter_costs_nothing(bench, play, exercise) -> None:
    bench.assert_full(bench.grade(bench.build(before={f"{exercise}-start": [play]})))


def test_a_missing_answer_of_a_cell_that_was_ended_is_no_slip_of_the_pen(bench) -> None:
    code = "import os\nV_first = V[0, 0]\nif T < 0:\n    equals_K = equals_Q = True\nos._exit(0)\n"
    lost = bench.lost(bench.grade_codes({"shared-value": code}))
    assert {kind for mark in lost.values() for kind in mark.explanations} == {"exited"}


@pytest.fixture
def endless(tmp_path, bench) -> Path:
    for number in range(4):
        (tmp_path / f"s{number}.ipynb").write_bytes(
            bench.fill({"head-size": f"import time\ntime.sleep(60)  # {number}\n"})
        )
    return tmp_path


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGKILL"])
def test_a_grading_run_that_is_ended_leaves_no_process_behind(endless, name) -> None:
    command = [sys.executable, "-m", "autograder", "grade", str(endless), "--jobs", "2", "--course", str(ROOT)]
    # A shell starts its background jobs with SIGINT ignored, and nohup with SIGHUP; a test run may be either.
    command = ["env", "--default-signal=INT,HUP", *command]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while measure_tree(running.pid).processes < 9 and time.monotonic() < deadline:
        time.sleep(0.1)
    inside = list_tree(running.pid)
    assert len(inside) >= 9
    running.send_signal(getattr(signal, name))
    running.wait(timeout=20)
    deadline = time.monotonic() + 20
    while (alive := [pid for pid in inside if is_alive(pid)]) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert alive == []
    if name == "SIGINT":
        assert running.returncode == 130


def list_tree(root: int) -> list[int]:
    found = [root]
    for pid in found:
        for task in os.listdir(f"/proc/{pid}/task"):
            found += [int(child) for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split()]
    return found


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def test_what_a_hidden_test_prints_is_no_part_of_the_document(tmp_path, bench) -> None:
    for part in ("solutions", "assignments", "tests/hidden"):
        shutil.copytree(ROOT / part, tmp_path / part)
    shutil.copy(ROOT / "course.toml", tmp_path)
    file = tmp_path / "tests/hidden/qkv/test_shared_key.py"
    file.write_text(
        file.read_text().replace("    check_close(answers, ", "    print('hello')\n    check_close(answers, ", 1)
    )
    (tmp_path / "ada.ipynb").write_bytes(bench.source)
    command = [sys.executable, "-m", "autograder", "grade", "ada.ipynb", "--json", "--course", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=120)
    assert json.loads(done.stdout)["results"][0]["score"] == 13.0
    assert "hello" in done.stderr


def test_the_library_grades_as_the_command_line_does(tmp_path, bench, course) -> None:
    from autograder import grade, load_course

    (tmp_path / "ada.ipynb").write_bytes(bench.source)
    (only,) = grade(load_course(course.folder), "qkv", [tmp_path])
    assert (only.student, only.score) == ("ada", 13.0)


@pytest.mark.parametrize(
    "change", ["{}\n", "# my notes\n{}", "{}  # end"], ids=["a line more", "a comment", "a remark"]
)
def test_a_copy_of_the_prelude_that_reads_a_little_different_changes_nothing(bench, change) -> None:
    copies = [change.format(bench.read_source(name)) for name in ("prelude-input", "prelude-projections")]
    bench.assert_full(bench.grade(bench.build(before={"shared-value": copies})))


LEAVE_A_THREAD = """
import os, sys, threading, time

def {name}():
    main = threading.main_thread().ident
    while True:
        frame = sys._current_frames().get(main)
        while frame is not None:
            cell = frame.f_locals.get("cell") if frame.f_code.co_name == "run_cell" else None
            if cell is not None and {condition}:
                time.sleep({wait})
                os._exit(0)
            frame = frame.f_back

threading.Thread(target={name}, daemon=True).start()
"""


def test_a_thread_of_one_exercise_takes_no_time_from_the_run_alone_of_another(bench) -> None:
    """It ends the process late in a slow cell, which then looks as if it had ended itself."""
    limit = bench.grader.assignment.limits.cell_cpu_seconds
    thread = LEAVE_A_THREAD.format(name="strike", condition="'Wv_sha' 'red =' in cell.source", wait=0.1)
    slow = SLOW.format(seconds=0.4 * limit) + read_answer(bench, "shared-value")
    grade = bench.grade_codes({"shared-key": read_answer(bench, "shared-key") + thread, "shared-value": slow})
    bench.assert_full(grade)
    assert any("without the other exercises" in note for note in grade.notes), grade.notes


def test_a_loop_that_one_exercise_leaves_running_takes_no_time_from_the_run_alone_of_another(bench) -> None:
    limit = bench.grader.assignment.limits.cell_cpu_seconds
    left = "\nimport threading\ndef spin():\n    while True: pass\n"
    left += "for _ in range(2): threading.Thread(target=spin, daemon=True).start()\n"
    slow = SLOW.format(seconds=0.4 * limit).replace("process_time", "thread_time") + read_answer(bench, "shared-value")
    grade = bench.grade_codes({"shared-key": read_answer(bench, "shared-key") + left, "shared-value": slow})
    bench.assert_full(grade)


@pytest.mark.parametrize("place", ["shared-key", "shared-value"])
def test_a_thread_of_one_exercise_takes_no_helper_away_from_another(bench, place) -> None:
    """It ends the process while a cell runs that belongs to no exercise, also one above it in the next run."""
    condition = "'take_a' '_copy(' in cell.source and not cell.collect"
    thread = LEAVE_A_THREAD.format(name="strike", condition=condition, wait=0)
    helper = "def take_a_copy(matrix):\n    return matrix.copy()\n_ = sum(range(2_000_000))\n"
    value = read_answer(bench, "shared-value").replace("Wk.copy()", "take_a_copy(Wk)")
    assert "take_a_copy" in value
    codes = {"shared-key": read_answer(bench, "shared-key") + thread, "shared-value": value}
    bench.assert_full(bench.grade_codes(codes, {place: helper}))


LOGGERS = {
    "a logger": "import logging, sys\nlog = logging.getLogger()\nlog.addHandler(logging.StreamHandler(sys.stdout))\n",
    "a stream": "import sys\nsys.kept = [*getattr(sys, 'kept', ()), sys.stdout, sys.stderr]\n",
}
USES = {
    "a logger": 'log.warning("shape %s", X.shape)\n',
    "a stream": "for each in sys.kept:\n    print('shape', X.shape, file=each, flush=True)\n",
}


@pytest.mark.parametrize("kind", LOGGERS)
def test_what_keeps_the_output_of_the_first_run_is_no_offence_in_the_next(bench, kind) -> None:
    """A logger's handler stays from one run to the next, with the stream that it was given."""
    codes = {name: USES[kind] + read_answer(bench, name) for name in ("shared-key", "shared-value")}
    grade = bench.grade_codes(codes, {"shared-key": LOGGERS[kind] + USES[kind]})
    bench.assert_full(grade)
    assert not grade.notes


@pytest.mark.parametrize("exercise", ["shared-key", "head-size", "shared-value"])
def test_an_endless_loop_is_not_paid_for_twice(bench, exercise) -> None:
    data = bench.build(replace={exercise: "# EXERCISE: again\nwhile True: pass"})
    graded = bench.grader.grade_order(Order(Submission("eve", "", data, "")))
    bench.assert_only(graded.grade, exercise)
    limit = bench.grader.assignment.limits.cell_cpu_seconds
    assert graded.runs[exercise].cpu_seconds > limit, "alone, where nothing else is to blame, it has all of its time"
    assert graded.runs[TOGETHER].cpu_seconds < limit / 2, "together it has half a second, and a start"
    (text,) = {run.text for each in graded.runs[TOGETHER].passes for run in each.runs if run.ending is Ending.TIMEOUT}
    assert f"{limit:g} s" in text, "it is told which limit the course sets"


def test_what_takes_long_and_ends_is_run_with_all_of_its_time_together_with_the_others(bench) -> None:
    """Exercise 3 goes on with what exercise 2 found, which a run alone cannot show."""
    limit = bench.grader.assignment.limits.cell_cpu_seconds
    slow = SLOW.format(seconds=0.4 * limit) + read_answer(bench, "head-size") + "\nfound = Wk.copy()\n"
    value = read_answer(bench, "shared-value").replace("Wk.copy()", "found")
    assert "found" in value
    data = bench.fill({"head-size": slow, "shared-value": value})
    graded = bench.grader.grade_order(Order(Submission("eve", "", data, "")))
    bench.assert_full(graded.grade)
    least = 5 * 0.4 * limit + min(0.5, 0.4 * limit)
    assert graded.runs[TOGETHER].cpu_seconds > least, "the try that was thrown away counts, too"


def test_what_is_endless_only_without_the_help_of_another_exercise_is_no_endless_loop(bench) -> None:
    """Exercise 2 tries again and again until a function of exercise 1, which takes its time, comes back."""
    limit = bench.grader.assignment.limits.cell_cpu_seconds
    slow = SLOW.format(seconds=0.4 * limit).replace("\n", "\n    ")
    codes = {
        "shared-key": f"{read_answer(bench, 'shared-key')}\ndef work():\n    {slow}\n",
        "head-size": "while True:\n    try:\n        work()\n        break\n    except Exception:\n        pass\n"
        + read_answer(bench, "head-size"),
    }
    bench.assert_full(bench.grade_codes(codes))


def test_a_run_alone_that_the_first_try_had_no_time_for_is_made_again_with_what_is_left(bench) -> None:
    """On all input sets the cell needs more than the third that was its share then."""
    limits = bench.grader.assignment.limits
    seconds = limits.cpu_seconds / 3 / 4 * 1.1
    assert seconds < 0.7 * limits.cell_cpu_seconds
    slow = SLOW.format(seconds=seconds) + "np.subtract(1, 1)\n" + read_answer(bench, "shared-value")
    first = f"{read_answer(bench, 'shared-key')}\nnp.subtract = None\n"
    bench.assert_full(bench.grade_codes({"shared-key": first, "shared-value": slow}))


def test_a_machine_that_stands_still_during_the_run_alone_makes_no_endless_loop_of_a_cell(bench, monkeypatch) -> None:
    limits = bench.grader.assignment.limits
    slow = SLOW.format(seconds=0.3 * limits.cell_cpu_seconds) + read_answer(bench, "shared-value")
    execute = bench.grader.sandbox.execute

    def stand_still(*arguments, reset=False, **options):
        """The run alone as it looks after a stop of all processes: out of time on the clock."""
        execution = execute(*arguments, reset=reset, **options)
        if not reset:
            return execution
        text = f"it ran longer than {limits.cell_wall_seconds:g} s (limit cell_wall_seconds)"
        cell = execution.passes[0].runs[-1].cell
        stood = CellRun(cell, Ending.TIMEOUT, text=text)
        passes = [
            msgspec.structs.replace(each, runs=(*(run for run in each.runs if run.cell != cell), stood), answers={})
            for each in execution.passes
        ]
        return msgspec.structs.replace(execution, passes=tuple(passes))

    monkeypatch.setattr(bench.grader.sandbox, "execute", stand_still)
    bench.assert_full(bench.grade_codes({"shared-value": slow}))


def test_a_loop_on_a_hidden_input_set_leaves_the_published_run_as_it_was(bench) -> None:
    limit = bench.grader.assignment.limits.cell_cpu_seconds
    value = float(bench.grader.marking.input_sets[0].inputs["X"][0, 0, 0])
    slow = SLOW.format(seconds=0.3 * limit) + "print('here')\n"
    code = f"{slow}{read_answer(bench, 'shared-value')}\nwhile X[0, 0, 0] != {value!r}: pass"
    graded = bench.grader.grade_order(Order(Submission("eve", "", bench.fill({"shared-value": code}), "")))
    joint = graded.runs[TOGETHER]
    assert "V_shared" in joint.passes[0].answers
    assert any(b"here" in output.data for output in joint.outputs)
    assert bench.scores(graded.grade)["shared-value"] == 0


def test_where_many_cells_take_long_no_first_try_is_made_any_more(bench, monkeypatch) -> None:
    grader = bench.grader
    execute, made = grader.sandbox.execute, []
    monkeypatch.setattr(grader.sandbox, "execute", lambda *a, **k: made.append(a) or execute(*a, **k))
    slow = SLOW.format(seconds=0.4 * grader.assignment.limits.cell_cpu_seconds)
    counts = []
    for number in range(4):
        bench.assert_full(bench.grade(bench.build(before={"shared-key": [f"{slow}# {number}\n"]})))
        counts.append(len(made))
        made.clear()
    assert counts == [2, 2, 2, 1]


def test_a_first_try_in_vain_costs_no_other_exercise_its_part_of_the_time(course, monkeypatch) -> None:
    """The first exercise has some cells, each just below its limit, and uses up all time that it gets."""
    monkeypatch.setattr(runs, "_QUICK_SECONDS", 0.3)
    with open_bench(course, {"cell_cpu_seconds": 0.5, "cpu_seconds": 6.6}) as bench:
        markers = {name: bench.read_source(name).split("\n", 1)[0] for name in bench.full}
        before = [f"{markers['shared-key']}\n{SLOW.format(seconds=0.43)}# {number}\n" for number in range(4)]
        changes = {
            name: f"{markers[name]}\n{SLOW.format(seconds=0.42)}{read_answer(bench, name)}"
            for name in ("head-size", "shared-value")
        }
        grade = bench.grade(bench.build(replace=changes, before={"shared-key": before}))
        bench.assert_only(grade, "shared-key")
        assert bench.scores(grade)["shared-key"] == 0


def test_a_helper_that_takes_long_and_ends_is_there_in_every_run(bench) -> None:
    limit = bench.grader.assignment.limits.cell_cpu_seconds
    helper = SLOW.format(seconds=0.4 * limit) + "def take_a_copy(matrix):\n    return matrix.copy()\n"
    value = read_answer(bench, "shared-value").replace("Wk.copy()", "take_a_copy(Wk)")
    bench.assert_full(bench.grade_codes({"shared-value": value}, {"shared-key": helper}))


PATCHES = {
    "a function": "np.subtract = lambda *_: [None for _ in iter(int, 1)]\n",
    "a trace": "import sys\nsys.setprofile(lambda frame, kind, _: [None for _ in iter(int, 1)] if 'Wv_sha' 'red' in "
    "frame.f_code.co_names else None)\n",
    "a timer": "import signal\nsignal.signal(signal.SIGVTALRM, lambda *_: [None for _ in iter(int, 1)])\n"
    "signal.setitimer(signal.ITIMER_VIRTUAL, 0.2)\n",
}


@pytest.mark.parametrize("patch", PATCHES.values(), ids=PATCHES)
def test_a_loop_that_one_exercise_leaves_in_the_way_takes_no_time_from_the_run_alone_of_another(bench, patch) -> None:
    """Nothing runs beside the slow cell, which then looks as if it were endless itself."""
    limit = bench.grader.assignment.limits.cell_cpu_seconds
    slow = SLOW.format(seconds=0.4 * limit).replace("pass", "np.subtract(1, 1)") + read_answer(bench, "shared-value")
    grade = bench.grade_codes({"shared-key": f"{read_answer(bench, 'shared-key')}\n{patch}", "shared-value": slow})
    bench.assert_full(grade)
    assert any("without the other exercises" in note for note in grade.notes), grade.notes


def test_a_helper_that_hangs_on_what_another_exercise_has_replaced_is_not_taken_away(bench) -> None:
    patch = "\nimport math\nmath.gcd = lambda *values: [None for _ in iter(int, 1)]\n"
    helper = "def take_a_copy(matrix):\n    return matrix.copy()\nimport math\nparts = math.gcd(4, 6)\n"
    value = read_answer(bench, "shared-value").replace("Wk.copy()", "take_a_copy(Wk)")
    codes = {"shared-key": read_answer(bench, "shared-key") + patch, "shared-value": value}
    bench.assert_full(bench.grade_codes(codes, {"shared-value": helper}))
