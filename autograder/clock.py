"""Moments as people write them, and days as a wall clock counts them. Pure.

A moment is a `datetime` with a zone. Arithmetic over days is done on the zone's wall clock, so that a deadline at 23:59
stays at 23:59 when the clocks change in between; what is earlier or later is decided in UTC.
"""

import re
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

_DAY = timedelta(days=1)
_MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d(?::\d\d)?)(?:\.\d+)? ?"
    r"(?P<zone>Z|UTC|GMT|[+-]\d\d(?::?\d\d)?|[A-Za-z][\w+-]*(?:/[\w+-]+)*)?",
    re.ASCII,
)
_LAST_SECOND = time(23, 59, 59)


def find_zone(name: str) -> tzinfo | None:
    """The zone called `Europe/Berlin`, `CET`, `UTC`, `Z`, `+0100` or `-08:00`; None when there is none of that name."""
    if name in ("Z", "UTC", "GMT"):
        return UTC
    if match := re.fullmatch(r"([+-])(\d\d):?(\d\d)?", name, re.ASCII):
        distance = timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
        return timezone(-distance if match[1] == "-" else distance) if distance < _DAY else None
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        # Names of folders and of files that hold no zone come here too.
        return None


def parse_moment(text: str, zone: tzinfo | None) -> datetime | None:
    """`2027-01-18 12:00[:00[.0]] [+01:00 | UTC | Europe/Berlin]`, in UTC; read in `zone` where the text names none.

    None when the text is no moment, when its zone is not known, or when it has none and `zone` is None.
    """
    match = _MOMENT.fullmatch(text.strip())
    if match is None:
        return None
    if match["zone"]:
        zone = find_zone(match["zone"])
    try:
        return settle_moment(datetime.fromisoformat(f"{match[1]}T{match[2]}"), zone)
    except ValueError:
        return None


def settle_moment(moment: datetime, zone: tzinfo | None) -> datetime | None:
    """The moment in UTC; one without a zone is a wall clock's in `zone`, and is not known where `zone` is None.

    An hour that a wall clock shows twice is taken for the first of the two.
    """
    if moment.tzinfo is None:
        if zone is None:
            return None
        moment = moment.replace(tzinfo=zone)
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return None


def end_day(day: date, zone: tzinfo) -> datetime:
    """The last second of a day in a zone."""
    return datetime.combine(day, _LAST_SECOND, zone)


def add_days(moment: datetime, days: int, zone: tzinfo) -> datetime:
    """The same time of the wall clock some days later. `OverflowError` beyond the year 9999."""
    return moment.astimezone(zone) + timedelta(days=days)


def count_days_late(deadline: datetime, received: datetime, zone: tzinfo) -> int:
    """How many days have begun since the deadline: 0 up to it, 1 up to the same time of the next day, and so on."""
    until, at = deadline.astimezone(UTC), received.astimezone(UTC)
    if at <= until:
        return 0
    # Where the clocks change, the difference may be one more or one less than the days that have begun.
    days = max(1, (at - until) // _DAY - 1)
    with suppress(OverflowError):  # a clock that ends in the year 9999 cannot show the time after it
        while add_days(deadline, days, zone).astimezone(UTC) < at:
            days += 1
    return days
