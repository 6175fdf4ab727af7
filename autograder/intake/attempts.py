"""Which of the files of a folder or an archive are submissions, whose, and in which attempt.

Every file is accounted for once: as the file that stands for an attempt, or skipped with a reason.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, tzinfo

import msgspec

from autograder.clock import parse_moment, settle_moment
from autograder.intake.files import MAX_DEPTH, File, Source, build_tags, make_showable, tell_apart
from autograder.intake.lms import Handed, Submitter, name_blackboard_users, recognise_files
from autograder.records import Skipped


class Attempts(msgspec.Struct, frozen=True):
    """Everything that one student handed in, first to last; each can be read and graded on its own."""

    sources: tuple[Source, ...]
    relative: str
    """Where it lies below what was named; tells students of one name apart where no LMS does."""


class Told(msgspec.Struct, frozen=True):
    """What files beside the submissions say of them, and the zone of the times that name none."""

    submitters: Mapping[tuple[str, ...], Submitter] = {}
    """Gradescope's, by the path of the submission's folder."""
    timestamps: Mapping[tuple[str, ...], str] = {}
    """The text of each `timestamp.txt`, by the path of its folder."""
    zone: tzinfo | None = None
    """Without it, a time that names no zone is not known."""


class _Item(msgspec.Struct, frozen=True):
    """A file of a student, with the folders and the name that the student gave it."""

    file: File
    inside: tuple[str, ...]

    @property
    def stem(self) -> str:
        name = self.inside[-1] if self.inside else ""
        return name[: -len(".ipynb")] if name.lower().endswith(".ipynb") else name


def sort_out(
    root_name: str, files: Sequence[File], assignment: str, others: Collection[str], told: Told
) -> tuple[list[Attempts], list[Skipped]]:
    """Decide for the files below one place. `others` are the course's other assignments."""
    skipped: list[Skipped] = []
    found: list[Attempts] = []
    files = tell_apart(files)
    real = [file for file in files if not file.junk or file.name == "timestamp.txt"]
    handed = dict(
        zip(real, recognise_files([(each.folders, each.name) for each in real], told.submitters), strict=True)
    )
    trees = _find_trees([file for file in real if handed[file] is None], assignment, others)
    students: dict[tuple[str, str], list[tuple[File, Handed]]] = {}
    homes: dict[tuple[str, ...], list[_Item]] = {}
    for file in files:
        if file.junk:
            skipped.append(Skipped(file.shown, file.skip))
            continue
        home = trees.find_home(file.folders)
        by_lms = handed[file]
        if by_lms is not None and (home is None or by_lms.depth <= len(home) - 2):
            students.setdefault((by_lms.lms, by_lms.id), []).append((file, by_lms))
        elif home is None:
            reason = file.skip or _belongs_elsewhere(file, others)
            if reason:
                skipped.append(Skipped(file.shown, reason))
            else:
                source = _build_source(file, _name_student(root_name, file, assignment) + file.tag)
                found.append(Attempts((source,), file.relative))
        elif home[-1] == assignment:
            homes.setdefault(home, []).append(_Item(file, _look_inside(file, len(home))))
        else:
            skipped.append(Skipped(file.shown, file.skip or f"belongs to the assignment {make_showable(home[-1])}"))
    tags = build_tags("/".join(home[:-1]) for home in homes)
    for home, items in homes.items():
        chosen, rest = _choose_file(items, assignment, others)
        skipped += rest
        student = make_showable(home[-2]) + tags.get("/".join(home[:-1]), "")
        source = _add_timestamp(_build_source(chosen, student), told.timestamps.get(home))
        found.append(Attempts((source,), chosen.relative))
    users = name_blackboard_users(key[1] for key in students if key[0] == "Blackboard")
    for group in students.values():
        attempts, rest = _sort_student(group, assignment, others, users, told.zone)
        skipped += rest
        found.append(attempts)
    return (
        sorted(found, key=lambda each: (each.sources[0].path.parts, each.sources[0].member.split("/"))),
        sorted(skipped, key=lambda item: item.path),
    )


def _build_source(file: File, student: str) -> Source:
    return Source(student, file.path, file.shown, file.fault, file.member)


def _add_timestamp(source: Source, text: str | None) -> Source:
    """The source with the time that nbgrader wrote beside it. nbgrader takes a time without a zone for UTC."""
    if text is None:
        return source
    received = parse_moment(text, UTC)
    if received is None:
        note = "The time in timestamp.txt could not be read; when it was handed in is not known."
        return msgspec.structs.replace(source, notes=(*source.notes, note))
    return msgspec.structs.replace(source, received=received)


