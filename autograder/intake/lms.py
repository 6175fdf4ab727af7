"""How learning management systems name what they let an instructor download. Pure functions over names.

A student chooses the end of a name only: the patterns are bound to its beginning, the outermost part of a path that
fits decides, and names beside each other are read as one LMS's, so that no file can pass for another student's.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from operator import itemgetter

import msgspec

from autograder.clock import parse_moment
from autograder.intake.files import MAX_DEPTH, make_showable


class Handed(msgspec.Struct, frozen=True):
    """What the name of a downloaded file says."""

    lms: str
    id: str
    """Tells two students of one name apart."""
    student: str
    inside: tuple[str, ...]
    """The folders and the name that the student gave the file."""
    depth: int
    """How many folders lie above the part that was recognised."""
    attempt: tuple[str, ...] = ()
    """Files of one attempt share it."""
    order: tuple[int, ...] = ()
    """Later attempts have a larger one; empty where the name does not tell."""
    when: str = ""
    late: bool | None = None
    """None where this LMS's names never tell."""
    moment: datetime | None = None
    """When it was handed in; without a zone where the LMS leaves that out."""


# Canvas has ids of five letters and digits where names are hidden from graders.
_CANVAS = re.compile(
    r"(?P<name>[^\s/]+?)(?P<late>_LATE)?_(?P<id>\d+|(?<=\Aanon_)\w{5}|(?<=\Aanon_LATE_)\w{5})_(?P<number>\d+)_(?P<file>.+)",
    re.DOTALL,
)
_CANVAS_AGAIN = re.compile(r"(?P<stem>[^.]+?)-(?P<number>\d{1,4})(?P<rest>\..*)", re.DOTALL)
_MOODLE = re.compile(r"(?P<name>.+?)_(?P<id>\d+)_assignsubmission_[a-z]+(?:_(?P<file>.*))?", re.DOTALL)
_BRIGHTSPACE = re.compile(
    r"(?P<id>\d+-\d+) - (?P<name>.+?) ?- (?P<when>[^-]*\d{4}[^-]*?)(?: - (?P<file>.+))?", re.DOTALL
)
_BLACKBOARD = re.compile(r"(?P<head>.+?)_attempt_(?P<when>\d{4}(?:-\d{2}){5})(?:_(?P<file>.+)|\.txt)", re.DOTALL)
_GRADESCOPE = re.compile(r"submission_(?P<id>\d+)")
_DATE = re.compile(
    r"(?:(?P<month>[a-z]{3})[a-z]*\.? (?P<day>\d{1,2})|(?P<day2>\d{1,2}) (?P<month2>[a-z]{3})[a-z]*\.?)"
    r",? (?P<year>\d{4}),? (?P<hour>\d{1,2}):?(?P<minute>\d{2})\s?(?P<half>[ap]m)?",
    re.IGNORECASE,
)
_TELLING = re.compile(r"^(?:submission_\d+:|  :?\w+:| {2,4}(?:- )? *:?(?:name|sid|email):).*$", re.MULTILINE)
"""Lines of Gradescope's list that may matter; by far the most hold outputs of whatever graded there."""
_MAX_NAME_CHARS = 300
"""No file system keeps longer ones; the patterns take long over them."""
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()


class Submitter(msgspec.Struct, frozen=True):
    """Whom Gradescope names for a submission; several people who handed in together are one."""

    name: str
    id: str
    moment: datetime | None = None


def recognise_files(
    files: Sequence[tuple[tuple[str, ...], str]], submitters: Mapping[tuple[str, ...], Submitter]
) -> list[Handed | None]:
    """What paths (folders and name) say; None for each that fits no LMS's way to name.

    The outermost folder that fits decides. Where none does, all files beside each other are read as one LMS's: the end
    of a name can be made to look like any other's, so the one that fits most of them is meant, and of several the one
    that leaves most of the names to the students. `submitters` holds those of `submission_<id>` folders by their path.
    """
    found: list[Handed | None] = []
    beside: dict[tuple[str, ...], list[int]] = {}
    for place, (folders, name) in enumerate(files):
        handed = _read_folders(folders, name, submitters)
        found.append(handed)
        if handed is None and len(name) <= _MAX_NAME_CHARS:
            beside.setdefault(folders, []).append(place)
    for folders, places in beside.items():
        readings = [
            {place: said for place in places if (said := read(files[place][1], folders)) is not None}
            for read in _READERS
        ]
        best = max(readings, key=_weigh_reading)
        # One among many that have names of their own is such a name, too.
        if 2 * len(best) >= len(places):
            for place, handed in best.items():
                found[place] = handed
    return found


