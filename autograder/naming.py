"""A student keeps the name under which the store knows a submission, whoever else is in the batch. Pure.

Intake tells two students of one name apart by a suffix, so a name depends on who hands in beside. Points by hand,
extensions and the roster go by the name, and a newcomer must not take them away from anybody.
"""

from collections.abc import Iterable, Sequence

import msgspec

from autograder.intake.files import Source
from autograder.store.records import StoredSubmission


def adopt_names(sources: Sequence[Source], stored: Iterable[StoredSubmission]) -> list[Source]:
    """The sources, with the stored name for each that has the LMS's id or the path of a stored submission.

    A name that another source of the batch has, or would get, is not taken.
    """
    by_id: dict[str, str] = {}
    by_path: dict[str, str] = {}
    for each in stored:
        by_path[each.path] = each.student
        if each.lms_id:
            by_id[each.lms_id] = each.student
    wanted = [by_id.get(source.id) or (by_path.get(source.shown) if not source.id else None) for source in sources]
    taken = {source.student for source, name in zip(sources, wanted, strict=True) if name in (None, source.student)}
    adopted = []
    holder: dict[str, tuple[str, str]] = {}
    for source, name in zip(sources, wanted, strict=True):
        key = source.id, source.id or source.shown
        # Several attempts of one student share the name.
        if name and name != source.student and name not in taken and holder.setdefault(name, key) == key:
            adopted.append(msgspec.structs.replace(source, student=name))
        else:
            adopted.append(source)
    return adopted


def find_orphans(sources: Iterable[Source], students: Iterable[str]) -> list[str]:
    """Of some students those of whom no source has the name, while others are told apart by it."""
    names = {source.student for source in sources}
    return [student for student in students if student not in names and any(_is_told(name, student) for name in names)]


def _is_told(name: str, student: str) -> bool:
    return name.startswith(f"{student} (")
