"""The time zones that a person can choose."""

from functools import cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

UTC: Final = "UTC"
_NO_PLACES: Final = ("Etc/", "SystemV/", "posix/", "right/")


@cache
def zone_names() -> tuple[str, ...]:
    """Return UTC and the zones that are named after places, by name."""
    places = {name for name in available_timezones() if "/" in name}
    return (UTC, *sorted(name for name in places if not name.startswith(_NO_PLACES)))


def is_zone(name: str) -> bool:
    return name in zone_names()


def zone(name: str) -> ZoneInfo:
    """Return the zone of that name; UTC where this machine no longer knows it."""
    return ZoneInfo(name if is_zone(name) else UTC)
