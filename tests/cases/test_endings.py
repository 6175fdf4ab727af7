"""However a cell ends, it costs its own exercise at most, and never an answer that is there."""

import pytest

# Code that ends a cell, and the status of its exercise. What ends the process takes the cell with it.
GENTLE = {
    "an exception": ("raise ValueError('no')", "error"),
    "a failed assertion": ("assert False", "error"),
    "an exception whose text no encoding can hold": (r"raise ValueError('\ud83d')", "error"),
    "an exception that cannot be shown": (
        "class Odd(Exception):\n    def __str__(self): raise RuntimeError\nraise Odd",
        "error",
    ),
    "a recursion without end": ("def f(): return f()\nf()", "error"),
    "an interrupt": ("raise KeyboardInterrupt", "error"),
    "a generator's exit": ("raise GeneratorExit", "error"),
    "sys.exit": ("import sys\nsys.exit(0)", "exited"),
    "sys.exit with a text": ("import sys\nsys.exit('bye')", "exited"),
    "exit": ("exit()", "exited"),
    "quit": ("quit()", "exited"),
    "a subclass of SystemExit": ("class Bye(SystemExit): pass\nraise Bye", "exited"),
    "a MemoryError": ("raise MemoryError", "out-of-memory"),
    "an array that is too large": ("np.ones(2**34)", "out-of-memory"),
}
FATAL = {
    "os._exit with 0": ("import os\nos._exit(0)", "exited"),
    "os._exit with 3": ("import os\nos._exit(3)", "exited"),
    "os.abort": ("import os\nos.abort()", "killed"),
    # Where it is the init of a namespace it does not hear the signal.
    "a kill of its own process": ("import os\nos.kill(os.getpid(), 9)\nos.abort()", "killed"),
    "a segmentation fault": ("import ctypes\nctypes.string_at(0)", "killed"),
    "a list that grows without end": ("hoard = []\nwhile True: hoard.append(bytearray(2**24))", "out-of-memory"),
    "an endless loop": ("while True: pass", "timeout"),
    "an endless loop that catches everything": (
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        "timeout",
    ),
    "a sleep": ("import time\ntime.sleep(1000)", "timeout"),
}


def list_cases(endings):
    return [pytest.param(code, status, id=name) for name, (code, status) in endings.items()]


@pytest.mark.parametrize(("code", "status"), list_cases(GENTLE | FATAL))
def test_an_ending_before_any_answer_costs_its_exercise_only(quick_bench, code, status) -> None:
    grade = quick_bench.grade_codes({"head-size": code})
    quick_bench.assert_only(grade, "head-size")
    assert quick_bench.scores(grade)["head-size"] == 0
    assert quick_bench.status(grade, "head-size") == status
    assert {quick_bench.status(grade, name) for name in ("shared-key", "shared-value")} == {"ok"}


@pytest.mark.parametrize(("code", "status"), list_cases(GENTLE))
def test_answers_given_before_a_gentle_ending_count(quick_bench, code, status) -> None:
    answer = quick_bench.read_source("head-size")
    grade = quick_bench.grade(quick_bench.build(replace={"head-size": f"{answer}\n{code}"}))
    quick_bench.assert_full(grade)
    assert quick_bench.status(grade, "head-size") == status


@pytest.mark.parametrize("name", ["os._exit with 0", "a segmentation fault", "an endless loop"])
def test_answers_of_an_earlier_cell_survive_a_death_in_a_later_one(quick_bench, name) -> None:
    code, status = FATAL[name]
    grade = quick_bench.grade(quick_bench.build(after={"head-size": [f"# EXERCISE 2: a second try\n{code}"]}))
    quick_bench.assert_full(grade)
    assert quick_bench.status(grade, "head-size") == status


@pytest.mark.parametrize("exercise", ["shared-key", "shared-value"])
@pytest.mark.parametrize("name", ["os._exit with 0", "an endless loop"])
def test_a_death_in_the_first_or_last_exercise_costs_it_alone(quick_bench, exercise, name) -> None:
    code, status = FATAL[name]
    grade = quick_bench.grade_codes({exercise: code})
    quick_bench.assert_only(grade, exercise)
    assert quick_bench.status(grade, exercise) == status


def test_deaths_in_all_three_exercises_are_told_apart(quick_bench) -> None:
    codes = [FATAL[name][0] for name in ("os._exit with 0", "os.abort", "an endless loop")]
    grade = quick_bench.grade_codes(dict(zip(quick_bench.full, codes, strict=True)))
    assert [each.status.value for each in grade.exercises] == ["exited", "killed", "timeout"]
    assert grade.score == 0


