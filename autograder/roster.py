"""`students.csv` -> `Roster`: who belongs to the course, in which group, and until when each may hand in."""

import re
from collections.abc import Collection
from datetime import date, datetime, timedelta
from pathlib import Path

import msgspec

from autograder.clock import add_days, end_day, parse_moment
from autograder.course import Assignment, Course
from autograder.errors import CourseError, suggest_near
from autograder.people import Index, find_forms, fold_text
from autograder.sheets import Row, parse_sheet

_COLUMNS = {
    "id": ("student", "student id"),
    "name": ("full name", "student name"),
    "email": ("mail", "e-mail address"),
    "lms_id": ("lms", "canvas id", "sid"),
    "group": ("team",),
    "extension": (),
}
_DELAY = re.compile(r"\+? ?(\d{1,4}) ?(d|days?|h|hours?)", re.IGNORECASE | re.ASCII)


class Student(msgspec.Struct, frozen=True):
    """One line of the roster; empty where it says nothing."""

    id: str
    name: str = ""
    email: str = ""
    lms_id: str = ""
    """What the LMS's downloads show of the student beside the name."""
    group: str = ""
    deadlines: dict[str, datetime] = {}
    """The student's own, by assignment."""


class Match(msgspec.Struct, frozen=True):
    """Whom a submission belongs to; several where they handed in together, none and why where it is unclear."""

    students: tuple[Student, ...] = ()
    reason: str = ""
    fitting: tuple[str, ...] = ()
    """The ids of those among whom it is unclear."""


class Roster:
    """The students of a course, in the order of the file."""

    def __init__(self, students: Collection[Student] = ()) -> None:
        self.students = tuple(students)
        self._by_id = {student.id: student for student in self.students}
        self._ids = Index((fold_text(each.id), each.id) for each in self.students)
        self._lms_ids = Index((fold_text(each.lms_id), each.id) for each in self.students)
        self._emails = Index(
            (form, each.id) for each in self.students for form in _find_addresses(each.email)
        )  # fmt: skip
        self._names = Index((fold_text(each.name), each.id) for each in self.students)
        self._forms = Index((form, each.id) for each in self.students for form in find_forms(each.name))

    def find(self, student: str) -> Student | None:
        """The student with this id."""
        return self._by_id.get(student)

    def list_group(self, group: str) -> tuple[Student, ...]:
        """The members of a group; nobody where there is no such group."""
        return tuple(student for student in self.students if group and student.group == group)

    def match(self, label: str, lms_id: str = "") -> Match:
        """Whom a submission's student is: by id, LMS id, e-mail address or its local part, or unique name.

        label: the student as the intake names it. lms_id: what the LMS knows the student by (`Source.id`).
        The first of these that fits decides, but nobody is matched where they contradict each other or fit several.
        """
        match = self._match_one(label, lms_id)
        parts, ids = label.split(" & "), lms_id.split(" & ")
        if match.students or len(parts) == 1:
            return match
        if lms_id and len(ids) != len(parts):
            # One person, who is called so: a student's name may hold whatever the student likes.
            return match
        # Gradescope's names for people who handed in together.
        each = [self._match_one(part, ids[at] if lms_id else "") for at, part in enumerate(parts)]
        reasons = [one.reason for one in each if one.reason]
        if reasons:
            return Match((), reasons[0])
        return Match(tuple({one.students[0].id: one.students[0] for one in each}.values()))

    def _match_one(self, label: str, lms_id: str) -> Match:
        name, number = label, lms_id
        namesake = False
        if found := re.fullmatch(r"(.+?) \(([^()]+)\)", label):
            # The intake adds the LMS's id where several students have one name.
            name, number, namesake = found[1], lms_id or found[2], bool(lms_id) and found[2] == lms_id
        ids = self._ids.find(fold_text(label))
        hits = [
            numbered := self._lms_ids.find(fold_text(number)),
            self._emails.find(fold_text(name)) | (self._emails.find(fold_text(number)) if "@" in number else set()),
            self._names.find(fold_text(name)) or self._forms.find_any(find_forms(name)),
        ]
        # An id outweighs an address or a name that happens to be the same, but not the LMS's own number.
        hits = [ids, numbered] if ids else hits
        if namesake and not ids and not numbered and any(hits) and "@" not in number:
            # Which of those who have this name it is, and whether any of them, the name does not tell.
            fitting = sorted(set().union(*hits))
            reason = (
                f"several submissions have the name {name}; put {number} into the roster as the LMS id of whose it is"
            )
            return Match((), reason, tuple(fitting))
        chosen: set[str] = next((hit for hit in hits if hit), set())
        # Of several with one name or address, what comes after may tell which one it is.
        for hit in hits:
            chosen = chosen & hit if hit else chosen
        if len(chosen) == 1:
            student = self._by_id[chosen.pop()]
            known = student.lms_id
            # A student may choose the name that others see, but not the number.
            if not ids and not numbered and known.isdecimal() and lms_id.isdecimal():
                reason = f"{label} has the LMS id {lms_id}, and {student.id} of the same name has {known} in the roster"
                return Match((), reason, (student.id,))
            return Match((student,))
        fitting = sorted(set().union(*hits))
        if fitting:
            return Match((), f"{label} fits several students of the roster ({', '.join(fitting)})", tuple(fitting))
        return Match((), f"{label} is not in the roster")