def _look_inside(file: File, depth: int) -> tuple[str, ...]:
    """What lies below the student's own folder. A folder that cannot be listed is at most that folder."""
    return file.folders[depth:] if file.is_folder else (*file.folders[depth:], file.name)


def _belongs_elsewhere(file: File, others: Collection[str]) -> str:
    stem = file.name.rpartition(".")[0]
    return f"belongs to the assignment {make_showable(stem)}" if stem in others and not file.is_folder else ""


class _Trees(msgspec.Struct, frozen=True):
    """Where `<student>/<assignment>/` folders lie."""

    bases: frozenset[tuple[str, ...]]
    """Folders above the students', where one of them has the assignment."""
    stamped: frozenset[tuple[tuple[str, ...], str]]
    """Folders above a student's, and an assignment of his with the file that nbgrader writes there and nowhere else."""

    def find_home(self, folders: tuple[str, ...]) -> tuple[str, ...] | None:
        """The `.../<student>/<assignment>` folders that a file of a tree lies in; None outside of every tree."""
        depth = next(
            (depth for depth in range(min(len(folders), MAX_DEPTH) - 2, -1, -1) if folders[:depth] in self.bases), None
        )
        if depth is not None:
            return folders[: depth + 2]
        return next((home for home in _list_homes(folders) if _name_home(home) in self.stamped), None)