def is_in_submission(folders: tuple[str, ...]) -> bool:
    """Whether one of these folders is what an LMS made for a student's files."""
    return _read_folders(folders, "", {}) is not None


def _weigh_reading(reading: Mapping[int, Handed]) -> tuple[int, bool, int]:
    """How well one LMS's way to name fits files that lie beside each other."""
    # Canvas gives each file a number of its own; where all have one, it is part of what another LMS calls them.
    doubtful = (
        len(reading) > 1 and len({handed.order[:1] for handed in reading.values() if handed.lms == "Canvas"}) == 1
    )
    return len(reading), not doubtful, sum(len(handed.inside[-1]) for handed in reading.values())


def _read_folders(
    folders: tuple[str, ...], name: str, submitters: Mapping[tuple[str, ...], Submitter]
) -> Handed | None:
    for depth, folder in enumerate(folders[:MAX_DEPTH]):
        above, inside = folders[:depth], (*folders[depth + 1 :], name)
        if len(folder) <= _MAX_NAME_CHARS and (handed := _read_folder_name(folder, above, inside, submitters)):
            return handed
    return None


def _read_folder_name(
    folder: str, above: tuple[str, ...], inside: tuple[str, ...], submitters: Mapping[tuple[str, ...], Submitter]
) -> Handed | None:
    depth = len(above)
    if (match := _MOODLE.fullmatch(folder)) and not match["file"]:
        return Handed("Moodle", match["id"], _name_participant(match), inside, depth, above)
    if (match := _BRIGHTSPACE.fullmatch(folder)) and not match["file"]:
        return _read_brightspace(match, inside, depth)
    if match := _GRADESCOPE.fullmatch(folder):
        submitter = submitters.get((*above, folder), Submitter(folder, folder))
        order = (int(match["id"]),)
        attempt, moment = (*above, folder), submitter.moment
        return Handed("Gradescope", submitter.id, submitter.name, inside, depth, attempt, order, moment=moment)
    return None


def _read_moodle_name(name: str, above: tuple[str, ...]) -> Handed | None:
    if (match := _MOODLE.fullmatch(name)) and match["file"]:
        return Handed("Moodle", match["id"], _name_participant(match), (match["file"],), len(above), above)
    return None


def _read_blackboard_name(name: str, above: tuple[str, ...]) -> Handed | None:
    if match := _BLACKBOARD.fullmatch(name):
        when, head = match["when"], match["head"]
        order = tuple(map(int, when.split("-")))
        inside = (match["file"] or "details.txt",)
        return Handed("Blackboard", head, head, inside, len(above), (when,), order, when, moment=_build_moment(order))
    return None


def _read_brightspace_name(name: str, above: tuple[str, ...]) -> Handed | None:
    if (match := _BRIGHTSPACE.fullmatch(name)) and match["file"]:
        return _read_brightspace(match, (match["file"],), len(above))
    return None


def _read_canvas_name(name: str, above: tuple[str, ...]) -> Handed | None:
    if match := _CANVAS.fullmatch(name):
        file, again = _strip_canvas_number(match["file"])
        hidden = match["name"] == "anon"
        student = f"anon_{match['id']}" if hidden else match["name"]
        order = (int(match["number"]), again)
        attempt = (match["number"], str(again))
        late = match["late"] is not None
        return Handed("Canvas", match["id"], student, (file,), len(above), attempt, order, late=late)
    return None


