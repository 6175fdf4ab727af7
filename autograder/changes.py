"""What a grade has that another has not. Pure."""

from autograder.records import Grade


def list_changes(before: Grade, after: Grade) -> list[tuple[str, str, str]]:
    """What is another than before: what, from, to; also of how many points. Nothing where only words differ."""
    if before.status != "graded" or after.status != "graded":
        pair = before.status, after.status
        return [] if pair[0] == pair[1] else [("status", *pair)]
    old = {exercise.id: (exercise.score, exercise.max_score) for exercise in before.exercises}
    new = {exercise.id: (exercise.score, exercise.max_score) for exercise in after.exercises}
    return [
        (name, _show_points(old.get(name), new.get(name)), _show_points(new.get(name), old.get(name)))
        for name in dict.fromkeys((*old, *new))
        if old.get(name) != new.get(name)
    ]


def _show_points(own: tuple[float, float] | None, other: tuple[float, float] | None) -> str:
    """Points, and of how many where that differs."""
    if own is None:
        return "-"
    points, most = own
    return f"{points:g}" if other is not None and other[1] == most else f"{points:g} of {most:g}"
