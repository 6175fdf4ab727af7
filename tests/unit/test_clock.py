"""Moments and days: zones, clocks that change, texts that are no time."""

from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.clock import add_days, count_days_late, end_day, find_zone, parse_moment, settle_moment

BERLIN = ZoneInfo("Europe/Berlin")
ZONES = st.sampled_from(
    [UTC, BERLIN, ZoneInfo("America/New_York"), ZoneInfo("Australia/Lord_Howe"), timezone(timedelta(hours=1))]
)
MOMENTS = st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1), timezones=ZONES, allow_imaginary=False)


@pytest.mark.parametrize(
    ("text", "zone", "moment"),
    [
        ("2027-01-18 12:00", BERLIN, datetime(2027, 1, 18, 11, tzinfo=UTC)),
        ("2027-07-18T12:00:30", BERLIN, datetime(2027, 7, 18, 10, 0, 30, tzinfo=UTC)),
        ("2027-01-18 12:00 +0530", None, datetime(2027, 1, 18, 6, 30, tzinfo=UTC)),
        ("2027-01-18T12:00-08:00", BERLIN, datetime(2027, 1, 18, 20, tzinfo=UTC)),
        ("2015-02-02 15:58:23.948203 America/Los_Angeles", UTC, datetime(2015, 2, 2, 23, 58, 23, tzinfo=UTC)),
        ("2026-09-03 23:05:42.000000000 Z", None, datetime(2026, 9, 3, 23, 5, 42, tzinfo=UTC)),
        ("2026-01-03 23:05:42 CET\n", None, datetime(2026, 1, 3, 22, 5, 42, tzinfo=UTC)),
        # Shown twice; the first is meant.
        ("2026-10-25 02:30", BERLIN, datetime(2026, 10, 25, 0, 30, tzinfo=UTC)),
    ],
)
def test_a_moment_is_read_in_its_own_zone_or_in_the_one_given(text, zone, moment) -> None:
    assert parse_moment(text, zone) == moment


@pytest.mark.parametrize(
    "text",
    "|2027-01-18|2027-02-30 12:00|2027-01-18 24:00|2027-01-18 12:00 XYZ|18.01.2027 12:00|2027-01-18 12:00 +99:00|"
    "2027-01-18 12:00 ../../etc/passwd|2027-01-18 12:00 Europe|tomorrow|0001-01-01 00:00 +10:00".split("|"),
)
def test_what_is_no_moment_is_not_guessed(text) -> None:
    assert parse_moment(text, UTC) is None


def test_a_time_without_a_zone_is_unknown_where_no_zone_is_given() -> None:
    assert parse_moment("2027-01-18 12:00", None) is None
    assert settle_moment(datetime(2027, 1, 18), None) is None


@given(st.text(max_size=60), st.sampled_from([None, UTC, BERLIN]))
def test_no_text_breaks_the_reader(text, zone) -> None:
    moment = parse_moment(text, zone)
    assert moment is None or moment.tzinfo is UTC
    find_zone(text)


@given(MOMENTS)
def test_a_moment_written_with_its_offset_comes_back(moment) -> None:
    moment = moment.replace(microsecond=0)
    # An offset of less than a minute is not written.
    assert parse_moment(moment.isoformat(sep=" "), None) == moment.astimezone(UTC)


@pytest.mark.parametrize(
    ("received", "days"),
    [
        ("2027-03-27 23:59", 0),
        ("2027-03-28 00:00", 1),
        # The night has 23 hours; the wall clock decides.
        ("2027-03-28 23:59", 1),
        ("2027-03-29 00:00", 2),
        ("2027-04-03 23:59", 7),
        ("2027-04-04 00:00", 8),
    ],
)
def test_days_are_those_of_the_wall_clock_when_summer_time_begins(received, days) -> None:
    deadline = datetime(2027, 3, 27, 23, 59, tzinfo=BERLIN)
    assert count_days_late(deadline, parse_moment(received, BERLIN), BERLIN) == days


@pytest.mark.parametrize(
    ("received", "days"), [("2027-10-31 22:59", 1), ("2027-10-31 23:59", 1), ("2027-11-01 00:00", 2)]
)
def test_days_are_those_of_the_wall_clock_when_summer_time_ends(received, days) -> None:
    deadline = datetime(2027, 10, 30, 23, 59, tzinfo=BERLIN)
    assert count_days_late(deadline, parse_moment(received, BERLIN), BERLIN) == days


def test_a_due_date_written_with_an_offset_still_moves_with_the_wall_clock() -> None:
    deadline = datetime(2027, 3, 27, 23, 59, tzinfo=timezone(timedelta(hours=1)))
    assert count_days_late(deadline, parse_moment("2027-03-28 23:59", BERLIN), BERLIN) == 1
    assert count_days_late(deadline, parse_moment("2027-03-29 00:00", BERLIN), BERLIN) == 2
    assert add_days(deadline, 1, BERLIN).astimezone(UTC) == datetime(2027, 3, 28, 21, 59, tzinfo=UTC)


def test_an_offset_that_never_changes_counts_days_of_24_hours() -> None:
    fixed = timezone(timedelta(hours=1))
    deadline = datetime(2027, 3, 27, 23, 59, tzinfo=fixed)
    assert count_days_late(deadline, datetime(2027, 3, 28, 23, 59, tzinfo=BERLIN), fixed) == 1
    assert count_days_late(deadline, datetime(2027, 3, 29, 0, 59, tzinfo=BERLIN), fixed) == 1
    assert count_days_late(deadline, datetime(2027, 3, 29, 1, 0, tzinfo=BERLIN), fixed) == 2


@given(MOMENTS, MOMENTS, ZONES)
def test_the_days_late_are_the_first_end_of_a_day_that_was_not_missed(deadline, received, zone) -> None:
    days = count_days_late(deadline, received, zone)
    assert (days == 0) == (received.astimezone(UTC) <= deadline.astimezone(UTC))
    if days:
        assert add_days(deadline, days - 1, zone).astimezone(UTC) < received.astimezone(UTC)
        assert received.astimezone(UTC) <= add_days(deadline, days, zone).astimezone(UTC)


@given(MOMENTS, MOMENTS, st.timedeltas(timedelta(0), timedelta(days=3)), ZONES)
def test_handing_in_later_is_never_fewer_days_late(deadline, received, more, zone) -> None:
    later = received.astimezone(UTC) + more
    assert count_days_late(deadline, received, zone) <= count_days_late(deadline, later, zone)


def test_a_day_ends_with_its_last_second() -> None:
    assert end_day(date(2027, 1, 18), BERLIN).isoformat() == "2027-01-18T23:59:59+01:00"


@pytest.mark.parametrize("received", ["9999-12-31 23:59:59", "9999-12-31 00:00", "0001-01-02 00:00"])
@given(ZONES, st.integers(0, 23))
def test_a_file_that_claims_any_time_at_all_has_a_number_of_days(received, zone, hour) -> None:
    moment = parse_moment(received, UTC)
    assert moment is not None
    days = count_days_late(datetime(2027, 1, 1, hour, 30, tzinfo=zone), moment, zone)
    assert days == 0 if moment.year == 1 else days > 2_900_000