_READERS = (_read_moodle_name, _read_blackboard_name, _read_brightspace_name, _read_canvas_name)


def _name_participant(match: re.Match[str]) -> str:
    # Every anonymous student has this name.
    return f"Participant {match['id']}" if match["name"] == "Participant" else match["name"]


def _read_brightspace(match: re.Match[str], inside: tuple[str, ...], depth: int) -> Handed:
    when = match["when"].strip()
    order = _read_date(when)
    moment = _build_moment(order)
    return Handed("Brightspace", match["id"], match["name"], inside, depth, (when,), order, when, moment=moment)


def _build_moment(order: tuple[int, ...]) -> datetime | None:
    """A name's date without a zone; None when there is no such day."""
    try:
        return datetime(*order) if order else None  # type: ignore[arg-type]
    except ValueError:
        return None


def _read_date(text: str) -> tuple[int, ...]:
    """Year, month, day, hour and minute; empty when it is not written in English."""
    match = _DATE.search(text)
    month = (match["month"] or match["month2"]).lower() if match else ""
    if match is None or month not in _MONTHS:
        return ()
    hour, half = int(match["hour"]), (match["half"] or "").lower()
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    day = int(match["day"] or match["day2"])
    return int(match["year"]), _MONTHS.index(month) + 1, day, hour, int(match["minute"])


def _strip_canvas_number(file: str) -> tuple[str, int]:
    """The name that the student gave a file, and the number that Canvas added when it was handed in again."""
    match = _CANVAS_AGAIN.fullmatch(file)
    return (match["stem"] + match["rest"], int(match["number"])) if match else (file, 0)


def name_blackboard_users(heads: Iterable[str]) -> dict[str, str]:
    """User names by `<assignment>_<user>`: what follows the beginning that all have in common.

    Both parts may hold underscores. What is cut off is the same for all, so two users never become one.
    """
    distinct = sorted(set(heads))
    common = os.path.commonprefix(distinct)  # noqa: RUF071 - these are no paths
    # A user's name may be the beginning of another's; neither is cut within itself.
    cut = common.rfind("_") + 1
    return {head: head[cut:] or head for head in distinct}


def parse_gradescope_list(text: str) -> dict[str, Submitter]:
    """Submitters by folder, of a `submission_metadata.yml`. What does not look like Gradescope's own is passed over.

    Only four plain keys are wanted of a file that is always written by the same program; that is no need for a
    parser of all of YAML.
    """
    people: dict[str, list[dict[str, str]]] = {}
    moments: dict[str, datetime | None] = {}
    folder, listing, column = "", False, 0
    for line in map(itemgetter(0), _TELLING.finditer(text)):
        if match := re.fullmatch(r"(submission_\d+):\s*", line):
            folder, listing = match[1], False
            people[folder] = []
        elif match := re.fullmatch(r"  :?(\w+):(.*)", line):
            listing = match[1] == "submitters"
            if match[1] == "created_at":
                moments[folder] = parse_moment(_unquote(match[2].strip()), UTC)
        elif folder and listing and (match := re.fullmatch(r"( {2,4}(?:- )? *):?(name|sid|email):\s*(.*?)\s*", line)):
            if "-" in match[1]:
                people[folder].append({})
                column = len(match[1])
            # A long name goes on in further lines, deeper, and may look like a key there.
            if people[folder] and len(match[1]) == column:
                people[folder][-1][match[2]] = _unquote(match[3])
    return {folder: _join_people(folder, group, moments.get(folder)) for folder, group in people.items() if group}


def _join_people(folder: str, group: list[dict[str, str]], moment: datetime | None) -> Submitter:
    names = [each.get("name") or each.get("email") or each.get("sid") or folder for each in group]
    ids = [each.get("sid") or each.get("email") or each.get("name") or folder for each in group]
    return Submitter(make_showable(" & ".join(names)), make_showable(" & ".join(ids)), moment)


def _unquote(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return re.sub(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", _unescape, text[1:-1])
    return "" if text in ("null", "~") else text


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code[1:], 16)) if len(code) > 1 else code
