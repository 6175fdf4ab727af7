"""A student keeps the name under which the store knows a submission, whoever else is in the batch. Pure.

Intake tells two students of one name apart by a suffix, so a name depends on who hands in beside. Points by hand,
extensions and the roster go by the name, and a newcomer must not take them away from anybody.
"""

from collections.abc import Iterable, Sequence
from itertools import chain, count

import msgspec

from autograder.intake.files import Source
from autograder.store.records import StoredSubmission


def adopt_names(sources: Sequence[Source], stored: Iterable[StoredSubmission]) -> list[Source]:
    """The sources, with the stored name for each that has the LMS's id or the path of a stored submission.

    A name that another source of the batch has, or would get, is not taken. Who has another id than the one whom the
    store knows by a name is somebody else and gets the id added, also where that one is not in the batch.
    """
    by_id: dict[tuple[str, str], str] = {}
    by_path: dict[str, str] = {}
    rows = list(stored)
    known = {(each.student, each.lms_id) for each in rows if each.lms}
    for each in rows:
        by_path[each.path] = each.student
        # Older versions have not stored of which LMS an id is; of some students it is known by now.
        if each.lms_id and (each.lms or (each.student, each.lms_id) not in known):
            by_id[each.lms or "", each.lms_id] = each.student
    owners = {student: id_there for id_there, student in by_id.items()}
    used = {*by_path.values(), *(source.student for source in sources)}

    def find_name(source: Source) -> str | None:
        if not source.id:
            return by_path.get(source.shown)
        ids = [(source.lms, source.id), ("", source.id)]
        name = next((by_id[each] for each in ids if each in by_id), None)
        if name is not None or owners.get(source.student, ids[0]) in ids:
            return name
        own = f"{source.student} ({source.id})"
        return next(each for each in chain([own], (f"{own} #{number}" for number in count(2))) if each not in used)

    wanted = [find_name(source) for source in sources]
    # Several attempts of one student share the name.
    keys = [(source.lms, source.id) if source.id else ("a file", source.shown) for source in sources]
    names = [source.student if name is None else name for source, name in zip(sources, wanted, strict=True)]
    while True:
        holders: dict[str, set[tuple[str, str]]] = {}
        for name, key in zip(names, keys, strict=True):
            holders.setdefault(name, set()).add(key)
        # Who cannot have the stored name keeps the own one, and whoever wanted that cannot have it either.
        kept = [source.student if len(holders[name]) > 1 else name for source, name in zip(sources, names, strict=True)]
        if kept == names:
            break
        names = kept
    return [msgspec.structs.replace(source, student=name) for source, name in zip(sources, names, strict=True)]


def find_orphans(sources: Iterable[Source], students: Iterable[str]) -> list[str]:
    """Of some students those of whom no source has the name, while others are told apart by it."""
    names = {source.student for source in sources}
    return [student for student in students if student not in names and any(_is_told(name, student) for name in names)]


def _is_told(name: str, student: str) -> bool:
    return name.startswith((f"{student} (", f"{student} ["))