def _find_addresses(email: str) -> set[str]:
    """An e-mail address, and what stands before its `@`."""
    folded = fold_text(email)
    return {folded, folded.partition("@")[0]} - {""}


def read_roster(course: Course) -> Roster | None:
    """The course's roster; None where there is none. `CourseError` lists all that is wrong, by line."""
    file = course.roster_file()
    if file is None:
        return None
    try:
        data = file.read_bytes()
    except OSError as error:
        raise CourseError(f"{file}: cannot be read ({error.strerror}); check its permissions") from error
    return parse_roster(data, course, file)


def parse_roster(data: bytes, course: Course, file: Path) -> Roster:
    """The roster that a file's bytes hold. `CourseError` lists all that is wrong, by line."""

    def find_column(header: str) -> str | None:
        first, colon, name = header.partition(":")
        if not colon or first.strip().casefold() != "extension":
            return None
        name = name.strip()
        if name not in course.assignments:
            near = suggest_near(name, course.assignments)
            raise ValueError(f"the column {header} names no assignment of the course{near}")
        return f"extension:{name}"

    sheet = parse_sheet(data, _COLUMNS, ["id"], find_column)
    problems = list(sheet.problems)
    students = []
    taken: dict[tuple[str, str], int] = {}
    for row in sheet.rows if "id" in sheet.columns else ():
        get = row.fields.get
        if not row.fields["id"]:
            problems.append(f"line {row.line}: the id is missing")
            continue
        for column in ("id", "lms_id", "email"):
            first = taken.setdefault((column, fold_text(get(column, ""))), row.line) if get(column) else row.line
            if first != row.line:
                problems.append(f"line {row.line}: the {column} {get(column)} stands in line {first} already")
        deadlines, wrong = _read_deadlines(row, course)
        problems += wrong
        known = (row.fields["id"], get("name", ""), get("email", ""), get("lms_id", ""), get("group", ""))
        students.append(Student(*known, deadlines))
    if problems:
        raise CourseError("\n".join(f"{file}: {problem}" for problem in problems))
    return Roster(students)


def _read_deadlines(row: Row, course: Course) -> tuple[dict[str, datetime], list[str]]:
    """A student's own deadlines by assignment, and what is wrong with them."""
    dated = [name for name, assignment in course.assignments.items() if assignment.due is not None]
    wanted = {}
    problems = []
    if general := row.fields.get("extension", ""):
        if len(dated) > 1 and not _DELAY.fullmatch(general):
            said = f"line {row.line}: the extension {general} does not say of which assignment"
            problems.append(f"{said}; put it into a column extension:{dated[0]}, or write a delay such as +3d")
        else:
            wanted = dict.fromkeys(dated, general)
    for name in course.assignments:
        if own := row.fields.get(f"extension:{name}", ""):
            wanted[name] = own
    deadlines = {}
    for name, text in wanted.items():
        try:
            deadlines[name] = _extend(text, course.assignments[name], course, name)
        except (ValueError, OverflowError) as error:
            problems.append(f"line {row.line}: {error}")
    return deadlines, problems


def _extend(text: str, assignment: Assignment, course: Course, name: str) -> datetime:
    """A student's deadline. `ValueError` says what is wrong with the text."""
    due, zone = assignment.due, course.zone(name)
    if due is None or zone is None:
        raise ValueError(f"{name} has no due date that the extension {text} could move")
    deadline: datetime | None
    if match := _DELAY.fullmatch(text):
        number, unit = int(match[1]), match[2][0].lower()
        deadline = add_days(due, number, zone) if unit == "d" else due + timedelta(hours=number)
    else:
        try:
            deadline = end_day(date.fromisoformat(text), zone) if len(text) == len("2027-01-18") else None
        except ValueError:
            deadline = None
        deadline = deadline or parse_moment(text, zone)
    if deadline is None:
        raise ValueError(
            f"the extension {text} is not understood; write a date (2027-01-18), a time (2027-01-18 12:00 or "
            "2027-01-18 12:00 +01:00) or a delay (+3d, +12h)"
        )
    if deadline < due:
        raise ValueError(f"the extension {text} ends before {name} is due ({due:%Y-%m-%d %H:%M %z})")
    return deadline