def _list_homes(folders: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """What may be `.../<student>/<assignment>`, the outermost first."""
    return (folders[:end] for end in range(2, min(len(folders), MAX_DEPTH) + 1))


def _name_home(home: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    return home[:-2], home[-1]


def _find_trees(files: Sequence[File], assignment: str, others: Collection[str]) -> _Trees:
    """The trees that files show which no LMS has named.

    What a student hands in may hold folders that look like a tree; nothing within a student's folder is one.
    """
    stamped = frozenset(
        _name_home(each.folders) for each in files if each.name == "timestamp.txt" and len(each.folders) >= 2
    )
    known = {assignment, *others}
    bases: set[tuple[str, ...]] = set()
    for base in sorted({found for file in files if (found := _find_base(file, assignment)) is not None}, key=len):
        within = (
            _name_home(home) in stamped or (home[:-2] in bases and home[-1] in known) for home in _list_homes(base)
        )
        if not any(within):
            bases.add(base)
    return _Trees(frozenset(bases), stamped)


def _find_base(file: File, assignment: str) -> tuple[str, ...] | None:
    """The folders above `<student>/<assignment>/` when this file shows that an nbgrader tree lies there."""
    if file.skip and file.name != "timestamp.txt":
        return None
    for at in range(min(len(file.folders), MAX_DEPTH) - 1, 0, -1):
        # A folder packed into itself gives <student>/<assignment>/<assignment>/; the outer one is meant.
        if file.folders[at] == assignment and (at == 1 or file.folders[at - 1] != assignment):
            return file.folders[: at - 1]
    return None


def _name_student(root_name: str, file: File, assignment: str) -> str:
    """The student's name outside of an nbgrader tree and of an LMS's download."""
    stem = file.name.rpartition(".")[0] or file.name
    if file.is_folder:
        return make_showable(file.name)
    if stem == assignment and file.folders:
        above = [root_name, *file.folders]
        return make_showable(next((name for name in reversed(above) if name not in ("", assignment)), assignment))
    return make_showable(stem)


def _choose_file(items: Sequence[_Item], assignment: str, others: Collection[str]) -> tuple[File, list[Skipped]]:
    """The file that stands for one attempt, with its fault where it cannot count, and the others, skipped."""
    notebooks = [item for item in items if not item.file.skip]
    mine = [item for item in notebooks if item.stem not in others]
    # What a student put into a folder of its own counts only where nothing else is there.
    near = [item for item in mine if len(item.inside) <= 1] or mine
    named = [item for item in near if item.stem == assignment]
    if len(named) == 1 or len(near) == 1:
        chosen, fault = (named if len(named) == 1 else near)[0].file, ""
        reason = f"beside {make_showable(chosen.name)}, which counts for this student"
    elif near:
        which = f"{len(named)} are" if named else "none is"
        fault = f"There are {len(near)} notebooks and {which} named {assignment}.ipynb; rename the one that counts."
        chosen = near[0].file
        reason = f"one of several notebooks, and {which} named {assignment}.ipynb"
    elif notebooks:
        name = make_showable(notebooks[0].file.name)
        fault = f"The only notebook is {name}, which is named after another assignment; rename it if it is meant here."
        chosen = notebooks[0].file
        reason = "named after another assignment"
    else:
        chosen, reason = items[0].file, ""
        fault = f"No notebook was handed in, but {make_showable(chosen.name)} ({chosen.skip})"
        fault += f" and {len(items) - 1} more." if len(items) > 1 else "."
    rest = []
    for item in items:
        if item.file is not chosen:
            own = f"belongs to the assignment {make_showable(item.stem)}" if item.stem in others else reason
            rest.append(Skipped(item.file.shown, item.file.skip or own))
    return msgspec.structs.replace(chosen, fault=fault or chosen.fault), rest


def _sort_student(
    group: Sequence[tuple[File, Handed]],
    assignment: str,
    others: Collection[str],
    users: Mapping[str, str],
    zone: tzinfo | None,
) -> tuple[Attempts, list[Skipped]]:
    """One student's files of an LMS's download, by attempt."""
    first = group[0][1]
    student = make_showable(users.get(first.id, first.student) if first.lms == "Blackboard" else first.student)
    number = make_showable(student if first.lms == "Blackboard" else first.id)
    attempts, skipped = _split_attempts(group, assignment, others)
    chosen: list[tuple[File, Handed]] = []
    empty: list[tuple[File, Handed]] = []
    for attempt in attempts:
        file, rest = _choose_file([_Item(file, handed.inside) for file, handed in attempt], assignment, others)
        skipped += rest
        (empty if file.skip else chosen).append((file, attempt[0][1]))
    # An attempt without any notebook stands for the student only where there is no other.
    standing, aside = (chosen, empty) if chosen else (empty[-1:], empty[:-1])
    skipped += [Skipped(file.shown, file.skip) for file, _ in aside]
    notes = ["An attempt without a notebook was passed over."] if aside and chosen else []
    if len(standing) > 1 and not all(handed.order for _, handed in standing):
        reason = "one of several attempts, and their names do not tell which is the last"
        fault = f"There are {len(standing)} attempts, and their names do not tell which is the last; keep one of them."
        skipped += [Skipped(file.shown, reason) for file, _ in standing[1:]]
        standing = [(msgspec.structs.replace(standing[0][0], fault=fault), standing[0][1])]
    sources = []
    for place, (file, handed) in enumerate(standing, 1):
        own = list(notes)
        if len(standing) > 1:
            when = f", handed in {make_showable(handed.when)}" if handed.when else ""
            own.insert(0, f"Attempt {place} of {len(standing)} counts{when}.")
        if handed.late:
            own.append(f"{handed.lms} marks it as handed in late.")
        known = Source(student, file.path, file.shown, file.fault, file.member, number, place, handed.late)
        received = settle_moment(handed.moment, zone) if handed.moment else None
        sources.append(msgspec.structs.replace(known, received=received, notes=tuple(own), lms=handed.lms))
    return Attempts(tuple(sources), standing[0][0].relative), skipped


def _split_attempts(
    group: Sequence[tuple[File, Handed]], assignment: str, others: Collection[str]
) -> tuple[list[list[tuple[File, Handed]]], list[Skipped]]:
    """A student's files by attempt, first to last."""
    apart: dict[tuple[str, ...], list[tuple[File, Handed]]] = {}
    if group[0][1].lms != "Canvas":
        for file, handed in group:
            apart.setdefault(handed.attempt, []).append((file, handed))
        return sorted(apart.values(), key=lambda attempt: attempt[0][1].order), []
    # Canvas numbers files, not attempts: files of one name are versions of each other, others were handed in together.
    stems = {file: _Item(file, handed.inside).stem for file, handed in group}
    mine = [pair for pair in group if not pair[0].skip and stems[pair[0]] not in others]
    versions = [pair for pair in mine if stems[pair[0]] == assignment] or mine
    if len({stems[file] for file, _ in versions}) != 1:
        return [list(group)], []
    kept = {file for file, _ in versions}
    counts = make_showable(f"{stems[versions[0][0]]}.ipynb")
    rest = [
        Skipped(file.shown, file.skip or f"beside {counts}, which counts for this student")
        for file, _ in group
        if file not in kept
    ]
    return [[pair] for pair in sorted(versions, key=lambda pair: pair[1].order)], rest