def test_a_death_on_a_hidden_input_set_only_takes_the_cell_from_all(quick_bench) -> None:
    code = "if text != 'the lamp':\n    import os\n    os._exit(0)\n" + quick_bench.read_source("head-size")
    grade = quick_bench.grade_codes({"head-size": code})
    quick_bench.assert_only(grade, "head-size")
    assert quick_bench.scores(grade)["head-size"] == 0
    assert quick_bench.status(grade, "head-size") == "exited"


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("prelude-input", "os._exit with 0"),
        ("prelude-projections", "an endless loop"),
        ("shared-key-check", "a segmentation fault"),
        ("head-size-start", "os._exit with 3"),
        ("shared-value-check", "an endless loop"),
    ],
)
def test_a_death_in_a_cell_outside_the_exercises_costs_nothing(quick_bench, place, name) -> None:
    code, _ = FATAL[name]
    grade = quick_bench.grade(quick_bench.build(after={place: [code]}))
    quick_bench.assert_full(grade)
    assert {each.status.value for each in grade.exercises} == {"ok"}


def test_a_check_cell_that_fails_does_not_change_the_status(bench) -> None:
    grade = bench.grade(bench.build(replace={"head-size-check": "assert False"}))
    bench.assert_full(grade)
    assert bench.status(grade, "head-size") == "ok"


@pytest.mark.parametrize(
    "code",
    [
        "Wq6 = (",
        "if True:\nWq6 = 1",
        "print 'hello'",
        "Wq6 = 'open",
        "\tWq6 = 1\n  Wk6 = 2",
        "return 5",
        "Wq6 = 1\0",
        "for i in range(3)\n    pass",
        "x = " + "(" * 300 + ")" * 300,
    ],
)
def test_a_syntax_error_costs_its_exercise_only(bench, code) -> None:
    grade = bench.grade_codes({"head-size": code})
    bench.assert_only(grade, "head-size")
    assert bench.scores(grade)["head-size"] == 0
    assert bench.status(grade, "head-size") == "error"


@pytest.mark.parametrize("exercise", ["shared-key", "head-size", "shared-value"])
def test_a_deleted_exercise_is_not_attempted_and_costs_itself_only(bench, exercise) -> None:
    grade = bench.grade(bench.build(drop=[exercise, f"{exercise}-start", f"{exercise}-check"]))
    bench.assert_only(grade, exercise)
    assert bench.status(grade, exercise) == "not-attempted"
    marks = [mark for each in grade.exercises if each.id == exercise for mark in each.tests]
    assert {(mark.outcome, mark.score, mark.message) for mark in marks} == {
        ("not-run", 0.0, "This exercise was not attempted.")
    }


def test_a_stub_left_as_it_is_is_not_attempted(bench) -> None:
    stub = bench.course.released_notebook("qkv").read_bytes()
    grade = bench.grade(stub)
    assert (grade.score, grade.pending, grade.max_score) == (0, 2, 15)
    assert {each.status.value for each in grade.exercises} == {"not-attempted"}


def test_a_thread_that_goes_on_does_not_hold_up_the_grade(quick_bench) -> None:
    code = "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,)).start()\n"
    grade = quick_bench.grade_codes({"head-size": code + quick_bench.read_source("head-size")})
    quick_bench.assert_full(grade)


def test_many_threads_at_once_are_not_out_of_memory(quick_bench) -> None:
    code = "import time\nfrom concurrent.futures import ThreadPoolExecutor\n"
    code += (
        "with ThreadPoolExecutor(16) as pool:\n    list(pool.map(lambda _: bytes(9) and time.sleep(0.02), range(16)))\n"
    )
    quick_bench.assert_full(quick_bench.grade_codes({"head-size": code + quick_bench.read_source("head-size")}))


@pytest.mark.parametrize("then", ["", "\nif child == 0:\n    raise ValueError('in the child')"])
def test_a_forked_process_that_is_forgotten_does_not_run_the_rest(quick_bench, then) -> None:
    code = f"import os\nchild = os.fork(){then}\n"
    grade = quick_bench.grade_codes({"shared-key": code + quick_bench.read_source("shared-key")})
    quick_bench.assert_full(grade)
    assert not [note for note in grade.notes if "shared-" in note], grade.notes


def test_a_patched_exit_of_the_interpreter_changes_nothing(quick_bench) -> None:
    code = "import os, sys, builtins\nos.write = os.read = os._exit = sys.exit = builtins.eval = None\n"
    grade = quick_bench.grade_codes({"shared-key": code + quick_bench.read_source("shared-key")})
    quick_bench.assert_only(grade, "shared-key")


def test_an_endless_loop_is_not_paid_for_by_the_grade_of_the_next_submission(quick_bench) -> None:
    quick_bench.grade_codes({"head-size": "while True: pass"})
    quick_bench.assert_full(quick_bench.grade(quick_bench.source))


def test_time_that_is_used_up_is_told_as_that_and_not_as_typed_in_numbers(quick_bench) -> None:
    slow = "import time\nend = time.process_time() + 0.35\nwhile time.process_time() < end: pass"
    grade = quick_bench.grade(quick_bench.build(after={"shared-value-check": [slow] * 9}))
    assert {each.status.value for each in grade.exercises} <= {"ok", "timeout"}
    for mark in quick_bench.lost(grade).values():
        assert "typed-in" not in " ".join(mark.explanations)
        assert "typed" not in mark.message
